"""JAX: programs under `jax.jit`.

The operations are called one by one while JAX traces them, in pieces, since the compile time of XLA
grows faster than linearly. The values for guards are returned with the results, and are checked
before any result is handed out. Arithmetic of Python numbers, and their conversion to arrays, runs
in Python, since a trace lacks its precision. Operations that need values, such as those with
data-dependent shapes, are called one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ...optimizing import filled, optimized
from ...program import (
    Call,
    Guard,
    Missed,
    Program,
    Write,
    carried_out,
    compatible,
    got,
    is_on_numbers,
    refs,
)
from ..straight import compiled as one_by_one

PIECE = 500
"""The number of calls that are compiled together."""


def compiled(xp: Any, program: Program, *, arena: int) -> Callable[..., Any]:
    """A function that runs `program` on JAX arrays.

    See `multigrad/program.py`; JAX manages its own memory.
    """
    program = optimized(program)
    if any(
        step.op.about.checks
        if isinstance(step, Call)
        else not isinstance(step, Guard) or step.kind == "shape"
        for step in program.steps
    ):
        return one_by_one(xp, program)
    return Jitted(xp, program)


class Jitted:
    """A program for JAX arrays, as a function of its inputs."""

    memory = 0

    def __init__(self, xp: Any, program: Program) -> None:
        self._xp, self._program = xp, program
        self._traceable = True
        host: list[Any] = []
        device: list[Any] = []
        for step in program.steps:
            (host if self._is_on_host(step) else device).append(step)
        self._host: list[Call | Guard] = host
        self._guards = [step for step in device if isinstance(step, Guard)]
        calls = [step for step in device if isinstance(step, Call)]
        results = [*program.outputs, *(guard.value for guard in self._guards)]
        self._pieces = list(_pieces(xp, program, calls, results))

    def _is_on_host(self, step: Call | Guard | Write) -> bool:
        """Whether a step uses only Python numbers."""
        specs = self._program.specs
        if isinstance(step, Call):
            return is_on_numbers(self._program, step) or (
                step.op.name == "asarray"
                and all(specs[n].number is not None for n in refs(step.args))
            )
        return isinstance(step, Guard) and specs[step.value].number is not None

    @property
    def source(self) -> str:
        return "\n".join(map(str, self._program.steps))

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        if self._traceable:
            try:
                return self._run(inputs)
            except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
                self._traceable = False
        return self._one_by_one(*inputs)

    def _run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        values = dict(self._program.constants)
        values.update(zip(self._program.inputs, inputs, strict=True))
        if not self._on_host(values):
            return self._one_by_one(*inputs)  # where guards are checked in their order
        for function, arguments, results in self._pieces:
            values.update(zip(results, function(*[values[n] for n in arguments]), strict=True))
        for guard in self._guards:
            answer = got(guard.kind, values[guard.value])
            if not compatible(guard.kind, guard.expected, answer):
                raise Missed(guard, answer)
        return tuple(values[n] for n in self._program.outputs)

    def _on_host(self, values: dict[int, Any]) -> bool:
        """Run the arithmetic of numbers and the guards on them, and return whether these hold."""
        for step in self._host:
            if isinstance(step, Guard):
                if not compatible(step.kind, step.expected, got(step.kind, values[step.value])):
                    return False
            elif is_on_numbers(self._program, step):
                values[step.outs[0]] = carried_out(
                    self._xp, self._program, step, filled(step.args, values)
                )
            else:
                x, dtype = filled(step.args[:1], values)[0], step.args[1]
                values[step.outs[0]] = np.asarray(x, dtype=dtype)
        return True

    @cached_property
    def _one_by_one(self) -> Callable[..., tuple[Any, ...]]:
        return one_by_one(self._xp, self._program)


def _pieces(
    xp: Any, program: Program, calls: Sequence[Call], results: Sequence[int]
) -> Iterator[tuple[Any, list[int], list[int]]]:
    """Split a program into functions of values, with the numbers of their inputs and outputs."""
    last = dict.fromkeys(results, len(calls))
    for i, call in enumerate(calls):
        for n in refs(call.args):
            last[n] = max(last.get(n, -1), i)
    for start in range(0, len(calls), PIECE):
        piece = calls[start : start + PIECE]
        computed = {n for call in piece for n in call.outs if n >= 0}
        inputs = [
            n
            for n in dict.fromkeys(n for call in piece for n in refs(call.args))
            if n not in computed
        ]
        outputs = [
            n
            for call in piece
            for n in call.outs
            if n >= 0 and last.get(n, -1) >= start + len(piece)
        ]
        yield jax.jit(_function(xp, program, piece, inputs, outputs)), inputs, outputs


def _function(
    xp: Any, program: Program, calls: Sequence[Call], inputs: Sequence[int], outputs: Sequence[int]
) -> Callable[..., Any]:
    def piece(*arrays: Any) -> tuple[Any, ...]:
        values = dict(zip(inputs, arrays, strict=True))
        for call in calls:
            result = carried_out(xp, program, call, filled(call.args, values))
            values.update(
                zip(call.outs, (result,) if call.op.outputs == () else tuple(result), strict=True)
            )
        return tuple(values[n] for n in outputs)

    return piece
