"""The programs that `func.compile` records, and the contract of a backend's kernel `compile`.

A program is a straight list of calls on numbered values. It is never changed;
`optimizing.optimized` returns another one. Every array argument of a call is a `Ref` to a value: an
input, a constant, or an output of an earlier call. A program writes only at its end. The recording
of an in-place operation is a new value (`copy_slices`), and a `Write` says which argument holds
which value when the call is over.

**Numbers.** A Python int, float or complex among the arguments is an input whose Spec has a
`number`. `run` receives the number itself and passes it to the library as a Python scalar, so that
it does not promote. A call whose arguments are all numbers is Python's own arithmetic. Its output
has a `number` in its Spec, too, and `function_of` gives Python's operator for it.

**The kernel.** multigrad calls `compile(xp, program, *, arena) -> run` of the backend of the
arrays, with the raw namespace as `xp`. `run(*inputs)` returns the tuple of outputs. Several threads
may call it at once, and so may a call inside of another call. These rules hold:

- Outputs are fresh: never inputs, constants, or views of these or of memory that a later call uses.
  (An argument that the function returns unchanged is not among the outputs.) Outputs share no
  memory with each other either: if arrays are mutable, one value that is an output twice is two
  arrays.
- A guard that fails raises `Missed`. Until then there is no visible effect: no input is written.
- After another exception the inputs are unchanged, and multigrad calls the function itself. An
  exception after the first write has begun is raised as `Torn(error)`.
- All writes read their values before any target changes: `a, b = b, a` is two Writes. Targets do
  not overlap other inputs, and are writable. If arrays are immutable, programs have no Writes: the
  values are outputs.

`run` may have the attributes `source` (text), `memory` (the bytes that it keeps between calls),
`exact` and `at`. `exact` is False if it rounds differently than the single operations do, as a
compiler that fuses operations does. `at(*inputs)` is a function that does the same as `run`, and
faster, for inputs of the classes, shapes and memory layouts of these.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import copysign
from typing import Any, cast

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
    """A value of the program as an argument of a call."""

    number: int

    def __repr__(self) -> str:
        return f"v{self.number}"


@dataclass(frozen=True, slots=True)
class Spec:
    """The properties of a value that are known before the program runs.

    order   its order in memory at the recording: "C" by rows, "F" by columns, None for neither or
            unknown
    number  the class of a value that is a Python scalar (bool, int, float, complex), else None. A
            Python scalar has the shape () and the dtype None
    """

    shape: tuple[int, ...]
    dtype: Any
    device: Any = None
    order: str | None = None
    number: type | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An operation with its arguments and outputs.

    args  the values of all parameters of `op.signature`, in order. Lists and keys are tuples, and
          every array is a Ref
    outs  the numbers of the outputs; -1 for one that is None
    line  file:line of the user's code
    """

    op: Op
    args: tuple[Any, ...]
    outs: tuple[int, ...]
    line: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A question that the function asked about a value, with the answer at the recording.

    The rest of the program holds only if the answer is the same again.

    kind      "bool": bool(value); "int": its int; "number": the number itself; "type": the class of
              the number, which depends on values; "shape": its shape, which depends on values
    expected  the answer at the recording
    place     how many guards were recorded before it
    """

    value: int
    kind: str
    expected: Any
    line: str = ""
    place: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """At the end of the call, the argument passed as the input `target` holds `value`.

    Both have the same shape and dtype.
    """

    target: int
    value: int
    line: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A recorded function, as the module docstring describes it.

    `steps` are in the order of the recording, with the Writes last.
    """

    inputs: tuple[int, ...]
    constants: dict[int, Any]
    specs: dict[int, Spec]
    steps: list[Call | Guard | Write]
    outputs: tuple[int, ...]


class Missed(Exception):
    """A guard failed: the answer was `got` this time."""

    def __init__(self, guard: Guard, got: Any) -> None:
        super().__init__(guard, got)
        self.guard = guard
        self.got = got


class Torn(Exception):
    """An error after which the function must not be called again.

    It was raised after some inputs were written, or by the function itself in a comparison.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def got(kind: str, value: Any) -> Any:
    """The answer to a guard of this kind for a value."""
    if kind == "bool":
        return bool(value)
    if kind == "int":
        return int(value)
    if kind == "type":
        return type(value)
    return tuple(value.shape) if kind == "shape" else value


def compatible(kind: str, expected: Any, answer: Any) -> bool:
    """Whether a guard that expects `expected` accepts an answer.

    Zeros of different signs are different numbers. nan is equal to itself.
    """
    if kind != "number":
        return bool(expected == answer)
    same: bool = _identity(expected) == _identity(answer)
    return same


def _identity(x: Any) -> Any:
    if isinstance(x, complex):
        return complex, _identity(x.real), _identity(x.imag)
    return (
        (type(x), "nan")
        if x != x
        else (type(x), x, copysign(1.0, x) if isinstance(x, float) else 0)
    )


def run_at(run: Callable[..., Any], inputs: Iterable[Any]) -> Callable[..., Any]:
    """What runs a program for inputs of the classes, shapes and memory layouts of these."""
    at = getattr(run, "at", None)
    return run if at is None else cast("Callable[..., Any]", at(*inputs))


def memory_of(run: Callable[..., Any]) -> int:
    """The bytes that the function of a program keeps between calls."""
    return int(getattr(run, "memory", 0))


def refs(args: tuple[Any, ...]) -> list[int]:
    """The numbers of the values among arguments, nested tuples included."""
    numbers = []
    for x in args:
        if type(x) is Ref:
            numbers.append(x.number)
        elif type(x) is tuple:
            numbers += refs(x)
    return numbers


def on_numbers(op: Op) -> Callable[..., Any]:
    """Python's operator of an operation, for a call on numbers."""
    function: Callable[..., Any] = getattr(operator, f"__{op.operator}__")
    return function


def is_on_numbers(program: Program, call: Call) -> bool:
    """Whether a call is Python's own arithmetic: its output is a number."""
    first = call.outs[0] if call.outs else -1
    return bool(first >= 0 and program.specs[first].number is not None)


def function_of(xp: Any, program: Program, call: Call, plain: bool = False) -> Callable[..., Any]:
    """The function that carries out a call, for arguments in the form of `call.args`.

    plain  return the function with the signature of the operation instead
    """
    if is_on_numbers(program, call):
        return on_numbers(call.op)
    function: Any = xp
    for part in call.op.name.split("."):
        function = getattr(function, part)
    return function if plain else passing(call.op, function)


def functions_of(xp: Any, program: Program) -> list[Callable[..., Any] | None]:
    """`function_of` each call of a program, and None for other steps.

    It looks up each operation once.
    """
    by_name: dict[tuple[str, bool], Callable[..., Any]] = {}
    functions: list[Callable[..., Any] | None] = []
    for step in program.steps:
        if not isinstance(step, Call):
            functions.append(None)
            continue
        key = step.op.name, is_on_numbers(program, step)
        if key not in by_name:
            by_name[key] = function_of(xp, program, step)
        functions.append(by_name[key])
    return functions


def passing(op: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes the values of all parameters in order and calls `function`.

    `function` has the signature of the operation.
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
    """The values that may share memory with others.

    These are inputs, constants, and the outputs of operations that may return views.
    """
    out = {*program.inputs, *program.constants}
    for step in program.steps:
        if isinstance(step, Call) and step.op.view is not False:
            out.update(step.outs)
    return out
