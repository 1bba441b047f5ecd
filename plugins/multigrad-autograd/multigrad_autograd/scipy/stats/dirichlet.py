"""scipy.stats.dirichlet: pdf, logpdf and rvs of the Dirichlet distribution.

The densities are differentiable with respect to x and alpha. The density is the product of
x[i]**(alpha[i] - 1), divided by the product of gamma(alpha[i]) over gamma(sum(alpha)).
"""

from __future__ import annotations

from typing import Any

import scipy.stats

import multigrad as mg

from ..choosing import boxed, differentiable, operations, refusing

__all__ = ["logpdf", "pdf", "rvs"]


def _by_x(xp: Any, x: Any, alpha: Any) -> Any:
    return (_column(xp, alpha, x) - 1) / x


def _by_alpha(xp: Any, x: Any, alpha: Any) -> Any:
    return xp.log(x) + _column(xp, xp.special.digamma(xp.sum(alpha)) - xp.special.digamma(alpha), x)


def _column(xp: Any, alpha: Any, x: Any) -> Any:
    """Shape a vector of parameters for one or many points, whose first axis is that of alpha."""
    return alpha if x.ndim == 1 else alpha[:, None]


def _vjp(xp: Any, g: Any, x: Any, alpha: Any, needs: Any) -> Any:
    by_alpha = g * _by_alpha(xp, x, alpha) if needs[1] else None
    if by_alpha is not None and x.ndim == 2:
        by_alpha = xp.sum(by_alpha, axis=1)
    return g * _by_x(xp, x, alpha) if needs[0] else None, by_alpha


def _jvp(xp: Any, t_x: Any, t_alpha: Any, x: Any, alpha: Any) -> Any:
    return xp.sum(
        _by_x(xp, x, alpha) * t_x + _by_alpha(xp, x, alpha) * _column(xp, t_alpha, x), axis=0
    )


def _forward(x: Any, alpha: Any, /) -> Any:
    return scipy.stats.dirichlet.logpdf(x, alpha)


mg.registry.define(
    "hips.dirichlet_logpdf(x, alpha, /)",
    vjp=_vjp,
    jvp=_jvp,
    forward={"numpy": _forward},
    chapter="hips",
    doc="The logarithm of the density of the Dirichlet distribution.",
)


def _logpdf(x: Any, alpha: Any) -> Any:
    if x.shape[0] == alpha.shape[0] - 1:  # the last component is what the others leave
        rest = 1 - (mg.sum(x, axis=0, keepdims=True) if boxed(x) else x.sum(axis=0, keepdims=True))
        x = mg.concat([mg.asarray(x), mg.asarray(rest)])
    return operations.hips.dirichlet_logpdf(x, alpha)


def _pdf(x: Any, alpha: Any) -> Any:
    return mg.exp(_logpdf(x, alpha))


logpdf = differentiable(scipy.stats.dirichlet.logpdf, _logpdf)
pdf = differentiable(scipy.stats.dirichlet.pdf, _pdf)
rvs = refusing("scipy.stats.dirichlet.rvs", scipy.stats.dirichlet.rvs)
logpdf.__name__, pdf.__name__ = "logpdf", "pdf"
