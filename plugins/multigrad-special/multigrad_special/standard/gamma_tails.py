"""The density and the tail integral on which the incomplete gamma functions are based.

With t = x exp(v), the density t**(a-1) exp(-t) / gamma(a) times dt is density(x) x exp(E) dv, where
E = -x (exp(v) - 1 - v) - (x - a) v. So P(a, x) is density(x) x times the integral of exp(E) over
all v < 0, and Q(a, x) the same over all v > 0. A double exponential rule with a hundred nodes
computes the integral over the smaller tail, whatever the parameters. The integrand is positive and
falls off from its end, and the nodes are dense there. The nodes have their own axis, which
temporarily takes a hundred times the memory of the arguments.

The derivative with respect to a is an integral of the same kind. Since log t has the mean
digamma(a), the derivative of Q is the integral of (log t - digamma(a)) times the density over the
upper tail, and also that of (digamma(a) - log t) over the lower tail. In the smaller tail that
factor is positive except for a strip next to the mean, so no digits cancel.

All functions here are differentiable, since the rules use them. The rules pass `gamma` and
`digamma` with their own derivatives.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from .common import horner
from .gamma_series import BERNOULLI, EULER, hurwitz, stirling
from .quadrature import rule

__all__: list[str] = []

FAR = 1100.0
"""Where exp(-x) x**10 is 0 in float64."""
STEEP = 12.0
"""The largest v: x exp(v) is so large there that nothing is left of the integrand."""


class Tail(NamedTuple):
    """The integrals over the smaller tail.

    They are the masks of where it is the upper tail, and of where the lower tail was computed for a
    + 1; and the integrals of exp(E) and |v| exp(E).
    """

    upper: Any
    raised: Any
    shape: Any  # a or a + 1
    whole: Any
    moment: Any


def tail(xp: Any, a: Any, x: Any) -> Tail:
    """The integrals, for a and x that are positive and finite.

    For a below 1 the lower tail, which would reach far down, is taken for a + 1.
    """
    small = a < 1
    b = xp.where(small, a + 1, a)
    upper = x >= b + 0.25
    b = xp.where(upper, a, b)
    slope = x - b
    width = 1 / (
        xp.sqrt(xp.where(upper, x, b)) + xp.abs(xp.where((slope > 0) == upper, slope, 0.0))
    )
    w, weights = rule(xp, width)
    v = xp.where(upper[..., None], xp.clip(w, None, STEEP), -w)
    terms = weights * xp.exp(-x[..., None] * _expm1_rest(xp, v) - slope[..., None] * v)
    return Tail(upper, small & ~upper, b, xp.sum(terms, axis=-1), xp.sum(terms * w, axis=-1))


def ratio(xp: Any, a: Any, x: Any, t: Tail) -> Any:
    """The smaller tail divided by x times the density.

    P(a) / (x density(a)) is (1 + x P(a + 1) / (x density(a + 1))) / a.
    """
    return xp.where(t.raised, (1 + x * t.whole) / xp.where(t.raised, a, 1.0), t.whole)


def slope_by_shape(xp: Any, a: Any, x: Any, digamma: Any) -> Any:
    """dQ / da divided by x times the density, which is d log(x) / da at a constant P."""
    t = tail(xp, a, x)
    distance = _digamma_less_log(xp, t.shape, x, digamma)
    inside = xp.where(t.upper, -distance, distance) * t.whole + t.moment
    return xp.where(t.raised, (x * inside + distance) / xp.where(t.raised, a, 1.0), inside)


def density(xp: Any, a: Any, x: Any, gamma: Any) -> Any:
    """x**(a-1) exp(-x) / gamma(a) for a > 0 and x >= 0, both finite.

    From a = 10 on by Stirling's formula, whose main terms do not cancel but meet exactly; halves of
    exponentials, lest they underflow.
    """
    small = a < 10
    b, y = xp.where(small, a, 1.0), xp.where(small, xp.clip(x, None, FAR), 1.0)
    half = xp.exp(-0.5 * y)
    near = y ** (b - 1) * half / gamma(b) * half
    b = xp.where(small, 10.0, a)
    y = xp.where(small | (x == 0), b, x)
    half = xp.exp(0.5 * (b * _log_rest(xp, b, y) - stirling(b)))
    far = half * xp.sqrt(b / (2 * math.pi)) / y * half
    return xp.where(small, near, xp.where(x == 0, 0.0, far))


def log_scale(xp: Any, a: Any, x: Any, log_gamma_above: Any) -> Any:
    """The logarithm of x times the density; `log_gamma_above` is log gamma(a + 1)."""
    small = a < 10
    b, y = xp.where(small, a, 1.0), xp.where(small, x, 1.0)
    near = b * xp.log(y) - y - (xp.where(small, log_gamma_above, 0.0) - xp.log(b))
    b, y = xp.where(small, 10.0, a), xp.where(small, 10.0, x)
    return xp.where(
        small, near, b * _log_rest(xp, b, y) - stirling(b) + 0.5 * xp.log(b / (2 * math.pi))
    )


def log_gamma_1p(xp: Any, a: Any) -> Any:
    """log gamma(1 + a) for a from 0 to 1, accurate near 0; that of 1 elsewhere.

    About 2, d (1 - Euler's constant) + sum of (zeta(k) - 1) (-d)**k / k: Abramowitz and Stegun,
    6.1.33.
    """
    a = xp.where(a < 1, a, 0.0)
    near = a < 0.5
    d = xp.where(near, a, a - 1)
    return d * horner(_coefficients(), d) - xp.where(near, xp.log1p(a), 0.0)


@lru_cache
def _coefficients() -> list[float]:
    return [1 - EULER, *((-1) ** k * hurwitz(k, 2.0) / k for k in range(2, 28))]


def _digamma_less_log(xp: Any, a: Any, x: Any, digamma: Any) -> Any:
    """digamma(a) - log(x).

    For large a, where log(x) may be near, it uses the asymptotic series of digamma(a) - log(a)
    (Abramowitz and Stegun, 6.3.18).
    """
    small = a < 10
    b = xp.where(small, 1.0, a)
    inverse = 1 / xp.where(small, 10.0, a)
    square = inverse * inverse
    series = -0.5 * inverse - square * horner(
        [number / (2 * j) for j, number in enumerate(BERNOULLI[:8], 1)], square
    )
    near = ~small & (xp.abs(x - b) < 0.5 * b)
    growth = xp.where(
        near, xp.log1p(xp.where(near, (x - b) / b, 0.0)), xp.log(xp.where(near, 1.0, x / b))
    )
    return xp.where(small, digamma(xp.where(small, a, 1.0)), series) - growth


def _log_rest(xp: Any, a: Any, x: Any) -> Any:
    """log(x/a) - (x - a)/a, exact to its last digits where x is near a.

    It is twice the series of artanh in v = d / (2 + d), where d = (x - a)/a.
    """
    d = (x - a) / a
    near = (d > -0.6) & (d < 1.5)
    u = xp.where(near, d, 0.0)
    v = u / (2 + u)
    square = v * v
    series = 2 * v * square * horner([1 / (2 * k + 3) for k in range(22)], square) - u * v
    return xp.where(near, series, xp.log(xp.where(near, 1.0, x / a)) - xp.where(near, 0.0, d))


def _expm1_rest(xp: Any, v: Any) -> Any:
    """exp(v) - 1 - v, to its last digits near 0."""
    near = xp.abs(v) < 0.25
    u = xp.where(near, v, 0.0)
    return xp.where(
        near, u * u * horner([1 / math.factorial(k) for k in range(2, 13)], u), xp.expm1(v) - v
    )
