"""The confluent hypergeometric function 1F1 of real arguments, and its derivatives.

Kummer's transformation (DLMF 13.2.39) makes negative arguments positive. Then 1F1 is its power
series (DLMF 13.2.2) or, where that does not converge in time, its asymptotic series (DLMF 13.7.1
and 13.7.2). Both are differentiated term by term: a derivative with respect to a parameter
multiplies each term by the sum of the logarithmic derivatives of its factors. Terms and sums are
pairs of floats. So terms may cancel as many digits as one float has, and the result still has all
digits. The terms have their own axis, which temporarily takes ten thousand times the memory of the
arguments. The error is measured: where the terms do not fall off in time, far outside of |a|, |b| <
20, or cancel more digits than that, the result is nan.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .forms import elementwise
from .gamma import gamma
from .pairs import Pair, added, plus, products, reciprocal, sums, times, two_product, two_sum

__all__ = ["hyp1f1"]

TERMS = 512
"""The number of terms of the power series."""
FAR_TERMS = 128
"""The number of terms of the asymptotic series."""
MOST = {64: 400.0, 32: 100.0}
"""Up to here the power series is tried, by the bits of a float: in float32 it overflows beyond."""
BARS = {64: 1e-12, 32: 1e-5}
"""The largest relative error of an accepted result."""
SHRUNK = 2.0**-40
"""The scale of terms for large arguments, which would otherwise overflow before their results."""
PAIRED = 64
"""The error of a sum of pairs, in units of the square of epsilon times its largest term."""
SPARE = 8
"""The error of a sum of floats, in units of epsilon times its largest term."""


@elementwise
def hyp1f1(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The confluent hypergeometric function 1F1."""
    return evaluated(xp, a, b, x, gamma=lambda v: gamma(xp, v))


def evaluated(
    xp: Any,
    a: Any,
    b: Any,
    x: Any,
    by: str | None = None,
    *,
    gamma: Any,
    digamma: Any = None,
    step: Any = None,
    fall: Any = None,
) -> Any:
    """1F1, or its derivative by "a" or "b", by the given functions.

    `step(u, v)` is digamma(u + v) - digamma(u), and `fall` is the derivative of 1 / gamma. Where
    the series ends, because c is 0 or a negative integer, the value is that of the polynomial for
    every argument, and its derivatives are those at a constant c.
    """
    a, b, x = (v + xp.zeros_like(a + b + x) for v in (a, b, x))
    below, y, none = x < 0, xp.abs(x), xp.zeros_like(a)
    high, low = two_sum(b, -a)
    # c + d is b
    c, d = (
        (xp.where(below, high, a), xp.where(below, low, none)),
        (xp.where(below, a, high), xp.where(below, none, low)),
    )
    ends = (c[0] <= 0) & (c[0] == xp.floor(c[0])) & (c[1] == 0)
    within = y <= MOST[xp.finfo(y.dtype).bits]
    near, summed, rough = _near(
        xp, b, c, xp.where(within | ends, y, 1.0), below, by, ends & ~within
    )
    # Of a polynomial far out the terms are missing that only the derivative by c has.
    summed = summed & (within | ends & ((by is None) | (by == "b") & ~below))
    finite = ~summed & (y < math.inf)
    far_b, far_y = xp.where(finite, b, 1.5), xp.where(finite, y, 100.0)
    far_c, far_d = (
        (xp.where(finite, v[0], harmless), xp.where(finite, v[1], 0.0))
        for v, harmless in ((c, 1.5), (d, 0.0))
    )
    distant, reached = _far(xp, far_b, far_c, far_d, far_y, below, by, gamma, digamma, step, fall)
    known = xp.isfinite(a + b + x) & (summed | reached)
    # so that further derivatives are nan as well
    value = xp.where(summed, near, distant) * xp.where(known, xp.ones_like(y), math.nan)
    return value if by is None else value + _edge(xp, summed & (rough | ends & ~within), a + b + x)


def _edge(xp: Any, where: Any, like: Any) -> Any:
    """0 with derivatives of nan, for a correct result whose formula has wrong derivatives."""
    return 0 * xp.sqrt(xp.where(where, 0 * like, 1.0))


