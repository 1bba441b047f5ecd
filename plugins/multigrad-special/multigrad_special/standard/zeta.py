"""The zeta functions of Riemann and Hurwitz, and polygamma of an array of orders.

Derivatives by the exponent are included. All use Euler-Maclaurin summation (DLMF 2.10.1, 25.11.5)
after a dozen terms. If the exponent is so large that the series of the rest does not converge, the
rest is negligible beside these terms.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from numbers import Integral
from typing import Any

from . import gamma_complex
from .common import MAX_ORDER
from .forms import elementwise, elementwise_or_complex
from .gamma import digamma, gammaln
from .gamma_series import BERNOULLI, cotangent, cotangent_derivative, hurwitz, is_odd, remainder

__all__ = ["hurwitz_zeta", "polygamma", "riemann_zeta", "zeta_derivative", "zetac"]

TERMS = 12
REFLECTED = -0.25
"""Below this exponent, a reflection formula is used. Just below 0, it would cancel at the pole."""
FAR = 30.0
"""If the exponent is this many times the first omitted number, the rest is 0 in any dtype."""
ROUNDS = [BERNOULLI[j - 1] / math.factorial(2 * j) for j in range(1, len(BERNOULLI) + 1)]


@elementwise
def hurwitz_zeta(xp: Any, x: Any, q: Any) -> Any:
    """The sum of (q + k)**-x over k = 0, 1, ....

    It is nan for x below 1, and for q below 0 unless x is an integer or q is a pole.
    """
    inside = (x > 1) & (x < math.inf)
    s = xp.where(inside, x, 2.0)
    pole = (q <= 0) & (q == xp.floor(q))
    below = (q < 0) & ~pole
    value = whole_line(xp, s, xp.where(pole, 1.0, q))
    value = xp.where(pole, math.inf, xp.where(below & (s != xp.round(s)), math.nan, value))
    value = xp.where(q == math.inf, 0.0, value)
    return xp.where(
        xp.isnan(q),
        q,
        xp.where(inside, value, xp.where(x == 1, math.inf * xp.ones_like(x), math.nan)),
    )


def zeta_derivative(xp: Any, m: int, x: Any, q: Any) -> Any:
    """The x-derivative of order m > 0 of the sum, continued to x >= -1/4; nan for q <= 0."""
    return _zeta_derivative(m)(xp, x, q)


def _zeta_derivative(m: int) -> Any:
    @elementwise
    def zeta_derivative(xp: Any, x: Any, q: Any) -> Any:
        inside = (x >= REFLECTED) & (x < math.inf) & (x != 1) & (q > 0) & (q < math.inf)
        value = summed(xp, xp.where(inside, x, 2.0), xp.where(inside, q, 1.0), m)
        pole = (x == 1) & (q > 0)
        return xp.where(
            inside,
            value,
            xp.where(
                pole,
                (-1) ** m * math.inf,
                xp.where((x > 1) & (q == math.inf), xp.zeros_like(q), math.nan),
            ),
        )

    return zeta_derivative


@elementwise
def riemann_zeta(xp: Any, x: Any) -> Any:
    """Riemann's zeta function; below -1/4 by its functional equation (DLMF 25.4.2)."""
    below = x < REFLECTED
    right = xp.where(below, 1 - x, x)
    value = summed(xp, xp.where(right == 1, 2.0, right), xp.ones_like(x))
    value = xp.where(right == 1, math.inf, value)
    y = xp.where(below & (x > -math.inf), right, 2.0)
    half = 0.5 * x - xp.round(0.5 * x)
    sine = xp.where(is_odd(xp, 0.5 * x), -xp.sin(math.pi * half), xp.sin(math.pi * half))
    value = xp.where(below, 2 * reflected_gamma(xp, y) * sine * value, value)
    return xp.where(x == -math.inf, math.nan, value)


@elementwise
def zetac(xp: Any, x: Any) -> Any:
    """Riemann's zeta function less 1."""
    right = xp.where((x < 0) | (x == 1), 2.0, x)
    return xp.where(
        x < 0,
        riemann_zeta(xp, x) - 1,
        xp.where(x == 1, math.inf, summed(xp, right, 2 * xp.ones_like(x))),
    )


def reflected_gamma(xp: Any, y: Any) -> Any:
    """gamma(y) / (2 pi)**y for y >= 1/2, which overflows later than gamma.

    It uses Stirling's formula, reached by recurrence (DLMF 5.11.3).
    """
    small = y < 10
    product = xp.where(small, y / (2 * math.pi), 1.0)
    for k in range(1, 10):
        product = product * xp.where(small, (y + k) / (2 * math.pi), 1.0)
    a = xp.where(small, y + 10, y)
    rest = 0.0
    for j in range(8, 0, -1):
        rest = rest / (a * a) + BERNOULLI[j - 1] / (2 * j * (2 * j - 1))
    half = (a / (2 * math.pi * math.e)) ** (0.5 * a - 0.25)
    return half * xp.exp(rest / a - 0.5) * half / product


