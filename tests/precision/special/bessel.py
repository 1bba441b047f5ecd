"""Bessel functions in mpmath, and the points at which they are tried, further out than their samples."""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import REAL, Points


def _scaled(order: Any, x: Any) -> Any:
    return mp.exp(-abs(x)) * mp.besseli(order, x)


BESSEL = [*REAL, (100.0,), (-100.0,), (700.0,)]
ORDERS = [(v, x) for v in (0, 1, 2, 7) for x in (1e-3, -0.3, 1.0, 2.5, 10.0, -30.0, 100.0)]

FUNCTIONS: dict[str, Any] = {
    "i0": lambda x: mp.besseli(0, x),
    "i1": lambda x: mp.besseli(1, x),
    "iv": mp.besseli,
    "i0e": lambda x: _scaled(0, x),
    "i1e": lambda x: _scaled(1, x),
    "ive": _scaled,
}

POINTS: dict[str, Points] = {
    "i0": BESSEL,
    "i1": BESSEL,
    "iv": ORDERS,
    "i0e": [*BESSEL, (1e4,), (-1e6,)],
    "i1e": [*BESSEL, (1e4,), (-1e6,)],
    "ive": ORDERS,
}
