"""The incomplete beta functions, and the distributions that are made of them."""

from __future__ import annotations

from typing import Any

import multigrad as mg

from .declare import ON_JAX, declare


def _beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    return xp.exp(xp.special.xlogy(a - 1, x) + xp.special.xlog1py(b - 1, -x) - xp.special.betaln(a, b))


def _t_density(xp: Any, df: Any, x: Any) -> Any:
    scale = xp.sqrt(df) * xp.exp(xp.special.betaln(0.5 * df, 0.5))
    return xp.exp(-0.5 * (df + 1) * xp.log1p(x * x / df)) / scale


def declarations() -> list[mg.registry.Op]:
    return [
        declare("betainc(a, b, x, /)", "The regularized incomplete beta function; differentiable by x.", x=_beta_density),
        declare("stdtr(df, x, /)", "The distribution function of Student's t distribution; differentiable by x.", jax=f"{ON_JAX}stdtr",
                 cupy=None, x=_t_density),
    ]
