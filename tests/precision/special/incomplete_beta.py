"""The incomplete beta functions and their distributions in mpmath, and the points at which they are
tried, further out than their samples.
"""

from __future__ import annotations

from typing import Any

import scipy.special
from mpmath import mp

from .grids import BY_HALF, Points, each


def _tails(a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """I_x(a, b) and 1 - I_x(a, b): whichever ends before the mean as a series of positive terms.

    DLMF 8.17.8.
    """
    a, b, x = mp.mpf(a), mp.mpf(b), mp.mpf(x)
    if x > (a + 1) / (a + b + 2):
        return _tails(b, a, 1 - x)[::-1]
    term = x**a * (1 - x) ** b / (a * mp.beta(a, b))
    total, n = mp.zero, 0
    while abs(term) > abs(total) * mp.eps:
        total, term, n = total + term, term * x * (a + b + n) / (a + 1 + n), n + 1
    return total, 1 - total


def _betainc(a: Any, b: Any, x: Any) -> Any:
    return _tails(a, b, x)[0]


def _betaincc(a: Any, b: Any, x: Any) -> Any:
    return _tails(a, b, x)[1]


def _inverse(a: Any, b: Any, y: Any, upper: bool) -> Any:
    """By Newton's steps for the smaller tail on the scale of log(x / (1 - x)), on which it is
    log-concave.
    """
    a, b, y = mp.mpf(a), mp.mpf(b), mp.mpf(y)
    if y > mp.mpf(1) / 2:
        y, upper = 1 - y, not upper
    if upper:
        return 1 - _inverse(b, a, y, False)
    # only where to start: the steps go on until nothing changes
    start = scipy.special.betaincinv(float(a), float(b), float(y))
    s = (
        mp.log(start) - mp.log1p(-mp.mpf(start))
        if 0 < start < 1
        else (mp.log(y) + mp.log(a * mp.beta(a, b))) / a
    )
    for _ in range(300):
        x = 1 / (1 + mp.exp(-s))
        value = _tails(a, b, x)[0]
        step = value * mp.log(value / y) * mp.beta(a, b) / (x**a * (1 - x) ** b)
        s -= step
        if abs(step) <= abs(s) * mp.eps * 100:
            break
    return 1 / (1 + mp.exp(-s))


def _of_f(which: int) -> Any:
    return lambda dfn, dfd, x: _tails(dfn / 2, dfd / 2, dfn * x / (dfd + dfn * x))[which]


def _fdtri(dfn: Any, dfd: Any, p: Any) -> Any:
    x = _inverse(dfn / 2, dfd / 2, p, False)
    return dfd * x / (dfn * (1 - x))


def _stdtr(df: Any, x: Any) -> Any:
    tail = _tails(df / 2, mp.mpf(1) / 2, df / (df + x * x))[0] / 2
    return tail if x < 0 else 1 - tail


def _stdtrit(df: Any, p: Any) -> Any:
    x = _inverse(df / 2, mp.mpf(1) / 2, 2 * min(p, 1 - p), False)
    return (-1 if p < 0.5 else 1) * mp.sqrt(df * (1 - x) / x)


FUNCTIONS: dict[str, Any] = {
    "betainc": _betainc,
    "betaincc": _betaincc,
    "betaincinv": lambda a, b, y: _inverse(a, b, y, False),
    "betainccinv": lambda a, b, y: _inverse(a, b, y, True),
    "fdtr": _of_f(0),
    "fdtrc": _of_f(1),
    "fdtri": _fdtri,
    "stdtr": _stdtr,
    "stdtrit": _stdtrit,
    "bdtr": lambda k, n, p: _betaincc(k + 1, n - k, p),
    "bdtrc": lambda k, n, p: _betainc(k + 1, n - k, p),
    "bdtri": lambda k, n, y: _inverse(k + 1, n - k, y, True),
    "nbdtr": lambda k, n, p: _betainc(n, k + 1, p),
    "nbdtrc": lambda k, n, p: _betaincc(n, k + 1, p),
    "nbdtri": lambda k, n, y: _inverse(n, k + 1, y, False),
}

SHAPES = (1e-3, 0.5, 1.0, 2.5, 40.0)
SHARES = (1e-8, 0.1, 0.5, 0.9, 0.999)
FREEDOM = (1.0, 2.0, 5.0, 80.0)
CHANCES = (1e-10, 0.01, 0.3, 0.7, 0.999)
INSIDE = each(SHAPES, SHAPES, SHARES)
QUANTILES = each((0.5, 2.5, 40.0), (0.5, 40.0), CHANCES)
RATIOS = each(FREEDOM, FREEDOM, (1e-8, 0.1, 0.9, 3.0, 100.0))
COUNTS = [(k, n, p) for k, n in ((0, 3), (1, 4), (2, 3), (7, 40)) for p in (1e-6, 0.1, 0.4, 0.9)]

POINTS: dict[str, Points] = {
    "betainc": INSIDE,
    "betaincc": INSIDE,
    "betaincinv": QUANTILES,
    "betainccinv": QUANTILES,
    "fdtr": RATIOS,
    "fdtrc": RATIOS,
    "fdtri": each((1.0, 5.0, 80.0), (2.0, 80.0), CHANCES),
    "stdtr": each(BY_HALF, (-30.0, -3.0, -0.4, 1e-3, 0.4, 3.0, 30.0)),
    "stdtrit": each(BY_HALF, (1e-10, 0.01, 0.3, 0.51, 0.9)),
    "bdtr": COUNTS,
    "bdtrc": COUNTS,
    "bdtri": COUNTS,
    "nbdtr": COUNTS,
    "nbdtrc": COUNTS,
    "nbdtri": COUNTS,
}
