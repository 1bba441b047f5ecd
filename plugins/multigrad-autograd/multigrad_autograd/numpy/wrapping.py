"""Wrappers of NumPy's functions: raw arrays go to NumPy, boxes to multigrad."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

import multigrad as mg

from ..boxes import as_array, has_box, is_box, value
from ..rules import replaceable

__all__ = ["array", "binary", "constant", "direct", "general", "unary"]

Function = Callable[..., Any]
Tensor = mg.Tensor
FAST = {Tensor, np.ndarray, np.float64, float, int}


def unary(raw: Any, op: Function) -> Function:
    """Wrap an elementwise function of one array; `op` is multigrad's."""

    @_like(raw)
    def function(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            return _called(raw, raw, (x, *args), kwargs)
        return op(x) if is_box(x) else _called(raw, op, (x,), kwargs)

    def use(rules: Function) -> None:
        nonlocal raw, op
        raw = op = rules

    return replaceable(function, raw, partial(unary, raw, op), use)


def binary(raw: Any, op: Function) -> Function:
    """Wrap an elementwise function of two arrays; `op` is multigrad's."""

    @_like(raw)
    def function(x: Any, y: Any, /, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            return _called(raw, raw, (x, y, *args), kwargs)
        s, t = type(x), type(y)
        if ((s is Tensor or t is Tensor) and s in FAST and t in FAST) or (is_box(x) and is_box(y)):
            return op(x, y)
        return _called(raw, op, (listed(x), listed(y)), kwargs)

    def use(rules: Function) -> None:
        nonlocal raw, op
        raw = op = rules

    return replaceable(function, raw, partial(binary, raw, op), use)


def general(raw: Any, op: Function, sequences: bool = False) -> Function:
    """Wrap any function; `op` takes the same arguments, including boxes.

    sequences  whether it takes lists of arrays; otherwise a list with boxes becomes an array
    """

    @_like(raw)
    def function(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if type(a) is Tensor:
                return op(*args, **kwargs)
        return _called(raw, op, args, kwargs, sequences)

    def use(rules: Function) -> None:
        nonlocal raw, op
        raw = op = rules

    return replaceable(function, raw, partial(general, raw, op, sequences), use)


def direct(op: Function) -> Function:
    """Wrap a function that takes raw arrays and boxes itself, so that rules can replace it."""

    @_like(op)
    def function(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    def use(rules: Function) -> None:
        nonlocal op
        op = rules

    return replaceable(function, op, partial(direct, op), use)


def constant(raw: Any) -> Function:
    """Wrap a function without a derivative: it is called on the values of boxes."""

    @_like(raw)
    def function(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and not any(map(has_box, args)):
            return raw(*args)
        return raw(*map(value, args), **{name: value(x) for name, x in kwargs.items()})

    return function


def _like(raw: Any) -> Callable[[Function], Function]:
    return wraps(raw) if callable(raw) else lambda function: function


def _called(
    raw: Function,
    op: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    sequences: bool = False,
) -> Any:
    """Call `op` if an argument is a box, otherwise NumPy's function."""
    if not any(map(has_box, args)) and not (kwargs and any(map(has_box, kwargs.values()))):
        return raw(*args, **kwargs)
    if not sequences:
        args = tuple([array(a) if type(a) in (list, tuple) and has_box(a) else a for a in args])
    return op(*args, **kwargs)


def listed(x: Any) -> Any:
    """Return an operand, with a list converted to an array."""
    return array(x) if type(x) in (list, tuple) else x


def array(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """Return numpy.array, also of boxes and nested lists of boxes, with their gradients."""
    if type(obj) not in (list, tuple):
        return _of_box(obj, *args, **kwargs) if is_box(obj) else np.array(obj, *args, **kwargs)
    if not has_box(obj):
        return np.array(obj, *args, **kwargs)
    stacked = _stacked(obj)
    return _of_box(stacked, *args, **kwargs) if args or kwargs else stacked


def _stacked(rows: Any) -> Any:
    parts = [
        _stacked(x) if type(x) in (list, tuple) and has_box(x) else x if is_box(x) else as_array(x)
        for x in rows
    ]
    return mg.stack(parts)


def _of_box(
    x: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = None,
    subok: bool = False,
    ndmin: int = 0,
) -> Any:
    if dtype is not None and np.dtype(dtype) != x.dtype:
        x = mg.astype(x, np.dtype(dtype))
    return mg.reshape(x, (1,) * (ndmin - x.ndim) + tuple(x.shape)) if x.ndim < ndmin else x
