"""The incomplete beta functions, and the distributions based on them.

These are the beta distribution, F and t, and distributions of counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from .beta_tails import (
    Tail,
    log_density,
    log_rise,
    lower_and_upper,
    odds_partial,
    odds_slope,
    partial,
    tail_of,
)
from .common import refuse
from .error import ndtr

__all__ = ["bdtr", "bdtrc", "betainc", "betaincc", "fdtr", "fdtrc", "nbdtr", "nbdtrc", "stdtr"]


def real(xp: Any, name: str, *given: Any) -> list[Any]:
    """Convert the arguments to arrays of one real floating dtype.

    Integers take the dtype of the other arguments, or the default one.
    """
    known = [x for x in given if hasattr(x, "dtype")]
    for x in known:
        if not xp.isdtype(x.dtype, ("real floating", "integral", "bool")):
            raise refuse(name, xp.__name__.rpartition(".")[2], x.dtype)
    floating = [x.dtype for x in known if xp.isdtype(x.dtype, "real floating")]
    dtype = xp.result_type(*floating) if floating else xp.asarray(0.5).dtype
    device = xp.device_of(known[0])
    return [
        xp.astype(x, dtype, copy=False)
        if hasattr(x, "dtype")
        else xp.full((), x, dtype=dtype, device=device)
        for x in given
    ]


def wide(form: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a form or a partial derivative to get arrays of one dtype, with float16 as float32.

    It has three arguments (two for t).
    """

    @wraps(form)
    def outer(xp: Any, *given: Any, **options: Any) -> Any:
        values = real(xp, form.__name__, *given)
        dtype = values[0].dtype
        if xp.finfo(dtype).bits >= 32:
            return form(xp, *values, **options)
        return xp.astype(form(xp, *(xp.astype(x, xp.float32) for x in values), **options), dtype)

    return outer


# ----- the beta distribution -----


