"""The forms of multigrad-special in the standard at many points, beside SciPy's values.

Derivatives, other dtypes and mpmath's values far out are for tests/precision/special; rules and
shapes on every backend for the conformance suite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from multigrad_special import standard

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

# NumPy's, of infinities that a selection drops
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RANDOM = np.random.default_rng(0)
LINE = np.concatenate(
    [np.linspace(-29.7, 30.3, 401), np.geomspace(1e-12, 1, 40), -np.geomspace(1e-12, 1, 40)]
)
POSITIVE = np.geomspace(1e-8, 300, 200)
UNIT = np.concatenate([RANDOM.uniform(0, 1, 200), np.geomspace(1e-300, 0.5, 60)])
MESH = tuple(a.ravel() for a in np.meshgrid(np.linspace(0.03, 9, 30), np.linspace(-0.1, 3, 30)))
# shapes of gamma distributions, where neither tail is nothing, and chances
SHAPE = np.concatenate([10 ** RANDOM.uniform(-2, 1, 300), 10 ** RANDOM.uniform(0, 3.5, 300)])
ABOUT = SHAPE * np.exp(RANDOM.normal(size=600) / np.sqrt(SHAPE))
CHANCE = np.concatenate([RANDOM.uniform(0, 1, 400), 10 ** RANDOM.uniform(-100, 0, 200)])
# the same of beta distributions, and counts
A, B = 10 ** RANDOM.uniform(-3, 3, (2, 300))
LIKELY = np.clip(RANDOM.beta(A, B), 1e-200, 1 - 1e-12)
FREE = 10 ** RANDOM.uniform(-0.5, 3, (2, 300))
SOME = RANDOM.uniform(0.05, 0.95, 300)
K = RANDOM.integers(0, 20, 300)
N = K + RANDOM.integers(1, 20, 300)
NEAR_ONE = np.geomspace(1e-7, 0.9, 60)

# name -> arguments, and how near SciPy's value is to the true one at the worst of them
GRIDS: dict[str, tuple[tuple[Any, ...], float]] = {
    **dict.fromkeys(("erf", "expit", "log_expit", "i0e", "i1e"), ((LINE,), 2e-14)),
    **dict.fromkeys(("cbrt", "cosm1", "exp10", "exp2", "exprel", "sinc"), ((LINE,), 2e-12)),
    **dict.fromkeys(("cosdg", "sindg", "tandg"), ((LINE,), 2e-12)),
    "cotdg": ((LINE[np.abs(LINE) > 1e-2],), 2e-12),
    "erfc": ((LINE,), 1e-13),
    "erfcx": ((LINE[LINE > -26],), 1e-12),
    "erfinv": ((2 * UNIT - 1,), 1e-14),
    "ndtr": ((LINE,), 3e-13),
    "log_ndtr": ((np.concatenate([LINE[LINE < 6], [-1e3, -300.0]]),), 1e-12),
    "ndtri": ((UNIT,), 1e-13),
    "logit": ((UNIT,), 1e-13),
    "gamma": ((np.concatenate([LINE, np.linspace(30, 170, 100)]),), 5e-14),
    "gammaln": ((np.concatenate([LINE, [200.0]]),), 2e-14),
    "digamma": ((np.concatenate([LINE, [200.0]]),), 2e-14),
    "beta": ((RANDOM.uniform(0.1, 8, 200), RANDOM.uniform(0.1, 8, 200)), 1e-13),
    "betaln": (tuple(10 ** RANDOM.uniform(-3, 4, (2, 500))), 1e-9),
    "entr": ((POSITIVE,), 1e-14),
    **dict.fromkeys(("kl_div", "rel_entr"), ((POSITIVE, 2 * POSITIVE[::-1]), 1e-13)),
    **dict.fromkeys(("xlog1py", "xlogy"), ((LINE, np.abs(LINE[::-1])), 1e-13)),
    **dict.fromkeys(("i0", "i1"), ((np.linspace(-700, 700, 211),), 1e-14)),
    **dict.fromkeys(("exp1", "spence"), ((POSITIVE,), 3e-12)),
    "expi": ((np.concatenate([POSITIVE, -POSITIVE]),), 3e-12),
    "expn": (tuple(np.meshgrid([0, 1, 2, 3, 7, 17, 18, 19, 40, 300], POSITIVE[::4])), 1e-13),
    **dict.fromkeys(("boxcox", "boxcox1p", "huber", "pseudo_huber"), (MESH, 1e-12)),
    **dict.fromkeys(("inv_boxcox", "inv_boxcox1p"), (MESH, 1e-12)),
    **dict.fromkeys(
        ("ellipk", "ellipe"), ((np.concatenate([1 - NEAR_ONE, -1e4 * NEAR_ONE]),), 2e-14)
    ),
    "ellipkm1": ((np.concatenate([NEAR_ONE, 1 + 1e4 * NEAR_ONE]),), 2e-14),
    **dict.fromkeys(("gammainc", "gammaincc"), ((SHAPE, ABOUT), 1e-11)),
    **dict.fromkeys(("gammaincinv", "gammainccinv"), ((SHAPE, CHANCE), 1e-11)),
    **dict.fromkeys(("gdtr", "gdtrc"), ((np.full(600, 0.75), SHAPE, ABOUT), 1e-11)),
    "chdtri": ((2 * SHAPE, CHANCE), 1e-11),
    **dict.fromkeys(("pdtr", "pdtrc"), ((np.floor(SHAPE), ABOUT), 1e-11)),
    "pdtri": ((np.floor(SHAPE), CHANCE), 1e-11),
    **dict.fromkeys(("betainc", "betaincc"), ((A, B, LIKELY), 3e-12)),
    **dict.fromkeys(("betaincinv", "betainccinv"), ((A, B, CHANCE[200:500]), 3e-12)),
    **dict.fromkeys(("fdtr", "fdtrc"), ((*FREE, RANDOM.gamma(2.0, size=300)), 3e-12)),
    "fdtri": ((*FREE, SOME), 3e-12),
    "stdtr": ((FREE[0], RANDOM.normal(size=300)), 3e-12),
    "stdtrit": ((FREE[0], SOME), 3e-12),
    **dict.fromkeys(("bdtr", "bdtrc", "bdtri"), ((K, N, SOME), 3e-12)),
    **dict.fromkeys(("nbdtr", "nbdtrc", "nbdtri"), ((K, N, SOME), 3e-12)),
}
PASS_ZERO = ("kl_div", "logit", "betaln", "gammaln", "digamma", "cosm1", "sinc", "tandg", "cotdg")


def run(name: str, strict: Any, *args: Any) -> Any:
    return np.asarray(getattr(standard, name)(strict, *(strict.asarray(a) for a in args)))


@pytest.mark.parametrize("name", GRIDS)
def test_standard_forms(name: str, strict: Any) -> None:
    args, rtol = GRIDS[name]
    expected = getattr(scipy.special, name)(*args)
    seen = ~np.isnan(expected)  # SciPy's quantiles of tiny chances are
    np.testing.assert_allclose(
        run(name, strict, *args)[seen],
        expected[seen],
        rtol=rtol,
        atol=max(rtol, 1e-13) if name in PASS_ZERO else 1e-290,
    )


@pytest.mark.parametrize("name", GRIDS)
def test_standard_forms_in_float32(name: str, strict: Any) -> None:
    """Where float32 has the digits of the arguments, and the result is in its range."""
    args = [np.asarray(a) for a in GRIDS[name][0]]
    args = [a if a.dtype.kind == "i" else a.astype(np.float32) for a in args]
    wide = [a if a.dtype.kind == "i" else a.astype(float) for a in args]
    expected = getattr(scipy.special, name)(*wide)
    y = run(name, strict, *args)
    assert y.dtype == np.float32
    seen = np.all([(np.abs(a) < 80) & (np.abs(a) > 1e-6) & (a != 1) for a in wide], axis=0)
    seen &= (np.abs(expected) > 1e-30) & (np.abs(expected) < 1e30)
    assert np.sum(seen) >= 20
    np.testing.assert_allclose(
        y[seen], expected[seen], rtol=1e-4, atol=1e-5 if name in PASS_ZERO else 0
    )


# ----- polygamma -----


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 13, 21])
def test_standard_polygamma(n: int, strict: Any) -> None:
    x = np.concatenate([np.linspace(-9.97, 30.03, 801), np.geomspace(1e-8, 200, 99)])
    y = np.asarray(standard.polygamma(strict, n, strict.asarray(x)))
    # Even derivatives pass through 0 between the poles, where SciPy loses digits.
    scale = np.maximum(
        np.abs(scipy.special.polygamma(n, x)), 0 if n % 2 else np.where(x < 0, math.factorial(n), 0)
    )
    assert np.all(np.abs(y - scipy.special.polygamma(n, x)) <= 2e-13 * scale)


def test_standard_polygamma_where_scipy_cancels(strict: Any) -> None:
    """At -3/2 the terms of -3/2 and 3/2, -1/2 and 1/2 cancel; the first that stays is that of
    5/2.
    """
    y = float(standard.polygamma(strict, 40, strict.asarray(-1.5)))
    assert y == pytest.approx(
        -math.factorial(40) * sum((2.5 + k) ** -41.0 for k in range(50)), rel=1e-12
    )


@pytest.mark.parametrize("n, x", [(30, 1e4), (60, 10.0), (100, 50.0)])
def test_standard_polygamma_neither_overflows_nor_underflows_on_the_way(
    n: int, x: float, strict: Any
) -> None:
    y = float(standard.polygamma(strict, n, strict.asarray(x)))
    exact = (
        math.factorial(n) * sum(1 / int(x + k) ** (n + 1) for k in range(2000))
        if x < 1e3
        else math.factorial(n - 1) / int(x) ** n
    )
    assert y == pytest.approx(exact if n % 2 else -exact, rel=1e-2 if x > 1e3 else 1e-12)


# ----- Bessel and Legendre functions -----

ARGUMENTS = np.concatenate(
    [np.geomspace(1e-3, 200, 60), [1.99, 2.0, 2.01, 9.99, 10.01, 24.99, 25.01]]
)
ORDERS = np.concatenate([np.arange(-4, 13) * 0.5, [-4.75, 1e-9, 0.1, 0.9, 1.999, 20, 33.3, 70]])


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "ive", "kv", "kve"])
# in orders of 70 exponents are of hundreds
@pytest.mark.parametrize("dtype, rtol, most", [("float64", 4e-13, 1e290), ("float32", 3e-4, 1e30)])
def test_standard_forms_of_any_order(
    name: str, dtype: str, rtol: float, most: float, strict: Any
) -> None:
    v, x = (a.ravel().astype(dtype) for a in np.meshgrid(ORDERS, ARGUMENTS))
    y = run(name, strict, v, x)
    assert y.dtype == dtype
    v, x = v.astype(float), x.astype(float)
    expected = getattr(scipy.special, name)(v, x)
    # the amplitude of what oscillates
    size = (
        np.where(v < x, np.hypot(scipy.special.jv(v, x), scipy.special.yv(v, x)), np.abs(expected))
        if name in ("jv", "yv")
        else np.abs(expected)
    )
    seen = (size > 1 / most) & (size < most)
    assert np.max((np.abs(y - expected) / size)[seen]) < rtol


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e"])
def test_standard_forms_of_one_order(name: str, strict: Any) -> None:
    x = np.concatenate([ARGUMENTS, [1e-300, 1e-30, 1e-8, 300.0]])
    if name[0] == "j":
        x = np.concatenate([x, -x])
    least = np.sqrt(2 / math.pi / np.maximum(np.abs(x), 10)) if name[0] in "jy" else 0.0
    expected = getattr(scipy.special, name)(x)
    size = np.maximum(np.abs(expected), least)
    seen = (size > 1e-290) & (size < 1e290)
    assert np.max((np.abs(run(name, strict, x) - expected) / size)[seen]) < 1e-13


def test_near_the_turning_point(strict: Any) -> None:
    """Where the argument is almost the order, two saddle points meet."""
    v = np.asarray([5.0, 30.0, 100.0, 200.0, 400.0]).repeat(5)
    x = v * np.tile([0.98, 1 - 1e-6, 1.0, 1 + 1e-6, 1.02], 5)
    for name in ("jv", "yv"):
        np.testing.assert_allclose(
            run(name, strict, v, x), getattr(scipy.special, name)(v, x), rtol=2e-12
        )


def test_legendre_functions(strict: Any) -> None:
    args = [
        a.ravel().astype(float)
        for a in np.meshgrid(
            [-4, -1, 0, 1, 2, 3, 6],
            [-3, -1, 0, 1, 2, 5, 12, 30],
            [-0.99, -0.4, 0.0, 0.3, 0.8, 0.999],
        )
    ]
    np.testing.assert_allclose(
        run("lpmv", strict, *args), scipy.special.lpmv(*args), rtol=1e-11, atol=1e-14
    )


# ----- incomplete beta functions far out -----


@pytest.mark.parametrize(
    "a, b, y", [(5.12103, 0.00392059, 6.40965e-176), (4.15996, 8358.69, 2.14155e-242)]
)
def test_quantiles_of_chances_so_small_that_scipy_gives_nan(
    a: float, b: float, y: float, strict: Any
) -> None:
    np.testing.assert_allclose(
        scipy.special.betainc(a, b, run("betaincinv", strict, a, b, y)), y, rtol=1e-11
    )


def test_the_quantile_of_t_at_0(strict: Any) -> None:
    """SciPy (1.17) gives inf."""
    assert run("stdtrit", strict, 3.0, 0.0) == -math.inf
