"""Tails of the beta distribution, on which the incomplete beta functions are based.

The distributions F, t, binomial and negative binomial use them too. A double exponential rule
integrates the tail that ends before the mean. Its nodes are dense near that end, where the
integrand is largest, so a hundred nodes suffice for parameters of any size. The nodes have their
own axis, which temporarily takes a hundred times the memory of the arguments. The derivatives with
respect to the parameters are integrals of the same kind, where the logarithm of the density is
differentiated. Results and derivatives have 13 digits in float64.

A tail is given by the parameters `a` and `b`, by `x` and `y` = 1 - x, each with all its digits, and
by `d` = x b - y a, the distance from the mean, which determines the digits where the parameters are
large.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .common import horner
from .gamma import betaln
from .gamma_series import BERNOULLI, gammaln_coefficients, stirling
from .quadrature import rule

__all__: list[str] = []

# below this, tails are scaled by their first term; the derivatives of F by one parameter cancel
# where the other is 2, p = 1
SMALL = 2
EVERY = range(1, 8)  # numbers the terms of asymptotic series
SHIFT = 10  # from where on Stirling's formula is exact; smaller arguments are raised by recurrence


class Tail(NamedTuple):
    """A tail that ends before the mean: the tail below `u` under the parameters p and q.

    `v` is 1 - u, and `d` is u q - v p.
    """

    swap: Any
    """Whether it is the upper tail, for which a and b, and x and y, are exchanged."""
    empty: Any
    """Whether it has no length."""
    valid: Any
    p: Any
    q: Any
    u: Any
    v: Any
    d: Any
    first: Any
    """For p < 2 the logarithm of 1 / (p beta(p, q)), minus p log(q + 10 + p).

    It is None until it is computed; the density does not need it.
    """
    powers: Any
    """The logarithm of 1 / beta(p, q), minus the terms that `log_powers` subtracts first."""
    beyond: Any
    """The logarithm of `u` minus the logarithm of the end.

    It is 0, unless the end is too small to be a number.
    """


def constants(xp: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """`first` of both tails and `powers`, for several tails under the same parameters."""
    return _first(xp, a, b), _first(xp, b, a), _powers(xp, a, b)


def tail_of(
    xp: Any,
    a: Any,
    b: Any,
    x: Any,
    y: Any,
    d: Any,
    known: tuple[Any, Any, Any] | None = None,
    beyond: Any = 0.0,
) -> Tail:
    """The tail to integrate.

    Where it is empty or the arguments are invalid, `u`, `v` and `d` are those of the mean, so that
    the integration raises no warning. A nonzero `beyond` is that of the lower tail.
    """
    valid = (a > 0) & (b > 0) & (x >= 0) & (y >= 0) & ~xp.isinf(a) & ~xp.isinf(b)
    a, b = xp.where(valid, a, 1.0), xp.where(valid, b, 1.0)
    swap = valid & ((x > (a + 1) / (a + b + 2)) | (y == 0))
    p, q = xp.where(swap, b, a), xp.where(swap, a, b)
    u, v = xp.where(swap, y, x), xp.where(swap, x, y)
    empty = valid & (u == 0)
    inside = valid & ~empty
    first = None if known is None else xp.where(swap, known[1], known[0])
    return Tail(
        swap,
        empty,
        valid,
        p,
        q,
        xp.where(inside, u, p / (p + q)),
        xp.where(inside, v, q / (p + q)),
        xp.where(inside, xp.where(swap, -d, d), 0.0),
        first,
        _powers(xp, p, q) if known is None else known[2],
        beyond,
    )


def lower_and_upper(xp: Any, tail: Tail) -> tuple[Any, Any]:
    """Both tails."""
    log_scale, factor, rest = _integrated(xp, tail)
    t = xp.where(tail.empty, 0.0, factor * xp.exp(log_scale))
    rest = xp.where(tail.empty, 1.0, rest)
    return tuple(
        xp.where(tail.valid, xp.where(tail.swap, *pair), math.nan)
        for pair in ((rest, t), (t, rest))
    )


def log_lower(xp: Any, tail: Tail) -> Any:
    """The logarithm of the lower tail, finite even if the tail itself underflows."""
    log_scale, factor, rest = _integrated(xp, tail)
    return xp.where(tail.swap, xp.log(xp.where(tail.swap, rest, 1.0)), log_scale + xp.log(factor))


def log_density(xp: Any, tail: Tail) -> Any:
    """The logarithm of x**(a-1) y**(b-1) / beta(a, b)."""
    return _log_powers(xp, tail, 1)


def log_powers(xp: Any, tail: Tail) -> Any:
    """The logarithm of x**a y**b / beta(a, b): the density of log(x / y)."""
    return _log_powers(xp, tail, 0)


def log_first(xp: Any, p: Any, q: Any) -> Any:
    """The logarithm of 1 / (p beta(p, q)), which is the first term of a tail divided by u**p."""
    small = xp.where(p < SMALL, p, 1.0)
    return xp.where(
        p < SMALL, log_rise(xp, q, small) - _gammaln1p(xp, small), -betaln(xp, p, q) - xp.log(p)
    )


def log_rise(xp: Any, g: Any, s: Any) -> Any:
    """log(gamma(g + s) / gamma(g)), for s up to 10: as exact as s where that is tiny."""
    return s * xp.log(g + SHIFT + s) + _rise(xp, g, s)


def partial(xp: Any, tail: Tail, by_a: bool, of_ratio: bool = False) -> Any:
    """The derivative of the lower tail with respect to a or b, at a constant x.

    With `of_ratio` it is the derivative at a constant x b / (y a), as for F.

    With respect to p, the logarithm of the density at t has the derivative log(t) - E[log t]. This
    is log(1 + d/p) + shortfall(p, q), where d = t (p + q) - p is the distance from the mean. At a
    constant ratio it is log(1 + d/p) - d/p + shortfall(p, q). The derivative with respect to q has
    -d and q in place of d and p.
    """
    slope = xp.exp(_log_scale(xp, tail)) * _scaled_partial(xp, tail, by_a, of_ratio)
    return xp.where(
        tail.valid, xp.where(tail.empty, 0.0, xp.where(tail.swap, -slope, slope)), math.nan
    )


def share_partial(xp: Any, tail: Tail, by_a: bool) -> Any:
    """The derivative of x with respect to a or b, at a constant tail.

    It is -partial / density. The scale of the tail cancels: where x is tiny, the square of the
    density would overflow in the next derivative.
    """
    slope = tail.u * tail.v * _over_powers(xp, tail) * _scaled_partial(xp, tail, by_a, False)
    return xp.where(
        tail.valid, xp.where(tail.empty, 0.0, xp.where(tail.swap, slope, -slope)), math.nan
    )


def odds_partial(xp: Any, tail: Tail, by_a: bool) -> Any:
    """d log(x / y) - d log(a / b) with respect to a or b, at a constant tail.

    This is the derivative of the logarithm of a quantile of F. It does not depend on the scale of
    the tail or its rounding errors.
    """
    slope = _over_powers(xp, tail) * _scaled_partial(xp, tail, by_a, of_ratio=True)
    return xp.where(
        tail.valid, xp.where(tail.empty, 0.0, xp.where(tail.swap, slope, -slope)), math.nan
    )


def odds_slope(xp: Any, tail: Tail, lower: Any, upper: Any) -> Any:
    """The derivative of log(x / y) with respect to the lower tail, given both tails, in the domain.

    It is the integral of the smaller tail divided by that tail.
    """
    part = xp.where(tail.swap, upper, lower)
    known = tail.valid & ~tail.empty & (part > 0)
    slope = _over_powers(xp, tail) * _integrated(xp, tail)[1] / xp.where(known, part, 1.0)
    return xp.where(known, slope, math.nan)


def _scaled_partial(xp: Any, tail: Tail, by_a: bool, of_ratio: bool) -> Any:
    """`partial` for the tail that is integrated, divided by the scale of this tail."""
    p, q, v = tail.p, tail.q, tail.v
    small = p < SMALL
    by_p = tail.swap if not by_a else ~tail.swap
    w, weights = _rule(xp, tail)
    decay, growth, log = _integrand(xp, tail, w)
    of_small = _change_below_1(xp, tail, w, growth, log, by_p[..., None], of_ratio)
    change = xp.where(
        small[..., None], of_small, _change_from_1(xp, tail, w, log, by_p[..., None], of_ratio)
    )
    changed = xp.sum(weights * decay * change, axis=-1)
    inner = 1 + p * xp.sum(weights * decay * xp.where(small[..., None], growth, 0.0), axis=-1)
    at_0 = _change_at_0(xp, tail, by_p, of_ratio)
    if of_ratio:
        changed = changed + xp.where(small & by_p, xp.exp(q * _log(xp, v, tail.u)), 0.0)
    return xp.where(small, at_0 * inner + changed, changed)


# ----- the integrals -----


def _integrated(xp: Any, tail: Tail) -> tuple[Any, Any, Any]:
    """The logarithm of a scale; the tail divided by this scale; and 1 minus the tail.

    From p = 2 on the tail is u**p v**(q-1) / beta(p, q) times the integral of (1 + (1 - exp(-w)) u
    / v)**(q-1) exp(-p w) over all w > 0. Below, it is C (1 + p S) with C = u**p / (p beta(p, q))
    and S, the integral of ((1 - u exp(-w))**(q-1) - 1) exp(-p w): DLMF 8.17.7. Then 1 - C (1 + p S)
    keeps its digits for the smallest p, of which it is a multiple.
    """
    small = tail.p < SMALL
    w, weights = _rule(xp, tail)
    decay, growth, _ = _integrand(xp, tail, w)
    total = xp.sum(weights * decay * xp.where(small[..., None], growth, 1.0), axis=-1)
    inner = xp.where(small, tail.p * total, 0.0)
    log_scale = _log_scale(xp, tail)
    log_c = xp.where(small, log_scale, 0.0)
    factor = xp.where(small, 1 + inner, total)
    rest = xp.where(small, -xp.expm1(log_c) - xp.exp(log_c) * inner, 1 - factor * xp.exp(log_scale))
    return log_scale, factor, rest


def _rule(xp: Any, tail: Tail) -> list[Any]:
    """Nodes and weights. Their width is a power of 2, through which no derivative goes."""
    p, odds, b = xp.where(tail.p < SMALL, 1.0, tail.p), tail.u / tail.v, tail.q - 1
    fall = xp.sqrt(p + xp.clip(b, 0.0, None) * odds / tail.v) + xp.clip(p - b * odds, 0.0, None)
    width = 2.0 ** -xp.floor(xp.log2(fall))
    return rule(xp, xp.where(tail.p < SMALL, xp.ones_like(width), width))


def _integrand(xp: Any, tail: Tail, w: Any) -> tuple[Any, Any, Any]:
    """The integrand at t = u exp(-w), as three values.

    They are the factor that falls off; its multiplier, for p < 2; and log(1 - t), from p = 2 on
    minus log(v).
    """
    p, q, u, v = (z[..., None] for z in (tail.p, tail.q, tail.u, tail.v))
    small = p < SMALL
    log = xp.log1p(xp.where(small, -u * xp.exp(-w), -u / v * xp.expm1(-w)))
    power = (q - 1) * log
    return xp.exp(xp.where(small, 0.0, power) - p * w), xp.expm1(xp.where(small, power, 0.0)), log


def _change_from_1(xp: Any, tail: Tail, w: Any, log: Any, by_p: Any, of_ratio: bool) -> Any:
    """The derivative of the logarithm of the density at the nodes, for p >= 2."""
    p, q, u, v, d = (z[..., None] for z in tail[3:8])
    p = xp.where(p < SMALL, 1.0, p)
    of_p = _log_to_mean(xp, p, q, u, d) + (tail.beyond + xp.zeros_like(tail.u))[..., None] - w
    logs = xp.where(by_p, of_p, _log_to_mean(xp, q, p, v, -d) + log)
    if of_ratio:
        distance = d + u * xp.expm1(-w) * (p + q)
        logs = _log1p_less(xp, xp.where(by_p, distance / p, -distance / q), logs)
    return logs + xp.where(
        by_p,
        shortfall(xp, p[..., 0], q[..., 0])[..., None],
        shortfall(xp, q[..., 0], p[..., 0])[..., None],
    )


def _change_below_1(
    xp: Any, tail: Tail, w: Any, growth: Any, log: Any, by_p: Any, of_ratio: bool
) -> Any:
    """The derivative of the integrand without the factor that falls off, for p < 2.

    It is the derivative at t minus that at t = 0.
    """
    p, q, u = (z[..., None] for z in (tail.p, tail.q, tail.u))
    if of_ratio:
        t = u * xp.exp(-w)
        log = _log1p_less(xp, -t, log) + t * p / q
    return xp.where(by_p, (1 - p * w) * growth, p * log * (growth + 1))


def _change_at_0(xp: Any, tail: Tail, by_p: Any, of_ratio: bool) -> Any:
    """The derivative of the logarithm of C, for p < 2."""
    p, q = xp.where(tail.p < SMALL, tail.p, 0.5), tail.q
    of_q = _excess(xp, p, q) if of_ratio else xp.log1p(p / q) + shortfall(xp, q, p)
    of_p = (
        xp.log(tail.u * (p + q))
        + tail.beyond
        - _below_log(xp, p + q)
        - xp.log1p(p)
        + _below_log(xp, 1 + p)
    )
    return xp.where(by_p, of_p, of_q)


def _excess(xp: Any, p: Any, q: Any) -> Any:
    """digamma(q + p) - digamma(q) - p/q, which is 0 for p = 1.

    From p = 1/2 on it starts at digamma(q + 1) = digamma(q) + 1/q.
    """
    near, step = p < 0.5, xp.where(p < 0.5, p, p - 1)
    start = xp.where(near, q, q + 1)
    total = _log1p_less(xp, step / start, xp.log1p(step / start)) + shortfall(xp, start, step)
    return xp.where(near, total, total - step / q / start)


# ----- their scales -----


def _log_scale(xp: Any, tail: Tail) -> Any:
    """The logarithm of u**p v**(q-1) / beta(p, q), or for p < 2 that of u**p / (p beta(p, q))."""
    p, q, u = tail.p, tail.q, tail.u
    small = xp.where(p < SMALL, p, 0.5)
    below = small * (xp.log(u * (q + SHIFT + small)) + tail.beyond) + (
        _first(xp, p, q) if tail.first is None else tail.first
    )
    return xp.where(p < SMALL, below, _log_powers(xp, tail, 0) - _log(xp, tail.v, u))


def _log_powers(xp: Any, tail: Tail, less: int) -> Any:
    """The logarithm of u**(p - less) v**(q - less) / beta(p, q).

    Where both parameters are 10 or more, it is computed by Stirling's formula. Its main terms are
    combined exactly instead of being subtracted: u (p + q) / p is 1 + d/p.
    """
    p, q, u, v, d = tail[3:8]
    large, first = (p >= SMALL) & (q >= SMALL), p < q
    s, g = xp.where(large, 1.0, xp.where(first, p, q)), xp.where(large, 10.0, xp.where(first, q, p))
    of_s, of_g = xp.where(first, u, v), xp.where(first, v, u)
    raised = g + SHIFT + s
    plain = (
        (s - less) * xp.log(of_s * raised)
        + less * xp.log(raised)
        + (g - less) * _log(xp, of_g, of_s)
    )
    p, q, d = xp.where(large, p, 10.0), xp.where(large, q, 10.0), xp.where(large, d, 0.0)
    at, of = xp.where(large, u, 0.5), xp.where(large, v, 0.5)
    main = p * _log1p_less(xp, d / p, _log_to_mean(xp, p, q, at, d)) + q * _log1p_less(
        xp, -d / q, _log_to_mean(xp, q, p, of, -d)
    )
    return (
        xp.where(large, main - less * (xp.log(at) + xp.log(of)), plain)
        + tail.powers
        + (tail.p - less) * tail.beyond
    )


def _over_powers(xp: Any, tail: Tail) -> Any:
    """The scale of the tail over u**p v**q / beta(p, q)."""
    small = tail.p < SMALL
    return xp.where(small, xp.exp(-tail.q * _log(xp, tail.v, tail.u)) / tail.p, 1 / tail.v)


def _first(xp: Any, p: Any, q: Any) -> Any:
    small = xp.where(p < SMALL, p, 0.5)
    return _rise(xp, q, small) - _gammaln1p(xp, small)


def _powers(xp: Any, p: Any, q: Any) -> Any:
    large = (p >= SMALL) & (q >= SMALL)
    s, g = xp.where(large, 1.0, xp.where(p < q, p, q)), xp.where(large, 10.0, xp.where(p < q, q, p))
    p, q = xp.where(large, p, 10.0), xp.where(large, q, 10.0)
    rest = _stirling(xp, p + q) - _stirling(xp, p) - _stirling(xp, q)
    return xp.where(
        large,
        0.5 * xp.log(p / (p + q) * q / (2 * math.pi)) + rest,
        _rise(xp, g, s) - _gammaln(xp, s),
    )


def _stirling(xp: Any, z: Any) -> Any:
    """The remainder of Stirling's formula, for z >= 2.

    Below 10 it uses recurrence: (y + 1/2) log(1 + 1/y) - 1 = artanh(r) / r - 1 at r = 1 / (2 y +
    1).
    """
    low = z < SHIFT
    square = 1 / (2 * _raised(xp, xp.where(low, z, 10.0)) + 1) ** 2
    steps = square * horner([1 / (2 * j + 1) for j in range(1, 13)], square)
    return stirling(xp.where(low, z + SHIFT, z)) + xp.where(low, xp.sum(steps, axis=-1), 0.0)


def _rise(xp: Any, g: Any, s: Any) -> Any:
    """log(gamma(g + s) / gamma(g)) - s log(g + 10 + s), for s up to 10.

    It is as exact as s where that is tiny.
    """
    high = g + SHIFT
    growth = xp.log1p(s / high)
    rest = _series(
        high,
        growth,
        xp.expm1,
        [1 - 2 * j for j in EVERY],
        [BERNOULLI[j - 1] / (2 * j * (2 * j - 1)) for j in EVERY],
    )
    lowered = xp.sum(xp.log1p(s[..., None] / _raised(xp, g)), axis=-1)
    return high * _log1p_less(xp, s / high, growth) - 0.5 * growth - lowered + rest


def _gammaln1p(xp: Any, s: Any) -> Any:
    """log gamma(1 + s), for s up to 2. Abramowitz and Stegun, 6.1.33."""
    part = xp.where(s < 1, s, s - 1)
    return part * horner(gammaln_coefficients(), part) - xp.where(s < 1, xp.log1p(part), 0.0)


def _gammaln(xp: Any, s: Any) -> Any:
    """log gamma(s), for 0 < s <= 10, by recurrence from 1 to 2, where its terms are small."""
    steps = xp.clip(xp.ceil(s) - 2, 0.0, None)
    k = _constant(xp, s, list(range(1, SHIFT - 1)))
    raised = xp.prod(xp.where(k <= steps[..., None], s[..., None] - k, 1.0), axis=-1)
    near = s - steps
    return _gammaln1p(xp, near) + xp.log(raised / near)


def _below_log(xp: Any, z: Any) -> Any:
    """log(z) - digamma(z). Abramowitz and Stegun, 6.3.6 and 6.3.18."""
    high = z + SHIFT
    square = 1 / (high * high)
    series = (
        0.5 / high
        + horner([number / (2 * j) for j, number in enumerate(BERNOULLI[:8], 1)], square) * square
    )
    return series - xp.log1p(SHIFT / z) + xp.sum(1 / _raised(xp, z), axis=-1)


def shortfall(xp: Any, z: Any, step: Any) -> Any:
    """digamma(z + step) - digamma(z) - log(1 + step/z), as exact as `step` where that is small.

    It uses the asymptotic series, and below 10 recurrence up to there. The term of z + k is step /
    (z + k) / (z + k + step) minus log(1 + r) with r = step / (z + k) / (z + k + 1 + step), which
    has two parts of one sign.
    """
    below = z < SHIFT
    high = xp.where(below, z + SHIFT, z)
    growth = xp.log1p(step / high)
    total = 0.5 * step / high / (high + step) - _series(
        high, growth, xp.expm1, [-2 * j for j in EVERY], [BERNOULLI[j - 1] / (2 * j) for j in EVERY]
    )
    y, s = _raised(xp, xp.where(below, z, 1.0)), xp.where(below, step, 0.0)[..., None]
    r = s / y / (y + 1 + s)
    return total + xp.sum(r / (y + s) - _log1p_less(xp, r, xp.log1p(r)), axis=-1)


def _series(high: Any, growth: Any, expm1: Any, powers: list[int], factors: list[float]) -> Any:
    """The difference of an asymptotic series between `high` exp(growth) and `high`.

    Its powers decrease by two from each term to the next.
    """
    square = 1 / (high * high)
    term = square if powers[0] == -2 else 1 / high
    total = factors[0] * term * expm1(powers[0] * growth)
    for power, factor in zip(powers[1:], factors[1:], strict=True):
        term = term * square
        total = total + factor * term * expm1(power * growth)
    return total


def _raised(xp: Any, z: Any) -> Any:
    """z, z + 1, ..., z + 9 on an axis of their own."""
    return z[..., None] + _constant(xp, z, list(range(SHIFT)))


def _constant(xp: Any, like: Any, numbers: Any) -> Any:
    return xp.asarray([float(n) for n in numbers], dtype=like.dtype, device=xp.device_of(like))


def _log(xp: Any, u: Any, v: Any) -> Any:
    """log(u), exact near 1 by v = 1 - u."""
    near = u > 0.5
    return xp.where(near, xp.log1p(-xp.where(near, v, 0.0)), xp.log(xp.where(near, 0.5, u)))


def _log_to_mean(xp: Any, p: Any, q: Any, u: Any, d: Any) -> Any:
    """log(u (p + q) / p), exact near the mean."""
    ratio = d / p
    near = xp.abs(ratio) < 0.5
    return xp.where(near, xp.log1p(xp.where(near, ratio, 0.0)), xp.log(u * ((p + q) / p)))


def _log1p_less(xp: Any, z: Any, log: Any) -> Any:
    """log(1 + z) - z, given log(1 + z).

    About 0 by the series of 2 artanh(z / (2 + z)). Abramowitz and Stegun, 4.1.27.
    """
    near = (z > -0.3) & (z < 0.5)
    z_near = xp.where(near, z, 0.0)
    r = z_near / (2 + z_near)
    square = r * r
    return xp.where(
        near,
        r * (2 * square * horner([1 / (2 * k + 3) for k in range(11)], square) - z_near),
        log - z,
    )
