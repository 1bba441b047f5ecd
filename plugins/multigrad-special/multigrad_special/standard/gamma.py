"""The gamma function, its logarithm, the derivatives of that, and the beta function."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from .common import arrays, check, horner, order

__all__ = ["beta", "betaln", "digamma", "gamma", "gammaln", "hurwitz", "polygamma"]

EULER = 0.5772156649015329
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
"""The Bernoulli numbers B2, B4, ..., B20."""


def gamma(xp: Any, x: Any) -> Any:
    """The gamma function: Stirling's formula, reached by recurrence from below 10; reflection below 1/2; nan at negative integers.

    The power is taken of the argument itself, in two halves, so that no logarithm is rounded and nothing overflows too early.
    """
    check(xp, "gamma", x)
    y = xp.where(x < 0.5, 1 - x, x)
    small = y < 10
    product = xp.where(small, y, 1.0)
    for k in range(1, 10):
        product = product * xp.where(small, y + k, 1.0)
    a = xp.where(small, y + 10, y)
    half = a ** (0.5 * a - 0.25)
    value = half * (math.sqrt(2 * math.pi) * xp.exp(-a + stirling(a))) * half / product
    r = _remainder(xp, x, 0.5)
    sine = xp.where(_is_odd(xp, x), -xp.sin(math.pi * r), xp.sin(math.pi * r))
    below = xp.where((r == 0) & (x != 0), math.nan, math.pi / (xp.where(x == 0, x, sine) * value))
    return xp.where(x < 0.5, below, xp.where(x == math.inf, x, value))


def beta(xp: Any, a: Any, b: Any) -> Any:
    """gamma(a) gamma(b) / gamma(a + b), by their logarithms."""
    a, b = arrays(xp, "beta", a, b)
    sign = _gamma_sign(xp, a) * _gamma_sign(xp, b) * _gamma_sign(xp, a + b)
    return sign * xp.exp(betaln(xp, a, b))


def betaln(xp: Any, a: Any, b: Any) -> Any:
    """log |beta(a, b)|. Where an argument is 10 or more, only the rests of Stirling's formula are subtracted, so nothing cancels."""
    a, b = arrays(xp, "betaln", a, b)
    p, q = xp.where(a < b, a, b), xp.where(a < b, b, a)
    far = (q >= 10) & (p > 0)
    both = far & (p >= 10)
    near_p, near_q = xp.where(far, 1.0, p), xp.where(far, 1.0, q)
    near = gammaln(xp, near_p) + gammaln(xp, near_q) - gammaln(xp, near_p + near_q)
    p, q = xp.where(far, p, 1.0), xp.where(far, q, 10.0)
    rest = stirling(q) - stirling(p + q)
    tail = (q - 0.5) * xp.log1p(-p / (p + q))
    one = gammaln(xp, p) + rest + p - p * xp.log(p + q) + tail
    large = xp.where(both, p, 10.0)
    two = (large - 0.5) * xp.log(large / (large + q)) + rest + stirling(large) + 0.5 * math.log(2 * math.pi) + q * xp.log1p(-large / (large + q))
    two = two - 0.5 * xp.log(q)
    return xp.where(both, two, xp.where(far, one, near))


def gammaln(xp: Any, x: Any) -> Any:
    """log |gamma(x)|: a series about its zeros 1 and 2, Stirling's formula above them, reflection below 1/2."""
    check(xp, "gammaln", x)
    reflected = math.log(math.pi) - xp.log(xp.abs(xp.sin(math.pi * _remainder(xp, x, 0.5))))
    y = xp.where(x < 0.5, 1 - x, x)
    value = xp.where(y < 3, _gammaln_near(xp, y), _gammaln_far(xp, y))
    return xp.where(x == -math.inf, math.inf, xp.where(x < 0.5, reflected - value, value))


def digamma(xp: Any, x: Any) -> Any:
    """The logarithmic derivative of gamma: shifted by recurrence, then an asymptotic series; nan at negative integers.

    Abramowitz and Stegun, 6.3.5, 6.3.7 and 6.3.18.
    """
    check(xp, "digamma", x)
    y = xp.where(x < 0, 1 - x, x)
    shift = sum(1 / (y + k) for k in range(1, 10)) + 1 / y  # not y + 0: it would lose the sign of -0.0
    a = y + 10
    square = 1 / (a * a)
    series = horner([-b / (2 * j) for j, b in enumerate(BERNOULLI[:8], 1)], square) * square
    value = xp.log(a) - 0.5 / a + series - shift
    r = _remainder(xp, x, 0.0)
    return xp.where(x < 0, xp.where(r == 0, math.nan, value - math.pi * _cotangent(xp, r)), value)


