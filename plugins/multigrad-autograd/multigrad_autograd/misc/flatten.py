"""Nested containers of arrays as one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multigrad_autograd import numpy as np
from multigrad_autograd.boxes import is_box
from multigrad_autograd.core import make_vjp

__all__ = ["flatten", "flatten_func"]


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """(vector, unflatten): the numbers of nested tuples, lists and dictionaries in one vector, and the function back.

    Dictionaries are taken in the order of their sorted keys. All numbers get one dtype.
    """
    unflatten, flat = make_vjp(_flat, value)
    return flat, unflatten


def _flat(value: Any) -> Any:
    parts = _parts(value)
    return parts[0] if len(parts) == 1 and not isinstance(value, (dict, list, tuple)) else np.concatenate(parts) if parts else np.array([])


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [part for key in sorted(value) for part in _parts(value[key])]
    if isinstance(value, (list, tuple)) and not is_box(value):
        return [part for child in value for part in _parts(child)]
    return [np.ravel(value)]


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """(function from vectors to vectors, unflatten, the example as a vector) for a function of a container that returns one like it."""
    flat, unflatten = flatten(example)

    def of_vectors(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vectors, unflatten, flat
