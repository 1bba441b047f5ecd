"""Exponential integrals, the dilogarithm and the confluent hypergeometric function."""

from __future__ import annotations

import math
from typing import Any

import multigrad as mg

from ..standard.confluent import evaluated
from ..standard.forms import elementwise, floats
from .declare import declare
from .gamma import digamma_step, rgamma_slope


def _exp1_slope(xp: Any, x: Any) -> Any:
    slope = -xp.exp(-x) / x
    return slope if xp.isdtype(x.dtype, "complex floating") else xp.where(x < 0, math.nan, slope)


def _expn_slope(xp: Any, n: Any, x: Any) -> Any:
    """-expn(n - 1, x) (Abramowitz and Stegun, 5.1.26); expn(0, x) is exp(-x) / x."""
    first = n == 0
    safe = xp.where(first & (x != 0), x, 1.0)
    below = xp.where(x == 0, math.inf, xp.exp(-safe) * (1 / safe + 1 / (safe * safe)))
    return -xp.where(
        (x < 0) | (n < 0),
        math.nan,
        xp.where(first, below, xp.special.expn(xp.where(first, xp.ones_like(n), n) - 1, x)),
    )


def _spence_slope(xp: Any, z: Any) -> Any:
    """log(z) / (1 - z).

    Near 1 it uses the series of artanh in s = (z - 1) / (z + 1), which is half of log(z).
    """
    near = xp.abs(z - 1) < 0.5
    w = xp.where(near, z - 1, 0.0)
    s = w / (2 + w)
    square = s * s
    series = xp.zeros_like(s)
    for k in range(20, -1, -1):
        series = series * square + 1 / (2 * k + 1)
    far = xp.where(near, 3.0, z)
    return xp.where(near, -2 * series / (2 + w), xp.log(far) / (1 - far))


def _hyp1f1_by(by: str) -> Any:
    """Make the derivative with respect to a parameter, term by term (standard/confluent.py)."""

    def slope(xp: Any, a: Any, b: Any, x: Any) -> Any:
        return evaluated(
            xp,
            a,
            b,
            x,
            by,
            gamma=xp.special.gamma,
            digamma=xp.special.digamma,
            step=lambda u, v: digamma_step(xp, u, v),
            fall=lambda v: rgamma_slope(xp, v, 0.0 * v),
        )

    slope.__name__ = f"hyp1f1 by {by}"  # as its errors say
    form = elementwise(slope)
    return lambda xp, a, b, x: form(xp, a, b, x)


def _hyp1f1_by_x(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The derivative with respect to x, DLMF 13.3.15.

    The parameters are real; a Python scalar beside a complex array arrives as a complex number.
    """
    a, b, x = floats(
        xp, *(xp.real(v) if xp.isdtype(v.dtype, "complex floating") else v for v in (a, b)), x
    )
    return a / b * xp.special.hyp1f1(a + 1, b + 1, x)


def declarations() -> list[mg.registry.Op]:
    return [
        declare(
            "exp1(x, /)",
            "The exponential integral E1, the integral of exp(-t) / t from x to infinity; nan for "
            "negative real x.",
            x=_exp1_slope,
        ),
        declare(
            "expi(x, /)",
            "The exponential integral Ei, the integral of exp(t) / t from -infinity to x.",
            x=lambda xp, x: xp.exp(x) / x,
        ),
        declare(
            "expn(n, x, /)",
            "The exponential integral of order n, a nonnegative integer; nan where x is negative.",
            x=_expn_slope,
        ),
        declare(
            "spence(z, /)",
            "The dilogarithm of 1 - z, the integral of log(t) / (1 - t) from 1 to z; nan for "
            "negative real z.",
            cupy=None,
            z=_spence_slope,
        ),
        declare(
            "hyp1f1(a, b, x, /)",
            "The confluent hypergeometric function 1F1. Its derivatives by a and b are for real "
            "arguments, and so are its values on libraries without the function. They are nan "
            "where their series converge too slowly, far outside of |a|, |b| < 20, or where their "
            "terms cancel more than 17 digits (6 in float32).",
            cupy=None,
            a=_hyp1f1_by("a"),
            b=_hyp1f1_by("b"),
            x=_hyp1f1_by_x,
        ),
    ]
