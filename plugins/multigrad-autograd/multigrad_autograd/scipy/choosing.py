"""Which of two ways a function of SciPy goes: SciPy's own for raw arrays, multigrad's where an
argument is an array of multigrad's.

An array of multigrad's, a *box* to programs for HIPS autograd, is a Tensor or a layer of a
transformation. Functions here take boxes, raw arrays, lists and numbers in any place. Only raw
arguments give what SciPy gives, unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import extend

__all__ = [
    "arrays",
    "boxed",
    "differentiable",
    "first_box",
    "operand",
    "operations",
    "positive",
    "refusing",
    "simple",
]

Function = Callable[..., Any]
level_of = extend.level_of
operations: Any = mg
"""The module with the operations of plugins, which type checkers do not know."""
DOUBLE = np.dtype(np.float64)


def boxed(*values: Any) -> bool:
    """Whether one of the values is a box, or a list or tuple with one in it."""
    return first_box(values) is not None


def first_box(values: Iterable[Any]) -> Any:
    """The first box among the values, and in lists and tuples among them, or None."""
    for x in values:
        if level_of(x):
            return x
        if isinstance(x, (list, tuple)) and (inner := first_box(x)) is not None:
            return inner
    return None


def operand(x: Any) -> Any:
    """What an operation takes for an argument: a box or a float as it is, anything else as a NumPy
    array of a floating dtype.
    """
    if type(x) is float or level_of(x):
        return x
    if type(x) is int:
        return float(x)
    if isinstance(x, (list, tuple)) and boxed(*x):
        return mg.stack([mg.asarray(operand(y)) for y in x])
    array = np.asarray(x)
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


def arrays(*values: Any) -> list[Any]:
    """The values, with numbers as arrays of the dtype of the first box: rules of functions with
    parameters compute with these alone.
    """
    dtype = first_box(values).dtype
    return [np.asarray(x, dtype=dtype) if type(x) is float else x for x in values]


def positive(x: Any) -> Any:
    """A parameter that must be positive: x where it is, nan elsewhere, as SciPy's distributions
    have it.
    """
    if type(x) is float:
        return x if x > 0 else float("nan")
    return mg.where(x > 0, x, float("nan")) if level_of(x) else np.where(x > 0, x, np.nan)


def simple(*values: Any) -> bool:
    """Whether all values are floats or float64 arrays, of which most functions can be computed
    without looking at each argument.
    """
    for x in values:
        kind = type(x)
        if kind is np.ndarray:
            if x.dtype is not DOUBLE:
                return False
        elif kind is not float and kind is not np.float64 and kind is not int:
            return False
    return True


def differentiable(plain: Function, boxes: Function, arrays: int = 9) -> Function:
    """A function that is `plain` where no argument is a box, else `boxes`, with what `operand`
    makes of the first `arrays` positional arguments.
    """

    @wraps(plain, assigned=("__doc__",), updated=())
    def function(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if level_of(x):
                break
        else:
            if not boxed(*args, *kwargs.values()):
                return plain(*args, **kwargs)
        return boxes(*map(operand, args[:arrays]), *args[arrays:], **kwargs)

    function.__name__ = function.__qualname__ = boxes.__name__
    return function


def refusing(name: str, plain: Function, instead: str = "") -> Function:
    """SciPy's function `name`, which has no rule here: boxes that need a gradient raise
    NotImplementedError, constant ones give their values.
    """

    @wraps(plain, updated=())
    def function(*args: Any, **kwargs: Any) -> Any:
        if not boxed(*args, *kwargs.values()):
            return plain(*args, **kwargs)
        return plain(
            *[_value(name, x, instead) for x in args],
            **{k: _value(name, x, instead) for k, x in kwargs.items()},
        )

    return function


def _value(name: str, x: Any, instead: str) -> Any:
    """The values of a box that is a constant; of a list or a tuple those of its elements."""
    if isinstance(x, (list, tuple)) and boxed(x):
        return type(x)([_value(name, y, instead) for y in x])
    if not level_of(x):
        return x
    if not isinstance(x, mg.Tensor) or x.requires_grad or level_of(x) > 1:
        raise NotImplementedError(
            f"{name} has no derivative here{instead}. For its values alone pass x.detach(), or "
            "give it one by extend.primitive and extend.defvjp"
        )
    return x.numpy()
