"""Exponential integrals, the dilogarithm, 1F1 and entropies of multigrad-special: edges, dtypes,
complex arrays, derivatives by parameters.

Accuracy on grids is for tests/precision/special; rules and shapes on every backend are for the
conformance suite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import values
from mpmath import mp

import multigrad as mg
from multigrad.errors import MissingRuleError

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INF, NAN = math.inf, math.nan
EDGES = np.asarray([0.0, -0.0, 1.0, -1.0, 700.0, INF, -INF, NAN])
POSITIVE = np.geomspace(1e-8, 300, 200)
ENTROPIES = ("entr", "expit", "kl_div", "log_expit", "logit", "rel_entr", "xlog1py", "xlogy")
OF_TWO = ("kl_div", "rel_entr", "xlog1py", "xlogy")


def argument(xp: Any, x: Any) -> Any:
    return xp.asarray(np.asarray(x), requires_grad=True)


def slope(f: Any, *args: Any, by: int = 0) -> Any:
    y = f(*args)
    return values(mg.autograd.grad(y, args[by], y.__array_namespace__().ones_like(y))[0])


# ----- exponential integrals and the dilogarithm -----


@pytest.mark.parametrize("name", ["exp1", "expi", "spence"])
def test_values_are_those_of_scipy(name: str, xp: Any) -> None:
    x = np.concatenate([POSITIVE, -POSITIVE]) if name == "expi" else POSITIVE
    np.testing.assert_allclose(
        values(getattr(xp.special, name)(argument(xp, x))),
        getattr(scipy.special, name)(x),
        rtol=3e-12,
    )


def test_values_of_expn_are_those_of_scipy(xp: Any) -> None:
    n, x = np.meshgrid([0, 1, 2, 3, 7, 17, 18, 19, 40, 300], POSITIVE[::4])
    np.testing.assert_allclose(
        values(xp.special.expn(xp.asarray(n), argument(xp, x))),
        scipy.special.expn(n, x),
        rtol=1e-13,
    )


@pytest.mark.parametrize("name", ["exp1", "expi", "spence"])
def test_edges_are_those_of_scipy(name: str, xp: Any) -> None:
    x = EDGES[EDGES < INF] if name == "spence" else EDGES  # SciPy gives nan at infinity
    np.testing.assert_allclose(
        values(getattr(xp.special, name)(argument(xp, x))),
        getattr(scipy.special, name)(x),
        rtol=1e-13,
    )


@pytest.mark.parametrize("n", [-1, 0, 1, 2, 3])
def test_edges_of_expn_are_those_of_scipy(n: int, xp: Any) -> None:
    x = EDGES[EDGES != -INF]
    np.testing.assert_allclose(
        values(xp.special.expn(n, argument(xp, x))), scipy.special.expn(n, x), rtol=1e-13
    )


@pytest.mark.parametrize(
    "name, x, expected",
    [
        ("exp1", [0.0, INF, -1.0, NAN], [-INF, 0.0, NAN, NAN]),
        ("expi", [0.0, INF, -INF, NAN], [INF, NAN, 0.0, NAN]),
        ("spence", [1.0, 0.0, -1.0, NAN], [-1.0, -INF, NAN, NAN]),
    ],
)
def test_gradients_at_edges(name: str, x: list[float], expected: list[float], xp: Any) -> None:
    found = slope(getattr(xp.special, name), argument(xp, x))
    keep = np.asarray(x) != INF if name == "expi" else slice(None)
    np.testing.assert_array_equal(
        np.abs(found[keep]) * np.sign(found[keep]), np.asarray(expected)[keep]
    )


def test_expi_near_its_zero_in_the_standard() -> None:
    pytest.importorskip(
        "array_api_strict", reason="the library that has the standard and nothing more"
    )
    x = 0.3725074107813667 + np.asarray([1e-13, -1e-10, 1e-7, -1e-3])
    with mp.workdps(50):
        true = [float(mp.ei(mp.mpf(float(v)))) for v in x]
    xp = mg.namespace("strict")
    np.testing.assert_allclose(values(xp.special.expi(argument(xp, x))) / true, 1.0, atol=1e-10)


def test_second_derivative_of_spence_near_1(xp: Any) -> None:
    z = argument(xp, [1.0, 1 + 1e-8, 1 - 1e-8])
    y = xp.special.spence(z)
    (g,) = mg.autograd.grad(y, z, xp.ones_like(y), create_graph=True)
    np.testing.assert_allclose(
        values(mg.autograd.grad(g, z, xp.ones_like(g))[0]), [0.5] * 3, rtol=1e-7
    )


def test_expn_is_not_differentiated_by_its_order(xp: Any) -> None:
    n = argument(xp, [1.0, 2.0])
    with pytest.raises(
        MissingRuleError, match="'special.expn' has no derivative rule for its argument 'n'"
    ):
        xp.special.expn(n, xp.asarray([1.0, 2.0])).sum().backward()


@pytest.mark.parametrize("name", ["exp1", "expi", "spence"])
def test_complex_arrays(name: str, xp: Any, backend: str) -> None:
    """SciPy's on NumPy and JAX, which calls it; refused by name elsewhere."""
    z = argument(xp, [0.5 + 0.3j, -2.0 + 1.0j, 3.0 - 4.0j])
    if backend not in ("numpy", "jax"):
        with pytest.raises(
            TypeError,
            match=rf"^special\.{name} on the backend '\w+' takes real floating-point arrays, "
            r"not .*complex128\.",
        ):
            getattr(xp.special, name)(z)
        return
    f, x = getattr(scipy.special, name), values(z)
    np.testing.assert_array_equal(values(getattr(xp.special, name)(z)), f(x))
    y = getattr(xp.special, name)(z)
    (g,) = mg.autograd.grad(y, z, xp.ones_like(y))
    np.testing.assert_allclose(values(g), np.conj((f(x + 1e-6) - f(x - 1e-6)) / 2e-6), rtol=1e-6)


