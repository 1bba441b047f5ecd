"""The gamma functions of complex arrays, by the logarithm of gamma.

All use one branch of it, cut along the negative real axis. To the right of 1/2 it uses recurrence
and Stirling's formula (DLMF 5.11.1), about the zeros 1 and 2 series, and to the left reflection
(DLMF 5.5.3).
"""

from __future__ import annotations

import math
from typing import Any

from .common import horner
from .gamma_series import BERNOULLI, cotangent_factor, gammaln_coefficients, hurwitz

__all__: list[str] = []

STEPS = 10


def loggamma(xp: Any, z: Any) -> Any:
    """The logarithm of gamma that is analytic but for the cut; nan at the poles."""
    re, im = xp.real(z), xp.abs(xp.imag(z))
    left = re < 0.5
    right = _loggamma_right(xp, xp.where(left, 1 - re, re), im)
    # Above the axis 1 - z lies below it.
    u, v = -2 * math.pi * im, 2 * math.pi * (re - xp.round(re))
    half = xp.sin(0.5 * v)
    rest = _log(xp, 2 * half * half - xp.expm1(u) * xp.cos(v), -xp.exp(u) * xp.sin(v))
    reflected_re = math.log(2 * math.pi) - math.pi * im - xp.real(rest) - xp.real(right)
    reflected_im = math.pi * (re - 0.5) - xp.imag(rest) + xp.imag(right)
    pole = (im == 0) & (re <= 0) & (re == xp.floor(re))
    value_re = xp.where(pole, math.nan, xp.where(left, reflected_re, xp.real(right)))
    value_im = xp.where(left, reflected_im, xp.imag(right))
    value_im = xp.where(pole, math.nan, xp.copysign(xp.ones_like(im), xp.imag(z)) * value_im)
    return value_re + 1j * value_im


def gamma(xp: Any, z: Any) -> Any:
    """The exponential of loggamma."""
    return xp.exp(loggamma(xp, z))


def rgamma(xp: Any, z: Any) -> Any:
    """1 / gamma, which is 0 at the poles."""
    pole = _is_pole(xp, z)
    return xp.where(
        pole, xp.zeros_like(z), xp.exp(-loggamma(xp, xp.where(pole, xp.ones_like(z), z)))
    )


def digamma(xp: Any, z: Any) -> Any:
    """The logarithmic derivative of gamma; nan at the poles. DLMF 5.5.2, 5.5.4, 5.11.2."""
    left = xp.real(z) < 0.5
    y = xp.where(left, 1 - z, z)
    shift = sum(1 / (y + k) for k in reversed(range(STEPS)))
    inverse = 1 / (y + STEPS)
    square = inverse * inverse
    series = horner([-b / (2 * j) for j, b in enumerate(BERNOULLI[:8], 1)], square) * square
    value = xp.log(y + STEPS) - 0.5 * inverse + series - shift
    r = _remainder(xp, z, left)
    value = xp.where(left, value - math.pi / xp.tan(math.pi * r), value)
    pole = _is_pole(xp, z)
    return xp.where(pole, math.nan * (1 + 1j) * xp.ones_like(z), value)


def polygamma(xp: Any, n: int, z: Any) -> Any:
    """The derivative of order n of digamma, n > 0. DLMF 5.15.1 and 5.15.6.

    It consists of Hurwitz' zeta function and the derivative of the cotangent. That derivative is a
    multiple of 1 / sin**2, which is negligible far from the axis, where a polynomial in the
    cotangent would cancel.
    """
    left = xp.real(z) < 0.5
    value = hurwitz(n + 1, xp.where(left, 1 - z, z), math.factorial(n) ** (1 / (n + 1)))
    r = _remainder(xp, z, left)
    sine, cosine = xp.sin(math.pi * r), xp.cos(math.pi * r)
    other = math.pi ** (n + 1) * cotangent_factor(n, cosine / sine) / (sine * sine)
    return xp.where(left, other - value, value) if n % 2 else -xp.where(left, other + value, value)


def _is_pole(xp: Any, z: Any) -> Any:
    return (xp.imag(z) == 0) & (xp.real(z) <= 0) & (xp.real(z) == xp.floor(xp.real(z)))


def _remainder(xp: Any, z: Any, left: Any) -> Any:
    """z minus the nearest integer, close enough to the axis that its sine does not overflow.

    Elements that are not to the left get a harmless value.
    """
    reach = 100.0 if xp.finfo(z.dtype).bits > 32 else 12.0
    re, im = xp.real(z), xp.clip(xp.imag(z), -reach, reach)
    return xp.where(left & ~_is_pole(xp, z), (re - xp.round(re)) + 1j * im, 0.25 * xp.ones_like(z))


def _log(xp: Any, re: Any, im: Any) -> Any:
    """The logarithm of re + i im."""
    return xp.log(xp.hypot(re, im)) + 1j * xp.atan2(im, re)


def _loggamma_right(xp: Any, re: Any, im: Any) -> Any:
    """For re >= 1/2 and im >= 0."""
    return xp.where(_is_near(xp, re, im), _loggamma_near(xp, re, im), _loggamma_far(xp, re, im))


def _is_near(xp: Any, re: Any, im: Any) -> Any:
    return xp.hypot(xp.where(re < 1.5, re - 1, re - 2), im) < 0.8


def _loggamma_near(xp: Any, re: Any, im: Any) -> Any:
    """About 1 and 2: the series about 2, at 1 + d less log1p(d). DLMF 5.7.3."""
    near, first = _is_near(xp, re, im), re < 1.5
    x = xp.where(near, xp.where(first, re - 1, re - 2), 0.0)
    y = xp.where(near, im, 0.0)
    d = x + 1j * y
    value = d * horner(gammaln_coefficients(), d)
    x, y = xp.where(first, x, 0.0), xp.where(first, y, 0.0)
    return value - (0.5 * xp.log1p(x * (2 + x) + y * y) + 1j * xp.atan2(y, 1 + x))


def _loggamma_far(xp: Any, re: Any, im: Any) -> Any:
    """The logarithms of two factors at a time: the sum of their arguments is at most pi."""
    z = re + 1j * im
    small = xp.hypot(re, im) < STEPS
    a = xp.where(small, z + STEPS, z)
    inverse = 1 / a
    rest = (
        horner(
            [b / (2 * j * (2 * j - 1)) for j, b in enumerate(BERNOULLI[:8], 1)], inverse * inverse
        )
        * inverse
    )
    low = xp.where(small, z, xp.ones_like(z))
    factors = sum(xp.log((low + k) * (low + k + 1)) for k in range(0, STEPS, 2))
    return (
        (a - 0.5) * (xp.log(a) - 1)
        + (math.log(2 * math.pi) - 1) / 2
        + rest
        - xp.where(small, factors, xp.zeros_like(z))
    )
