"""Functions composed of elementary functions: roots, powers, degrees, Box-Cox, losses."""

from __future__ import annotations

import math
from typing import Any

from .forms import elementwise, elementwise_or_complex

__all__ = [
    "boxcox",
    "boxcox1p",
    "cbrt",
    "cosdg",
    "cosm1",
    "cotdg",
    "exp2",
    "exp10",
    "exprel",
    "huber",
    "inv_boxcox",
    "inv_boxcox1p",
    "pseudo_huber",
    "radian",
    "sinc",
    "sindg",
    "tandg",
]

DEGREE = math.pi / 180
TINY = 1e-19
"""The bound below which a Box-Cox transformation is a logarithm or an exponential.

It is compared with the parameter, or with its product with the argument.
"""


@elementwise
def cbrt(xp: Any, x: Any) -> Any:
    """The real cube root: the power, and one step of Newton's method.

    The step ends within one rounding of the result.
    """
    root = xp.copysign(xp.abs(x) ** (1 / 3), x)
    plain = (root == 0) | ~xp.isfinite(root)
    start = xp.where(plain, 1.0, root)
    return xp.where(plain, root, start - (start - xp.where(plain, 1.0, x) / (start * start)) / 3)


@elementwise
def exp2(xp: Any, x: Any) -> Any:
    """2 to the power of each element."""
    return 2.0**x


@elementwise
def exp10(xp: Any, x: Any) -> Any:
    """10 to the power of each element."""
    return 10.0**x


@elementwise
def cosm1(xp: Any, x: Any) -> Any:
    """cos(x) - 1, accurate near 0."""
    half = xp.sin(0.5 * x)
    return -2 * half * half


@elementwise
def exprel(xp: Any, x: Any) -> Any:
    """(exp(x) - 1) / x, 1 at 0."""
    return xp.where(x == 0, 1.0, xp.where(x == math.inf, x, xp.expm1(x) / xp.where(x == 0, 1.0, x)))


@elementwise_or_complex
def sinc(xp: Any, x: Any) -> Any:
    """sin(pi x) / (pi x), for real x with the sine of x minus an integer, which is exact."""
    if xp.isdtype(x.dtype, "complex floating"):
        angle = math.pi * xp.where(x == 0, 1.0, x)
        return xp.where(x == 0, 1.0, xp.sin(angle) / angle)
    nearest = xp.round(x)
    sine = xp.sin(math.pi * (x - nearest))
    odd = nearest != 2 * xp.round(0.5 * nearest)
    return xp.where(x == 0, 1.0, xp.where(odd, -sine, sine) / (math.pi * xp.where(x == 0, 1.0, x)))


# ----- degrees -----


@elementwise
def sindg(xp: Any, x: Any) -> Any:
    """The sine of an angle in degrees, exact at multiples of 90."""
    quarters, rest = _quarters(xp, xp.abs(x))
    return _sign(xp, x) * _sine(xp, quarters, rest)


@elementwise
def cosdg(xp: Any, x: Any) -> Any:
    """The cosine of an angle in degrees, exact at multiples of 90."""
    quarters, rest = _quarters(xp, xp.abs(x))
    return _sine(xp, xp.where(quarters == 3, 0.0, quarters + 1), rest)


@elementwise
def tandg(xp: Any, x: Any) -> Any:
    """The tangent of an angle in degrees, exact at multiples of 45; inf at its poles."""
    quarters, rest = _quarters(xp, xp.abs(x))
    upright = (quarters == 1) | (quarters == 3)
    return xp.where(upright & (rest == 0), math.inf, _sign(xp, x) * _tangent(xp, upright, rest))


@elementwise
def cotdg(xp: Any, x: Any) -> Any:
    """The cotangent of an angle in degrees, exact at multiples of 45; inf at its poles."""
    quarters, rest = _quarters(xp, xp.abs(x))
    upright = (quarters == 0) | (quarters == 2)
    return xp.where(upright & (rest == 0), math.inf, -_sign(xp, x) * _tangent(xp, upright, rest))