@wide
def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function I_x(a, b)."""
    return _at_limits(xp, a, b, x, upper=False)


@wide
def betaincc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """1 - I_x(a, b), accurate where it is small."""
    return _at_limits(xp, a, b, x, upper=True)


def _at_limits(xp: Any, a: Any, b: Any, x: Any, upper: bool) -> Any:
    """All mass is at 1 where a is infinite or b is 0, at 0 where b is infinite or a is 0."""
    value = lower_and_upper(xp, beta_tail(xp, a, b, x))[upper]
    at_1, at_0 = (a > 0) & (xp.isinf(a) | (b == 0)), (b > 0) & (xp.isinf(b) | (a == 0))
    below = xp.where(at_1, x >= 1, x > 0)
    limit = xp.where(below == upper, xp.zeros_like(value), xp.ones_like(value))
    return xp.where((at_1 != at_0) & (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1), limit, value)


def beta_tail(xp: Any, a: Any, b: Any, x: Any, y: Any = None) -> Tail:
    """The tail below x, given also y = 1 - x where that has more digits."""
    y = 1 - x if y is None else y
    return tail_of(xp, a, b, x, y, x * b - y * a)


@wide
def beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """x**(a-1) (1-x)**(b-1) / beta(a, b)."""
    return density_of(xp, beta_tail(xp, a, b, x))


def density_of(xp: Any, tail: Tail, power: int = 1) -> Any:
    """x**(a-1) y**(b-1) / beta(a, b).

    With a `power` of -1 it is the reciprocal, whose derivatives do not have the square of the
    density, which may overflow.
    """
    few, many = (math.inf, 0.0) if power == 1 else (0.0, math.inf)
    at_end = xp.where(tail.p < 1, few, xp.where(tail.p == 1, tail.q**power, many))
    return xp.where(
        tail.valid, xp.where(tail.empty, at_end, xp.exp(power * log_density(xp, tail))), math.nan
    )


@wide
def beta_partial(xp: Any, a: Any, b: Any, x: Any, *, by_a: bool) -> Any:
    """The derivative of I_x(a, b) with respect to a or b."""
    return partial(xp, beta_tail(xp, a, b, x), by_a)


# ----- F and t -----


@wide
def fdtr(xp: Any, dfn: Any, dfd: Any, x: Any) -> Any:
    """The distribution function of F with dfn and dfd degrees of freedom."""
    return lower_and_upper(xp, f_tail(xp, dfn, dfd, x))[0]


@wide
def fdtrc(xp: Any, dfn: Any, dfd: Any, x: Any) -> Any:
    """1 - fdtr(dfn, dfd, x), accurate where it is small."""
    return lower_and_upper(xp, f_tail(xp, dfn, dfd, x))[1]


def f_tail(xp: Any, dfn: Any, dfd: Any, x: Any) -> Tail:
    """The tail of the beta distribution below dfn x / (dfd + dfn x)."""
    total = dfd + dfn * x
    far = xp.isinf(total) & (x > 0)
    total = xp.where(far, 1.0, total)
    share, rest = (
        xp.where(far, 1.0, dfn * xp.where(far, 0.0, x) / total),
        xp.where(far, 0.0, dfd / total),
    )
    return tail_of(
        xp, 0.5 * dfn, 0.5 * dfd, share, rest, 0.5 * dfn * rest * (xp.where(far, 1.0, x) - 1)
    )


@wide
def f_density(xp: Any, dfn: Any, dfd: Any, x: Any) -> Any:
    """The density of F.

    It is that of the beta distribution times y**2 dfn / dfd, the derivative of dfn x / (dfd + dfn
    x).
    """
    tail = f_tail(xp, dfn, dfd, x)
    y = xp.where(tail.swap, tail.u, tail.v)
    inside = xp.exp(log_density(xp, tail)) * (y * y) * (dfn / dfd)
    at_end = xp.where((x > 0) | (dfn > 2), 0.0, xp.where(dfn < 2, math.inf, xp.ones_like(dfn)))
    return xp.where(tail.valid, xp.where(tail.empty, at_end, inside), math.nan)


@wide
def f_partial(xp: Any, dfn: Any, dfd: Any, x: Any, *, by_a: bool) -> Any:
    """The derivative of fdtr(dfn, dfd, x) by dfn, or by dfd."""
    return 0.5 * partial(xp, f_tail(xp, dfn, dfd, x), by_a, of_ratio=True)


@wide
def f_quantile_partial(xp: Any, dfn: Any, dfd: Any, x: Any, *, by_a: bool) -> Any:
    """The derivative by dfn, or by dfd, of the x for which fdtr(dfn, dfd, x) has a fixed value."""
    return 0.5 * x * odds_partial(xp, f_tail(xp, dfn, dfd, x), by_a)


@wide
def f_quantile_slope(xp: Any, dfn: Any, dfd: Any, x: Any, p: Any) -> Any:
    """The derivative with respect to p of the x at which fdtr(dfn, dfd, x) is p."""
    tail = f_tail(xp, dfn, dfd, x)
    ends = tail.empty | (p <= 0) | (p >= 1)
    inside = xp.where(ends, 1.0, x) * odds_slope(xp, tail, p, 1 - p)
    return xp.where(ends, 1 / f_density(xp, dfn, dfd, x), inside)


@wide
def stdtr(xp: Any, df: Any, x: Any) -> Any:
    """The distribution function of Student's t distribution."""
    tail = 0.5 * lower_and_upper(xp, t_tail(xp, df, x))[0]
    return xp.where(xp.isinf(df) & (df > 0), ndtr(xp, x), xp.where(x < 0, tail, 1 - tail))


def t_tail(xp: Any, df: Any, x: Any) -> Tail:
    """The tail of the beta distribution with df/2 and 1/2 below df / (df + x**2).

    It contains both tails of t beyond x.
    """
    square = x * x
    far = xp.isinf(square)
    total = xp.where(far, 1.0, square + df)
    y, rest = xp.where(far, 1.0, square) / total, xp.where(far, 0.0, df) / total
    kind = xp.finfo(x.dtype)
    least = float(kind.smallest_normal) / float(kind.eps)
    # the end, df / x**2; its powers may well be numbers
    tiny = (df > 0) & (rest < least) & ~xp.isinf(x)
    beyond = xp.where(
        tiny,
        xp.log(xp.where(tiny, df, 1.0))
        - 2 * xp.log(xp.where(tiny, xp.abs(x), 1.0))
        - math.log(least),
        0.0,
    )
    d = xp.where(tiny, -0.5 * df, 0.5 * rest * (1 - xp.where(far, 0.0, square)))
    return tail_of(
        xp, 0.5 * df, xp.where(df > 0, 0.5, df), xp.where(tiny, least, rest), y, d, beyond=beyond
    )


@wide
def t_density(xp: Any, df: Any, x: Any) -> Any:
    """(1 + x**2 / df)**(-(df + 1) / 2) / (sqrt(df) beta(df/2, 1/2)), the density of t.

    For an infinite df it is the density of the normal distribution.
    """
    valid, far = df > 0, xp.isinf(df)
    df = xp.where(valid & ~far, df, 1.0)
    log = log_rise(
        xp, 0.5 * df, xp.asarray(0.5, dtype=df.dtype, device=xp.device_of(df))
    ) - 0.5 * xp.log(df)
    # of its square only the logarithm is a number
    beyond = xp.isinf(x * x / df) & ~far & ~xp.isinf(x)
    growth = xp.where(
        beyond,
        2 * xp.log(xp.where(beyond, xp.abs(x), 1.0)) - xp.log(df),
        xp.log1p(xp.where(beyond, 1.0, x * x) / df),
    )
    log = xp.where(far, -0.5 * x * x - 0.5 * math.log(2), log - 0.5 * (df + 1) * growth)
    return xp.where(valid, xp.exp(log) / math.sqrt(math.pi), math.nan)


