"""scipy.stats.t: pdf, logpdf, cdf and logcdf of Student's t distribution.

All are differentiable with respect to x, loc and scale, the densities also with respect to df. The
density at y is (1 + y**2/df)**(-(df + 1)/2) / (sqrt(df) B(df/2, 1/2)).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special
import scipy.stats

import multigrad as mg

from ..choosing import arrays, boxed, operations
from . import families

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]


def _kernel(y: Any, df: Any, /) -> Any:
    return -0.5 * (df + 1) * np.log1p(y * y / df)


def _by_df(xp: Any, y: Any, df: Any) -> Any:
    square = y * y
    return 0.5 * ((df + 1) * square / (df * (df + square)) - xp.log1p(square / df))


mg.registry.elementwise(
    "hips.t_kernel(y, df, /)",
    forward={"numpy": _kernel},
    chapter="hips",
    y=lambda xp, y, df: -(df + 1) * y / (df + y * y),
    df=_by_df,
    doc="The logarithm of the density of the t distribution but for its constant.",
)


def _constant(df: Any) -> Any:
    if boxed(df):
        return 0.5 * mg.log(df) + operations.special.betaln(0.5 * df, 0.5)
    value = 0.5 * np.log(df) + scipy.special.betaln(0.5 * df, 0.5)
    return float(value) if type(df) is float else value  # a float keeps float32 arrays in float32


def _logpdf(y: Any, df: Any) -> Any:
    return (operations.hips.t_kernel(y, df) if boxed(y, df) else _kernel(y, df)) - _constant(df)


def _cdf(y: Any, df: Any) -> Any:
    return operations.special.stdtr(*arrays(df, y))


logpdf = families.logpdf(scipy.stats.t.logpdf, ("df",), _logpdf)
pdf = families.pdf(scipy.stats.t.pdf, ("df",), _logpdf)
cdf = families.cdf(scipy.stats.t.cdf, ("df",), _cdf)
logcdf = families.logcdf(scipy.stats.t.logcdf, ("df",), _cdf)
