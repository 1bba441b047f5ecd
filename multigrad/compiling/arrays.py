"""Questions of a recording about raw arrays and their library."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..core.element import Library, library_of

ROUNDING = 2**12
"""The allowed difference of arrays that were computed in another order.

It is relative to the largest element, in units of rounding of the lowest precision of the program.
"""


def unshared(x: Any) -> Any:
    """An array that shares no memory; `x` itself if it is never written."""
    library = library_of(x)
    if library is None or isinstance(x, library.scalars) or not library.mutable:
        return x
    return library.xp.asarray(x, copy=True)


def equal(x: Any, y: Any, unit: float = 0.0) -> bool:
    """Whether two raw arrays have the same library, shape, dtype and values, nan included.

    With a unit of rounding, such as `finfo(dtype).eps`, the values may differ by rounding.
    """
    if x is y:
        return True
    library = library_of(x)
    if (
        library is None
        or library is not library_of(y)
        or tuple(x.shape) != tuple(y.shape)
        or x.dtype != y.dtype
    ):
        return False
    xp, elem = library.xp, library.element(x.dtype)
    same = x == y
    if elem.floating:
        same = xp.logical_or(same, xp.logical_and(x != x, y != y))
    if bool(xp.all(same)):
        return True
    if not unit or not elem.floating or not bool(xp.all(xp.logical_or(same, xp.isfinite(x - y)))):
        return False
    zero = xp.zeros_like(x)
    off = xp.abs(xp.where(same, zero, x) - xp.where(same, zero, y))
    largest = xp.max(xp.abs(xp.where(xp.isfinite(y), y, zero)))
    return bool(xp.max(off) <= ROUNDING * unit * largest)


@cache
def elements_follow(library: Library) -> bool:
    """Whether an element `x[0]` is a view, in a library whose arrays can be written."""
    if library.scalars or not library.mutable:
        return False
    x = library.xp.zeros(1)
    element = x[0]
    x[0] = 1.0
    return bool(element)


@cache
def sorts_in_place(library: Library) -> bool:
    """Whether `x.sort()` writes to the array and returns None, as NumPy's does."""
    if not library.mutable:
        return False
    x = library.xp.zeros(1)
    return hasattr(x, "sort") and x.sort() is None