@pytest.mark.parametrize("name", ["exp1", "expi", "spence", "expn", "hyp1f1"])
def test_dtypes_are_those_of_floating_arguments(name: str, xp: Any, backend: str) -> None:
    x = xp.asarray(np.asarray([0.5, 1.5], dtype=np.float32), requires_grad=True)
    whole = xp.asarray(np.asarray([1, 2]))
    parameters = {"expn": (whole,), "hyp1f1": (whole, 2)}.get(name, ())
    f = getattr(xp.special, name)
    y = f(*parameters, x)
    y.sum().backward()
    # NumPy promotes as everywhere
    assert y.dtype == (xp.float64 if parameters and backend == "numpy" else xp.float32)
    assert x.grad.dtype == xp.float32
    assert f(*parameters, whole).dtype == xp.float64
    np.testing.assert_allclose(
        values(y),
        getattr(scipy.special, name)(*([1, 2], 2)[: len(parameters)], [0.5, 1.5]),
        rtol=1e-5,
    )


@pytest.mark.parametrize("name", ["exp1", "expi", "spence", "expn", *ENTROPIES])
@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
def test_float16_is_computed_in_float32(name: str, backend: str) -> None:
    pytest.importorskip(backend, reason="an optional backend")
    xp = mg.namespace(backend)
    x = np.asarray([0.2, 0.6, 0.9], dtype=np.float16)
    others = (
        (2,)
        if name == "expn"
        else (np.asarray([0.3, 0.5, 0.8], dtype=np.float16),)
        if name in OF_TWO
        else ()
    )
    t = argument(xp, x)
    y = getattr(xp.special, name)(
        *(xp.asarray(a) if isinstance(a, np.ndarray) else a for a in others), t
    )
    y.sum().backward()
    assert values(y).dtype == values(t.grad).dtype == np.float16
    wide = [a.astype(float) if isinstance(a, np.ndarray) else a for a in (*others, x)]
    np.testing.assert_allclose(values(y), getattr(scipy.special, name)(*wide), rtol=2e-3, atol=1e-4)


# ----- 1F1 -----


POINTS = (
    [0.5, 2.5, 1.0, -2.0, 0.3, 3.0, -2.0],
    [1.5, 0.7, 3.0, 1.5, 2.2, 1.0, 2.5],
    [0.3, 12.0, -8.0, 3.0, -250.0, 0.0, -3.0],
)


def test_hyp1f1_by_its_parameters(xp: Any) -> None:
    a, b, x = (argument(xp, v) for v in POINTS)
    for by in (0, 1, 2):
        true = []
        for point in zip(values(a), values(b), values(x), strict=True):
            with mp.workdps(50):
                p = [mp.mpf(float(v)) for v in point]
                true.append(
                    float(mp.diff(lambda t, p=p, by=by: mp.hyp1f1(*p[:by], t, *p[by + 1 :]), p[by]))
                )
        np.testing.assert_allclose(slope(xp.special.hyp1f1, a, b, x, by=by), true, rtol=1e-12)


