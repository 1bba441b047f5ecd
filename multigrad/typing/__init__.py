"""Names for annotations: the types of arguments and results of multigrad's functions.

    from multigrad.typing import ArrayLike, Namespace

    def normalized(x: ArrayLike, xp: Namespace) -> mg.Tensor:
        return x / xp.linalg.vector_norm(x)

For type checkers, `Namespace` is a Protocol with every operation of the standard, generated from
the table of operations (`make stubs`). At run time it is the class of `multigrad.namespace(...)`. A
plugin has its own module with the types of its functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from .namespaces import FFT, Linalg, Namespace
else:
    from ..namespace import Namespace

    FFT = Linalg = Namespace

__all__ = [
    "FFT",
    "Array",
    "ArrayLike",
    "Axes",
    "DType",
    "Device",
    "Key",
    "Linalg",
    "Namespace",
    "Shape",
]


class Array(Protocol):
    """An array of any library, or a Tensor."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...


ArrayLike: TypeAlias = Array | bool | int | float | complex
"""An operand: an array of any library, a Tensor, or a Python scalar."""

Axes: TypeAlias = int | tuple[int, ...] | None
"""One axis, several, or all of them (None)."""

Shape: TypeAlias = int | Sequence[int]
"""The length of one axis, or of each."""

Key: TypeAlias = int | slice | EllipsisType | Array | list[Any] | tuple[Any, ...] | None
"""A selection of a part of an array: x[key]."""

DType: TypeAlias = Any
"""A dtype of the array's library, or its name in the standard.

The dtypes of different libraries have no common type.
"""

Device: TypeAlias = Any
"""A device of the array's library, or its name in that library."""
