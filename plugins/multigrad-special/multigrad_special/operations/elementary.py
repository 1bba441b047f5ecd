"""Functions composed of elementary functions.

These are roots, powers, trigonometry in degrees, Box-Cox transformations, and losses.
"""

from __future__ import annotations

import math
from typing import Any

import multigrad as mg

from ..standard.elementary import DEGREE
from ..standard.forms import floats
from .declare import declare

LN2, LN10 = math.log(2), math.log(10)


def _exprel_slope(xp: Any, x: Any) -> Any:
    """The integral of t exp(x t) over t from 0 to 1.

    Near 0 it is a power series, elsewhere (exp(x) (x - 1) + 1) / x**2 without cancellation.
    """
    near = xp.abs(x) < 2
    u = xp.where(near, x, 0.0)
    series = xp.zeros_like(u)
    for k in range(32, -1, -1):
        series = series * u + 1 / (math.factorial(k) * (k + 2))
    below = xp.where(near | (x > 0), -2.0, x)
    above = xp.where(near | (x < 0), 2.0, x)
    falling = (xp.exp(below) - xp.special.exprel(below)) / below
    # The last factor is 0 at infinity, where the result has overflowed already.
    growing = xp.exp(above) * ((1 - xp.special.exprel(-above)) / xp.where(above > 1e3, 1e3, above))
    return xp.where(near, series, xp.where(x < 0, falling, growing))


def _log1p_ratio_slope(xp: Any, v: Any) -> Any:
    """(1 + v) times the derivative of log1p(v) / v, that is (v - (1 + v) log1p(v)) / v**2.

    Near 0 it uses the series of artanh in s = v / (2 + v), which is half of log1p(v); its terms
    hardly cancel.
    """
    near = xp.abs(v) < 0.5
    u = xp.where(near, v, 0.0)
    s = u / (2 + u)
    series = xp.zeros_like(u)
    for k in range(22, 0, -1):
        series = series * s * s + 1 / (2 * k + 1)
    close = -(1 + u) * (2 / (1 + s) + 2 * s * series) / (2 + u) ** 2
    far = xp.where(near, 1.0, v)
    return xp.where(near, close, (far - xp.special.xlogy(1 + far, 1 + far)) / (far * far))


def _sinc_slope(xp: Any, x: Any, ans: Any) -> Any:
    """Near 0 the derivative of the power series, elsewhere (cos(pi x) - sinc(x)) / x.

    x is reduced by an even number, which is exact.
    """
    near = xp.abs(x) < 0.5
    square = xp.where(near, (math.pi * x) ** 2, 0.0)
    series = xp.zeros_like(square)
    for k in range(14, 0, -1):
        series = (-1) ** k * 2 * k / math.factorial(2 * k + 1) + series * square
    far = xp.where(near, 1.0, x)
    turns = 0.0 if xp.isdtype(x.dtype, "complex floating") else xp.round(0.5 * far)
    cosine = xp.cos(math.pi * (far - 2 * turns))
    return xp.where(near, math.pi**2 * x * series, (cosine - xp.where(near, 0.0, ans)) / far)


# ----- Box-Cox transformations -----


def _boxcox_by_x(xp: Any, x: Any, lmbda: Any) -> Any:
    x, lmbda = floats(xp, x, lmbda)
    known = (x >= 0) & ~xp.isnan(lmbda)  # nan**0 and 1**nan are 1
    return xp.where(known, xp.where(known, x, 1.0) ** (lmbda - 1), math.nan)


def _boxcox_by_lmbda(xp: Any, x: Any, lmbda: Any) -> Any:
    x, lmbda = floats(xp, x, lmbda)
    return _transformed_by_lmbda(xp, xp.log(x), lmbda)


def _boxcox1p_by_lmbda(xp: Any, x: Any, lmbda: Any) -> Any:
    x, lmbda = floats(xp, x, lmbda)
    return _transformed_by_lmbda(xp, xp.log1p(x), lmbda)


