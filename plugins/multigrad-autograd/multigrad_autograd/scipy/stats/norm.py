"""scipy.stats.norm: pdf, logpdf, cdf, logcdf, sf and logsf of the normal distribution.

All are differentiable with respect to x, loc and scale. The densities are separate operations, with
the derivatives of -(x - loc)**2 / (2 scale**2) - log(scale). The distribution functions are those
of multigrad-special at (x - loc) / scale.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats

import multigrad as mg

from ..choosing import differentiable, operand, operations, simple
from .families import cdf as _cdf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

HALF_LOG = 0.5 * math.log(2 * math.pi)


def _valid(scale: Any) -> bool:
    return bool(np.all(scale > 0))


def _logpdf(x: Any, loc: Any, scale: Any, /) -> Any:
    if not _valid(scale):
        return scipy.stats.norm.logpdf(x, loc, scale)
    z = (x - loc) / scale
    return -0.5 * (z * z) - (
        (math.log(scale) if type(scale) is float else np.log(scale)) + HALF_LOG
    )


def _pdf(x: Any, loc: Any, scale: Any, /) -> Any:
    if not _valid(scale):
        return scipy.stats.norm.pdf(x, loc, scale)
    z = (x - loc) / scale
    return np.exp(-0.5 * (z * z)) / (scale * math.sqrt(2 * math.pi))


def _slope(xp: Any, x: Any, loc: Any, scale: Any) -> Any:
    """Return the derivative of the log density for loc; the derivative for x is its negative."""
    return (x - loc) / (scale * scale)


def _slope_by_scale(xp: Any, x: Any, loc: Any, scale: Any) -> Any:
    z = (x - loc) / scale
    return (z * z - 1) / scale


mg.registry.elementwise(
    "hips.norm_logpdf(x, loc, scale, /)",
    forward={"numpy": _logpdf},
    chapter="hips",
    x=lambda xp, x, loc, scale: -_slope(xp, x, loc, scale),
    loc=_slope,
    scale=_slope_by_scale,
    doc="The logarithm of the density of the normal distribution.",
)
mg.registry.elementwise(
    "hips.norm_pdf(x, loc, scale, /)",
    forward={"numpy": _pdf},
    chapter="hips",
    x=lambda xp, x, loc, scale, ans: -ans * _slope(xp, x, loc, scale),
    loc=lambda xp, x, loc, scale, ans: ans * _slope(xp, x, loc, scale),
    scale=lambda xp, x, loc, scale, ans: ans * _slope_by_scale(xp, x, loc, scale),
    doc="The density of the normal distribution.",
)
_logpdf_of_boxes = operations.hips.norm_logpdf
_pdf_of_boxes = operations.hips.norm_pdf


def _raw_logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Return SciPy's value, without SciPy's slow handling of other kinds of arguments."""
    return (
        _logpdf(x, loc, scale) if simple(x, loc, scale) else scipy.stats.norm.logpdf(x, loc, scale)
    )


def _raw_pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Return SciPy's value, as _raw_logpdf does."""
    return _pdf(x, loc, scale) if simple(x, loc, scale) else scipy.stats.norm.pdf(x, loc, scale)


def _with_defaults(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> tuple[Any, Any, Any]:
    return operand(x), operand(loc), operand(scale)


def _boxed_logpdf(*args: Any, **kwargs: Any) -> Any:
    return _logpdf_of_boxes(*_with_defaults(*args, **kwargs))


def _boxed_pdf(*args: Any, **kwargs: Any) -> Any:
    return _pdf_of_boxes(*_with_defaults(*args, **kwargs))


logpdf = differentiable(_raw_logpdf, _boxed_logpdf)
pdf = differentiable(_raw_pdf, _boxed_pdf)
cdf = _cdf(scipy.stats.norm.cdf, (), operations.special.ndtr)
logcdf = _cdf(scipy.stats.norm.logcdf, (), operations.special.log_ndtr, "logcdf")
sf = _cdf(scipy.stats.norm.sf, (), lambda y: operations.special.ndtr(-y), "sf")
logsf = _cdf(scipy.stats.norm.logsf, (), lambda y: operations.special.log_ndtr(-y), "logsf")
logpdf.__name__, pdf.__name__ = "logpdf", "pdf"
