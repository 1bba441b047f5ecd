"""Functions of multigrad-special that are made of elementary functions: edges, dtypes, higher
derivatives, forms in the standard, SciPy's mode.

Accuracy on grids is for tests/precision/special; rules and shapes on every backend are for the
conformance suite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INF, NAN = math.inf, math.nan
DEGREE = math.pi / 180
UNARY = ("cbrt", "cosdg", "cosm1", "cotdg", "exp10", "exp2", "exprel", "sinc", "sindg", "tandg")
BINARY = ("boxcox", "boxcox1p", "huber", "inv_boxcox", "inv_boxcox1p", "pseudo_huber")
RANDOM = np.random.default_rng(0)
LINE = np.concatenate(
    [np.linspace(-29.7, 30.3, 201), np.geomspace(1e-12, 1, 40), -np.geomspace(1e-12, 1, 40)]
)


def slope(f: Any, *args: Any, by: int = 0, order: int = 1) -> Any:
    """The derivative of that order of a function by one of its arguments, element by element."""
    y = f(*args)
    for _ in range(order):
        (y,) = mg.autograd.grad(
            y, args[by], y.__array_namespace__().ones_like(y), create_graph=True
        )
    return values(y)


def argument(xp: Any, x: Any) -> Any:
    return xp.asarray(np.asarray(x, dtype=float), requires_grad=True)


# ----- values -----


@pytest.mark.parametrize("name", UNARY)
def test_values_are_those_of_scipy(name: str, xp: Any) -> None:
    x = LINE[(np.abs(LINE) > 1e-2) | (name != "cotdg")]
    np.testing.assert_allclose(
        values(getattr(xp.special, name)(argument(xp, x))),
        getattr(scipy.special, name)(x),
        rtol=2e-12,
        atol=1e-15,
    )


@pytest.mark.parametrize("name", BINARY)
def test_values_of_two_arguments_are_those_of_scipy(name: str, xp: Any) -> None:
    x, y = np.meshgrid(np.linspace(0.03, 9, 30), np.linspace(-0.1, 3, 30))
    np.testing.assert_allclose(
        values(getattr(xp.special, name)(argument(xp, x), argument(xp, y))),
        getattr(scipy.special, name)(x, y),
        rtol=1e-12,
    )


EDGES = np.asarray([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN])


@pytest.mark.parametrize("name", ["cbrt", "cosm1", "exp10", "exp2", "exprel", "sinc"])
def test_edges_are_those_of_scipy(name: str, xp: Any) -> None:
    np.testing.assert_allclose(
        values(getattr(xp.special, name)(argument(xp, EDGES))),
        getattr(scipy.special, name)(EDGES),
        rtol=1e-14,
        atol=1e-16,
    )


@pytest.mark.parametrize("name", BINARY)
def test_edges_of_two_arguments_are_those_of_scipy(name: str, xp: Any) -> None:
    x, y = (
        a.ravel() for a in np.meshgrid([-2.0, -1.0, 0.0, 0.5, 2.0, NAN], [-1.0, 0.0, 1.0, 2.0, NAN])
    )
    z = values(getattr(xp.special, name)(argument(xp, x), argument(xp, y)))
    np.testing.assert_allclose(z, getattr(scipy.special, name)(x, y), rtol=1e-14)


def test_degrees_are_exact_at_right_angles(xp: Any) -> None:
    x = argument(xp, [0.0, 90.0, 180.0, 270.0, 360.0, -90.0, -180.0, 3690.0])
    np.testing.assert_array_equal(values(xp.special.sindg(x)), [0, 1, 0, -1, 0, -1, 0, 1])
    np.testing.assert_array_equal(values(xp.special.cosdg(x)), [1, 0, -1, 0, 1, 0, -1, 0])
    np.testing.assert_array_equal(values(xp.special.tandg(x)), [0, INF, 0, INF, 0, INF, 0, INF])
    np.testing.assert_array_equal(values(xp.special.cotdg(x)), [INF, 0, INF, 0, INF, 0, INF, 0])
    np.testing.assert_allclose(
        slope(xp.special.sindg, x), DEGREE * values(xp.special.cosdg(x)), rtol=1e-15
    )


def test_tangents_near_their_poles_keep_their_digits(xp: Any) -> None:
    """SciPy's cotdg(1e-20) is inf."""
    x = argument(xp, [1e-20, 1e-9])
    np.testing.assert_allclose(values(xp.special.cotdg(x)), 1 / (DEGREE * values(x)), rtol=1e-15)
    np.testing.assert_allclose(
        values(xp.special.tandg(argument(xp, 90 - 2.0**-40))), 1 / (DEGREE * 2.0**-40), rtol=1e-15
    )