@elementwise
def radian(xp: Any, d: Any, m: Any, s: Any) -> Any:
    """An angle in degrees, minutes and seconds as radians."""
    return DEGREE * (d + (m + s / 60) / 60)


def _sign(xp: Any, x: Any) -> Any:
    """The sign of x, and 1 for 0."""
    return xp.where(x < 0, -1.0, xp.ones_like(x))


def _quarters(xp: Any, size: Any) -> tuple[Any, Any]:
    """Split a positive angle in degrees into right angles, 0 to 3, and a rest from -45 to 45.

    Both are exact.
    """
    within = xp.remainder(size, 360.0)
    quarters = xp.floor((within + 45) / 90)
    return xp.where(quarters == 4, 0.0, quarters), within - 90 * quarters


def _sine(xp: Any, quarters: Any, rest: Any) -> Any:
    angle = DEGREE * rest
    value = xp.where(
        (quarters == 0) | (quarters == 2), xp.sin(angle), xp.where(rest == 0, 1.0, xp.cos(angle))
    )
    return xp.where(quarters < 2, value, 0.0 - value)


def _tangent(xp: Any, upright: Any, rest: Any) -> Any:
    """The tangent of the rest, or where it is upright -1 over it."""
    size = xp.abs(rest)
    tangent = _sign(xp, rest) * xp.where(size == 45, 1.0, xp.tan(DEGREE * size))
    return xp.where(upright, -1 / xp.where(upright & (rest != 0), tangent, 1.0), tangent)


# ----- the transformations of Box and Cox -----


@elementwise
def boxcox(xp: Any, x: Any, lmbda: Any) -> Any:
    """(x**lmbda - 1) / lmbda, log(x) where lmbda is 0."""
    return _transformed(xp, xp.log(xp.where(x < 0, math.nan, x)), lmbda)


@elementwise
def boxcox1p(xp: Any, x: Any, lmbda: Any) -> Any:
    """The Box-Cox transformation of 1 + x, accurate near 0."""
    return _transformed(xp, xp.log1p(xp.where(x < -1, math.nan, x)), lmbda)


def _transformed(xp: Any, logarithm: Any, lmbda: Any) -> Any:
    plain = (xp.abs(lmbda) < TINY) | (xp.abs(lmbda * logarithm) < TINY)
    power = xp.where(plain, 1.0, lmbda)
    exponent = power * logarithm
    half = xp.exp(0.5 * exponent)  # in two halves, so that it does not overflow before the result
    value = xp.where(exponent > 40, half / power * half, xp.expm1(exponent) / power)
    return xp.where(plain, logarithm, value)


@elementwise
def inv_boxcox(xp: Any, y: Any, lmbda: Any) -> Any:
    """The inverse of boxcox: (1 + lmbda y)**(1 / lmbda), or exp(y) where lmbda is 0."""
    return xp.exp(_restored(xp, y, lmbda))


@elementwise
def inv_boxcox1p(xp: Any, y: Any, lmbda: Any) -> Any:
    """The inverse of boxcox1p."""
    return xp.expm1(_restored(xp, y, lmbda))


def _restored(xp: Any, y: Any, lmbda: Any) -> Any:
    plain = (xp.abs(lmbda) < TINY) | (xp.abs(lmbda * y) < TINY)
    power = xp.where(plain, 1.0, lmbda)
    return xp.where(plain, y, xp.log1p(power * y) / power)


# ----- losses -----


@elementwise
def huber(xp: Any, delta: Any, r: Any) -> Any:
    """Huber's loss: r**2 / 2 where |r| is at most delta, else delta (|r| - delta / 2).

    It is inf where delta is negative.
    """
    size = xp.abs(r)
    value = xp.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return xp.where(delta < 0, math.inf, value)


@elementwise
def pseudo_huber(xp: Any, delta: Any, r: Any) -> Any:
    """delta**2 (sqrt(1 + (r / delta)**2) - 1) without cancellation; inf where delta is negative."""
    size = xp.hypot(delta, r)
    nothing = (delta == 0) | (r == 0)
    value = delta * (r * (r / xp.where(nothing, 1.0, size + delta)))
    return xp.where(delta < 0, math.inf, xp.where(nothing, 0.0, value))
