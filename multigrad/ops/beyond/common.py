"""Helpers of several operations: dtypes with derivatives, and axes."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

from ..kernels import is_floating
from ..keys import float_dtype, place


def floating(xp: Any, x: Any) -> Any:
    """Convert integers or booleans to the device's default floating dtype."""
    return x if is_floating(xp, x.dtype) else xp.astype(x, float_dtype(xp, xp.device_of(x)))


def without_nan(xp: Any, a: Any, value: float) -> Any:
    """Replace each nan of `a` by a number."""
    return xp.where(xp.isnan(a), value, a) if is_floating(xp, a.dtype) else a


def reduced_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction, counted from the front; None means all axes.

    Raises IndexError for an axis out of bounds, and ValueError for a repeated axis.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    places = tuple(place(name, "axis", a, ndim) for a in axes)
    if len(set(places)) < len(places):
        raise ValueError(f"{name}: an axis occurs twice in {tuple(index(a) for a in axes)}.")
    return places


def lines(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Merge the reduced axes of `x` into one last axis."""
    ndim = len(x.shape)
    rest = tuple(i for i in range(ndim) if i not in axes)
    order = rest + axes
    x = x if order == tuple(range(ndim)) else xp.permute_dims(x, order)
    if len(axes) == 1:
        return x
    return xp.reshape(x, (*x.shape[: len(rest)], prod(x.shape[len(rest) :])))


def weights_like(xp: Any, weights: Any, a: Any) -> Any:
    """Convert weights to an array of a floating dtype."""
    if not hasattr(weights, "dtype"):
        return xp.asarray(weights, dtype=a.dtype, device=xp.device_of(a))
    return weights if is_floating(xp, weights.dtype) else xp.astype(weights, a.dtype)


def spread_weights(xp: Any, name: str, a: Any, axis: Any, weights: Any) -> Any:
    """Weights in the shape of `a`, or in a shape that broadcasts to it.

    The caller may pass weights along the reduced axes only.
    """
    weights = weights_like(xp, weights, a)
    if tuple(weights.shape) == tuple(a.shape):
        return weights
    if axis is None:
        raise TypeError(f"{name}: a and weights have different shapes; pass axis.")
    axes = reduced_axes(name, axis, len(a.shape))
    if tuple(weights.shape) != tuple(a.shape[i] for i in axes):
        raise ValueError(
            f"{name}: weights of shape {tuple(weights.shape)} do not fit an array of shape "
            f"{tuple(a.shape)} along axis {axis}."
        )
    if len(axes) > 1:
        weights = xp.permute_dims(weights, tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    return xp.reshape(weights, tuple(n if i in axes else 1 for i, n in enumerate(a.shape)))
