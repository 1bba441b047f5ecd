"""The incomplete gamma functions, their inverses, and the distributions based on them.

`gamma_tails` has their integrals. The value and the smaller tail have 13 digits in float64,
whichever of them is requested.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from .common import horner
from .forms import elementwise
from .gamma import gamma, gammaln
from .gamma_tails import density, log_gamma_1p, log_scale, ratio, tail

__all__ = [
    "chdtri",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gdtr",
    "gdtrc",
    "pdtr",
    "pdtrc",
    "pdtri",
]

LOW = -40.0
"""Where log(x) is lower, P(a, x) is x**a / gamma(a + 1)."""
STEPS = 3


@elementwise
def gammainc(xp: Any, a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x)."""
    return _lower(xp, a, x)


@elementwise
def gammaincc(xp: Any, a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    It is accurate where it is small.
    """
    return _upper(xp, a, x)


@elementwise
def gammaincinv(xp: Any, a: Any, y: Any) -> Any:
    """The inverse of gammainc: the x for which it is y."""
    return _inverse(xp, a, y, 1 - y)


@elementwise
def gammainccinv(xp: Any, a: Any, y: Any) -> Any:
    """The inverse of gammaincc: the x for which it is y."""
    return _inverse(xp, a, 1 - y, y)


@elementwise
def gdtr(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The distribution function of the gamma distribution of rate a and shape b."""
    return _lower(xp, b, _scaled(xp, a, x))


@elementwise
def gdtrc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """1 - gdtr(a, b, x), accurate where it is small."""
    return _upper(xp, b, _scaled(xp, a, x))


@elementwise
def chdtri(xp: Any, df: Any, y: Any) -> Any:
    """The inverse of chdtrc: the x for which it is y."""
    return 2 * _inverse(xp, 0.5 * df, 1 - y, y)


@elementwise
def pdtr(xp: Any, k: Any, m: Any) -> Any:
    """The distribution function of the Poisson distribution of mean m, at k rounded down."""
    return xp.where(
        ~(k < 0) & (m == 0), 1.0, _upper(xp, xp.where(k < 0, math.nan, xp.floor(k) + 1), m)
    )


@elementwise
def pdtrc(xp: Any, k: Any, m: Any) -> Any:
    """1 - pdtr(k, m), accurate where it is small."""
    return xp.where(
        ~(k < 0) & (m == 0), 0.0, _lower(xp, xp.where(k < 0, math.nan, xp.floor(k) + 1), m)
    )


@elementwise
def pdtri(xp: Any, k: Any, y: Any) -> Any:
    """The mean m for which pdtr(k, m) is y; k is truncated to an integer."""
    return _inverse(
        xp, xp.where(k > -1, xp.trunc(k) + 1, math.nan), 1 - y, xp.where(y < 1, y, math.nan)
    )


def _scaled(xp: Any, a: Any, x: Any) -> Any:
    return xp.where(x < 0, math.nan, a * x)


def _lower(xp: Any, a: Any, x: Any) -> Any:
    inside, b, y = _within(xp, a, x)
    value = xp.where(inside, _tails(xp, b, y)[0], math.nan)
    return xp.where(_nothing(xp, a, x), 0.0, xp.where(_nothing(xp, x, a), 1.0, value))


def _upper(xp: Any, a: Any, x: Any) -> Any:
    inside, b, y = _within(xp, a, x)
    value = xp.where(inside, _tails(xp, b, y)[1], math.nan)
    return xp.where(_nothing(xp, a, x), 1.0, xp.where(_nothing(xp, x, a), 0.0, value))


def _nothing(xp: Any, a: Any, x: Any) -> Any:
    """Whether P is 0; with a and x exchanged, whether Q is."""
    return (a > 0) & (x == 0) | (a == math.inf) & (x >= 0) & (x < math.inf)


def _within(xp: Any, a: Any, x: Any) -> tuple[Any, Any, Any]:
    """The mask where both `a` and `x` are positive and finite, and both with 1 in other places."""
    inside = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    least = float(xp.finfo(a.dtype).smallest_normal)
    return inside, xp.where(inside, xp.clip(a, least, None), 1.0), xp.where(inside, x, 1.0)


def _tails(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """P and Q. Where a is below 1 and P may be near 1, Q is computed by a separate sum."""
    t = tail(xp, a, x)
    value = x * density(xp, a, x, partial(gamma, xp)) * ratio(xp, a, x, t)
    rest = xp.where(t.raised, _upper_of_small(xp, t.raised, a, x, log_gamma_1p(xp, a)), 1 - value)
    return xp.where(t.upper, 1 - value, value), xp.where(t.upper, value, rest)


def _upper_of_small(xp: Any, chosen: Any, a: Any, x: Any, log_gamma_above: Any) -> Any:
    """Q for a < 1 and x < 9/4. Abramowitz and Stegun, 6.5.29.

    It is 1 minus x**a / gamma(a + 1) times 1 + the sum of a (-x)**n / (n! (a + n)).
    """
    a, x = xp.where(chosen, a, 0.5), xp.where(chosen, x, 1.0)
    logarithm = a * xp.log(x) - xp.where(chosen, log_gamma_above, 0.0)
    n, signs = (xp.asarray(numbers, dtype=a.dtype, device=xp.device_of(a)) for numbers in _TERMS)
    total = xp.sum(signs * x[..., None] ** n / (a[..., None] + n), axis=-1)
    return -xp.expm1(logarithm) - xp.exp(logarithm) * a * total


_TERMS = [float(n) for n in range(1, 26)], [(-1) ** n / math.factorial(n) for n in range(1, 26)]


# ----- inverses -----


def _inverse(xp: Any, a: Any, p: Any, q: Any) -> Any:
    """The x for which P is p and Q is q, one of which was given.

    It is nan outside the domain, and 0 and inf at its ends.
    """
    inside = (a > 0) & (a < math.inf) & (p > 0) & (q > 0)
    least = float(xp.finfo(a.dtype).smallest_normal)
    value = _quantile(
        xp,
        xp.where(inside, xp.clip(a, least, None), 1.0),
        xp.where(inside, p, 0.5),
        xp.where(inside, q, 0.5),
    )
    known = (a >= 0) & (p >= 0) & (q >= 0)
    return xp.where(
        inside,
        value,
        xp.where(
            known & (p == 0), 0.0, xp.where(known & (q == 0), math.inf, xp.full_like(a, math.nan))
        ),
    )


def _quantile(xp: Any, a: Any, p: Any, q: Any) -> Any:
    """Halley's method for the logarithm of the smaller of p and q as a function of log(x).

    That function is concave, since the density of log(x) is log-concave; so there is no start from
    which the steps lead away.
    """
    lower = p <= q
    chance = xp.where(lower, p, q)
    log_gamma_above = xp.where(a < 1, log_gamma_1p(xp, a), gammaln(xp, xp.where(a < 1, 2.0, a + 1)))
    low = (xp.where(lower, xp.log(p), xp.log1p(-q)) + log_gamma_above) / a
    x = _start(xp, a, lower, chance, low, log_gamma_above)
    sign = xp.where(lower, xp.ones_like(a), -1.0)
    for _ in range(STEPS):
        logarithm, over = _log_tail(xp, a, x, lower, log_gamma_above)
        excess = logarithm - xp.log(chance)
        step = -sign * excess * over / (1 + 0.5 * excess * (1 - sign * over * (a - x)))
        x = x * xp.exp(xp.clip(step, -3.0, 3.0))
    return xp.where(low < LOW, xp.exp(low), x)


def _log_tail(xp: Any, a: Any, x: Any, lower: Any, log_gamma_above: Any) -> tuple[Any, Any]:
    """The logarithm of P or Q, as `lower` says, and that tail over x times the density.

    The smaller tail may be too small to be a number.
    """
    t = tail(xp, a, x)
    over = ratio(xp, a, x, t)
    scale = log_scale(xp, a, x, log_gamma_above)
    logarithm = scale + xp.log(over)
    other = -xp.expm1(xp.clip(logarithm, None, 0.0))
    other = xp.where(t.raised, _upper_of_small(xp, t.raised, a, x, log_gamma_above), other)
    same = t.upper != lower
    # Where the other tail was computed, this one is no small number.
    other = xp.where(same, 1.0, xp.clip(other, 1e-30, None))
    return xp.where(same, logarithm, xp.log(other)), xp.where(
        same, over, other / xp.exp(xp.where(same, 0.0, scale))
    )


def _start(xp: Any, a: Any, lower: Any, chance: Any, low: Any, log_gamma_above: Any) -> Any:
    """A start: the larger of the cube of E.

    B. Wilson and M. M. Hilferty, 1931, and of what x is near 0; that of a far tail for small a.
    """
    logarithm = xp.log(chance)
    r = xp.sqrt(-2 * logarithm)
    # Of the normal distribution, Abramowitz and Stegun, 26.2.23.
    normal = r - horner([2.515517, 0.802853, 0.010328], r) / horner(
        [1.0, 1.432788, 0.189269, 0.001308], r
    )
    normal = xp.where(lower, -normal, normal)
    root = xp.clip(1 - 1 / (9 * a) + normal / (3 * xp.sqrt(a)), 0.0, None)
    cube = a * root * root * root
    series = xp.exp(xp.clip(low, LOW, 80.0))
    small = a < 1.5
    b = xp.where(small, a, 1.0)
    y = xp.clip(xp.log(b) - logarithm - xp.where(small, log_gamma_above, 0.0), 1.0, None)
    far = y
    for _ in range(2):
        far = xp.clip(y + (b - 1) * xp.log(far), 0.5, None)
    below = xp.where((a > 0.5) & (cube > series), cube, series)
    above = xp.where(small & (chance < 0.1 * a), far, xp.where(a < 1, series, cube))
    return xp.where(lower, below, above)