def polygamma(xp: Any, n: int, x: Any) -> Any:
    """The n-th derivative of digamma: Hurwitz' zeta function, below 0 by the n-th derivative of the reflection formula.

    Abramowitz and Stegun, 6.4.7 and 6.4.10.
    """
    check(xp, "polygamma", x)
    n = order(n)
    if n == 0:
        return digamma(xp, x)
    value = hurwitz(n + 1, xp.where(x < 0, 1 - x, xp.abs(x)), math.factorial(n) ** (1 / (n + 1)))
    other = math.pi ** (n + 1) * _cotangent_derivative(n, _cotangent(xp, _remainder(xp, x, 0.0)))
    return xp.where(x < 0, other - value, value) if n % 2 else -xp.where(x < 0, other + value, value)


def hurwitz(s: int, x: Any, scale: float = 1.0) -> Any:
    """`scale**s` times the sum of (x + k)**-s over k = 0, 1, ...: of an array, or of a Python number, x >= 0.

    Euler-Maclaurin summation; the more terms are summed as such the larger s, without which the rest would not converge.
    Scaled in this way, neither a factorial overflows nor a power underflows where their product does not.
    """
    steps = 10 + s
    a = x + steps
    factors = [s / 2 * BERNOULLI[0]]
    rising = s / 2
    for j, b in enumerate(BERNOULLI[1:], 2):
        rising *= (s + 2 * j - 3) * (s + 2 * j - 2) / ((2 * j - 1) * (2 * j))
        factors.append(rising * b)
    total = (a / scale) ** -s * (0.5 + horner(factors, 1 / (a * a)) / a) + scale * (a / scale) ** (1 - s) / (s - 1)
    for k in reversed(range(steps)):
        total = total + ((x + k) / scale) ** -s
    return total


def _remainder(xp: Any, x: Any, below: float) -> Any:
    """x up to an integer, at most 1/2, for the reflection of what is `below`; some harmless value for the others."""
    return xp.where(x < below, x - xp.round(x), 0.25)


def _cotangent(xp: Any, r: Any) -> Any:
    """cot(pi r) for |r| <= 1/2, to its last digits also about 1/2, where it is 0 and its factor may be huge."""
    d = xp.abs(r)
    value = xp.where(d > 0.25, xp.tan(math.pi * (0.5 - d)), 1 / xp.tan(math.pi * d))
    return xp.where(r < 0, -value, value)


def _gammaln_near(xp: Any, x: Any) -> Any:
    """log gamma for 1/2 <= x <= 3, as accurate near its zeros 1 and 2 as elsewhere.

    About 2, d (1 - Euler's constant) + sum of (zeta(k) - 1) (-d)**k / k: Abramowitz and Stegun, 6.1.33.
    """
    d = xp.clip(xp.where(x < 1.5, x - 1, x - 2), -0.5, 1.0)
    value = d * horner(_gammaln_coefficients(), d)
    return xp.where(x < 1.5, value - xp.log1p(d), value)


@lru_cache
def _gammaln_coefficients() -> list[float]:
    return [1 - EULER, *((-1) ** k * hurwitz(k, 2.0) / k for k in range(2, 56))]


def _gammaln_far(xp: Any, x: Any) -> Any:
    """log gamma for x >= 3: Stirling's formula from 10 on, below by recurrence. Abramowitz and Stegun, 6.1.40."""
    small = x < 10
    product = xp.where(small, x, 1.0)
    for k in range(1, 7):
        product = product * xp.where(small, x + k, 1.0)
    a = xp.where(small, x + 7, x)
    return (a - 0.5) * (xp.log(a) - 1) + (math.log(2 * math.pi) - 1) / 2 + stirling(a) - xp.log(product)


def _cotangent_derivative(n: int, c: Any) -> Any:
    """(-1)**n times the n-th derivative of cot where cot is c: a polynomial in c, since cot' = -(1 + cot**2)."""
    polynomial = [0, 1]
    for _ in range(n):
        slope = [k * p for k, p in enumerate(polynomial)][1:]
        polynomial = [p + q for p, q in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    # Every other coefficient is 0 and the rest are positive: in powers of c**2 nothing cancels.
    even = horner([float(p) for p in polynomial[(n + 1) % 2 :: 2]], c * c)
    return even if n % 2 else even * c


def stirling(x: Any) -> Any:
    """What is left of Stirling's formula for log gamma after its main terms, for x >= 10. Abramowitz and Stegun, 6.1.40."""
    return horner([b / (2 * j * (2 * j - 1)) for j, b in enumerate(BERNOULLI[:8], 1)], 1 / (x * x)) / x


def _is_odd(xp: Any, x: Any) -> Any:
    """Whether the integer next to x is odd."""
    nearest = xp.round(x)
    return nearest != 2 * xp.round(nearest / 2)


def _gamma_sign(xp: Any, x: Any) -> Any:
    """The sign of the gamma function: that of 1 / gamma where x is an integer."""
    below = xp.floor(x)
    return xp.where((x < 0) & (below != 2 * xp.floor(below / 2)), -xp.ones_like(x), xp.ones_like(x))
