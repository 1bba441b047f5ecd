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
            view = name in VIEWS or (name == "real" and "complex" not in str(args[0].dtype))
            if view and isinstance(args[0], Array) and not kwargs.get("copy"):
                places = getattr(np, name)(args[0].places, *args[1:], **kwargs)
                if np.shares_memory(places, args[0].places):
                    return Array(self, args[0].memory, places)
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
    """memory: a list with the flat array, which views share."""

    __array_priority__ = 1000

    def __init__(self, library: Library, memory: list[Any], places: Any) -> None:
        self.library, self.memory, self.places = library, memory, places

    @property
    def value(self) -> Any:
        return self.library.read(self.memory[0], self.places)

    shape = property(lambda self: self.places.shape)
    ndim = property(lambda self: self.places.ndim)
    dtype = property(lambda self: self.memory[0].dtype)
    T = property(lambda self: Array(self.library, self.memory, self.places.T))

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Array:
        places = np.asarray(self.places[_key(key)])
        if np.shares_memory(places, self.places) or places.ndim == 0:
            return Array(self.library, self.memory, places)
        return self.library.wrapped(self.library.read(self.memory[0], places))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.memory[0] = self.library.write(
            self.memory[0], np.asarray(self.places[_key(key)]), plain(value)
        )


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
