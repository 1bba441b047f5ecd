"""Boxes: the values that a function sees while it is differentiated, and their conversion.

A box is an array object of multigrad: a Tensor or a Dual at the level of the current derivative.
Containers keep their types, with boxes in place of their numbers and arrays. Raw arrays go in, and
raw arrays come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import multigrad as mg
from multigrad.extend import innermost, is_array, level_of, rebind_augmented

__all__ = [
    "as_array",
    "conjugate",
    "entered",
    "has_box",
    "is_box",
    "known",
    "leaves",
    "left",
    "level",
    "mapped",
    "plain",
    "rebinding",
    "value",
]

Tensor = mg.Tensor


def is_box(x: Any) -> bool:
    """Return whether `x` is an array of multigrad: a Tensor, a Dual, or any other layer."""
    return type(x) is Tensor or level_of(x) > 0


_FLOAT = np.dtype(np.float64)
_PLAIN = {np.ndarray, float, int, str, bool, type(None), np.float64, slice}


def has_box(x: Any) -> bool:
    """Return whether `x` is a box or a container with a box."""
    kind = type(x)
    if kind is Tensor:
        return True
    if kind in _PLAIN:
        return False
    if kind is list or kind is tuple:
        try:
            return any(map(has_box, x))
        except RecursionError:
            raise endless(x) from None
    return any(map(is_box, leaves(x)))


def endless(x: Any) -> ValueError:
    """Return the error for a container whose contents never end."""
    return ValueError(f"multigrad_autograd: a {type(x).__name__} contains itself")


def level(x: Any) -> int:
    """Return the highest level in `x`, 0 without a box."""
    return max(map(level_of, leaves(x)), default=0)


_ARRAYS = {Tensor, np.ndarray, np.float64, float}

# -- containers: dictionaries, lists and tuples


def leaves(x: Any) -> Iterator[Any]:
    """Yield the leaves of nested dictionaries, lists and tuples, in order."""
    if not isinstance(x, (dict, list, tuple)):
        yield x
        return
    try:
        for child in x.values() if isinstance(x, dict) else x:
            yield from leaves(child)
    except RecursionError:
        raise endless(x) from None


def mapped(function: Callable[..., Any], x: Any, *others: Any) -> Any:
    """Apply `function` to each leaf and to the corresponding leaves of `others`."""
    if type(x) in _ARRAYS:
        return function(x, *others)
    if isinstance(x, dict):
        children = {
            key: mapped(function, child, *[o[key] for o in others]) for key, child in x.items()
        }
        return children if type(x) is dict else type(x)(children)
    if isinstance(x, (list, tuple)):
        parts = [mapped(function, child, *[o[i] for o in others]) for i, child in enumerate(x)]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return function(x, *others)


# -- conversion


def entered(x: Any) -> Any:
    """Prepare `x` for differentiation: Python's numbers become arrays, integers become floats.

    Raises TypeError for a value without a derivative.
    """
    return mapped(_entered, x)


def _entered(x: Any) -> Any:
    if is_box(x):
        return x
    if isinstance(x, np.ndarray):
        array = as_array(x)
        return array.astype(np.float64) if array.dtype.kind in "iub" else array
    if isinstance(x, (float, complex, np.inexact)):
        return np.asarray(x)
    raise TypeError(f"Can't differentiate w.r.t. type {type(x)}")


def as_array(x: Any, dtype: Any = None) -> Any:
    """Return numpy.asarray, which would drop the units of an array: such a class is refused."""
    if type(x) is not np.ndarray and isinstance(x, np.ndarray):
        is_array(x)  # raises
    return np.asarray(x, dtype)


def left(x: Any) -> Any:
    """Return a result in NumPy's form: 0-d arrays become scalars."""
    return mapped(_scalar, x)


def _scalar(x: Any) -> Any:
    return x[()] if type(x) is np.ndarray and not x.ndim else x


def plain(x: Any) -> Any:
    """Return the raw array of a box without derivatives at any level; anything else unchanged."""
    y = x
    while isinstance(y, Tensor):
        if y.requires_grad:
            return x
        y = y.array
    return x if level_of(y) else y


def known(x: Any) -> Any:
    """Return what a user's function receives if no derivative with respect to `x` is taken.

    It contains numbers, raw arrays, and boxes of outer derivatives.
    """
    return left(mapped(plain, x))


def rebinding(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a user's function for a transformation, so that `y += v` does not write into boxes."""

    def called(*args: Any) -> Any:
        rebind_augmented()
        return function(*args)

    return called


def value(x: Any) -> Any:
    """Return the raw array in a box, for a function without a derivative.

    Raises TypeError under vmap, where each example has its own value.
    """
    if not is_box(x):
        return mapped(value, x) if isinstance(x, (list, tuple)) and has_box(x) else x
    raw = innermost(x)
    if np.shape(raw) != tuple(x.shape):
        raise TypeError(
            "multigrad_autograd: under vmap an array has a value for each example; use the "
            "functions of multigrad there"
        )
    return raw


def conjugate(x: Any) -> Any:
    """Return the complex conjugate of every leaf.

    It converts between the complex gradients of multigrad and of HIPS autograd.
    """
    return mapped(_conjugate, x)


def _conjugate(x: Any) -> Any:
    dtype = getattr(x, "dtype", None)
    if dtype is _FLOAT or getattr(dtype, "kind", "") != "c":
        return x
    return mg.conj(x) if is_box(x) else np.conj(x)
