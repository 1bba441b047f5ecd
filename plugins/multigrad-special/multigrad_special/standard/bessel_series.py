"""Bessel functions by series.

Small arguments and orders use power series, large arguments use Hankel's asymptotic series. The
functions of the second kind follow N. M. Temme, J. Comput. Phys. 19 (1975), 324, and 21 (1976),
343, where nothing cancels even near integer orders. Orders v >= 0 and arguments x > 0 are broadcast
beforehand.
"""

from __future__ import annotations

import math
from typing import Any

from .common import horner

__all__: list[str] = []

MOST = 4
"""Recurrence of at most MOST steps reaches orders below MOST + 1/2 from those between -1/2 and 1/2.
"""

# Of 1 / Gamma(1 + m) about 0 (Abramowitz and Stegun, 6.1.34), and its parts.
RECIPROCAL_GAMMA = [
    1.0,
    0.5772156649015329,
    -0.6558780715202539,
    -0.04200263503409524,
    0.16653861138229148,
    -0.04219773455554433,
    -0.009621971527876973,
    0.0072189432466631,
    -0.0011651675918590652,
    -0.00021524167411495098,
    0.0001280502823881162,
    -2.013485478078824e-05,
    -1.2504934821426706e-06,
    1.133027231981696e-06,
    -2.056338416977607e-07,
    6.116095104481416e-09,
    5.002007644469223e-09,
    -1.18127457048702e-09,
    1.0434267116911005e-10,
    7.782263439905071e-12,
    -3.696805618642206e-12,
    5.100370287454476e-13,
    -2.0583260535665066e-14,
]
EVEN, ODD = RECIPROCAL_GAMMA[::2], [-c for c in RECIPROCAL_GAMMA[1::2]]


def _apart(xp: Any, v: Any) -> tuple[Any, Any]:
    """The nearest integer to an order, and the difference between them."""
    n = xp.floor(v + 0.5)
    return n, v - n


def first(xp: Any, v: Any, x: Any, sign: float, steps: int = 14) -> Any:
    """I_v(x) with the sign 1, J_v(x) with -1 (DLMF 10.25.2, 10.2.2), for v < MOST + 1/2."""
    quarter = sign * x * x / 4
    series = xp.ones_like(x)
    for k in range(steps, 0, -1):
        series = 1 + series * quarter / (k * (k + v))
    n, m = _apart(xp, v)
    factor = horner(RECIPROCAL_GAMMA, m)
    for k in range(1, MOST + 1):
        factor = factor / xp.where(n >= k, m + k, 1 + 0 * m)
    return (x / 2) ** v * factor * series


def second(xp: Any, v: Any, x: Any, sign: float) -> Any:
    """K_v(x) with the sign 1, Y_v(x) with -1, for x < 2 and v < MOST + 1/2."""
    n, m = _apart(xp, v)
    square = m * m
    log = xp.log(2 / x)
    sigma = m * log
    even, odd = horner(EVEN, square), horner(ODD, square)
    # 1 / (Gamma(1 + m) Gamma(1 - m)), the sine of pi m over pi m
    inverse = (even - m * odd) * (even + m * odd)
    ratio = xp.where(
        xp.abs(sigma) < 1e-4,
        1 + sigma * sigma / 6,
        xp.sinh(sigma) / xp.where(sigma == 0, 1 + sigma, sigma),
    )
    f = (odd * xp.cosh(sigma) + ratio * log * even) / inverse
    p = (2 / x) ** m / (even - m * odd) / 2
    q = (x / 2) ** m / (even + m * odd) / 2
    if sign < 0:
        f, p, q = 2 / math.pi * f, 2 / math.pi * p, 2 / math.pi * q
        half = xp.sin(math.pi / 2 * m)
        shift = (
            2
            * half
            * xp.where(xp.abs(m) < 1e-8, math.pi / 2 + 0 * m, half / xp.where(m == 0, 1 + m, m))
        )
    power = xp.ones_like(x)
    own, above = xp.zeros_like(x), xp.zeros_like(x)
    for k in range(14):
        if k:
            f = (k * f + p + q) / (k * k - square)
            p, q = p / (k - m), q / (k + m)
            power = power * (sign * x * x / 4) / k
        g = f + shift * q if sign < 0 else f
        own = own + power * g
        above = above + power * (p - k * g)
    low, high = sign * own, sign * above * 2 / x
    value = low
    for k in range(1, MOST + 1):
        value = xp.where(n >= k, high, value)
        low, high = high, sign * low + 2 * (m + k) / x * high
    return value


def asymptotic(xp: Any, v: Any, x: Any, terms: int = 24) -> tuple[Any, Any]:
    """J_v(x) and Y_v(x) far out, for x above 25 and v * v / 2: DLMF 10.17.3 and 10.17.4."""
    parts = [xp.ones_like(x), xp.zeros_like(x)]
    term = parts[0]
    for k in range(1, terms):
        term = term * ((4 * v * v - (2 * k - 1) ** 2) / (8 * k)) / x
        parts[k % 2] = parts[k % 2] + (-term if k // 2 % 2 else term)
    p, q = parts
    quarter = math.pi / 2 * (v + 0.5 - 4 * xp.floor((v + 0.5) / 4))
    sine = xp.sin(x) * xp.cos(quarter) - xp.cos(x) * xp.sin(quarter)
    cosine = xp.cos(x) * xp.cos(quarter) + xp.sin(x) * xp.sin(quarter)
    size = xp.sqrt(2 / math.pi / x)
    return size * (p * cosine - q * sine), size * (p * sine + q * cosine)
