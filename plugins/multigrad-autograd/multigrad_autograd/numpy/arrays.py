"""NumPy's functions that reshape, join, take apart and make arrays, on boxes, with NumPy's signatures."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import multigrad as mg

from ..boxes import is_box, value
from .wrapping import array

__all__ = ["ARRAYS", "SEQUENCES"]


_reshape = mg.reshape


def _sizes(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else tuple(np.atleast_1d(value(shape)).tolist())


def reshape(a: Any, /, shape: Any = None, order: str | None = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    if type(shape) is tuple and order == "C":
        return _reshape(a, shape)
    sizes = _sizes(newshape if shape is None else shape)
    if order not in ("F", "f"):
        return mg.reshape(a, sizes)
    return transpose(mg.reshape(transpose(a), sizes[::-1]))


def ravel(a: Any, order: str | None = "C") -> Any:
    return mg.reshape(a if order not in ("F", "f") else transpose(a), (-1,))


def transpose(a: Any, axes: Any = None) -> Any:
    return mg.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else tuple(int(i) for i in axes))


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return mg.permute_dims(a, tuple(order))


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    return transpose(a, np.rollaxis(np.empty(range(1, 1 + a.ndim)), axis, start).shape - np.ones(a.ndim, dtype=int))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    return mg.moveaxis(a, source, destination)


def expand_dims(a: Any, axis: Any) -> Any:
    return mg.reshape(a, np.expand_dims(np.broadcast_to(0, a.shape), axis).shape)


def squeeze(a: Any, axis: Any = None) -> Any:
    return mg.squeeze(a, axis=tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else axis)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return mg.roll(a, shift, axis=tuple(axis) if isinstance(axis, list) else axis)


def _at(axis: int, key: Any) -> tuple[Any, ...]:
    return (slice(None),) * axis + (key,)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    n = ary.shape[axis]
    edges = [0, *_edges(n, value(indices_or_sections)), n]
    return [ary[_at(axis % ary.ndim, slice(a, b))] for a, b in zip(edges, edges[1:])]


def _edges(n: int, sections: Any) -> list[int]:
    if np.ndim(sections):
        return [int(i) for i in sections]
    parts = np.array_split(np.arange(n), operator.index(sections))
    return [int(i) for i in np.cumsum([len(p) for p in parts])[:-1]]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    if not np.ndim(indices_or_sections) and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    return split(ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    return split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    return split(ary, indices_or_sections, 2)


def flip(m: Any, axis: Any = None) -> Any:
    return mg.flip(m, axis=axis)


def flipud(m: Any) -> Any:
    return mg.flip(m, axis=0)


def fliplr(m: Any) -> Any:
    return mg.flip(m, axis=1)


def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    a, b = axes
    if k % 4 == 2:
        return mg.flip(m, axis=(a, b))
    if k % 2 == 0:
        return m
    return swapaxes(mg.flip(m, axis=b), a, b) if k % 4 == 1 else mg.flip(swapaxes(m, a, b), axis=b)


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    if axis is None:
        a, axis = mg.reshape(a, (-1,)), 0
    return mg.repeat(a, value(repeats), axis=axis)


def tile(A: Any, reps: Any) -> Any:
    return mg.tile(A, tuple(reps) if np.ndim(reps) else (int(reps),))


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    return mg.broadcast_to(array, _sizes(shape))


def triu(m: Any, k: int = 0) -> Any:
    return mg.triu(m, k=k)


def tril(m: Any, k: int = 0) -> Any:
    return mg.tril(m, k=k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return mg.linalg.diagonal(mg.moveaxis(a, (axis1, axis2), (-2, -1)), offset=offset)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return mg.sum(diagonal(a, offset, axis1, axis2), axis=-1)


def diag(v: Any, k: int = 0) -> Any:
    if v.ndim != 1:
        return diagonal(v, k)
    n = v.shape[0] + abs(k)
    rows, columns = (np.arange(n)[:, None], np.arange(n)[None, :])
    return mg.where(columns - rows == k, mg.take(v, np.broadcast_to(np.clip(rows + min(k, 0), 0, n - abs(k) - 1), (n, n)).ravel(), axis=0)
                    .reshape((n, n)), 0.0)  # fmt: skip


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Arrays with the last axis of `D` on their diagonals, as HIPS autograd has it: for offset=0, axis1=-1 and axis2=-2 only."""
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("make_diagonal only supports offset=0, axis1=-1, axis2=-2")
    n = D.shape[-1]
    return D[..., None] * np.eye(n)


def _atleast(n: int, place: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Callable[..., Any]:
    def function(*arys: Any) -> Any:
        made = [mg.reshape(x, place(tuple(x.shape))) if is_box(x) and x.ndim < n else x if is_box(x) else getattr(np, f"atleast_{n}d")(x)
                for x in map(array, arys)]  # fmt: skip
        return made[0] if len(made) == 1 else tuple(made)

    return function


atleast_1d = _atleast(1, lambda shape: (1,))
atleast_2d = _atleast(2, lambda shape: (1,) * (2 - len(shape)) + shape)
atleast_3d = _atleast(3, lambda shape: {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)])


_READY = {mg.Tensor, np.ndarray}


def _parts(arrays: Any) -> list[Any]:
    """The arrays of a sequence, of one dtype as NumPy would have it."""
    parts = [x if type(x) in _READY or is_box(x) else array(x) for x in arrays]
    dtypes = {x.dtype for x in parts}
    if len(dtypes) < 2:
        return parts
    dtype = np.result_type(*dtypes)
    return [x if x.dtype == dtype else mg.astype(x, dtype) if is_box(x) else x.astype(dtype) for x in parts]


