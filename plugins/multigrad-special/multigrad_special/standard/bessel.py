"""Modified Bessel functions of the first kind, of integer order, with and without the factor exp(-|x|)."""

from __future__ import annotations

import math
from typing import Any

from .common import check, order

__all__ = ["i0", "i0e", "i1", "i1e", "iv", "ive"]

MAX_BESSEL = 20
"""The largest order: enough for as many derivatives of i0."""


def i0(xp: Any, x: Any) -> Any:
    """The modified Bessel function of order 0."""
    return iv(xp, 0, x)


def i0e(xp: Any, x: Any) -> Any:
    """exp(-|x|) i0(x)."""
    return ive(xp, 0, x)


def i1(xp: Any, x: Any) -> Any:
    """The modified Bessel function of order 1."""
    return iv(xp, 1, x)


def i1e(xp: Any, x: Any) -> Any:
    """exp(-|x|) i1(x)."""
    return ive(xp, 1, x)


def iv(xp: Any, v: int, z: Any) -> Any:
    """The modified Bessel function of order v."""
    v = order(v, "iv", MAX_BESSEL)
    check(xp, "iv", z)
    value = ive(xp, v, z)
    grown = xp.exp(0.5 * xp.abs(z))  # in two halves, so that it does not overflow before the result
    return xp.where(xp.isinf(z), z ** (2 - v % 2), value * grown * grown)


def ive(xp: Any, v: int, z: Any) -> Any:
    """exp(-|z|) iv(v, z): the power series, all of whose terms are positive, then the asymptotic one.

    Abramowitz and Stegun, 9.6.10 and 9.7.1.
    """
    v = order(v, "ive", MAX_BESSEL)
    check(xp, "ive", z)
    x = xp.abs(z)
    limit = 20 + v * v / 2
    near, far = xp.where(x < limit, x, 0.0), xp.where(x < limit, limit, x)
    quarter = near * near / 4
    steps = 25 + int(1.6 * limit)
    series = 1.0
    for k in range(steps, 0, -1):
        series = 1 + series * quarter / (k * (k + v))
    power = near / 2
    factor = xp.ones_like(x)
    for k in range(1, v + 1):
        factor = factor * power / k
    tail = 1.0
    for k in range(30, 0, -1):
        tail = 1 - tail * (4 * v * v - (2 * k - 1) ** 2) / (8 * k) / far
    value = xp.where(x < limit, series * factor * xp.exp(-near), tail / xp.sqrt(2 * math.pi * far))
    return xp.where(z < 0, -value, value) if v % 2 else value
