"""The gamma function, its logarithm and derivatives, and functions based on it.

These are the beta function, Pochhammer's symbol and the binomial coefficients.
"""

from __future__ import annotations

import math
from operator import index
from typing import Any

import multigrad as mg

from ..standard.forms import floats, order, refuse_complex
from ..standard.gamma_series import BERNOULLI
from .declare import declare


def digamma_step(xp: Any, a: Any, b: Any) -> Any:
    """digamma(a + b) - digamma(a), without cancellation.

    For positive a and a + b it is a sum of terms of one sign, since the two may be almost equal.
    They are shifted by recurrence, then the asymptotic series are subtracted (Abramowitz and
    Stegun, 6.3.6 and 6.3.18).
    """
    a, b = floats(xp, a, b)
    positive = (a > 0) & (a + b > 0)
    low, step = xp.where(positive, a, 1.0), xp.where(positive, b, 1.0)
    high = low + step
    total = sum(step / ((low + k) * (high + k)) for k in range(10))
    low = low + 10
    near = step > -0.5 * low
    growth = xp.where(near, xp.log1p(xp.where(near, step, 0.0) / low), xp.log((low + step) / low))
    total = total + growth + step / (2 * low * (low + step))
    power = square = 1 / (low * low)
    for j, number in enumerate(BERNOULLI[:7], 1):
        total = total - number / (2 * j) * power * xp.expm1(-2 * j * growth)
        power = power * square
    plain = xp.special.digamma(xp.where(positive, 1.0, a + b)) - xp.special.digamma(
        xp.where(positive, 1.0, a)
    )
    return xp.where(positive, total, plain)


def _is_complex(xp: Any, x: Any) -> bool:
    return bool(xp.isdtype(x.dtype, "complex floating"))


def _loggamma_slope(xp: Any, x: Any) -> Any:
    return xp.special.digamma(x if _is_complex(xp, x) else xp.where(x < 0, math.nan, x))


def rgamma_slope(xp: Any, x: Any, ans: Any) -> Any:
    """-digamma(x) / gamma(x), the derivative of rgamma.

    Near the poles it is the derivative of gamma(1 - x) sin(pi x) / pi, which has no pole there
    (DLMF 5.5.3).
    """
    if _is_complex(xp, x):
        nearest = xp.round(xp.real(x))
        close = (xp.abs(x - nearest) < 0.25) & (nearest <= 0)
    else:
        nearest, close = xp.round(x), (x < 0.5) & (x > -math.inf)
    low = xp.where(close, x, xp.zeros_like(x))
    nearest = xp.where(close, nearest, 0.0)
    turn = 1 - 2 * xp.abs(nearest - 2 * xp.round(0.5 * nearest))
    angle = math.pi * (low - nearest)
    slope = (
        xp.special.gamma(1 - low)
        * turn
        * (xp.cos(angle) - xp.special.digamma(1 - low) * xp.sin(angle) / math.pi)
    )
    far = xp.where(close, xp.ones_like(x), x)
    return xp.where(close, slope, -xp.special.digamma(far) * ans)


