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

`run` may have the attributes `source` (text), `memory` (the bytes that it keeps between calls) and
`at`. `at(*inputs)` is a function that does the same as `run`, and faster, for inputs of the
classes, shapes and memory layouts of these.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import BoundArguments
from operator import attrgetter
from typing import Any, cast

from .registry import Op


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


def identity(x: Any) -> Any:
    """A Python value in a form that can be compared.

    0.0 and -0.0 differ, nan is equal to itself, and True differs from 1. The same holds inside of
    tuples, frozensets and slices.
    """
    kind = type(x)
    if kind is tuple or kind is frozenset:
        return kind(map(identity, x)), kind
    if kind is slice:
        return (identity(x.start), identity(x.stop), identity(x.step)), kind
    return repr(x) if isinstance(x, (float, complex)) else x, kind


def compatible(kind: str, expected: Any, answer: Any) -> bool:
    """Whether a guard that expects `expected` accepts an answer."""
    if kind == "number":
        return bool(identity(expected) == identity(answer))
    return bool(expected == answer)


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


def function_of(xp: Any, program: Program, call: Call) -> Callable[..., Any]:
    """The function that carries out a call. It has the signature of the operation."""
    if is_on_numbers(program, call):
        return on_numbers(call.op)
    function: Callable[..., Any] = attrgetter(call.op.name)(xp)
    return function


def carried_out(xp: Any, program: Program, call: Call, args: tuple[Any, ...]) -> Any:
    """The result of a call for these values of its arguments, in the form of `call.args`."""
    function = function_of(xp, program, call)
    if is_on_numbers(program, call):
        return function(*args)
    bound = BoundArguments(call.op.signature, dict(zip(call.op.roles, args, strict=True)))
    return function(*bound.args, **bound.kwargs)


def shared(program: Program) -> set[int]:
    """The values that may share memory with others.

    These are inputs, constants, and the outputs of operations that may return views.
    """
    out = {*program.inputs, *program.constants}
    for step in program.steps:
        if isinstance(step, Call) and step.op.view is not False:
            out.update(step.outs)
    return out
