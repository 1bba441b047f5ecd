"""scipy.stats.beta: pdf, logpdf and cdf of the beta distribution.

They are differentiable with respect to x, loc and scale, the densities also with respect to the
shapes a and b. The density at 0 < y < 1 is y**(a - 1) (1 - y)**(b - 1) / B(a, b).
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


def _kernel(y: Any, a: Any, b: Any, /) -> Any:
    support = (y >= 0) & (y <= 1)
    inside = np.where(support, y, 0.5)
    value = scipy.special.xlogy(a - 1, inside) + scipy.special.xlog1py(b - 1, -inside)
    return np.where(support, value, np.where(np.isnan(y), y, -math.inf))


def _inner(xp: Any, y: Any) -> tuple[Any, Any]:
    """Return where the density is smooth, and y there."""
    inside = (y > 0) & (y < 1)
    return inside, xp.where(inside, y, 0.5)


def _by_y(xp: Any, y: Any, a: Any, b: Any) -> Any:
    inside, y = _inner(xp, y)
    return xp.where(inside, (a - 1) / y - (b - 1) / (1 - y), 0.0)


def _by_a(xp: Any, y: Any) -> Any:
    inside, y = _inner(xp, y)
    return xp.where(inside, xp.log(y), 0.0)


def _by_b(xp: Any, y: Any) -> Any:
    inside, y = _inner(xp, y)
    return xp.where(inside, xp.log1p(-y), 0.0)


mg.registry.elementwise(
    "hips.beta_kernel(y, a, b, /)",
    forward={"numpy": _kernel},
    chapter="hips",
    y=_by_y,
    a=_by_a,
    b=_by_b,
    doc="The logarithm of the density of the beta distribution but for its constant.",
)


def _logpdf(y: Any, a: Any, b: Any) -> Any:
    kernel = operations.hips.beta_kernel(*arrays(y, a, b)) if boxed(y, a, b) else _kernel(y, a, b)
    constant = operations.special.betaln(a, b) if boxed(a, b) else scipy.special.betaln(a, b)
    return kernel - (float(constant) if type(a) is type(b) is float else constant)


def _cdf(y: Any, a: Any, b: Any) -> Any:
    return operations.special.betainc(*arrays(a, b, mg.where(y > 0, mg.where(y < 1, y, 1.0), 0.0)))


logpdf = families.logpdf(scipy.stats.beta.logpdf, ("a", "b"), _logpdf)
pdf = families.pdf(scipy.stats.beta.pdf, ("a", "b"), _logpdf)
cdf = families.cdf(scipy.stats.beta.cdf, ("a", "b"), _cdf)
