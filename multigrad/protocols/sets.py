"""NumPy's functions for unique elements and unique rows."""

from __future__ import annotations

import math
from typing import Any

from ..ops.keys import place
from .table import counterpart
from .values import of


@counterpart("unique")
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    if axis is None:
        values, indices, inverse, counts = of.unique_all(ar)
    else:
        axis = place("numpy.unique", "axis", axis, len(ar.shape))
        values, indices, inverse, counts = _rows(ar, axis)
    lost = of.isnan(values) if equal_nan and axis is None and ar._elem.floating else None
    # nan is at the end, and each one is an element of its own
    if lost is not None and bool(of.count_nonzero(lost) > 1):
        first = values.shape[0] - int(of.count_nonzero(lost))
        total = of.sum(counts[first:], keepdims=True)
        values, indices = values[: first + 1], indices[: first + 1]
        counts = of.concat([counts[:first], of.astype(total, counts.dtype)])
        inverse = of.where(inverse > first, first, inverse)
    optional = ((return_index, indices), (return_inverse, inverse), (return_counts, counts))
    parts = [values, *(part for returned, part in optional if returned)]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _rows(a: Any, axis: int) -> tuple[Any, Any, Any, Any]:
    """The unique slices along an axis, in the order of their elements.

    Also returns where each occurs first, which unique slice each slice equals, and how many are
    equal.
    """
    n = a.shape[axis]
    rows = of.reshape(
        of.moveaxis(a.detach(), axis, 0), (n, math.prod(a.shape[:axis] + a.shape[axis + 1 :]))
    )
    order = a._elem.library.bound.arange(n)
    for i in reversed(range(rows.shape[1])):  # the first column is the primary key
        order = of.take(order, of.argsort(of.take(rows[:, i], order), stable=True))
    rows = of.take(rows, order, axis=0)
    if n:
        begins = of.concat([order[:1] == order[:1], of.any(rows[1:, :] != rows[:-1, :], axis=1)])
        (starts,) = of.nonzero(begins)
        ends = of.concat([starts[1:], starts[:1] * 0 + n])
    else:
        begins = starts = ends = order
    which = of.cumulative_sum(of.astype(begins, starts.dtype)) - 1
    first = of.take(order, starts)
    return of.take(a, first, axis=axis), first, of.take(which, of.argsort(order)), ends - starts
