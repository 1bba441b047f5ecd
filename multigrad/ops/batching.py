"""Batching rules for arrangement, indexing and searching.

Those for linear algebra have their own module.

A rule gets its arrays with the batch as their first axis, of length `size`, or of length 1 if all
examples have the same array. "Places" are the numbers of the elements of one example, in row-major
order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn

from ..errors import BatchingError
from ..registry import behind_batch
from .keys import (
    index_dtype,
    is_basic,
    is_int,
    is_mask,
    leading_arrays,
    sole_mask,
    split_key,
    trimmed,
)

Shape = tuple[int, ...]


def whole(xp: Any, x: Any, size: int) -> Any:
    """Repeat `x` so that each example of the batch has its own copy."""
    return x if x.shape[0] == size else xp.broadcast_to(x, (size, *x.shape[1:]))


def padded(xp: Any, x: Any, ndim: int) -> Any:
    """Add axes of length 1 after the batch axis, so that an example has `ndim` dimensions."""
    missing = ndim + 1 - len(x.shape)
    return xp.reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:])) if missing > 0 else x


def aligned(xp: Any, *arrays: Any) -> list[Any]:
    """Pad arrays so that their examples align at the last axes; Python scalars are unchanged."""
    ndim = max(len(x.shape) for x in arrays if hasattr(x, "shape")) - 1
    return [padded(xp, x, ndim) if hasattr(x, "shape") else x for x in arrays]


def flat(xp: Any, x: Any) -> Any:
    return xp.reshape(x, (x.shape[0], prod(x.shape[1:])))


def counted(xp: Any, size: int, ndim: int, n: int, like: Any) -> Any:
    """n times the number of each example, in a shape that broadcasts with the batch.

    The result can be added to an array of `ndim` dimensions whose first axis is the batch.
    """
    return xp.reshape(
        xp.arange(size, dtype=index_dtype(xp, xp.device_of(like)), device=xp.device_of(like)) * n,
        (size, *(1,) * (ndim - 1)),
    )


def refused(name: str, instead: str) -> Any:
    """Make the rule that raises for an operation with a data-dependent shape.

    The results of different examples may differ in shape, so they cannot be stacked.
    """

    def refuse(xp: Any) -> NoReturn:
        raise BatchingError(
            f"{name} inside vmap: the shape of its result depends on the values, so it may "
            f"differ between examples. {instead}"
        )

    return refuse


def refusal(name: str) -> Any:
    """Make the rule of refuse or known_index."""
    return lambda xp, x, bad, message, size: getattr(xp, name)(
        whole(xp, x, size), padded(xp, bad, len(x.shape) - 1), message
    )


# ----- shapes -----


def reshape(xp: Any, x: Any, shape: Any, copy: Any) -> Any:
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    n, length = prod(x.shape[1:]), prod(s for s in shape if s != -1)
    if (
        shape.count(-1) > 1
        or (-1 in shape and not length)
        or (n % length if -1 in shape else n != length)
    ):
        raise ValueError(
            f"reshape: an array of shape {tuple(x.shape[1:])} cannot take the shape {shape}"
        )
    shape = tuple(n // length if s == -1 else s for s in shape)
    return xp.reshape(x, (x.shape[0], *shape), **({} if copy is None else {"copy": copy}))


def expand_dims(xp: Any, x: Any, axis: Any) -> Any:
    several = len(axis) if isinstance(axis, (tuple, list)) else 1
    return xp.expand_dims(x, axis=behind_batch(axis, len(x.shape) - 1 + several))


def broadcast_to(xp: Any, x: Any, shape: Any) -> Any:
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if len(x.shape) - 1 > len(shape):
        raise ValueError(
            f"broadcast_to: an array of shape {tuple(x.shape[1:])} cannot be broadcast to {shape}"
        )
    return xp.broadcast_to(padded(xp, x, len(shape)), (x.shape[0], *shape))


def broadcast_arrays(xp: Any, arrays: Sequence[Any], size: int) -> list[Any]:
    shape = xp.broadcast_shapes(*(tuple(x.shape[1:]) for x in arrays))
    return [xp.broadcast_to(x, (size, *shape)) for x in aligned(xp, *arrays)]


def permute_dims(xp: Any, x: Any, axes: Any) -> Any:
    return xp.permute_dims(x, (0, *behind_batch(axes, len(x.shape) - 1)))


def moveaxis(xp: Any, x: Any, source: Any, destination: Any) -> Any:
    ndim = len(x.shape) - 1
    return xp.moveaxis(x, behind_batch(source, ndim), behind_batch(destination, ndim))


def roll(xp: Any, x: Any, shift: Any, axis: Any) -> Any:
    if axis is None:
        return xp.reshape(xp.roll(flat(xp, x), shift, axis=1), x.shape)
    return xp.roll(x, shift, axis=behind_batch(axis, len(x.shape) - 1))


def meshgrid(xp: Any, arrays: Sequence[Any], indexing: str, size: int) -> list[Any]:
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = 1, 0
    lines = []
    for x, axis in zip(arrays, order, strict=True):
        shape = [1] * len(arrays)
        shape[axis] = prod(x.shape[1:])
        lines.append(xp.reshape(x, (x.shape[0], *shape)))
    return broadcast_arrays(xp, lines, size)


# ----- joining and repeating -----


def concat(xp: Any, arrays: Sequence[Any], axis: Any, size: int) -> Any:
    if axis is None:
        return xp.concat([whole(xp, flat(xp, x), size) for x in arrays], axis=1)
    return xp.concat(
        [whole(xp, x, size) for x in arrays], axis=behind_batch(axis, len(arrays[0].shape) - 1)
    )


def stack(xp: Any, arrays: Sequence[Any], axis: int, size: int) -> Any:
    return xp.stack(
        [whole(xp, x, size) for x in arrays], axis=behind_batch(axis, len(arrays[0].shape))
    )


def repeat(xp: Any, x: Any, repeats: Any, axis: Any, batched: Any) -> Any:
    if batched["repeats"]:
        refused("repeat", "The number of repetitions must be the same for all examples.")(xp)
    repeats = repeats if isinstance(repeats, int) else repeats[0, ...]
    if axis is None:
        return xp.repeat(flat(xp, x), repeats, axis=1)
    return xp.repeat(x, repeats, axis=behind_batch(axis, len(x.shape) - 1))


def tile(xp: Any, x: Any, repetitions: Any) -> Any:
    ndim = len(x.shape) - 1
    return xp.tile(
        padded(xp, x, len(repetitions)),
        (1,) * (1 + max(ndim - len(repetitions), 0)) + tuple(repetitions),
    )


def linspace(
    xp: Any, start: Any, stop: Any, num: int, dtype: Any, device: Any, endpoint: bool
) -> Any:
    """start + i * step, with `stop` itself as the last element.

    The standard's own function takes only Python scalars.
    """
    start, stop = aligned(xp, start, stop)
    arrays = [x for x in (start, stop) if hasattr(x, "shape")]
    device = xp.device_of(arrays[0]) if device is None else device
    default = xp.linspace(0.0, 1.0, 1, device=device).dtype  # the integer dtype
    dtypes = [default if xp.isdtype(x.dtype, "integral") else x.dtype for x in arrays]
    if isinstance(start, complex) or isinstance(stop, complex):
        dtypes.append(xp.complex64)
    inner = xp.result_type(*dtypes)
    start, stop = (
        xp.expand_dims(xp.asarray(x, dtype=inner, device=device), axis=1)
        if hasattr(x, "shape")
        else x
        for x in (start, stop)
    )
    i = xp.reshape(xp.arange(num, device=device), (1, num) + (1,) * (len(arrays[0].shape) - 1))
    steps = num - 1 if endpoint else num
    values = start + xp.astype(i, inner) * ((stop - start) / max(steps, 1))
    if endpoint and num > 1:
        values = xp.where(i == steps, stop, values)
    if dtype is None or dtype == inner:
        return values
    return xp.astype(xp.floor(values) if xp.isdtype(dtype, "integral") else values, dtype)


# ----- along an axis, or over the flattened array -----


def reduced(
    xp: Any, reduce: Callable[..., Any], x: Any, axis: Any, keepdims: bool, **more: Any
) -> Any:
    """Reduce along an axis, or without one each flattened example."""
    if axis is not None:
        axis = behind_batch(axis, len(x.shape) - 1)
        return reduce(x, axis=axis, keepdims=keepdims, **more)
    results = reduce(flat(xp, x), axis=1, **more)
    return xp.reshape(results, (x.shape[0], *(1,) * (len(x.shape) - 1))) if keepdims else results


def extremal_index(name: str) -> Any:
    return lambda xp, x, axis, keepdims: reduced(xp, getattr(xp, name), x, axis, keepdims)


def scan(name: str) -> Any:
    """Make the rule of a cumulative function; without an axis, its array has one dimension."""

    def scanned(xp: Any, x: Any, axis: Any, dtype: Any, include_initial: bool) -> Any:
        ndim = len(x.shape) - 1
        if axis is None and ndim != 1:
            raise ValueError(f"{name}: axis is required for an array of {ndim} dimensions")
        return getattr(xp, name)(
            x,
            axis=1 if axis is None else behind_batch(axis, ndim),
            dtype=dtype,
            include_initial=include_initial,
        )

    return scanned


def isin(xp: Any, x1: Any, x2: Any, invert: bool, batched: Any) -> Any:
    if not batched["x2"]:
        return xp.isin(x1, x2[0, ...] if hasattr(x2, "shape") else x2, invert=invert)
    rows = flat(xp, x2)
    ndim = len(x1.shape) - 1 if hasattr(x1, "shape") else 0
    rows = xp.reshape(rows, (rows.shape[0], *(1,) * ndim, rows.shape[1]))
    equal = xp.any((xp.expand_dims(x1, axis=-1) if hasattr(x1, "shape") else x1) == rows, axis=-1)
    return ~equal if invert else equal


def searchsorted(xp: Any, x1: Any, x2: Any, side: str, sorter: Any, size: int, batched: Any) -> Any:
    """Find the positions by bisection, one bit of the result after the other, from the highest."""
    if not batched["x1"] and not batched["sorter"]:
        return xp.searchsorted(
            x1[0, ...], x2, side=side, sorter=None if sorter is None else sorter[0, ...]
        )
    if sorter is not None:
        x1 = xp.take_along_axis(whole(xp, x1, size), whole(xp, sorter, size), axis=1)
    if not hasattr(x2, "shape"):
        x2 = xp.asarray([x2], dtype=x1.dtype, device=xp.device_of(x1))
    targets, n = whole(xp, flat(xp, x2), size), x1.shape[1]
    real = xp.isdtype(x1.dtype, "real floating")
    count = xp.zeros(
        targets.shape, dtype=index_dtype(xp, xp.device_of(x1)), device=xp.device_of(x1)
    )
    step = 1 << n.bit_length()
    while step := step // 2:
        more = count + step
        value = xp.take_along_axis(x1, xp.where(more <= n, more - 1, 0), axis=1)
        before = value < targets if side == "left" else value <= targets
        if real:  # nan sorts last
            last = xp.isnan(targets)
            before = before | (last & ~xp.isnan(value) if side == "left" else last)
        count = xp.where((more <= n) & before, more, count)
    return xp.reshape(count, (size, *x2.shape[1:]))


# ----- gathering -----


def take(xp: Any, x: Any, indices: Any, axis: Any, size: int, batched: Any) -> Any:
    if axis is None and len(x.shape) != 2:
        x = flat(xp, x)
    axis = behind_batch(0 if axis is None else axis, len(x.shape) - 1) - 1
    if not batched["indices"]:
        return xp.take(x, indices[0, ...], axis=axis + 1)
    shape, n = tuple(indices.shape[1:]), x.shape[axis + 1]
    indices = xp.reshape(indices, (-1,))
    if not batched["x"]:
        part = xp.take(x[0, ...], indices, axis=axis)
        return xp.moveaxis(
            xp.reshape(part, (*x.shape[1 : axis + 1], size, *shape, *x.shape[axis + 2 :])), axis, 0
        )
    x = xp.moveaxis(x, axis + 1, 1)
    # indices count from the start; out-of-bounds indices raise
    indices = xp.take(xp.arange(n, device=xp.device_of(indices)), indices, axis=0)
    indices = xp.reshape(indices, (size, prod(shape))) + counted(xp, size, 2, n, indices)
    part = xp.take(xp.reshape(x, (size * n, *x.shape[2:])), xp.reshape(indices, (-1,)), axis=0)
    part = xp.reshape(part, (size, *shape, *x.shape[2:]))
    first = tuple(range(1, 1 + len(shape)))
    return xp.moveaxis(part, first, tuple(axis + i for i in first)) if axis else part


def take_along_axis(xp: Any, x: Any, indices: Any, axis: int, size: int) -> Any:
    return xp.take_along_axis(
        whole(xp, x, size), whole(xp, indices, size), axis=behind_batch(axis, len(x.shape) - 1)
    )


# ----- indexing -----


def _entries(key: Any, batched: Any) -> tuple[tuple[Any, ...], tuple[bool, ...]]:
    return (key, batched["key"]) if type(key) is tuple else ((key,), (batched["key"],))


def places(xp: Any, key: Any, own: Sequence[bool], shape: Shape, device: Any) -> tuple[Any, int]:
    """The places that a key with arrays selects, and the number of leading axes that they index.

    The batch is their first axis if a part of the key is batched. The key is applied to an array of
    element numbers, so that it has the library's own meaning.
    """
    if any(mine and is_mask(xp, k) for k, mine in zip(key, own, strict=True)):
        refused("indexing with a mask", "Use where(), or multiply by the mask.")(xp)
    if any(own) and any(is_mask(xp, k) for k in key):
        raise BatchingError(
            "indexing inside vmap: a mask cannot stand beside indices that differ between "
            "examples; use nonzero() of the mask"
        )
    ndim = max(
        [len(k.shape) - mine for k, mine in zip(key, own, strict=True) if hasattr(k, "dtype")],
        default=0,
    )
    key = tuple(padded(xp, k, ndim) if mine else k for k, mine in zip(key, own, strict=True))
    lead = leading_arrays(xp, key, len(shape))
    axes = len(lead) or len(shape)
    numbers = xp.reshape(xp.arange(prod(shape[:axes]), device=device), shape[:axes])
    if lead:
        return xp.getitem(numbers, lead), axes
    selected = xp.getitem(numbers, key)
    if any(own):
        selected = xp.moveaxis(selected, _batch_axis(split_key(xp, key, len(shape))), 0)
    return selected, axes


def _batch_axis(key: Sequence[Any]) -> int:
    """The position of the first axis of index arrays in the result.

    If the arrays are adjacent, it is their position, otherwise the front.
    """
    at = [i for i, k in enumerate(key) if hasattr(k, "dtype") or is_int(k)]
    return at[0] if at[-1] - at[0] == len(at) - 1 else 0


def getitem(xp: Any, x: Any, key: Any, size: int, batched: Any) -> Any:
    entries, own = _entries(key, batched)
    if not any(own) and is_basic(key):
        return xp.getitem(x, (slice(None), *entries))
    shape = tuple(x.shape[1:])
    index, axes = places(xp, entries, own, shape, xp.device_of(x))
    n, rest = prod(shape[:axes]), shape[axes:]
    if not batched["x"]:
        part = xp.take(xp.reshape(x, (n, *rest)), xp.reshape(index, (-1,)), axis=0)
    elif not any(own):
        part = xp.take(xp.reshape(x, (size, n, *rest)), xp.reshape(index, (-1,)), axis=1)
        return xp.reshape(part, (size, *index.shape, *rest))
    else:
        index = index + counted(xp, size, len(index.shape), n, index)
        part = xp.take(xp.reshape(x, (size * n, *rest)), xp.reshape(index, (-1,)), axis=0)
    return xp.reshape(part, (*index.shape, *rest))


def _value_for(xp: Any, value: Any, ndim: int) -> Any:
    """Prepare a value to be written to a part of `ndim` dimensions.

    As in NumPy, it may have additional leading axes of length 1.
    """
    return padded(xp, trimmed(xp, value, ndim, first=1), ndim)


def setitem(xp: Any, x: Any, key: Any, value: Any, size: int, batched: Any) -> Any:
    x = whole(xp, x, size)
    entries, own = _entries(key, batched)
    array = hasattr(value, "shape")
    if not any(own) and is_basic(key):
        key = (slice(None), *entries)
        if array:
            value = _value_for(xp, value, len(xp.getitem(x, key).shape) - 1)
        return xp.setitem(x, key, value)
    shape = tuple(x.shape[1:])
    mask = entries[0] if len(entries) == 1 and is_mask(xp, entries[0]) else None
    if mask is not None and own[0]:
        return _write_where(xp, x, mask, value)
    if mask is not None:  # the number of true elements is not needed: the batch moves behind them
        written = xp.setitem(
            xp.moveaxis(x, 0, -1), mask, xp.moveaxis(value, 0, -1) if array else value
        )
        return xp.moveaxis(written, -1, 0)
    index, axes = places(xp, entries, own, shape, xp.device_of(x))
    n, rest = prod(shape[:axes]), shape[axes:]
    if rest:  # write single elements, which every library supports
        inner = xp.reshape(xp.arange(prod(rest), dtype=index.dtype, device=xp.device_of(x)), rest)
        index = xp.reshape(index, (*index.shape, *(1,) * len(rest))) * prod(rest) + inner
    index = index + counted(xp, size, len(index.shape) + (not any(own)), n * prod(rest), index)
    if array:
        value = _value_for(xp, value, len(index.shape) - 1)
        value = xp.reshape(xp.broadcast_to(value, index.shape), (-1,))
    return xp.reshape(xp.setitem(xp.reshape(x, (-1,)), xp.reshape(index, (-1,)), value), x.shape)


def _write_where(xp: Any, x: Any, mask: Any, value: Any) -> Any:
    """Write where the mask of each example is true.

    The value must be the same for all true elements, since their number is unknown.
    """
    ndim, rest = len(x.shape) - 1, len(x.shape) - len(mask.shape)
    if hasattr(value, "shape"):
        if len(value.shape) - 1 > rest and value.shape[-rest - 1] != 1:
            refused(
                "writing a row for each true element of a mask",
                "Use where() with an array of the shape of the whole.",
            )(xp)
        value = xp.astype(padded(xp, _value_for(xp, value, rest), ndim), x.dtype, copy=False)
    return xp.where(xp.reshape(mask, mask.shape + (1,) * rest), value, x)


# ----- the kernels of indexing -----


def scatter_add(xp: Any, values: Any, indices: Any, n: int, size: int, batched: Any) -> Any:
    """Add all examples in one sum.

    If all examples have the same indices, the batch becomes an axis of each row. Otherwise the rows
    of all examples are numbered one after the other.
    """
    if not batched["indices"]:
        return xp.moveaxis(xp.scatter_add(xp.moveaxis(values, 0, 1), indices[0, ...], n), 1, 0)
    values = whole(xp, values, size)
    m, rest = values.shape[1], values.shape[2:]
    index = xp.astype(indices, index_dtype(xp, xp.device_of(indices)), copy=False)
    index = xp.where(index < 0, index + n, index) + counted(xp, size, 2, n, index)
    total = xp.scatter_add(
        xp.reshape(values, (size * m, *rest)), xp.reshape(index, (size * m,)), size * n
    )
    return xp.reshape(total, (size, n, *rest))


def unindex(xp: Any, values: Any, key: Any, shape: Shape, size: int, batched: Any) -> Any:
    entries, own = _entries(key, batched)
    if not any(own):
        if is_basic(key):
            return xp.unindex(values, (slice(None), *entries), (size, *shape))
        key = key if sole_mask(xp, key) is not None else split_key(xp, key, len(shape))
        return xp.moveaxis(xp.unindex(xp.moveaxis(values, 0, -1), key, (*shape, size)), -1, 0)
    index, axes = places(xp, entries, own, shape, xp.device_of(values))
    n, rest = prod(shape[:axes]), shape[axes:]
    index = xp.reshape(index + counted(xp, size, len(index.shape), n, index), (-1,))
    rows = xp.reshape(whole(xp, values, size), (index.shape[0], *rest))
    return xp.reshape(xp.scatter_add(rows, index, size * n), (size, *shape))
