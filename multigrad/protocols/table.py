"""The table of counterparts of NumPy's functions by their names, dotted in `linalg` and `fft`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

COUNTERPARTS: dict[str, Callable[..., Any]] = {}


def counterpart(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function into the table under these names of NumPy."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        COUNTERPARTS.update(dict.fromkeys(names, function))
        return function

    return put
