"""Bessel functions."""

from __future__ import annotations

import math
from typing import Any

import multigrad as mg

from ..standard.forms import order
from .declare import OF_JAX, declare

TERMS = 32
"""The number of terms of an asymptotic series: enough above 16 and above half of the squared order.
"""


def _around(xp: Any, name: str, v: Any, z: Any) -> tuple[Any, Any]:
    """The functions of order v - 1 and v + 1."""
    function, v = getattr(xp.special, name), order(xp, v, z)
    return function(v - 1, z), function(v + 1, z)


def _falling(xp: Any, name: str, v: Any, z: Any) -> Any:
    """The derivative of the functions J and Y (DLMF 10.6.1).

    It is half of the function of the order below minus that of the order above.
    """
    below, above = _around(xp, name, v, z)
    return 0.5 * (below - above)


def _rising(xp: Any, name: str, v: Any, z: Any) -> Any:
    """The derivative of the functions I, and of K with the opposite sign (DLMF 10.29.1).

    It is the mean of the functions of the orders below and above.
    """
    below, above = _around(xp, name, v, z)
    return 0.5 * (below + above)


def _from_pole(xp: Any, z: Any, ans: Any, slope: Any) -> Any:
    """The derivative of Y or K, with the infinity at 0 that the pole there requires."""
    return xp.where(z == 0, -ans, slope)


def _slope_far_out(xp: Any, v: Any, x: Any, sign: float) -> Any:
    """The derivative, term by term, of the asymptotic series of exp(x) K or exp(-x) I.

    sign is 1 for K and -1 for I: DLMF 10.40.1 and 10.40.2.
    """
    square = 4 * v * v
    term, total = xp.ones_like(x), 0.5 * xp.ones_like(x)
    for k in range(1, TERMS):
        term = term * ((square - (2 * k - 1) ** 2) / (8 * k) * sign) / x
        total = total + (k + 0.5) * term
    return (
        -total
        * (math.sqrt(math.pi / 2) if sign > 0 else 1 / math.sqrt(2 * math.pi))
        / (x * xp.sqrt(x))
    )


def _slope_of_scaled(xp: Any, v: Any, z: Any, near: Any, sign: float) -> Any:
    """The derivative of exp(z) K or exp(-|z|) I.

    `near` is the derivative by recurrence. It cancels for large arguments, where the asymptotic
    series is exact.
    """
    size = xp.abs(z)
    limit = 16 + v * v / 2 + xp.zeros_like(size)
    far = size > limit
    away = _slope_far_out(xp, v, xp.where(far, z if sign > 0 else size, limit), sign)
    return xp.where(far, away, near)


def _slope_of_scaled_i(xp: Any, v: Any, z: Any, ans: Any, mean: Any, even: Any) -> Any:
    """The derivative of exp(-|z|) I, which is 0 at 0 for even orders, where there is a kink.

    It is odd where the function is even.
    """
    side = xp.sign(z)
    slope = _slope_of_scaled(xp, v, z, mean - side * ans, -1.0)
    far = xp.abs(z) > 16 + v * v / 2
    return xp.where(far & even & (z < 0), -slope, slope)


def _slope_of_ive(xp: Any, v: Any, z: Any, ans: Any) -> Any:
    v = order(xp, v, z)
    return _slope_of_scaled_i(xp, v, z, ans, _rising(xp, "ive", v, z), v == 2 * xp.floor(v / 2))


def _slope_of_kve(xp: Any, v: Any, z: Any, ans: Any) -> Any:
    v = order(xp, v, z)
    return _from_pole(xp, z, ans, _slope_of_scaled(xp, v, z, ans - _rising(xp, "kve", v, z), 1.0))


def _slope_of_i0e(xp: Any, x: Any, ans: Any) -> Any:
    return _slope_of_scaled_i(xp, xp.zeros_like(x), x, ans, xp.special.i1e(x), x == x)


def _slope_of_i1e(xp: Any, x: Any, ans: Any) -> Any:
    return _slope_of_scaled_i(
        xp,
        xp.ones_like(x),
        x,
        ans,
        0.5 * (xp.special.i0e(x) + xp.special.ive(xp.full_like(x, 2.0), x)),
        x != x,
    )


def _slope_of_k0e(xp: Any, x: Any, ans: Any) -> Any:
    return _from_pole(
        xp, x, ans, _slope_of_scaled(xp, xp.zeros_like(x), x, ans - xp.special.k1e(x), 1.0)
    )


