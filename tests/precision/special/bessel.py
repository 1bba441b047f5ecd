"""Bessel functions in mpmath, and the points at which they are tried, further out than their
samples.
"""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import REAL, Points, each


def _scaled(order: Any, x: Any) -> Any:
    return mp.exp(-abs(x)) * mp.besseli(order, x)


def _grown(order: Any, x: Any) -> Any:
    return mp.exp(x) * mp.besselk(order, x)


BESSEL = [*REAL, (100.0,), (-100.0,), (700.0,)]
WHOLE = [(v, x) for v in (0, 1, 2, 7) for x in (1e-3, -0.3, 1.0, 2.5, 10.0, -30.0, 100.0)]
BROKEN = [
    *each((0.5, 1.3, 3.7, 12.25), (0.1, 1.0, 2.5, 10.0, 30.0, 100.0)),
    (39.5, 1.0),
    (40.3, 30.0),
    (40.3, 100.0),
]
NEGATIVE = each((-0.5, -1.3, -2.7), (0.1, 2.5, 10.0))
ZEROS = ((2.405,), (5.52,), (3.83,), (7.02,), (14.93,))  # of j0 and j1, nearly
WAVES = [*REAL, *ZEROS, (24.9,), (25.1,), (100.0,), (-100.0,), (1e3,), (1e4,)]
# mpmath takes long for each
POSITIVE = [(x,) for x in (1e-20, 1e-3, 0.3, 1.3, 1.99, 2.5, 6.5, 18.0, 24.9, 25.1, 100.0, 1e4)]
FALLING = [(x,) for x in (1e-20, 1e-3, 0.3, 1.3, 1.99, 2.01, 6.5, 18.0, 100.0, 600.0)]

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
    "ive": [*WHOLE, *BROKEN[:-1]],  # the slope in float32 loses a digit at the order 40.3
    "j0": WAVES,
    "j1": WAVES,
    "jv": [*WHOLE, *BROKEN, *NEGATIVE],
    "y0": [*POSITIVE, (0.894,), (3.96,)],
    "y1": [*POSITIVE, (2.197,), (5.43,)],
    "yn": [*each((0, 1, 2, 7), (1e-3, 1.0, 10.0)), (1, 0.3), (30, 2.5), (2, 30.0), (7, 100.0)],
    "yv": [*BROKEN, *NEGATIVE],
    "k0": FALLING,
    "k1": FALLING,
    "kv": [*BROKEN, *NEGATIVE, (0, 0.3), (2, 7.0), (-3, 1.0)],
    "k0e": [*FALLING, (1e4,), (1e8,)],
    "k1e": [*FALLING, (1e4,), (1e8,)],
    # the slope in float32 loses a digit at the order 40.3
    "kve": [*BROKEN[:-1], *NEGATIVE, (0, 0.3), (2, 7.0), (3.3, 1e4)],
}
