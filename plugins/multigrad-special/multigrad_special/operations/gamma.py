"""The gamma function, its logarithm and its derivatives; the beta function."""

from __future__ import annotations

from typing import Any

import multigrad as mg

from ..standard.gamma import BERNOULLI
from .declare import ON_JAX, ON_NUMPY, declare


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


def declarations() -> list[mg.registry.Op]:
    return [
        declare("gamma(x, /)", "The gamma function of each element.",
                 x=lambda xp, x, ans: ans * xp.special.digamma(x)),
        declare("gammaln(x, /)", "The logarithm of the absolute value of the gamma function of each element.",
                 x=lambda xp, x: xp.special.digamma(x)),
        declare("digamma(x, /)", "The derivative of the logarithm of the gamma function at each element.",
                 x=lambda xp, x: xp.special.polygamma(1, x)),
        mg.registry.composite("special.psi(x, /)", lambda xp, x: xp.special.digamma(x), chapter="special",
                              doc="Another name of digamma, by which SciPy looks for it."),
        # SciPy's turns float32 into float64; JAX's is wrong below 0, even in its sign, and cupyx's is written as SciPy's.
        declare("polygamma(n: plain, x, /)", "The derivative of order n of digamma at each element; n is an int, 0 or more.",
                 numpy=f"{ON_NUMPY}polygamma", jax=f"{ON_JAX}polygamma", cupy=None,
                 x=lambda xp, n, x: xp.special.polygamma(n + 1, x)),
        declare("beta(a, b, /)", "The beta function, gamma(a) gamma(b) / gamma(a + b).", jax=f"{ON_JAX}beta",
                 a=lambda xp, a, b, ans: -ans * _digamma_step(xp, a, b), b=lambda xp, a, b, ans: -ans * _digamma_step(xp, b, a)),
        declare("betaln(a, b, /)", "The logarithm of the absolute value of the beta function.", jax=f"{ON_JAX}betaln",
                 a=lambda xp, a, b: -_digamma_step(xp, a, b), b=lambda xp, a, b: -_digamma_step(xp, b, a)),
    ]
