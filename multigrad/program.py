"""Programs: what `func.compile` records of a function, and what a backend's kernel `compile` makes
a function of.

A program is straight code over values, which have numbers. It is never changed;
`optimizing.optimized` makes another one. Every array that a call takes is a `Ref` to a value: an
input, a constant, or an output of a call before it. Nothing is written before the end: what an
in-place operation does is recorded as a new value (`copy_slices`), and a `Write` says that an
argument holds a value when the call is over.

**Numbers.** A Python int, float or complex that was given as an argument is an input whose Spec has
a `number`. It is handed to `run` as it is, and to a library as a Python scalar, so that it does not
promote. A call all of whose arguments are numbers is Python's own arithmetic: its output has a
`number` in its Spec, too, and `function_of` gives Python's operator for it.

**The kernel.** `compile(xp, program, *, arena) -> run`, asked for the backend of the arrays, with
its raw namespace as `xp`. `run(*inputs)` returns the tuple of outputs. It may be called by several
threads at once, and by a call that runs inside of another. What holds for it:

- Outputs are fresh: never inputs, constants, or views of these or of memory that a later call uses.
  (An argument that the function returns as it is stands in no outputs.) One value that stands in
  the outputs twice may be one array.
- A guard that does not hold raises `Missed`. Until then nothing is visible: no input is written.
- Another exception leaves the inputs as they were, and the function is then called itself. An
  exception after the first write has begun is raised as `Torn(error)`.
- Several writes read what they are given before any target changes: `a, b = b, a` is two Writes.
  Targets do not overlap other inputs, and can be written. Where arrays are immutable, programs have
  no Writes: the values are outputs.

`run.source` (text), `run.memory` (bytes that it keeps between calls) and `run.exact` (False where
it rounds otherwise than the operations one by one do, as a compiler that fuses) are optional
attributes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import copysign
from typing import Any

from .registry import Op

__all__ = [
    "Call",
    "Guard",
    "Missed",
    "Program",
    "Ref",
    "Spec",
    "Torn",
    "Write",
    "compatible",
    "function_of",
    "functions_of",
    "got",
    "is_on_numbers",
    "passing",
    "refs",
    "shared",
]


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the program, where a call takes an array."""

    number: int

    def __repr__(self) -> str:
        return f"v{self.number}"


@dataclass(frozen=True, slots=True)
class Spec:
    """What is known of a value before the program runs.

    order   how it lay in memory when it was recorded: "C" by rows, "F" by columns, None for
            neither, or where that is not known
    number  the class of a value that is a Python scalar (bool, int, float, complex), whose shape is
            () and whose dtype is None; else None
    """

    shape: tuple[int, ...]
    dtype: Any
    device: Any = None
    order: str | None = None
    number: type | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An operation. `args` are the values of all parameters of `op.signature`, in order; lists and
    keys are tuples, and every array is a Ref.

    outs  the numbers of the outputs; -1 for one that is None
    line  file:line of the user's code
    """

    op: Op
    args: tuple[Any, ...]
    outs: tuple[int, ...]
    line: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """What the function asked about a value, and was told: the rest of the program holds only if
    that is so again.

    kind      "bool": bool(value); "int": its int; "number": the number itself; "shape": its shape,
              which depends on values
    place     how many guards were recorded before it
    """

    value: int
    kind: str
    expected: Any
    line: str = ""
    place: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """At the end of the call the array that was passed as the input `target` holds `value`, of the
    same shape and dtype.
    """

    target: int
    value: int
    line: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """See the head of this module. `steps` are in the order of the recording; Writes come last."""

    inputs: tuple[int, ...]
    constants: dict[int, Any]
    specs: dict[int, Spec]
    steps: list[Call | Guard | Write]
    outputs: tuple[int, ...]


class Missed(Exception):
    """A guard does not hold: `got` is what it was told this time."""

    def __init__(self, guard: Guard, got: Any) -> None:
        super().__init__(guard, got)
        self.guard = guard
        self.got = got


class Torn(Exception):
    """An error after some inputs were written."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def got(kind: str, value: Any) -> Any:
    """What a guard of this kind is told of a value."""
    if kind == "bool":
        return bool(value)
    if kind == "int":
        return int(value)
    return tuple(value.shape) if kind == "shape" else value