def _near(
    xp: Any, b: Any, c: Pair, y: Any, below: Any, by: str | None, cut: Any
) -> tuple[Any, Any, Any]:
    """The sum of (c)_k / (b)_k y**k / k!, for a negative argument times exp(-y).

    It also returns whether the sum is accurate, and whether single floats would be enough.
    """
    j = _numbers(xp, y, TERMS - 1)
    b, y, under, cut = (v[..., None] for v in (b, y, below, cut))
    top, bottom = _factor(xp, _raised(c, j)), _factor(xp, two_sum(b, j))
    slopes = {
        "a": [xp.where(under, -1.0, xp.ones_like(y)), 0 * y],
        "b": [xp.where(under, 1.0, 0 * y), -xp.ones_like(y)],
        None: None,
    }[by]
    shrunk = xp.where(y > 32, SHRUNK, xp.ones_like(y))
    sums = _sums(
        xp,
        times(xp, top.kept, (y, 0 * y)),
        times(xp, bottom.kept, (j + 1, 0 * j)),
        shrunk,
        cut & (top.raw >= 0),
        [top, bottom],
        slopes,
    )
    half = xp.exp(-0.5 * xp.where(below, y[..., 0], 0.0))
    return (
        half * (sums.total if by is None else sums.slope) / shrunk[..., 0] * half,
        sums.settled,
        sums.rough,
    )


def _far(
    xp: Any,
    b: Any,
    exact_c: Pair,
    exact_d: Pair,
    y: Any,
    below: Any,
    by: str | None,
    gamma: Any,
    digamma: Any,
    step: Any,
    fall: Any,
) -> tuple[Any, Any]:
    """gamma(b) / gamma(c) y**-d times the sum of (d)_k (1 - c)_k / (k! y**k), where d = b - c.

    For a positive argument it is multiplied by exp(y).
    """
    c, d, bits = exact_c[0], exact_d[0], xp.finfo(y.dtype).bits
    half = xp.exp(xp.where(below, 0.0, 0.5 * y))
    pole = (c <= 0) & (c == xp.floor(c)) & (by is not None)
    safe = xp.where(pole, 1.5, c)
    above, under_it, root = gamma(b), gamma(safe), y ** (-0.5 * d)
    # in parts, which do not overflow before the result
    front = half * (above / under_it) * root * root * half
    j = _numbers(xp, y, FAR_TERMS - 1)
    fits = xp.isfinite(above) & xp.isfinite(under_it)
    one, under, far = xp.ones_like(y)[..., None], below[..., None], y[..., None]
    p, q = (
        _factor(xp, _raised(exact_d, j)),
        _factor(xp, _raised(plus(two_sum(1 + 0 * c, -c), -exact_c[1]), j)),
    )
    slopes = {
        "a": [xp.where(under, one, -one)] * 2,
        "b": [xp.where(under, 0.0, one), xp.where(under, -one, 0.0)],
        None: None,
    }[by]
    sums = _sums(
        xp,
        times(xp, p.kept, q.kept),
        two_product(xp, far, j + 1),
        one,
        xp.zeros_like(one) > 0,
        [p, q],
        slopes,
        both=True,
    )
    if by is None:
        return front * sums.total, sums.settled & fits
    sign = xp.where(below & (by == "a"), -1.0, xp.ones_like(y))
    of_front = (
        sign * (xp.log(y) - digamma(safe))
        if by == "a"
        else xp.where(below, step(safe, xp.where(below, d, 1.0)), digamma(b) - xp.log(y))
    )
    slope = sums.slope + of_front * sums.total
    exact = (xp.abs(sums.slope) + xp.abs(of_front * sums.total)) * float(
        xp.finfo(y.dtype).eps
    ) * SPARE <= BARS[bits] * xp.abs(slope)
    # At a pole of gamma(c) the slope of its reciprocal is all that is left; further derivatives are
    # nan there.
    at_pole = half * (
        above * fall(xp.where(pole, c, 0.0))
    ) * root * root * half * sign * sums.total + _edge(xp, pole, b + c + y)
    return xp.where(pole, at_pole, front * slope), sums.settled & fits & xp.where(
        pole, below | (by == "a"), exact
    )


# ----- series -----


class _Factor(NamedTuple):
    """A number for each step, of which those that are 0 are replaced by 1."""

    kept: Pair
    raw: Any
    zero: Any


class _Sums(NamedTuple):
    """The result of `_sums`."""

    total: Any
    slope: Any
    settled: Any
    """Whether the result is accurate."""
    rough: Any
    """Whether it would not be accurate if the terms were single floats."""


