"""Complete elliptic integrals and associated Legendre functions."""

from __future__ import annotations

import math
from typing import Any

import multigrad as mg

from ..standard.elliptic import parts
from ..standard.forms import order
from .declare import CALLS_SCIPY, declare


def _slope_of_k(xp: Any, m: Any, p: Any) -> Any:
    """The derivative of K by m, (E - p K) / (2 m p), whose numerator is m B (DLMF 19.4.1)."""
    return parts(xp, m, p)[0] / (2 * p)


def _slope_of_lpmv(xp: Any, m: Any, v: Any, x: Any) -> Any:
    """The derivative of lpmv with respect to x, from the functions of order m - 1 and m + 1.

    Their difference does not cancel near the ends (from DLMF 14.10.1 and 14.10.4).

    At -1 and 1 the derivative of order 0 is that of Legendre's polynomials, that of order 2 follows
    from its factor 1 - x**2, that of order 1 is infinite; all others are 0. Higher derivatives are
    nan there.
    """
    m, v = order(xp, m, x), order(xp, v, x)
    end = (xp.abs(x) == 1) & (m != 1) & (m != -1) & ((x > 0) | (v == xp.floor(v)))
    product = (v + m) * (v - m + 1)
    inner = xp.where(end, 0.5, x)
    # of no weight where there may be none
    below = xp.special.lpmv(xp.where(product == 0, m, m - 1), v, inner)
    inside = (product * below - xp.special.lpmv(m + 1, v, inner)) / (
        2 * xp.sqrt((1 - inner) * (1 + inner))
    )
    # x to the power v + 1
    sign = xp.where((x < 0) & (v == 2 * xp.floor(v / 2)), -1.0, xp.ones_like(x))
    fourth = (v - 1) * v * (v + 1) * (v + 2)
    at_end = xp.where(
        m == 0,
        v * (v + 1) / 2,
        xp.where(m == 2, -fourth / 4, xp.where(m == -2, -0.25, xp.zeros_like(x))),
    )
    edge = 0 * xp.sqrt(1 - xp.where(end, xp.abs(x), 0.5))
    edge = xp.where(m == xp.floor(m), edge, math.nan)
    return xp.where(end, sign * at_end + edge, inside)


def declarations() -> list[mg.registry.Op]:
    """Declare the operations.

    SciPy's lpmv, also when called from JAX, takes any real degree; the form in the standard takes
    integer degrees.
    """
    return [
        declare(
            "ellipk(m, /)",
            "The complete elliptic integral of the first kind, of the parameter m.",
            cupy=None,
            m=lambda xp, m: _slope_of_k(xp, m, 1 - m),
        ),
        declare(
            "ellipkm1(p, /)",
            "ellipk(1 - p), exact near p = 0.",
            cupy=None,
            p=lambda xp, p: -_slope_of_k(xp, 1 - p, p),
        ),
        declare(
            "ellipe(m, /)",
            "The complete elliptic integral of the second kind, of the parameter m.",
            cupy=None,
            m=lambda xp, m: -0.5 * parts(xp, m, 1 - m)[1],
        ),
        declare(
            "lpmv(m, v, x, /)",
            "The associated Legendre function of integer order m and real degree v, for x from "
            "-1 to 1.",
            jax=CALLS_SCIPY,
            x=_slope_of_lpmv,
        ),
    ]
