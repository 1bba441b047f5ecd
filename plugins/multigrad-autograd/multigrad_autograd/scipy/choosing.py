"""The choice between SciPy's function for raw arrays, and multigrad's if an argument is a box.

A box, in the terms of HIPS autograd, is an array of multigrad: a Tensor, or a layer of a
transformation. These functions take boxes, raw arrays, lists and numbers in any position. Raw
arguments alone give SciPy's result, unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import extend

from ..boxes import as_array
from ..rules import primitive, replaceable, with_rules

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
    "with_rules",
]

Function = Callable[..., Any]
level_of = extend.level_of
operations: Any = mg
"""The module with the operations of plugins, which type checkers do not know."""
DOUBLE = np.dtype(np.float64)


def boxed(*values: Any) -> bool:
    """Return whether one of the values is a box, or a list or tuple with a box."""
    return first_box(values) is not None


def first_box(values: Iterable[Any]) -> Any:
    """Return the first box among the values, and in lists and tuples among them, or None."""
    for x in values:
        if level_of(x):
            return x
        if isinstance(x, (list, tuple)) and (inner := first_box(x)) is not None:
            return inner
    return None


def operand(x: Any) -> Any:
    """Return a box or a float unchanged, and anything else as a NumPy array of a floating dtype."""
    if type(x) is float or level_of(x):
        return x
    if type(x) is int:
        return float(x)
    if isinstance(x, (list, tuple)) and boxed(*x):
        return mg.stack([mg.asarray(operand(y)) for y in x])
    array = as_array(x)
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


def arrays(*values: Any) -> list[Any]:
    """Return the values, with numbers as arrays of the dtype of the first box.

    Rules of functions with parameters compute only with arrays.
    """
    dtype = first_box(values).dtype
    return [np.asarray(x, dtype=dtype) if type(x) is float else x for x in values]


def positive(x: Any) -> Any:
    """Return a positive parameter unchanged, and nan elsewhere, as in SciPy's distributions."""
    if type(x) is float:
        return x if x > 0 else float("nan")
    return mg.where(x > 0, x, float("nan")) if level_of(x) else np.where(x > 0, x, np.nan)


def simple(*values: Any) -> bool:
    """Return whether all values are floats or float64 arrays.

    Most functions can then skip the inspection of each argument.
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
    """Return a function that calls `plain` if no argument is a box, and otherwise `boxes`.

    `operand` converts the first `arrays` positional arguments of `boxes`.
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

    def use(rules: Function) -> None:
        nonlocal plain, boxes, arrays
        plain, boxes, arrays = rules, rules, 0

    return replaceable(function, plain, partial(differentiable, plain, boxes, arrays), use)


def refusing(name: str, plain: Function, instead: str = "") -> Function:
    """Return SciPy's function `name`, which has no rule here.

    A box that needs a gradient raises NotImplementedError; a constant box passes its values.
    """

    @wraps(plain, updated=())
    def function(*args: Any, **kwargs: Any) -> Any:
        if not boxed(*args, *kwargs.values()):
            return plain(*args, **kwargs)
        return plain(
            *[_value(name, x, instead) for x in args],
            **{k: _value(name, x, instead) for k, x in kwargs.items()},
        )

    return primitive(plain, otherwise=function)


def _value(name: str, x: Any, instead: str) -> Any:
    """Return the values of a constant box, or of the elements of a list or a tuple."""
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