def test_radian(xp: Any) -> None:
    d, m, s = (argument(xp, v) for v in ([10.0, -3.0], [30.0, 0.0], [15.0, 7.0]))
    np.testing.assert_allclose(
        values(xp.special.radian(d, m, s)),
        scipy.special.radian(values(d), values(m), values(s)),
        rtol=1e-15,
    )
    for by, expected in enumerate((DEGREE, DEGREE / 60, DEGREE / 3600)):
        np.testing.assert_allclose(
            slope(xp.special.radian, d, m, s, by=by), [expected] * 2, rtol=1e-15
        )


# ----- derivatives -----


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_exprel_and_sinc_have_exact_derivatives_of_every_order_at_0(order: int, xp: Any) -> None:
    x = argument(xp, [0.0, 1e-9])
    np.testing.assert_allclose(
        slope(xp.special.exprel, x, order=order), [1 / (order + 1)] * 2, rtol=1e-8
    )
    even = (-1) ** (order // 2) * math.pi**order / (order + 1) if order % 2 == 0 else 0.0
    np.testing.assert_allclose(slope(xp.special.sinc, x, order=order), [even] * 2, atol=1e-5)


def test_exprel_far_out(xp: Any) -> None:
    x = argument(xp, [-1e4, 700.0, -INF, INF, NAN])
    expected = [1e-8, math.exp(700.0) * (1 - 1 / 700) / 700, 0.0, INF, NAN]
    np.testing.assert_allclose(slope(xp.special.exprel, x), expected, rtol=1e-12)


def test_boxcox_by_lmbda_near_0_has_no_cancellation(xp: Any) -> None:
    x, y = argument(xp, [0.3, 2.0, 50.0]), np.log([0.3, 2.0, 50.0])
    for lmbda in (0.0, 1e-300, -1e-12):
        power = argument(xp, [lmbda] * 3)
        np.testing.assert_allclose(slope(xp.special.boxcox, x, power, by=1), y**2 / 2, rtol=1e-10)
        np.testing.assert_allclose(
            slope(xp.special.boxcox, x, power, by=1, order=2), y**3 / 3, rtol=1e-10
        )
        z = argument(xp, y)
        np.testing.assert_allclose(
            slope(xp.special.inv_boxcox, z, power, by=1), -(y**2) / 2 * np.exp(y), rtol=1e-9
        )


@pytest.mark.parametrize("name", ["boxcox", "boxcox1p"])
def test_gradients_of_boxcox_at_the_end_and_outside(name: str, xp: Any) -> None:
    end = 0.0 if name == "boxcox" else -1.0
    x, lmbda = argument(xp, [end, end, end, end - 1]), argument(xp, [2.0, 1.0, 0.5, 2.0])
    np.testing.assert_array_equal(slope(getattr(xp.special, name), x, lmbda), [0.0, 1.0, INF, NAN])
    np.testing.assert_allclose(
        slope(getattr(xp.special, name), x, lmbda, by=1), [0.25, 1.0, 4.0, NAN]
    )


@pytest.mark.parametrize("name", ["inv_boxcox", "inv_boxcox1p"])
def test_gradients_of_the_inverse_at_the_end_and_outside(name: str, xp: Any) -> None:
    y, lmbda = argument(xp, [-2.0, -1.0, -0.5, -3.0]), argument(xp, [0.5, 1.0, 2.0, 0.5])
    np.testing.assert_array_equal(slope(getattr(xp.special, name), y, lmbda), [0.0, 1.0, INF, NAN])


def test_gradients_of_huber(xp: Any) -> None:
    delta, r = argument(xp, [1.0, 1.0, 1.0, 1.0, -1.0]), argument(xp, [0.5, 1.0, -3.0, NAN, 0.0])
    np.testing.assert_array_equal(
        slope(xp.special.huber, delta, r, by=1), [0.5, 1.0, -1.0, NAN, NAN]
    )
    np.testing.assert_array_equal(slope(xp.special.huber, delta, r, by=0)[:3], [0.0, 0.0, 2.0])


def test_pseudo_huber_has_curvature_without_cancellation(xp: Any) -> None:
    delta, r = argument(xp, [1.0, 1.0, 1e-3]), argument(xp, [1e-9, 1e6, 1e4])
    d, x = values(delta), values(r)
    np.testing.assert_allclose(
        slope(xp.special.pseudo_huber, delta, r, by=1, order=2),
        (1 + (x / d) ** 2) ** -1.5,
        rtol=1e-12,
    )


def test_forward_mode_and_batches(xp: Any) -> None:
    x, lmbda = argument(xp, [0.5, 2.0]), argument(xp, [0.3, 0.0])
    _, tangent = mg.func.jvp(
        lambda v: xp.special.boxcox(v, lmbda.detach()), (x.detach(),), (xp.ones_like(x.detach()),)
    )
    np.testing.assert_allclose(values(tangent), values(x) ** (values(lmbda) - 1), rtol=1e-14)
    each = mg.func.vmap(mg.func.grad(xp.special.pseudo_huber, argnums=1))(
        lmbda.detach() + 1, x.detach()
    )
    np.testing.assert_allclose(
        values(each), values(x) / np.sqrt(1 + (values(x) / (values(lmbda) + 1)) ** 2), rtol=1e-14
    )


def test_under_jit() -> None:
    jax = pytest.importorskip("jax", reason="jax is an optional backend")

    @jax.jit
    def both(array: Any) -> Any:
        x = mg.asarray(array, requires_grad=True)
        y = mg.special.exprel(x)
        y.sum().backward()
        return y.detach().array, x.grad.array

    y, g = both(jax.numpy.asarray([0.0, 1.0]))
    np.testing.assert_allclose(y, [1.0, math.e - 1], rtol=1e-15)
    np.testing.assert_allclose(g, [0.5, 1.0], rtol=1e-14)


# ----- dtypes -----


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_dtypes_are_those_of_floating_arguments(name: str, xp: Any, backend: str) -> None:
    f = getattr(xp.special, name)
    whole, short = (
        xp.asarray(np.asarray([1, 2])),
        xp.asarray(np.asarray([0.5, 1.5], dtype=np.float32)),
    )
    if name in UNARY:
        assert f(short).dtype == xp.float32
        np.testing.assert_allclose(
            values(f(whole)), getattr(scipy.special, name)([1.0, 2.0]), rtol=1e-6, atol=1e-15
        )
    else:
        for args in ((short, short), (2.0, short), (short, 2.0), (short, 2)):
            assert f(*args).dtype == xp.float32
        for args in ((whole, short), (short, whole)):
            # NumPy promotes as everywhere
            assert f(*args).dtype == (xp.float64 if backend == "numpy" else xp.float32)
        np.testing.assert_allclose(
            values(f(whole, whole)), getattr(scipy.special, name)([1.0, 2.0], [1.0, 2.0]), rtol=1e-6
        )


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
def test_float16_is_computed_in_float32(name: str, backend: str) -> None:
    xp = mg.namespace(backend)
    x = np.asarray([0.3, 1.1, 2.7], dtype=np.float16)
    count = 1 if name in UNARY else 2
    t = [xp.asarray(x, requires_grad=True) for _ in range(count)]
    y = getattr(xp.special, name)(*t)
    y.sum().backward()
    assert values(y).dtype == values(t[0].grad).dtype == np.float16
    np.testing.assert_allclose(
        values(y), getattr(scipy.special, name)(*[x.astype(float)] * count), rtol=1e-3
    )


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_complex_arrays_are_refused_by_name(name: str, xp: Any) -> None:
    z = xp.asarray(np.asarray([1 + 1j, 2j]))
    if name == "sinc" and type(z.array).__module__ == "numpy":
        np.testing.assert_allclose(
            slope(xp.special.sinc, w := z.detach().requires_grad_()), slope(xp.sinc, w)
        )
        return
    with pytest.raises(
        TypeError,
        match=rf"^special\.{name} on the backend '\w+' takes real floating-point arrays, not "
        r".*complex128\.",
    ):
        getattr(xp.special, name)(*[z] * (1 if name in UNARY else 2))


@pytest.mark.parametrize("name", [*BINARY, "kl_div", "rel_entr", "xlog1py", "xlogy"])
def test_an_array_of_integers_beside_what_is_differentiated(name: str, xp: Any) -> None:
    f = getattr(xp.special, name)
    whole, x = np.asarray([1, 2]), argument(xp, [0.3, 0.4])
    for by in (0, 1):
        given = [xp.asarray(whole), x] if by else [x, xp.asarray(whole)]
        plain = [argument(xp, whole), x] if by else [x, argument(xp, whole)]
        np.testing.assert_allclose(slope(f, *given, by=by), slope(f, *plain, by=by), rtol=1e-15)


# ----- SciPy's mode -----


def test_names_are_those_of_scipy() -> None:
    assert {*UNARY, *BINARY, "radian"} <= set(dir(mg.namespace("numpy").special))
    assert all(hasattr(scipy.special, name) for name in (*UNARY, *BINARY, "radian"))