@wide
def t_partial(xp: Any, df: Any, x: Any) -> Any:
    """The derivative of stdtr(df, x) by df."""
    slope = 0.25 * partial(xp, t_tail(xp, df, x), True, of_ratio=True)
    return xp.where(x < 0, slope, -slope)


@wide
def t_quantile_partial(xp: Any, df: Any, x: Any) -> Any:
    """The derivative by df of the x for which stdtr(df, x) has a fixed value.

    x**-2 is the ratio of the beta distribution.
    """
    return -0.25 * x * odds_partial(xp, t_tail(xp, df, x), True)


@wide
def t_quantile_slope(xp: Any, df: Any, x: Any, p: Any) -> Any:
    """The derivative with respect to p of the x at which stdtr(df, x) is p."""
    tail = t_tail(xp, df, x)
    outer = tail.valid & ~tail.empty & ~tail.swap & (p > 0) & (p < 1)
    part = xp.where(outer, 2 * xp.where(p < 0.5, p, 1 - p), 0.5)
    return xp.where(
        outer,
        xp.where(outer, xp.abs(x), 1.0) * odds_slope(xp, tail, part, 1 - part),
        1 / t_density(xp, df, x),
    )


# ----- counts -----


@wide
def bdtr(xp: Any, k: Any, n: Any, p: Any) -> Any:
    """The probability of at most floor(k) successes in n trials, each with the probability p."""
    k, n, p = _counts(xp, k, n, p)
    value = lower_and_upper(xp, beta_tail(xp, k + 1, n - k, p))[1]
    return xp.where((k == n) & (k >= 0) & (p >= 0) & (p <= 1), 1.0, value)


@wide
def bdtrc(xp: Any, k: Any, n: Any, p: Any) -> Any:
    """The probability of more than floor(k) successes in n trials."""
    k, n, p = _counts(xp, k, n, p)
    value = lower_and_upper(xp, beta_tail(xp, k + 1, n - k, p))[0]
    inside = (p >= 0) & (p <= 1)
    return xp.where(inside & (k < 0) & (k <= n), 1.0, xp.where(inside & (k == n), 0.0, value))


@wide
def bdtr_slope(xp: Any, k: Any, n: Any, p: Any) -> Any:
    """The derivative of 1 - bdtr(k, n, p) by p.

    It is the density of the beta distribution, and 0 where k is n.
    """
    k, n, p = _counts(xp, k, n, p)
    return xp.where(
        (k == n) & (k >= 0) & (p >= 0) & (p <= 1), 0.0, beta_density(xp, k + 1, n - k, p)
    )


@wide
def bdtrc_slope(xp: Any, k: Any, n: Any, p: Any) -> Any:
    """The derivative of bdtrc(k, n, p), which is also 0 for a negative k."""
    constant = (k < 0) & (xp.floor(k) <= xp.trunc(n)) & (p >= 0) & (p <= 1)
    return xp.where(constant, 0.0, bdtr_slope(xp, k, n, p))


@wide
def nbdtr(xp: Any, k: Any, n: Any, p: Any) -> Any:
    """The probability of at most k failures before the n-th success of probability p."""
    k, n, p = _counts(xp, k, n, p, floor=False)
    return lower_and_upper(xp, beta_tail(xp, n, k + 1, p))[0]


@wide
def nbdtrc(xp: Any, k: Any, n: Any, p: Any) -> Any:
    """The probability of more than k failures before the n-th success."""
    k, n, p = _counts(xp, k, n, p, floor=False)
    return lower_and_upper(xp, beta_tail(xp, n, k + 1, p))[1]


@wide
def nbdtr_slope(xp: Any, k: Any, n: Any, p: Any) -> Any:
    """The derivative of nbdtr(k, n, p) by p."""
    k, n, p = _counts(xp, k, n, p, floor=False)
    return beta_density(xp, n, k + 1, p)


def _counts(xp: Any, k: Any, n: Any, p: Any, floor: bool = True) -> list[Any]:
    """Round counts as SciPy does: the binomial k down, other counts towards 0."""
    return [xp.floor(k) if floor else xp.trunc(k), xp.trunc(n), p]
