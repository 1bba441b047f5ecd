"""Indexing: `x[key]`, `x[key] = value` as a function, take and take_along_axis.

If an element is selected several times, reading it adds up the gradients. If several values are
written to it, the last value counts and alone receives a gradient.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ..registry import About, linear
from . import batching
from .kernels import linear_index, masked_rows, unindex, wrapped
from .keys import index_dtype, is_basic, place, sole_mask, trimmed

linear(
    "getitem(x, /, key)",
    view=lambda x, key: is_basic(key),
    batching=batching.getitem,
    forward=lambda xp, x, key: x[key],
    doc="The part of `x` that `key` selects: `x[key]`.",
    x=lambda xp, g, key, x_shape: xp.unindex(g, key, x_shape),
)


# ----- Writing -----


def setitem(xp: Any, x: Any, key: Any, value: Any) -> Any:
    """The default `setitem`: O(size of x).

    With integer arrays it takes O(m log m) more for m written elements or rows.
    """
    if hasattr(value, "dtype"):
        value = xp.astype(value, x.dtype, copy=False)
    else:
        value = xp.asarray(value, dtype=x.dtype, device=xp.device_of(x))
    mask = sole_mask(xp, key)
    if mask is not None:
        return _write_masked(xp, x, mask, value)
    if is_basic(key):
        shape = xp.getitem(x, key).shape
        ones = xp.ones(shape, dtype=xp.int8, device=xp.device_of(x))
        written = unindex(xp, ones, key, x.shape) != 0
        return xp.where(written, unindex(xp, _fit(xp, value, shape), key, x.shape), x)
    return _write_last(xp, x, key, value)


def _fit(xp: Any, value: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast a value to the shape of the part that it is written to.

    As in NumPy, it may have additional leading axes of length 1.
    """
    return xp.broadcast_to(trimmed(xp, value, len(shape)), shape)


def _write_masked(xp: Any, x: Any, mask: Any, value: Any) -> Any:
    value = trimmed(xp, value, 1 + len(x.shape) - len(mask.shape))
    if _has_rows(value.shape, x.shape[len(mask.shape) :]):
        if xp.truth(xp.sum(xp.astype(mask, index_dtype(xp, xp.device_of(mask)))) != value.shape[0]):
            raise ValueError(
                f"setitem: {value.shape[0]} values cannot be written where the mask is true: the "
                "number of true elements differs"
            )
        value = masked_rows(xp, mask, value)
    elif len(value.shape) > len(x.shape) - len(mask.shape):
        value = xp.reshape(value, value.shape[1:])
    mask = xp.reshape(mask, mask.shape + (1,) * (len(x.shape) - len(mask.shape)))
    return xp.where(mask, value, x)


def _has_rows(value_shape: tuple[int, ...], rest: tuple[int, ...]) -> bool:
    """Whether a value, written to `x[mask]`, has one row for each true element.

    Otherwise it is the same for all true elements.
    """
    return len(value_shape) > len(rest) and value_shape[0] != 1


def _write_last(xp: Any, x: Any, key: Any, value: Any) -> Any:
    """Write through integer arrays: each element or row takes the last value meant for it.

    A stable sort finds this value.
    """
    target, axes = linear_index(xp, key, x.shape, xp.device_of(x))
    m, n, rest = target.shape[0], prod(x.shape[:axes]), x.shape[axes:]
    if m == 0 or n == 0:
        return xp.asarray(x, copy=True)
    value = xp.reshape(_fit(xp, value, xp.getitem(x, key).shape), (m, prod(rest)))
    order = xp.argsort(target, stable=True)
    target = xp.take(target, order, axis=0)
    rows = xp.arange(n, dtype=target.dtype, device=xp.device_of(x))
    end = xp.searchsorted(target, rows, side="right")
    last = xp.where(end > 0, end - 1, end)
    written = xp.expand_dims(xp.take(target, last, axis=0) == rows, axis=1)
    value = xp.take(value, xp.take(order, last, axis=0), axis=0)
    return xp.reshape(xp.where(written, value, xp.reshape(x, (n, prod(rest)))), x.shape)


def setitem_value_vjp(
    xp: Any, g: Any, key: Any, value_shape: tuple[int, ...], x_device: Any
) -> Any:
    """The cotangent where the value was written, and zero where a later element overwrote it."""
    mask = sole_mask(xp, key)
    if mask is not None:
        ndim = 1 + len(g.shape) - len(mask.shape)
        part = _masked_cotangent(xp, g, mask, value_shape[max(len(value_shape) - ndim, 0) :])
    else:
        part = xp.getitem(g, key)  # with the meaning of the library's own function
        if not is_basic(key):
            n = prod(part.shape)
            number = xp.reshape(xp.arange(n, device=x_device), part.shape)
            # the number of an element that was not written matches none
            numbers = xp.full(g.shape, -1, dtype=number.dtype, device=x_device)
            last = xp.getitem(xp.setitem(numbers, key, number), key)
            part = xp.where(last == number, part, xp.zeros_like(part))
    return xp.reshape(part, (1,) * (len(value_shape) - len(part.shape)) + part.shape)


