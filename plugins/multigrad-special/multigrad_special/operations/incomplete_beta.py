"""The incomplete beta functions, and the distributions based on them.

The derivative of a tail with respect to its parameters is taken under the integral: see
`standard/beta_tails.py`. An inverse has derivatives in terms of the function: for F(a, x) = y,
dx/dy = 1 / F_x and dx/da = -F_a / F_x.
"""

from __future__ import annotations

from typing import Any

import multigrad as mg

from ..standard import beta_quantiles as quantiles
from ..standard import incomplete_beta as tails
from .declare import CALLS_SCIPY, declare


def _share(xp: Any, a: Any, b: Any, y: Any, ans: Any) -> tuple[Any, ...]:
    """The parameters, the result, and 1 minus the result, accurate where the result is near 1."""
    return a, b, ans, xp.special.betainccinv(b, a, y)


def _share_c(xp: Any, a: Any, b: Any, y: Any, ans: Any) -> tuple[Any, ...]:
    return a, b, ans, xp.special.betaincinv(b, a, y)


def _chance(xp: Any, k: Any, n: Any, y: Any) -> tuple[Any, ...]:
    """The result of bdtri, and 1 minus it.

    bdtr(k, n, p) is the upper tail at p with the parameters k + 1 and n - k.
    """
    k, n, y = tails.real(xp, "bdtri", k, n, y)
    a, b = xp.floor(k) + 1, xp.trunc(n) - xp.floor(k)
    return a, b, xp.special.betainccinv(a, b, y), xp.special.betaincinv(b, a, y)


def _chance_n(xp: Any, k: Any, n: Any, y: Any) -> tuple[Any, ...]:
    k, n, y = tails.real(xp, "nbdtri", k, n, y)
    a, b = xp.trunc(n), xp.trunc(k) + 1
    return a, b, xp.special.betaincinv(a, b, y), xp.special.betainccinv(b, a, y)


def declarations() -> list[mg.registry.Op]:
    """Declare the operations.

    JAX has only betainc, with fewer digits than the standard form. XLA takes ten seconds to compile
    the forms of the inverses.
    """
    return [*_of_shares(), *_of_ratios(), *_of_counts()]


def _of_shares() -> list[mg.registry.Op]:
    return [
        declare(
            "betainc(a, b, x, /)",
            "The regularized incomplete beta function I_x(a, b).",
            a=lambda xp, a, b, x: tails.beta_partial(xp, a, b, x, by_a=True),
            b=lambda xp, a, b, x: tails.beta_partial(xp, a, b, x, by_a=False),
            x=lambda xp, a, b, x: tails.beta_density(xp, a, b, x),
        ),
        declare(
            "betaincc(a, b, x, /)",
            "1 - I_x(a, b), accurate where it is small.",
            cupy=None,
            a=lambda xp, a, b, x: -tails.beta_partial(xp, a, b, x, by_a=True),
            b=lambda xp, a, b, x: -tails.beta_partial(xp, a, b, x, by_a=False),
            x=lambda xp, a, b, x: -tails.beta_density(xp, a, b, x),
        ),
        declare(
            "betaincinv(a, b, y, /)",
            "The x for which I_x(a, b) is y; nan where y is outside [0, 1].",
            jax=CALLS_SCIPY,
            a=lambda xp, a, b, y, ans: quantiles.share_partial(
                xp, *_share(xp, a, b, y, ans), by_a=True
            ),
            b=lambda xp, a, b, y, ans: quantiles.share_partial(
                xp, *_share(xp, a, b, y, ans), by_a=False
            ),
            y=lambda xp, a, b, y, ans: quantiles.share_slope(xp, *_share(xp, a, b, y, ans)),
        ),
        declare(
            "betainccinv(a, b, y, /)",
            "The x for which 1 - I_x(a, b) is y; nan where y is outside [0, 1].",
            jax=CALLS_SCIPY,
            cupy=None,
            a=lambda xp, a, b, y, ans: quantiles.share_partial(
                xp, *_share_c(xp, a, b, y, ans), by_a=True
            ),
            b=lambda xp, a, b, y, ans: quantiles.share_partial(
                xp, *_share_c(xp, a, b, y, ans), by_a=False
            ),
            y=lambda xp, a, b, y, ans: -quantiles.share_slope(xp, *_share_c(xp, a, b, y, ans)),
        ),
    ]


