"""Derivatives of multigrad-special where formulas cancel, overflow, or divide by nothing.

Those elsewhere are for the conformance suite, and further out for tests/precision/special.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import values
from mpmath import mp

import multigrad as mg
from multigrad_special import standard

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

# NumPy's, of infinities that a selection drops
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def slopes(xp: Any, name: str, *args: Any, by: int = -1, orders: int = 1) -> list[Any]:
    """The first derivatives by one argument, element by element."""
    given = [xp.asarray(np.asarray(a, dtype=float)) for a in args]
    x = given[by] = given[by].requires_grad_()
    y, found = getattr(xp.special, name)(*given), []
    for _ in range(orders):
        (y,) = mg.autograd.grad(y, x, xp.ones_like(y), create_graph=True)
        found.append(values(y))
    return found


def hessian(xp: Any, name: str, *args: float) -> Any:
    given = [xp.asarray(np.asarray(v), requires_grad=True) for v in args]
    first = mg.autograd.grad(getattr(xp.special, name)(*given), given, create_graph=True)
    rows = [mg.autograd.grad(g, given, retain_graph=True) for g in first]
    return np.asarray([[float(values(s)) for s in row] for row in rows])


# ----- at singular points of formulas -----


def test_the_derivatives_of_gammaln_go_on_and_on() -> None:
    found = slopes(mg.namespace("numpy"), "gammaln", 0.7, orders=7)
    expected = [scipy.special.polygamma(n, 0.7) for n in range(7)]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("j0", [0.0, -0.5, 0.0, 0.375]),
        ("j1", [0.5, 0.0, -0.375, 0.0]),
        ("i0", [0.0, 0.5, 0.0, 0.375]),
        ("i1", [0.5, 0.0, 0.375, 0.0]),
        ("exprel", [1 / 2, 1 / 3, 1 / 4, 1 / 5]),
        ("sinc", [0.0, -(math.pi**2) / 3, 0.0, math.pi**4 / 5]),
    ],
)
def test_nothing_is_divided_by_an_argument_of_nothing(
    name: str, expected: list[float], xp: Any
) -> None:
    np.testing.assert_allclose(slopes(xp, name, 0.0, orders=4), expected, rtol=1e-12, atol=1e-15)


def test_products_have_slopes_where_they_are_0(xp: Any) -> None:
    """poch(z, 3) is z (z + 1) (z + 2); binom(5, k) is -5! (k - 6)! sin(pi k) / (pi k!) about 6."""
    z = np.asarray([-3.0, -2.0, 0.0, 1.5])
    (by_z,) = slopes(xp, "poch", z, np.full(4, 3.0), by=0)
    np.testing.assert_allclose(by_z, 3 * z * z + 6 * z + 2, rtol=1e-13)
    (by_k,) = slopes(xp, "binom", [5.0, 5.0], [6.0, -1.0])
    np.testing.assert_allclose(by_k, [-1 / 6, 1 / 6], rtol=1e-13)
    (by_x,) = slopes(xp, "riemann_zeta", [-2.0, 0.0])
    np.testing.assert_allclose(by_x, [-0.030448457058393271, -0.9189385332046728], rtol=1e-13)


def test_poch_of_an_integer_step_between_poles_is_differentiated_by_both() -> None:
    """The mixed derivative is that of poch(z, m) by m, which has a term in pi / tan(pi z), at
    nearby z.
    """
    mixed = hessian(mg.namespace("numpy"), "poch", -19.611813622647432, 5.0)[0, 1]
    np.testing.assert_allclose(mixed, -17808654.906894433, rtol=1e-10)


def test_poch_between_integers_has_no_mixed_derivative_where_it_jumps() -> None:
    assert np.isnan(hessian(mg.namespace("numpy"), "poch", -5.0, 2.0)[0, 1])


@pytest.mark.parametrize("a, b", [(-1.75, 0.75), (0.5, -1.5), (2.5, -4.5)])
def test_beta_has_a_gradient_at_its_zeros(a: float, b: float, xp: Any) -> None:
    """Where a + b is -n, 1 / gamma(a + b) has the slope (-1)**n n!."""
    n = round(-a - b)
    slope = scipy.special.gamma(a) * scipy.special.gamma(b) * (-1) ** n * math.factorial(n)
    for by in (0, 1):
        np.testing.assert_allclose(slopes(xp, "beta", a, b, by=by), [slope], rtol=1e-13)


def test_binom_is_differentiated_twice_where_it_is_0() -> None:
    found = hessian(mg.namespace("numpy"), "binom", -2.751159014718233, -2.0)[1]
    np.testing.assert_allclose(found, [-1.4461973769729835, 7.1008986882992184], rtol=1e-11)


@pytest.mark.parametrize("name", ["riemann_zeta", "zeta", "zetac"])
def test_the_derivatives_of_zeta_just_below_0(name: str, xp: Any) -> None:
    """A reflection formula would cancel there, at its pole."""
    x = np.asarray([-1e-17, -1e-10, -1e-4, -0.1, -0.2499, -0.2501, -0.4])
    value = getattr(mg.special, name)(xp.asarray(x))
    np.testing.assert_allclose(
        values(value) + (name == "zetac"), [float(mp.zeta(v)) for v in x], rtol=1e-13
    )
    for order, found in enumerate(slopes(xp, name, x, orders=2), 1):
        np.testing.assert_allclose(found, [float(mp.zeta(v, 1, order)) for v in x], rtol=1e-13)


# ----- where closed forms cancel -----


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_ndtr_far_out_to_second_order(dtype: str) -> None:
    """-r (x + r) for the slope r, which is 0 far above 0; the square of erfcx overflowed on the
    way.
    """
    x = mg.asarray(
        np.asarray([-30.0, -1.0, 0.0, 1.0, 9.0, 14.0, 20.0, 38.0, 1e6], dtype), requires_grad=True
    )
    (r,) = mg.autograd.grad(mg.special.log_ndtr(x).sum(), x, create_graph=True)
    (second,) = mg.autograd.grad(r.sum(), x)
    slope = r.detach().array.astype("float64")
    with np.errstate(under="ignore"):
        expected = -slope * (x.detach().array + slope)
    np.testing.assert_allclose(
        second.array, expected, rtol=2e-3 if dtype == "float32" else 1e-10, atol=1e-38
    )


def test_second_derivative_of_spence_near_1(xp: Any) -> None:
    _, second = slopes(xp, "spence", [1.0, 1 + 1e-8, 1 - 1e-8], orders=2)
    np.testing.assert_allclose(second, [0.5] * 3, rtol=1e-7)


def test_expi_near_its_zero_in_the_standard(strict: Any) -> None:
    x = 0.3725074107813667 + np.asarray([1e-13, -1e-10, 1e-7, -1e-3])
    with mp.workdps(50):
        true = [float(mp.ei(mp.mpf(float(v)))) for v in x]
    y = np.asarray(standard.expi(strict, strict.asarray(x)))
    np.testing.assert_allclose(y / true, 1.0, atol=1e-10)


def test_boxcox_twice_by_lmbda_near_0_has_no_cancellation(xp: Any) -> None:
    x = np.asarray([0.3, 2.0, 50.0])
    for lmbda in (0.0, 1e-300, -1e-12):
        _, second = slopes(xp, "boxcox", x, np.full(3, lmbda), orders=2)
        np.testing.assert_allclose(second, np.log(x) ** 3 / 3, rtol=1e-10)


def test_pseudo_huber_has_curvature_without_cancellation(xp: Any) -> None:
    delta, r = np.asarray([1.0, 1.0, 1e-3]), np.asarray([1e-9, 1e6, 1e4])
    _, second = slopes(xp, "pseudo_huber", delta, r, orders=2)
    np.testing.assert_allclose(second, (1 + (r / delta) ** 2) ** -1.5, rtol=1e-12)


def test_slopes_of_elliptic_integrals_where_closed_forms_cancel(xp: Any) -> None:
    """About m = 0 by the power series (DLMF 19.5.1 and 19.5.2), about m = 1 by the leading terms
    (19.12.1).
    """
    for name, sign, curvature in (("ellipk", 1, 9), ("ellipe", -1, -3)):
        first, second = slopes(xp, name, [0.0, 1e-20, -1e-12], orders=2)
        np.testing.assert_allclose(first, sign * math.pi / 8, rtol=2e-12)
        np.testing.assert_allclose(second, curvature * math.pi / 64, rtol=5e-12)
    p = np.asarray([1e-200, 1e-30, 1e-20])
    first, second = slopes(xp, "ellipkm1", p, orders=2)
    np.testing.assert_allclose(first, -0.5 / p, rtol=1e-13)
    np.testing.assert_allclose(second[1:], 0.5 / p[1:] ** 2, rtol=1e-12)


@pytest.mark.parametrize("name, v", [("kve", 0.0), ("kve", 2.5), ("ive", 1.0)])
def test_slopes_far_out_where_recurrences_cancel(name: str, v: float, xp: Any) -> None:
    """By the first terms of the series: the recurrence alone has no digit left at 1e16."""
    z = np.asarray([1e10, 1e16])
    sign = 1 if name == "kve" else -1
    second = sign * (4 * v * v - 1) / 8
    exact = (
        -math.sqrt(math.pi / 2 if sign > 0 else 1 / (2 * math.pi))
        * z**-1.5
        * (0.5 + 1.5 * second / z)
    )
    np.testing.assert_allclose(slopes(xp, name, v, z)[0], exact, rtol=1e-14)
    if v in (0.0, 1.0):
        np.testing.assert_allclose(slopes(xp, f"{name[0]}{int(v)}e", z)[0], exact, rtol=1e-14)


# ----- distributions -----


def test_where_an_inverse_is_too_small_to_be_a_number_its_slope_is_not() -> None:
    a, y = np.float32(0.5), np.float32(1e-30)
    x = mg.asarray(np.asarray([y]), requires_grad=True)
    (g,) = mg.autograd.grad(mg.special.gammaincinv(mg.asarray(np.asarray([a])), x), x)
    np.testing.assert_allclose(g.array, [float(y) * math.pi / 2], rtol=1e-6)


def test_incomplete_gamma_functions_of_large_parameters(xp: Any) -> None:
    """The distribution is nearly normal there: Q(a, a) is 1/2 + 1 / (3 sqrt(2 pi a)) + ..., and its
    derivative by a about the density.
    """
    a = np.asarray([1e8, 1e12, 1e20])
    (by_a,), (by_x,) = (slopes(xp, "gammaincc", a, a, by=i) for i in (0, 1))
    np.testing.assert_allclose(-by_x, np.exp(-1 / (12 * a)) / np.sqrt(2 * math.pi * a), rtol=1e-14)
    np.testing.assert_allclose(by_a, -by_x * (1 + 1 / (6 * a)), rtol=2e-9)


def test_t_by_many_degrees_of_freedom_nears_the_normal_distribution(light: Any) -> None:
    """Abramowitz and Stegun, 26.7.10: ndtr(x) - density(x) (x**3 + x) / (4 df) + ..."""
    x = np.asarray([-3.0, -0.1, 0.7, 2.0])
    exact = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x**3 + x) / 4e16
    (by_df,) = slopes(light, "stdtr", np.full(4, 1e8), x, by=0)
    np.testing.assert_allclose(by_df, exact, rtol=1e-6)


def test_quantiles_next_to_1_keep_the_digits_of_their_derivative(light: Any) -> None:
    """I_x(1, 1/2) = 1 - sqrt(1 - x), so with the tail t above x, dx/dy is 2 t, of which 1 - x
    rounded has no digits.
    """
    t = 2.0**-24
    np.testing.assert_allclose(slopes(light, "betaincinv", 1.0, 0.5, 1 - t), [2 * t], rtol=1e-12)
    np.testing.assert_allclose(slopes(light, "betainccinv", 1.0, 0.5, 1e-12), [-2e-12], rtol=1e-12)


@pytest.mark.sweep_after(4)
@pytest.mark.parametrize(
    "name, args, exact",
    [
        (
            "betaincinv",
            (0.5, 0.003, 1e-140),
            [
                [4.52420563818638e-270, -2.36340389673383e-270, 7.11952946768615e-133],
                [-2.36340389673383e-270, 1.8569862754602e-270, -3.71910701213734e-133],
                [7.11952946768615e-133, -3.71910701213734e-133, 56017.9294168874],
            ],
        ),
        (
            "fdtri",
            (0.0162, 4.2, 0.01),
            [
                [1.34259190509168e-236, -2.48464361460668e-242, 4.73961765812722e-237],
                [-2.48464361460668e-242, 4.03688031293792e-247, -8.75595164027967e-243],
                [4.73961765812722e-237, -8.75595164027967e-243, 1.65961667073521e-237],
            ],
        ),
        (
            "gammaincinv",
            (0.0081, 0.0103),
            [
                [1.28496315066785e-236, 2.21235637584709e-237],
                [2.21235637584709e-237, 3.77820955134352e-238],
            ],
        ),
        (
            "chdtri",
            (0.0162, 0.9897),
            [
                [6.42481575333738e-237, -2.21235637584645e-237],
                [-2.21235637584645e-237, 7.55641910268488e-238],
            ],
        ),
    ],
)
def test_second_derivatives_of_tiny_quantiles(
    name: str, args: tuple[float, ...], exact: list[list[float]], light: Any
) -> None:
    """The density at the result is about 1e240, and its square is not a number; by mpmath with 50
    digits.
    """
    np.testing.assert_allclose(hessian(light, name, *args), exact, rtol=1e-10)


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tails_of_t_whose_argument_has_no_square(dtype: Any, light: Any) -> None:
    """Far out they are c |x|**-df, and Cauchy's is 1 / (pi |x|); SciPy (1.17) gives 0."""
    far, kind = (1e200, 1e-13) if dtype is np.float64 else (1e25, 1e-5)
    xp = mg.namespace("strict")
    df, near = np.asarray([1.0, 0.1, 0.02], dtype=dtype), dtype(math.sqrt(far))
    value = lambda v, x: values(xp.special.stdtr(xp.asarray(v), xp.asarray(np.full(3, x, dtype))))
    expected = value(df, -near) * float(near / far) ** df
    np.testing.assert_allclose(value(df, -far), expected, rtol=20 * kind)
    np.testing.assert_allclose(value(df, -far)[0], 1 / (math.pi * far), rtol=kind)
    x = light.asarray(np.full(3, -far, dtype), requires_grad=True)
    (by_x,) = mg.autograd.grad(light.sum(light.special.stdtr(light.asarray(df), x)), x)
    np.testing.assert_allclose(values(by_x), df * (expected / far), rtol=20 * kind)
    if dtype is np.float64:
        (by_p,) = slopes(xp, "stdtrit", 0.02, expected[2])
        np.testing.assert_allclose(by_p, far / 0.02 / expected[2], rtol=50 * kind)