def _masked_cotangent(xp: Any, g: Any, mask: Any, value_shape: tuple[int, ...]) -> Any:
    """`g[mask]` for the shape of the value, without data-dependent shapes."""
    rest = g.shape[len(mask.shape) :]
    if _has_rows(value_shape, rest):
        count = xp.cumulative_sum(xp.astype(xp.reshape(mask, (-1,)), xp.int8))
        number = xp.cumulative_sum(xp.ones_like(count[: value_shape[0]]))
        place = xp.searchsorted(count, number, side="left")
        return xp.take(xp.reshape(g, (prod(mask.shape), *rest)), place, axis=0)
    g = xp.where(xp.reshape(mask, mask.shape + (1,) * len(rest)), g, xp.zeros_like(g))
    g = xp.sum(g, axis=tuple(range(len(mask.shape))), dtype=g.dtype)
    return xp.expand_dims(g, axis=0) if len(value_shape) > len(rest) else g


linear(
    "setitem(x, key: plain, value, /)",
    forward=setitem,
    batching=batching.setitem,
    doc="A copy of `x` with the broadcast `value` at `key`; where the key repeats, the last value "
    "counts.",
    x=lambda xp, g, key: xp.setitem(g, key, 0.0),
    value=setitem_value_vjp,
    about=About(any_operands=True),
)


# ----- Gathering -----


def take_vjp(xp: Any, g: Any, indices: Any, axis: int | None, x_shape: tuple[int, ...]) -> Any:
    """Add the rows of `g` to the rows of `x` that they were taken from."""
    if axis is None or not x_shape:  # without an axis, NumPy takes from the flattened array
        x_size = prod(x_shape)
        return xp.reshape(
            xp.scatter_add(xp.reshape(g, (-1,)), xp.reshape(indices, (-1,)), x_size), x_shape
        )
    axis %= len(x_shape)
    n = x_shape[axis]
    if len(indices.shape) != 1:
        g = xp.reshape(g, (*x_shape[:axis], prod(indices.shape), *x_shape[axis + 1 :]))
        indices = xp.reshape(indices, (-1,))
    if axis == 0:
        return xp.scatter_add(g, indices, n)
    return xp.moveaxis(xp.scatter_add(xp.moveaxis(g, axis, 0), indices, n), 0, axis)


linear(
    "take(x, indices, /, *, axis=None)",
    batching=batching.take,
    doc="The elements of `x` at `indices` along one axis.",
    x=take_vjp,
    about=About(
        gradient="zeros with g added at the indices",
        example="V, mg.asarray([2, 0])",
        numpy_keywords=True,
        listable=("indices",),
    ),
)


def take_along_axis_vjp(
    xp: Any, g: Any, indices: Any, axis: int, x_shape: tuple[int, ...], x_device: Any
) -> Any:
    """One segment sum for all lines along the axis; the engine sums over broadcast axes."""
    axis %= len(x_shape)
    n = x_shape[axis]
    indices = xp.moveaxis(xp.broadcast_to(indices, g.shape), axis, -1)
    g = xp.moveaxis(g, axis, -1)
    lines = prod(g.shape[:-1])
    segment = _of_lines(xp, indices, lines, n, x_device)
    total = xp.scatter_add(xp.reshape(g, (-1,)), segment, lines * n)
    return xp.moveaxis(xp.reshape(total, (*g.shape[:-1], n)), -1, axis)


def _of_lines(xp: Any, indices: Any, lines: int, n: int, device: Any) -> Any:
    """Convert indices in lines of n elements to those in all lines joined.

    Element j of line b is element b * n + j.
    """
    indices = wrapped(xp, indices, n, index_dtype(xp, device))
    start = xp.expand_dims(xp.arange(lines, dtype=indices.dtype, device=device) * n, axis=1)
    return xp.reshape(xp.reshape(indices, (lines, indices.shape[-1])) + start, (-1,))


def take_along_axis(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    axis = place("take_along_axis", "axis", axis, len(x.shape))
    n = x.shape[axis]
    lines = xp.broadcast_shapes(
        (*x.shape[:axis], 1, *x.shape[axis + 1 :]),
        (*indices.shape[:axis], 1, *indices.shape[axis + 1 :]),
    )
    spread = [
        xp.broadcast_to(a, (*lines[:axis], a.shape[axis], *lines[axis + 1 :])) for a in (x, indices)
    ]
    x, indices = (xp.moveaxis(a, axis, -1) for a in spread)
    count = prod(indices.shape[:-1])
    places = _of_lines(xp, indices, count, n, xp.device_of(x))
    elements = xp.take(xp.reshape(x, (count * n,)), places, axis=0)
    return xp.moveaxis(xp.reshape(elements, indices.shape), -1, axis)


linear(
    "take_along_axis(x, indices, /, *, axis=-1)",
    forward={"*": take_along_axis},
    batching=batching.take_along_axis,
    doc="The elements of `x` at `indices`; each line along the axis has its own indices.",
    x=take_along_axis_vjp,
    about=About(gradient="zeros with g added at the indices", example="V, mg.asarray([2, 0])"),
)
