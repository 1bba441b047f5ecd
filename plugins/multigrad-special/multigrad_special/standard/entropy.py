"""The logistic function and related functions; x log y and functions based on it."""

from __future__ import annotations

import math
from typing import Any

from .common import horner
from .forms import elementwise, elementwise_or_complex

__all__ = ["entr", "expit", "kl_div", "log_expit", "logit", "rel_entr", "xlog1py", "xlogy"]


@elementwise
def expit(xp: Any, x: Any) -> Any:
    """The logistic function, without overflow on either side."""
    e = xp.exp(-xp.abs(x))
    return xp.where(x < 0, e, 1.0) / (1 + e)


@elementwise
def log_expit(xp: Any, x: Any) -> Any:
    """log(expit(x)), which is x far below 0."""
    return xp.where(x < 0, x, 0.0) - xp.log1p(xp.exp(-xp.abs(x)))


@elementwise
def logit(xp: Any, x: Any) -> Any:
    """The inverse of expit, as accurate near its zero 1/2 as elsewhere; nan outside [0, 1]."""
    middle = xp.where((x > 0.25) & (x < 0.75), x, 0.5)
    inside = (x >= 0) & (x <= 1)
    far = xp.where(inside, x, 0.5)
    value = xp.where(
        middle == x, xp.log1p((2 * middle - 1) / (1 - middle)), xp.log(far) - xp.log1p(-far)
    )
    return xp.where(inside, value, math.nan)


@elementwise_or_complex
def xlogy(xp: Any, x: Any, y: Any) -> Any:
    """x log(y), 0 where x is 0."""
    return xp.where((x == 0) & ~xp.isnan(y), 0.0, x * xp.log(y))


@elementwise_or_complex
def xlog1py(xp: Any, x: Any, y: Any) -> Any:
    """x log(1 + y), 0 where x is 0."""
    return xp.where((x == 0) & ~xp.isnan(y), 0.0, x * xp.log1p(y))


@elementwise
def entr(xp: Any, x: Any) -> Any:
    """-x log(x), 0 at 0 and -inf below."""
    return xp.where(x == 0, 0.0, xp.where(x < 0, -math.inf, -x * xp.log(x)))


@elementwise
def rel_entr(xp: Any, x: Any, y: Any) -> Any:
    """x log(x / y), 0 where x is 0 and y is not negative, inf where either is negative."""
    value = x * log_ratio(xp, x, y)
    unknown = xp.isnan(x) | xp.isnan(y)
    return xp.where(
        unknown,
        math.nan,
        xp.where((x == 0) & (y >= 0), 0.0, xp.where((x > 0) & (y > 0), value, math.inf)),
    )


@elementwise
def kl_div(xp: Any, x: Any, y: Any) -> Any:
    """x log(x / y) - x + y, with the same exceptions."""
    change = (y - x) / xp.where(x == 0, 1.0, x)
    near = xp.abs(change) < 0.5
    value = xp.where(
        near, x * _curvature(xp, xp.where(near, change, 0.0)), x * log_ratio(xp, x, y) - x + y
    )
    unknown = xp.isnan(x) | xp.isnan(y)
    return xp.where(
        unknown,
        math.nan,
        xp.where((x == 0) & (y >= 0), y, xp.where((x > 0) & (y > 0), value, math.inf)),
    )


def log_ratio(xp: Any, x: Any, y: Any) -> Any:
    """log(x / y), also where the quotient would overflow.

    It is exact to its last digits where x is near y.
    """
    ratio = x / y
    near = (ratio > 0.5) & (ratio < 2)
    outside = (ratio == 0) | xp.isinf(ratio)
    apart = xp.where(outside, xp.log(x) - xp.log(y), xp.log(ratio))
    return xp.where(near, xp.log1p(xp.where(near, (x - y) / y, 0.0)), apart)


def _curvature(xp: Any, w: Any) -> Any:
    """w - log1p(w) for |w| < 1/2.

    It uses the series of artanh in s = w / (2 + w), which is half of the logarithm.
    """
    s = w / (2 + w)
    square = s * s
    return 2 * square * (1 / (1 - s) - s * horner([1 / (2 * k + 3) for k in range(17)], square))
