"""The operations and their rules. What a rule keeps is what its parameters name; what it does at a singular point stands beside it.

The names are SciPy's, so SciPy finds them: with SCIPY_ARRAY_API=1, `scipy.special.erf(tensor)` asks the namespace of its
argument for `special.erf`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import multigrad as mg

from .standard.gamma import BERNOULLI

SLOPE = 2 / math.sqrt(math.pi)
OURS = "multigrad_special.standard:"
ON_JAX = "multigrad_special.on_jax:"


def declarations() -> list[mg.registry.Op]:
    """Declare everything, chapter by chapter."""
    return [*_error_functions(), *_gamma_functions(), *_entropies(), *_distributions(), *_bessel_functions()]


def _declare(signature: str, doc: str, **rules_and_forwards: Any) -> mg.registry.Op:
    """Declare `special.<signature>`: SciPy's function on each backend that has one, and ours (standard/) on any other."""
    name = signature.partition("(")[0]
    forward = {"numpy": f"scipy.special:{name}", "jax": f"jax.scipy.special:{name}", "cupy": f"cupyx.scipy.special:{name}"}
    forward |= {backend: rules_and_forwards.pop(backend) for backend in tuple(forward) if backend in rules_and_forwards}
    forward["*"] = OURS + name
    return mg.registry.elementwise(f"special.{signature}", doc=doc, chapter="special",
                                   forward={b: f for b, f in forward.items() if f}, **rules_and_forwards)


# ----- the error function and the normal distribution -----


def _log_ndtr_slope(xp: Any, x: Any, ans: Any) -> Any:
    """The density over ndtr(x): below 0 by erfcx, which does not cancel; above by the result, since erfcx and its square overflow there."""
    above = x > 0
    low, high = xp.where(above, 0.0, x), xp.where(above, x, 0.0)
    density = xp.exp(-0.5 * high * high - xp.where(above, ans, 0.0)) / math.sqrt(2 * math.pi)
    return xp.where(above, density, math.sqrt(2 / math.pi) / xp.special.erfcx(-low / math.sqrt(2)))


def _erfcx_slope(xp: Any, x: Any, ans: Any) -> Any:
    """2 x erfcx(x) - 2 / sqrt(pi); from 10 on, where these cancel, its asymptotic series (Abramowitz and Stegun, 7.1.23)."""
    slope = 2 * x * ans - SLOPE
    if xp.isdtype(x.dtype, "complex floating"):
        return slope
    inverse = 1 / xp.where(x > 10, x, 10.0) ** 2
    term = -0.5 * SLOPE * inverse
    series = term
    for k in range(1, 14):
        term = -term * (k + 0.5) * inverse
        series = series + term
    return xp.where(x > 10, series, slope)


def _error_functions() -> list[mg.registry.Op]:
    return [
        _declare("erf(x, /)", "The error function of each element.",
                 x=lambda xp, x: SLOPE * xp.exp(-x * x)),
        _declare("erfc(x, /)", "1 - erf(x), accurate where erf(x) is near 1.",
                 x=lambda xp, x: -SLOPE * xp.exp(-x * x)),
        # JAX's own is as young as 2025.
        _declare("erfcx(x, /)", "exp(x**2) erfc(x), which far out is 1 / (x sqrt(pi)).", jax=f"{ON_JAX}erfcx", x=_erfcx_slope),
        _declare("erfinv(x, /)", "The inverse of erf; nan outside [-1, 1].",
                 x=lambda xp, ans: xp.exp(ans * ans) / SLOPE),
        _declare("ndtr(x, /)", "The distribution function of the normal distribution.",
                 x=lambda xp, x: xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)),
        # JAX's has 10 digits below -20.
        _declare("log_ndtr(x, /)", "The logarithm of ndtr(x), accurate where that is tiny.", jax=f"{ON_JAX}log_ndtr",
                 x=_log_ndtr_slope),
        _declare("ndtri(x, /)", "The quantile of the normal distribution, the inverse of ndtr; nan outside [0, 1].",
                 x=lambda xp, ans: math.sqrt(2 * math.pi) * xp.exp(0.5 * ans * ans)),
    ]


# ----- gamma and beta -----


def _digamma_step(xp: Any, a: Any, b: Any) -> Any:
    """digamma(a + b) - digamma(a); for positive a and b as a sum of positive terms, since the two may almost be equal.

    Shifted by recurrence, then the difference of the asymptotic series (Abramowitz and Stegun, 6.3.6 and 6.3.18).
    """
    positive = (a > 0) & (b > 0)
    low, step = xp.where(positive, a, 1.0), xp.where(positive, b, 1.0)
    high = low + step
    total = sum(step / ((low + k) * (high + k)) for k in range(10))
    low = low + 10
    growth = xp.log1p(step / low)
    total = total + growth + step / (2 * low * (low + step))
    power = square = 1 / (low * low)
    for j, number in enumerate(BERNOULLI[:7], 1):
        total = total - number / (2 * j) * power * xp.expm1(-2 * j * growth)
        power = power * square
    plain = xp.special.digamma(xp.where(positive, 1.0, a + b)) - xp.special.digamma(xp.where(positive, 1.0, a))
    return xp.where(positive, total, plain)


