"""The incomplete gamma functions, and the distributions that are made of them."""

from __future__ import annotations

from typing import Any

import multigrad as mg

from .declare import declare


def _gamma_density(xp: Any, a: Any, x: Any) -> Any:
    return xp.exp(xp.special.xlogy(a - 1, x) - x - xp.special.gammaln(a))


def declarations() -> list[mg.registry.Op]:
    return [
        declare("gammainc(a, x, /)", "The regularized lower incomplete gamma function; differentiable by x.", x=_gamma_density),
        declare("gammaincc(a, x, /)", "The regularized upper incomplete gamma function; differentiable by x.",
                 x=lambda xp, a, x: -_gamma_density(xp, a, x)),
    ]