@pytest.mark.parametrize(
    "df, p, size",
    [(0.5, 1e-10, 1.02849113e19), (1.0, 1e-10, 3.18309882e9), (10.0, 1e-10, 25.4660080)],
)
def test_quantiles_of_t_in_float32(df: float, p: float, size: float, xp: Any) -> None:
    """SciPy's (1.17) are off by a third; the slopes are those in float64."""
    given = [xp.asarray(np.asarray(v, np.float32), requires_grad=True) for v in (df, p)]
    y = xp.special.stdtrit(*given)
    np.testing.assert_allclose(values(y), -size, rtol=1e-5)
    wide = [float(values(v)) for v in given]
    exact = [slopes(mg.namespace("numpy"), "stdtrit", *wide, by=by)[0] for by in (0, 1)]
    found = [values(g) for g in mg.autograd.grad(y, given)]
    np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_a_statistic_may_be_written_to_after_its_p_value_was_computed() -> None:
    """As scipy.stats.epps_singleton_2samp does: what is saved is half of it."""
    x = mg.asarray(np.asarray([1.0, 4.0]), requires_grad=True)
    statistic = 2 * x
    p = mg.special.chdtrc(3.0, statistic)
    statistic[0] = math.nan
    p.sum().backward()
    (slope,) = slopes(mg.namespace("numpy"), "chdtrc", [3.0, 3.0], [2.0, 8.0])
    np.testing.assert_allclose(values(x.grad), 2 * slope)
