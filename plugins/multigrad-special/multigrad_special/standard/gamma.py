"""The special functions in terms of the Array API standard, for every backend that has none of its own.

They use operators, a handful of elementwise functions and a fixed number of steps, so they run on any device, under
tracing and on lazy arrays; that is why nothing here goes through NumPy. In float64 they are within 1e-14 of the true
value (of the larger of it and 1 for digamma and gammaln, which pass through 0), in float32 within 1e-5, which is no
less exact than SciPy. Each function is a forward of multigrad: `f(xp, *arguments)`, `xp` being a raw namespace.
"""

from __future__ import annotations

import math
from functools import lru_cache
from numbers import Integral
from typing import Any

EULER = 0.5772156649015329
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
"""The Bernoulli numbers B2, B4, ..., B20."""

MAX_ORDER = 100  # of polygamma: not far above, float64 no longer holds the factorials


def erf(xp: Any, x: Any) -> Any:
    """The error function: a series of positive terms near 0, elsewhere 1 - erfc."""
    _check(xp, "erf", x)
    return xp.where(xp.abs(x) < 1, _erf_near(xp, x), xp.sign(x) * (1 - _erfc_far(xp, x)))


def erfc(xp: Any, x: Any) -> Any:
    """The complementary error function, accurate in its tail up to the smallest numbers there are."""
    _check(xp, "erfc", x)
    tail = _erfc_far(xp, x)
    return xp.where(xp.abs(x) < 1, 1 - _erf_near(xp, x), xp.where(x < 0, 2 - tail, tail))


def gammaln(xp: Any, x: Any) -> Any:
    """log |gamma(x)|: a series about its zeros 1 and 2, Stirling's formula above them, reflection below 1/2."""
    _check(xp, "gammaln", x)
    reflected = math.log(math.pi) - xp.log(xp.abs(xp.sin(math.pi * _remainder(xp, x, 0.5))))
    y = xp.where(x < 0.5, 1 - x, x)
    value = xp.where(y < 3, _gammaln_near(xp, y), _gammaln_far(xp, y))
    return xp.where(x == -math.inf, math.inf, xp.where(x < 0.5, reflected - value, value))


def digamma(xp: Any, x: Any) -> Any:
    """The logarithmic derivative of gamma: shifted by recurrence, then an asymptotic series; nan at negative integers.

    Abramowitz and Stegun, 6.3.5, 6.3.7 and 6.3.18.
    """
    _check(xp, "digamma", x)
    y = xp.where(x < 0, 1 - x, x)
    shift = sum(1 / (y + k) for k in range(1, 10)) + 1 / y  # not y + 0: it would lose the sign of -0.0
    a = y + 10
    square = 1 / (a * a)
    series = _horner([-b / (2 * j) for j, b in enumerate(BERNOULLI[:8], 1)], square) * square
    value = xp.log(a) - 0.5 / a + series - shift
    r = _remainder(xp, x, 0.0)
    return xp.where(x < 0, xp.where(r == 0, math.nan, value - math.pi * _cotangent(xp, r)), value)


def polygamma(xp: Any, n: int, x: Any) -> Any:
    """The n-th derivative of digamma: Hurwitz' zeta function, below 0 by the n-th derivative of the reflection formula.

    Abramowitz and Stegun, 6.4.7 and 6.4.10.
    """
    _check(xp, "polygamma", x)
    n = order(n)
    if n == 0:
        return digamma(xp, x)
    value = hurwitz(n + 1, xp.where(x < 0, 1 - x, xp.abs(x)), math.factorial(n) ** (1 / (n + 1)))
    other = math.pi ** (n + 1) * _cotangent_derivative(n, _cotangent(xp, _remainder(xp, x, 0.0)))
    return xp.where(x < 0, other - value, value) if n % 2 else -xp.where(x < 0, other + value, value)


def expit(xp: Any, x: Any) -> Any:
    """The logistic function, without overflow on either side."""
    _check(xp, "expit", x)
    e = xp.exp(-xp.abs(x))
    return xp.where(x < 0, e, 1.0) / (1 + e)


def order(n: Any) -> int:
    """The order of a polygamma function, checked."""
    if isinstance(n, bool) or not isinstance(n, Integral):
        raise TypeError(f"special.polygamma: n must be a Python int, not {type(n).__name__}; there is no derivative by the order.")
    found = int(n)
    if not 0 <= found <= MAX_ORDER:
        raise ValueError(f"special.polygamma: n must be from 0 to {MAX_ORDER}, not {n}.")
    return found


def hurwitz(s: int, x: Any, scale: float = 1.0) -> Any:
    """`scale**s` times the sum of (x + k)**-s over k = 0, 1, ...: of an array, or of a Python number, x >= 0.

    Euler-Maclaurin summation; the more terms are summed as such the larger s, without which the rest would not converge.
    Scaled in this way, neither a factorial overflows nor a power underflows where their product does not.
    """
    steps = 10 + s
    a = x + steps
    factors = [s / 2 * BERNOULLI[0]]
    rising = s / 2
    for j, b in enumerate(BERNOULLI[1:], 2):
        rising *= (s + 2 * j - 3) * (s + 2 * j - 2) / ((2 * j - 1) * (2 * j))
        factors.append(rising * b)
    total = (a / scale) ** -s * (0.5 + _horner(factors, 1 / (a * a)) / a) + scale * (a / scale) ** (1 - s) / (s - 1)
    for k in reversed(range(steps)):
        total = total + ((x + k) / scale) ** -s
    return total


