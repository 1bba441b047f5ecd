"""The error functions and the normal distribution in mpmath, and the points at which they are
tried, further out than their samples.
"""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import HUGE, LARGE, MIDDLE, PROBABLE, REAL, SMALL, TAILS, Points


def _ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


FUNCTIONS: dict[str, Any] = {
    "erf": mp.erf,
    "erfc": mp.erfc,
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "erfinv": mp.erfinv,
    "ndtr": _ndtr,
    "log_ndtr": lambda x: mp.log(_ndtr(x)),
    "gelu": lambda x: x * _ndtr(x),
    "ndtri": lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
}

COMPLEX = [
    (complex(a, b),) for a in (0.3, -0.9, 1.1, -2.5, 6.3) for b in (1e-8, -0.3, 0.9, 1.5, -3.0, 8.0)
]

POINTS: dict[str, Points] = {
    "erf": [*TAILS, *COMPLEX],
    "erfc": [*TAILS, *COMPLEX],
    "erfcx": [
        *REAL[: 2 * (len(SMALL) + len(MIDDLE))],
        *((x,) for x in (*LARGE, *HUGE, -18.0, -26.0)),
        *COMPLEX,
    ],
    "erfinv": [(s * p,) for p in PROBABLE for s in (1, -1)],
    "ndtr": [*TAILS, *COMPLEX],
    "gelu": REAL,
    "log_ndtr": [*TAILS, (-1e3,), (-1e6,)],
    "ndtri": [(p,) for p in PROBABLE],
}