def concatenate(arrays: Any, axis: int | None = 0, out: Any = None, **_: Any) -> Any:
    return mg.concat(_parts(arrays), axis=axis)


def stack(arrays: Any, axis: int = 0, out: Any = None, **_: Any) -> Any:
    return mg.stack(_parts(arrays), axis=axis)


def vstack(tup: Any, **_: Any) -> Any:
    return concatenate([atleast_2d(x) for x in tup], 0)


def hstack(tup: Any, **_: Any) -> Any:
    parts = [atleast_1d(x) for x in tup]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1)


def dstack(tup: Any, **_: Any) -> Any:
    return concatenate([atleast_3d(x) for x in tup], 2)


def column_stack(tup: Any) -> Any:
    return concatenate([x if x.ndim > 1 else mg.reshape(x, (-1, 1)) if is_box(x) else np.reshape(x, (-1, 1)) for x in map(array, tup)], 1)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    return concatenate([array(arr), array(values)], axis)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    out = default
    for condition, choice in zip(reversed(list(condlist)), reversed(list(choicelist)), strict=True):
        out = where(condition, choice, out)
    return out


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if sparse:
        raise NotImplementedError("multigrad_autograd.numpy.meshgrid: sparse=True has no derivative")
    return tuple(mg.meshgrid(*_parts(xi), indexing=indexing))


def where(condition: Any, x: Any, y: Any) -> Any:
    condition = value(condition)
    condition = condition if type(condition) is np.ndarray else np.asarray(condition)
    x = array(x) if type(x) in (list, tuple) else x
    y = array(y) if type(y) in (list, tuple) else y
    return mg.where(condition.astype(bool, copy=False), x, y)


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return mg.clip(a, a_min if min is None else min, a_max if max is None else max)


def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    raw = value(x)
    info = np.finfo(raw.dtype)
    x = mg.where(np.isnan(raw), nan, x)
    x = mg.where(np.isposinf(raw), info.max if posinf is None else posinf, x)
    return mg.where(np.isneginf(raw), info.min if neginf is None else neginf, x)


def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: bool | None = None) -> Any:
    if axis is None:
        a, axis = mg.reshape(a, (-1,)), -1
    return mg.sort(a, axis=axis)


def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    if axis is None:
        a, axis = mg.reshape(a, (-1,)), -1
    return mg.take_along_axis(a, np.argpartition(value(a), kth, axis), axis=axis)


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    if axis is None:
        a, axis = mg.reshape(a, (-1,)), 0
    indices = np.asarray(value(indices))
    if mode != "raise":
        n = a.shape[axis]
        indices = indices % n if mode == "wrap" else np.clip(indices, 0, n - 1)
    return a[_at(axis % a.ndim, indices)]


def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    return take(a, np.flatnonzero(value(condition)), axis)


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    ends = {name: x for name, x in (("prepend", prepend), ("append", append)) if x is not np._NoValue}
    if ends:
        raise NotImplementedError(f"multigrad_autograd.numpy.diff: {', '.join(ends)} has no derivative; concatenate first")
    return mg.diff(a, axis=axis, n=n) if a.shape[axis] > n else a[_at(axis % a.ndim, slice(0, 0))]


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    if mode != "constant":
        raise NotImplementedError("multigrad_autograd.numpy.pad: only mode='constant' has a derivative")
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    values = np.broadcast_to(np.asarray(kwargs.get("constant_values", 0)), (array.ndim, 2)).tolist()
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, values)):
        parts = [array]
        for where, width, fill in (("before", before, first), ("after", after, last)):
            if width:
                shape = (*array.shape[:axis], width, *array.shape[axis + 1 :])
                edge = np.full(shape, fill, dtype=array.dtype)
                parts = [edge, *parts] if where == "before" else [*parts, edge]
        array = mg.concat(parts, axis=axis) if len(parts) > 1 else array
    return array


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, **kwargs: Any) -> Any:
    if kwargs:
        raise NotImplementedError(f"multigrad_autograd.numpy.linspace: {', '.join(kwargs)} has no derivative")
    steps = np.linspace(0.0, 1.0, num, endpoint=endpoint)
    steps = steps.reshape((num,) + (1,) * max(np.ndim(start), np.ndim(stop)))
    return (1.0 - steps) * start + steps * stop


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **_: Any) -> Any:
    if dtype is not None:
        fill_value = mg.astype(fill_value, np.dtype(dtype))
    return mg.broadcast_to(fill_value, _sizes(shape))


def astype(x: Any, dtype: Any, /, *_: Any, **__: Any) -> Any:
    return mg.astype(x, np.dtype(dtype))


def real_if_close(a: Any, tol: float = 100) -> Any:
    return a.real if np.isrealobj(np.real_if_close(value(a), tol)) and np.dtype(a.dtype).kind == "c" else a


ARRAYS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (
    reshape, ravel, transpose, swapaxes, rollaxis, moveaxis, expand_dims, squeeze, roll, array_split, split, vsplit, hsplit, dsplit, flip, flipud,
    fliplr, rot90, repeat, tile, broadcast_to, triu, tril, diagonal, trace, diag, clip, nan_to_num, sort, partition, take, compress, diff, pad,
    linspace, full, astype, real_if_close,
)}  # fmt: skip
ARRAYS |= {"permute_dims": transpose, "atleast_1d": atleast_1d, "atleast_2d": atleast_2d, "atleast_3d": atleast_3d}
SEQUENCES: dict[str, Callable[..., Any]] = {f.__name__: f for f in (
    concatenate, stack, vstack, hstack, dstack, column_stack, append, select, meshgrid,
)}  # fmt: skip
SEQUENCES |= {"concat": concatenate, "row_stack": vstack}
