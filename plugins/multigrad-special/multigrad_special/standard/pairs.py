"""Numbers as unevaluated sums of two floats, twice as exact as one: for series whose terms cancel.

Each function is an error-free transformation, or made of such (T. J. Dekker, 1971; D. E. Knuth, The
Art of Computer Programming, 4.2.2; T. Ogita, S. M. Rump and S. Oishi, 2005). The low parts have the
derivative 0, so that those of the high parts are those of the number.
"""

from __future__ import annotations

from typing import Any

__all__: list[str] = []

Pair = tuple[Any, Any]


def two_sum(a: Any, b: Any) -> Pair:
    """a + b and its rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(xp: Any, a: Any, b: Any) -> Pair:
    """a b and its rounding error, except within a few digits of the ends of the range."""
    p = a * b
    (a, a_low), (b, b_low) = _split(xp, a), _split(xp, b)
    return p, ((a * b - p) + a * b_low + a_low * b) + a_low * b_low


def _split(xp: Any, a: Any) -> Pair:
    t = a * (2.0 ** (27 if xp.finfo(a.dtype).bits == 64 else 12) + 1)
    high = t - (t - a)
    return high, a - high


def plus(x: Pair, y: Any) -> Pair:
    """The sum of a pair and a float."""
    s, rest = two_sum(x[0], y)
    rest = rest + x[1]
    high = s + rest
    return high, rest - (high - s)


def times(xp: Any, x: Pair, y: Pair) -> Pair:
    """The product of two pairs."""
    p, rest = two_product(xp, x[0], y[0])
    return p, rest + (x[0] * y[1] + x[1] * y[0])


def reciprocal(xp: Any, x: Pair) -> Pair:
    """1 / x."""
    r = 1 / x[0]
    p, rest = two_product(xp, r, x[0])
    return r, ((1 - p) - rest - r * x[1]) * r


def sums(xp: Any, x: Pair) -> Pair:
    """The partial sums along the last axis.

    The low parts hold the rounding errors of the differences of the high parts.
    """
    high = xp.cumulative_sum(x[0], axis=-1)
    step, lost = two_sum(high, -_before(xp, high, 0.0))
    return high, xp.cumulative_sum((x[0] - step) - lost + x[1], axis=-1)


def added(xp: Any, x: Pair) -> Any:
    """The sum over the last axis, as a float."""
    high, low = sums(xp, x)
    return high[..., -1] + low[..., -1]


def products(xp: Any, r: Any, deviation: Any) -> Pair:
    """The cumulative products of the numbers r (1 + deviation) along the last axis.

    They are returned as P and the relative deviation from P. This is independent of the library's
    rounding, since only the quotients of neighbouring P count. Next to the ends of the range that
    deviation is unknown and counts as 0.
    """
    p = xp.cumulative_prod(r, axis=-1)
    high, low = two_product(xp, _before(xp, p, 1.0), r)
    kind = xp.finfo(p.dtype)
    known = xp.abs(p) > float(kind.smallest_normal) / float(kind.eps) ** 2
    total = xp.cumulative_sum(
        deviation + xp.where(known, (high - p) + low, 0.0) / xp.where(known, p, 1.0), axis=-1
    )
    return p, total * (1 + 0.5 * total)


def _before(xp: Any, x: Any, first: float) -> Any:
    return xp.concat([xp.full_like(x[..., :1], first), x[..., :-1]], axis=-1)
