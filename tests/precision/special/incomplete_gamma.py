"""The incomplete gamma functions in mpmath, and the points at which they are tried, further out
than their samples.
"""

from __future__ import annotations

import math
from typing import Any

from mpmath import mp
from scipy.special import gammainccinv, gammaincinv

from .grids import Points, each


def _upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def _lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _inverse(tail: Any, a: Any, y: Any) -> Any:
    """Where the tail is y: from SciPy's value by Newton's method for the logarithm of the tail as a
    function of log(x), which is concave.
    """
    falling = tail is _upper
    x = mp.mpf(float((gammainccinv if falling else gammaincinv)(float(a), float(y))))
    for _ in range(int(math.log2(mp.dps))):
        value = tail(a, x)
        slope = mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a)) * (-1 if falling else 1)
        x *= mp.exp((mp.log(y) - mp.log(value)) * value / slope / x)
    return x


ABOUT = [
    (a, a + d * a**0.5)
    for a in (0.3, 1.0, 4.0, 9.5, 10.5, 200.0, 1e4)
    for d in (-0.5, 0.0, 1.0, 6.0)
]
GAMMA_SHAPES: Points = [
    *each((1e-8, 0.01, 0.5, 1.0, 2.5, 10.0), (1e-8, 0.1, 0.5, 1.0, 1.7, 3.0, 30.0, 100.0)),
    *each((80.0, 1e3), (30.0, 100.0, 2e3)),
    *ABOUT,
]
INVERSES: Points = each((0.2, 0.5, 1.0, 2.5, 30.0, 400.0), (1e-30, 1e-3, 0.3, 0.7, 0.999))
RATES: Points = [
    (r, a, x) for a, x in each((0.01, 0.5, 2.5, 80.0), (1e-8, 0.5, 3.0, 90.0)) for r in (0.25, 1.5)
]
COUNTS: Points = each((0, 1, 7, 100), (1e-8, 0.5, 2.0, 30.0, 130.0))

FUNCTIONS: dict[str, Any] = {
    "gammainc": _lower,
    "gammaincc": _upper,
    "gammaincinv": lambda a, y: _inverse(_lower, a, y),
    "gammainccinv": lambda a, y: _inverse(_upper, a, y),
    "gdtr": lambda a, b, x: _lower(b, a * x),
    "gdtrc": lambda a, b, x: _upper(b, a * x),
    "chdtr": lambda df, x: _lower(df / 2, x / 2),
    "chdtrc": lambda df, x: _upper(df / 2, x / 2),
    "chdtri": lambda df, y: 2 * _inverse(_upper, df / 2, y),
    "pdtr": lambda k, m: _upper(mp.floor(k) + 1, m),
    "pdtrc": lambda k, m: _lower(mp.floor(k) + 1, m),
    "pdtri": lambda k, y: _inverse(_upper, mp.floor(k) + 1, y),
}

POINTS: dict[str, Points] = {
    "gammainc": GAMMA_SHAPES,
    "gammaincc": GAMMA_SHAPES,
    "gammaincinv": INVERSES,
    "gammainccinv": INVERSES,
    "gdtr": RATES,
    "gdtrc": RATES,
    "chdtr": GAMMA_SHAPES[:27],
    "chdtrc": GAMMA_SHAPES[:27],
    "chdtri": INVERSES,
    "pdtr": COUNTS,
    "pdtrc": COUNTS,
    "pdtri": each((0, 1, 7, 100), (1e-30, 1e-3, 0.3, 0.999)),
}
