"""Arrays with views and writes over a library without them: each write makes a new memory.

A memory is one flat array of the library. An array knows the places of its elements there, as a
NumPy array, so NumPy itself decides what is a view: whatever shares the memory of the places.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

VIEWS = frozenset(
    {"reshape", "permute_dims", "matrix_transpose", "squeeze", "expand_dims", "moveaxis"}
)
PARTS = ("real", "imag")


@dataclass
class Library:
    """A namespace of functions on arrays of this module.

    read(flat, places) and write(flat, places, value) return arrays of the library; `part` is the
    part of its namespace that is meant, such as `linalg`.
    """

    xp: Any
    read: Callable[[Any, Any], Any]
    write: Callable[[Any, Any, Any], Any]
    part: Any = None

    def __getattr__(self, name: str) -> Any:
        """A function of the namespace, on the arrays of this module."""
        if name == "linalg":
            return Library(self.xp, self.read, self.write, self.xp.linalg)
        member = getattr(self.part or self.xp, name)
        if not callable(member) or name.startswith(("float", "complex", "int", "bool")):
            return member  # a dtype

        def function(*args: Any, **kwargs: Any) -> Any:
            x = args[0] if args else None
            if isinstance(x, Array) and name in PARTS and (name == "real" or x.is_complex):
                return Array(self, x.memory, x.places, name if x.is_complex else x.part)
            if isinstance(x, Array) and name in VIEWS and not kwargs.get("copy"):
                places = getattr(np, name)(x.places, *args[1:], **kwargs)
                if np.shares_memory(places, x.places):
                    return x.view(places)
            return self.wrapped(member(*map(plain, args), **kwargs))

        return function

    def wrapped(self, x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return tuple(map(self.wrapped, x))
        if not hasattr(x, "shape"):
            return x
        size = int(np.prod(x.shape))
        return Array(
            self, [self.xp.reshape(x, (-1,))], np.arange(size).reshape(tuple(map(int, x.shape)))
        )


def plain(x: Any) -> Any:
    """The array of the library with the value of an array of this module."""
    if isinstance(x, (tuple, list)):
        return type(x)(map(plain, x))
    return x.value if isinstance(x, Array) else x


class Array:
    """memory: a list with the flat array, which views share; part: of complex numbers, or ""."""

    __array_priority__ = 1000

    def __init__(self, library: Library, memory: list[Any], places: Any, part: str = "") -> None:
        self.library, self.memory, self.places, self.part = library, memory, places, part

    @property
    def value(self) -> Any:
        whole = self.library.read(self.memory[0], self.places)
        return getattr(self.library.xp, self.part)(whole) if self.part else whole

    def view(self, places: Any) -> Array:
        return Array(self.library, self.memory, places, self.part)

    shape = property(lambda self: self.places.shape)
    ndim = property(lambda self: self.places.ndim)
    dtype = property(lambda self: self.value.dtype if self.part else self.memory[0].dtype)
    is_complex = property(lambda self: "complex" in str(self.dtype))
    T = property(lambda self: self.view(self.places.T))

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Array:
        places = np.asarray(self.places[_key(key)])
        if np.shares_memory(places, self.places) or places.ndim == 0:
            return self.view(places)
        return self.library.wrapped(self.view(places).value)

    def __setitem__(self, key: Any, value: Any) -> None:
        places, value, xp = np.asarray(self.places[_key(key)]), plain(value), self.library.xp
        if self.part:
            old = self.library.read(self.memory[0], places)
            parts = {name: getattr(xp, name)(old) for name in PARTS} | {self.part: value}
            value = parts["real"] + 1j * parts["imag"]
        self.memory[0] = self.library.write(self.memory[0], places, value)


def _key(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(_key, key))
    return np.asarray(plain(key)) if isinstance(key, Array) else key


def _define(name: str) -> None:
    function = getattr(operator, name)

    def forward(self: Array, other: Any) -> Any:
        return self.library.wrapped(function(self.value, plain(other)))

    def reflected(self: Array, other: Any) -> Any:
        return self.library.wrapped(function(plain(other), self.value))

    def in_place(self: Array, other: Any) -> Any:
        self[...] = function(self.value, plain(other))
        return self

    for prefix, method in (("", forward), ("r", reflected), ("i", in_place)):
        setattr(Array, f"__{prefix}{name}__", method)


def _compare(name: str) -> None:
    function = getattr(operator, name)
    setattr(
        Array,
        f"__{name}__",
        lambda self, other: self.library.wrapped(function(self.value, plain(other))),
    )


for _name in ("add", "sub", "mul", "truediv", "pow", "matmul"):
    _define(_name)
for _name in ("lt", "gt", "le", "ge"):
    _compare(_name)
