"""Nested containers of arrays as one vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from multigrad_autograd import numpy as np

__all__ = ["flatten", "flatten_func"]

Maker = Callable[[Any], Any]


def flatten(value: Any) -> tuple[Any, Maker]:
    """(vector, unflatten): the numbers of nested tuples, lists and dictionaries in one vector, and
    the function back.

    Dictionaries are taken in the order of their sorted keys. All numbers get one dtype; a real part
    of the value is real again when it comes back.
    """
    parts: list[Any] = []
    unflatten, _ = _planned(value, 0, parts)
    return (
        parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.array([])
    ), unflatten


def _planned(value: Any, start: int, parts: list[Any]) -> tuple[Maker, int]:
    """What makes `value` anew of a vector in which it begins at `start`, and where it ends; its
    vectors are added to `parts`.
    """
    if isinstance(value, dict):
        made: dict[Any, Maker] = {}
        for key in sorted(value):
            made[key], start = _planned(value[key], start, parts)
        return lambda vector: {key: made[key](vector) for key in value}, start
    if isinstance(value, (list, tuple)):
        makers: list[Maker] = []
        for child in value:
            maker, start = _planned(child, start, parts)
            makers.append(maker)
        kind = type(value)
        if hasattr(value, "_fields"):
            return lambda vector: kind(*[make(vector) for make in makers]), start
        return lambda vector: kind([make(vector) for make in makers]), start
    shape, is_complex = tuple(np.shape(value)), np.iscomplexobj(value)
    end = start + math.prod(shape)
    parts.append(np.ravel(value))

    def part(vector: Any) -> Any:
        found = np.reshape(vector[start:end], shape) if shape else vector[start]
        return found if is_complex or not np.iscomplexobj(found) else np.real(found)

    return part, end


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Maker, Any]:
    """(function from vectors to vectors, unflatten, the example as a vector) for a function of a
    container that returns one like it.
    """
    flat, unflatten = flatten(example)

    def of_vectors(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vectors, unflatten, flat
