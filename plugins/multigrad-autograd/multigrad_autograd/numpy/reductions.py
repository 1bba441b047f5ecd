"""NumPy's reductions and cumulative functions on boxes, with NumPy's signatures."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg

__all__ = ["REDUCTIONS"]


class _Unset:
    """What NumPy has where an argument was not given."""


UNSET = _Unset()


def _plain(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _refused(name: str, given: dict[str, Any]) -> None:
    """Raise for arguments that have no meaning here."""
    for key, x in given.items():
        if x is not None and x is not UNSET and x is not np._NoValue:
            raise NotImplementedError(f"multigrad_autograd.numpy.{name}: {key}= has no derivative")


def _reduction(name: str, takes_dtype: bool) -> Callable[..., Any]:
    op = getattr(mg, name)

    def with_dtype(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        if axis is None and dtype is None and out is None and keepdims is False and not more:
            return op(a)
        if out is not None or more:
            _refused(name, {"out": out, **more})
        if dtype is None:
            return op(a, axis=_plain(axis), keepdims=keepdims is True)
        return op(mg.astype(a, np.dtype(dtype)), axis=_plain(axis), keepdims=keepdims is True)

    def without(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        if out is not None or more:
            _refused(name, {"out": out, **more})
        return op(a, axis=_plain(axis), keepdims=keepdims is True)

    return with_dtype if takes_dtype else without


def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *, correction: Any = None,
        **more: Any) -> Any:
    _refused("var", {"out": out, **more})
    if dtype is not None:
        a = mg.astype(a, np.dtype(dtype))
    ddof = ddof if correction is None or correction is np._NoValue else correction
    axis, keepdims = _plain(axis), keepdims is True
    if np.dtype(a.dtype).kind != "c":
        return mg.var(a, axis=axis, correction=ddof, keepdims=keepdims)
    squares = mg.square(mg.abs(a - mg.mean(a, axis=axis, keepdims=True)))
    return mg.sum(squares, axis=axis, keepdims=keepdims) / (_count(a, axis) - ddof)


def _count(a: Any, axis: Any) -> int:
    """How many elements a reduction takes together."""
    return math.prod(a.shape if axis is None else [a.shape[i] for i in (axis if isinstance(axis, (tuple, list)) else (axis,))])


def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *, correction: Any = None,
        **more: Any) -> Any:
    if _count(a, axis) <= 1 and not ddof:  # 0, and so is its derivative
        return mg.sum(mg.real(a) * 0.0, axis=_plain(axis), keepdims=keepdims is True)
    if np.dtype(a.dtype).kind == "c":
        return mg.sqrt(var(a, axis, dtype, out, ddof, keepdims, correction=correction, **more))
    _refused("std", {"out": out, **more})
    if dtype is not None:
        a = mg.astype(a, np.dtype(dtype))
    ddof = ddof if correction is None or correction is np._NoValue else correction
    return mg.std(a, axis=_plain(axis), correction=ddof, keepdims=keepdims is True)


def _cumulative(name: str) -> Callable[..., Any]:
    op = getattr(mg, name)

    def cumulated(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        _refused(name, {"out": out})
        if axis is None:
            a, axis = mg.reshape(a, (-1,)), 0
        return op(a, axis=axis) if dtype is None else op(a, axis=axis, dtype=np.dtype(dtype))

    return cumulated


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    _refused("ptp", {"out": out})
    return mg.max(a, axis=_plain(axis), keepdims=keepdims is True) - mg.min(a, axis=_plain(axis), keepdims=keepdims is True)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    if weights is None or returned:
        if returned:
            _refused("average", {"returned": True})
        return mg.mean(a, axis=_plain(axis), keepdims=keepdims is True)
    if np.shape(weights) != tuple(np.shape(a)):
        shape = [1] * np.ndim(a)
        shape[axis] = -1
        weights = mg.reshape(mg.asarray(weights), tuple(shape))
    weights = weights + np.zeros(np.shape(a))
    keep = keepdims is True
    return mg.sum(mg.multiply(a, weights), axis=axis, keepdims=keep) / mg.sum(weights, axis=axis, keepdims=keep)


def extreme(name: str) -> Callable[..., Any]:
    """max or min; of complex arrays the one that NumPy takes, by the real part and then the imaginary."""
    of_real = _reduction(name, False)

    def function(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        if np.dtype(a.dtype).kind != "c":
            return of_real(a, axis, out, keepdims, **more)
        _refused(name, {"out": out, **more})
        from ..boxes import value

        raw = value(a)
        chosen = raw == getattr(np, name)(raw, axis=_plain(axis), keepdims=True)
        weights = chosen / chosen.sum(axis=_plain(axis), keepdims=True)
        return mg.sum(a * weights, axis=_plain(axis), keepdims=keepdims is True)

    return function


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": _reduction("sum", True), "mean": _reduction("mean", True), "prod": _reduction("prod", True), "max": extreme("max"),
    "amax": extreme("max"), "min": extreme("min"), "amin": extreme("min"), "var": var, "std": std, "cumsum": _cumulative("cumulative_sum"),
    "cumprod": _cumulative("cumulative_prod"), "ptp": ptp, "average": average,
}  # fmt: skip
