"""scipy.stats.chi2: pdf, logpdf and cdf of the chi-squared distribution.

They are differentiable with respect to x, loc and scale, the densities also with respect to df. It
is the gamma distribution of shape df/2 at y/2.
"""

from __future__ import annotations

import math
from typing import Any

import scipy.stats

from . import families
from .gamma import standard_cdf, standard_logpdf

__all__ = ["cdf", "logpdf", "pdf"]


def _logpdf(y: Any, df: Any) -> Any:
    return standard_logpdf(0.5 * y, 0.5 * df) - math.log(2)


logpdf = families.logpdf(scipy.stats.chi2.logpdf, ("df",), _logpdf)
pdf = families.pdf(scipy.stats.chi2.pdf, ("df",), _logpdf)
cdf = families.cdf(scipy.stats.chi2.cdf, ("df",), lambda y, df: standard_cdf(0.5 * y, 0.5 * df))