def compatible(kind: str, expected: Any, told: Any) -> bool:
    """Whether a guard that expects the one holds where it is told the other.

    Zeros of two signs are two numbers, nan is equal to itself.
    """
    if kind != "number":
        return bool(expected == told)
    same: bool = _identity(expected) == _identity(told)
    return same


def _identity(x: Any) -> Any:
    if isinstance(x, complex):
        return complex, _identity(x.real), _identity(x.imag)
    return (
        (type(x), "nan")
        if x != x
        else (type(x), x, copysign(1.0, x) if isinstance(x, float) else 0)
    )


def refs(args: Any) -> Iterator[int]:
    """The numbers of the values among arguments, nested tuples and slices included."""
    for x in args:
        if isinstance(x, Ref):
            yield x.number
        elif isinstance(x, tuple):
            yield from refs(x)


ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "add": operator.add,
    "divide": operator.truediv,
    "equal": operator.eq,
    "floor_divide": operator.floordiv,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
    "multiply": operator.mul,
    "negative": operator.neg,
    "not_equal": operator.ne,
    "positive": operator.pos,
    "pow": operator.pow,
    "remainder": operator.mod,
    "subtract": operator.sub,
}
"""Python's operators, by the operation that a call on numbers names."""


KEEPING = frozenset[str]()
"""The operations that may return an argument, or a view of one, though they are not declared as
views.
"""


def is_on_numbers(program: Program, call: Call) -> bool:
    """Whether a call is Python's own arithmetic: its output is a number."""
    first = call.outs[0] if call.outs else -1
    return bool(first >= 0 and program.specs[first].number is not None)


def function_of(xp: Any, program: Program, call: Call, plain: bool = False) -> Callable[..., Any]:
    """What carries a call out, given the values of all parameters in order, as `call.args` has
    them; `plain`: called as the operation is.
    """
    if is_on_numbers(program, call):
        return ON_NUMBERS[call.op.name]
    function: Any = xp
    for part in call.op.name.split("."):
        function = getattr(function, part)
    return function if plain else passing(call.op, function)


def functions_of(xp: Any, program: Program) -> list[Callable[..., Any] | None]:
    """`function_of` each call of a program, None for other steps: each operation is looked up
    once.
    """
    known: dict[tuple[str, bool], Callable[..., Any]] = {}
    found: list[Callable[..., Any] | None] = []
    for step in program.steps:
        if not isinstance(step, Call):
            found.append(None)
            continue
        key = step.op.name, is_on_numbers(program, step)
        if key not in known:
            known[key] = function_of(xp, program, step)
        found.append(known[key])
    return found


def passing(op: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which is called as the operation is, as one of the values of all parameters in
    order.
    """
    kinds = [p.kind for p in op.signature.parameters.values()]
    names = list(op.roles)
    if not any(kind in (kind.VAR_POSITIONAL, kind.KEYWORD_ONLY) for kind in kinds):
        return function
    spread = next((i for i, kind in enumerate(kinds) if kind is kind.VAR_POSITIONAL), None)
    first = next((i for i, kind in enumerate(kinds) if kind is kind.KEYWORD_ONLY), len(kinds))
    keywords = names[first:]

    def called(*values: Any) -> Any:
        positional = (
            values[:first]
            if spread is None
            else (*values[:spread], *values[spread], *values[spread + 1 : first])
        )
        return function(*positional, **dict(zip(keywords, values[first:], strict=True)))

    return called


def shared(program: Program) -> set[int]:
    """The values that may lie in the memory of others: inputs, constants, and what operations make
    that may return views.
    """
    found = {*program.inputs, *program.constants}
    for step in program.steps:
        if isinstance(step, Call) and (step.op.view is not False or step.op.name in KEEPING):
            found.update(step.outs)
    return found