def _turns(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """x + y minus its nearest integer n, and the sign (-1)**n.

    It is exact even where the sum is rounded.
    """
    rest = (x - xp.round(x)) + (y - xp.round(y))
    parity = (
        (xp.round(x) - 2 * xp.round(0.5 * xp.round(x)))
        + (xp.round(y) - 2 * xp.round(0.5 * xp.round(y)))
        + xp.round(rest)
    )
    return rest - xp.round(rest), 1 - 2 * xp.abs(parity - 2 * xp.round(0.5 * parity))


def _sine(xp: Any, x: Any, y: Any = 0.0) -> Any:
    """sin(pi (x + y)), exactly 0 at integers."""
    rest, sign = _turns(xp, x, 0.0 * x + y)
    return sign * xp.sin(math.pi * rest)


def _cosine(xp: Any, x: Any, y: Any = 0.0) -> Any:
    rest, sign = _turns(xp, x, 0.0 * x + y)
    return sign * xp.cos(math.pi * rest)


def _poch_by_z(xp: Any, z: Any, m: Any, ans: Any) -> Any:
    """ans (digamma(z + m) - digamma(z)), the derivative of poch with respect to z.

    Where z <= 0 it uses the reflected form, in which neither factor is infinite where the product
    is finite. With both z and z + m at or below 0, poch = P sin(pi z) / sin(pi (z + m)) with P =
    poch(1 - z - m, m); the quotient depends on z only if m is not an integer.
    """
    z, m = floats(xp, z, m)
    top = z + m
    low, high = z <= 0, top <= 0
    both, up = low & high, low & ~high
    by_up = (
        xp.special.gamma(xp.where(up, top, 1.0))
        * xp.special.gamma(1 - xp.where(up, z, 0.0))
        * _cosine(xp, z)
    )
    by_up = by_up + ans * (
        xp.special.digamma(xp.where(up, top, 1.0)) - xp.special.digamma(1 - xp.where(up, z, 0.0))
    )
    a = xp.where(both, 1 - top, 1.0)
    step = xp.where(both, m, 0.0)
    sine = xp.where(both, _sine(xp, z, m), 1.0)
    # by m, where poch is a polynomial in z: a root has no derivative at 0
    jump = (sine == 0) & (m == xp.round(m))
    turn = xp.where(jump, 0 * xp.sqrt(xp.where(jump, 0 * m, 1.0)), _sine(xp, m))
    sine = xp.where(jump, 1.0, sine)
    by_both = -ans * digamma_step(xp, a, step) + xp.special.poch(a, step) * math.pi * turn / (
        sine * sine
    )
    plain = ans * digamma_step(xp, xp.where(low, 1.0, z), xp.where(low, 0.0, m))
    return xp.where(both, by_both, xp.where(up, by_up, plain))


def _poch_by_m(xp: Any, z: Any, m: Any, ans: Any) -> Any:
    """ans digamma(z + m), the derivative of poch with respect to m.

    Where z + m <= 0 it uses reflection (DLMF 5.5.4). It is nan at jumps, where z is a pole too.
    """
    z, m = floats(xp, z, m)
    top = z + m
    high = top <= 0
    sine = _sine(xp, z, m)
    jump = high & (sine == 0)
    reflected = xp.special.digamma(1 - xp.where(high, top, 0.0)) - math.pi * _cosine(
        xp, z, m
    ) / xp.where(high & ~jump, sine, 1.0)
    return xp.where(
        jump,
        math.nan,
        ans * xp.where(high, reflected, xp.special.digamma(xp.where(high, 1.0, top))),
    )


def _times_digamma(xp: Any, ans: Any, n: Any, u: Any) -> Any:
    """ans digamma(u), where u is one of the two factors in the denominator of binom.

    Below 1/2 it uses reflection, since ans is 0 where digamma has a pole.
    """
    low = u < 0.5
    v = 1 - xp.where(low, u, 0.0)
    reflected = ans * xp.special.digamma(v) - xp.special.beta(
        xp.where(low, n + 1, 1.0), v
    ) * _cosine(xp, u)
    return xp.where(low, reflected, ans * xp.special.digamma(xp.where(low, 1.0, u)))


def _binom_by_n(xp: Any, n: Any, k: Any, ans: Any) -> Any:
    """ans (digamma(n + 1) - digamma(n - k + 1)), the derivative of binom with respect to n.

    Where both arguments are at or below 0, it is the difference of their reflections (DLMF 5.5.4).
    """
    n, k = floats(xp, n, k)
    p, known = n - k + 1, ~((n < 0) & (n == xp.round(n)))
    inside = (p > 0) & (n > -1)
    sine = _sine(xp, n, -k)
    below = known & (p <= 0) & (n < -1) & (sine != 0)
    low, step = xp.where(below, -n, xp.where(inside, p, 1.0)), xp.where(inside | below, k, 0.0)
    near = ans * xp.where(below, -digamma_step(xp, low, step), digamma_step(xp, low, step))
    turned = ans * math.pi * _sine(xp, k) / xp.where(below, _sine(xp, n) * sine, 1.0)
    apart = xp.where(inside | below | ~known, 1.0, n)
    plain = ans * xp.special.digamma(apart + 1) - _times_digamma(
        xp, ans, apart, xp.where(inside | below, 1.0, p)
    )
    return xp.where(known, xp.where(inside, near, xp.where(below, near + turned, plain)), math.nan)


def _binom_by_k(xp: Any, n: Any, k: Any, ans: Any) -> Any:
    """ans (digamma(n - k + 1) - digamma(k + 1))."""
    n, k = floats(xp, n, k)
    p, q, known = n - k + 1, k + 1, ~((n < 0) & (n == xp.round(n)))
    inside = (p > 0) & (q > 0)
    step = ans * digamma_step(xp, xp.where(inside, q, 1.0), xp.where(inside, n - 2 * k, 0.0))
    apart = xp.where(inside | ~known, 1.0, n)
    plain = _times_digamma(xp, ans, apart, xp.where(inside, 1.0, p)) - _times_digamma(
        xp, ans, apart, xp.where(inside, 1.0, q)
    )
    return xp.where(known, xp.where(inside, step, plain), math.nan)


def _beta_slope(xp: Any, a: Any, b: Any, ans: Any) -> Any:
    """ans (digamma(a) - digamma(a + b)), the derivative of beta with respect to a.

    Where a or b is negative and the sum is below 1/2, digamma(a + b) is reflected: where it has a
    pole, ans is 0 (DLMF 5.5.3, 5.5.4).
    """
    a, b = floats(xp, a, b)
    low = (a + b < 0.5) & ((a <= 0) | (b <= 0))
    rest = xp.where(low, 1 - (a + b), 0.5)
    most, least = xp.where(low & (a < b), b, a), xp.where(low & (a < b), a, b)
    turn = _cosine(xp, a, b) / xp.where(low, _sine(xp, least), 1.0)
    turned = ans * (xp.special.digamma(xp.where(low, a, 0.5)) - xp.special.digamma(rest))
    turned = turned + math.pi * turn * xp.special.beta(xp.where(low, most, 1.0), rest)
    return xp.where(
        low, turned, -ans * digamma_step(xp, xp.where(low, 1.0, a), xp.where(low, 1.0, b))
    )


def _polygamma_slope(xp: Any, n: Any, n_scalar: Any, x: Any) -> Any:
    """The function of order n + 1, but nan for n = -1."""
    x = xp.where(n < 0, math.nan, x)
    return xp.special.polygamma((order(xp, n, x) if n_scalar is None else n_scalar) + 1, x)


def _multigammaln(xp: Any, a: Any, d: Any) -> Any:
    """d (d - 1) / 4 log(pi) and the sum of gammaln(a - j / 2) over j below d (DLMF 35.3.4)."""
    try:
        dimension = index(d)
    except TypeError:
        dimension = 0
    if dimension < 1:
        raise ValueError(
            f"special.multigammaln: d should be a positive integer (dimension), not {d!r}."
        )
    refuse_complex(xp, "multigammaln", a)
    if xp.isdtype(a.dtype, ("integral", "bool")):
        a = xp.astype(a, xp.asarray(0.0).dtype)
    a = a + xp.where(a > 0.5 * (dimension - 1), 0.0 * a, math.nan)  # the gradient is nan there too
    total = sum(
        (xp.special.gammaln(a - 0.5 * j) for j in range(1, dimension)), xp.special.gammaln(a)
    )
    return total + dimension * (dimension - 1) / 4 * math.log(math.pi)


def declarations() -> list[mg.registry.Op]:
    return [
        # Near their zeros, JAX's gammaln and digamma have 3 digits in float32. Its gamma has 4
        # digits for large values.
        declare(
            "gamma(x, /)",
            "The gamma function of each element.",
            x=lambda xp, x, ans: ans * xp.special.digamma(x),
        ),
        declare(
            "gammaln(x, /)",
            "The logarithm of the absolute value of the gamma function of each element.",
            x=lambda xp, x: xp.special.digamma(x),
        ),
        declare(
            "loggamma(x, /)",
            "The logarithm of the gamma function of each element. It is nan for negative real "
            "numbers; for complex numbers it is the branch that is cut there.",
            x=_loggamma_slope,
        ),
        declare("rgamma(x, /)", "1 / gamma(x), which has no poles.", x=rgamma_slope),
        declare(
            "gammasgn(x, /)",
            "The sign of gamma(x). At 0 it is the sign of the zero, and nan at the other poles.",
            x=0.0,
        ),
        declare(
            "digamma(x, /)",
            "The derivative of the logarithm of the gamma function at each element.",
            x=lambda xp, x: xp.special.polygamma(1, x),
        ),
        mg.registry.composite(
            "special.psi(x, /)",
            lambda xp, x: xp.special.digamma(x),
            chapter="special",
            doc="Another name of digamma, for SciPy, which looks it up.",
        ),
        # SciPy's polygamma converts float32 to float64. JAX's is wrong below 0, even in its sign.
        # cupyx's is like SciPy's.
        declare(
            "polygamma(n, x, /)",
            "The derivative of order n of digamma at each element; nan unless n is a nonnegative "
            "integer. n has no gradient; for a complex x it is one int, at most 100.",
            cupy=None,
            x=_polygamma_slope,
        ),
        mg.registry.composite(
            "special.multigammaln(a: array, /, d)",
            _multigammaln,
            chapter="special",
            doc="The logarithm of the multivariate gamma function of dimension d, an int; nan "
            "unless a > (d - 1) / 2, where SciPy raises.",
        ),
        declare(
            "beta(a, b, /)",
            "The beta function, gamma(a) gamma(b) / gamma(a + b).",
            a=lambda xp, a, b, ans: _beta_slope(xp, a, b, ans),
            b=lambda xp, a, b, ans: _beta_slope(xp, b, a, ans),
        ),
        declare(
            "betaln(a, b, /)",
            "The logarithm of the absolute value of the beta function.",
            a=lambda xp, a, b: -digamma_step(xp, a, b),
            b=lambda xp, a, b: -digamma_step(xp, b, a),
        ),
        declare(
            "poch(z, m, /)",
            "gamma(z + m) / gamma(z), Pochhammer's symbol.",
            z=_poch_by_z,
            m=_poch_by_m,
        ),
        declare(
            "binom(n, k, /)",
            "The binomial coefficient, gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1)); nan "
            "where n is a negative integer.",
            n=_binom_by_n,
            k=_binom_by_k,
        ),
    ]
