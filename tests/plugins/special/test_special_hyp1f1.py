"""1F1 of multigrad-special where its terms cancel, where it is a polynomial, and where its series
do not converge; elsewhere tests/precision/special measures it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import values
from mpmath import mp

import multigrad as mg

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

CANCELLING = [(-17.7, 16.9, 89.0), (-3 + 2.0**-33, 5.0, 80.0), (36.0, 0.97, -150.4)]
PAST_150 = [(300.0, 0.5, 200.0), (-3.0, 5.0, -450.0), (0.5, 40.3, -800.0)]
# SciPy's (1.17) have no digit of these, or 9 of them
BELOW_0 = [
    (-93.0, -26.4551, 0.338983),
    (12.25879260861587, -40.74120739138413, -0.9296333223009051),
    (73.3946, -57.6549, 278.373),
]


def with_gradients(xp: Any, a: float, b: float, x: float) -> tuple[Any, list[Any]]:
    given = [xp.asarray(np.asarray(v), requires_grad=True) for v in (a, b, x)]
    y = xp.special.hyp1f1(*given)
    return values(y), [values(g) for g in mg.autograd.grad(y, given)]


def true(a: float, b: float, x: float) -> list[float]:
    """1F1 and its derivatives by all three."""
    with mp.workdps(90):
        p, h = [mp.mpf(v) for v in (a, b, x)], mp.mpf(10) ** -30
        sides = [
            [mp.hyp1f1(*(v + s * h * (i == by) for i, v in enumerate(p))) for s in (1, -1)]
            for by in range(3)
        ]
        return [float(mp.hyp1f1(*p)), *(float((high - low) / (2 * h)) for high, low in sides)]


@pytest.mark.parametrize("a, b, x", [*CANCELLING, *PAST_150, *BELOW_0])
def test_where_terms_cancel_and_far_out(
    a: float, b: float, x: float, xp: Any, backend: str
) -> None:
    """In the first ones the terms are up to 1e16 times the sum."""
    exact, *slopes = true(a, b, x)
    value, found = with_gradients(xp, a, b, x)
    by_scipy = backend == "numpy" and b > 0  # which is less exact, also in the derivative by x
    np.testing.assert_allclose(value, exact, rtol=1e-8 if by_scipy else 1e-12)
    count = 2 if by_scipy else 3
    np.testing.assert_allclose(found[:count], slopes[:count], rtol=1e-12)


@pytest.mark.parametrize(
    "a, b, x", [(-3.0, 6.25, 239.0), (-3.0, 6.25, 1e4), (2.5, -0.5, -300.0), (0.0, 2.0, 500.0)]
)
def test_a_polynomial_is_one_everywhere(a: float, b: float, x: float) -> None:
    xp = mg.namespace("strict")
    y = xp.special.hyp1f1(*(xp.asarray([v]) for v in (a, b, x)))
    np.testing.assert_allclose(values(y), [scipy.special.hyp1f1(a, b, x)], rtol=1e-12)


def test_polynomials_by_b(xp: Any) -> None:
    """1F1(-1, b, x) = 1 - x / b and 1F1(-2, b, x) = 1 - 2 x / b + x**2 / (b (b + 1))."""
    for b, x in ((0.7, 0.3), (5.0, 90.0), (5.0, 1e5), (5.0, -20.0)):
        first, second = (with_gradients(xp, -n, b, x)[1][1] for n in (1.0, 2.0))
        np.testing.assert_allclose(first, x / b**2, rtol=1e-14)
        np.testing.assert_allclose(
            second, 2 * x / b**2 - x**2 * (2 * b + 1) / (b * (b + 1)) ** 2, rtol=1e-13
        )


@pytest.mark.parametrize("a, b, x", [(-3.0, 6.25, 239.0), (-12.0, 1.5, 226.0), (2.5, 0.5, -200.0)])
def test_by_parameters_where_gamma_has_a_pole(a: float, b: float, x: float) -> None:
    """By a far out; by b where that is no polynomial.

    The derivatives are those between neighbouring points.
    """
    xp, h = mg.namespace("numpy"), 2.0**-20
    at, *sides = (with_gradients(xp, a + d, b, x)[1] for d in (0, h, -h))
    for by in (0, 1) if x < 0 else (0,):
        np.testing.assert_allclose(at[by], (sides[0][by] + sides[1][by]) / 2, rtol=1e-9)


# ----- where it is nan -----


@pytest.mark.parametrize(
    "a, b, x", [(300.0, 0.5, 380.0), (0.5, 1.5, math.nan), (-300.5, 0.5, 20.0)]
)
def test_gradients_are_nan_where_series_do_not_converge(
    a: float, b: float, x: float, xp: Any
) -> None:
    assert np.isnan(with_gradients(xp, a, b, x)[1][:2]).all()


@pytest.mark.parametrize(
    "a, b, x, dtype",
    [
        pytest.param(100.0, 200.0, -9000.0, "float64", id="a gamma function is no number"),
        pytest.param(-80.5, 0.5, 40.0, "float64", id="terms are 1e20 times the sum"),
        pytest.param(-40.5, 0.5, 20.0, "float32", id="the same in float32"),
    ],
)
def test_values_are_nan_where_the_standard_cannot_tell(
    a: float, b: float, x: float, dtype: str
) -> None:
    xp = mg.namespace("strict")
    given = [xp.asarray(np.asarray([v], dtype=dtype)) for v in (a, b, x)]
    assert np.isnan(values(xp.special.hyp1f1(*given))).all()


def test_a_root_of_a_polynomial_is_a_number() -> None:
    """Of 1 - x / 0.7."""
    xp = mg.namespace("strict")
    y = xp.special.hyp1f1(*(xp.asarray([v]) for v in (-1.0, 0.7, 0.7)))
    assert abs(values(y)[0]) < 1e-15


def test_second_derivatives_are_nan_where_floats_are_not_exact_enough() -> None:
    a, b, x = (
        mg.asarray(np.asarray([v, w]), requires_grad=True)
        for v, w in ((-17.7, 0.5), (16.9, 1.5), (89.0, 2.0))
    )
    (g,) = mg.autograd.grad(mg.special.hyp1f1(a, b, x).sum(), a, create_graph=True)
    second = values(mg.autograd.grad(g.sum(), a)[0])
    assert np.isfinite(values(g.detach())).all() and np.isnan(second[0])
    with mp.workdps(50):
        np.testing.assert_allclose(
            second[1], float(mp.diff(lambda t: mp.hyp1f1(t, 1.5, 2.0), 0.5, 2)), rtol=1e-12
        )


def test_there_is_no_second_derivative_where_there_is_no_first() -> None:
    a, b, x = (mg.asarray(np.asarray([v]), requires_grad=True) for v in (-300.5, 0.5, 20.0))
    grads = mg.autograd.grad(mg.special.hyp1f1(a, b, x), [a, b], create_graph=True)
    second = [h for g in grads for h in mg.autograd.grad(g, [a, b, x], retain_graph=True)]
    assert np.isnan([h.item() for h in second]).all()
