"""Helpers that the gamma functions of real and complex arrays share.

They are Stirling's formula, series, and the cotangent of the reflection formulas.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from .common import horner

__all__ = ["hurwitz"]

EULER = 0.5772156649015329
BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
)
"""The Bernoulli numbers B2, B4, ..., B20."""


def stirling(x: Any) -> Any:
    """The remainder of Stirling's formula for log gamma after its main terms, for x >= 10.

    Abramowitz and Stegun, 6.1.40.
    """
    return (
        horner([b / (2 * j * (2 * j - 1)) for j, b in enumerate(BERNOULLI[:8], 1)], 1 / (x * x)) / x
    )


def hurwitz(s: int, x: Any, scale: float = 1.0) -> Any:
    """`scale**s` times the sum of (x + k)**-s over k = 0, 1, ..., for x >= 0.

    s is an array or a Python number. It uses Euler-Maclaurin summation; the larger s is, the more
    terms are summed directly, without which the rest would not converge. The scale keeps a
    factorial from overflowing and a power from underflowing where their product does neither.
    """
    steps = 10 + s
    a = x + steps
    factors = [s / 2 * BERNOULLI[0]]
    rising = s / 2
    for j, b in enumerate(BERNOULLI[1:], 2):
        rising *= (s + 2 * j - 3) * (s + 2 * j - 2) / ((2 * j - 1) * (2 * j))
        factors.append(rising * b)
    total = (a / scale) ** -s * (0.5 + horner(factors, 1 / (a * a)) / a) + scale * (a / scale) ** (
        1 - s
    ) / (s - 1)
    for k in reversed(range(steps)):
        total = total + ((x + k) / scale) ** -s
    return total


@lru_cache
def gammaln_coefficients() -> list[float]:
    return [1 - EULER, *((-1) ** k * hurwitz(k, 2.0) / k for k in range(2, 56))]


def cotangent(xp: Any, r: Any) -> Any:
    """cot(pi r) for |r| <= 1/2, exact to its last digits.

    About 1/2 it is 0, and its factor may be huge.
    """
    d = xp.abs(r)
    value = xp.where(d > 0.25, xp.tan(math.pi * (0.5 - d)), 1 / xp.tan(math.pi * d))
    return xp.where(r < 0, -value, value)


def cotangent_derivative(n: int, c: Any) -> Any:
    """(-1)**n times the n-th derivative of cot where cot is c, n > 0."""
    return (1 + c * c) * cotangent_factor(n, c)


def cotangent_factor(n: int, c: Any) -> Any:
    """cotangent_derivative / (1 + c**2), a polynomial in c, since cot' = -(1 + cot**2)."""
    polynomial = [1]
    # of (1 + c**2) p the derivative by the argument is (1 + c**2) (2 c p + (1 + c**2) p'), but for
    # its sign
    for _ in range(n - 1):
        slope = [k * p for k, p in enumerate(polynomial)][1:]
        parts = ([0, *(2 * p for p in polynomial)], [*slope, 0, 0], [0, 0, *slope])
        polynomial = [sum(column) for column in zip_longest(*parts, fillvalue=0)]
    # Every other coefficient is 0 and the rest are positive: in powers of c**2 nothing cancels.
    even = [float(p) for p in polynomial[(n + 1) % 2 :: 2]]
    value = horner(even, c * c) if len(even) > 1 else even[0]
    return value if n % 2 else value * c


def is_odd(xp: Any, x: Any) -> Any:
    """Whether the integer next to x is odd."""
    nearest = xp.round(x)
    return nearest != 2 * xp.round(nearest / 2)


def remainder(xp: Any, x: Any, below: float) -> Any:
    """x minus the nearest integer, for the reflection where `below` holds.

    Other elements get a harmless value.
    """
    return xp.where(x < below, x - xp.round(x), 0.25)
