"""Names for annotations: what functions of multigrad take and return.

    from multigrad.typing import ArrayLike, Namespace

    def normalized(x: ArrayLike, xp: Namespace) -> mg.Tensor:
        return x / xp.linalg.vector_norm(x)

`Namespace` is to type checkers a Protocol with every operation of the standard, written from the
table of operations (`make stubs`); when a program runs, it is the class of
`multigrad.namespace(...)`. The functions of a plugin are typed by a module of that plugin.
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
"""What selects a part of an array: x[key]."""

DType: TypeAlias = Any
"""A dtype of the array's library, or its name in the standard.

Libraries have no type in common for them.
"""

Device: TypeAlias = Any
"""A device of the array's library, or its name there."""
