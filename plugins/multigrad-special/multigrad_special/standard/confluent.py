"""The confluent hypergeometric function 1F1 of real arguments, and its derivatives by the parameters.

By Kummer's transformation (DLMF 13.2.39) negative arguments become positive ones. Up to a limit that grows with the parameters 1F1 is its
power series (DLMF 13.2.2), beyond it its asymptotic series (DLMF 13.7.1 and 13.7.2). Both are differentiated term by term, where a
derivative by a parameter multiplies each term by the sum of the logarithmic derivatives of its factors. The terms stand on an axis of their
own, which takes a few hundred times the memory of the arguments for a while. Where they do not fall off in time, far outside of
|a|, |b| < 20, the result is nan.
"""

from __future__ import annotations

import math
from typing import Any

from .forms import elementwise
from .gamma import gamma

__all__ = ["hyp1f1"]

TERMS = 320
FAR_TERMS = 60
MOST = 150
"""Up to here all terms of the series are there that a derivative needs, also one of a polynomial."""
LEFT = 0.5
"""The share of the digits that cancelling terms must leave."""


@elementwise
def hyp1f1(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The confluent hypergeometric function 1F1."""
    return evaluated(xp, a, b, x, gamma=lambda v: gamma(xp, v))


def evaluated(xp: Any, a: Any, b: Any, x: Any, by: str | None = None, *, gamma: Any, digamma: Any = None, step: Any = None,
              fall: Any = None) -> Any:
    """1F1, or its derivative by "a" or "b", by the functions given: `step(u, v)` is digamma(u + v) - digamma(u), `fall` the slope of 1 / gamma.

    Where the series ends, c being 0 or a negative integer, the value is that of the polynomial for every argument, and so is what is
    differentiated at a constant c.
    """
    a, b, x = (v + xp.zeros_like(a + b + x) for v in (a, b, x))
    below = x < 0
    c, y = xp.where(below, b - a, a), xp.abs(x)
    far = y > 60 + 4 * (xp.abs(b - c) + xp.abs(1 - c))
    ends = (c <= 0) & (c == xp.floor(c))
    if by is None:
        far = far & ~ends
    elif by == "b":
        far = far & (below | ~ends | (y > MOST))
    near, summed = _near(xp, a, b, c, xp.where(far, 1.0, y), below, by)
    finite = far & (y < math.inf)
    distant, reached = _far(xp, xp.where(finite, b, 1.5), xp.where(finite, c, 1.5), xp.where(finite, y, 100.0), below, by, gamma, digamma, step, fall)
    known = xp.isfinite(a + b + x) & xp.where(far, reached, summed)
    return xp.where(far, distant, near) * xp.where(known, xp.ones_like(y), math.nan)  # so that further derivatives are nan as well


def _near(xp: Any, a: Any, b: Any, c: Any, y: Any, below: Any, by: str | None) -> tuple[Any, Any]:
    """The sum of (c)_k / (b)_k y**k / k!, for a negative argument times exp(-y)."""
    j = xp.arange(TERMS, dtype=y.dtype, device=xp.device_of(y))
    a, b, c, y, under = (v[..., None] for v in (a, b, c, y, below))
    slopes = {"a": xp.where(under, -1.0, xp.ones_like(y)) / (b + j), "b": xp.where(under, a + 0 * j, -(a + j)) / ((b + j) * (b + j)), None: None}[by]
    total, slope, settled = _sums(xp, (c + j) / (b + j), y / (j + 1), slopes)
    factor = xp.where(below, xp.exp(-xp.where(below, y[..., 0], 0.0)), 1.0)
    return factor * (total if by is None else slope), settled


def _far(xp: Any, b: Any, c: Any, y: Any, below: Any, by: str | None, gamma: Any, digamma: Any,
         step: Any, fall: Any) -> tuple[Any, Any]:
    """gamma(b) / gamma(c) y**(c - b) times the sum of (b - c)_k (1 - c)_k / (k! y**k), for a positive argument times exp(y)."""
    half = xp.exp(xp.where(below, 0.0, 0.5 * y))
    pole = (c <= 0) & (c == xp.floor(c)) & (by is not None)
    safe = xp.where(pole, 1.5, c)
    front = half * (gamma(b) / gamma(safe)) * y ** (c - b) * half
    j = xp.arange(FAR_TERMS, dtype=y.dtype, device=xp.device_of(y))
    p, q, far, under = (v[..., None] for v in (b - c, 1 - c, y, below))
    p, q = p + j, q + j
    slopes = {"a": xp.where(under, p + q, -p - q), "b": xp.where(under, -p, q), None: None}[by]
    total, slope, settled = _sums(xp, p * q, 1 / (far * (j + 1)), slopes)
    if by == "a":
        slope = slope + xp.where(below, -1.0, xp.ones_like(y)) * (xp.log(y) - digamma(safe)) * total
    elif by == "b":
        slope = slope + xp.where(below, step(safe, xp.where(below, b - c, 1.0)), digamma(b) - xp.log(y)) * total
    value = front * (total if by is None else slope)
    if by is not None:  # at a pole of gamma(c) the slope of its reciprocal is all that is left; further derivatives are nan there
        sign = xp.where(below & (by == "a"), -1.0, xp.ones_like(y))
        at_pole = half * gamma(b) * fall(xp.where(pole, c, 0.0)) * y ** (c - b) * half * sign * total
        edge = 0 * xp.sqrt(xp.where(pole, 0 * (b + c + y), 1.0))
        value = xp.where(pole, at_pole + edge, value)
        settled = settled & (~pole | below | (by == "a"))
    return value, settled


def _sums(xp: Any, factors: Any, others: Any, slopes: Any) -> tuple[Any, Any, Any]:
    """The sum of the products of the first k factors times those of the others, its derivative, and whether the last terms are nothing.

    A factor of 0 is taken out of the products, which are those of its derivative: what is right for derivatives of higher order, too.
    """
    zero = factors == 0
    kept = xp.where(zero, 1.0, factors)
    products = xp.cumulative_prod(kept * others, axis=-1)
    ended = xp.cumulative_sum(xp.astype(zero, factors.dtype), axis=-1) > 0
    if slopes is None:
        terms = xp.where(ended, 0.0, products)
    else:
        terms = xp.where(ended, xp.sum(xp.where(zero, factors, 0.0), axis=-1, keepdims=True), 1.0) * products
    total = 1 + xp.sum(terms, axis=-1)
    slope = None
    if slopes is not None:
        logarithmic = xp.cumulative_sum(xp.where(zero, 0.0, slopes) / kept, axis=-1)
        factor = xp.sum(xp.where(zero, factors, 0.0), axis=-1, keepdims=True)
        terms = products * xp.where(ended, xp.sum(xp.where(zero, slopes, 0.0), axis=-1, keepdims=True) + factor * logarithmic, logarithmic)
        slope = xp.sum(terms, axis=-1)
    last = xp.abs((products if slopes is None else terms)[..., -1])
    result = total if slopes is None else slope
    settled = (last <= 1e-14 * xp.abs(result)) | ended[..., -1] & (slopes is None)
    # What the terms cancel is measured beside the result or, next to its zeros, beside its change with the argument.
    numbers = xp.arange(1, terms.shape[-1] + 1, dtype=terms.dtype, device=xp.device_of(terms))
    size = xp.abs(result) + xp.abs(xp.sum(numbers * terms, axis=-1))
    left = xp.max(xp.abs(terms), axis=-1) * float(xp.finfo(terms.dtype).eps) ** LEFT <= size
    return total, slope, settled & left