def test_second_derivatives_of_hyp1f1_by_its_parameters() -> None:
    xp = mg.namespace("numpy")
    a, b, x = (argument(xp, v) for v in ([0.5, -2.0, 1.0], [1.5, 1.5, 3.0], [0.3, 3.0, -8.0]))
    y = xp.special.hyp1f1(a, b, x)
    (g,) = mg.autograd.grad(y, a, xp.ones_like(y), create_graph=True)
    found = [values(v) for v in mg.autograd.grad(g, [a, b], xp.ones_like(g))]
    for k, point in enumerate(zip(values(a), values(b), values(x), strict=True)):
        with mp.workdps(50):
            p = [mp.mpf(float(v)) for v in point]
            twice = mp.diff(lambda t, p=p: mp.hyp1f1(t, *p[1:]), p[0], 2)
            mixed = mp.diff(lambda s, t, p=p: mp.hyp1f1(s, t, p[2]), (p[0], p[1]), (1, 1))
        np.testing.assert_allclose(
            [found[0][k], found[1][k]], [float(twice), float(mixed)], rtol=1e-11
        )


def test_hyp1f1_is_nan_where_its_series_do_not_converge(xp: Any) -> None:
    a, b, x = (argument(xp, v) for v in ([300.0, 0.5, -300.5], [0.5, 1.5, 0.5], [380.0, NAN, 20.0]))
    for by in (0, 1):
        assert np.isnan(slope(xp.special.hyp1f1, a, b, x, by=by)).all()


def test_hyp1f1_of_complex_arrays(xp: Any, backend: str) -> None:
    a, z = argument(xp, [0.5]), argument(xp, [1 + 2j])
    if backend not in ("numpy", "jax"):
        with pytest.raises(
            TypeError,
            match=rf"^special\.hyp1f1 on the backend '{backend}' takes real floating-point "
            r"arrays, not .*complex128\.",
        ):
            xp.special.hyp1f1(a, 1.5, z)
        return
    y = xp.special.hyp1f1(a, 1.5, z)
    np.testing.assert_allclose(values(y), scipy.special.hyp1f1(0.5, 1.5, [1 + 2j]))
    found = slope(xp.special.hyp1f1, a.detach(), 1.5, z, by=2)
    np.testing.assert_allclose(found, np.conj(scipy.special.hyp1f1(1.5, 2.5, [1 + 2j]) / 3))
    with pytest.raises(
        TypeError,
        match=rf"^special\.hyp1f1 by a on the backend '{backend}' takes real floating-point "
        r"arrays, not complex128\.",
    ):
        slope(xp.special.hyp1f1, a, 1.5, z.detach())
    with pytest.raises(
        TypeError,
        match=rf"^special\.hyp1f1 on the backend '{backend}' takes real floating-point arrays, "
        r"not complex128\.$",
    ):
        xp.special.hyp1f1(z, 1.5, z)


@pytest.mark.parametrize(
    "a, b, x",
    [
        (-93.0, -26.4551, 0.338983),
        (12.25879260861587, -40.74120739138413, -0.9296333223009051),
        (-5.0, -4.9, 18.9),
    ],
)
def test_values_of_hyp1f1_that_is_a_polynomial_below_b_0(
    a: float, b: float, x: float, xp: Any
) -> None:
    """SciPy's (1.17) have no digit, or 9 of them."""
    value, *exact = true_derivatives(a, b, x)
    given = [argument(xp, v) for v in (a, b, x)]
    y = xp.special.hyp1f1(*given)
    np.testing.assert_allclose(values(y), value, rtol=1e-12)
    np.testing.assert_allclose([values(g) for g in mg.autograd.grad(y, given)], exact, rtol=1e-12)


# ----- entropies -----


