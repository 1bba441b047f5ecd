"""scipy.stats.poisson: pmf, logpmf and cdf of the Poisson distribution.

They are differentiable with respect to the mean mu. The probability of k = 0, 1, ... is mu**k
exp(-mu) / k!. The derivative of the sum of the terms up to k is minus the last term.
"""

from __future__ import annotations

from typing import Any

import scipy.stats

import multigrad as mg

from ..choosing import differentiable, operand, operations

__all__ = ["cdf", "logpmf", "pmf"]


def _slope(xp: Any, k: Any, mu: Any) -> Any:
    return xp.where((k >= 0) & (xp.floor(k) == k), k / mu - 1, 0.0)


def _cdf_slope(xp: Any, k: Any, mu: Any) -> Any:
    return -xp.exp(xp.hips.poisson_logpmf(xp.floor(k), mu))


mg.registry.elementwise(
    "hips.poisson_logpmf(k, mu, /)",
    forward={"numpy": scipy.stats.poisson.logpmf},
    chapter="hips",
    mu=_slope,
    doc="The logarithm of the probability of k; differentiable by mu.",
)
mg.registry.elementwise(
    "hips.poisson_cdf(k, mu, /)",
    forward={"numpy": scipy.stats.poisson.cdf},
    chapter="hips",
    mu=_cdf_slope,
    doc="The probability of at most k; differentiable by mu.",
)


def _moved(k: Any, loc: Any) -> Any:
    return k if type(loc) is int and loc == 0 else k - operand(loc)


def _logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    return operations.hips.poisson_logpmf(_moved(k, loc), operand(mu))


def _pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    return mg.exp(_logpmf(k, mu, loc))


def _cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    return operations.hips.poisson_cdf(_moved(k, loc), operand(mu))


logpmf = differentiable(scipy.stats.poisson.logpmf, _logpmf, 2)
pmf = differentiable(scipy.stats.poisson.pmf, _pmf, 2)
cdf = differentiable(scipy.stats.poisson.cdf, _cdf, 2)
logpmf.__name__, pmf.__name__, cdf.__name__ = "logpmf", "pmf", "cdf"