def _of_ratios() -> list[mg.registry.Op]:
    return [
        declare(
            "fdtr(dfn, dfd, x, /)",
            "The distribution function of the F distribution with dfn and dfd degrees of freedom.",
            dfn=lambda xp, dfn, dfd, x: tails.f_partial(xp, dfn, dfd, x, by_a=True),
            dfd=lambda xp, dfn, dfd, x: tails.f_partial(xp, dfn, dfd, x, by_a=False),
            x=lambda xp, dfn, dfd, x: tails.f_density(xp, dfn, dfd, x),
        ),
        declare(
            "fdtrc(dfn, dfd, x, /)",
            "1 - fdtr(dfn, dfd, x), accurate where it is small.",
            dfn=lambda xp, dfn, dfd, x: -tails.f_partial(xp, dfn, dfd, x, by_a=True),
            dfd=lambda xp, dfn, dfd, x: -tails.f_partial(xp, dfn, dfd, x, by_a=False),
            x=lambda xp, dfn, dfd, x: -tails.f_density(xp, dfn, dfd, x),
        ),
        declare(
            "fdtri(dfn, dfd, p, /)",
            "The x for which fdtr(dfn, dfd, x) is p.",
            jax=CALLS_SCIPY,
            dfn=lambda xp, dfn, dfd, ans: tails.f_quantile_partial(xp, dfn, dfd, ans, by_a=True),
            dfd=lambda xp, dfn, dfd, ans: tails.f_quantile_partial(xp, dfn, dfd, ans, by_a=False),
            p=lambda xp, dfn, dfd, p, ans: tails.f_quantile_slope(xp, dfn, dfd, ans, p),
        ),
        declare(
            "stdtr(df, x, /)",
            "The distribution function of Student's t distribution with df degrees of freedom.",
            cupy=None,
            df=lambda xp, df, x: tails.t_partial(xp, df, x),
            x=lambda xp, df, x: tails.t_density(xp, df, x),
        ),
        declare(
            "stdtrit(df, p, /)",
            "The x for which stdtr(df, x) is p.",
            jax=CALLS_SCIPY,
            cupy=None,
            df=lambda xp, df, ans: tails.t_quantile_partial(xp, df, ans),
            p=lambda xp, df, p, ans: tails.t_quantile_slope(xp, df, ans, p),
        ),
    ]


def _of_counts() -> list[mg.registry.Op]:
    return [
        declare(
            "bdtr(k, n, p, /)",
            "The probability of at most floor(k) successes in n trials of probability p; only p "
            "has a gradient.",
            p=lambda xp, k, n, p: -tails.bdtr_slope(xp, k, n, p),
        ),
        declare(
            "bdtrc(k, n, p, /)",
            "The probability of more than floor(k) successes in n trials of probability p; only p "
            "has a gradient.",
            p=lambda xp, k, n, p: tails.bdtrc_slope(xp, k, n, p),
        ),
        declare(
            "bdtri(k, n, y, /)",
            "The p for which bdtr(k, n, p) is y; only y has a gradient.",
            jax=CALLS_SCIPY,
            y=lambda xp, k, n, y: -quantiles.share_slope(xp, *_chance(xp, k, n, y)),
        ),
        declare(
            "nbdtr(k, n, p, /)",
            "The probability of at most k failures before the n-th success of probability p; only "
            "p has a gradient.",
            p=lambda xp, k, n, p: tails.nbdtr_slope(xp, k, n, p),
        ),
        declare(
            "nbdtrc(k, n, p, /)",
            "The probability of more than k failures before the n-th success of probability p; "
            "only p has a gradient.",
            p=lambda xp, k, n, p: -tails.nbdtr_slope(xp, k, n, p),
        ),
        declare(
            "nbdtri(k, n, y, /)",
            "The p for which nbdtr(k, n, p) is y; only y has a gradient.",
            jax=CALLS_SCIPY,
            y=lambda xp, k, n, y: quantiles.share_slope(xp, *_chance_n(xp, k, n, y)),
        ),
    ]
