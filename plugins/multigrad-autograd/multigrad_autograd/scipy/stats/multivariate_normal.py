"""scipy.stats.multivariate_normal: pdf, logpdf and entropy.

The densities are differentiable with respect to x, mean and cov, the entropy with respect to cov.

With d = x - mean and P the inverse of cov, logpdf = -(d P d + log det(cov) + n log(2 pi)) / 2. So
its derivatives are -P d for x, P d for mean and (P d d P - P) / 2 for cov (M. Giles, "Collected
matrix derivative results", 2008, 2.2.3 and 2.3.1). As in SciPy, a covariance is taken as symmetric
and read from its lower half; its gradient is symmetric.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats
from scipy.linalg import lapack

import multigrad as mg

from ..choosing import boxed, differentiable, operand, operations, simple

__all__ = ["entropy", "logpdf", "pdf"]

LOG_2PI = math.log(2 * math.pi)
_scipy = scipy.stats.multivariate_normal


def _factor(cov: Any) -> Any:
    """Return the Cholesky factor of a covariance, or None if there is none."""
    if cov.dtype != np.float64 or not cov.size:
        return None
    factor, failed = lapack.dpotrf(cov, lower=1, clean=0)
    return (
        None
        if failed
        or not np.all(np.isfinite(diagonal := factor.diagonal()))
        or _nearly_singular(diagonal)
        else factor
    )


def _nearly_singular(diagonal: Any) -> bool:
    """Return whether SciPy's test of the eigenvalues might call the matrix singular.

    Only then is SciPy's test needed.
    """
    return bool(diagonal.min() ** 2 < 1e-8 * diagonal.max() ** 2)


def _logpdf_forward(x: Any, mean: Any, cov: Any, /, allow_singular: bool) -> Any:
    factor = _factor(cov)
    if factor is None:
        return _scipy.logpdf(x, mean, cov, allow_singular)
    d = x - mean
    solved, _ = lapack.dtrtrs(factor, d.reshape(-1, d.shape[-1]).T, lower=1)
    out = -0.5 * (np.sum(solved * solved, axis=0) + d.shape[-1] * LOG_2PI) - np.sum(
        np.log(factor.diagonal())
    )
    return out.reshape(d.shape[:-1])[()]


def _entropy_forward(cov: Any, /) -> Any:
    factor = _factor(cov)
    if factor is None:
        return _scipy.entropy(np.zeros(cov.shape[0]), cov)
    return 0.5 * cov.shape[0] * (1 + LOG_2PI) + np.sum(np.log(factor.diagonal()))


def _precision(xp: Any, cov: Any, allow_singular: bool) -> Any:
    return xp.linalg.pinv(cov) if allow_singular else xp.linalg.inv(cov)


def _vjp(xp: Any, g: Any, x: Any, mean: Any, cov: Any, allow_singular: bool, needs: Any) -> Any:
    if needs[2] and allow_singular:
        raise NotImplementedError(
            "multivariate_normal has no derivative by a covariance that may be singular: pass "
            "allow_singular=False"
        )
    precision = _precision(xp, cov, allow_singular)
    solved = (x - mean) @ precision
    weighted = g[..., None] * solved
    by_mean = by_cov = None
    if needs[1]:
        by_mean = (
            weighted
            if weighted.ndim == 1
            else xp.sum(xp.reshape(weighted, (-1, mean.shape[0])), axis=0)
        )
    if needs[2]:
        n = mean.shape[0]
        products = xp.matrix_transpose(xp.reshape(weighted, (-1, n))) @ xp.reshape(solved, (-1, n))
        by_cov = 0.5 * (products - xp.sum(g) * precision)
    return -weighted if needs[0] else None, by_mean, by_cov


def _jvp(
    xp: Any, t_x: Any, t_mean: Any, t_cov: Any, x: Any, mean: Any, cov: Any, allow_singular: bool
) -> Any:
    precision = _precision(xp, cov, allow_singular)
    solved = (x - mean) @ precision
    by_cov = xp.sum((solved @ t_cov) * solved, axis=-1) - xp.sum(precision * t_cov)
    return 0.5 * by_cov - xp.sum((t_x - t_mean) * solved, axis=-1)


mg.registry.define(
    "hips.mvn_logpdf(x, mean, cov, /, allow_singular=False)",
    vjp=_vjp,
    jvp=_jvp,
    forward={"numpy": _logpdf_forward},
    chapter="hips",
    doc="The logarithm of the density of the multivariate normal distribution.",
)
mg.registry.define(
    "hips.mvn_entropy(cov, /)",
    cov=lambda xp, g, cov: 0.5 * g * xp.matrix_transpose(xp.linalg.inv(cov)),
    jvp=lambda xp, t, cov: 0.5 * xp.sum(xp.matrix_transpose(xp.linalg.inv(cov)) * t),
    forward={"numpy": _entropy_forward},
    chapter="hips",
    doc="The entropy of the multivariate normal distribution.",
)


def _shaped(x: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any]:
    """Return points (..., n), a mean (n,) and a covariance (n, n), from SciPy's forms.

    SciPy also takes numbers for one dimension, and a vector for a diagonal covariance.
    """
    mean, cov = operand(0.0 if mean is None else mean), operand(1.0 if cov is None else cov)
    n = max(np.size(mean) if np.ndim(mean) == 1 else 1, np.shape(cov)[0] if np.ndim(cov) else 1)
    n = (
        x.shape[-1]
        if np.ndim(mean) == 0 and np.ndim(cov) == 0 and n == 1 and getattr(x, "ndim", 0) > 1
        else n
    )
    if np.ndim(mean) == 0:
        mean = mean * np.ones(n)
    if np.ndim(cov) < 2:
        cov = (cov if np.ndim(cov) == 0 else cov[:, None]) * np.eye(n)
    if x.ndim == 0 or (x.ndim == 1 and n == 1):
        x = x[..., None]
    return x, mean, cov


def _logpdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    x = x if not isinstance(x, float) else np.asarray(x)
    return operations.hips.mvn_logpdf(*_shaped(x, mean, cov), bool(allow_singular))


def _pdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    return mg.exp(_logpdf(x, mean, cov, allow_singular))


def _entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    if not boxed(cov):
        return _scipy.entropy(np.zeros(np.shape(cov)[:1]), cov)
    return operations.hips.mvn_entropy(_shaped(np.zeros(1), mean, cov)[2])


def _quick(x: Any, mean: Any, cov: Any) -> bool:
    """Return whether the forward function takes these shapes and dtypes; SciPy takes more."""
    return (
        simple(x, mean, cov)
        and np.ndim(cov) == 2
        and np.shape(mean) == cov.shape[:1] == np.shape(x)[-1:]
        and cov.shape[0] == cov.shape[1]
    )


def _raw_logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    return (_logpdf_forward if _quick(x, mean, cov) else _scipy.logpdf)(
        x, mean, cov, allow_singular
    )


def _raw_pdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    return (
        np.exp(_logpdf_forward(x, mean, cov, allow_singular))
        if _quick(x, mean, cov)
        else _scipy.pdf(x, mean, cov, allow_singular)
    )


logpdf = differentiable(_raw_logpdf, _logpdf, 3)
pdf = differentiable(_raw_pdf, _pdf, 3)
entropy = differentiable(_scipy.entropy, _entropy, 2)
logpdf.__name__, pdf.__name__, entropy.__name__ = "logpdf", "pdf", "entropy"
