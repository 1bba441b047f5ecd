"""NumPy's products on boxes, with NumPy's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg

from ..boxes import is_box
from .wrapping import array

__all__ = ["PRODUCTS"]

_ARRAYS = {mg.Tensor, np.ndarray}
_matmul = mg.matmul


def _pair(a: Any, b: Any) -> tuple[Any, Any]:
    """Two arrays of one dtype, as NumPy would have it."""
    a, b = (x if hasattr(x, "dtype") else array(x) for x in (a, b))
    if a.dtype == b.dtype:
        return a, b
    dtype = np.result_type(a.dtype, b.dtype)
    return _cast(a, dtype), _cast(b, dtype)


def _cast(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else mg.astype(x, dtype) if is_box(x) else np.asarray(x, dtype=dtype)


def dot(a: Any, b: Any, out: Any = None) -> Any:
    if type(a) not in _ARRAYS or type(b) not in _ARRAYS or a.dtype is not b.dtype:
        a, b = _pair(a, b)
    m, n = a.ndim, b.ndim
    if 0 < m < 3 and 0 < n < 3:
        return _matmul(a, b)
    if not m or not n:
        return mg.multiply(a, b)
    return mg.tensordot(a, b, axes=((m - 1,), (max(n - 2, 0),)))


def matmul(a: Any, b: Any, **kwargs: Any) -> Any:
    return _matmul(*_pair(a, b), **kwargs)


def inner(a: Any, b: Any) -> Any:
    a, b = _pair(a, b)
    m, n = np.ndim(a), np.ndim(b)
    return mg.multiply(a, b) if not m or not n else mg.tensordot(a, b, axes=((m - 1,), (n - 1,)))


def outer(a: Any, b: Any, out: Any = None) -> Any:
    a, b = _pair(a, b)
    return mg.multiply(mg.reshape(a, (-1, 1)), mg.reshape(b, (1, -1)))


def vdot(a: Any, b: Any) -> Any:
    a, b = _pair(a, b)
    return mg.sum(mg.multiply(mg.conj(mg.reshape(a, (-1,))), mg.reshape(b, (-1,))))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = _pair(a, b)
    if np.ndim(axes) == 0 and not isinstance(axes, (tuple, list)):
        return mg.tensordot(a, b, axes=int(axes))
    of_a, of_b = (([int(axis)] if np.ndim(axis) == 0 else [int(i) for i in axis]) for axis in axes)
    return mg.tensordot(a, b, axes=(tuple(i % np.ndim(a) for i in of_a), tuple(i % np.ndim(b) for i in of_b)))


def kron(a: Any, b: Any) -> Any:
    a, b = _pair(a, b)
    m, n = np.ndim(a), np.ndim(b)
    size = max(m, n)
    s, t = (1,) * (size - m) + tuple(np.shape(a)), (1,) * (size - n) + tuple(np.shape(b))
    left = mg.reshape(a, tuple(k for i in s for k in (i, 1)))
    right = mg.reshape(b, tuple(k for i in t for k in (1, i)))
    return mg.reshape(mg.multiply(left, right), tuple(i * j for i, j in zip(s, t)))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _pair(mg.moveaxis(mg.asarray(a), axisa, -1), mg.moveaxis(mg.asarray(b), axisb, -1))
    if a.shape[-1] == 2 and b.shape[-1] == 2:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    x, y = ([v[..., i] for i in range(3)] if v.shape[-1] == 3 else [v[..., 0], v[..., 1], v[..., 0] * 0] for v in (a, b))
    parts = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
    return mg.moveaxis(mg.stack(parts, axis=-1), -1, axisc)


PRODUCTS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (dot, matmul, inner, outer, vdot, tensordot, kron, cross)}