def _factor(xp: Any, x: Pair) -> _Factor:
    zero = (x[0] == 0) & (x[1] == 0)
    return _Factor((xp.where(zero, 1.0, x[0]), x[1]), x[0], zero)


def _sums(
    xp: Any,
    above: Pair,
    under: Pair,
    first: Any,
    cut: Any,
    factors: list[_Factor],
    slopes: list[Any] | None,
    both: bool = False,
) -> _Sums:
    """The sum of terms from `first` on, and its derivative.

    Each term is the one before times above / under.

    `slopes` are the derivatives of the factors. A factor of 0 is left out of the products; they are
    then the products of the derivative by that factor, and also give correct higher derivatives.
    """
    r = above[0] / under[0]
    p, rest = two_product(xp, r, under[0])
    known = above[0] != 0
    deviation = xp.where(known, (above[0] - p) - rest + above[1] - r * under[1], 0.0) / xp.where(
        known, above[0], 1.0
    )
    p, change = products(xp, _after(xp, first, xp.where(cut, 0.0, r)), _after(xp, 0.0, deviation))
    gone = sum(
        xp.cumulative_sum(_after(xp, 0.0, xp.where(f.zero, xp.ones_like(r), 0.0)), axis=-1)
        for f in factors
    )
    terms = xp.where(gone == 0, p, 0.0), xp.where(gone == 0, p * change, 0.0)
    if slopes is None:
        total = added(xp, terms)
        return _Sums(total, None, *_judged(xp, terms[0], total))
    total = added(xp, terms) if both else None
    logs = sums(xp, _logarithmic(xp, r, factors, slopes))
    of_zero = xp.cumulative_sum(
        _after(
            xp, 0.0, sum(xp.where(f.zero, v, 0 * r) for f, v in zip(factors, slopes, strict=True))
        ),
        axis=-1,
    )
    zero = xp.cumulative_sum(
        _after(xp, 0.0, sum(xp.where(f.zero, f.raw, 0 * r) for f in factors)), axis=-1
    )
    high = xp.where(gone == 0, logs[0], xp.where(gone == 1, of_zero + zero * logs[0], 0.0))
    value, rest = two_product(xp, p, high)
    slope = added(xp, (value, rest + p * (change * high + xp.where(gone == 0, logs[1], 0.0))))
    return _Sums(total, slope, *_judged(xp, value, slope))


def _logarithmic(xp: Any, r: Any, factors: list[_Factor], slopes: list[Any]) -> Pair:
    """The logarithmic derivative of each quotient."""
    parts = []
    for f, v in zip(factors, slopes, strict=True):
        inverse = reciprocal(xp, f.kept)
        parts.append(tuple(xp.where(f.zero, 0.0, v * w) + 0 * r for w in inverse))
    high, lost = two_sum(parts[0][0], parts[1][0])
    return _after(xp, 0.0, high), _after(xp, 0.0, lost + parts[0][1] + parts[1][1])


def _judged(xp: Any, terms: Any, result: Any) -> tuple[Any, Any]:
    """Whether a sum of these terms is exact, and whether it would not be if they were floats.

    What they cancel is measured beside the result or, next to its zeros, beside its change with a
    change of the argument in its last place.
    """
    kind = xp.finfo(terms.dtype)
    eps, bar = float(kind.eps), BARS[kind.bits]
    sizes = xp.abs(terms)
    most, last = xp.max(sizes, axis=-1), sizes[..., -1]
    numbers = _numbers(xp, terms, terms.shape[-1])
    change = xp.abs(xp.sum(numbers * terms, axis=-1)) - SPARE * eps * xp.sum(
        numbers * sizes, axis=-1
    )
    enough = bar / 8 * xp.abs(result) + 0.25 * eps * xp.clip(change, 0.0, None)
    return last + PAIRED * eps * eps * most <= enough, eps * SPARE * most > bar * xp.abs(result)


def _raised(x: Pair, j: Any) -> Pair:
    """x + j for each j, on a new axis."""
    high, low = two_sum(x[0][..., None], j)
    return plus((high, low), x[1][..., None])


def _numbers(xp: Any, like: Any, count: int) -> Any:
    return xp.arange(count, dtype=like.dtype, device=xp.device_of(like))


def _after(xp: Any, first: Any, rest: Any) -> Any:
    return xp.concat([first + xp.zeros_like(rest[..., :1]), rest], axis=-1)
