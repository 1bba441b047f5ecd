"""The programs of a compiled function, and the recording of another one.

A `Variant` is a program with what makes the result of the function from its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from .. import tree
from ..core.aliasing import note_write
from ..core.element import Library, is_array, libraries, library_named, library_of
from ..core.level import Layer, Standing
from ..core.tensor import Tensor, strip, wrap
from ..program import Guard, Missed, Program, Write, compatible, shared
from .arrays import unshared
from .leaves import STATIC, Arguments, Leaf, raw
from .numbers import RecordedNumber
from .recorded import MADE, Recorded, refuse_captured
from .recording import Aside, Recording
from .writes import may_write, write

STATICS = (bool, int, float, complex, str, bytes, type, slice, range, Enum, type(Ellipsis))
"""Classes of results that are not arrays, and are returned unchanged."""


@dataclass(slots=True, eq=False)
class Variant:
    """A program of a key, and how its outputs become the result of a call.

    library    of the arrays
    structure  of the result
    places     the origin of each of its leaves: ("out", i), the i-th output of the program;
               ("item", i), the same as a scalar of the library; ("whole", i), the same as an array
               without axes, where the program may have a scalar; ("argument", i), the i-th leaf
               of the arguments itself; ("static", x), x
    tensors    whether arrays are returned as Tensors
    writes     the leaves of the arguments that are written: with None by the program itself, else
               with that output
    run        the program as a function
    checked    whether it has been compared with the function
    """

    program: Program
    library: Library
    structure: tree.Structure
    places: Sequence[tuple[str, Any]]
    tensors: bool
    writes: dict[int, int | None]
    run: Any = None
    checked: bool = False
    guards: list[Guard] = field(init=False)

    def __post_init__(self) -> None:
        self.guards = [step for step in self.program.steps if isinstance(step, Guard)]

    def result(self, outs: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """The result of a call whose program has returned `outs`."""
        return tree.built(
            self.structure, [self._leaf(what, x, outs, leaves) for what, x in self.places]
        )

    def _leaf(self, what: str, x: Any, outs: Sequence[Any], leaves: Sequence[Any]) -> Any:
        if what == "item":
            return outs[x][()]
        if what == "whole":
            return self.library.xp.asarray(outs[x])
        if what == "out":
            return wrap(outs[x]) if self.tensors and is_array(outs[x]) else outs[x]
        return leaves[x] if what == "argument" else x

    def returned(self, outs: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """The result of a call, after Tensors that the function writes get their new values."""
        for i, place in self.writes.items():
            if place is not None:
                leaves[i][...] = outs[place]
            elif isinstance(leaves[i], Tensor):
                note_write(leaves[i]._cell)
        return self.result(outs, leaves)

    def begins(self, guards: Sequence[Guard]) -> bool:
        """Whether its first guards expect these answers."""
        return len(self.guards) >= len(guards) and all(
            compatible(a.kind, a.expected, b.expected)
            for a, b in zip(self.guards, guards, strict=False)
        )


@dataclass(slots=True, eq=False)
class Entry:
    """The programs of a key, and the one that ran last.

    key     the grad mode and the key of the arguments
    aside   why the function itself is called, or None if programs are run
    hidden  whether `aside` is the message of an error to raise, because the function depends on
            hidden state
    """

    key: tuple[bool | None, Any]
    structure: tree.Structure
    kinds: list[Leaf]
    inputs: list[int]
    variants: list[Variant] = field(default_factory=list)
    last: Variant | None = None
    aside: str | None = None
    hidden: bool = False

    def following(self, variant: Variant, missed: Missed) -> Variant | None:
        """The program that expects the new answer to a missed guard of `variant`, or None."""
        answers = variant.guards[: missed.guard.place]
        answers.append(replace(missed.guard, expected=missed.got))
        others = [other for other in self.variants if other is not variant]
        return next((other for other in others if other.begins(answers)), None)


def record(function: Callable[..., Any], arguments: Arguments) -> tuple[Variant, Any, str | None]:
    """Call a function and record it.

    Returns the program, which has no `run` yet, the result of the function, and why the program
    cannot replace the function, if there is a reason.

    Raises Aside if the function is to be called itself, on unchanged arguments.
    """
    recording = Recording(arguments.library, arguments.raw)
    try:
        call = _Call(function, arguments, recording)
        variant, returned = recording.call(call.record)
        return variant, returned, recording.unkept
    finally:
        recording.forget()


class _Call:
    """The call that is recorded.

    replaced  the leaves of the arguments, with their replacements during the recording
    numbers   the number of the value of the leaf at each place
    outputs   the numbers of the outputs of the program, and `arrays` their values
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Arguments, recording: Recording
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.recording = recording
        self.replaced = [
            x if leaf.kind == STATIC else recording.argument(raw(x))
            for x, leaf in zip(arguments.leaves, arguments.kinds, strict=True)
        ]
        self.numbers: dict[int, int] = dict(zip(arguments.inputs, recording.arguments, strict=True))
        self.outputs: list[int] = []
        self.arrays: list[Any] = []

    @property
    def library(self) -> Library:
        """The library of the arrays, which are arguments or were made by the function."""
        return self.recording.library or library_named("numpy")

    def record(self) -> tuple[Variant, Any]:
        args, kwargs = self.arguments.built(self.replaced)
        before = tree.flattened((args, kwargs))
        try:
            output = self.function(*args, **kwargs)
        except Aside:
            raise
        except BaseException as error:
            self.write(self.written())  # the writes before the error
            if error.__cause__ is not None and error.__cause__ is self.recording.refused:
                # NumPy has raised it, while it put the value into an array
                raise TypeError(str(error.__cause__).removesuffix(MADE) + MADE) from error
            raise
        if self.recording.refused is not None:
            raise Aside("it catches the error that is raised when values leave it")
        self.check_containers(before, tree.flattened((args, kwargs)))
        results, structure = tree.flattened(output)
        places = [self.place(x) for x in results]
        written = self.written()
        steps, writes = [], dict[int, int | None]()
        for i, layer in written.items():
            if not self.library.mutable or isinstance(
                raw(self.arguments.leaves[i]), self.library.scalars
            ):
                writes[i] = self.output(layer.number, layer._array)
            else:
                writes[i] = None
                steps.append(Write(self.numbers[i], layer.number))
        program = self.recording.finished_program(self.outputs, steps)
        variant = Variant(program, self.library, structure, places, not self.arguments.raw, writes)
        memory = shared(program) if self.library.mutable else set()
        outs = [
            unshared(x) if n in memory or n in self.outputs[:i] else x
            for i, (n, x) in enumerate(zip(self.outputs, self.arrays, strict=True))
        ]
        returned = variant.result(outs, self.arguments.leaves)
        self.write(written)
        return variant, returned

    # Results

    def place(self, x: Any) -> tuple[str, Any]:
        """The origin of a leaf of the result."""
        if isinstance(x, Layer):
            x = strip(self.recording._without_constants(x))
        for i, y in enumerate(self.replaced):
            if x is y and i in self.numbers:
                return "argument", i
        if isinstance(x, Recorded):
            has_class = self.recording.raw and self.library.scalars and not x._array.shape
            what = "out" if not has_class else "item" if x._is_scalar() else "whole"
            return what, self.output(x.number, x._array)
        if isinstance(x, RecordedNumber):
            return "out", self.output(x._number, x._value)
        if isinstance(x, Layer):
            refuse_captured(x, "the result")
        if is_array(x):
            library = library_of(x)
            assert library is not None
            return "out", self.output(self.recording.constant(x, library), x)
        if isinstance(x, STATICS) or _is_dtype(x):
            return "static", x
        raise TypeError(
            f"compile: the function returned {type(x).__module__}.{type(x).__qualname__}, which "
            "is neither an array nor a number nor a container that is known. Return its "
            "arrays, or make its class a container by multigrad.func.register_pytree"
        )

    def output(self, number: int, x: Any) -> int:
        """The place of a new output of the program.

        Arrays that can be written are an output for each result, because results share no memory.
        """
        written = self.library.mutable and is_array(x) and not isinstance(x, self.library.scalars)
        if written or number not in self.outputs:
            self.outputs.append(number)
            self.arrays.append(x)
            return len(self.outputs) - 1
        return self.outputs.index(number)

    # Writes

    def check_containers(
        self, before: tuple[list[Any], tree.Structure], after: tuple[list[Any], tree.Structure]
    ) -> None:
        """Raise TypeError if the function has changed a container among the arguments.

        The caller's container would not change.
        """
        pairs = zip(before[0], after[0], strict=False)
        if before[1] != after[1]:
            changed = "a container among its arguments, which has other parts now"
        elif (i := next((i for i, (x, y) in enumerate(pairs) if not _is(x, y)), None)) is None:
            return
        elif len(before[0]) == len(self.replaced):
            changed = f"{self.arguments.name(i)}, which is another object now"
        else:
            changed = "a container"
        raise TypeError(
            f"compile: the function changes {changed}. The container that the caller holds "
            "would stay unchanged. Write into the array itself, as x[...] = value does, or "
            "return a new container"
        )

    def written(self) -> dict[int, Recorded]:
        """The arguments that have been written, by their places.

        Raises Aside if they cannot be written independently of the others.
        """
        layers = {}
        for i, n in self.numbers.items():
            layer = self.replaced[i]
            if isinstance(layer, Standing):
                continue
            layer._check()
            leaf = self.arguments.leaves[i]
            if layer.number != n and not isinstance(leaf, self.library.scalars):
                layers[i] = layer
        captured = [x for x, _ in self.recording.captured.values()]
        if layers and not may_write(self.arguments, list(layers), captured):
            raise Aside
        return layers

    def write(self, written: dict[int, Recorded]) -> None:
        """Write the new values to the arguments."""
        values = {i: unshared(layer._array) for i, layer in written.items()}
        for i, value in values.items():
            write(self.arguments.leaves[i], value)


def _is_dtype(x: Any) -> bool:
    for library in libraries():
        try:
            library.xp.isdtype(x, "bool")
        except Exception:  # a library may raise any error for a foreign dtype
            continue
        return True
    return False


def _is(x: Any, y: Any) -> bool:
    """Whether two leaves are the same.

    Containers may make their leaves anew whenever they are flattened; such leaves count as the
    same.
    """
    if x is y or (isinstance(x, Recorded) and isinstance(y, Recorded) and x.number == y.number):
        return True
    return not is_array(x) and not isinstance(x, Standing) and type(x) is type(y) and bool(x == y)
