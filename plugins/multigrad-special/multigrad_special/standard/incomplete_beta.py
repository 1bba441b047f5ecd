"""The incomplete beta functions, and the distributions that are made of them: of a proportion, of F and t, of counts."""

from __future__ import annotations

import math
from typing import Any

from .beta_tails import Tail, log_density, lower_and_upper, partial, tail_of
from .common import refuse

__all__ = ["bdtr", "bdtrc", "betainc", "betaincc", "fdtr", "fdtrc", "nbdtr", "nbdtrc", "stdtr"]


def real(xp: Any, name: str, *given: Any) -> list[Any]:
    """The arguments as arrays of one real floating dtype. Integers take that of the others, or the default one."""
    known = [x for x in given if hasattr(x, "dtype")]
    floating = [x for x in known if xp.isdtype(x.dtype, "real floating")]
    for x in known:
        if not xp.isdtype(x.dtype, ("real floating", "integral", "bool")):
            raise refuse(name, xp.__name__.rpartition(".")[2], x.dtype)
    dtype = xp.result_type(*floating) if floating else xp.asarray(0.5).dtype
    device = xp.device_of(known[0])
    return [xp.astype(x, dtype, copy=False) if hasattr(x, "dtype") else xp.full((), x, dtype=dtype, device=device) for x in given]


# ----- the beta distribution -----


def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function I_x(a, b)."""
    return _at_limits(xp, *real(xp, "betainc", a, b, x), upper=False)


def betaincc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """1 - I_x(a, b), accurate where it is small."""
    return _at_limits(xp, *real(xp, "betaincc", a, b, x), upper=True)


def _at_limits(xp: Any, a: Any, b: Any, x: Any, upper: bool) -> Any:
    return lower_and_upper(xp, beta_tail(xp, a, b, x))[upper]


def beta_tail(xp: Any, a: Any, b: Any, x: Any, y: Any = None) -> Tail:
    """The tail below x, given also y = 1 - x where that has more digits."""
    y = 1 - x if y is None else y
    return tail_of(xp, a, b, x, y, x * b - y * a)


def beta_density(xp: Any, a: Any, b: Any, x: Any, y: Any = None) -> Any:
    """x**(a-1) y**(b-1) / beta(a, b)."""
    tail = beta_tail(xp, a, b, x, y)
    at_end = xp.where(tail.p < 1, math.inf, xp.where(tail.p == 1, tail.q, 0.0))
    return xp.where(tail.valid, xp.where(tail.empty, at_end, xp.exp(log_density(xp, tail))), math.nan)


def beta_partial(xp: Any, a: Any, b: Any, x: Any, by_a: bool, y: Any = None) -> Any:
    """The derivative of I_x(a, b) by a, or by b."""
    return partial(xp, beta_tail(xp, a, b, x, y), by_a)


# ----- F and t -----


def fdtr(xp: Any, dfn: Any, dfd: Any, x: Any) -> Any:
    """The distribution function of F with dfn and dfd degrees of freedom."""
    return lower_and_upper(xp, f_tail(xp, *real(xp, "fdtr", dfn, dfd, x)))[0]


def fdtrc(xp: Any, dfn: Any, dfd: Any, x: Any) -> Any:
    """1 - fdtr(dfn, dfd, x), accurate where it is small."""
    return lower_and_upper(xp, f_tail(xp, *real(xp, "fdtrc", dfn, dfd, x)))[1]


def f_tail(xp: Any, dfn: Any, dfd: Any, x: Any) -> Tail:
    """The tail of the beta distribution below dfn x / (dfd + dfn x)."""
    total = dfd + dfn * x
    far = xp.isinf(total) & (x > 0)
    total = xp.where(far, 1.0, total)
    share, rest = xp.where(far, 1.0, dfn * xp.where(far, 0.0, x) / total), xp.where(far, 0.0, dfd / total)
    return tail_of(xp, 0.5 * dfn, 0.5 * dfd, share, rest, 0.5 * dfn * rest * (xp.where(far, 1.0, x) - 1))


def f_density(xp: Any, dfn: Any, dfd: Any, x: Any) -> Any:
    """The density of F: that of the beta distribution, times the derivative y**2 dfn / dfd of dfn x / (dfd + dfn x)."""
    tail = f_tail(xp, dfn, dfd, x)
    y = xp.where(tail.swap, tail.u, tail.v)
    inside = xp.exp(log_density(xp, tail)) * (y * y) * (dfn / dfd)
    at_end = xp.where(x > 0, 0.0, xp.where(dfn < 2, math.inf, xp.where(dfn == 2, 1.0, 0.0)))
    return xp.where(tail.valid, xp.where(tail.empty, at_end, inside), math.nan)


def f_partial(xp: Any, dfn: Any, dfd: Any, x: Any, by_a: bool) -> Any:
    """The derivative of fdtr(dfn, dfd, x) by dfn, or by dfd."""
    return 0.5 * partial(xp, f_tail(xp, dfn, dfd, x), by_a, of_ratio=True)


def stdtr(xp: Any, df: Any, x: Any) -> Any:
    """The distribution function of Student's t distribution."""
    df, x = real(xp, "stdtr", df, x)
    tail = 0.5 * lower_and_upper(xp, t_tail(xp, df, x))[0]
    return xp.where(x < 0, tail, 1 - tail)


def t_tail(xp: Any, df: Any, x: Any) -> Tail:
    """The tail of the beta distribution with df/2 and 1/2 below df / (df + x**2), which holds both tails of t beyond x."""
    square = x * x
    far = xp.isinf(square)
    total = xp.where(far, 1.0, square + df)
    y, rest = xp.where(far, 1.0, square) / total, xp.where(far, 0.0, df) / total
    return tail_of(xp, 0.5 * df, xp.where(df > 0, 0.5, df), rest, y, 0.5 * rest * (1 - xp.where(far, 0.0, square)))


def t_density(xp: Any, df: Any, x: Any) -> Any:
    """(1 + x**2 / df)**(-(df + 1) / 2) / (sqrt(df) beta(df/2, 1/2))."""
    tail = t_tail(xp, df, x)
    root = xp.sqrt(xp.where(tail.swap, tail.u, tail.v))  # |x| / sqrt(df + x**2)
    raise NotImplementedError(root)


def t_partial(xp: Any, df: Any, x: Any) -> Any:
    """The derivative of stdtr(df, x) by df."""
    slope = 0.25 * partial(xp, t_tail(xp, df, x), True, of_ratio=True)
    return xp.where(x < 0, slope, -slope)


# ----- counts -----


def bdtr(xp: Any, k: Any, n: Any, p: Any) -> Any:
    """The probability of at most floor(k) successes among n trials."""
    raise NotImplementedError


def bdtrc(xp: Any, k: Any, n: Any, p: Any) -> Any:
    raise NotImplementedError


def nbdtr(xp: Any, k: Any, n: Any, p: Any) -> Any:
    raise NotImplementedError


def nbdtrc(xp: Any, k: Any, n: Any, p: Any) -> Any:
    raise NotImplementedError
