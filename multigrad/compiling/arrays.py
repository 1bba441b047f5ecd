"""Questions of a recording about raw arrays and their library."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..core.element import Library


def equal(library: Library, x: Any, y: Any) -> bool:
    """Whether two raw arrays of one library have the same values, nan included."""
    xp = library.xp
    if x is y:
        return True
    if tuple(x.shape) != tuple(y.shape) or x.dtype != y.dtype:
        return False
    same = x == y
    if library.element(x.dtype).floating:
        same = xp.logical_or(same, xp.logical_and(x != x, y != y))
    return bool(xp.all(same))


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
