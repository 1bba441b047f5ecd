"""What several of these names need: dtypes that derivatives exist in, and axes."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from operator import index
from typing import Any

from ..keys import float_dtype


@lru_cache(maxsize=256)
def is_floating(xp: Any, dtype: Any) -> bool:
    """Whether `dtype` is a real or complex floating one."""
    return bool(xp.isdtype(dtype, ("real floating", "complex floating")))


def floating(xp: Any, x: Any) -> Any:
    """An array of integers or booleans in the default floating dtype of its device, another itself."""
    return x if is_floating(xp, x.dtype) else xp.astype(x, float_dtype(xp, xp.device_of(x)))


def reduced_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a reduction is over, counted from the front: all for None. Raises IndexError for one out of bounds, ValueError for one twice."""
    if axis is None:
        return tuple(range(ndim))
    given = [index(a) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    for a in given:
        if not -ndim <= a < ndim:
            raise IndexError(f"{name}: axis {a} is out of bounds for an array with {ndim} axes.")
    axes = tuple(a % ndim for a in given)
    if len(set(axes)) < len(axes):
        raise ValueError(f"{name}: an axis occurs twice in {tuple(given)}.")
    return axes


def lines(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """`x` with the reduced axes as one, the last."""
    ndim = len(x.shape)
    rest = tuple(i for i in range(ndim) if i not in axes)
    order = rest + axes
    x = x if order == tuple(range(ndim)) else xp.permute_dims(x, order)
    return x if len(axes) == 1 else xp.reshape(x, (*x.shape[: len(rest)], prod(x.shape[len(rest):])))