def whole_line(xp: Any, s: Any, q: Any, scale: Any = 1.0) -> Any:
    """The sum for positive q; for negative q and integer s, a difference of two sums.

    It is the sum over all integers minus the omitted terms. With h the distance of q from the
    integers, this is zeta(s, h) + (-1)**s zeta(s, 1 - h), up to its sign, minus (-1)**s zeta(s, 1 -
    q).
    """
    below = q < 0
    positive = summed(xp, s, xp.where(below, 1 - q, q), 0, scale)
    d = xp.where(below, q - xp.round(q), 0.25)
    sign = xp.where(is_odd(xp, s), -1.0, xp.ones_like(s))
    whole = summed(xp, s, xp.abs(d), 0, scale) + sign * summed(xp, s, 1 - xp.abs(d), 0, scale)
    return xp.where(below, xp.where(d < 0, sign * whole, whole) - sign * positive, positive)


def summed(xp: Any, s: Any, q: Any, m: int = 0, scale: Any = 1.0) -> Any:
    """`scale**s` times the derivative of order m by s of the sum; q > 0, s >= -1/4, s != 1.

    Every quantity is a polynomial in e of order m, for s + e: (q + k)**-(s + e) is (q + k)**-s
    times exp(-e log(q + k)).
    """
    a = q + TERMS
    inner = [ROUNDS[-1] * xp.ones_like(a)] + [xp.zeros_like(a)] * m
    for j in range(len(ROUNDS) - 2, -1, -1):
        for i in (2 * j + 2, 2 * j + 1):
            inner = _times_linear(inner, xp.clip((s + i) / a, None, FAR), 1 / a)
        inner[0] = inner[0] + ROUNDS[j]
    inner = _times_linear(inner, xp.clip(s / a, None, FAR), 1 / a)
    inner[0] = inner[0] + 0.5
    inverse = 1 / (s - 1)
    pole = a * inverse
    for i in range(m + 1):
        inner[i] = inner[i] + pole
        pole = -pole * inverse
    # a power that is larger by 1 / a is less likely to underflow
    inner = [part * (scale / a) for part in inner]
    power = (a / scale) ** (1 - s)
    if m == 0:
        total = power * inner[0]
        for k in reversed(range(TERMS)):
            total = total + ((q + k) / scale) ** -s
        return total
    logarithm = -xp.log(a)
    total = (
        power
        * sum(inner[i] * logarithm ** (m - i) * (1 / math.factorial(m - i)) for i in range(m + 1))
        * math.factorial(m)
    )
    for k in reversed(range(TERMS)):
        total = total + ((q + k) / scale) ** -s * (-xp.log(q + k)) ** m
    return total


def _times_linear(series: list[Any], constant: Any, slope: Any) -> list[Any]:
    """A polynomial times `constant + slope e`, without the highest power."""
    return [
        series[0] * constant,
        *(upper * constant + lower * slope for lower, upper in pairwise(series)),
    ]


# ----- polygamma -----


def polygamma(xp: Any, n: Any, x: Any) -> Any:
    """The n-th derivative of digamma, for one order or an array of orders.

    It is nan unless the orders are nonnegative integers. In an array of orders, and from order 100
    on, values in float32 lose digits: their relative error grows with n.
    """
    if isinstance(n, Integral) and 0 <= int(n) <= MAX_ORDER:
        return digamma(xp, x) if n == 0 else _of_order(int(n))(xp, x)
    if hasattr(x, "dtype") and xp.isdtype(x.dtype, "complex floating"):
        raise TypeError(
            f"special.polygamma: the order of a complex array is one int from 0 to {MAX_ORDER}, "
            f"not {n!r}."
        )
    return _of_orders(xp, n, x)


@lru_cache
def _of_order(n: int) -> Any:
    """Below 0 by the n-th derivative of the reflection formula.

    Abramowitz and Stegun, 6.4.7 and 6.4.10.
    """

    @elementwise_or_complex
    def polygamma(xp: Any, x: Any) -> Any:
        if xp.isdtype(x.dtype, "complex floating"):
            return gamma_complex.polygamma(xp, n, x)
        value = hurwitz(
            n + 1, xp.where(x < 0, 1 - x, xp.abs(x)), math.factorial(n) ** (1 / (n + 1))
        )
        other = math.pi ** (n + 1) * cotangent_derivative(n, cotangent(xp, remainder(xp, x, 0.0)))
        return (
            xp.where(x < 0, other - value, value)
            if n % 2
            else -xp.where(x < 0, other + value, value)
        )

    return polygamma


@elementwise
def _of_orders(xp: Any, n: Any, x: Any) -> Any:
    """(-1)**(n + 1) n! zeta(n + 1, x) (DLMF 25.11.12), with the factorial inside the powers.

    So no factor overflows unless the product does.
    """
    known = (n >= 1) & (n == xp.round(n)) & (n < math.inf)
    s = xp.where(known, n, 1.0) + 1
    scale = xp.exp(gammaln(xp, s) / s)
    pole = (x <= 0) & (x == xp.floor(x))
    value = xp.where(
        x == math.inf,
        0.0,
        whole_line(xp, s, xp.where(pole | (xp.abs(x) == math.inf), 1.0, x), scale),
    )
    value = xp.where(pole, math.inf, xp.where(x == -math.inf, math.nan, value))
    value = xp.where(is_odd(xp, n), value, -value)
    return xp.where(n == 0, digamma(xp, x), xp.where(known, value, math.nan))
