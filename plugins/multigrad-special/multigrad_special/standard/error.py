"""The error function, its complement and its inverse, and the equivalent normal distribution."""

from __future__ import annotations

import math
from typing import Any

from . import error_complex
from .common import horner
from .forms import elementwise, elementwise_or_complex

__all__ = ["erf", "erfc", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

ROOT_2 = math.sqrt(2)
ROOT_PI = math.sqrt(math.pi)


@elementwise_or_complex
def erf(xp: Any, x: Any) -> Any:
    """The error function: a series of positive terms near 0, elsewhere 1 - erfc."""
    if xp.isdtype(x.dtype, "complex floating"):
        return error_complex.erf(xp, x)
    return xp.where(xp.abs(x) < 1, _erf_near(xp, x), xp.sign(x) * (1 - _erfc_far(xp, x)))


@elementwise_or_complex
def erfc(xp: Any, x: Any) -> Any:
    """The complementary error function, accurate in its tail down to the smallest numbers."""
    if xp.isdtype(x.dtype, "complex floating"):
        return error_complex.erfc(xp, x)
    tail = _erfc_far(xp, x)
    return xp.where(xp.abs(x) < 1, 1 - _erf_near(xp, x), xp.where(x < 0, 2 - tail, tail))


@elementwise_or_complex
def erfcx(xp: Any, x: Any) -> Any:
    """exp(x**2) erfc(x), which approaches 1 / (x sqrt(pi)) for large x."""
    if xp.isdtype(x.dtype, "complex floating"):
        return error_complex.erfcx(xp, x)
    far = _erfcx_far(xp, xp.abs(x))
    near = xp.exp(xp.clip(x * x, 0.0, 1.0)) * (1 - _erf_near(xp, x))
    return xp.where(xp.abs(x) < 1, near, xp.where(x < 0, 2 * _exp_square(xp, x) - far, far))


@elementwise
def erfinv(xp: Any, x: Any) -> Any:
    """The inverse of erf: two steps of Halley's method near 0; nan outside [-1, 1]."""
    y = xp.clip(x, -0.5, 0.5)
    near = _guess(xp, xp.log1p(-y * y)) * xp.sign(y)
    for _ in range(2):
        u = (erf(xp, near) - y) * xp.exp(near * near) * (ROOT_PI / 2)
        near = near - u / (1 + near * u)
    value = xp.where(
        xp.abs(x) > 0.5, xp.sign(x) * _erfc_inverse(xp, xp.clip(1 - xp.abs(x), 0.0, 0.5)), near
    )
    return xp.where(xp.abs(x) <= 1, value, math.nan)


@elementwise_or_complex
def ndtr(xp: Any, x: Any) -> Any:
    """The distribution function of the normal distribution."""
    if xp.isdtype(x.dtype, "complex floating"):
        return error_complex.ndtr(xp, x)
    below = xp.clip(x, -40.0, -1.0)  # at -40 it is 0 in float64
    h = xp.floor(below * 64) / 64
    tail = (
        0.5
        * _erfcx_far(xp, -below / ROOT_2)
        * xp.exp(-0.5 * h * h)
        * xp.exp(-0.5 * (below - h) * (below + h))
    )
    return xp.where(x < -ROOT_2, tail, 0.5 * erfc(xp, -x / ROOT_2))


@elementwise_or_complex
def log_ndtr(xp: Any, x: Any) -> Any:
    """The logarithm of ndtr, which far below 0 is about -x**2 / 2."""
    if xp.isdtype(x.dtype, "complex floating"):
        return error_complex.log_ndtr(xp, x)
    below = xp.where(x < -1, x, -1.0)
    above = xp.where(x < -1, -1.0, x)
    tail = xp.log(0.5 * erfcx(xp, -below / ROOT_2)) - 0.5 * below * below
    return xp.where(x < -1, tail, xp.log1p(-ndtr(xp, -above)))


@elementwise
def ndtri(xp: Any, x: Any) -> Any:
    """The quantile of the normal distribution; nan outside [0, 1]."""
    middle = erfinv(xp, 2 * xp.clip(x, 0.25, 0.75) - 1)
    tail = _erfc_inverse(xp, 2 * xp.clip(xp.where(x < 0.5, x, 1 - x), 0.0, 0.25))
    tail = xp.where(x < 0.5, -tail, tail)
    return xp.where(
        (x >= 0) & (x <= 1), ROOT_2 * xp.where((x < 0.25) | (x > 0.75), tail, middle), math.nan
    )


def _erf_near(xp: Any, x: Any) -> Any:
    """erf for |x| < 1: 2 x exp(-x**2) / sqrt(pi) * (1 + 2x**2/3 + (2x**2)**2/(3*5) + ...)."""
    x = xp.clip(x, -1.0, 1.0)
    coefficients = [1.0]
    for k in range(1, 21):
        coefficients.append(coefficients[-1] * 2 / (2 * k + 1))
    square = x * x
    return 2 / ROOT_PI * x * xp.exp(-square) * horner(coefficients, square)


def _erfc_far(xp: Any, x: Any) -> Any:
    """erfc(|x|) for |x| >= 1: the trapezoidal rule in steps of 1/2, with the residue of its pole.

    C. Chiarella and A. Reichel, On the evaluation of integrals related to the error function, Math.
    Comp. 22 (1968).
    """
    x = xp.clip(xp.abs(x), 1.0, 28.0)  # at 28 it is 0 in float64
    square = x * x
    total = 1 / square
    for k in range(1, 14):
        total = total + 2 * math.exp(-k * k / 4) / (square + k * k / 4)
    # exp(-x**2) from a part of x whose square is exact: rounding the square of 20 would cost 200
    # units in the last place.
    h = xp.floor(x * 64) / 64
    total = total * x / (2 * math.pi) * xp.exp(-h * h) * xp.exp(-(x - h) * (x + h))
    pole = 2 / xp.expm1(4 * math.pi * xp.clip(x, 1.0, 7.0))
    return xp.where(x < 2 * math.pi, total - pole, total)


def _erfcx_far(xp: Any, x: Any) -> Any:
    """erfcx for x >= 1: `_erfc_far` without the exponential, or an asymptotic series."""
    y = xp.clip(x, 1.0, 28.0)
    square = y * y
    total = 1 / square
    for k in range(1, 14):
        total = total + 2 * math.exp(-k * k / 4) / (square + k * k / 4)
    small = xp.clip(y, 1.0, 2 * math.pi)
    pole = xp.where(y < 2 * math.pi, 2 * xp.exp(small * small) / xp.expm1(4 * math.pi * small), 0.0)
    large = xp.where(x > 28, x, 28.0)
    inverse = 1 / (large * large)
    series = horner([1.0, -1 / 2, 3 / 4, -15 / 8, 105 / 16, -945 / 32, 10395 / 64], inverse) / (
        large * ROOT_PI
    )
    return xp.where(x > 28, series, total * y / (2 * math.pi) - pole)


def _exp_square(xp: Any, x: Any) -> Any:
    """exp(x**2), from a part of x whose square is exact."""
    h = xp.floor(x * 64) / 64
    h = xp.where(xp.isinf(x), x, h)
    rest = xp.where(xp.isinf(x), 0.0, (x - h) * (x + h))
    return xp.exp(h * h) * xp.exp(rest)


def _guess(xp: Any, logarithm: Any) -> Any:
    """The inverse error function of y within 0.2 %, from log(1 - y**2). S. Winitzki, 2008."""
    a = 0.147
    t = 2 / (math.pi * a) + 0.5 * logarithm
    return xp.sqrt(-logarithm / a / (xp.sqrt(t * t - logarithm / a) + t))


def _erfc_inverse(xp: Any, q: Any) -> Any:
    """The inverse of erfc for 0 <= q <= 1/2.

    It takes three steps of Newton's method for the logarithm, which is nearly a parabola.
    """
    inside = xp.where(q > 0, q, 0.5)
    logarithm = xp.log(inside)
    x = _guess(xp, logarithm + xp.log(2 - inside))
    for _ in range(3):
        scaled = xp.where(
            x < 1, xp.exp(xp.clip(x * x, 0.0, 1.0)) * (1 - _erf_near(xp, x)), _erfcx_far(xp, x)
        )
        x = x + (xp.log(scaled) - x * x - logarithm) * scaled * (ROOT_PI / 2)
    return xp.where(q > 0, x, xp.where(q == 0, math.inf, q))