def _gamma_functions() -> list[mg.registry.Op]:
    return [
        _declare("gamma(x, /)", "The gamma function of each element.",
                 x=lambda xp, x, ans: ans * xp.special.digamma(x)),
        _declare("gammaln(x, /)", "The logarithm of the absolute value of the gamma function of each element.",
                 x=lambda xp, x: xp.special.digamma(x)),
        _declare("digamma(x, /)", "The derivative of the logarithm of the gamma function at each element.",
                 x=lambda xp, x: xp.special.polygamma(1, x)),
        mg.registry.composite("special.psi(x, /)", lambda xp, x: xp.special.digamma(x), chapter="special",
                              doc="Another name of digamma, by which SciPy looks for it."),
        # SciPy's turns float32 into float64; JAX's is wrong below 0, even in its sign, and cupyx's is written as SciPy's.
        _declare("polygamma(n: plain, x, /)", "The derivative of order n of digamma at each element; n is an int, 0 or more.",
                 numpy="multigrad_special.on_numpy:polygamma", jax=f"{ON_JAX}polygamma", cupy=None,
                 x=lambda xp, n, x: xp.special.polygamma(n + 1, x)),
        _declare("beta(a, b, /)", "The beta function, gamma(a) gamma(b) / gamma(a + b).", jax=f"{ON_JAX}beta",
                 a=lambda xp, a, b, ans: -ans * _digamma_step(xp, a, b), b=lambda xp, a, b, ans: -ans * _digamma_step(xp, b, a)),
        _declare("betaln(a, b, /)", "The logarithm of the absolute value of the beta function.", jax=f"{ON_JAX}betaln",
                 a=lambda xp, a, b: -_digamma_step(xp, a, b), b=lambda xp, a, b: -_digamma_step(xp, b, a)),
    ]


# ----- the logistic function, x log y and entropies -----


def _logit_slope(xp: Any, x: Any) -> Any:
    return 1 / xp.where((x < 0) | (x > 1), math.nan, x * (1 - x))


def _held(xp: Any, x: Any, y: Any, least: float) -> Any:
    """Where x log(y) is 0 because x is, though log(y) does not exist: as in PyTorch the gradient is 0, too."""
    return (x == 0) & ((y == least) if xp.isdtype(y.dtype, "complex floating") else (y <= least))


def _xlogy_by_x(xp: Any, x: Any, y: Any) -> Any:
    held = _held(xp, x, y, 0.0)
    return xp.where(held, 0.0, xp.log(xp.where(held, 1.0, y)))


def _xlogy_by_y(xp: Any, x: Any, y: Any) -> Any:
    return x / xp.where((x == 0) & (y == 0), 1.0, y)


def _xlog1py_by_x(xp: Any, x: Any, y: Any) -> Any:
    held = _held(xp, x, y, -1.0)
    return xp.where(held, 0.0, xp.log1p(xp.where(held, 0.0, y)))


def _xlog1py_by_y(xp: Any, x: Any, y: Any) -> Any:
    return x / xp.where((x == 0) & (y == -1), 1.0, 1 + y)


def _log_ratio(xp: Any, x: Any, y: Any) -> Any:
    """log(x / y), which for x near y is log1p of their difference, which is exact."""
    near = xp.abs(x - y) < 0.5 * xp.abs(y)
    return xp.where(near, xp.log1p(xp.where(near, x - y, 0.0) / y), xp.log(xp.where(near, 1.0, x / y)))


def _entropies() -> list[mg.registry.Op]:
    return [
        _declare("expit(x, /)", "The logistic function 1 / (1 + exp(-x)) of each element.",
                 x=lambda xp, x: xp.special.expit(x) * xp.special.expit(-x)),
        _declare("log_expit(x, /)", "log(expit(x)), accurate where expit(x) is tiny.", jax="jax.nn:log_sigmoid",
                 x=lambda xp, x: xp.special.expit(-x)),
        _declare("logit(x, /)", "log(x / (1 - x)), the inverse of expit; nan outside [0, 1].", x=_logit_slope),
        _declare("xlogy(x, y, /)", "x log(y), 0 where x is 0.", x=_xlogy_by_x, y=_xlogy_by_y),
        _declare("xlog1py(x, y, /)", "x log(1 + y), 0 where x is 0.", x=_xlog1py_by_x, y=_xlog1py_by_y),
        _declare("entr(x, /)", "-x log(x), 0 at 0 and -inf below. At 0 the slope is inf.",
                 x=lambda xp, x: -1 - xp.log(x)),
        _declare("rel_entr(x, y, /)", "x log(x / y), 0 where x is 0 and y is not negative, inf where either is negative.",
                 x=lambda xp, x, y: _log_ratio(xp, x, y) + 1, y=lambda xp, x, y: -_xlogy_by_y(xp, x, y)),
        _declare("kl_div(x, y, /)", "x log(x / y) - x + y, with the exceptions of rel_entr.",
                 x=_log_ratio, y=lambda xp, x, y: (y - x) / xp.where((x == 0) & (y == 0), 1.0, y)),
    ]


