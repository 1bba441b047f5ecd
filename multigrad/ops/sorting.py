"""Sorting functions of the standard."""

from __future__ import annotations

from typing import Any

from ..registry import define, nondifferentiable

# The stable permutation, whatever `stable` says: the sorted values do not depend on it, and which of several equal
# elements gets which gradient is then defined.


def sort_vjp(xp: Any, g: Any, x: Any, axis: Any, descending: Any) -> Any:
    order = xp.argsort(x, axis=axis, descending=descending, stable=True)
    return xp.take_along_axis(g, xp.argsort(order, axis=axis), axis=axis)


def sort_jvp(xp: Any, t: Any, x: Any, axis: Any, descending: Any) -> Any:
    return xp.take_along_axis(t, xp.argsort(x, axis=axis, descending=descending, stable=True), axis=axis)


nondifferentiable("argsort(x, /, *, axis=-1, descending=False, stable=True)", batching="axis", doc="The indices that sort an array along an axis.")
define("sort(x, /, *, axis=-1, descending=False, stable=True)", batching="axis", x=sort_vjp, jvp=sort_jvp,
       doc="The elements sorted along an axis. The gradient follows the stable permutation.")
