"""Searching functions of the standard. Only `where` has a gradient."""

from __future__ import annotations

from typing import Any

from ..registry import About, linear, nondifferentiable
from . import batching
from .keys import index_dtype


def count_nonzero(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    return xp.sum(
        xp.astype(x != xp.zeros_like(x), index_dtype(xp, xp.device_of(x))),
        axis=axis,
        keepdims=keepdims,
    )


def searchsorted(xp: Any, x1: Any, x2: Any, side: str, sorter: Any) -> Any:
    """The form for libraries without the function: count the elements before each element of x2.

    It takes O(len(x1) * size of x2).
    """
    if sorter is not None:
        x1 = xp.take(x1, sorter, axis=0)
    if not hasattr(x2, "dtype"):
        x2 = xp.asarray(x2, dtype=x1.dtype, device=xp.device_of(x1))
    x2 = xp.expand_dims(x2, axis=-1)
    before = x1 < x2 if side == "left" else x1 <= x2
    return xp.sum(xp.astype(before, index_dtype(xp, xp.device_of(x1))), axis=-1)


# ----- the operations -----

# fmt: off
# The gradient is selected, not masked: an inf or nan in the other branch gives 0. The condition has
# no gradient.
linear("where(condition, x1, x2, /)", x1=lambda xp, g, condition: xp.where(condition, g, 0.0),
       x2=lambda xp, g, condition: xp.where(condition, 0.0, g), batching="elementwise",
       doc="The elements of x1 where the condition holds, and of x2 elsewhere.",
       about=About(example="mg.asarray([True, False]), P, 0.0", omissible=("x1", "x2")))
for _name, _extreme in (("argmax", "largest"), ("argmin", "smallest")):
    nondifferentiable(f"{_name}(x, /, *, axis=None, keepdims=False)",
                      batching=batching.extremal_index(_name),
                      doc=f"The index of the first {_extreme} element.",
                      about=About(example="V", returns="integers", numpy_keywords=True))
nondifferentiable("count_nonzero(x, /, *, axis=None, keepdims=False)", forward={"*": count_nonzero},
                  batching="axis", doc="The number of nonzero elements.",
                  about=About(example="mg.asarray([0.0, 2.0])", returns="integers"))
nondifferentiable("nonzero(x, /)", outputs=None,
                  batching=batching.refused("nonzero", "Use a mask with where()."),
                  doc="The indices of the nonzero elements, as one array for each axis.",
                  about=About(example="mg.asarray([0.0, 2.0])", returns="integers",
                              sized_by_values=True))
nondifferentiable("searchsorted(x1, x2, /, *, side='left', sorter: array = None)",
                  forward={"*": searchsorted}, batching=batching.searchsorted,
                  doc="The indices at which the elements of x2 would be inserted to keep x1 "
                      "sorted.",
                  about=About(example="mg.asarray([1.0, 2.0, 3.0]), mg.asarray([2.5])",
                              returns="integers"))
