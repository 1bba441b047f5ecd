"""Bessel functions."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import multigrad as mg

from .declare import ON_JAX, ON_NUMPY, declare


def _neighbours(xp: Any, v: int, z: Any, name: str) -> Any:
    """The mean of the functions of order v - 1 and v + 1, the former being v + 1, too, where v is 0."""
    function = getattr(xp.special, name)
    return function(1, z) if v == 0 else 0.5 * (function(v - 1, z) + function(v + 1, z))


def _scaled_slope(xp: Any, v: int, z: Any, ans: Any) -> Any:
    """The slope of ive, that mean less the function itself; far out, where these cancel, their asymptotic series do so exactly."""
    x, sign, limit = xp.abs(z), xp.sign(z), 25 + v * v
    far = xp.where(x > limit, x, limit)
    near, series = limit / far, 0.0
    coefficients = _slope_coefficients(v)
    for k in range(len(coefficients), 0, -1):  # in powers of limit / x, since the coefficients alone may overflow float16
        series = (series + coefficients[k - 1] / limit**k) * near
    series = series / xp.sqrt(2 * math.pi * far)
    return xp.where(x > limit, series if v % 2 else sign * series, _neighbours(xp, v, z, "ive") - sign * ans)


@lru_cache
def _slope_coefficients(v: int) -> list[float]:
    """Of the powers of 1/x in that difference, by those of each function (Abramowitz and Stegun, 9.7.1)."""
    def coefficients(n: int) -> list[Fraction]:
        found = [Fraction(1)]
        for k in range(1, 25):
            found.append(-found[-1] * (4 * n * n - (2 * k - 1) ** 2) / (8 * k))
        return found

    below, own, above = coefficients(abs(v - 1)), coefficients(v), coefficients(v + 1)
    return [float((p + q) / 2 - c) for p, c, q in zip(below, own, above, strict=True)][1:]


def declarations() -> list[mg.registry.Op]:
    """Slopes are those of Abramowitz and Stegun, 9.6.26: nothing is divided by x, so 0 is a point like any other.

    With the factor exp(-|x|) there is a kink at 0 in even orders; the slope there is 0.
    """
    return [
        declare("i0(x, /)", "The modified Bessel function of order 0.", x=lambda xp, x: xp.special.i1(x)),
        declare("i1(x, /)", "The modified Bessel function of order 1.", x=lambda xp, x: _neighbours(xp, 1, x, "iv")),
        declare("i0e(x, /)", "exp(-|x|) i0(x).", x=lambda xp, x, ans: _scaled_slope(xp, 0, x, ans)),
        declare("i1e(x, /)", "exp(-|x|) i1(x).", x=lambda xp, x, ans: _scaled_slope(xp, 1, x, ans)),
        declare("iv(v: plain, z, /)", "The modified Bessel function of order v, an int from 0 to 20.",
                 numpy=f"{ON_NUMPY}iv", jax=f"{ON_JAX}iv", cupy=None,
                 z=lambda xp, v, z: _neighbours(xp, v, z, "iv")),
        declare("ive(v: plain, z, /)", "exp(-|z|) iv(v, z).",
                 numpy=f"{ON_NUMPY}ive", jax=f"{ON_JAX}ive", cupy=None,
                 z=_scaled_slope),
    ]