def refuse(name: str, backend: str, dtype: Any) -> TypeError:
    """The error for an array of a dtype that the function has no values for."""
    return TypeError(f"special.{name} on the backend {backend!r} takes real floating-point arrays, not {dtype}.")


def _check(xp: Any, name: str, x: Any) -> None:
    if not xp.isdtype(x.dtype, "real floating"):
        raise refuse(name, xp.__name__.rpartition(".")[2], x.dtype)


def _remainder(xp: Any, x: Any, below: float) -> Any:
    """x up to an integer, at most 1/2, for the reflection of what is `below`; some harmless value for the others."""
    return xp.where(x < below, x - xp.round(x), 0.25)


def _cotangent(xp: Any, r: Any) -> Any:
    """cot(pi r) for |r| <= 1/2, to its last digits also about 1/2, where it is 0 and its factor may be huge."""
    d = xp.abs(r)
    value = xp.where(d > 0.25, xp.tan(math.pi * (0.5 - d)), 1 / xp.tan(math.pi * d))
    return xp.where(r < 0, -value, value)


def _erf_near(xp: Any, x: Any) -> Any:
    """erf for |x| < 1: 2 x exp(-x**2) / sqrt(pi) * (1 + 2x**2/3 + (2x**2)**2/(3*5) + ...)."""
    x = xp.clip(x, -1.0, 1.0)
    coefficients = [1.0]
    for k in range(1, 21):
        coefficients.append(coefficients[-1] * 2 / (2 * k + 1))
    square = x * x
    return 2 / math.sqrt(math.pi) * x * xp.exp(-square) * _horner(coefficients, square)


def _erfc_far(xp: Any, x: Any) -> Any:
    """erfc(|x|) for |x| >= 1: the trapezoidal rule in steps of 1/2, with the residue of its pole.

    C. Chiarella and A. Reichel, On the evaluation of integrals related to the error function, Math. Comp. 22 (1968).
    """
    x = xp.clip(xp.abs(x), 1.0, 28.0)  # at 28 it is 0 in float64
    square = x * x
    total = 1 / square
    for k in range(1, 14):
        total = total + 2 * math.exp(-k * k / 4) / (square + k * k / 4)
    # exp(-x**2) from a part of x whose square is exact: rounding the square of 20 would cost 200 units in the last place.
    h = xp.floor(x * 64) / 64
    total = total * x / (2 * math.pi) * xp.exp(-h * h) * xp.exp(-(x - h) * (x + h))
    pole = 2 / xp.expm1(4 * math.pi * xp.clip(x, 1.0, 7.0))
    return xp.where(x < 2 * math.pi, total - pole, total)


def _gammaln_near(xp: Any, x: Any) -> Any:
    """log gamma for 1/2 <= x <= 3, as accurate near its zeros 1 and 2 as elsewhere.

    About 2, d (1 - Euler's constant) + sum of (zeta(k) - 1) (-d)**k / k: Abramowitz and Stegun, 6.1.33.
    """
    d = xp.clip(xp.where(x < 1.5, x - 1, x - 2), -0.5, 1.0)
    value = d * _horner(_gammaln_coefficients(), d)
    return xp.where(x < 1.5, value - xp.log1p(d), value)


@lru_cache
def _gammaln_coefficients() -> list[float]:
    return [1 - EULER, *((-1) ** k * hurwitz(k, 2.0) / k for k in range(2, 56))]


def _gammaln_far(xp: Any, x: Any) -> Any:
    """log gamma for x >= 3: Stirling's formula from 10 on, below by recurrence. Abramowitz and Stegun, 6.1.40."""
    small = x < 10
    product = xp.where(small, x, 1.0)
    for k in range(1, 7):
        product = product * xp.where(small, x + k, 1.0)
    a = xp.where(small, x + 7, x)
    series = _horner([b / (2 * j * (2 * j - 1)) for j, b in enumerate(BERNOULLI[:8], 1)], 1 / (a * a)) / a
    return (a - 0.5) * (xp.log(a) - 1) + (math.log(2 * math.pi) - 1) / 2 + series - xp.log(product)


def _cotangent_derivative(n: int, c: Any) -> Any:
    """(-1)**n times the n-th derivative of cot where cot is c: a polynomial in c, since cot' = -(1 + cot**2)."""
    polynomial = [0, 1]
    for _ in range(n):
        slope = [k * p for k, p in enumerate(polynomial)][1:]
        polynomial = [p + q for p, q in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    # Every other coefficient is 0 and the rest are positive: in powers of c**2 nothing cancels.
    even = _horner([float(p) for p in polynomial[(n + 1) % 2 :: 2]], c * c)
    return even if n % 2 else even * c


def _horner(coefficients: list[float], x: Any) -> Any:
    """The polynomial with these coefficients, the constant one first."""
    value = coefficients[-1] * x + coefficients[-2]
    for c in reversed(coefficients[:-2]):
        value = value * x + c
    return value
