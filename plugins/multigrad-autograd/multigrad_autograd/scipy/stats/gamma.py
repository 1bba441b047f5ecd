"""scipy.stats.gamma: pdf, logpdf and cdf of the gamma distribution.

They are differentiable with respect to x, loc and scale, the densities also with respect to the
shape a. The density at y > 0 is y**(a - 1) exp(-y) / gamma(a).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special
import scipy.stats

import multigrad as mg

from ..choosing import arrays, boxed, operations
from . import families

__all__ = ["cdf", "logpdf", "pdf"]


def _kernel(y: Any, a: Any, /) -> Any:
    inside = np.where(y >= 0, y, 0.0)
    return np.where(
        y >= 0, scipy.special.xlogy(a - 1, inside) - inside, np.where(np.isnan(y), y, -math.inf)
    )


mg.registry.elementwise(
    "hips.gamma_kernel(y, a, /)",
    forward={"numpy": _kernel},
    chapter="hips",
    y=lambda xp, y, a: xp.where(y > 0, (a - 1) / xp.where(y > 0, y, 1.0) - 1, 0.0),
    a=lambda xp, y: xp.log(xp.where(y > 0, y, 1.0)),
    doc="The logarithm of the density of the gamma distribution but for its constant.",
)


def standard_logpdf(y: Any, a: Any) -> Any:
    """Return the logarithm of the density at y."""
    kernel = operations.hips.gamma_kernel(*arrays(y, a)) if boxed(y, a) else _kernel(y, a)
    constant = operations.special.gammaln(a) if boxed(a) else scipy.special.gammaln(a)
    return kernel - (float(constant) if type(a) is float else constant)


def standard_cdf(y: Any, a: Any) -> Any:
    """Return the distribution function at y."""
    return operations.special.gammainc(*arrays(a, mg.where(y > 0, y, 0.0)))


logpdf = families.logpdf(scipy.stats.gamma.logpdf, ("a",), standard_logpdf)
pdf = families.pdf(scipy.stats.gamma.pdf, ("a",), standard_logpdf)
cdf = families.cdf(scipy.stats.gamma.cdf, ("a",), standard_cdf)
