"""Sizes that are not known before they are computed: Dask shows them as nan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import dask.array as da


def any_in(*shapes: Iterable[Any]) -> bool:
    """Whether any size is unknown."""
    return any(n != n for shape in shapes for n in shape)


def same(shape: Iterable[Any], other: Iterable[Any]) -> bool:
    """Whether two shapes are equal as far as they are known."""
    shape, other = tuple(shape), tuple(other)
    return len(shape) == len(other) and all(n == m or (n != n and m != m) for n, m in zip(shape, other, strict=True))


def guarded(functions: Mapping[str, Callable[..., Any]]) -> Mapping[str, Callable[..., Any]]:
    return functions
