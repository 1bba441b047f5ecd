"""The gamma and beta functions in mpmath, and the points at which they are tried, further out than their samples."""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import LARGE, MIDDLE, POSITIVE, SMALL, Points, each


def _gammaln(x: Any) -> Any:
    return mp.loggamma(x) if x > 0 else mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)


BETWEEN_POLES = (-0.3, -0.5, -1.4, -2.3, -20.7, -100.3)  # away from the zeros of digamma, too
GAMMAS = [(x,) for x in (*POSITIVE, 1.001, 1.999, 1.46, *BETWEEN_POLES)]
PAIRS = each((1e-8, 0.1, 1.3, 4.0, 30.0, 1e8), (1e-8, 0.3, 2.5, 100.0))

FUNCTIONS: dict[str, Any] = {
    "gamma": mp.gamma,
    "gammaln": _gammaln,
    "digamma": mp.digamma,
    "psi": mp.digamma,
    "polygamma": mp.psi,
    "beta": mp.beta,
    "betaln": lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
}

POINTS: dict[str, Points] = {
    "gamma": [(x,) for x in (*SMALL, *MIDDLE, *LARGE, 100.0, 170.0, -0.3, -0.5, -1.4, -2.3, -20.7)],
    "gammaln": GAMMAS,
    "digamma": GAMMAS,
    "psi": GAMMAS,
    "polygamma": [(n, x) for n in range(4) for (x,) in GAMMAS if 1e-60 < abs(x) < 1e60],
    "beta": [p for p in PAIRS if p[0] < 1e8],
    "betaln": PAIRS,
}
