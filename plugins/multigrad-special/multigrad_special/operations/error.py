"""The error function and its kin, and the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import multigrad as mg

from .declare import ON_JAX, declare

SLOPE = 2 / math.sqrt(math.pi)


def _log_ndtr_slope(xp: Any, x: Any, ans: Any) -> Any:
    """The density over ndtr(x): below 0 by erfcx, which does not cancel; above by the result, since erfcx and its square overflow there."""
    above = x > 0
    low, high = xp.where(above, 0.0, x), xp.where(above, x, 0.0)
    density = xp.exp(-0.5 * high * high - xp.where(above, ans, 0.0)) / math.sqrt(2 * math.pi)
    return xp.where(above, density, math.sqrt(2 / math.pi) / xp.special.erfcx(-low / math.sqrt(2)))


def _erfcx_slope(xp: Any, x: Any, ans: Any) -> Any:
    """2 x erfcx(x) - 2 / sqrt(pi); from 10 on, where these cancel, its asymptotic series (Abramowitz and Stegun, 7.1.23)."""
    slope = 2 * x * ans - SLOPE
    if xp.isdtype(x.dtype, "complex floating"):
        return slope
    inverse = 1 / xp.where(x > 10, x, 10.0) ** 2
    term = -0.5 * SLOPE * inverse
    series = term
    for k in range(1, 14):
        term = -term * (k + 0.5) * inverse
        series = series + term
    return xp.where(x > 10, series, slope)


def declarations() -> list[mg.registry.Op]:
    return [
        declare("erf(x, /)", "The error function of each element.",
                 x=lambda xp, x: SLOPE * xp.exp(-x * x)),
        declare("erfc(x, /)", "1 - erf(x), accurate where erf(x) is near 1.",
                 x=lambda xp, x: -SLOPE * xp.exp(-x * x)),
        # JAX's own is as young as 2025.
        declare("erfcx(x, /)", "exp(x**2) erfc(x), which far out is 1 / (x sqrt(pi)).", jax=f"{ON_JAX}erfcx", x=_erfcx_slope),
        declare("erfinv(x, /)", "The inverse of erf; nan outside [-1, 1].",
                 x=lambda xp, ans: xp.exp(ans * ans) / SLOPE),
        declare("ndtr(x, /)", "The distribution function of the normal distribution.",
                 x=lambda xp, x: xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)),
        # JAX's has 10 digits below -20.
        declare("log_ndtr(x, /)", "The logarithm of ndtr(x), accurate where that is tiny.", jax=f"{ON_JAX}log_ndtr",
                 x=_log_ndtr_slope),
        declare("ndtri(x, /)", "The quantile of the normal distribution, the inverse of ndtr; nan outside [0, 1].",
                 x=lambda xp, ans: math.sqrt(2 * math.pi) * xp.exp(0.5 * ans * ans)),
    ]
