"""The incomplete gamma functions, and the distributions that are made of them.

Whichever tail is the smaller is integrated, by a double exponential rule: the integrand is positive and falls off from its end,
about which the nodes crowd, so that a hundred of them do for parameters of any size. They stand on an axis of their own, which
takes a hundred times the memory of the arguments for a while. 13 digits in float64.
"""

from __future__ import annotations

import math
from typing import Any

from .common import arrays
from .entropy import xlogy
from .gamma import gammaln, stirling
from .quadrature import rule

__all__ = ["gammainc", "gammaincc"]


def gammainc(xp: Any, a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x)."""
    return _gamma_tails(xp, *arrays(xp, "gammainc", a, x))[0]


def gammaincc(xp: Any, a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), accurate where it is small."""
    return _gamma_tails(xp, *arrays(xp, "gammaincc", a, x))[1]


def _gamma_tails(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """P and Q. Below the mean, P is x**a exp(-x) / gamma(a) times the integral of exp(x (1 - exp(-w)) - a w) over all w > 0.

    Above it, Q is the same factor over x, times the integral of (1 + w/x)**(a-1) exp(-w).
    """
    valid = (a > 0) & (x >= 0)
    lower, far = x < a + 1, x == math.inf
    a = xp.where(valid & ~xp.isinf(a), a, 1.0)
    small = a < 1
    raised = xp.where(small, a + 1, a)  # P(a) = P(a + 1) + x**a exp(-x) / gamma(a + 1)
    y = xp.where(valid & lower, x, 0.0)
    w, weights = rule(xp, 1 / (xp.sqrt(raised) + xp.clip(raised - y, 0.0, None)))
    p = xp.exp(_log_gamma_factor(xp, raised, y)) * xp.sum(weights * xp.exp(-y[..., None] * xp.expm1(-w) - raised[..., None] * w), axis=-1)
    p = xp.where(small, p + xp.exp(_log_gamma_factor(xp, a, y)) / a, p)
    y = xp.where(lower | far | ~valid, a + 1, x)
    w, weights = rule(xp, 1 / (1 / xp.sqrt(y) + xp.clip(1 - (a - 1) / y, 0.0, None)))
    q = xp.exp(_log_gamma_factor(xp, a, y)) / y * xp.sum(weights * xp.exp((a - 1)[..., None] * xp.log1p(w / y[..., None]) - w), axis=-1)
    q = xp.where(far, 0.0, q)
    return xp.where(valid, xp.where(lower, p, 1 - q), math.nan), xp.where(valid, xp.where(lower, 1 - p, q), math.nan)


def _log_gamma_factor(xp: Any, a: Any, x: Any) -> Any:
    """log(x**a exp(-x) / gamma(a)); from a = 10 on, by Stirling's formula, whose main terms do not cancel but meet exactly."""
    large = xp.where(a < 10, 10.0, a)
    d = xp.where(a < 10, 0.0, (x - large) / large)
    return xp.where(a < 10, xlogy(xp, a, x) - x - gammaln(xp, xp.where(a < 10, a, 1.0)),
                    large * (xp.log1p(d) - d) + 0.5 * xp.log(large / (2 * math.pi)) - stirling(large))
