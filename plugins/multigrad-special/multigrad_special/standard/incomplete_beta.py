"""The incomplete beta functions, and the distributions that are made of them.

Whichever tail is the smaller is integrated, by a double exponential rule: the integrand is positive and falls off from its end,
about which the nodes crowd, so that a hundred of them do for parameters of any size. They stand on an axis of their own, which
takes a hundred times the memory of the arguments for a while. 13 digits in float64.
"""

from __future__ import annotations

import math
from typing import Any

from .common import arrays
from .entropy import xlog1py, xlogy
from .gamma import betaln, stirling
from .quadrature import rule

__all__ = ["betainc", "stdtr"]


def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function I_x(a, b)."""
    a, b, x = arrays(xp, "betainc", a, b, x)
    return _beta_tail(xp, a, b, x, 1 - x)


def stdtr(xp: Any, df: Any, x: Any) -> Any:
    """The distribution function of Student's t distribution."""
    df, x = arrays(xp, "stdtr", df, x)
    square = x * x
    far = xp.isinf(x)
    total = xp.where(far, 1.0, square + df)
    tail = 0.5 * _beta_tail(xp, 0.5 * df, xp.where(df > 0, 0.5, df), xp.where(far, 0.0, df) / total, xp.where(far, 1.0, square) / total)
    return xp.where(x < 0, tail, 1 - tail)


def _beta_tail(xp: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """I_x(a, b), given x and y = 1 - x: for x below the mean, x**a y**(b-1) / beta(a, b) times the integral of
    (1 + (1 - exp(-w)) x / y)**(b-1) exp(-a w) over all w > 0; above it, 1 less what it is with a, x and b, y exchanged.
    """
    valid = (a > 0) & (b > 0) & (x >= 0) & (y >= 0)
    a, b = xp.where(valid, a, 1.0), xp.where(valid, b, 1.0)
    x, y = xp.where(valid, x, 0.5), xp.where(valid, y, 0.5)
    swap = x > (a + 1) / (a + b + 2)
    p, q = xp.where(swap, b, a), xp.where(swap, a, b)
    u, v = xp.where(swap, y, x), xp.where(swap, x, y)
    small = p < 1
    raised = xp.where(small, p + 1, p)
    odds = u / v
    width = 1 / (xp.sqrt(raised + xp.clip(q - 1, 0.0, None) * odds / v) + xp.clip(raised - (q - 1) * odds, 0.0, None))
    w, weights = rule(xp, width)
    terms = xp.exp((q - 1)[..., None] * xp.log1p(-odds[..., None] * xp.expm1(-w)) - raised[..., None] * w)
    # I(p) = I(p + 1) + u**p v**q / (p beta(p, q)), and beta(p + 1, q) = beta(p, q) p / (p + q)
    factor = xp.where(small, u * (p + q) / p, 1.0) / v
    tail = xp.exp(_log_beta_factor(xp, p, q, u, v)) * (factor * xp.sum(weights * terms, axis=-1) + xp.where(small, 1 / p, 0.0))
    tail = xp.where(u == 0, 0.0, tail)
    return xp.where(valid, xp.where(swap, 1 - tail, tail), math.nan)


def _log_beta_factor(xp: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """log(x**a y**b / beta(a, b)); where both parameters are 10 or more, by Stirling's formula, as for gamma.

    With d = x b - y a, x is a/(a+b) + d/(a+b), so x (a+b)/a is 1 + d/a, and y (a+b)/b is 1 - d/b.
    """
    large = (a >= 10) & (b >= 10)
    plain = xp.where(x < 0.5, xlogy(xp, a, x) + xlog1py(xp, b, -x), xlog1py(xp, a, -y) + xlogy(xp, b, y)) - betaln(xp, a, b)
    a, b = xp.where(large, a, 10.0), xp.where(large, b, 10.0)
    x, y = xp.where(large, x, 0.5), xp.where(large, y, 0.5)
    d = x * b - y * a
    main = a * (xp.log1p(d / a) - d / a) + b * (xp.log1p(-d / b) + d / b)
    rest = stirling(a + b) - stirling(a) - stirling(b)
    return xp.where(large, main + 0.5 * xp.log(a / (a + b) * b / (2 * math.pi)) + rest, plain)
