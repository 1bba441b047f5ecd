"""Flattening of nested containers of arrays into one vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from multigrad.extend import entry
from multigrad_autograd import numpy as np

__all__ = ["flatten", "flatten_func"]

Maker = Callable[[Any], Any]


@entry
def flatten(value: Any) -> tuple[Any, Maker]:
    """Flatten nested tuples, lists and dictionaries, and return (vector, unflatten).

    Dictionaries are read in the order of their sorted keys. All numbers get one dtype; unflatten
    makes the real parts of the value real again.
    """
    parts: list[Any] = []
    unflatten, _ = _planned(value, 0, parts)
    return (
        parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.array([])
    ), unflatten


def _planned(value: Any, start: int, parts: list[Any]) -> tuple[Maker, int]:
    """Plan one value, which begins at `start` of the vector; its vectors are appended to `parts`.

    Returns the function from the vector to the value, and the end of the value in the vector.
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
        out = np.reshape(vector[start:end], shape) if shape else vector[start]
        return out if is_complex or not np.iscomplexobj(out) else np.real(out)

    return part, end


@entry
def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Maker, Any]:
    """Return (function from vectors to vectors, unflatten, the flattened example).

    `func` is a function of a container that returns a container of the same structure.
    """
    flat, unflatten = flatten(example)

    def of_vectors(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vectors, unflatten, flat