def _transformed_by_lmbda(xp: Any, logarithm: Any, lmbda: Any) -> Any:
    """L**2 times the derivative of exprel at lmbda L, where L is the logarithm.

    Where L is -inf and lmbda is positive, it is 1 / lmbda**2.
    """
    lost = (logarithm == -math.inf) & (lmbda > 0)
    known = xp.where(lost, 0.0, logarithm)
    return xp.where(
        lost, 1 / xp.where(lost, lmbda, 1.0) ** 2, known * known * _exprel_slope(xp, lmbda * known)
    )


def _boxcox1p_by_x(xp: Any, x: Any, lmbda: Any) -> Any:
    """(1 + x)**(lmbda - 1), from log1p(x), so that 1 + x is not rounded first."""
    x, lmbda = floats(xp, x, lmbda)
    edge = x == -1
    inside = xp.where(edge | (x < -1), 0.0, x)
    slope = xp.where(
        edge, xp.where(edge, 0.0, inside + 1) ** (lmbda - 1), xp.exp((lmbda - 1) * xp.log1p(inside))
    )
    return xp.where(x < -1, math.nan, slope)


def _restored_slope(xp: Any, y: Any, lmbda: Any) -> Any:
    """The derivative of inv_boxcox with respect to y, (1 + lmbda y)**(1 / lmbda - 1).

    At the end of its domain it is 0, 1 or inf.
    """
    y, lmbda = floats(xp, y, lmbda)
    base = 1 + lmbda * y
    end = base == 0
    at_end = xp.where(end, 0.0, xp.ones_like(base)) ** (1 / xp.where(end, lmbda, 1.0) - 1)
    return xp.where(end, at_end, xp.special.inv_boxcox(y, lmbda) / xp.where(end, 1.0, base))


def _restored_by_lmbda(xp: Any, y: Any, lmbda: Any) -> Any:
    y, lmbda = floats(xp, y, lmbda)
    return _restored_slope(xp, y, lmbda) * (y * y * _log1p_ratio_slope(xp, lmbda * y))


# ----- losses -----


def _huber_by_r(xp: Any, delta: Any, r: Any) -> Any:
    delta, r = floats(xp, delta, r)
    return xp.where(delta < 0, math.nan, xp.where(xp.abs(r) <= delta, r, delta * xp.sign(r)))


def _huber_by_delta(xp: Any, delta: Any, r: Any) -> Any:
    delta, r = floats(xp, delta, r)
    size = xp.abs(r)
    return xp.where(delta < 0, math.nan, xp.where(size <= delta, 0.0, size - delta))


def _pseudo_huber_by_r(xp: Any, delta: Any, r: Any) -> Any:
    """r / sqrt(1 + (r / delta)**2).

    Where |r| is larger than delta it uses the inverse quotient, so that its own derivatives do not
    cancel.
    """
    delta, r = floats(xp, delta, r)
    far = xp.abs(r) > delta
    inverse = xp.where(far, delta, 0.0) / xp.where(far, r, 1.0)
    quotient = xp.where(far, 0.0, r) / xp.where(far | (delta == 0), 1.0, delta)
    slope = xp.where(
        far,
        delta * xp.sign(r) / xp.sqrt(1 + inverse * inverse),
        r / xp.sqrt(1 + quotient * quotient),
    )
    return xp.where(delta < 0, math.nan, slope)


def _pseudo_huber_by_delta(xp: Any, delta: Any, r: Any) -> Any:
    """(h - delta)**2 / h with the hypotenuse h; h - delta is computed as r**2 / (h + delta)."""
    delta, r = floats(xp, delta, r)
    nothing = (delta == 0) & (r == 0)
    size = xp.hypot(xp.where(nothing, 1.0, delta), r)
    excess = r * (r / (size + delta))
    return xp.where(delta < 0, math.nan, excess * (excess / size))


