"""The most used functions on boxes, with NumPy's signatures.

They are faster versions of the functions that NumPy's protocols would call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg

from ..boxes import as_array, is_box, value
from .wrapping import array

__all__ = ["ARRAYS", "SEQUENCES", "make_diagonal"]

_reshape, _permute, _concat, _stack, _where, _matmul = (
    mg.reshape,
    mg.permute_dims,
    mg.concat,
    mg.stack,
    mg.where,
    mg.matmul,
)
_READY = {mg.Tensor, np.ndarray}


# -- shapes


def reshape(a: Any, /, shape: Any = None, order: Any = "C", **more: Any) -> Any:
    if type(shape) is tuple and order == "C" and not more:
        return _reshape(a, shape)
    return np.reshape(a, shape, order=order, **more)


def ravel(a: Any, order: Any = "C") -> Any:
    return _reshape(a, (-1,)) if order == "C" else np.ravel(a, order)


def transpose(a: Any, axes: Any = None) -> Any:
    return _permute(
        a, tuple(range(a.ndim))[::-1] if axes is None else tuple([int(i) for i in axes])
    )


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(np.ndim(a)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _permute(a, tuple(order))


def expand_dims(a: Any, axis: Any) -> Any:
    return mg.expand_dims(a, axis=axis) if type(axis) is int else np.expand_dims(a, axis)


def squeeze(a: Any, axis: Any = None) -> Any:
    return mg.squeeze(
        a, axis=tuple([i for i, n in enumerate(a.shape) if n == 1]) if axis is None else axis
    )


def atleast_1d(*arys: Any) -> Any:
    return _atleast(1, arys)


def atleast_2d(*arys: Any) -> Any:
    return _atleast(2, arys)


def _atleast(n: int, arys: Any) -> Any:
    made = [
        _reshape(x, (1,) * (n - x.ndim) + tuple(x.shape))
        if is_box(x) and x.ndim < n
        else x
        if is_box(x)
        else np.array(x, ndmin=n, copy=None)
        for x in map(_ready, arys)
    ]
    return made[0] if len(made) == 1 else tuple(made)


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return matrices with the last axis of `D` on their diagonals.

    As in HIPS autograd, only offset=0, axis1=-1 and axis2=-2 are supported.
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("make_diagonal only supports offset=0, axis1=-1, axis2=-2")
    return D[..., None] * np.eye(D.shape[-1])


# -- several arrays


def _ready(x: Any) -> Any:
    """Return an operand of a function of several arrays as an array."""
    if type(x) in _READY or is_box(x):
        return x
    return array(x) if isinstance(x, (list, tuple)) else as_array(x)


def _parts(arrays: Any) -> list[Any]:
    """Return the arrays of a sequence, converted to NumPy's common dtype."""
    parts = [_ready(x) for x in arrays]
    dtypes = {x.dtype for x in parts}
    if len(dtypes) < 2:
        return parts
    dtype = np.result_type(*dtypes)
    return [cast(x, dtype) for x in parts]


def cast(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else mg.astype(x, dtype) if is_box(x) else x.astype(dtype)


def concatenate(arrays: Any, axis: int | None = 0, out: Any = None, **more: Any) -> Any:
    return (
        _concat(_parts(arrays), axis=axis)
        if out is None and not more
        else np.concatenate(arrays, axis, out, **more)
    )


def stack(arrays: Any, axis: int = 0, out: Any = None, **more: Any) -> Any:
    return (
        _stack(_parts(arrays), axis=axis)
        if out is None and not more
        else np.stack(arrays, axis, out, **more)
    )


def vstack(tup: Any, **more: Any) -> Any:
    return concatenate([atleast_2d(x) for x in tup], 0, **more)


def hstack(tup: Any, **more: Any) -> Any:
    parts = [atleast_1d(x) for x in tup]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, **more)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    return np.append(_ready(arr), _ready(values), axis)


def where(condition: Any, x: Any, y: Any) -> Any:
    condition = value(condition)
    condition = np.asarray(condition, dtype=bool)
    return _where(condition, *[array(z) if type(z) in (list, tuple) else z for z in (x, y)])


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **more: Any) -> Any:
    return np.clip(a, a_min, a_max, out, **more)


def _pair(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two arrays, converted to NumPy's common dtype."""
    a, b = _ready(a), _ready(b)
    dtype = a.dtype if a.dtype == b.dtype else np.result_type(a.dtype, b.dtype)
    return cast(a, dtype), cast(b, dtype)


def dot(a: Any, b: Any, out: Any = None) -> Any:
    if type(a) not in _READY or type(b) not in _READY or a.dtype is not b.dtype:
        a, b = _pair(a, b)
    m, n = a.ndim, b.ndim
    if 0 < m < 3 and 0 < n < 3 and out is None:
        return _matmul(a, b)
    if out is not None:
        return np.dot(a, b, out)
    return np.dot(a, b) if m and n else mg.multiply(a, b)


def matmul(a: Any, b: Any, **more: Any) -> Any:
    return np.matmul(a, b, **more) if more else _matmul(*_pair(a, b))


def outer(a: Any, b: Any, out: Any = None) -> Any:
    a, b = _pair(a, b)
    return (
        mg.multiply(_reshape(a, (-1, 1)), _reshape(b, (1, -1)))
        if out is None
        else np.outer(a, b, out)
    )


# -- reductions


def _reduction(name: str, raw: Any, *before: str) -> Callable[..., Any]:
    """Return a reduction with the parameters `a`, `axis`, those in `before`, and `keepdims`.

    Any other arguments are passed to NumPy.
    """
    op = getattr(mg, name)

    def function(a: Any, axis: Any = None, *args: Any, keepdims: Any = False, **more: Any) -> Any:
        if (
            not args
            and (keepdims is False or keepdims is True)
            and all(x is None for x in more.values())
        ):
            if axis is None and not keepdims:
                return op(a)
            return op(a, axis=tuple(axis) if type(axis) is list else axis, keepdims=keepdims)
        return raw(a, axis, *args, keepdims=keepdims, **more)

    return function


def std(
    a: Any, axis: Any = None, *args: Any, ddof: float = 0, keepdims: Any = False, **more: Any
) -> Any:
    axes = (
        range(np.ndim(a)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    )
    # the result is 0, and so is its derivative
    if not (ddof or args or more) and math.prod([np.shape(a)[i] for i in axes]) <= 1:
        return np.sum(np.real(a) * 0.0, axis=axis, keepdims=keepdims)
    return np.std(a, axis, *args, ddof=ddof, keepdims=keepdims, **more)


ARRAYS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        reshape,
        ravel,
        transpose,
        swapaxes,
        expand_dims,
        squeeze,
        atleast_1d,
        atleast_2d,
        clip,
        dot,
        matmul,
        outer,
        std,
        append,
    )
}
ARRAYS |= {
    name: _reduction(name, getattr(np, name)) for name in ("sum", "mean", "prod", "max", "min")
}
SEQUENCES: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (concatenate, stack, vstack, hstack)
}
SEQUENCES["row_stack"] = vstack
