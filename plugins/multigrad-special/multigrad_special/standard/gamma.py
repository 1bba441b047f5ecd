"""The gamma function, its logarithm, its reciprocal and digamma, and functions based on it.

These are the beta function, Pochhammer's symbol and the binomial coefficients.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from . import gamma_complex
from .common import horner
from .forms import elementwise, elementwise_or_complex
from .gamma_series import BERNOULLI, cotangent, gammaln_coefficients, hurwitz, is_odd, remainder
from .gamma_series import stirling as stirling

__all__ = [
    "beta",
    "betaln",
    "binom",
    "digamma",
    "gamma",
    "gammaln",
    "gammasgn",
    "loggamma",
    "poch",
    "rgamma",
]

NEAR_ROOTS = (
    (1.461639404296875, 7.024627389718043e-06, 0.3),
    (-0.50408935546875, -5.674276041949296e-05, 0.1),
)
"""Constants of digamma near its zeros about 0.

They are two numbers next to the zeros, which float32 holds exactly; the values of digamma there;
and the range of the series about them.
"""


@elementwise_or_complex
def gamma(xp: Any, x: Any) -> Any:
    """The gamma function; nan at negative integers.

    It uses Stirling's formula, reached by recurrence from below 10, and reflection below 1/2. The
    power is computed from the argument itself, in two halves, so that no logarithm is rounded and
    nothing overflows too early.
    """
    if xp.isdtype(x.dtype, "complex floating"):
        return gamma_complex.gamma(xp, x)
    y = xp.where(x < 0.5, 1 - x, x)
    small = y < 10
    product = xp.where(small, y, 1.0)
    for k in range(1, 10):
        product = product * xp.where(small, y + k, 1.0)
    a = xp.where(small, y + 10, y)
    half = a ** (0.5 * a - 0.25)
    value = half * (math.sqrt(2 * math.pi) * xp.exp(-a + stirling(a))) * half / product
    r = remainder(xp, x, 0.5)
    sine = xp.where(is_odd(xp, x), -xp.sin(math.pi * r), xp.sin(math.pi * r))
    below = xp.where((r == 0) & (x != 0), math.nan, math.pi / (xp.where(x == 0, x, sine) * value))
    return xp.where(x < 0.5, below, xp.where(x == math.inf, x, value))


@elementwise
def beta(xp: Any, a: Any, b: Any) -> Any:
    """gamma(a) gamma(b) / gamma(a + b), by their logarithms."""
    sign = _gamma_sign(xp, a) * _gamma_sign(xp, b) * _gamma_sign(xp, a + b)
    return sign * xp.exp(betaln(xp, a, b))


@elementwise
def betaln(xp: Any, a: Any, b: Any) -> Any:
    """log |beta(a, b)|.

    Where an argument is 10 or more, the main terms of Stirling's formula are combined, and only its
    remainders are subtracted, so nothing cancels.
    """
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
    two = (
        (large - 0.5) * xp.log(large / (large + q))
        + rest
        + stirling(large)
        + 0.5 * math.log(2 * math.pi)
        + q * xp.log1p(-large / (large + q))
    )
    two = two - 0.5 * xp.log(q)
    return xp.where(both, two, xp.where(far, one, near))


@elementwise
def gammaln(xp: Any, x: Any) -> Any:
    """log |gamma(x)|.

    It uses a series about its zeros 1 and 2, Stirling's formula above them, and reflection below
    1/2.
    """
    reflected = math.log(math.pi) - xp.log(xp.abs(xp.sin(math.pi * remainder(xp, x, 0.5))))
    y = xp.where(x < 0.5, 1 - x, x)
    value = xp.where(y < 3, _gammaln_near(xp, y), _gammaln_far(xp, y))
    return xp.where(x == -math.inf, math.inf, xp.where(x < 0.5, reflected - value, value))


@elementwise_or_complex
def digamma(xp: Any, x: Any) -> Any:
    """The logarithmic derivative of gamma; nan at negative integers.

    It is shifted by recurrence, then an asymptotic series is used. Abramowitz and Stegun, 6.3.5,
    6.3.7 and 6.3.18.
    """
    if xp.isdtype(x.dtype, "complex floating"):
        return gamma_complex.digamma(xp, x)
    y = xp.where(x < 0, 1 - x, x)
    # not y + 0: it would lose the sign of -0.0
    shift = sum(1 / (y + k) for k in range(1, 10)) + 1 / y
    a = y + 10
    square = 1 / (a * a)
    series = horner([-b / (2 * j) for j, b in enumerate(BERNOULLI[:8], 1)], square) * square
    value = xp.log(a) - 0.5 / a + series - shift
    r = remainder(xp, x, 0.0)
    value = xp.where(x < 0, xp.where(r == 0, math.nan, value - math.pi * cotangent(xp, r)), value)
    for centre, there, radius in NEAR_ROOTS:
        d = x - centre
        near = xp.abs(d) < radius
        d = xp.where(near, d, 0.0)
        value = xp.where(near, there + d * horner(_digamma_coefficients(centre), d), value)
    return value


@lru_cache
def _digamma_coefficients(centre: float) -> list[float]:
    """The coefficients of the powers of the distance from a number above -1.

    They come from the series of DLMF 5.15.1, with its first term computed directly where it is
    negative.
    """
    below = centre < 0
    return [
        (-1) ** k * ((centre**-k if below else 0) + hurwitz(k, centre + below))
        for k in range(2, 30)
    ]


@elementwise_or_complex
def loggamma(xp: Any, x: Any) -> Any:
    """The logarithm of gamma, for real and complex arrays.

    Of negative real numbers it is nan; for complex arrays it is the branch that is cut along the
    negative real axis.
    """
    if xp.isdtype(x.dtype, "complex floating"):
        return gamma_complex.loggamma(xp, x)
    return xp.where(x < 0, math.nan, gammaln(xp, xp.where(x < 0, 1.0, x)))


@elementwise_or_complex
def rgamma(xp: Any, x: Any) -> Any:
    """1 / gamma(x), which is 0 at the poles; below 1/2 by reflection (DLMF 5.5.3)."""
    if xp.isdtype(x.dtype, "complex floating"):
        return gamma_complex.rgamma(xp, x)
    below = x < 0.5
    value = gamma(xp, xp.where(below, 1 - x, x))
    reflected = sine_of_pi(xp, xp.where(below & (x > -math.inf), x, 0.0))
    reflected = xp.where(reflected == 0, xp.where(x == 0, x, 0.0), reflected * value / math.pi)
    # About 0 the sine and gamma(1 - x) keep the sign of 0 between them.
    return xp.where(below, reflected, 1 / value)


@elementwise
def gammasgn(xp: Any, x: Any) -> Any:
    """The sign of gamma(x). At 0 it is the sign of the zero, and nan at the other poles."""
    pole = (x < 0) & (x == xp.floor(x))
    sign = xp.where(
        x == 0, xp.copysign(xp.ones_like(x), x), _gamma_sign(xp, xp.where(pole, 0.5, x))
    )
    return xp.where(pole | xp.isnan(x), math.nan, sign)


@elementwise
def poch(xp: Any, z: Any, m: Any) -> Any:
    """gamma(z + m) / gamma(z), by reflection (DLMF 5.5.3) where an argument is 0 or below.

    There, for integers m, it is computed as a product.
    """
    top = z + m
    low, high = z <= 0, top <= 0
    both = low & high
    bottom_sine, top_sine = sine_of_pi(xp, z), sine_of_pi(xp, z, m)
    whole = m == xp.round(m)
    turn = xp.where(is_odd(xp, m), -1.0, xp.ones_like(m))
    turn = xp.where(whole, turn, bottom_sine / xp.where(whole | ~high, 1.0, top_sine))
    a = xp.where(both, 1 - top, xp.where(low | high, 1.0, z))
    ratio = xp.where(both, turn, 1.0) * _gamma_ratio(xp, a, xp.where(low ^ high, 0.0, m))
    gammas = gamma(xp, xp.where(high, 1 - top, top)), gamma(xp, xp.where(low, 1 - z, z))
    up = gammas[0] * gammas[1] * bottom_sine / math.pi
    down = math.pi / (xp.where(high, top_sine, 1.0) * gammas[0] * gammas[1])
    down = xp.where(high & (top_sine == 0), math.inf, down)
    return xp.where(low == high, ratio, xp.where(low, xp.where(bottom_sine == 0, 0.0, up), down))


def _gamma_ratio(xp: Any, a: Any, m: Any) -> Any:
    """gamma(a + m) / gamma(a) for positive a and a + m.

    It is the quotient of the two remainders of Stirling's formula, after its main terms are
    subtracted.
    """
    b = a + m
    product_a, product_b = xp.where(a < 10, a, 1.0), xp.where(b < 10, b, 1.0)
    for k in range(1, 10):
        product_a, product_b = (
            product_a * xp.where(a < 10, a + k, 1.0),
            product_b * xp.where(b < 10, b + k, 1.0),
        )
    m = xp.where(b < 10, m + 10, m) - xp.where(a < 10, 10 * xp.ones_like(a), 0.0)
    a = xp.where(a < 10, a + 10, a)
    b = xp.where(b < 10, b + 10, b)
    near = xp.abs(m) < 0.5 * a
    growth = xp.where(near, xp.log1p(xp.where(near, m, 0.0) / a), xp.log(b / a))
    logarithm = m * xp.log(b) + ((a - 0.5) * growth - m) + (stirling(b) - stirling(a))
    return xp.exp(logarithm) * (product_a / product_b)


@elementwise
def binom(xp: Any, n: Any, k: Any) -> Any:
    """gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1)), nan where n is a negative integer.

    By 1 / ((n + 1) beta(n - k + 1, k + 1)), and by reflection (DLMF 5.5.3) where an argument is 0
    or below: always one beta function of positive numbers. For integers k below 20, the product of
    k factors, exact where these are.
    """
    p, q = n - k + 1, k + 1
    high, low = p <= 0, q <= 0
    below = n < -1
    one = xp.ones_like(n)
    s_n, s_k, s_p = sine_of_pi(xp, n), sine_of_pi(xp, k), sine_of_pi(xp, n, -k)
    s_n = xp.where(s_n == 0, 1.0, s_n)
    neither, both = ~high & ~low, high & low
    u = xp.where(neither, p, xp.where(both, -k, xp.where(below, -n, n + 1)))
    v = xp.where(
        neither,
        q,
        xp.where(both, k - n, xp.where(below, xp.where(high, q, p), xp.where(high, k - n, -k))),
    )
    outside = ~(u > 0) | ~(v > 0)
    value = xp.exp(betaln(xp, xp.where(outside, 1.0, u), xp.where(outside, 1.0, v)))
    turn = xp.where(is_odd(xp, k), -one, one)
    turned = (
        xp.where(
            high,
            xp.where(k == xp.round(k), turn, s_p / s_n) / xp.where(high, k - n, 1.0),
            s_k / s_n / xp.where(low, -k, 1.0),
        )
        / value
    )
    reflected = xp.where(
        both,
        -s_k * s_p / (math.pi * s_n) * value,
        xp.where(below, turned, -xp.where(high, s_p, s_k) / math.pi * value),
    )
    value = xp.where(neither, 1 / (xp.where(neither, n + 1, 1.0) * value), reflected)
    value = xp.where(outside & ~xp.isnan(n + k), 0.0, xp.where(outside, math.nan, value))
    few = xp.where((n == xp.floor(n)) & (k > n / 2) & (n > 0), n - k, k)
    exact = (few >= 0) & (few < 20) & (few == xp.floor(few))
    count = xp.where(exact, few, 0.0)
    product = one
    for i in range(1, 20):
        product = product * xp.where(count >= i, n - (count - i), i) / i
    return xp.where((n < 0) & (n == xp.floor(n)), math.nan, xp.where(exact, product, value))


def sine_of_pi(xp: Any, x: Any, y: Any = 0.0) -> Any:
    """sin(pi (x + y)), exactly 0 at integers, and exact to its last digits next to them.

    x + y itself may be rounded.
    """
    sine = xp.sin(math.pi * (x - xp.round(x)))
    if isinstance(y, float):
        return xp.where(is_odd(xp, x), -sine, sine)
    rest = (x - xp.round(x)) + (y - xp.round(y))
    sine = xp.sin(math.pi * (rest - xp.round(rest)))
    return xp.where(is_odd(xp, x) ^ is_odd(xp, y) ^ is_odd(xp, rest), -sine, sine)


def _gammaln_near(xp: Any, x: Any) -> Any:
    """log gamma for 1/2 <= x <= 3, as accurate near its zeros 1 and 2 as elsewhere.

    About 2, d (1 - Euler's constant) + sum of (zeta(k) - 1) (-d)**k / k: Abramowitz and Stegun,
    6.1.33.
    """
    d = xp.clip(xp.where(x < 1.5, x - 1, x - 2), -0.5, 1.0)
    value = d * horner(gammaln_coefficients(), d)
    return xp.where(x < 1.5, value - xp.log1p(d), value)


def _gammaln_far(xp: Any, x: Any) -> Any:
    """log gamma for x >= 3: Stirling's formula from 10 on, below by recurrence.

    Abramowitz and Stegun, 6.1.40.
    """
    small = x < 10
    product = xp.where(small, x, 1.0)
    for k in range(1, 7):
        product = product * xp.where(small, x + k, 1.0)
    a = xp.where(small, x + 7, x)
    return (
        (a - 0.5) * (xp.log(a) - 1)
        + (math.log(2 * math.pi) - 1) / 2
        + stirling(a)
        - xp.log(product)
    )


def _gamma_sign(xp: Any, x: Any) -> Any:
    """The sign of the gamma function: that of 1 / gamma where x is an integer."""
    below = xp.floor(x)
    return xp.where((x < 0) & (below != 2 * xp.floor(below / 2)), -xp.ones_like(x), xp.ones_like(x))
