"""The incomplete beta functions in mpmath, and the points at which they are tried, further out than their samples."""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import BY_HALF, Points, each


def _stdtr(df: Any, x: Any) -> Any:
    tail = mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + x * x), regularized=True) / 2
    return tail if x < 0 else 1 - tail


FUNCTIONS: dict[str, Any] = {
    "stdtr": _stdtr,
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
}

POINTS: dict[str, Points] = {
    "stdtr": each(BY_HALF, (-30.0, -3.0, -0.4, 1e-3, 0.4, 3.0, 30.0)),
    "betainc": each(BY_HALF, BY_HALF, (1e-8, 0.1, 0.5, 0.9, 0.999)),
}
