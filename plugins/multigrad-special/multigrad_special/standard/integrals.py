"""The exponential integrals and the dilogarithm.

They use series whose terms do not cancel near 0, and a continued fraction or the asymptotic series
for large arguments. The result has 14 digits in float64.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from .common import horner
from .forms import elementwise
from .gamma_series import BERNOULLI, EULER

__all__ = ["exp1", "expi", "expn", "spence"]

ZERO = 0.3725074231624603
"""The zero of expi in 24 bits, which float32 holds, and what is left of it."""
ZERO_REST = -1.2381093692686445e-08
SCALE = 32.0
"""Of coefficients that float32 does not hold by themselves."""
NEAR = 2.0
"""Below this bound the exponential integrals are computed by series."""
ORDERS = 18
"""The highest order of expn that recurrence from exp1 reaches below NEAR.

Above it the continued fraction converges everywhere.
"""


@elementwise
def exp1(xp: Any, x: Any) -> Any:
    """The exponential integral E1; nan where x is negative."""
    near = xp.where((x >= 0) & (x < NEAR), x, 1.0)
    far = xp.where(x >= NEAR, x, NEAR)
    return xp.where(
        x < 0,
        math.nan,
        xp.where(x < NEAR, _exp1_near(xp, near), xp.where(x >= NEAR, _fraction(xp, 1.0, far), x)),
    )


@elementwise
def expi(xp: Any, x: Any) -> Any:
    """The exponential integral Ei, as accurate near its zero as elsewhere.

    Below 40 by its power series less that at the zero: log(x / zero) + (x - zero) q(x), q having
    positive coefficients only.
    """
    positive = x > 0
    near = xp.where(positive & (x < 40), x, 1.0)
    zero = ZERO + ZERO_REST
    step = (near - ZERO) / zero - ZERO_REST / zero  # divided first, since a compiler adds constants
    close = xp.abs(step) < 0.5
    logarithm = xp.where(close, xp.log1p(xp.where(close, step, 0.0)), xp.log(near / zero))
    series = logarithm + step * zero * horner(_expi_coefficients(), near / SCALE)
    far = xp.where(x > 40, x, 40.0)
    half = xp.exp(0.5 * far)  # in two halves, so that it does not overflow before the result
    tail = (
        half / far * horner([math.factorial(k) / SCALE**k for k in range(36)], SCALE / far) * half
    )
    above = xp.where(x < 40, series, xp.where(x == math.inf, x, tail))
    return xp.where(x == 0, -math.inf, xp.where(positive, above, -exp1(xp, -x)))


@elementwise
def expn(xp: Any, n: Any, x: Any) -> Any:
    """The exponential integral of order n, a nonnegative integer; nan where x or n is negative."""
    n = xp.trunc(n)
    near = xp.where((x >= 0) & (x < NEAR), x, 1.0)
    exponential = xp.exp(-near)
    step = value = _exp1_near(xp, near)
    for k in range(1, ORDERS):
        step = (exponential - xp.where(near == 0, 0.0, near * step)) / k
        value = xp.where(n > k, step, value)
    many = xp.where(n > ORDERS, n, ORDERS + 1.0)
    far = xp.where(x >= NEAR, x, NEAR)
    value = xp.where(n > ORDERS, _fraction(xp, many, near), value)
    value = xp.where(x >= NEAR, _fraction(xp, xp.where(n > 0, n, 1.0), far), value)
    value = xp.where(n == 0, xp.where(x == 0, math.inf, xp.exp(-x) / x), value)
    return xp.where((x >= 0) & (n >= 0), xp.where(x == math.inf, 0.0, value), math.nan)


@elementwise
def spence(xp: Any, z: Any) -> Any:
    """The dilogarithm of 1 - z; nan where z is negative.

    About 1 by the series in u = -log(z) of the Bernoulli numbers; elsewhere by the identities of 1
    - z and of 1 / z (Abramowitz and Stegun, 27.7.3 to 27.7.5).
    """
    valid = z >= 0
    inside = xp.where(valid, z, 1.0)
    large = inside > 1
    y = xp.where(large, 1 / inside, inside)  # from 0 to 1
    low = y < 0.5
    logarithm = xp.log(xp.where(inside > 0, inside, 1.0))
    u = xp.where(low, -xp.log1p(-xp.where(low, y, 0.0)), xp.abs(logarithm))
    square = u * u
    series = u * (
        1
        - u / 4
        + square
        * horner([b / math.factorial(2 * k + 1) for k, b in enumerate(BERNOULLI[:9], 1)], square)
    )
    value = xp.where(
        low, math.pi**2 / 6 - xp.where(y > 0, xp.abs(logarithm) * u, 0.0) - series, series
    )
    return xp.where(valid, xp.where(large, -value - 0.5 * logarithm * logarithm, value), math.nan)


def _exp1_near(xp: Any, x: Any) -> Any:
    """-gamma - log(x) + x - x**2 / 4 + ...: Abramowitz and Stegun, 5.1.11."""
    series = x * horner([(-1) ** k / ((k + 1) * math.factorial(k + 1)) for k in range(24)], x)
    return series - EULER - xp.log(x)


def _fraction(xp: Any, n: Any, x: Any) -> Any:
    """expn for large x or n: its contracted continued fraction (Abramowitz and Stegun, 5.1.22)."""
    steps = 50
    value = x + n + 2 * steps
    for k in range(steps, 0, -1):
        value = x + n + 2 * (k - 1) - k * ((n + (k - 1)) / value)
    return xp.exp(-x) / value


@lru_cache
def _expi_coefficients() -> list[float]:
    """The coefficients of the powers of x / SCALE in a quotient.

    The dividend is the series of x**k / (k k!) minus its value at the zero, and the divisor is x
    minus the zero.
    """
    zero = ZERO + ZERO_REST
    coefficients = [0.0] * 115
    for k in range(114, 0, -1):
        coefficients[k - 1] = zero * coefficients[k] + 1 / (k * math.factorial(k))
    return [c * SCALE**k for k, c in enumerate(coefficients[:-1])]
