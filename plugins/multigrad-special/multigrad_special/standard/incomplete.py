"""The incomplete gamma and beta functions, and Student's t distribution.

Whichever tail is the smaller is integrated, by a double exponential rule (H. Takahasi and M. Mori, 1974): the integrand is
positive and falls off from its end, about which the nodes crowd, so that a hundred of them do for parameters of any size.
They stand on an axis of their own, which takes a hundred times the memory of the arguments for a while. 13 digits in float64.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from .common import arrays
from .entropy import xlog1py, xlogy
from .gamma import betaln, gammaln, stirling


def gammainc(xp: Any, a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x)."""
    return _gamma_tails(xp, *arrays(xp, "gammainc", a, x))[0]


def gammaincc(xp: Any, a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), accurate where it is small."""
    return _gamma_tails(xp, *arrays(xp, "gammaincc", a, x))[1]


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
    w, weights = _rule(xp, 1 / (xp.sqrt(raised) + xp.clip(raised - y, 0.0, None)))
    p = xp.exp(_log_gamma_factor(xp, raised, y)) * xp.sum(weights * xp.exp(-y[..., None] * xp.expm1(-w) - raised[..., None] * w), axis=-1)
    p = xp.where(small, p + xp.exp(_log_gamma_factor(xp, a, y)) / a, p)
    y = xp.where(lower | far | ~valid, a + 1, x)
    w, weights = _rule(xp, 1 / (1 / xp.sqrt(y) + xp.clip(1 - (a - 1) / y, 0.0, None)))
    q = xp.exp(_log_gamma_factor(xp, a, y)) / y * xp.sum(weights * xp.exp((a - 1)[..., None] * xp.log1p(w / y[..., None]) - w), axis=-1)
    q = xp.where(far, 0.0, q)
    return xp.where(valid, xp.where(lower, p, 1 - q), math.nan), xp.where(valid, xp.where(lower, 1 - p, q), math.nan)


def _log_gamma_factor(xp: Any, a: Any, x: Any) -> Any:
    """log(x**a exp(-x) / gamma(a)); from a = 10 on, by Stirling's formula, whose main terms do not cancel but meet exactly."""
    large = xp.where(a < 10, 10.0, a)
    d = xp.where(a < 10, 0.0, (x - large) / large)
    return xp.where(a < 10, xlogy(xp, a, x) - x - gammaln(xp, xp.where(a < 10, a, 1.0)),
                    large * (xp.log1p(d) - d) + 0.5 * xp.log(large / (2 * math.pi)) - stirling(large))


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
    w, weights = _rule(xp, width)
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


def _rule(xp: Any, width: Any) -> list[Any]:
    """Nodes and weights for what falls off over a length of about `width`, on an axis of their own."""
    numbers = [xp.asarray(n, dtype=width.dtype, device=xp.device_of(width)) for n in _nodes()]
    return [width[..., None] * n for n in numbers]


@lru_cache
def _nodes() -> tuple[list[float], list[float]]:
    """Nodes v > 0 and weights: v = exp(t - exp(-t)), at equal steps of t."""
    step = 1 / 14
    ts = [step * k for k in range(-52, 60)]
    nodes = [math.exp(t - math.exp(-t)) for t in ts]
    return nodes, [step * (1 + math.exp(-t)) * v for t, v in zip(ts, nodes, strict=True)]