# ----- distributions: differentiable by their last argument, the others are parameters -----


def _gamma_density(xp: Any, a: Any, x: Any) -> Any:
    return xp.exp(xp.special.xlogy(a - 1, x) - x - xp.special.gammaln(a))


def _beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    return xp.exp(xp.special.xlogy(a - 1, x) + xp.special.xlog1py(b - 1, -x) - xp.special.betaln(a, b))


def _t_density(xp: Any, df: Any, x: Any) -> Any:
    scale = xp.sqrt(df) * xp.exp(xp.special.betaln(0.5 * df, 0.5))
    return xp.exp(-0.5 * (df + 1) * xp.log1p(x * x / df)) / scale


def _distributions() -> list[mg.registry.Op]:
    return [
        _declare("gammainc(a, x, /)", "The regularized lower incomplete gamma function; differentiable by x.", x=_gamma_density),
        _declare("gammaincc(a, x, /)", "The regularized upper incomplete gamma function; differentiable by x.",
                 x=lambda xp, a, x: -_gamma_density(xp, a, x)),
        _declare("betainc(a, b, x, /)", "The regularized incomplete beta function; differentiable by x.", x=_beta_density),
        _declare("stdtr(df, x, /)", "The distribution function of Student's t distribution; differentiable by x.", jax=f"{ON_JAX}stdtr",
                 cupy=None, x=_t_density),
    ]


# ----- modified Bessel functions -----


def _neighbours(xp: Any, v: int, z: Any, name: str) -> Any:
    """The mean of the functions of order v - 1 and v + 1, the former being v + 1, too, where v is 0."""
    function = getattr(xp.special, name)
    return function(1, z) if v == 0 else 0.5 * (function(v - 1, z) + function(v + 1, z))


def _scaled_slope(xp: Any, v: int, z: Any, ans: Any) -> Any:
    """The slope of ive, that mean less the function itself; far out, where these cancel, their asymptotic series do so exactly."""
    x, sign, limit = xp.abs(z), xp.sign(z), 25 + v * v
    far = xp.where(x > limit, x, limit)
    near, series = limit / far, 0.0
    coefficients = _slope_coefficients(v)
    for k in range(len(coefficients), 0, -1):  # in powers of limit / x, since the coefficients alone may overflow float16
        series = (series + coefficients[k - 1] / limit**k) * near
    series = series / xp.sqrt(2 * math.pi * far)
    return xp.where(x > limit, series if v % 2 else sign * series, _neighbours(xp, v, z, "ive") - sign * ans)


@lru_cache
def _slope_coefficients(v: int) -> list[float]:
    """Of the powers of 1/x in that difference, by those of each function (Abramowitz and Stegun, 9.7.1)."""
    def coefficients(n: int) -> list[Fraction]:
        found = [Fraction(1)]
        for k in range(1, 25):
            found.append(-found[-1] * (4 * n * n - (2 * k - 1) ** 2) / (8 * k))
        return found

    below, own, above = coefficients(abs(v - 1)), coefficients(v), coefficients(v + 1)
    return [float((p + q) / 2 - c) for p, c, q in zip(below, own, above, strict=True)][1:]


def _bessel_functions() -> list[mg.registry.Op]:
    """Slopes are those of Abramowitz and Stegun, 9.6.26: nothing is divided by x, so 0 is a point like any other.

    With the factor exp(-|x|) there is a kink at 0 in even orders; the slope there is 0.
    """
    return [
        _declare("i0(x, /)", "The modified Bessel function of order 0.", x=lambda xp, x: xp.special.i1(x)),
        _declare("i1(x, /)", "The modified Bessel function of order 1.", x=lambda xp, x: _neighbours(xp, 1, x, "iv")),
        _declare("i0e(x, /)", "exp(-|x|) i0(x).", x=lambda xp, x, ans: _scaled_slope(xp, 0, x, ans)),
        _declare("i1e(x, /)", "exp(-|x|) i1(x).", x=lambda xp, x, ans: _scaled_slope(xp, 1, x, ans)),
        _declare("iv(v: plain, z, /)", "The modified Bessel function of order v, an int from 0 to 20.",
                 numpy="multigrad_special.on_numpy:iv", jax=f"{ON_JAX}iv", cupy=None,
                 z=lambda xp, v, z: _neighbours(xp, v, z, "iv")),
        _declare("ive(v: plain, z, /)", "exp(-|z|) iv(v, z).",
                 numpy="multigrad_special.on_numpy:ive", jax=f"{ON_JAX}ive", cupy=None,
                 z=_scaled_slope),
    ]