def test_hyp1f1_is_nan_where_a_gamma_function_is_no_number() -> None:
    xp = mg.namespace("strict")
    assert np.isnan(
        values(xp.special.hyp1f1(*(xp.asarray([v]) for v in (100.0, 200.0, -9000.0))))
    ).all()


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_complex_x_log_y(name: str, xp: Any) -> None:
    x, y = argument(xp, [1 + 2j, 0j]), argument(xp, [0.5 - 1j, 0j])
    z = getattr(xp.special, name)(x, y)
    np.testing.assert_allclose(
        values(z), getattr(scipy.special, name)(values(x), values(y)), rtol=1e-14
    )
    logarithm = np.log(values(y)[0] + (name == "xlog1py"))
    np.testing.assert_allclose(
        slope(getattr(xp.special, name), x, y), np.conj([logarithm, 0]), rtol=1e-14
    )


@pytest.mark.parametrize("name", ["entr", "kl_div", "log_expit", "rel_entr"])
def test_complex_arrays_are_refused_by_name(name: str) -> None:
    for backend in ("numpy", "strict"):
        xp = mg.namespace(backend)
        z = xp.asarray(np.asarray([1j]))
        with pytest.raises(
            TypeError,
            match=rf"^special\.{name} on the backend '{backend}' takes real floating-point "
            r"arrays, not .*complex128\.$",
        ):
            getattr(xp.special, name)(*[z] * (2 if name in OF_TWO else 1))


@pytest.mark.parametrize("backend", ["strict", "jax"], indirect=True)
def test_kl_div_of_close_numbers_has_no_cancellation(backend: str) -> None:
    pytest.importorskip(
        {"strict": "array_api_strict"}.get(backend, backend), reason="an optional backend"
    )
    xp = mg.namespace(backend)
    x, d = np.asarray([0.3, 2.0]), np.asarray([2.0**-30, -(2.0**-20)])
    np.testing.assert_allclose(
        values(xp.special.kl_div(argument(xp, x), argument(xp, x + d))),
        d * d / (2 * x) * (1 - 2 * d / (3 * x)),
        rtol=1e-8,
    )


@pytest.mark.parametrize(
    "a, b, x",
    [
        (-3.0, 6.25, 239.0),
        (-3.0, 6.25, 1e4),
        (2.5, -0.5, -300.0),
        (-4.0, 10.5, 5.0),
        (0.0, 2.0, 500.0),
    ],
)
def test_hyp1f1_that_is_a_polynomial_is_one_everywhere(a: float, b: float, x: float) -> None:
    xp = mg.namespace("strict")
    y = xp.special.hyp1f1(*(xp.asarray([v]) for v in (a, b, x)))
    np.testing.assert_allclose(values(y), [scipy.special.hyp1f1(a, b, x)], rtol=1e-12)


@pytest.mark.parametrize("a, b, x", [(-3.0, 6.25, 239.0), (-12.0, 1.5, 226.0), (2.5, 0.5, -200.0)])
def test_hyp1f1_by_its_parameters_where_gamma_has_a_pole(a: float, b: float, x: float) -> None:
    """By a far out; by b where that is no polynomial.

    The derivatives are those between neighbouring points.
    """

    def gradient(a: float, b: float) -> list[float]:
        u, v = (mg.asarray(np.asarray([w]), requires_grad=True) for w in (a, b))
        return [
            g.item()
            for g in mg.autograd.grad(mg.special.hyp1f1(u, v, mg.asarray(np.asarray([x]))), [u, v])
        ]

    h = 2.0**-20
    at, sides = gradient(a, b), [gradient(a + d, b) for d in (h, -h)]
    np.testing.assert_allclose(at[0], (sides[0][0] + sides[1][0]) / 2, rtol=1e-9)
    if x < 0:
        np.testing.assert_allclose(at[1], (sides[0][1] + sides[1][1]) / 2, rtol=1e-9)


CANCELLING = [
    (-17.7, 16.9, 89.0),
    (-3 + 2.0**-33, 5.0, 80.0),
    (-27.6256, 11.0, 4.6),
    (36.0, 0.97, -150.4),
    (15.0006, -16.24, 202.5),
]
PAST_150 = [
    (300.0, 0.5, 200.0),
    (-3.0, 5.0, 450.0),
    (-3.0, 5.0, -450.0),
    (8.0, 5.0, -450.0),
    (-20.3, 19.7, 500.0),
    (3.0, 2.0, 400.0),
    (0.5, 40.3, -800.0),
    (73.3946, -57.6549, 278.373),
]


