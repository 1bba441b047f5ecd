"""A function of one vector as a list of operations, which can run again with other data.

A function refers to arrays from outside. If a transformation differentiates these, they become
invalid when the transformation ends, but the backward pass needs the function later. So the
operations on the argument are recorded once, while the function runs, with the arrays from outside
as additional arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import multigrad as mg
from multigrad.extend import Layer, Transform, carry_out, innermost, level_of

__all__ = ["Opaque", "Program"]


class Opaque(Exception):
    """A function cannot be recorded: it has a user-defined derivative, or ignores its argument."""


class _Noted(Layer):
    """An array that was computed from the argument.

    number   its number as a result, 0 for the argument
    program  the program that records operations on it
    """

    __slots__ = ("number", "program")
    number: int
    program: Program

    @classmethod
    def apply(cls, op: Any, args: tuple[Any, ...], transform: Transform) -> Any:
        owners: list[Program] = []
        transform.map(lambda x: owners.append(x.program), args)
        program = owners[0]
        known = transform.map(lambda x: _Result(x.number), args, other=program.outside)
        out = carry_out(
            op,
            transform.map(
                lambda x: x.array, args, other=lambda x: innermost(x) if level_of(x) else x
            ),
        )
        several = op.outputs != ()
        numbers = program.note(op, known, len(out) if several else 1)
        layers = [
            cls.wrap(x, transform, number=i, program=program)
            for i, x in zip(numbers, out if several else (out,), strict=True)
        ]
        return tuple(layers) if several else layers[0]

    @classmethod
    def apply_function(
        cls, name: str, inside: Any, args: tuple[Any, ...], transform: Transform
    ) -> Any:
        raise Opaque

    def constant(self, array: Any) -> Any:
        number = self.program.note(None, (self.program.outside(array),), 1)[0]
        return self.wrap(innermost(array), self.transform, number=number, program=self.program)


class _Result:
    """A reference to the result with this number, among the arguments of a recorded operation."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Outside:
    """A reference to the array from outside with this number."""

    def __init__(self, number: int) -> None:
        self.number = number


class Program:
    """The operations of a function from a vector to a vector.

    arrays  the arrays from outside that are Tensors or other layers, of a floating dtype
    """

    def __init__(self, function: Callable[[Any], Any], vector: Any) -> None:
        self.arrays: list[Any] = []
        self._steps: list[tuple[Any, Any, list[int]]] = []
        self._count = 1
        transform = Transform("linear_solve")

        def run() -> Any:
            out = transform.layer_of(
                function(_Noted.wrap(vector, transform, number=0, program=self))
            )
            if out is None:
                raise Opaque
            return out.number

        self._last = transform.call(run)

    def outside(self, x: Any) -> Any:
        if not level_of(x):
            return x
        if not mg.namespace(x).isdtype(x.dtype, ("real floating", "complex floating")):
            return innermost(x)
        for i, y in enumerate(self.arrays):
            if x is y:
                return _Outside(i)
        self.arrays.append(x)
        return _Outside(len(self.arrays) - 1)

    def note(self, op: Any, args: Any, count: int) -> list[int]:
        numbers = list(range(self._count, self._count + count))
        self._count += count
        self._steps.append((op, args, numbers))
        return numbers

    def __call__(self, vector: Any, arrays: Sequence[Any]) -> Any:
        """Return the result of the function for `vector`, given the `arrays` from outside."""
        results = {0: vector}

        def value(x: Any) -> Any:
            if isinstance(x, tuple):
                return tuple(value(y) for y in x)
            return (
                results[x.number]
                if isinstance(x, _Result)
                else arrays[x.number]
                if isinstance(x, _Outside)
                else x
            )

        for op, args, numbers in self._steps:
            given = value(args)
            out = given[0] if op is None else carry_out(op, given)
            results.update(
                zip(numbers, (out,) if op is None or op.outputs == () else out, strict=True)
            )
        return results[self._last]
