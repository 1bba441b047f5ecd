"""Bessel functions of any real order by integrals along suitable paths.

On these paths the integrand neither oscillates nor cancels. G. N. Watson, A Treatise on the Theory
of Bessel Functions, chapter 8; DLMF 10.9 and 10.32. The trapezoid rule converges exponentially
there, so a fixed number of nodes is enough for every order and argument. Orders v >= 0 and
arguments x > 0 are broadcast beforehand.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

__all__: list[str] = []

ENOUGH = 40.0
"""exp(-ENOUGH) is negligible beside 1 in float64."""


@lru_cache
def _even(count: int) -> list[float]:
    """Fractions of an interval at equal steps, both ends among them."""
    return [k / (count - 1) for k in range(count)]


@lru_cache
def _double_exponential() -> tuple[list[float], list[float], list[float]]:
    """Nodes in (0, 1), their distances from 1, and weights (H. Takahasi and M. Mori, 1974)."""
    step = 1 / 20
    ts = [step * k for k in range(-68, 69)]
    half = [math.pi / 2 * math.sinh(t) for t in ts]
    weights = [
        step * math.pi / 4 * math.cosh(t) / math.cosh(s) ** 2 for t, s in zip(ts, half, strict=True)
    ]
    return (
        [1 / (1 + math.exp(-2 * s)) for s in half],
        [1 / (1 + math.exp(2 * s)) for s in half],
        weights,
    )


def _constants(xp: Any, like: Any, numbers: list[float]) -> Any:
    return xp.asarray(numbers, dtype=like.dtype, device=xp.device_of(like))


def scaled_k(xp: Any, v: Any, x: Any) -> Any:
    """exp(x) K_v(x), for x or v of 2 or more: DLMF 10.32.9 about its highest point.

    The exponent falls by r (cosh s - 1) + v (sinh s - s), r being hypot(x, v).
    """
    r = xp.hypot(x, v)
    top = v * xp.asinh(v / x) - v * v / (r + x)
    left, right = (ENOUGH + 2) / r + 9.3 / xp.sqrt(r), 2 * xp.asinh(xp.sqrt(ENOUGH / 2 / r))
    count = 128
    step = (left + right) / (count - 1)
    s = (left + right)[..., None] * _constants(xp, x, _even(count)) - left[..., None]
    r, order, half = r[..., None], v[..., None], xp.sinh(s / 2)
    total = xp.sum(xp.exp(-2 * r * half * half - order * (xp.sinh(s) - s)), axis=-1)
    grown = xp.exp(top / 2)  # in two halves, so that it does not overflow before the result
    return 0.5 * step * total * grown * grown


def scaled_i(xp: Any, v: Any, x: Any) -> Any:
    """exp(-x) I_v(x): the path of steepest descent of DLMF 10.32.12.

    All values along it are positive.
    """
    most, angle, sine, weights = _angles(xp, xp.hypot(x, v))
    x, v = x[..., None], v[..., None]
    r = v * angle / sine
    h = xp.hypot(x, r)
    exponent = r * (r / (h + x)) - 2 * h * xp.sin(angle / 2) ** 2 - v * xp.asinh(r / x)
    return most / math.pi * xp.sum(weights * xp.exp(exponent), axis=-1)


def small_j(xp: Any, v: Any, x: Any) -> Any:
    """J_v(x) for x <= v: the path of steepest descent of DLMF 10.9.17.

    All values along it are positive.
    """
    slow = xp.maximum(xp.sqrt((v - x) * (v + x)), 3 * x ** (2 / 3))
    most, angle, sine, weights = _angles(xp, slow)
    x, v = x[..., None], v[..., None]
    ratio = angle / sine
    root = xp.sqrt(
        (v - x) * (v + x) + v * v * (xp.maximum(angle - sine, 0 * sine) / sine * (ratio + 1))
    )
    exponent = root * xp.cos(angle) - v * xp.asinh(root / x)
    return most / math.pi * xp.sum(weights * xp.exp(exponent), axis=-1)


def _angles(xp: Any, sharp: Any) -> tuple[Any, Any, Any, Any]:
    """The largest angle, where exponents fall as `sharp` times the cosine; nodes and weights."""
    share = ENOUGH / 2 / sharp
    most = 2 * xp.asin(xp.sqrt(xp.where(share < 1, share, 1.0)))
    near, far, weights = (_constants(xp, most, numbers) for numbers in _double_exponential())
    angle = most[..., None] * near
    rest = (math.pi - most)[..., None] + most[..., None] * far
    return most, angle, xp.where(near < 0.5, xp.sin(angle), xp.sin(rest)), weights


def hankel(xp: Any, v: Any, x: Any) -> tuple[Any, Any]:
    """J_v(x), right for x >= v, and Y_v(x); for x or v of 2 or more.

    They are the parts of Hankel's function, DLMF 10.9.18, on a path u + i a(u) through its saddle
    points near that of steepest descent.
    """
    cosine = xp.minimum(v / x, 1 + 0 * x)
    narrow = xp.minimum(1.6 * x ** (-1 / 3), math.pi / 2 + 0 * x)
    # the angle of the upper saddle point; where the two meet, about the width of both
    bend = xp.maximum(xp.acos(cosine), narrow)
    root = xp.sqrt(xp.abs((v - x) * (v + x)))
    alpha = xp.where(v > x, xp.asinh(root / x), 0 * x)
    sharp = xp.maximum(root, x * xp.sin(bend))
    wide = xp.asinh(ENOUGH / sharp + xp.sqrt(ENOUGH / sharp))
    right = xp.minimum(2 * alpha, (ENOUGH + 2) / sharp + 14 / xp.sqrt(sharp)) + wide
    count = 144
    step = (wide + right) / (count - 1)
    u = (wide + right)[..., None] * _constants(xp, x, _even(count)) - (wide + alpha)[..., None]
    slope = xp.sin(bend)[..., None]
    rise = (u - alpha[..., None]) / slope + xp.log(xp.tan(bend / 2))[..., None]
    rise = xp.minimum(xp.maximum(rise, -80 + 0 * rise), 80 + 0 * rise)
    angle, sine, cosine = 2 * xp.atan(xp.exp(rise)), 1 / xp.cosh(rise), -xp.tanh(rise)
    top = xp.where(v > x, v * alpha - root, 0 * x)
    x, v, da = x[..., None], v[..., None], sine / slope
    size = xp.exp(x * xp.sinh(u) * cosine - v * u - top[..., None])
    phase = x * xp.cosh(u) * sine - v * angle
    grown = xp.exp(top / 2)
    j = xp.sum(size * (xp.sin(phase) + da * xp.cos(phase)), axis=-1)
    y = -xp.sum(size * (xp.cos(phase) - da * xp.sin(phase)), axis=-1)
    return step / math.pi * j * grown * grown, step / math.pi * y * grown * grown