def _slope_of_k1e(xp: Any, x: Any, ans: Any) -> Any:
    mean = 0.5 * (xp.special.k0e(x) + xp.special.kve(xp.full_like(x, 2.0), x))
    return _from_pole(xp, x, ans, _slope_of_scaled(xp, xp.ones_like(x), x, ans - mean, 1.0))


def declarations() -> list[mg.registry.Op]:
    """Declare the operations.

    Derivatives are differences and means of neighbouring orders. They do not divide by x, so 0 is a
    regular point.
    """
    return [*_first_and_second(), *_modified(), *_scaled()]


def _first_and_second() -> list[mg.registry.Op]:
    return [
        declare("j0(x, /)", "The Bessel function of order 0.", x=lambda xp, x: -xp.special.j1(x)),
        declare(
            "j1(x, /)",
            "The Bessel function of order 1.",
            x=lambda xp, x: 0.5 * (xp.special.j0(x) - xp.special.jv(xp.full_like(x, 2.0), x)),
        ),
        declare(
            "jv(v, z, /)",
            "The Bessel function of any real order v.",
            cupy=None,
            z=lambda xp, v, z: _falling(xp, "jv", v, z),
        ),
        declare(
            "y0(x, /)",
            "The Bessel function of the second kind, of order 0.",
            x=lambda xp, x: -xp.special.y1(x),
        ),
        declare(
            "y1(x, /)",
            "The Bessel function of the second kind, of order 1.",
            x=lambda xp, x, ans: _from_pole(
                xp, x, ans, 0.5 * (xp.special.y0(x) - xp.special.yn(xp.full_like(x, 2.0), x))
            ),
        ),
        declare(
            "yn(n, x, /)",
            "The Bessel function of the second kind, of an integer order n.",
            x=lambda xp, n, x, ans: _from_pole(xp, x, ans, _falling(xp, "yn", n, x)),
        ),
        declare(
            "yv(v, z, /)",
            "The Bessel function of the second kind, of any real order v.",
            cupy=None,
            z=lambda xp, v, z, ans: _from_pole(xp, z, ans, _falling(xp, "yv", v, z)),
        ),
    ]


def _modified() -> list[mg.registry.Op]:
    return [
        declare(
            "i0(x, /)",
            "The modified Bessel function of order 0.",
            jax=OF_JAX,
            x=lambda xp, x: xp.special.i1(x),
        ),
        declare(
            "i1(x, /)",
            "The modified Bessel function of order 1.",
            jax=OF_JAX,
            x=lambda xp, x: 0.5 * (xp.special.i0(x) + xp.special.iv(xp.full_like(x, 2.0), x)),
        ),
        declare(
            "iv(v, z, /)",
            "The modified Bessel function of any real order v.",
            cupy=None,
            z=lambda xp, v, z: _rising(xp, "iv", v, z),
        ),
        declare(
            "k0(x, /)",
            "The modified Bessel function of the second kind, of order 0.",
            cupy=None,
            x=lambda xp, x: -xp.special.k1(x),
        ),
        declare(
            "k1(x, /)",
            "The modified Bessel function of the second kind, of order 1.",
            cupy=None,
            x=lambda xp, x: -0.5 * (xp.special.k0(x) + xp.special.kv(xp.full_like(x, 2.0), x)),
        ),
        declare(
            "kv(v, z, /)",
            "The modified Bessel function of the second kind, of any real order v.",
            cupy=None,
            z=lambda xp, v, z: -_rising(xp, "kv", v, z),
        ),
    ]


def _scaled() -> list[mg.registry.Op]:
    return [
        declare("i0e(x, /)", "exp(-|x|) i0(x).", jax=OF_JAX, x=_slope_of_i0e),
        declare("i1e(x, /)", "exp(-|x|) i1(x).", jax=OF_JAX, x=_slope_of_i1e),
        declare("ive(v, z, /)", "exp(-|z|) iv(v, z).", cupy=None, z=_slope_of_ive),
        declare("k0e(x, /)", "exp(x) k0(x).", cupy=None, x=_slope_of_k0e),
        declare("k1e(x, /)", "exp(x) k1(x).", cupy=None, x=_slope_of_k1e),
        declare("kve(v, z, /)", "exp(z) kv(v, z).", cupy=None, z=_slope_of_kve),
    ]