def true_derivatives(a: float, b: float, x: float) -> list[float]:
    """1F1 and its derivatives by all three."""
    with mp.workdps(90):
        p, h = [mp.mpf(v) for v in (a, b, x)], mp.mpf(10) ** -30
        sides = [
            [mp.hyp1f1(*(v + s * h * (i == by) for i, v in enumerate(p))) for s in (1, -1)]
            for by in range(3)
        ]
        return [float(mp.hyp1f1(*p)), *(float((high - low) / (2 * h)) for high, low in sides)]


@pytest.mark.parametrize("a, b, x", [*CANCELLING, *PAST_150])
def test_hyp1f1_where_its_terms_cancel_and_far_out(
    a: float, b: float, x: float, xp: Any, backend: str
) -> None:
    """In the first ones the terms are up to 1e16 times the sum."""
    value, *exact = true_derivatives(a, b, x)
    given = [argument(xp, [v]) for v in (a, b, x)]
    y = xp.special.hyp1f1(*given)
    slopes = mg.autograd.grad(y, given, xp.ones_like(y))
    if backend == "numpy":  # SciPy's values are less exact, and those of the derivative by x
        np.testing.assert_allclose(values(y), value, rtol=1e-8)
        slopes, exact = slopes[:2], exact[:2]
    else:
        np.testing.assert_allclose(values(y), value, rtol=1e-12)
    np.testing.assert_allclose([values(g)[0] for g in slopes], exact, rtol=1e-12)


def test_hyp1f1_by_b_of_polynomials(xp: Any) -> None:
    """1F1(-1, b, x) = 1 - x / b and 1F1(-2, b, x) = 1 - 2 x / b + x**2 / (b (b + 1))."""
    b, x = np.asarray([0.7, 5.0, 5.0, 5.0]), np.asarray([0.3, 90.0, 1e5, -20.0])
    first, second = (
        slope(
            xp.special.hyp1f1, argument(xp, np.full(4, -n)), argument(xp, b), argument(xp, x), by=1
        )
        for n in (1.0, 2.0)
    )
    np.testing.assert_allclose(first, x / b**2, rtol=1e-14)
    np.testing.assert_allclose(
        second, 2 * x / b**2 - x**2 * (2 * b + 1) / (b * (b + 1)) ** 2, rtol=1e-13
    )


def test_second_derivatives_of_hyp1f1_are_nan_where_floats_are_not_exact_enough() -> None:
    a, b, x = (
        mg.asarray(np.asarray([v, w]), requires_grad=True)
        for v, w in ((-17.7, 0.5), (16.9, 1.5), (89.0, 2.0))
    )
    y = mg.special.hyp1f1(a, b, x)
    (g,) = mg.autograd.grad(y, a, mg.namespace("numpy").ones_like(y), create_graph=True)
    second = values(mg.autograd.grad(g, a, mg.namespace("numpy").ones_like(g))[0])
    assert np.isfinite(values(g.detach())).all() and np.isnan(second[0])
    with mp.workdps(50):
        np.testing.assert_allclose(
            second[1], float(mp.diff(lambda t: mp.hyp1f1(t, 1.5, 2.0), 0.5, 2)), rtol=1e-12
        )


def test_hyp1f1_whose_terms_cancel_says_so() -> None:
    """With a at -80 the terms are 1e20 times the sum."""
    xp = mg.namespace("strict")
    assert np.isnan(values(xp.special.hyp1f1(*(xp.asarray([v]) for v in (-80.5, 0.5, 40.0))))).all()
    narrow = [xp.asarray(np.asarray([v], dtype=np.float32)) for v in (-40.5, 0.5, 20.0)]
    assert np.isnan(values(xp.special.hyp1f1(*narrow))).all()
    root = 0.7  # of the polynomial 1 - x / 0.7
    assert abs(values(xp.special.hyp1f1(*(xp.asarray([v]) for v in (-1.0, 0.7, root))))[0]) < 1e-15


def test_hyp1f1_has_no_second_derivative_where_it_has_no_first() -> None:
    a, b, x = (mg.asarray(np.asarray([v]), requires_grad=True) for v in (-300.5, 0.5, 20.0))
    grads = mg.autograd.grad(mg.special.hyp1f1(a, b, x), [a, b], create_graph=True)
    assert np.isnan([g.item() for g in grads]).all()
    second = [h for g in grads for h in mg.autograd.grad(g, [a, b, x], retain_graph=True)]
    assert np.isnan([h.item() for h in second]).all()
