"""A trial: a program run operation by operation on NumPy arrays, with notes on every value.

Strides and sharing of memory follow from those of the inputs, so an observation holds for all
inputs of the same strides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..program import (
    Call,
    Guard,
    Missed,
    Program,
    Ref,
    Torn,
    Write,
    compatible,
    functions_of,
    got,
    refs,
)


@dataclass(slots=True)
class Seen:
    """The properties of a value: an "array", a NumPy "scalar", a Python "number", or "other".

    root  the value that owns the memory of an array: itself, an input, a constant, a result
    """

    kind: str
    root: int
    shape: tuple[int, ...] = ()
    dtype: Any = None
    strides: tuple[int, ...] = ()
    nbytes: int = 0

    def alike(self, other: Seen) -> bool:
        """Whether two arrays have the same elements at the same places of their memory."""
        return (
            self.shape == other.shape
            and self.dtype == other.dtype
            and self.strides == other.strides
        )


def seen(number: int, x: Any, root: int | None = None) -> Seen:
    kind = type(x)
    if kind is np.ndarray:
        return Seen(
            "array", number if root is None else root, x.shape, x.dtype, x.strides, x.nbytes
        )
    if isinstance(x, np.generic):
        return Seen("scalar", number, (), x.dtype)
    return Seen("number" if kind in (int, float, complex, bool) else "other", number)


def copied(x: Any) -> Any:
    """Copy an array in its own order, or row-major if it repeats elements."""
    return np.array(x, order="C" if 0 in x.strides else "K")


def given(args: Sequence[Any], values: dict[int, Any]) -> tuple[Any, ...]:
    """The arguments, with each Ref replaced by the entry of `values` for its number."""
    return tuple(
        values[x.number] if type(x) is Ref else given(x, values) if type(x) is tuple else x
        for x in args
    )


class Trial:
    """A runner of a program, operation by operation.

    `last` is the number of the last step that needs a value.
    """

    def __init__(self, xp: Any, program: Program) -> None:
        self.program = program
        self.functions = functions_of(xp, program)
        self.last: dict[int, int] = {}
        for i, step in enumerate(program.steps):
            for n in refs(step.args) if isinstance(step, Call) else (step.value,):
                self.last[n] = i
            if isinstance(step, Call):
                for n in step.outs:
                    self.last.setdefault(n, i)
        for step in program.steps:
            if isinstance(step, Write):
                self.last[step.value] = len(program.steps)
        for n in program.outputs:
            self.last[n] = len(program.steps)
        self.dying: list[list[int]] = [[] for _ in range(len(program.steps) + 1)]
        for n, i in self.last.items():
            self.dying[i].append(n)

    def run(
        self, inputs: Sequence[Any], facts: dict[int, Seen] | None = None
    ) -> tuple[tuple[Any, ...], list[tuple[Any, Any]]]:
        """The outputs, and pairs of a target and its new values, which are not written yet.

        It stores the properties of values in `facts`.
        """
        program = self.program
        values = dict(program.constants)
        targets = dict(zip(program.inputs, inputs, strict=True))
        values.update(targets)
        if facts is not None:
            facts.update((n, seen(n, x)) for n, x in values.items())
        writes = []
        for i, step in enumerate(program.steps):
            if isinstance(step, Call):
                self.call(step, self.functions[i], values, facts)
            elif isinstance(step, Guard):
                told = got(step.kind, values[step.value])
                if not compatible(step.kind, step.expected, told):
                    raise Missed(step, told)
            else:
                writes.append((targets[step.target], values[step.value]))
            for n in self.dying[i]:
                values.pop(n, None)
        held = {id(x) for x in (*inputs, *program.constants.values())}
        outputs = []
        for n in program.outputs:
            outputs.append(self.fresh(values[n], held))
            held.add(id(outputs[-1]))
        return tuple(outputs), writes

    def call(
        self, step: Call, function: Any, values: dict[int, Any], facts: dict[int, Seen] | None
    ) -> None:
        result = function(*given(step.args, values))
        outs = (result,) if step.op.outputs == () else tuple(result)
        for n, x in zip(step.outs, outs, strict=True):
            if n >= 0:
                values[n] = x
                if facts is not None:
                    facts[n] = seen(n, x, _root(step, x, values, facts))

    def fresh(self, x: Any, held: set[int]) -> Any:
        if type(x) is not np.ndarray or (x.base is None and id(x) not in held):
            return x
        return copied(x)


def _root(step: Call, x: Any, values: dict[int, Any], facts: dict[int, Seen]) -> int | None:
    """The value that owns the memory of a result, if an operand does."""
    if type(x) is not np.ndarray:
        return None
    for n in refs(step.args):
        v = values[n]
        if type(v) is np.ndarray and (
            v is x or ((x.base is not None or v.base is not None) and np.may_share_memory(x, v))
        ):
            return facts[n].root
    return None


def store(writes: Sequence[tuple[Any, Any]]) -> None:
    """Write, after all values have been read."""
    targets = [target for target, _ in writes]
    taken = [
        copied(x)
        if type(x) is np.ndarray and any(np.may_share_memory(x, t) for t in targets)
        else x
        for _, x in writes
    ]
    begun = False
    for target, x in zip(targets, taken, strict=True):
        try:
            target[...] = x
        except BaseException as error:
            if begun:
                raise Torn(error) from error
            raise
        begun = True


def same_bits(a: Any, b: Any) -> bool:
    """Whether two results are equal to the last bit, in dtype, shape and kind.

    The payload of a nan does not count.
    """
    if type(a) is not type(b):
        return False
    if not isinstance(a, (np.ndarray, np.generic)):
        return repr(a) == repr(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if isinstance(a, np.ndarray) and a.dtype.kind in "fc":
        return all(_same_floats(x, y) for x, y in _parts(a, b))
    return (
        bool(np.array_equal(a, b))
        if a.dtype.kind not in "fc"
        else all(_same_floats(np.asarray(x), np.asarray(y)) for x, y in _parts(a, b))
    )


def _parts(a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
    yield from ((a.real, b.real), (a.imag, b.imag)) if a.dtype.kind == "c" else ((a, b),)


def _same_floats(a: Any, b: Any) -> bool:
    return bool((((a == b) & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b))).all())


Function = Callable[..., Any]
