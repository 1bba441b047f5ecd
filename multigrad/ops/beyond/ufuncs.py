"""Elementwise functions of NumPy that the standard lacks.

The library's own function runs if it exists.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from itertools import count
from typing import Any

from ...registry import About, composite, elementwise
from ..elementwise import _arrays, _share, softmax_weight
from ..kernels import DEGREE, LN2, PI, RADIAN


def cbrt(xp: Any, x: Any) -> Any:
    """The power 1/3, corrected by one step of Newton's method to within one rounding error."""
    root = xp.copysign(xp.abs(x) ** (xp.ones_like(x) / 3), x)
    plain = (root == 0) | ~xp.isfinite(root)
    safe = xp.where(plain, 1.0, root)
    return xp.where(plain, root, safe - (safe - xp.where(plain, 1.0, x) / (safe * safe)) / 3)


def beside_nan(pick: str, xp: Any, x1: Any, x2: Any) -> Any:
    """Compute fmax or fmin: the extremum of two elements, where a number wins against nan."""
    x1, x2 = _arrays(xp, x1, x2)
    extremum = getattr(xp, pick)(x1, x2)
    return xp.where(xp.isnan(x1), x2, xp.where(xp.isnan(x2), x1, extremum))


def _chosen(xp: Any, g: Any, x: Any, other: Any, lost: Any) -> Any:
    """The gradient of an argument of fmax or fmin.

    A number wins against nan; two nans get half of it each.
    """
    here, there = xp.isnan(x), xp.isnan(other)
    return _share(xp, g, (x == other) | (here & there), lost | (here & ~there))


def heaviside(xp: Any, x1: Any, x2: Any) -> Any:
    x1, x2 = _arrays(xp, x1, x2)
    return xp.where(xp.isnan(x1), x1, xp.where(x1 == 0, x2, xp.astype(x1 > 0, x1.dtype)))


def fmod(xp: Any, x1: Any, x2: Any) -> Any:
    x1, x2 = _arrays(xp, x1, x2)
    return x1 - xp.trunc(x1 / x2) * x2


def logaddexp2(xp: Any, x1: Any, x2: Any) -> Any:
    dtype = xp.result_type(x1, x2)
    x1, x2 = (xp.astype(x, dtype) for x in _arrays(xp, x1, x2))
    return xp.logaddexp(xp.scaled(x1, LN2), xp.scaled(x2, LN2)) / xp.scaled(xp.ones_like(x1), LN2)


@lru_cache
def _terms(eps: float) -> int:
    """The number of terms of the sinc series that its derivatives need, up to pi / 4."""
    return next(
        k
        for k in count(11)
        if (2 * k + 2) * math.log(math.pi / 4) - math.lgamma(2 * k + 4) < math.log(eps) - 25
    )


def sinc(xp: Any, x: Any) -> Any:
    """Near 0 the series of sin(pi x) / (pi x), elsewhere the quotient.

    The series has the correct derivatives of every order.
    """
    near = xp.abs(x) < 0.25
    square = xp.where(near, xp.square(xp.scaled(x, PI)), 0.0)
    series = xp.ones_like(square)
    for k in range(_terms(float(xp.finfo(series.dtype).eps)), 0, -1):
        series = 1 - series * square / (2 * k * (2 * k + 1))
    far = xp.scaled(xp.where(near, 1.0, x), PI)
    return xp.where(near, series, xp.sin(far) / far)


# fmt: off
elementwise("cbrt(x, /)", forward={"*": cbrt}, x=lambda xp, g, ans: g / (3.0 * ans * ans),
            doc="The real cube root of each element, as numpy.cbrt. The gradient at 0 is inf.",
            about=About(at="inf at 0"))
elementwise("deg2rad(x, /)", forward={"*": lambda xp, x: xp.scaled(x, DEGREE)},
            x=lambda xp, g: xp.scaled(g, DEGREE),
            doc="Angles in degrees as radians, as numpy.deg2rad.",
            about=About(example="mg.asarray([90.0, 180.0])", numpy=("radians",), method=True))
elementwise("exp2(x, /)", forward={"*": lambda xp, x: 2.0**x},
            x=lambda xp, ans: xp.scaled(ans, LN2),
            doc="2 to the power of each element, as numpy.exp2.",
            about=About(method=True))
elementwise("fmax(x1, x2, /)", forward={"*": partial(beside_nan, "maximum")},
            x1=lambda xp, g, x1, x2: _chosen(xp, g, x1, x2, x1 < x2),
            x2=lambda xp, g, x1, x2: _chosen(xp, g, x2, x1, x2 < x1),
            doc="The larger of each pair of elements, where a number wins against nan, as "
                "numpy.fmax. Ties share the gradient.",
            about=About(gradient={"x1": "where(x1 > x2, g, 0)", "x2": "where(x2 > x1, g, 0)"},
                        at="g / 2 to each of two equal elements", method=True))
elementwise("fmin(x1, x2, /)", forward={"*": partial(beside_nan, "minimum")},
            x1=lambda xp, g, x1, x2: _chosen(xp, g, x1, x2, x1 > x2),
            x2=lambda xp, g, x1, x2: _chosen(xp, g, x2, x1, x2 > x1),
            doc="The smaller of each pair of elements, where a number wins against nan, as "
                "numpy.fmin. Ties share the gradient.",
            about=About(gradient={"x1": "where(x1 < x2, g, 0)", "x2": "where(x2 < x1, g, 0)"},
                        at="g / 2 to each of two equal elements", method=True))
elementwise("fmod(x1, x2, /)", forward={"*": fmod}, x1=1,
            x2=lambda xp, g, x1, x2: -g * xp.trunc(x1 / x2),
            doc="The remainder of division with the sign of x1, as numpy.fmod.",
            about=About(method=True))
elementwise("heaviside(x1, x2, /)", forward={"*": heaviside}, x1=0,
            x2=lambda xp, g, x1: xp.where(x1 == 0, g, 0.0),
            doc="0 where x1 is negative, x2 where it is 0, and 1 where it is positive, as "
                "numpy.heaviside.",
            about=About(method=True))
elementwise("logaddexp2(x1, x2, /)", forward={"*": logaddexp2},
            x1=lambda xp, x1, x2: softmax_weight(xp, x1, x2, LN2),
            x2=lambda xp, x1, x2: softmax_weight(xp, x2, x1, LN2),
            doc="log2(2**x1 + 2**x2), without overflow, as numpy.logaddexp2.",
            about=About(gradient={"x1": "g * exp2(x1 - ans)", "x2": "g * exp2(x2 - ans)"},
                        method=True))
elementwise("rad2deg(x, /)", forward={"*": lambda xp, x: xp.scaled(x, RADIAN)},
            x=lambda xp, g: xp.scaled(g, RADIAN),
            doc="Angles in radians as degrees, as numpy.rad2deg.",
            about=About(example="mg.asarray([1.0, 3.0])", numpy=("degrees",), method=True))
composite("sinc(x, /)", sinc,
          doc="sin(pi x) / (pi x), and 1 at 0, as numpy.sinc. Derivatives of every order are "
              "correct at 0.",
          about=About(method=True))
