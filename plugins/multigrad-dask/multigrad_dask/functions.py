"""Functions that Dask lacks or defines differently, and rules that preserve the chunks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any

import array_api_compat.dask.array as xp
import dask.array as da
import numpy as np

from multigrad import extend
from multigrad.errors import BackendError
from multigrad.registry import OPS

from .unknown import FIX, any_in, same

# ----- Creation -----


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
) -> Any:
    """Dask names blocks that it does not make if they are not squares."""
    dtype = xp.float64 if dtype is None else dtype
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    chunks = da.core.normalize_chunks("auto", shape, dtype=dtype)
    rows, columns = (da.arange(n, chunks=c) for n, c in zip(shape, chunks, strict=True))
    return (columns - rows[:, None] == k).astype(dtype)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Any:
    """Dask takes real Python numbers only; arrays may have any shapes, as NumPy's."""
    if any(isinstance(x, (da.Array, complex)) for x in (start, stop)):
        start, stop = xp.asarray(start), xp.asarray(stop)
        steps = max(num - 1 if endpoint else num, 1)
        way = xp.arange(num, dtype=xp.float64) / steps
        way = way.reshape((num,) + (1,) * max(start.ndim, stop.ndim))
        points = start * (1.0 - way) + stop * way
        return points.astype(dtype or xp.result_type(start, stop))
    return xp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """One chunk with NumPy's view of the memory; Dask arrays have no DLPack export."""
    return x.copy() if isinstance(x, da.Array) else xp.asarray(np.from_dlpack(x, copy=copy))


def to_device(x: Any, device: Any, /, *, stream: Any = None) -> Any:
    """Accept the only device, "cpu"; only the scheduler knows where the chunks are."""
    if device != "cpu" or stream is not None:
        raise ValueError(
            f"to_device: a Dask array is on 'cpu', and has no streams; got device {device!r}, "
            f"stream {stream!r}"
        )
    return x


def can_cast(from_: Any, to: Any, /) -> bool:
    """Read the dtype of an array; Dask would compute the array to ask NumPy for it."""
    return bool(xp.can_cast(from_.dtype if isinstance(from_, da.Array) else from_, to))


