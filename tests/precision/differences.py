"""Derivatives by differences, in as many digits as it takes: of any function of mpmath numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp

DIGITS = (60, 160, 560, 2000)
AGREEMENT = mp.mpf(10) ** -30
LEAST = mp.mpf(10) ** -340  # no float64 holds so small a derivative

Function = Callable[[Any], Any]


class Diverged(ArithmeticError):
    """Two step lengths give two derivatives, in however many digits."""


def slope(f: Function, scale: Any = 1, least: Any = LEAST) -> Any:
    """The derivative of f(t) at t = 0, of a number or an object array of numbers; f varies over
    lengths of `scale`, or less.

    One that is smaller than `least` may count as 0.
    """
    return _converged(f, lambda h: h, ((1, 1), (-1, -1)), scale, 3, least)


def mixed(f: Callable[[Any, Any], Any], scale: Any = 1, least: Any = AGREEMENT) -> Any:
    """The second derivative of f(s, t) at (0, 0), by s and by t."""
    return _converged(
        f, lambda h: 2 * h * h, ((1, 1, 1), (-1, 1, -1), (-1, -1, 1), (1, -1, -1)), scale, 4, least
    )


def _converged(
    f: Callable[..., Any],
    divisor: Function,
    stencil: tuple[Any, ...],
    scale: Any,
    share: int,
    least: Any,
) -> Any:
    """The difference in the fewest digits that suffice: with a step 1000 times as small it must
    come out the same.

    What comes out as 0 may be something that rounding hides; so may the part of a complex number
    that does, whatever the other part.
    """
    for digits in DIGITS:
        with mp.workdps(digits):
            h = scale * mp.mpf(10) ** -(digits // share)
            (coarse, _), (fine, hidden) = (
                _difference(f, divisor(k), stencil, k) for k in (h, h / 1000)
            )
            size = magnitude(fine)
            if max(size, magnitude(coarse), hidden) <= least:
                return 0 * fine
            blank = isinstance(fine, mp.mpc) and 0 in (fine.real, fine.imag) and digits < DIGITS[-1]
            if size and magnitude(fine - coarse) <= AGREEMENT * size and not blank:
                return fine
    raise Diverged(
        f"in {DIGITS[-1]} digits, steps of {mp.nstr(h, 3)} and a thousandth of that give "
        f"{mp.nstr(coarse, 3)} and {mp.nstr(fine, 3)}"
    )


def _difference(
    f: Callable[..., Any], divisor: Any, stencil: tuple[Any, ...], h: Any
) -> tuple[Any, Any]:
    """The sum of f at the points of the stencil, each by its weight, over the divisor, 0 where that
    is rounding; and what rounding may hide.
    """
    values = [f(*(h * p for p in place)) for _, *place in stencil]
    total = sum(
        (weight * v for (weight, *_), v in zip(stencil, values, strict=True)), 0 * values[0]
    )
    size = max(map(magnitude, values))
    # what f adds up, and to 0 perhaps, may be larger than its value
    hidden = max(size, 1) * mp.eps * 1000 / (2 * divisor)
    return (total if magnitude(total) > size * mp.eps * 1000 else 0 * total) / (2 * divisor), hidden


def magnitude(x: Any) -> Any:
    """The largest modulus of a number, or of the numbers in an array."""
    return max((abs(v) for v in x.flat), default=mp.zero) if isinstance(x, np.ndarray) else abs(x)


def exact(x: Any) -> Any:
    """A float64 or complex128, or an array of them, in mpmath, without rounding."""
    if isinstance(x, np.ndarray):
        return _each(exact, x)
    return mp.mpc(complex(x)) if isinstance(x, complex) else mp.mpf(float(x))


def _each(f: Function, x: Any) -> Any:
    found = np.empty(x.shape, dtype=object)
    found.flat = [f(v) for v in x.flat]
    return found
