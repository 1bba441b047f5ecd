"""Complete elliptic integrals and Legendre functions: the forms in the standard against SciPy,
edges, slopes near the singular points.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad.errors import MissingRuleError

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

# NumPy's, of infinities that a selection drops
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("name", ["ellipk", "ellipe", "ellipkm1"])
@pytest.mark.parametrize("dtype, rtol", [("float64", 2e-14), ("float32", 3e-6)])
def test_elliptic_integrals_are_those_of_scipy(
    name: str, dtype: str, rtol: float, xp: Any, request: pytest.FixtureRequest
) -> None:
    near = np.geomspace(1e-7, 0.9, 60).astype(dtype)
    x = np.concatenate(
        [near, 1 + 1e4 * near, [0]] if name == "ellipkm1" else [1 - near, -1e4 * near, [0, 1]]
    ).astype(dtype)
    y = getattr(xp.special, name)(xp.asarray(x))
    assert values(y).dtype == dtype
    np.testing.assert_allclose(values(y), getattr(scipy.special, name)(x.astype(float)), rtol=rtol)


@pytest.mark.parametrize("name", ["ellipk", "ellipe", "ellipkm1"])
def test_edges_are_those_of_scipy(name: str, xp: Any) -> None:
    x = np.asarray([0.0, -0.0, 1.0, -1.0, 2.0, INF, -INF, NAN])
    np.testing.assert_allclose(
        values(getattr(xp.special, name)(xp.asarray(x))),
        getattr(scipy.special, name)(x),
        rtol=1e-14,
    )


def slopes(function: Any, x: Any, xp: Any) -> tuple[Any, Any]:
    """The first and the second derivative."""
    t = xp.asarray(np.asarray(x), requires_grad=True)
    (g,) = mg.autograd.grad(function(t).sum(), t, create_graph=True)
    return values(g), values(mg.autograd.grad(g.sum(), t)[0])


def test_slopes_of_elliptic_integrals_where_closed_forms_cancel(xp: Any) -> None:
    """About m = 0 by the power series (DLMF 19.5.1 and 19.5.2), about m = 1 by the leading terms
    (19.12.1).
    """
    first, second = slopes(xp.special.ellipk, [0.0, 1e-20, -1e-12], xp)
    np.testing.assert_allclose(first, math.pi / 8, rtol=2e-12)
    np.testing.assert_allclose(second, 9 * math.pi / 64, rtol=5e-12)
    first, second = slopes(xp.special.ellipe, [0.0, 1e-20, -1e-12], xp)
    np.testing.assert_allclose(first, -math.pi / 8, rtol=1e-12)
    np.testing.assert_allclose(second, -3 * math.pi / 64, rtol=5e-12)
    p = np.asarray([1e-200, 1e-30, 1e-20])
    first, second = slopes(xp.special.ellipkm1, p, xp)
    np.testing.assert_allclose(first, -0.5 / p, rtol=1e-13)
    np.testing.assert_allclose(second[1:], 0.5 / p[1:] ** 2, rtol=1e-12)


def test_slopes_of_elliptic_integrals_at_the_ends_and_outside(xp: Any) -> None:
    for name, x, expected in (
        ("ellipk", [1.0, 1.5, NAN], INF),
        ("ellipe", [1.0, 1.5, NAN], -INF),
        ("ellipkm1", [0.0, -0.5, NAN], -INF),
    ):
        first, second = slopes(getattr(xp.special, name), x, xp)
        np.testing.assert_array_equal(first, [expected, NAN, NAN])
        assert np.all(np.isnan(second[1:]))


def test_complex_elliptic_integrals_are_refused(xp: Any, backend: str) -> None:
    with pytest.raises(
        TypeError,
        match=f"special.ellipk on the backend '{backend}' takes real floating-point arrays, not ",
    ):
        xp.special.ellipk(xp.asarray([0.5 + 0j]))


# ----- Legendre functions -----

ORDERS, DEGREES, WHERE = (
    a.ravel().astype(float)
    for a in np.meshgrid(
        [-4, -1, 0, 1, 2, 3, 6], [-3, -1, 0, 1, 2, 5, 12, 30], [-0.99, -0.4, 0.0, 0.3, 0.8, 0.999]
    )
)


def test_legendre_functions_are_those_of_scipy(xp: Any) -> None:
    y = values(xp.special.lpmv(*(xp.asarray(a) for a in (ORDERS, DEGREES, WHERE))))
    np.testing.assert_allclose(
        y, scipy.special.lpmv(ORDERS, DEGREES, WHERE), rtol=1e-11, atol=1e-14
    )


def test_slopes_of_legendre_functions(xp: Any) -> None:
    """By DLMF 14.10.5 from SciPy's values."""
    m, v, x = (a[(DEGREES > 0) & (np.abs(ORDERS) < DEGREES)] for a in (ORDERS, DEGREES, WHERE))
    f = scipy.special.lpmv
    exact = ((v + m) * f(m, v - 1, x) - v * x * f(m, v, x)) / (1 - x * x)
    first, second = slopes(lambda t: xp.special.lpmv(xp.asarray(m), xp.asarray(v), t), x, xp)
    np.testing.assert_allclose(first, exact, rtol=1e-10, atol=1e-12 * np.max(np.abs(exact)))
    # DLMF 14.2.2
    equation = (2 * x * exact - (v * (v + 1) - m * m / (1 - x * x)) * f(m, v, x)) / (1 - x * x)
    np.testing.assert_allclose(second, equation, rtol=1e-8, atol=1e-12 * np.max(np.abs(equation)))


