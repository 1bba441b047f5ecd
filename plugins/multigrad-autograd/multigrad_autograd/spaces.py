"""Vector spaces: addition and scaling of values by type. HIPS autograd's `VSpace` and `vspace`.

The inner product of complex arrays is real, and a complex space has two dimensions per element, as
in HIPS autograd.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

import multigrad as mg
from multigrad.extend import entry, register_plain_type

from .boxes import is_box, left

__all__ = [
    "ArrayVSpace",
    "ComplexArrayVSpace",
    "ContainerVSpace",
    "DictVSpace",
    "ListVSpace",
    "SparseObject",
    "TupleVSpace",
    "VSpace",
    "vspace",
]


class VSpace:
    """The vector space of a value. Subclass it and `register` the subclass for a type of values."""

    mappings: ClassVar[dict[type, Callable[[Any], Any]]] = {}
    iscomplex = False
    shape: Any
    size: int

    def __init__(self, value: Any) -> None: ...

    def zeros(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no zeros()")

    def ones(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no ones()")

    def standard_basis(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no standard_basis()")

    def randn(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no randn()")

    def add(self, x_prev: Any, x_new: Any) -> Any:
        return self._add(x_prev, x_new)

    def mut_add(self, x_prev: Any, x_new: Any) -> Any:
        """Return the sum of both, where None means zero. Arrays may be shared: none is modified."""
        return x_new if x_prev is None else self._add(x_prev, x_new)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        return self._scalar_mul(x, a)

    def inner_prod(self, x: Any, y: Any) -> Any:
        return self._inner_prod(x, y)

    def covector(self, x: Any) -> Any:
        return self._covector(x)

    def _add(self, x: Any, y: Any) -> Any:
        return x + y

    def _mut_add(self, x: Any, y: Any) -> Any:
        return x + y

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return x * a

    def _inner_prod(self, x: Any, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inner product")

    def _covector(self, x: Any) -> Any:
        return x

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}_{self.__dict__}"

    @classmethod
    @entry
    def register(cls, value_type: type, vspace_maker: Callable[[Any], Any] | None = None) -> None:
        """Register this class, or `vspace_maker`, for the vector spaces of values of that type.

        A subclass of NumPy's arrays then counts as plain arrays.
        """
        if isinstance(value_type, type) and issubclass(value_type, np.ndarray):
            register_plain_type(value_type)
        VSpace.mappings[value_type] = vspace_maker or cls


@entry
def vspace(value: Any) -> Any:
    """Return the vector space of a value. Raises TypeError if its type has none."""
    if is_box(value):
        return _of_array(value)
    make = VSpace.mappings.get(type(value))
    if make is None:
        make = next((m for t, m in VSpace.mappings.items() if isinstance(value, t)), None)
    if make is None:
        known = ", ".join(sorted(t.__name__ for t in VSpace.mappings))
        raise TypeError(
            f"Can't find vector space for value {value} of type {type(value)}. Valid types are "
            f"{known}"
        )
    return make(value)


class ArrayVSpace(VSpace):
    """The space of real arrays of one shape and dtype."""

    @entry
    def __init__(self, value: Any) -> None:
        array = value if is_box(value) else np.asarray(value)
        self.shape = tuple(array.shape)
        self.dtype = np.dtype(array.dtype)

    @property
    def size(self) -> int:  # type: ignore[override]
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def zeros(self) -> Any:
        return np.zeros(self.shape, dtype=self.dtype)

    def ones(self) -> Any:
        return np.ones(self.shape, dtype=self.dtype)

    def standard_basis(self) -> Iterator[Any]:
        for at in np.ndindex(*self.shape):
            for unit in self._units():
                vector = np.zeros(self.shape, dtype=self.dtype)
                vector[at] = unit
                yield vector

    def _units(self) -> tuple[complex, ...]:
        return (1.0,)

    def randn(self) -> Any:
        return np.asarray(np.random.randn(*self.shape)).astype(self.dtype)

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return _sum(x * y)


class ComplexArrayVSpace(ArrayVSpace):
    """The space of complex arrays of one shape and dtype."""

    iscomplex = True

    @property
    def size(self) -> int:  # type: ignore[override]
        return 2 * int(math.prod(self.shape))

    def ones(self) -> Any:
        return np.full(self.shape, 1.0 + 1.0j, dtype=self.dtype)

    def _units(self) -> tuple[complex, ...]:
        return (1.0, 1.0j)

    def randn(self) -> Any:
        return (
            np.asarray(np.random.randn(*self.shape)) + 1j * np.asarray(np.random.randn(*self.shape))
        ).astype(self.dtype)

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return _sum(_conj(x) * y).real

    def _covector(self, x: Any) -> Any:
        return _conj(x)


def _sum(x: Any) -> Any:
    return mg.sum(x) if is_box(x) else left(np.sum(x))


def _conj(x: Any) -> Any:
    return mg.conj(x) if is_box(x) else np.conj(x)


def _of_array(x: Any) -> ArrayVSpace:
    return (ComplexArrayVSpace if np.dtype(x.dtype).kind == "c" else ArrayVSpace)(x)


class ContainerVSpace(VSpace):
    """The space of containers of vectors; `shape` is the same container with their spaces."""

    @entry
    def __init__(self, value: Any) -> None:
        self.shape = self._built(value, [vspace(x) for x in self._listed(value)])

    def _listed(self, x: Any) -> list[Any]:
        """Return the elements of `x`, in the order of this space."""
        return list(x)

    @staticmethod
    def _built(like: Any, elements: list[Any]) -> Any:
        return type(like)(*elements) if hasattr(like, "_fields") else type(like)(elements)

    def _each(self, function: Callable[..., Any], *xs: Any) -> Any:
        columns = [self._listed(x) for x in (self.shape, *xs)]
        return self._built(self.shape, [function(*row) for row in zip(*columns, strict=True)])

    @property
    def size(self) -> int:  # type: ignore[override]
        return sum([int(space.size) for space in self._listed(self.shape)])

    def zeros(self) -> Any:
        return self._each(lambda space: space.zeros())

    def ones(self) -> Any:
        return self._each(lambda space: space.ones())

    def randn(self) -> Any:
        return self._each(lambda space: space.randn())

    def standard_basis(self) -> Iterator[Any]:
        for i, space in enumerate(self._listed(self.shape)):
            for vector in space.standard_basis():
                elements = self._listed(self.zeros())
                elements[i] = vector
                yield self._built(self.shape, elements)

    def _add(self, x: Any, y: Any) -> Any:
        return self._each(lambda space, a, b: space.add(a, b), x, y)

    _mut_add = _add

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return self._each(lambda space, b: space.scalar_mul(b, a), x)

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return sum(self._listed(self._each(lambda space, a, b: space.inner_prod(a, b), x, y)))

    def _covector(self, x: Any) -> Any:
        return self._each(lambda space, a: space.covector(a), x)


class ListVSpace(ContainerVSpace): ...


class TupleVSpace(ContainerVSpace): ...


class DictVSpace(ContainerVSpace):
    def _listed(self, x: Any) -> list[Any]:
        return [x[key] for key in getattr(self, "shape", x)]

    @staticmethod
    def _built(like: Any, elements: list[Any]) -> Any:
        return dict(zip(like, elements, strict=True))


class SparseObject:
    """A gradient in the form of an update: `mut_add(array)` adds it to an array of the space `vs`.

    `mut_add` returns that array.
    """

    __slots__ = ("mut_add", "vs")

    def __init__(self, vs: VSpace, mut_add: Callable[[Any], Any]) -> None:
        self.vs = vs
        self.mut_add = mut_add

    def dense(self) -> Any:
        return self.mut_add(self.vs.zeros())


VSpace.register(np.ndarray, lambda x: _of_array(np.asarray(x)))
ArrayVSpace.register(float)
ArrayVSpace.register(np.floating)
ComplexArrayVSpace.register(complex)
ComplexArrayVSpace.register(np.complexfloating)
ListVSpace.register(list)
TupleVSpace.register(tuple)
DictVSpace.register(dict)
VSpace.register(SparseObject, lambda x: x.vs)
