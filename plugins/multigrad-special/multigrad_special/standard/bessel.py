"""Bessel functions of any real order, including the modified and the scaled ones.

The scaled ones are multiplied by exp(-|x|) or exp(x). Small arguments and orders use power series,
large arguments use asymptotic series, and those in between use integrals.
"""

from __future__ import annotations

import math
from typing import Any

from . import bessel_paths as paths
from . import bessel_series as series
from .common import horner
from .forms import elementwise

__all__ = [
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "ive",
    "j0",
    "j1",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kv",
    "kve",
    "y0",
    "y1",
    "yn",
    "yv",
]

LOW = series.MOST + 0.5
"""Power series serve orders below this."""


# ----- of the first kind, modified -----


@elementwise
def i0(xp: Any, x: Any) -> Any:
    """The modified Bessel function of order 0."""
    return _grown(xp, 0, x, _of_integer(xp, 0, x))


@elementwise
def i0e(xp: Any, x: Any) -> Any:
    """exp(-|x|) i0(x)."""
    return _of_integer(xp, 0, x)


@elementwise
def i1(xp: Any, x: Any) -> Any:
    """The modified Bessel function of order 1."""
    return _grown(xp, 1, x, _of_integer(xp, 1, x))


@elementwise
def i1e(xp: Any, x: Any) -> Any:
    """exp(-|x|) i1(x)."""
    return _of_integer(xp, 1, x)


def _grown(xp: Any, v: int, z: Any, value: Any) -> Any:
    grown = xp.exp(0.5 * xp.abs(z))  # in two halves, so that it does not overflow before the result
    return xp.where(xp.isinf(z), z ** (2 - v), value * grown * grown)


def _of_integer(xp: Any, v: int, z: Any) -> Any:
    """exp(-|z|) I_v(z) for v = 0 or 1, by the power series or the asymptotic series.

    Abramowitz and Stegun, 9.6.10 and 9.7.1.
    """
    x = xp.abs(z)
    near, far = xp.where(x < 20, x, 0.0), xp.where(x < 20, 20.0, x)
    terms = horner(
        [1 / (math.factorial(k) * math.factorial(k + v)) for k in range(58)], near * near / 4
    )
    tail = 1.0
    for k in range(30, 0, -1):
        tail = 1 - tail * (4 * v * v - (2 * k - 1) ** 2) / (8 * k) / far
    value = xp.where(
        x < 20, terms * (near / 2) ** v * xp.exp(-near), tail / xp.sqrt(2 * math.pi * far)
    )
    return xp.where(z < 0, -value, value) if v else value


@elementwise
def iv(xp: Any, v: Any, z: Any) -> Any:
    """The modified Bessel function of order v."""
    value = _scaled_i(xp, v, z)
    grown = xp.exp(0.5 * xp.abs(z))
    odd = _parity(xp, v) < 0
    infinite = xp.where((z < 0) & odd, -math.inf + 0 * value, math.inf + 0 * value)
    return xp.where(xp.isinf(z), infinite, value * grown * grown)


@elementwise
def ive(xp: Any, v: Any, z: Any) -> Any:
    """exp(-|z|) iv(v, z)."""
    return _scaled_i(xp, v, z)


def _scaled_i(xp: Any, v: Any, z: Any) -> Any:
    v, z = xp.broadcast_arrays(v, z)
    order, x = xp.abs(v), xp.abs(z)
    near = (x < 10) & (order < LOW)
    within = _usable(xp, order, x)
    low = xp.where(near, x, 1.0)
    value = xp.where(
        near,
        series.first(xp, xp.where(near, order, 1.0), low, 1.0, 36) * xp.exp(-low),
        paths.scaled_i(xp, *_kept(xp, within & ~near, order, x, 1.0, 12.0)),
    )
    value = xp.where(x == 0, xp.where(order == 0, 1.0 + 0 * value, 0 * value), value)
    value = xp.where(xp.isinf(x), 0 * order, value)
    _, sine = _turned(xp, order)
    other = 2 / math.pi * sine * _scaled_k(xp, order, x) * xp.exp(-2 * x)
    value = xp.where((v < 0) & (sine != 0), value + other, value)
    return xp.where(xp.isnan(v + z), v + z, xp.where(z < 0, _parity(xp, v) * value, value))


