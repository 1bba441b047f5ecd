"""Programs for the tests of kernels: recorded of functions, run by the kernel of a backend or
written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from multigrad import extend, func
from multigrad.backends.numpy.program import Replay, compiled, function_of_code, same_bits, trial
from multigrad.backends.numpy.program_code import Code
from multigrad.program import Program


def recorded(f: Callable[..., Any], *args: Any) -> Program:
    """The program of a function of arrays and numbers."""
    g = func.compile(f, check=False)
    g(*args)
    (program,) = g.programs
    return program


def replay(f: Callable[..., Any] | Program, *args: Any, arena: int = 64 << 20) -> Replay:
    """What the kernel of NumPy makes of a function, called with these arguments once, so that its
    code is written.
    """
    program = f if isinstance(f, Program) else recorded(f, *args)
    run: Replay = extend.backend("numpy").kernel("compile")(
        extend.raw_namespace("numpy"), program, arena=arena
    )
    run(*map(copied, args))
    assert run._one_by_one not in run._codes.values(), (
        "the code gave other results than the operations one by one"
    )
    return run


def copied(x: Any) -> Any:
    """An array of the strides of `x`, on memory of its own."""
    if type(x) is not np.ndarray or not x.size:
        return x
    low = sum(min(0, s * (n - 1)) for s, n in zip(x.strides, x.shape, strict=True))
    high = sum(max(0, s * (n - 1)) for s, n in zip(x.strides, x.shape, strict=True))
    made = np.ndarray(
        x.shape, x.dtype, np.zeros(high - low + x.itemsize, np.uint8), -low, x.strides
    )
    if 0 not in x.strides or x.size == 1:
        made[...] = x
    else:
        made[tuple(slice(0, 1) if s == 0 else slice(None) for s in x.strides)] = x[
            tuple(slice(0, 1) if s == 0 else slice(None) for s in x.strides)
        ]
    return made


class Poisoning(Code):
    """Code that fills memory with nonsense once it must not be read, so that a read shows."""

    def release(self, root: int) -> None:
        slot = self.slots.get(root)
        super().release(root)
        if slot is not None:
            self.frame[f"z{slot}"] = f"m{slot}"
            self.add(f"z{slot}.fill(255)")


Run = Callable[..., tuple[Any, ...]]


@dataclass
class Poisoned:
    """The code of a program, and that which fills memory with nonsense once it is free, as
    functions of the inputs.
    """

    code: Run
    poisoned: Run
    one_by_one: Run


def poisoned(program: Program, args: Sequence[Any], arena: int = 64 << 20) -> Poisoned:
    xp = extend.raw_namespace("numpy")
    run = compiled(xp, program, arena=arena)
    given = list(map(copied, args))
    _, facts = trial(xp, run._program, given)

    def changed(*inputs: Any) -> Any:
        raise AssertionError("a value has another layout than at the trial")

    codes = [
        function_of_code(cls(xp, run._program, facts, given, arena), changed)
        for cls in (Code, Poisoning)
    ]

    def one_by_one(*inputs: Any) -> tuple[Any, ...]:
        values, _ = trial(xp, program, inputs)
        return tuple([values[n] for n in program.outputs])

    return Poisoned(codes[0], codes[1], one_by_one)


def check(f: Callable[..., Any] | Program, *args: Any, arena: int = 64 << 20) -> None:
    """The code gives what the operations give one by one, to the last bit, at several calls, and
    what it gives stays as it is.
    """
    program = f if isinstance(f, Program) else recorded(f, *args)
    p = poisoned(program, args, arena)
    given = list(map(copied, args))
    expected = p.one_by_one(*given)
    for code in (p.poisoned, p.code):
        first = code(*given)
        before = [np.array(x) for x in first]
        assert_same(first, expected)
        if all(type(x) is np.ndarray for x in given):
            code(*[copied(x) if x.dtype.kind not in "fc" else other(x) for x in given])
        assert_same(before, [np.array(x) for x in first])
        assert_same(code(*given), expected)
        arrays = [x for x in first if type(x) is np.ndarray]
        held = [
            *(x for x in given if type(x) is np.ndarray),
            *(x for x in program.constants.values() if type(x) is np.ndarray),
        ]
        assert not any(np.may_share_memory(x, y) for x in arrays for y in held)
        assert not any(
            np.may_share_memory(x, y)
            for i, x in enumerate(arrays)
            for y in arrays[:i]
            if x is not y
        )


def other(x: Any) -> Any:
    """An array of other values, of the strides of `x`."""
    made = copied(x)
    if made.size and 0 not in made.strides:
        made *= made.dtype.type(0.75)
    return made


def assert_same(got: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(got) == len(expected)
    for x, y in zip(got, expected, strict=True):
        assert same_bits(x, y), (x, y)
