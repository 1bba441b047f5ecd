"""The incomplete gamma functions, their inverses, and the distributions based on them.

With the density f = x**(a-1) exp(-x) / gamma(a), the derivative of P(a, x) with respect to x is f
(DLMF 8.8.13). Its derivative with respect to a is -x f s, where s is an integral over the smaller
tail: see standard/gamma_tails.py. An inverse x(a, y) has dx/da = x s and dx/dy = 1 / f. The
latter is computed as x times the integral of that tail, divided by the tail, since f at the rounded
x has fewer digits.
"""

from __future__ import annotations

import math
from typing import Any

import multigrad as mg

from ..standard import gamma_tails
from ..standard.forms import elementwise, refuse_complex
from .declare import declare


@elementwise
def _density(xp: Any, a: Any, x: Any) -> Any:
    """The derivative of P(a, x) with respect to x; nan outside the domain."""
    inside, b, y = _within(xp, a, x)
    value = gamma_tails.density(xp, b, y, xp.special.gamma)
    return xp.where(inside, value, _outside(xp, a, x))


@elementwise
def _by_shape(xp: Any, a: Any, x: Any) -> Any:
    """The derivative of Q(a, x) with respect to a."""
    inside, b, y = _within(xp, a, x, limit=True)
    positive = inside & (x > 0)
    y = xp.where(positive, y, 1.0)
    value = (
        y
        * gamma_tails.density(xp, b, y, xp.special.gamma)
        * gamma_tails.slope_by_shape(xp, b, y, xp.special.digamma)
    )
    return xp.where(positive, value, _outside(xp, a, x))


@elementwise
def _quantile_by_shape(xp: Any, a: Any, x: Any) -> Any:
    """The derivative with respect to a of the x for which P(a, x) has a fixed value."""
    inside, b, y = _within(xp, a, x, limit=True)
    positive = inside & (x > 0)
    y = xp.where(positive, y, 1.0)
    value = y * gamma_tails.slope_by_shape(xp, b, y, xp.special.digamma)
    return xp.where(positive, value, xp.where((a > 0) & (x >= 0), x, math.nan))


@elementwise
def _quantile_slope(xp: Any, a: Any, x: Any, p: Any, q: Any) -> Any:
    """The derivative with respect to p of the x for which P(a, x) is p; q is 1 - p.

    Near 0, where x may underflow, P is x**a / gamma(a + 1).
    """
    inside, b, y = _within(xp, a, x)
    kind = xp.finfo(x.dtype)
    low = inside & (x < float(kind.smallest_normal) / float(kind.eps))
    y = xp.where(low, 1.0, y)
    t = gamma_tails.tail(xp, b, y)
    value = (
        y * gamma_tails.ratio(xp, b, y, t) / xp.where(inside & ~low, xp.where(t.upper, q, p), 1.0)
    )
    b = xp.where(low, b, 1.0)
    near = xp.where(low, p, 1.0) ** (1 / b - 1) * xp.exp(xp.special.gammaln(b + 1) / b) / b
    return xp.where(
        low, near, xp.where(inside, value, xp.where((a > 0) & (x == math.inf), x, math.nan))
    )


def _within(xp: Any, a: Any, x: Any, limit: bool = False) -> tuple[Any, Any, Any]:
    """The mask where the functions are smooth, and arguments that are replaced elsewhere.

    As a `limit`, a = 0 counts as a small positive a, where values do not underflow.
    """
    inside = (a >= 0) & (x >= 0) & (a < math.inf) & (x < math.inf) & ((a > 0) | (x > 0))
    kind = xp.finfo(a.dtype)
    least = float(kind.smallest_normal) / (float(kind.eps) if limit else 1.0)
    return inside, xp.where(inside, xp.clip(a, least, None), 1.0), xp.where(inside, x, 1.0)


def _outside(xp: Any, a: Any, x: Any) -> Any:
    """0 where P is constant at an end of the domain, nan outside the domain."""
    return xp.where(
        (a > 0) & (x >= 0) & ((a < math.inf) | (x < math.inf)) | (a == 0) & (x > 0),
        xp.zeros_like(a),
        math.nan,
    )


# ----- distributions -----


