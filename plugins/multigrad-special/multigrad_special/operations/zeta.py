"""The zeta functions of Riemann and Hurwitz."""

from __future__ import annotations

import math
from typing import Any

import multigrad as mg

from ..standard.forms import floats, refuse_complex
from ..standard.zeta import REFLECTED, reflected_gamma
from .declare import OF_CUPY, declare


def _zeta(xp: Any, x: Any, q: Any) -> Any:
    refuse_complex(xp, "zeta", x, q)
    return xp.special.riemann_zeta(x) if q is None else xp.special.hurwitz_zeta(x, q)


def _hurwitz_by_x(xp: Any, x: Any, q: Any) -> Any:
    """nan where the function is nan."""
    return xp.where(x < 1, math.nan, xp.special.zeta_derivative(1, xp.where(x < 1, 2.0, x), q))


def _hurwitz_by_q(xp: Any, x: Any, q: Any) -> Any:
    """-x zeta(x + 1, q), and nan where the function is nan."""
    x, q = floats(xp, x, q)
    return -xp.where(x < 1, math.nan, x) * xp.special.hurwitz_zeta(x + 1, q)


def _derivative_by_q(xp: Any, m: int, x: Any, q: Any) -> Any:
    """The derivative of order m of -x zeta(x + 1, q) with respect to x."""
    x, q = floats(xp, x, q)
    lower = (
        xp.special.hurwitz_zeta(x + 1, q) if m == 1 else xp.special.zeta_derivative(m - 1, x + 1, q)
    )
    return -x * xp.special.zeta_derivative(m, x + 1, q) - m * lower


def _riemann_slope(xp: Any, x: Any) -> Any:
    """The sum for x >= -1/4; below, the derivative of the reflection formula.

    The formula is 2 (2 pi)**-y cos(pi y / 2) gamma(y) zeta(y) with y = 1 - x (DLMF 25.4.1), by the
    product rule.
    """
    below = x < REFLECTED
    above = xp.special.zeta_derivative(1, xp.where(below, 2.0, x), 1.0)
    y = 1 - xp.where(below, x, -1.0)
    quarter = y - 4 * xp.round(0.25 * y)
    cosine, sine = xp.cos(0.5 * math.pi * quarter), xp.sin(0.5 * math.pi * quarter)
    zeta = xp.special.riemann_zeta(y)
    growth = (xp.special.digamma(y) - math.log(2 * math.pi)) * zeta + xp.special.zeta_derivative(
        1, y, 1.0
    )
    reflected = -2 * reflected_gamma(xp, y) * (cosine * growth - 0.5 * math.pi * sine * zeta)
    return xp.where(below, reflected, above)


def declarations() -> list[mg.registry.Op]:
    """Declare the operations.

    Derivatives with respect to the exponent differentiate each term of Euler-Maclaurin summation.
    Those with respect to q have a closed form (DLMF 25.11.17).
    """
    return [
        mg.registry.composite(
            "special.zeta(x: array, q: array = None)",
            _zeta,
            chapter="special",
            doc="The sum of (q + k)**-x over k = 0, 1, ... (Hurwitz' zeta function), which is nan "
            "for x < 1. Without q it is Riemann's zeta function, for all real x.",
        ),
        declare(
            "hurwitz_zeta(x, q, /)",
            "zeta(x, q), the sum of (q + k)**-x over k = 0, 1, ...; nan for x < 1.",
            cupy=f"{OF_CUPY}zeta",
            x=_hurwitz_by_x,
            q=_hurwitz_by_q,
        ),
        declare(
            "zeta_derivative(m: plain, x, q, /)",
            "The derivative of order m >= 1 of zeta(x, q) by x, continued to x >= -1/4; nan "
            "for q <= 0.",
            cupy=None,
            x=lambda xp, m, x, q: xp.special.zeta_derivative(m + 1, x, q),
            q=_derivative_by_q,
        ),
        declare(
            "riemann_zeta(x, /)",
            "Riemann's zeta function, zeta(x) without q, for all real x.",
            cupy=None,
            x=_riemann_slope,
        ),
        declare(
            "zetac(x, /)",
            "Riemann's zeta function minus 1, accurate where the function is near 1.",
            x=_riemann_slope,
        ),
    ]
