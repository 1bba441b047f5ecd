"""Complete elliptic integrals by the arithmetic-geometric mean."""

from __future__ import annotations

import math
from typing import Any

from .forms import elementwise

__all__ = ["ellipe", "ellipk", "ellipkm1"]

STEPS = 13
"""The number of steps of the mean: enough also from a ratio of 1e-154."""


def parts(xp: Any, m: Any, p: Any) -> tuple[Any, Any]:
    """The integrals B and D of cos(t)**2 and sin(t)**2 over sqrt(1 - m sin(t)**2), from 0 to pi/2.

    p is 1 - m. K = B + D and E = B + p D, so derivatives use B and D where formulas by K and E
    would cancel. The mean gives K, and the sum of 2**(n - 1) c(n)**2 gives the share of m D in it
    (DLMF 19.8.5 to 19.8.7), here divided by m.
    """
    inside = (p > 0) & xp.isfinite(p)
    within, rest = xp.where(inside, m, 0.0), xp.where(inside, p, 1.0)
    a, b = xp.ones_like(rest), xp.sqrt(rest)
    share, c = 0.5 * a, within / (4 * (1 + b) ** 2)
    for n in range(STEPS):
        share = share + 2.0**n * c
        a, b = (a + b) / 2, xp.sqrt(a) * xp.sqrt(b)
        c = c * (c / (a + b)) * (within / (a + b)) / 4
    k = math.pi / (a + b)
    # of 0, which is no -0.0 here, infinity and what is nowhere
    edge = xp.sqrt(xp.where(inside, 1.0, xp.where(p == 0, 0.0, p)))
    return xp.where(inside, k * (1 - share), 1 / (1 + edge)), xp.where(inside, k * share, 1 / edge)


@elementwise
def ellipk(xp: Any, m: Any) -> Any:
    """The complete elliptic integral of the first kind."""
    b, d = parts(xp, m, 1 - m)
    return b + d


@elementwise
def ellipkm1(xp: Any, p: Any) -> Any:
    """ellipk(1 - p), exact near p = 0."""
    b, d = parts(xp, 1 - p, p)
    return b + d


@elementwise
def ellipe(xp: Any, m: Any) -> Any:
    """The complete elliptic integral of the second kind."""
    p = 1 - m
    b, d = parts(xp, m, p)
    return xp.where(
        p == 0,
        1.0,
        xp.where(
            xp.isinf(p) & (p > 0), math.inf, b + xp.where(p == 0, 0.0, p) * xp.where(p == 0, 0.0, d)
        ),
    )