@elementwise
def _rate_slope(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The derivative of gdtr(a, b, x) with respect to a; exchange a and x for that by x."""
    return x * _density(xp, b, _product(xp, a, x))


@elementwise
def _shape_slope(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The derivative of gdtrc(a, b, x) with respect to b."""
    return _by_shape(xp, b, _product(xp, a, x))


def _product(xp: Any, a: Any, x: Any) -> Any:
    return xp.where((a < 0) | (x < 0), math.nan, a * x)


def chdtr(xp: Any, df: Any, x: Any) -> Any:
    """Compute chdtr from gammainc, whose node saves x / 2 instead of x.

    The program may then write to x, as SciPy's tests do with a statistic.
    """
    refuse_complex(xp, "chdtr", df, x)
    return xp.special.gammainc(*_halves(xp, df, x))


def chdtrc(xp: Any, df: Any, x: Any) -> Any:
    refuse_complex(xp, "chdtrc", df, x)
    return xp.special.gammaincc(*_halves(xp, df, x))


def _halves(xp: Any, *given: Any) -> list[Any]:
    """Half of each argument.

    An array of integers takes the dtype of any function of both: by NumPy's promotion on NumPy, the
    floating dtype elsewhere.
    """
    kinds = [xp.isdtype(x.dtype, "integral") if hasattr(x, "dtype") else False for x in given]
    if not any(kinds):
        return [0.5 * x for x in given]
    dtype = xp.special.xlogy(
        *(xp.ones((), dtype=x.dtype) if hasattr(x, "dtype") else x for x in given)
    ).dtype
    return [
        0.5 * (xp.astype(x, dtype) if whole else x) for x, whole in zip(given, kinds, strict=True)
    ]


@elementwise
def _chi_quantile_by_df(xp: Any, df: Any, x: Any) -> Any:
    return _quantile_by_shape(xp, 0.5 * df, 0.5 * x)


@elementwise
def _chi_quantile_slope(xp: Any, df: Any, x: Any, y: Any) -> Any:
    return -2 * _quantile_slope(xp, 0.5 * df, 0.5 * x, 1 - y, y)


@elementwise
def _poisson_slope(xp: Any, k: Any, m: Any) -> Any:
    """The derivative of pdtrc(k, m) with respect to m."""
    return _density(xp, xp.where(k < 0, math.nan, xp.floor(k) + 1), m)


@elementwise
def _poisson_quantile_slope(xp: Any, k: Any, m: Any, y: Any) -> Any:
    return -_quantile_slope(xp, xp.trunc(k) + 1, m, 1 - y, y)


# ----- declarations -----


def declarations() -> list[mg.registry.Op]:
    """Declare the operations.

    JAX has only two of them. In float64 these have 7 digits for small a, in float32 none (seen in
    0.10.2).
    """
    return [*_of_gamma(), *_of_distributions()]


def _of_gamma() -> list[mg.registry.Op]:
    return [
        declare(
            "gammainc(a, x, /)",
            "The regularized lower incomplete gamma function.",
            a=lambda xp, a, x: -_by_shape(xp, a, x),
            x=lambda xp, a, x: _density(xp, a, x),
        ),
        declare(
            "gammaincc(a, x, /)",
            "The regularized upper incomplete gamma function.",
            a=lambda xp, a, x: _by_shape(xp, a, x),
            x=lambda xp, a, x: -_density(xp, a, x),
        ),
        declare(
            "gammaincinv(a, y, /)",
            "The x for which gammainc(a, x) is y; nan outside [0, 1].",
            a=lambda xp, a, ans: _quantile_by_shape(xp, a, ans),
            y=lambda xp, a, y, ans: _quantile_slope(xp, a, ans, y, 1 - y),
        ),
        declare(
            "gammainccinv(a, y, /)",
            "The x for which gammaincc(a, x) is y; nan outside [0, 1].",
            a=lambda xp, a, ans: _quantile_by_shape(xp, a, ans),
            y=lambda xp, a, y, ans: -_quantile_slope(xp, a, ans, 1 - y, y),
        ),
    ]


def _of_distributions() -> list[mg.registry.Op]:
    return [
        declare(
            "gdtr(a, b, x, /)",
            "The distribution function of the gamma distribution of rate a and shape b, "
            "gammainc(b, a x).",
            a=lambda xp, a, b, x: _rate_slope(xp, a, b, x),
            b=lambda xp, a, b, x: -_shape_slope(xp, a, b, x),
            x=lambda xp, a, b, x: _rate_slope(xp, x, b, a),
        ),
        declare(
            "gdtrc(a, b, x, /)",
            "1 - gdtr(a, b, x), accurate where it is small.",
            a=lambda xp, a, b, x: -_rate_slope(xp, a, b, x),
            b=lambda xp, a, b, x: _shape_slope(xp, a, b, x),
            x=lambda xp, a, b, x: -_rate_slope(xp, x, b, a),
        ),
        mg.registry.composite(
            "special.chdtr(df, x, /)",
            chdtr,
            chapter="special",
            doc="The distribution function of the chi-square distribution, gammainc(df / 2, x / "
            "2).",
        ),
        mg.registry.composite(
            "special.chdtrc(df, x, /)",
            chdtrc,
            chapter="special",
            doc="1 - chdtr(df, x), accurate where it is small.",
        ),
        declare(
            "chdtri(df, y, /)",
            "The x for which chdtrc(df, x) is y; nan outside [0, 1].",
            df=lambda xp, df, ans: _chi_quantile_by_df(xp, df, ans),
            y=lambda xp, df, y, ans: _chi_quantile_slope(xp, df, ans, y),
        ),
        declare(
            "pdtr(k, m, /)",
            "The distribution function of the Poisson distribution of mean m, gammaincc(floor(k) "
            "+ 1, m); only m has a gradient.",
            m=lambda xp, k, m: -_poisson_slope(xp, k, m),
        ),
        declare(
            "pdtrc(k, m, /)",
            "1 - pdtr(k, m), accurate where it is small; only m has a gradient.",
            m=lambda xp, k, m: _poisson_slope(xp, k, m),
        ),
        declare(
            "pdtri(k, y, /)",
            "The mean m for which pdtr(k, m) is y; nan outside [0, 1). k is truncated to an "
            "integer; only y has a gradient.",
            y=lambda xp, k, y, ans: _poisson_quantile_slope(xp, k, ans, y),
        ),
    ]
