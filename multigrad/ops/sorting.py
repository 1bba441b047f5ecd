"""Sorting functions of the standard."""

from __future__ import annotations

from typing import Any

from ..registry import About, define, nondifferentiable

# Use the stable permutation, whatever `stable` says. The sorted values do not depend on it, and it
# defines which of several equal elements gets which gradient.


# It is computed when the sort is recorded, not in the backward pass: as in PyTorch, the program may
# write to the sorted array in between.


def order(xp: Any, x: Any, axis: Any, descending: Any) -> Any:
    return xp.argsort(x, axis=axis, descending=descending, stable=True)


# fmt: off
nondifferentiable("argsort(x, /, *, axis=-1, descending=False, stable=True)", batching="axis",
                  doc="The indices that sort an array along an axis.",
                  about=About(example="V", returns="integers"))
define("sort(x, /, *, axis=-1, descending=False, stable=True)", batching="axis",
       residuals={"order": order},
       x=lambda xp, g, order, axis: xp.take_along_axis(g, xp.argsort(order, axis=axis), axis=axis),
       jvp=lambda xp, t, order, axis: xp.take_along_axis(t, order, axis=axis),
       doc="The elements sorted along an axis. The gradient follows the stable permutation.",
       about=About(gradient="each element of g goes back to the position of its element in x; ties "
                            "keep their order", example="V"))
