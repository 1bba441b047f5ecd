"""The inverses of the incomplete beta functions, and of the distributions based on them.

The solver finds the root for the smaller tail on the scale of log(x / (1 - x)), which holds both
ends to all digits. On this scale the density is log-concave, and so are both tails. Therefore
Newton's steps for the logarithm of a tail never pass its root from below, and they converge from
any start. They start from the first term of the tail, or from the normal distribution.
"""

from __future__ import annotations

import math
from typing import Any

from . import beta_tails as tails
from .beta_tails import constants, log_first, log_lower, log_powers, tail_of
from .error import ndtri
from .incomplete_beta import beta_tail, density_of, wide

__all__ = ["bdtri", "betainccinv", "betaincinv", "fdtri", "nbdtri", "stdtrit"]

STEPS = 9


@wide
def betaincinv(xp: Any, a: Any, b: Any, y: Any) -> Any:
    """The x for which I_x(a, b) is y."""
    return _share(xp, _log_odds(xp, a, b, y, 1 - y))


@wide
def betainccinv(xp: Any, a: Any, b: Any, y: Any) -> Any:
    """The x for which 1 - I_x(a, b) is y."""
    return _share(xp, _log_odds(xp, a, b, 1 - y, y))


@wide
def bdtri(xp: Any, k: Any, n: Any, y: Any) -> Any:
    """The p for which bdtr(k, n, p) is y."""
    k, n = xp.floor(k), xp.trunc(n)
    return _share(xp, _log_odds(xp, xp.where(k < 0, math.nan, k + 1), n - k, 1 - y, y))


@wide
def nbdtri(xp: Any, k: Any, n: Any, y: Any) -> Any:
    """The p for which nbdtr(k, n, p) is y."""
    return _share(xp, _log_odds(xp, xp.trunc(n), xp.trunc(k) + 1, y, 1 - y))


@wide
def fdtri(xp: Any, dfn: Any, dfd: Any, p: Any) -> Any:
    """The x for which fdtr(dfn, dfd, x) is p."""
    return dfd / dfn * xp.exp(_log_odds(xp, 0.5 * dfn, 0.5 * dfd, p, 1 - p))


@wide
def stdtrit(xp: Any, df: Any, p: Any) -> Any:
    """The x for which stdtr(df, x) is p."""
    normal = xp.isinf(df) & (df > 0)
    finite = xp.where(normal, 1.0, df)
    tail = xp.where(p < 0.5, p, 1 - p)
    size = xp.sqrt(finite) * xp.exp(
        -0.5 * _log_odds(xp, 0.5 * finite, 0.5 * xp.ones_like(finite), 2 * tail, 1 - 2 * tail)
    )
    value = xp.where(p < 0.5, -size, size)
    return xp.where(normal, ndtri(xp, p), value)


@wide
def share_slope(xp: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """The derivative of betaincinv with respect to its last argument, where it is x = 1 - y."""
    return density_of(xp, beta_tail(xp, a, b, x, y), power=-1)


@wide
def share_partial(xp: Any, a: Any, b: Any, x: Any, y: Any, *, by_a: bool) -> Any:
    """The derivative of x = betaincinv = 1 - y with respect to a or b: 0 at both ends."""
    return tails.share_partial(xp, beta_tail(xp, a, b, x, y), by_a)


def _share(xp: Any, s: Any) -> Any:
    """x, given log(x / (1 - x))."""
    e = xp.exp(-xp.abs(s))
    return xp.where(s < 0, e, 1.0) / (1 + e)


def _log_odds(xp: Any, a: Any, b: Any, lower: Any, upper: Any) -> Any:
    """log(x / (1 - x)) where the tails of the beta distribution at x are `lower` and `upper`."""
    valid = (a > 0) & (b > 0) & ~xp.isinf(a) & ~xp.isinf(b) & (lower >= 0) & (upper >= 0)
    a, b = xp.where(valid, a, 1.0), xp.where(valid, b, 1.0)
    swap = valid & (lower > upper)
    p, q = xp.where(swap, b, a), xp.where(swap, a, b)
    target = xp.where(swap, upper, lower)
    empty = valid & (target == 0)
    target = xp.where(valid & ~empty, target, 0.5)
    s = _log_odds_of_tail(xp, p + 0 * target, q + 0 * target, target)
    s = xp.where(empty, -math.inf, s)
    return xp.where(valid, xp.where(swap, -s, s), math.nan)


def _log_odds_of_tail(xp: Any, p: Any, q: Any, target: Any) -> Any:
    """log(u / v) at the point where the lower tail is `target`, which is at most 1/2."""
    log_target = xp.log(target)
    most = -math.log(float(xp.finfo(target.dtype).smallest_normal)) - 10
    first = (log_target - log_first(xp, p, q)) / p  # the root if u is tiny, below it in any case
    low = xp.clip(first, -most, most)
    s = xp.where((p >= 1) & (q >= 1), xp.maximum(low, _normal_start(xp, p, q, target)), low)
    known = constants(xp, p, q)
    for _ in range(STEPS):
        s = xp.minimum(
            xp.maximum(s - _step(xp, p, q, s, log_target, known), low), xp.full_like(s, most)
        )
    return xp.where(s <= -most, xp.minimum(first, s), xp.where(s >= most, math.inf, s))


def _normal_start(xp: Any, p: Any, q: Any, target: Any) -> Any:
    """Abramowitz and Stegun, 26.5.22."""
    p, q = xp.where(p < 1, 1.0, p), xp.where(q < 1, 1.0, q)
    z = -ndtri(xp, target)
    of_p, of_q = 1 / (2 * p - 1), 1 / (2 * q - 1)
    h, bend = 2 / (of_p + of_q), (z * z - 3) / 6
    return xp.log(p / q) - 2 * (
        z * xp.sqrt(h + bend) / h - (of_q - of_p) * (bend + 5 / 6 - 2 / (3 * h))
    )


def _step(xp: Any, p: Any, q: Any, s: Any, log_target: Any, known: Any) -> Any:
    """Halley's step for log(tail) at log(u / v) = s.

    The logarithm of the density u**p v**q / beta(p, q) has the derivative p v - q u.
    """
    u, v = _share(xp, s), _share(xp, -s)
    d = u * q - v * p
    tail = tail_of(xp, p, q, u, v, d, known)
    log = log_lower(xp, tail)
    slope = xp.exp(log_powers(xp, tail) - log)
    step = (log - log_target) / slope
    return step / xp.clip(1 + 0.5 * step * (d + slope), 0.5, None)
