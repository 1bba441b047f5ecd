"""Searching functions of the standard. Only `where` has a gradient."""

from __future__ import annotations

from ..registry import linear, nondifferentiable

# The gradient is selected, not masked: inf or nan in the branch not taken gives 0 there. The condition gets none.
linear("where(condition, x1, x2, /)", x1=lambda xp, g, condition: xp.where(condition, g, 0.0),
       x2=lambda xp, g, condition: xp.where(condition, 0.0, g), batching="elementwise",
       doc="Elements of x1 where the condition holds, of x2 elsewhere.")
nondifferentiable("argmax(x, /, *, axis=None, keepdims=False)", doc="The index of the first largest element.")
nondifferentiable("argmin(x, /, *, axis=None, keepdims=False)", doc="The index of the first smallest element.")
nondifferentiable("count_nonzero(x, /, *, axis=None, keepdims=False)", doc="How many elements are not zero.")
nondifferentiable("nonzero(x, /)", outputs=None, doc="The indices of the elements that are not zero, an array for each axis.")
nondifferentiable("searchsorted(x1, x2, /, *, side='left', sorter: array = None)",
                  doc="The indices at which the elements of x2 would be inserted to keep x1 sorted.")