def declarations() -> list[mg.registry.Op]:
    return [
        declare(
            "cbrt(x, /)",
            "The real cube root of each element. The gradient at 0 is inf.",
            x=lambda xp, g, ans: g / (3 * ans * ans),
        ),
        declare("exp2(x, /)", "2 to the power of each element.", x=lambda xp, ans: ans * LN2),
        declare(
            "sinc(x, /)",
            "sin(pi x) / (pi x), and 1 at 0, as numpy.sinc. Derivatives of every order are "
            "accurate near 0.",
            x=_sinc_slope,
        ),
        declare("exp10(x, /)", "10 to the power of each element.", x=lambda xp, ans: ans * LN10),
        declare("cosm1(x, /)", "cos(x) - 1, accurate near 0.", x=lambda xp, x: -xp.sin(x)),
        declare(
            "exprel(x, /)",
            "(exp(x) - 1) / x, and 1 at 0. Derivatives of every order are accurate near 0.",
            x=_exprel_slope,
        ),
        declare(
            "sindg(x, /)",
            "The sine of an angle in degrees, exact at multiples of 90.",
            x=lambda xp, x: DEGREE * xp.special.cosdg(x),
        ),
        declare(
            "cosdg(x, /)",
            "The cosine of an angle in degrees, exact at multiples of 90.",
            x=lambda xp, x: -DEGREE * xp.special.sindg(x),
        ),
        # The functions of SciPy and cupyx lose digits near the poles (cotdg(1e-9) more than half of
        # them), and give 0 beyond 1e14.
        declare(
            "tandg(x, /)",
            "The tangent of an angle in degrees; both the value and the gradient are inf at its "
            "poles.",
            numpy=None,
            cupy=None,
            x=lambda xp, ans: DEGREE * (1 + ans * ans),
        ),
        declare(
            "cotdg(x, /)",
            "The cotangent of an angle in degrees; inf at its poles, where the gradient is -inf.",
            numpy=None,
            cupy=None,
            x=lambda xp, ans: -DEGREE * (1 + ans * ans),
        ),
        declare(
            "radian(d, m, s, /)",
            "The angle of degrees, minutes and seconds in radians.",
            d=DEGREE,
            m=DEGREE / 60,
            s=DEGREE / 3600,
        ),
        declare(
            "boxcox(x, lmbda, /)",
            "The Box-Cox transformation, (x**lmbda - 1) / lmbda, or log(x) where lmbda is 0; nan "
            "where x is negative.",
            x=_boxcox_by_x,
            lmbda=_boxcox_by_lmbda,
        ),
        declare(
            "boxcox1p(x, lmbda, /)",
            "boxcox(1 + x, lmbda), accurate near 0; nan where x is below -1.",
            x=_boxcox1p_by_x,
            lmbda=_boxcox1p_by_lmbda,
        ),
        declare(
            "inv_boxcox(y, lmbda, /)",
            "The inverse of boxcox: (1 + lmbda y)**(1 / lmbda), or exp(y) where lmbda is 0.",
            y=_restored_slope,
            lmbda=_restored_by_lmbda,
        ),
        declare(
            "inv_boxcox1p(y, lmbda, /)",
            "The inverse of boxcox1p: inv_boxcox(y, lmbda) - 1, accurate near 0.",
            y=_restored_slope,
            lmbda=_restored_by_lmbda,
        ),
        declare(
            "huber(delta, r, /)",
            "Huber's loss: r**2 / 2 where |r| is at most delta, else delta (|r| - delta / 2); inf "
            "where delta is negative.",
            delta=_huber_by_delta,
            r=_huber_by_r,
        ),
        declare(
            "pseudo_huber(delta, r, /)",
            "The smooth Huber loss, delta**2 (sqrt(1 + (r / delta)**2) - 1); inf where delta is "
            "negative.",
            delta=_pseudo_huber_by_delta,
            r=_pseudo_huber_by_r,
        ),
    ]
