"""The other functions of multigrad-special: their standard-only forms at many points, their edges,
and slopes far out.

Rules, shapes and dtypes on every backend are for the conformance suite; that SciPy finds the
functions, for tests/consumers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad_special import standard

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

# NumPy's, of infinities that a selection drops
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RANDOM = np.random.default_rng(0)
LINE = np.concatenate(
    [np.linspace(-29.7, 30.3, 401), np.geomspace(1e-12, 1, 40), -np.geomspace(1e-12, 1, 40)]
)
POSITIVE = np.geomspace(1e-8, 1e8, 300)
UNIT = np.concatenate([RANDOM.uniform(0, 1, 200), np.geomspace(1e-300, 0.5, 60)])
PAIRS = (10 ** RANDOM.uniform(-3, 4, 500), 10 ** RANDOM.uniform(-3, 4, 500))
A = 10 ** RANDOM.uniform(-2, 3, 500)
NEAR = A * np.exp(RANDOM.normal(size=500) / np.sqrt(A))  # where neither tail is nothing
CHANCES = RANDOM.beta(A, PAIRS[1])


# name -> arguments, and how near SciPy's value is to the true one at the worst of them
GRIDS: dict[str, tuple[tuple[Any, ...], float]] = {
    "beta": ((RANDOM.uniform(0.1, 8, 200), RANDOM.uniform(0.1, 8, 200)), 1e-13),
    "betainc": ((A, PAIRS[1], CHANCES), 1e-11),
    "betaln": (PAIRS, 1e-9),
    "entr": ((POSITIVE,), 1e-14),
    "erfcx": ((LINE[LINE > -26],), 1e-12),
    "erfinv": ((2 * UNIT - 1,), 1e-14),
    "gamma": ((np.concatenate([LINE, np.linspace(30, 170, 100)]),), 5e-14),
    "gammainc": ((A, NEAR), 1e-11),
    "gammaincc": ((A, NEAR), 1e-11),
    "i0": ((np.linspace(-700, 700, 211),), 1e-14),
    "i0e": ((np.concatenate([LINE, POSITIVE]),), 1e-14),
    "i1": ((np.linspace(-700, 700, 211),), 1e-14),
    "i1e": ((np.concatenate([LINE, POSITIVE]),), 1e-14),
    "kl_div": ((POSITIVE, 2 * POSITIVE[::-1]), 1e-13),
    "log_expit": ((LINE,), 1e-14),
    "log_ndtr": ((np.concatenate([LINE[LINE < 6], [-1e3, -300.0]]),), 1e-12),
    "logit": ((UNIT,), 1e-13),
    "ndtr": ((LINE,), 3e-13),
    "ndtri": ((UNIT,), 1e-13),
    "rel_entr": ((POSITIVE, 2 * POSITIVE[::-1]), 1e-13),
    "stdtr": ((PAIRS[0], RANDOM.normal(size=500)), 1e-11),
    "xlog1py": ((LINE, np.abs(LINE[::-1])), 1e-13),
    "xlogy": ((LINE, np.abs(LINE[::-1])), 1e-13),
}


@pytest.mark.parametrize("name", GRIDS)
def test_standard_forms(name: str, strict: Any) -> None:
    args, rtol = GRIDS[name]
    expected = getattr(scipy.special, name)(*args)
    y = np.asarray(getattr(standard, name)(strict, *(strict.asarray(a) for a in args)))
    np.testing.assert_allclose(
        y, expected, rtol=rtol, atol=1e-300 if name not in ("kl_div", "logit", "betaln") else 1e-13
    )


@pytest.mark.parametrize("name", GRIDS)
def test_standard_forms_in_float32(name: str, strict: Any) -> None:
    args = [a.astype(np.float32) for a in GRIDS[name][0]]
    keep = np.all([(np.abs(a) < 80) & ((np.abs(a) > 1e-6) | (a == 0)) for a in args], axis=0)
    args = [a[keep] for a in args]
    expected = getattr(scipy.special, name)(*(a.astype(float) for a in args))
    y = np.asarray(getattr(standard, name)(strict, *(strict.asarray(a) for a in args)))
    assert y.dtype == np.float32
    seen = np.abs(expected) < 1e37
    np.testing.assert_allclose(
        y[seen],
        expected[seen],
        rtol=1e-4,
        atol=1e-5 if name in ("kl_div", "rel_entr", "betaln", "logit") else 1e-36,
    )


@pytest.mark.parametrize("v", [0, 1, 2, 3, 5, 8, 20])
def test_standard_bessel_functions(v: int, strict: Any) -> None:
    x = np.concatenate([LINE, np.linspace(15, 300, 200)])
    np.testing.assert_allclose(
        np.asarray(standard.ive(strict, v, strict.asarray(x))),
        scipy.special.ive(v, x),
        rtol=2e-13,
        atol=1e-300,
    )


# ----- edges -----

INF, NAN = math.inf, math.nan
EDGES = np.asarray([0.0, -0.0, 0.5, 1.0, -1.0, 2.0, INF, -INF, NAN])
FEW = np.asarray([0.0, 0.5, 1.0, -1.0, INF, NAN])
UNARY = (
    "entr",
    "erfcx",
    "erfinv",
    "gamma",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_expit",
    "log_ndtr",
    "logit",
    "ndtr",
    "ndtri",
)
BINARY = ("kl_div", "rel_entr", "xlog1py", "xlogy")


@pytest.mark.parametrize("name", UNARY)
def test_edges_are_those_of_scipy(name: str, strict: Any) -> None:
    with np.errstate(all="ignore"):
        y = np.asarray(getattr(standard, name)(strict, strict.asarray(EDGES)))
        expected = getattr(scipy.special, name)(EDGES)
    if name in ("i0", "i1"):  # SciPy gives nan at infinity
        expected[6:8] = [INF, INF if name == "i0" else -INF]
    np.testing.assert_allclose(y, expected, rtol=1e-14)


@pytest.mark.parametrize("name", BINARY)
def test_edges_of_two_arguments_are_those_of_scipy(name: str, strict: Any) -> None:
    x, y = (a.ravel() for a in np.meshgrid(FEW, FEW))
    with np.errstate(all="ignore"):
        z = np.asarray(getattr(standard, name)(strict, strict.asarray(x), strict.asarray(y)))
        expected = getattr(scipy.special, name)(x, y)
    # infinite over infinite has no value that all agree on
    seen = np.isfinite(x) & np.isfinite(y) | np.isnan(x) | np.isnan(y)
    np.testing.assert_allclose(z[seen], expected[seen], rtol=1e-14)


@pytest.mark.parametrize(
    "name, args, expected",
    [
        (
            "gammainc",
            ([0.5, 2.0, 2.0, -1.0, 2.0, 2.0], [0.0, 0.0, INF, 1.0, -1.0, NAN]),
            [0.0, 0.0, 1.0, NAN, NAN, NAN],
        ),
        (
            "gammaincc",
            ([0.5, 2.0, 2.0, -1.0, 2.0, 2.0], [0.0, 0.0, INF, 1.0, -1.0, NAN]),
            [1.0, 1.0, 0.0, NAN, NAN, NAN],
        ),
        (
            "betainc",
            ([0.5, 2.0, -1.0, 2.0, 2.0], [3.0, 0.5, 1.0, 2.0, 2.0], [0.0, 1.0, 0.5, 2.0, NAN]),
            [0.0, 1.0, NAN, NAN, NAN],
        ),
        (
            "stdtr",
            ([1.0, 2.0, 2.0, -1.0, 1.0], [0.0, INF, -INF, 1.0, NAN]),
            [0.5, 1.0, 0.0, NAN, NAN],
        ),
    ],
)
def test_edges_of_tails(
    name: str, args: tuple[Any, ...], expected: list[float], strict: Any
) -> None:
    with np.errstate(all="ignore"):
        y = getattr(standard, name)(strict, *(strict.asarray(a) for a in args))
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-14)


# ----- slopes where their formulas cancel, and at the edges -----


def slope(name: str, x: Any, xp: Any) -> Any:
    t = xp.asarray(np.asarray(x), requires_grad=True)
    return values(mg.autograd.grad(getattr(xp.special, name)(t).sum(), t)[0])


SLOPES: dict[str, tuple[list[float], Callable[[Any], Any]]] = {
    # 2 x erfcx(x) - 2/sqrt(pi), by the first terms of its asymptotic series
    "erfcx": (
        [100.0, 1e3, 1e6],
        lambda x: -(1 - 1.5 / x**2 + 3.75 / x**4 - 13.125 / x**6) / (math.sqrt(math.pi) * x**2),
    ),
    "log_ndtr": ([-1e4, -1e6], lambda x: -x * (1 + 1 / x**2)),
    "expit": ([40.0, -40.0], lambda x: np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))) ** 2),
    "log_expit": ([50.0, -700.0], lambda x: 1 / (1 + np.exp(x))),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_far_out(name: str, xp: Any) -> None:
    x, exact = SLOPES[name]
    np.testing.assert_allclose(slope(name, x, xp), exact(np.asarray(x)), rtol=1e-13)


def test_kl_div_is_exact_where_its_arguments_are_almost_equal(xp: Any) -> None:
    y = np.asarray([1.0, 3.0])
    x = xp.asarray(y * (1 + 2.0**-40), requires_grad=True)
    (g,) = mg.autograd.grad(xp.special.kl_div(x, xp.asarray(y)).sum(), x)
    np.testing.assert_allclose(values(g), 2.0**-40, rtol=1e-11)


def test_derivatives_of_bessel_functions_go_on(xp: Any) -> None:
    """At 0 as elsewhere: the even ones are 1, 1/2, 3/8, 5/16."""
    x = xp.asarray(np.asarray([0.0, 1.3]), requires_grad=True)
    y, found = xp.special.i0(x), []
    for _ in range(4):
        (y,) = mg.autograd.grad(y.sum(), x, create_graph=True)
        found.append(values(y))
    np.testing.assert_allclose([f[0] for f in found], [0.0, 0.5, 0.0, 0.375], rtol=1e-14)
    exact = [scipy.special.ivp(0, 1.3, n) for n in range(1, 5)]
    np.testing.assert_allclose([f[1] for f in found], exact, rtol=1e-12)


def test_a_count_has_no_derivative(xp: Any) -> None:
    k, m = xp.asarray([2.0]), xp.asarray([1.5], requires_grad=True)
    (g,) = mg.autograd.grad(xp.special.pdtr(k, m), m)
    np.testing.assert_allclose(values(g), -1.125 * math.exp(-1.5), rtol=1e-14)
    y = xp.special.pdtr(k.requires_grad_(), m)
    with pytest.raises(
        mg.errors.MissingRuleError,
        match="'special.pdtr' has no derivative rule for its argument 'k'",
    ):
        y.backward()