# ----- of the second kind, modified -----


@elementwise
def kv(xp: Any, v: Any, z: Any) -> Any:
    """The modified Bessel function of the second kind, of order v."""
    v, x = xp.broadcast_arrays(xp.abs(v), z)
    shrunk = xp.exp(-x / 2)
    return _scaled_k(xp, v, x, shrunk)


@elementwise
def kve(xp: Any, v: Any, z: Any) -> Any:
    """exp(z) kv(v, z)."""
    return _scaled_k(xp, *xp.broadcast_arrays(xp.abs(v), z))


def _scaled_k(xp: Any, v: Any, x: Any, factor: Any = None) -> Any:
    """exp(x) K_v(x), or with a factor, which is exp(-x / 2), K_v(x)."""
    near = (x < 2) & (v < LOW)
    low = xp.where(near & (x > 0), x, 1.0)
    small = series.second(xp, xp.where(near, v, 1.0), low, 1.0)
    large = paths.scaled_k(xp, *_kept(xp, _usable(xp, v, x) & ~near, v, x, 1.0, 3.0))
    value = (
        xp.where(near, small * xp.exp(low), large)
        if factor is None
        else xp.where(near, small, large * factor * factor)
    )
    value = xp.where(x == 0, math.inf + 0 * v, xp.where(xp.isinf(x), 0 * v, value))
    return xp.where(xp.isnan(v + x), v + x, xp.where(x < 0, math.nan + 0 * v, value))


@elementwise
def k0(xp: Any, x: Any) -> Any:
    """The modified Bessel function of the second kind, of order 0."""
    return kv(xp, xp.zeros_like(x), x)


@elementwise
def k0e(xp: Any, x: Any) -> Any:
    """exp(x) k0(x)."""
    return kve(xp, xp.zeros_like(x), x)


@elementwise
def k1(xp: Any, x: Any) -> Any:
    """The modified Bessel function of the second kind, of order 1."""
    return kv(xp, xp.ones_like(x), x)


@elementwise
def k1e(xp: Any, x: Any) -> Any:
    """exp(x) k1(x)."""
    return kve(xp, xp.ones_like(x), x)


# ----- of the first and of the second kind -----


@elementwise
def jv(xp: Any, v: Any, z: Any) -> Any:
    """The Bessel function of order v."""
    v, z = xp.broadcast_arrays(v, z)
    order, x = xp.abs(v), xp.abs(z)
    j, y = _both(xp, order, x)
    cosine, sine = _turned(xp, order)
    turned = cosine * j - xp.where(sine == 0, 0 * v, sine * xp.where(sine == 0, 0 * v, y))
    value = xp.where(v < 0, turned, j)
    return xp.where(xp.isnan(v + z), v + z, xp.where(z < 0, _parity(xp, v) * value, value))


@elementwise
def yv(xp: Any, v: Any, z: Any) -> Any:
    """The Bessel function of the second kind, of order v."""
    v, x = xp.broadcast_arrays(v, z)
    j, y = _both(xp, xp.abs(v), xp.abs(x))
    cosine, sine = _turned(xp, xp.abs(v))
    value = xp.where(
        v < 0, sine * j + xp.where(cosine == 0, 0 * v, cosine * xp.where(cosine == 0, 0 * v, y)), y
    )
    return xp.where(xp.isnan(v + x), v + x, xp.where(x < 0, math.nan + 0 * v, value))


@elementwise
def yn(xp: Any, n: Any, x: Any) -> Any:
    """The Bessel function of the second kind, of an integer order n."""
    n, x = xp.broadcast_arrays(xp.trunc(n), x)
    return xp.where(n < 0, _parity(xp, n), xp.ones_like(x)) * _of_order(xp, "Y", xp.abs(n), x)


@elementwise
def j0(xp: Any, x: Any) -> Any:
    """The Bessel function of order 0."""
    return _of_order(xp, "J", xp.zeros_like(x), x)


