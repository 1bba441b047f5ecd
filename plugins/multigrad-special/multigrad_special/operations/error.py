"""The error function and related functions, and the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import multigrad as mg

from ..standard.forms import refuse_complex
from .declare import declare

SLOPE = 2 / math.sqrt(math.pi)


def _log_ndtr_slope(xp: Any, x: Any, ans: Any) -> Any:
    """The density over ndtr(x).

    Below 0 it uses erfcx, which does not cancel; above 0 it uses the result, since erfcx and its
    square overflow there.
    """
    if xp.isdtype(x.dtype, "complex floating"):
        return xp.exp(-0.5 * x * x - ans) / math.sqrt(2 * math.pi)
    above = x > 0
    low, high = xp.where(above, 0.0, x), xp.where(above, x, 0.0)
    density = xp.exp(-0.5 * high * high - xp.where(above, ans, 0.0)) / math.sqrt(2 * math.pi)
    return xp.where(above, density, math.sqrt(2 / math.pi) / xp.special.erfcx(-low / math.sqrt(2)))


def _erfcx_slope(xp: Any, x: Any, ans: Any) -> Any:
    """2 x erfcx(x) - 2 / sqrt(pi).

    For large x, where the terms cancel, it is an asymptotic series (Abramowitz and Stegun, 7.1.23).
    """
    wide = xp.isdtype(x.dtype, "complex floating")
    limit = 8.0 if xp.finfo(x.dtype).bits > 32 else 4.0
    far = (xp.abs(x) > limit) & (xp.real(x) >= 0) if wide else x > limit
    inverse = 1 / xp.where(far, x, limit * xp.ones_like(x)) ** 2
    term = -0.5 * SLOPE * inverse
    series = term
    for k in range(1, 14):
        term = -term * (k + 0.5) * inverse
        series = series + term
    return xp.where(far, series, 2 * x * ans - SLOPE)


FLAT = 1000.0
"""Beyond this bound gelu is 0 or x in every dtype of the standard, and its derivative 0 or 1."""


def _gelu(xp: Any, x: Any, approximate: str) -> Any:
    """x ndtr(x), which is also 0 at -inf, or its approximation by tanh.

    The approximation uses the logistic function, which does not cancel.
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(
            f"special.gelu: approximate must be 'none' or 'tanh', not {approximate!r}."
        )
    refuse_complex(xp, "gelu", x)
    dtype = x.dtype if xp.isdtype(x.dtype, "real floating") else xp.asarray(0.0).dtype
    x = xp.astype(x, xp.float32 if xp.finfo(dtype).bits < 32 else dtype, copy=False)
    share = (
        xp.special.ndtr(x)
        if approximate == "none"
        else xp.logistic(_tanh_argument(xp.clip(x, -FLAT / 10, FLAT / 10)))
    )
    return xp.astype(xp.maximum(x, -FLAT) * share, dtype, copy=False)


def _tanh_argument(x: Any) -> Any:
    """Twice the argument of tanh."""
    return math.sqrt(8 / math.pi) * (x + 0.044715 * x * x * x)


def _gelu_slope(xp: Any, x: Any, approximate: str) -> Any:
    """ndtr(x) plus x times the normal density.

    For the approximation it is s (1 + x (1 - s) times the derivative of the argument).
    """
    if approximate == "none":
        z = xp.clip(x, -FLAT / 10, FLAT / 10)
        return xp.special.ndtr(x) + z * xp.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    z = xp.clip(x, -FLAT / 20, FLAT / 20)
    s, rest = xp.logistic(_tanh_argument(z)), xp.logistic(-_tanh_argument(z))
    return s * (1 + z * rest * math.sqrt(8 / math.pi) * (1 + 0.134145 * z * z))


def declarations() -> list[mg.registry.Op]:
    return [
        declare(
            "erf(x, /)",
            "The error function of each element.",
            x=lambda xp, x: SLOPE * xp.exp(-x * x),
        ),
        declare(
            "erfc(x, /)",
            "1 - erf(x), accurate where erf(x) is near 1.",
            x=lambda xp, x: -SLOPE * xp.exp(-x * x),
        ),
        declare(
            "erfcx(x, /)",
            "exp(x**2) erfc(x), which approaches 1 / (x sqrt(pi)) for large x.",
            x=_erfcx_slope,
        ),
        declare(
            "erfinv(x, /)",
            "The inverse of erf; nan outside [-1, 1].",
            x=lambda xp, ans: xp.exp(ans * ans) / SLOPE,
        ),
        declare(
            "ndtr(x, /)",
            "The distribution function of the normal distribution.",
            x=lambda xp, x: xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi),
        ),
        # JAX's log_ndtr has 10 digits below -20, and the derivative by its erfinv 11 digits near 1.
        # Its erfcx exists only since 2025.
        declare(
            "log_ndtr(x, /)",
            "The logarithm of ndtr(x), accurate where ndtr(x) is tiny.",
            x=_log_ndtr_slope,
        ),
        declare(
            "ndtri(x, /)",
            "The quantile of the normal distribution, the inverse of ndtr; nan outside [0, 1].",
            x=lambda xp, ans: math.sqrt(2 * math.pi) * xp.exp(0.5 * ans * ans),
        ),
        mg.registry.elementwise(
            "special.gelu(x, /, approximate='none')",
            forward=_gelu,
            x=_gelu_slope,
            chapter="special",
            doc="x ndtr(x), the Gaussian error linear unit; with approximate='tanh' the "
            "approximation by tanh. Same as torch.nn.functional.gelu; 0 at -inf, where PyTorch "
            "gives nan.",
        ),
    ]
