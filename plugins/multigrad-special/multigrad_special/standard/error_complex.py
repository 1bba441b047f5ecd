"""The error functions of complex arrays, by Faddeeva's function w(z) = exp(-z**2) erfc(-i z).

In the first quadrant w is computed by the trapezoidal or the midpoint rule, plus the residue of the
pole wherever it is not small. The result is accurate to the last digits (M. Al Azah and S. N.
Chandler-Wilde, Computation of the complex error function using modified trapezoidal rules, SIAM J.
Numer. Anal. 59, 2021). The other quadrants follow by symmetry (DLMF 7.4).
"""

from __future__ import annotations

import math
from typing import Any

from .common import horner

__all__: list[str] = []

NODES = 12
STEP = math.sqrt(math.pi / NODES)
ROOT_2 = math.sqrt(2)
SLOPE = 2 / math.sqrt(math.pi)


def erf(xp: Any, z: Any) -> Any:
    """Near 0 by the power series, elsewhere 1 - erfc."""
    near = xp.abs(z) < 1
    w = xp.where(near, z, xp.zeros_like(z))
    series = w * horner(
        [SLOPE * (-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(20)], w * w
    )
    right = xp.real(z) >= 0
    far = 1 - _erfc_right(xp, xp.where(right, z, -z))
    return xp.where(near, series, xp.where(right, far, -far))


def erfc(xp: Any, z: Any) -> Any:
    """1 - erf."""
    right = xp.real(z) >= 0
    value = _erfc_right(xp, xp.where(right, z, -z))
    return xp.where(right, value, 2 - value)


def erfcx(xp: Any, z: Any) -> Any:
    """exp(z**2) erfc(z)."""
    right = xp.real(z) >= 0
    value = _scaled_right(xp, xp.where(right, z, -z))
    return xp.where(right, value, 2 * _exp_square(xp, z, 1) - value)


def ndtr(xp: Any, z: Any) -> Any:
    """erfc(-z / sqrt(2)) / 2."""
    return 0.5 * erfc(xp, -z / ROOT_2)


def log_ndtr(xp: Any, z: Any) -> Any:
    """The principal logarithm of ndtr.

    Right of 1 it uses log1p, elsewhere erfcx, which neither overflows nor underflows.
    """
    right = xp.real(z) > 1
    tail = 0.5 * erfc(xp, xp.where(right, z, xp.ones_like(z)) / ROOT_2)
    low = xp.where(right, -xp.ones_like(z), z)
    x, y = xp.real(low), xp.imag(low)
    scaled = xp.log(0.5 * erfcx(xp, -low / ROOT_2))
    turn = xp.imag(scaled) - x * y
    turn = turn - 2 * math.pi * xp.round(turn / (2 * math.pi))
    left = (xp.real(scaled) - 0.5 * (x - y) * (x + y)) + 1j * turn
    re, im = -xp.real(tail), -xp.imag(tail)
    near = 0.5 * xp.log1p(re * (2 + re) + im * im) + 1j * xp.atan2(im, 1 + re)
    return xp.where(right, near, left)


def _erfc_right(xp: Any, z: Any) -> Any:
    """erfc where the real part is not negative."""
    return _exp_square(xp, z, -1) * _scaled_right(xp, z)


def _scaled_right(xp: Any, z: Any) -> Any:
    """erfcx where the real part is not negative: w(i z).

    For an imaginary part below 0 this lies in the first quadrant; otherwise it is mirrored.
    """
    x, y = xp.real(z), xp.imag(z)
    value = _faddeeva(xp, xp.abs(y), xp.abs(x))
    return xp.where(y > 0, xp.conj(value), value)


def _exp_square(xp: Any, z: Any, sign: int) -> Any:
    """exp(sign z**2), the real part of the square as a product."""
    x, y = xp.real(z), xp.imag(z)
    size, turn = xp.exp(sign * (x - y) * (x + y)), 2 * x * y
    flat = turn == 0  # on the axes, where the size may be infinite
    return size * xp.where(flat, xp.ones_like(turn), xp.cos(turn)) + 1j * xp.where(
        flat, sign * turn, size * sign * xp.sin(turn)
    )


def _faddeeva(xp: Any, x: Any, y: Any) -> Any:
    """w(x + i y) for x, y >= 0."""
    huge = xp.hypot(x, y) > 1e8 if xp.finfo(x.dtype).bits > 32 else xp.hypot(x, y) > 1e4
    z = xp.where(huge, xp.ones_like(x), x) + 1j * xp.where(huge, xp.ones_like(y), y)
    position = xp.real(z) / STEP
    place = position - xp.floor(position)
    beside = (place < 0.25) | (place > 0.75)  # far from the midpoints
    high = xp.imag(z) >= xp.where(xp.real(z) > math.pi / STEP, xp.real(z), math.pi / STEP)
    by_middle = beside | high
    square = z * z
    half = xp.where(by_middle, 0.5 * xp.ones_like(x), 0.0)
    total = xp.zeros_like(z)
    for k in reversed(range(NODES)):
        node = (k + half) * STEP
        term = xp.exp(-node * node) / (square - xp.where(by_middle | (k > 0), node * node, -1.0))
        total = total + (
            term
            if k
            else xp.where(
                by_middle, term, 0.5 / xp.where(square == 0, xp.ones_like(square), square)
            )
        )
    series = 2j * STEP / math.pi * z * total
    # The residue: 2 exp(-z**2) / (1 +- exp(-2 pi i z / step)), by the reciprocal, which does not
    # overflow far from the axis.
    near = xp.where(high, 0.0, xp.imag(z))
    turn = 2 * math.pi * place
    factor = xp.exp(-2 * math.pi / STEP * near) * (xp.cos(turn) + 1j * xp.sin(turn))
    factor = xp.where(by_middle, factor, -factor)
    residue = 2 * _exp_square(xp, z, -1) * factor / (1 + factor)
    value = xp.where(high, series, series + residue)
    inverse = 1 / xp.where(huge, x + 1j * y, xp.ones_like(z))
    return xp.where(huge, 1j / math.sqrt(math.pi) * inverse, value)