@elementwise
def j1(xp: Any, x: Any) -> Any:
    """The Bessel function of order 1."""
    return xp.where(x < 0, -1.0, xp.ones_like(x)) * _of_order(xp, "J", xp.ones_like(x), x)


@elementwise
def y0(xp: Any, x: Any) -> Any:
    """The Bessel function of the second kind, of order 0."""
    return _of_order(xp, "Y", xp.zeros_like(x), x)


@elementwise
def y1(xp: Any, x: Any) -> Any:
    """The Bessel function of the second kind, of order 1."""
    return _of_order(xp, "Y", xp.ones_like(x), x)


def _of_order(xp: Any, kind: str, v: Any, x: Any) -> Any:
    """One of J_v(|x|) and Y_v(x), for v >= 0."""
    value = _both(xp, v, xp.abs(x), kind)["JY".index(kind)]
    value = xp.where(xp.isnan(v + x), v + x, value)
    return value if kind == "J" else xp.where(x < 0, math.nan + 0 * v, value)


def _both(xp: Any, v: Any, x: Any, kinds: str = "JY") -> tuple[Any, Any]:
    """J_v(x) and Y_v(x) for v >= 0 and x >= 0; `kinds` names those that are needed."""
    near = (x < 2) & (v < LOW)
    far = (x > 25) & (x > v * v / 2)
    within = _usable(xp, v, x) & ~near & ~far
    order, low = xp.where(near, v, 1.0), xp.where(near & (x > 0), x, 1.0)
    j, y = paths.hankel(xp, *_kept(xp, within, v, x, 1.0, 3.0))
    j_far, y_far = series.asymptotic(
        xp, xp.where(far, v, 1.0), xp.where(far & ~xp.isinf(x), x, 30.0)
    )
    nowhere = math.nan + 0 * v  # at infinity, as SciPy says it
    if "J" in kinds:
        j = xp.where(v > x, paths.small_j(xp, *_kept(xp, within & (v > x), v, x, 5.0, 3.0)), j)
        j = xp.where(near, series.first(xp, order, low, -1.0), xp.where(far, j_far, j))
        j = xp.where(
            x == 0, xp.where(v == 0, 1.0 + 0 * v, 0 * v), xp.where(xp.isinf(x), nowhere, j)
        )
    if "Y" in kinds:
        y = xp.where(near, series.second(xp, order, low, -1.0), xp.where(far, y_far, y))
        y = xp.where(x == 0, -math.inf + 0 * v, xp.where(xp.isinf(x), nowhere, y))
    return j, y


# ----- what they share -----


def _usable(xp: Any, v: Any, x: Any) -> Any:
    return (x > 0) & xp.isfinite(x) & xp.isfinite(v)


def _kept(xp: Any, where: Any, v: Any, x: Any, order: float, argument: float) -> tuple[Any, Any]:
    """Orders and arguments where they are wanted, and these two numbers elsewhere.

    Arguments at which results overflow are replaced by larger ones.
    """
    least = float(xp.finfo(x.dtype).smallest_normal) ** 0.3
    x = xp.where(where, x, argument)
    return xp.where(where, v, order), xp.where(x < least, least, x)


def _turned(xp: Any, v: Any) -> tuple[Any, Any]:
    """The cosine and the sine of pi v, exact at integers and halves between them."""
    rest = v - 2 * xp.round(v / 2)  # from -1 to 1
    half = xp.abs(rest) > 0.5
    inner = xp.where(half, xp.where(rest > 0, 1 - rest, -1 - rest), rest)
    cosine = xp.where(xp.abs(inner) == 0.5, 0 * v, xp.cos(math.pi * inner))
    return xp.where(half, -cosine, cosine), xp.sin(math.pi * inner)


def _parity(xp: Any, v: Any) -> Any:
    """The sign of a function of negative order v: that of the parity of an integer v, else nan."""
    whole = xp.floor(v) == v
    return xp.where(whole, 1 - 2 * xp.abs(v - 2 * xp.floor(v / 2)), math.nan + 0 * v)
