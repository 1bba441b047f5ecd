"""The incomplete gamma functions in mpmath, and the points at which they are tried, further out than their samples."""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import BY_HALF, Points, each


def _gammainc(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


GAMMA_SHAPES = each(BY_HALF, (1e-8, 0.1, 1.0, 3.0, 30.0, 100.0))

FUNCTIONS: dict[str, Any] = {
    "gammainc": _gammainc,
    "gammaincc": lambda a, x: 1 - _gammainc(a, x),
}

POINTS: dict[str, Points] = {
    "gammainc": GAMMA_SHAPES,
    "gammaincc": GAMMA_SHAPES,
}
