"""The functions of the plugin multigrad-special in mpmath, and the points at which they are tried, further out than their samples."""

from __future__ import annotations

import itertools
from typing import Any

from mpmath import mp

Points = list[tuple[Any, ...]]


def _gammaln(x: Any) -> Any:
    return mp.loggamma(x) if x > 0 else mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)


def _ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _stdtr(df: Any, x: Any) -> Any:
    tail = mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + x * x), regularized=True) / 2
    return tail if x < 0 else 1 - tail


def _gammainc(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _scaled(order: Any, x: Any) -> Any:
    return mp.exp(-abs(x)) * mp.besseli(order, x)


FUNCTIONS: dict[str, Any] = {
    "erf": mp.erf, "erfc": mp.erfc, "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x), "erfinv": mp.erfinv,
    "ndtr": _ndtr, "log_ndtr": lambda x: mp.log(_ndtr(x)), "ndtri": lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
    "gamma": mp.gamma, "gammaln": _gammaln, "digamma": mp.digamma, "psi": mp.digamma, "polygamma": mp.psi,
    "beta": mp.beta, "betaln": lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
    "expit": lambda x: 1 / (1 + mp.exp(-x)), "log_expit": lambda x: -mp.log1p(mp.exp(-x)), "logit": lambda x: mp.log(x / (1 - x)),
    "xlogy": lambda x, y: x * mp.log(y), "xlog1py": lambda x, y: x * mp.log1p(y), "entr": lambda x: -x * mp.log(x),
    "rel_entr": lambda x, y: x * mp.log(x / y), "kl_div": lambda x, y: x * mp.log(x / y) - x + y,
    "gammainc": _gammainc, "gammaincc": lambda a, x: 1 - _gammainc(a, x), "stdtr": _stdtr,
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "i0": lambda x: mp.besseli(0, x), "i1": lambda x: mp.besseli(1, x), "iv": mp.besseli,
    "i0e": lambda x: _scaled(0, x), "i1e": lambda x: _scaled(1, x), "ive": _scaled,
}  # fmt: skip


def _each(*columns: Any) -> Points:
    return list(itertools.product(*columns))


SMALL = (1e-300, 1e-20, 1e-8, 1e-3)
MIDDLE = (0.1, 0.3, 0.7, 0.9, 1.0, 1.3, 1.5, 2.5, 4.0)
LARGE = (6.5, 10.0, 18.0, 30.0)
HUGE = (100.0, 700.0, 1e4, 1e8, 1e20, 1e150)
PROBABLE = (1e-10, 1e-3, 0.1, 0.3, 0.45, 0.6, 0.9, 0.999, 1 - 1e-6)
POSITIVE = (*SMALL, *MIDDLE, *LARGE, *HUGE)
BETWEEN_POLES = (-0.3, -0.5, -1.4, -2.3, -20.7, -100.3)  # away from the zeros of digamma, too
BY_HALF = (0.5, 1.0, 2.5, 10.0, 80.0)

REAL = [(s * v,) for v in (*SMALL, *MIDDLE, *LARGE) for s in (1, -1)]
GAMMAS = [(x,) for x in (*POSITIVE, 1.001, 1.999, 1.46, *BETWEEN_POLES)]
PAIRS = _each((1e-8, 0.1, 1.3, 4.0, 30.0, 1e8), (1e-8, 0.3, 2.5, 100.0))
CLOSE = [(x, x * (1 + d)) for x in (0.3, 2.5, 1e8) for d in (1e-3, -1e-7, 1e-12)]

TAILS = [*REAL, (26.0,), (-26.0,), (37.0,), (-37.0,)]
TAILS_OF_EXP = [*REAL, *((s * v,) for v in (36.0, 40.0, 100.0, 700.0) for s in (1, -1))]
ENTROPIC = [*_each((1e-20, 0.1, 1.3, 30.0, 1e150), (1e-20, 0.3, 2.5, 100.0)), *CLOSE]
GAMMA_SHAPES = _each(BY_HALF, (1e-8, 0.1, 1.0, 3.0, 30.0, 100.0))
BESSEL = [*REAL, (100.0,), (-100.0,), (700.0,)]
ORDERS = [(v, x) for v in (0, 1, 2, 7) for x in (1e-3, -0.3, 1.0, 2.5, 10.0, -30.0, 100.0)]

POINTS: dict[str, Points] = {
    "erf": TAILS, "erfc": TAILS, "ndtr": TAILS, "log_ndtr": [*TAILS, (-1e3,), (-1e6,)],
    "erfcx": [*REAL[: 2 * (len(SMALL) + len(MIDDLE))], *((x,) for x in (*LARGE, *HUGE, -18.0, -26.0))],
    "erfinv": [(s * p,) for p in PROBABLE for s in (1, -1)], "ndtri": [(p,) for p in PROBABLE],
    "gamma": [(x,) for x in (*SMALL, *MIDDLE, *LARGE, 100.0, 170.0, -0.3, -0.5, -1.4, -2.3, -20.7)],
    "gammaln": GAMMAS, "digamma": GAMMAS, "psi": GAMMAS,
    "polygamma": [(n, x) for n in range(4) for (x,) in GAMMAS if 1e-60 < abs(x) < 1e60],
    "beta": [p for p in PAIRS if p[0] < 1e8], "betaln": PAIRS,
    "expit": TAILS_OF_EXP, "log_expit": TAILS_OF_EXP, "logit": [(p,) for p in (*SMALL, *PROBABLE, 1 - 1e-14)],
    "xlogy": _each((*SMALL, 2.5, 1e8, -1.3), (*SMALL, 0.3, 0.999, 1 + 1e-9, 2.5, 1e150)),
    "xlog1py": _each((*SMALL, 2.5, 1e8, -1.3), (*SMALL, -1e-9, 0.3, -0.999, -1 + 1e-9, 2.5, 1e150)),
    "entr": [(x,) for x in (*SMALL, 0.1, 0.3, 0.367, 0.368, 1.0, 2.5, *HUGE)], "rel_entr": ENTROPIC, "kl_div": ENTROPIC,
    "gammainc": GAMMA_SHAPES, "gammaincc": GAMMA_SHAPES, "betainc": _each(BY_HALF, BY_HALF, (1e-8, 0.1, 0.5, 0.9, 0.999)),
    "stdtr": _each(BY_HALF, (-30.0, -3.0, -0.4, 1e-3, 0.4, 3.0, 30.0)),
    "i0": BESSEL, "i1": BESSEL, "i0e": [*BESSEL, (1e4,), (-1e6,)], "i1e": [*BESSEL, (1e4,), (-1e6,)], "iv": ORDERS, "ive": ORDERS,
}  # fmt: skip

ALL: dict[str, tuple[Any, Points]] = {f"special.{name}": (FUNCTIONS[name], where) for name, where in POINTS.items()}
