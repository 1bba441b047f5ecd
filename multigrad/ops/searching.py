"""Searching functions of the standard. Only `where` has a gradient."""

from __future__ import annotations

from typing import Any

from ..registry import linear, nondifferentiable
from . import batching
from .keys import index_dtype

# The gradient is selected, not masked: inf or nan in the branch not taken gives 0 there. The
# condition gets none.
# fmt: off
linear("where(condition, x1, x2, /)", x1=lambda xp, g, condition: xp.where(condition, g, 0.0),
       x2=lambda xp, g, condition: xp.where(condition, 0.0, g), batching="elementwise",
       doc="Elements of x1 where the condition holds, of x2 elsewhere.")
nondifferentiable("argmax(x, /, *, axis=None, keepdims=False)",
                  batching=batching.extremal_index("argmax"),
                  doc="The index of the first largest element.")
nondifferentiable("argmin(x, /, *, axis=None, keepdims=False)",
                  batching=batching.extremal_index("argmin"),
                  doc="The index of the first smallest element.")
# fmt: on


def count_nonzero(xp: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """The form for libraries that have none."""
    return xp.sum(
        xp.astype(x != xp.zeros_like(x), index_dtype(xp, xp.device_of(x))),
        axis=axis,
        keepdims=keepdims,
    )


# fmt: off
nondifferentiable("count_nonzero(x, /, *, axis=None, keepdims=False)", forward={"*": count_nonzero},
                  batching="axis", doc="How many elements are not zero.")
nondifferentiable("nonzero(x, /)", outputs=None,
                  batching=batching.refused("nonzero", "Use a mask with where()."),
                  doc="The indices of the elements that are not zero, an array for each axis.")
# fmt: on


def searchsorted(xp: Any, x1: Any, x2: Any, side: str, sorter: Any) -> Any:
    """The form for libraries that have none: count what lies before each element of x2.

    O(len(x1) * size of x2).
    """
    if sorter is not None:
        x1 = xp.take(x1, sorter, axis=0)
    if not hasattr(x2, "dtype"):
        x2 = xp.asarray(x2, dtype=x1.dtype, device=xp.device_of(x1))
    x2 = xp.expand_dims(x2, axis=-1)
    before = x1 < x2 if side == "left" else x1 <= x2
    return xp.sum(xp.astype(before, index_dtype(xp, xp.device_of(x1))), axis=-1)


nondifferentiable(
    "searchsorted(x1, x2, /, *, side='left', sorter: array = None)",
    forward={"*": searchsorted},
    batching=batching.searchsorted,
    doc="The indices at which the elements of x2 would be inserted to keep x1 sorted.",
)
