"""Bessel functions in mpmath, and the points at which they are tried, further out than their samples."""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import LARGE, MIDDLE, REAL, SMALL, Points, each


def _scaled(order: Any, x: Any) -> Any:
    return mp.exp(-abs(x)) * mp.besseli(order, x)


def _grown(order: Any, x: Any) -> Any:
    return mp.exp(x) * mp.besselk(order, x)


BESSEL = [*REAL, (100.0,), (-100.0,), (700.0,)]
WHOLE = [(v, x) for v in (0, 1, 2, 7) for x in (1e-3, -0.3, 1.0, 2.5, 10.0, -30.0, 100.0)]
ORDERS = (0.5, 1.3, 3.7, 12.25, 40.0)
BROKEN = each(ORDERS, (0.1, 1.0, 2.5, 10.0, 30.0, 100.0))
NEGATIVE = each((-0.5, -1.3, -2.7), (0.1, 1.0, 2.5, 10.0))
ZEROS = ((2.4048,), (5.52,), (3.8317,), (7.0156,), (14.93,), (0.8936,), (2.1971,), (13.3611,))  # of j0, j1, y0 and y1, nearly
WAVES = [*REAL, *ZEROS, (24.9,), (25.1,), (100.0,), (-100.0,), (1e3,), (1e4,)]
POSITIVE = [(x,) for (x,) in WAVES if x > 0]
FALLING = [(x,) for x in (*SMALL, *MIDDLE, *LARGE, 1.99, 2.01, 100.0, 600.0)]

FUNCTIONS: dict[str, Any] = {
    "i0": lambda x: mp.besseli(0, x),
    "i1": lambda x: mp.besseli(1, x),
    "iv": mp.besseli,
    "i0e": lambda x: _scaled(0, x),
    "i1e": lambda x: _scaled(1, x),
    "ive": _scaled,
    "j0": lambda x: mp.besselj(0, x),
    "j1": lambda x: mp.besselj(1, x),
    "jv": mp.besselj,
    "y0": lambda x: mp.bessely(0, x),
    "y1": lambda x: mp.bessely(1, x),
    "yn": mp.bessely,
    "yv": mp.bessely,
    "k0": lambda x: mp.besselk(0, x),
    "k1": lambda x: mp.besselk(1, x),
    "kv": mp.besselk,
    "k0e": lambda x: _grown(0, x),
    "k1e": lambda x: _grown(1, x),
    "kve": _grown,
}

POINTS: dict[str, Points] = {
    "i0": BESSEL,
    "i1": BESSEL,
    "iv": [*WHOLE, *BROKEN, *NEGATIVE],
    "i0e": [*BESSEL, (1e4,), (-1e6,)],
    "i1e": [*BESSEL, (1e4,), (-1e6,)],
    "ive": [*WHOLE, *BROKEN],
    "j0": WAVES,
    "j1": WAVES,
    "jv": [*WHOLE, *BROKEN, *NEGATIVE],
    "y0": POSITIVE,
    "y1": POSITIVE,
    "yn": [(v, x) for v in (0, 1, 2, 7, 30) for x in (1e-3, 0.3, 1.0, 2.5, 10.0, 30.0, 100.0)],
    "yv": [*BROKEN, *NEGATIVE],
    "k0": FALLING,
    "k1": FALLING,
    "kv": [*BROKEN, *NEGATIVE, (0, 0.3), (2, 7.0), (-3, 1.0)],
    "k0e": [*FALLING, (1e4,), (1e8,)],
    "k1e": [*FALLING, (1e4,), (1e8,)],
    "kve": [*BROKEN, *NEGATIVE, (0, 0.3), (2, 7.0), (3.3, 1e4)],
}
