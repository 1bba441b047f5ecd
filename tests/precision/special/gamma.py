"""The gamma and beta functions in mpmath, and the points at which they are tried, further out than
their samples.
"""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import LARGE, MIDDLE, POSITIVE, SMALL, Points, each


def _gammaln(x: Any) -> Any:
    return mp.loggamma(x) if x > 0 else mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)


BETWEEN_POLES = (-0.3, -0.5, -1.4, -2.3, -20.7, -100.3)  # away from the zeros of digamma, too
GAMMAS = [(x,) for x in (*POSITIVE, 1.001, 1.999, 1.46, *BETWEEN_POLES)]
COMPLEX = [
    (complex(a, b),)
    for a in (1e-8, 0.4, 1.0, 1.3, 2.0, 9.0, 100.0, -0.3, -2.001, -20.7)
    for b in (1e-8, -0.3, 1.0, -5.0, 40.0)
]
ZETAS = [
    (x,)
    for x in (
        0.1,
        0.5,
        0.9,
        1.001,
        1.5,
        2.0,
        10.0,
        30.0,
        -0.1,
        -0.5,
        -1.0,
        -2.001,
        -3.7,
        -10.3,
        -50.2,
    )
]
PAIRS = each((1e-8, 0.1, 1.3, 4.0, 30.0, 1e8), (1e-8, 0.3, 2.5, 100.0))


def _ratio(above: list[Any], below: list[Any]) -> Any:
    """A quotient of gamma functions."""
    return mp.gammaprod(above, below)


FUNCTIONS: dict[str, Any] = {
    "loggamma": mp.loggamma,
    "rgamma": mp.rgamma,
    "poch": lambda z, m: _ratio([z + m], [z]),
    "binom": lambda n, k: _ratio([n + 1], [k + 1, n - k + 1]),
    "hurwitz_zeta": mp.zeta,
    "riemann_zeta": mp.zeta,
    "zetac": lambda x: mp.zeta(x) - 1,
    "zeta_derivative": lambda m, x, q: mp.zeta(x, q, m),
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
    "loggamma": [*((x,) for x in (*POSITIVE, 1.001, 1.999, 1.46)), *COMPLEX],
    "rgamma": [
        *((x,) for x in (*SMALL, *MIDDLE, *LARGE, 100.0, -0.3, -0.5, -1.0001, -1.4, -2.3, -20.7)),
        *COMPLEX,
    ],
    "poch": each((0.1, 1.3, 4.0, 30.0, 1e4, -0.3, -2.7, -20.2), (1e-8, 0.37, 2.5, -1.2, 7.0)),
    "binom": each(
        (0.1, 1.3, 4.0, 30.0, 1e4, -0.37, -2.7, -20.2), (1e-8, 0.31, 2.5, -1.25, 7.0, 25.0)
    ),
    "hurwitz_zeta": each((1.0001, 1.5, 2.0, 3.3, 10.0), (1e-3, 0.9, 1.0, 2.5, 10.0, 100.0)),
    "riemann_zeta": ZETAS,
    "zetac": ZETAS,
    "zeta_derivative": [
        (m, x, q) for m in (1, 2) for x in (1.01, 1.5, 3.3) for q in (0.9, 1.0, 10.0)
    ],
    "digamma": [*GAMMAS, *COMPLEX],
    "psi": GAMMAS,
    "polygamma": [(n, x) for n in range(4) for (x,) in GAMMAS if 1e-60 < abs(x) < 1e60],
    "beta": [p for p in PAIRS if p[0] < 1e8],
    "betaln": PAIRS,
}