def test_slopes_of_legendre_functions_at_the_ends(xp: Any) -> None:
    m, v = (
        np.asarray([0, 0, 0, 2, 2, -2, 3, 1, 0]),
        np.asarray([2.0, 3.0, 4.0, 2.0, 3.0, 2.0, 5.0, 2.0, 0.0]),
    )
    x = np.asarray([1.0, -1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
    first, second = slopes(lambda t: xp.special.lpmv(xp.asarray(m), xp.asarray(v), t), x, xp)
    np.testing.assert_allclose(
        first, [3.0, 6.0, -10.0, -6.0, -30.0, -0.25, 0.0, INF, 0.0], rtol=1e-14
    )
    assert np.all(np.isnan(second))  # further derivatives there are unknown, and not 0


def test_legendre_functions_of_real_degree(backend: str, xp: Any) -> None:
    """SciPy has them, and JAX calls SciPy; the form in the standard says nan."""
    y = values(xp.special.lpmv(xp.asarray(0.0), xp.asarray([0.5, 51.0]), xp.asarray(0.3)))
    expected = scipy.special.lpmv(0, [0.5, 51.0], 0.3) if backend != "strict" else [NAN, NAN]
    np.testing.assert_allclose(y, expected, rtol=1e-14)


def test_orders_of_legendre_functions_may_be_integers_and_have_no_derivative(xp: Any) -> None:
    x = xp.asarray(np.asarray([0.3, 0.6], dtype="float32"), requires_grad=True)
    y = xp.special.lpmv(xp.asarray(np.asarray([0, 1], dtype="uint8")), 3, x)
    (g,) = mg.autograd.grad(y.sum(), x)
    assert y.dtype == g.dtype == xp.float32
    np.testing.assert_allclose(
        values(g),
        [7.5 * 0.09 - 1.5, (-15 * 0.6 + 1.5 * 0.6 * (5 * 0.36 - 1) / 0.64) * 0.8],
        rtol=1e-5,
    )
    v = xp.asarray([2.0], requires_grad=True)
    with pytest.raises(
        MissingRuleError, match="'special.lpmv' has no derivative rule for its argument 'v'"
    ):
        xp.special.lpmv(1, v, xp.asarray([0.5])).sum().backward()


def test_calls_of_scipy_from_jax_under_jit_and_vmap() -> None:
    jax = pytest.importorskip("jax", reason="jax is an optional backend")

    @jax.jit
    def slope(array: Any) -> Any:
        x = mg.asarray(array, requires_grad=True)
        mg.special.lpmv(1, 2.5, x).sum().backward()
        return x.grad.array

    x = jax.numpy.asarray([0.2, 0.6])
    h = 1e-6
    exact = (
        scipy.special.lpmv(1, 2.5, np.asarray(x) + h)
        - scipy.special.lpmv(1, 2.5, np.asarray(x) - h)
    ) / (2 * h)
    np.testing.assert_allclose(slope(x), exact, rtol=1e-8)
    np.testing.assert_allclose(jax.vmap(slope)(x[:, None])[:, 0], exact, rtol=1e-8)