# ----- Shapes -----


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """Make one chunk of each new axis, from a view that takes no memory.

    If only unknown sizes differ, the array is returned unchanged.
    """
    if any_in(x.shape, shape):
        return x if same(x.shape, shape) else _refuse("broadcast_to", x.shape, shape)
    return xp.broadcast_to(x, shape)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """Add or remove axes of length 1 where sizes are unknown; other reshapes raise there.

    A reshape that Dask cannot do chunk by chunk is done in one chunk.
    """
    if 0 in x.shape and not any_in(x.shape, shape):  # of which Dask takes some shapes only
        return da.from_array(np.empty(x.shape, x.dtype).reshape(shape))
    if not any_in(x.shape, shape):
        try:
            return xp.reshape(x, shape, copy=copy)
        except NotImplementedError:
            shape = tuple(-x.size // prod(shape) if n == -1 else n for n in shape)
            return da.map_blocks(
                np.reshape,
                x.rechunk(-1),
                shape,
                dtype=x.dtype,
                chunks=tuple((n,) for n in shape),
                drop_axis=list(range(x.ndim)),
                new_axis=list(range(len(shape))),
            )
    if not same([n for n in x.shape if n != 1], [n for n in shape if n != 1]):
        _refuse("reshape", x.shape, shape)
    x = x[tuple(0 if n == 1 else slice(None) for n in x.shape)]
    return x[tuple(None if n == 1 else slice(None) for n in shape)]


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Repeat chunk by chunk; by an array, the size is unknown until it is computed."""
    if axis is None:
        x, axis = x.ravel(), 0
    axis %= x.ndim
    if isinstance(repeats, da.Array):
        unknown = (float("nan"),) * x.numblocks[axis]
        return _beside_repeats(_repeated, x, x, repeats, axis, unknown)
    return da.map_blocks(
        _repeated,
        x,
        repeats,
        axis,
        chunks=(
            *x.chunks[:axis],
            tuple(n * repeats for n in x.chunks[axis]),
            *x.chunks[axis + 1 :],
        ),
        dtype=x.dtype,
        meta=x._meta,
    )


def _beside_repeats(
    function: Callable[..., Any], blocks: Any, x: Any, repeats: Any, axis: int, sizes: Any
) -> Any:
    """Apply `function` to each block, beside the repeats of the block of `x` that it belongs to."""
    repeats = broadcast_to(repeats, (x.shape[axis],))
    if not any_in(repeats.shape):
        repeats = repeats.rechunk({0: x.chunks[axis]})
    if not blocks.numblocks[axis] == repeats.numblocks[0] == x.numblocks[axis]:
        _refuse("repeat", blocks.shape, x.shape)
    axes = tuple(range(x.ndim))
    return da.blockwise(
        function,
        axes,
        blocks,
        axes,
        repeats,
        (axis,),
        axis=axis,
        adjust_chunks={axis: sizes},
        dtype=blocks.dtype,
        meta=blocks._meta,
        align_arrays=False,
    )


def _repeated(x: Any, repeats: Any, axis: int) -> Any:
    return np.repeat(x, repeats, axis=axis)


def _without_copies(g: Any, repeats: Any, axis: int) -> Any:
    n = len(repeats)
    rows = _added_rows(np.moveaxis(g, axis, 0), np.repeat(np.arange(n), repeats), n)
    return np.moveaxis(rows[0], 0, axis)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """The axis may be omitted for a vector, and the indices may have any number of axes."""
    axis = 0 if axis is None and x.ndim == 1 else axis
    if indices.ndim == 1:
        return xp.take(x, indices, axis=axis)
    rows = xp.take(x, indices.ravel(), axis=axis)
    axis %= x.ndim
    return reshape(rows, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """searchsorted with corrections.

    Dask's function returns wrong positions for chunks of unknown sizes, raises for a scalar or an
    empty array, and takes no sorter. Here a sorter sorts the array.
    """
    if any_in(x1.shape):
        raise BackendError(f"searchsorted: places need the sizes of the array. {FIX}")
    x1, x2 = x1 if sorter is None else x1[sorter], xp.asarray(x2)
    if 0 in x2.shape:
        return xp.zeros(x2.shape, dtype=xp.int64)
    return (
        xp.searchsorted(x1, x2, side=side)
        if x2.ndim
        else xp.searchsorted(x1, x2[None], side=side)[0]
    )


def _cumulated(name: str) -> Callable[..., Any]:
    theirs = getattr(xp, name)

    @wraps(theirs)
    def function(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Any:
        if include_initial and any_in(x.shape):
            raise BackendError(f"{name}: an initial value needs the sizes of the array. {FIX}")
        return theirs(x, axis=axis, dtype=dtype, include_initial=include_initial)

    return function


def _extremum(name: str) -> Callable[..., Any]:
    """max or min, where a block without elements is left out."""
    theirs = getattr(np, name)

    def of_block(x: Any, axis: Any, keepdims: bool) -> Any:
        return theirs(x, axis=tuple(a for a in axis if x.shape[a]), keepdims=True)

    def function(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
        if 0 not in x.shape and not any_in(x.shape):
            return getattr(xp, name)(x, axis=axis, keepdims=keepdims)
        return da.reduction(
            x,
            of_block,
            theirs,
            combine=of_block,
            axis=axis,
            keepdims=keepdims,
            dtype=x.dtype,
            meta=x._meta,
        )

    return function


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Limits of the dtype of x; the standard's form keeps the dtype where they have another."""
    if x.dtype.kind != "f" or not all(
        b is None or type(b) is float or getattr(b, "dtype", None) == x.dtype for b in (min, max)
    ):
        return OPS["clip"].forward["*"](xp, x, min, max)
    return da.clip(x, min, max) if any_in(x.shape) else xp.clip(x, min, max)


def _refuse(name: str, given: Any, wanted: Any) -> Any:
    raise BackendError(
        f"{name}: an array of shape {tuple(given)} cannot be given the shape {tuple(wanted)}. {FIX}"
    )


def _filled(name: str) -> Callable[..., Any]:
    """zeros_like and similar functions, chunk by chunk where sizes are unknown."""
    theirs, numpys = getattr(xp, name), getattr(np, name)

    def function(x: Any, /, *values: Any, dtype: Any = None, device: Any = None) -> Any:
        if any_in(x.shape):
            return x.map_blocks(numpys, *values, dtype=x.dtype if dtype is None else dtype)
        return theirs(x, *values, dtype=dtype)

    return function


# ----- indexing -----


def getitem(x: Any, key: Any, /) -> Any:
    """A mask selects within its own chunks, so that the adjoint knows the origin of each element.

    Several integer arrays become one index into their joined axes.
    """
    entries = key if isinstance(key, tuple) else (key,)
    arrays = [k for k in entries if isinstance(k, da.Array)]
    if len(arrays) == len(entries) == 1 and arrays[0].dtype == bool:
        return _selected(x, arrays[0])
    if len(arrays) > 1 or any(k.ndim != 1 for k in arrays):
        axis, numbers, axes = linear_index(key, x.shape)
        x = x.reshape((*x.shape[:axis], -1, *x.shape[axis + axes :]))[
            (slice(None),) * axis + (numbers.ravel(),)
        ]
        return x.reshape((*x.shape[:axis], *numbers.shape, *x.shape[axis + 1 :]))
    return x[key]


def linear_index(key: Any, shape: tuple[int, ...]) -> tuple[int, Any, int]:
    """Join adjacent integers and integer arrays of a key to one index into their joined axes.

    Returns the first axis, the index, and the number of axes. Raises NotImplementedError for any
    other key with several arrays, or with an array of more than one dimension.
    """
    entries = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in [k for k in entries if k is Ellipsis]:
        at = next(i for i, k in enumerate(entries) if k is Ellipsis)
        entries[at : at + 1] = [slice(None)] * (len(shape) - len(entries) + 1)
    here = [i for i, k in enumerate(entries) if not isinstance(k, slice)]
    first, last = here[0], here[-1] + 1
    together = entries[first:last]
    if any(k != slice(None) for k in entries if isinstance(k, slice)) or not all(
        isinstance(k, int) or (isinstance(k, da.Array) and k.dtype.kind in "iu") for k in together
    ):
        raise NotImplementedError(
            "getitem: several integer arrays in a key, or one with more than one dimension, must "
            "be adjacent, and the rest of the key must be whole axes: x[i, j] or x[:, i, j]. "
            "Index one after the other."
        )
    total: Any = 0
    for k, n in zip(together, shape[first:], strict=False):
        total = total * n + k % n
    return first, total, last - first


def _selected(x: Any, mask: Any) -> Any:
    if any_in(x.shape, mask.shape):
        return x[mask]
    x = x.rechunk(dict(enumerate(mask.chunks)))
    return x.reshape((-1, *x.shape[mask.ndim :]))[mask.ravel()] if mask.ndim != 1 else x[mask]


def setitem(x: Any, key: Any, value: Any, /) -> Any:
    """A copy of `x` with values of its dtype at `key`.

    Integer arrays write one chunk. The form for all libraries writes through a mask, and for keys
    that Dask's function lacks: a key with None, and an empty array.
    """
    entries = key if isinstance(key, tuple) else (key,)
    arrays = [k for k in entries if isinstance(k, da.Array)]
    if (
        any(k is None for k in entries)
        or 0 in x.shape
        or 0 in getattr(value, "shape", ())
        or any(k.dtype == bool for k in arrays)
    ):
        return OPS["setitem"].forward(extend.raw_namespace("dask"), x, key, value)
    value = value.astype(x.dtype) if isinstance(value, da.Array) else value
    if not arrays:
        x = x.copy()
        x[key] = value
        return x
    axis, numbers, axes = linear_index(key, x.shape)
    if axis:
        raise NotImplementedError(
            "setitem: integer arrays in a key for writing must come first: x[i] or x[i, j]"
        )
    rest = x.shape[axes:]
    rows = broadcast_to(xp.asarray(value, dtype=x.dtype), (*numbers.shape, *rest)).reshape(
        (-1, *rest)
    )
    flat = x.reshape((-1, *rest)).rechunk({0: -1})
    rows = rows.rechunk({0: -1} | dict(enumerate(flat.chunks[1:], 1)))
    every = tuple(range(x.ndim - axes + 1))
    out = da.blockwise(
        _written_rows,
        every,
        flat,
        every,
        numbers.ravel().rechunk(-1),
        (-1,),
        rows,
        (-1, *every[1:]),
        concatenate=True,
        dtype=x.dtype,
        meta=x._meta,
        align_arrays=False,
    )
    return out.reshape(x.shape)


def _written_rows(x: Any, indices: Any, rows: Any) -> Any:
    x = x.copy()
    x[indices] = rows
    return x


def unindex(values: Any, /, key: Any, shape: tuple[int, ...]) -> Any:
    """The adjoint of indexing; for a mask it works chunk by chunk, for any sizes."""
    mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if isinstance(mask, da.Array) and mask.dtype == bool and mask.ndim:
        flat = mask.ravel()
        axes = tuple(range(values.ndim))
        if values.numblocks[0] == flat.numblocks[0]:
            rows = da.blockwise(
                _spread_rows,
                axes,
                values,
                axes,
                flat,
                (0,),
                dtype=values.dtype,
                meta=values._meta,
                align_arrays=False,
                adjust_chunks={0: flat.chunks[0]},
            )
            return reshape(rows, shape)
    return OPS["unindex"].forward(extend.raw_namespace("dask"), values, key, shape)


def _spread_rows(values: Any, mask: Any) -> Any:
    rows = np.zeros_like(values, shape=(*mask.shape, *values.shape[1:]))
    rows[mask] = values
    return rows


def scatter_add(values: Any, indices: Any, /, n: int) -> Any:
    """Add the rows within each chunk, then add the chunks."""
    if not any_in(values.shape, indices.shape):
        indices = indices.rechunk({0: values.chunks[0]})
    if values.numblocks[0] != indices.numblocks[0]:
        _refuse("scatter_add", indices.shape, values.shape[:1])
    axes = tuple(range(2, values.ndim + 1))
    parts = da.blockwise(
        _added_rows,
        (0, 1, *axes),
        values,
        (0, *axes),
        indices,
        (0,),
        n=n,
        new_axes={1: n},
        adjust_chunks={0: 1},
        dtype=values.dtype,
        meta=np.zeros((0,) * (values.ndim + 1), values.dtype),
        align_arrays=False,
    )
    return parts.sum(axis=0, dtype=values.dtype)


def _added_rows(values: Any, indices: Any, n: int) -> Any:
    if len(values) != len(indices):  # NumPy would broadcast a single row
        raise ValueError(
            f"a block of {len(values)} rows is to be added at {len(indices)} places: arrays of "
            "unknown sizes must have the same sizes block by block. Compute them before they are "
            "rechunked: x.array.compute_chunk_sizes()."
        )
    rows = np.zeros_like(values, shape=(1, n, *values.shape[1:]))
    np.add.at(rows[0], indices, values)
    return rows


# ----- Fourier transforms: along an axis that lies in one chunk -----


def _along_whole_axis(name: str) -> Callable[..., Any]:
    theirs = getattr(xp.fft, name)

    @wraps(theirs)
    def function(x: Any, /, *, axis: int = -1, **kwargs: Any) -> Any:
        return theirs(x.rechunk({axis % x.ndim: -1}), axis=axis, **kwargs)

    return function


# ----- Rules -----


def _spread(xp: Any, g: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Every element gets the cotangent of its sum, in the chunks of `x`, for any sizes."""
    if not keepdims and axis is not None:
        reduced = {a % x.ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,))}
        g = g[tuple(None if i in reduced else slice(None) for i in range(x.ndim))]
    return xp.where(xp.ones_like(x, dtype=xp.bool), g, xp.zeros_like(g))


def sum_vjp(xp: Any, g: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    return _spread(xp, g, x, axis, keepdims)


def mean_vjp(xp: Any, g: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    count: Any = prod(x.shape[a] for a in axes)
    if any_in((count,)):  # counted with the others
        count = xp.sum(xp.ones_like(x), axis=axis, keepdims=keepdims)
        return _spread(xp, g / xp.where(count == 0, xp.ones_like(count), count), x, axis, keepdims)
    return _spread(xp, g / max(count, 1), x, axis, keepdims)


def repeat_vjp(xp: Any, g: Any, x: Any, repeats: Any, axis: Any) -> Any:
    """Sum the copies of each element; those by an array within each block, for any sizes."""
    flat, axis = (x.ravel(), 0) if axis is None else (x, axis % x.ndim)
    if isinstance(repeats, da.Array):
        if not any_in(g.shape):  # its blocks need not be those that `repeat` made
            g, flat = g.rechunk({axis: -1}), flat.rechunk({axis: -1})
        total = _beside_repeats(_without_copies, g, flat, repeats, axis, flat.chunks[axis])
    else:
        shape = (*flat.shape[: axis + 1], repeats, *flat.shape[axis + 1 :])
        total = xp.sum(xp.reshape(g, shape), axis=axis + 1, dtype=g.dtype)
    return xp.reshape(total, x.shape)


RULES: dict[str, dict[str, Callable[..., Any]]] = {
    "mean": {"x": mean_vjp},
    "repeat": {"x": repeat_vjp},
    "sum": {"x": sum_vjp},
}

FUNCTIONS: dict[str, Callable[..., Any]] = (
    {
        f.__name__: f
        for f in (
            broadcast_to,
            can_cast,
            clip,
            eye,
            from_dlpack,
            getitem,
            linspace,
            repeat,
            reshape,
            scatter_add,
            searchsorted,
            setitem,
            take,
            to_device,
            unindex,
        )
    }
    | {name: _cumulated(name) for name in ("cumulative_prod", "cumulative_sum")}
    | {name: _extremum(name) for name in ("max", "min")}
    | {name: _filled(name) for name in ("empty_like", "full_like", "ones_like", "zeros_like")}
    | {
        f"fft.{name}": _along_whole_axis(name)
        for name in ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft")
    }
)
