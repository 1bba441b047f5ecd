"""Bessel functions of any real order: forms in the standard against SciPy, edges, dtypes, orders
that are arrays, slopes where recurrences cancel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad.errors import MissingRuleError
from multigrad_special import standard

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

# NumPy's, of infinities that a selection drops
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INF, NAN = math.inf, math.nan
OF_ORDER = ("jv", "yv", "iv", "ive", "kv", "kve")
PLAIN = ("j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e")
ARGUMENTS = np.concatenate(
    [np.geomspace(1e-3, 200, 60), [1.99, 2.0, 2.01, 9.99, 10.01, 24.99, 25.01]]
)
ORDERS = np.concatenate([np.arange(0, 13) * 0.5, [1e-9, 0.1, 0.9, 1.999, 20, 33.3, 70]])


def run(name: str, strict: Any, *args: Any) -> Any:
    return np.asarray(getattr(standard, name)(strict, *(strict.asarray(a) for a in args)))


# ----- the forms in the standard -----


@pytest.mark.parametrize("name", OF_ORDER)
# in orders of 70 exponents are of hundreds
@pytest.mark.parametrize("dtype, rtol", [("float64", 4e-13), ("float32", 3e-4)])
def test_standard_forms_of_any_order(name: str, dtype: str, rtol: float, strict: Any) -> None:
    v, x = (a.ravel().astype(dtype) for a in np.meshgrid(ORDERS, ARGUMENTS))
    y = run(name, strict, v, x)
    assert y.dtype == dtype
    v, x = v.astype(float), x.astype(float)
    expected = getattr(scipy.special, name)(v, x)
    size = (
        np.where(v < x, np.hypot(scipy.special.jv(v, x), scipy.special.yv(v, x)), np.abs(expected))
        if name in ("jv", "yv")
        else np.abs(expected)
    )
    seen = (
        (size > 1e-290) & (size < 1e290) if dtype == "float64" else (size > 1e-30) & (size < 1e30)
    )
    assert np.max((np.abs(y - expected) / size)[seen]) < rtol


@pytest.mark.parametrize("name", PLAIN)
def test_standard_forms_of_one_order(name: str, strict: Any) -> None:
    x = np.concatenate([ARGUMENTS, [1e-300, 1e-30, 1e-8, 300.0]])
    if name[0] == "j":
        x = np.concatenate([x, -x])
    # the amplitude of what oscillates
    least = np.sqrt(2 / math.pi / np.maximum(np.abs(x), 10)) if name[0] in "jy" else 0.0
    expected = getattr(scipy.special, name)(x)
    size = np.maximum(np.abs(expected), least)
    seen = (size > 1e-290) & (size < 1e290)
    assert np.max((np.abs(run(name, strict, x) - expected) / size)[seen]) < 1e-13


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv"])
def test_standard_forms_of_negative_orders(name: str, strict: Any) -> None:
    v, x = (
        a.ravel() for a in np.meshgrid([-0.5, -1.0, -1.3, -2.0, -4.75], ARGUMENTS[ARGUMENTS < 100])
    )
    expected = getattr(scipy.special, name)(v, x)
    size = (
        np.hypot(scipy.special.jv(v, x), scipy.special.yv(v, x))
        if name in ("jv", "yv")
        else np.abs(expected)
    )
    assert np.max(np.abs(run(name, strict, v, x) - expected) / size) < 1e-13


def test_near_the_turning_point(strict: Any) -> None:
    """Where the argument is almost the order, two saddle points meet."""
    v = np.asarray([5.0, 30.0, 100.0, 200.0, 400.0]).repeat(5)
    x = v * np.tile([0.98, 1 - 1e-6, 1.0, 1 + 1e-6, 1.02], 5)
    for name in ("jv", "yv"):
        np.testing.assert_allclose(
            run(name, strict, v, x), getattr(scipy.special, name)(v, x), rtol=2e-12
        )


EDGES = np.asarray([0.0, -0.0, -1.0, INF, -INF, NAN])


@pytest.mark.parametrize("name", [*PLAIN, "jv", "yv", "yn", "kv"])
def test_edges_are_those_of_scipy(name: str, strict: Any) -> None:
    for v in (0, 1, 2, -1) if name in ("jv", "yv", "yn", "kv") else ((),):
        order = () if v == () else (np.full(6, v),)
        np.testing.assert_allclose(
            run(name, strict, *order, EDGES),
            getattr(scipy.special, name)(*order, EDGES),
            rtol=1e-14,
        )


@pytest.mark.parametrize("name", ["i0e", "i1e", "k0e", "k1e", "ive", "kve"])
def test_scaled_functions_are_flat_at_infinity(name: str, xp: Any) -> None:
    function = getattr(xp.special, name)
    of_order = name in ("ive", "kve")
    for order in (0.0, 1.0, 2.0) if of_order else (None,):
        x = xp.asarray([INF, 1e300], requires_grad=True)
        y = function(xp.asarray(order, dtype=x.dtype), x) if of_order else function(x)
        (g,) = mg.autograd.grad(xp.sum(y), x)
        np.testing.assert_array_equal(values(g), [0.0, 0.0])


@pytest.mark.parametrize("name, at_infinity", [("iv", INF), ("ive", 0.0), ("kve", 0.0)])
def test_edges_where_scipy_has_nan_for_a_limit(name: str, at_infinity: float, strict: Any) -> None:
    y = run(
        name,
        strict,
        np.asarray([0.0, 0.0, 0.5, 0.5, 2.0, 0.0]),
        np.asarray([INF, 0.0, -1.0, INF, 1.0, NAN]),
    )
    np.testing.assert_allclose(y[[0, 2, 3, 5]], [at_infinity, NAN, at_infinity, NAN])
    np.testing.assert_allclose(
        y[[1, 4]], getattr(scipy.special, name)([0.0, 2.0], [0.0, 1.0]), rtol=1e-14
    )


# ----- derivatives -----

SLOPES: dict[str, Any] = {
    "jv": scipy.special.jvp,
    "yv": scipy.special.yvp,
    "iv": scipy.special.ivp,
    "kv": scipy.special.kvp,
}


@pytest.mark.parametrize("name", SLOPES)
def test_two_derivatives_in_any_order(name: str, xp: Any) -> None:
    v, z = np.asarray([0.0, 1.0, 2.5, 0.3, 7.0]), np.asarray([0.7, 3.1, 1.3, 12.0, 5.0])
    x = xp.asarray(z, requires_grad=True)
    y = getattr(xp.special, name)(xp.asarray(v), x)
    for n in (1, 2):
        (y,) = mg.autograd.grad(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(
            values(y), [SLOPES[name](a, b, n) for a, b in zip(v, z, strict=True)], rtol=1e-12
        )


@pytest.mark.parametrize(
    "name, expected",
    [
        ("j0", [0.0, -0.5, 0.0, 0.375]),
        ("j1", [0.5, 0.0, -0.375, 0.0]),
        ("i1", [0.5, 0.0, 0.375, 0.0]),
    ],
)
def test_nothing_is_divided_by_an_argument_of_nothing(
    name: str, expected: list[float], xp: Any
) -> None:
    x = xp.asarray(0.0, requires_grad=True)
    y = getattr(xp.special, name)(x)
    for wanted in expected:
        (y,) = mg.autograd.grad(y, x, create_graph=True)
        assert float(values(y)) == pytest.approx(wanted, abs=1e-15)


@pytest.mark.parametrize("name", ["y0", "y1", "k0", "k0e", "k1", "k1e"])
def test_slopes_at_a_pole_and_outside(name: str, xp: Any) -> None:
    x = xp.asarray(np.asarray([0.0, -1.0, NAN]), requires_grad=True)
    (g,) = mg.autograd.grad(getattr(xp.special, name)(x).sum(), x)
    np.testing.assert_array_equal(values(g), [INF if name[0] == "y" else -INF, NAN, NAN])


@pytest.mark.parametrize(
    "name, v, terms",
    [("kve", 0.0, (-1, 8, 9 / 128)), ("kve", 2.5, (24, 8, 0)), ("ive", 1.0, (-3, 8, 0))],
)
def test_slopes_far_out_where_recurrences_cancel(
    name: str, v: float, terms: tuple[Any, ...], xp: Any
) -> None:
    """By the first terms of the series: the recurrence alone has no digit left at 1e16."""
    z = np.asarray([1e10, 1e16])
    sign = 1 if name == "kve" else -1
    second = sign * (4 * v * v - 1) / 8
    exact = (
        -math.sqrt(math.pi / 2 if sign > 0 else 1 / (2 * math.pi))
        * z**-1.5
        * (0.5 + 1.5 * second / z)
    )
    x = xp.asarray(z, requires_grad=True)
    (g,) = mg.autograd.grad(getattr(xp.special, name)(v, x).sum(), x)
    np.testing.assert_allclose(values(g), exact, rtol=1e-14)
    if v in (0.0, 1.0):
        (g,) = mg.autograd.grad(getattr(xp.special, f"{name[0]}{int(v)}e")(x).sum(), x)
        np.testing.assert_allclose(values(g), exact, rtol=1e-14)


@pytest.mark.parametrize("name", [*OF_ORDER, "yn"])
def test_there_is_no_derivative_by_the_order(name: str, xp: Any) -> None:
    v, x = xp.asarray([1.0, 2.0], requires_grad=True), xp.asarray([0.5, 1.5])
    y = getattr(xp.special, name)(v, x).sum()
    argument = "n" if name == "yn" else "v"
    with pytest.raises(
        MissingRuleError,
        match=f"'special.{name}' has no derivative rule for its argument '{argument}'",
    ):
        y.backward()


# ----- orders and dtypes -----


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32"])
def test_orders_of_any_dtype_broadcast(dtype: str, xp: Any, backend: str) -> None:
    """One less than an unsigned 0 is -1 in the recurrence. NumPy promotes as everywhere."""
    v = np.asarray([[0], [1], [2]], dtype=dtype)
    z = np.asarray([0.5, 1.5, 3.0], dtype="float32")
    for name in ("jv", "yn", "kve"):
        x = xp.asarray(z, requires_grad=True)
        y = getattr(xp.special, name)(xp.asarray(v), x)
        (g,) = mg.autograd.grad(y.sum(), x)
        assert y.dtype == (np.result_type(v, z) if backend == "numpy" else xp.float32)
        assert g.dtype == xp.float32 and y.shape == (3, 3) and g.shape == (3,)
        f = getattr(scipy.special, name)
        order, z64 = v.astype(float), z.astype(float)
        np.testing.assert_allclose(values(y), f(order, z64), rtol=2e-5)
        slope = {
            "jv": lambda v, z: scipy.special.jvp(v, z),
            "yn": lambda v, z: scipy.special.yvp(v, z),
            "kve": lambda v, z: np.exp(z) * (scipy.special.kv(v, z) + scipy.special.kvp(v, z)),
        }[name]
        exact = sum(slope(float(k), z64) for k in range(3))
        np.testing.assert_allclose(values(g), exact, rtol=1e-4, atol=2e-6)


def test_a_scalar_order_and_a_float16_argument(xp: Any) -> None:
    x = xp.asarray(np.asarray([0.5, 2.0], dtype="float32"))
    assert xp.special.jv(2, x).dtype == xp.float32
    np.testing.assert_allclose(
        values(xp.special.jv(2, x)), scipy.special.jv(2, [0.5, 2.0]), rtol=1e-5
    )


@pytest.mark.parametrize("name", [*PLAIN, "i0", "i1e"])
def test_float16_is_computed_in_float32(name: str) -> None:
    x = mg.asarray(np.asarray([0.5, 2.0, 5.0], dtype="float16"), requires_grad=True)
    y = getattr(mg.special, name)(x)
    (g,) = mg.autograd.grad(y.sum(), x)
    assert y.dtype == g.dtype == np.float16
    np.testing.assert_allclose(
        y.detach().array, getattr(scipy.special, name)([0.5, 2.0, 5.0]), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("name", ["jv", "yv", "kv", "kve", "iv"])
def test_complex_arguments_have_the_holomorphic_derivative(
    name: str, xp: Any, backend: str
) -> None:
    """SciPy's on NumPy and JAX, which calls it; refused by name elsewhere."""
    z, h = np.asarray([0.7 + 0.4j, 30.0 - 2.0j]), 1e-6
    x, order = xp.asarray(z, requires_grad=True), xp.asarray(np.asarray([1, 2]))
    if backend not in ("numpy", "jax"):
        with pytest.raises(
            TypeError,
            match=rf"^special\.{name} on the backend '{backend}' takes real floating-point "
            r"arrays, not .*complex128\.",
        ):
            getattr(xp.special, name)(order, x)
        return
    y = getattr(xp.special, name)(order, x)
    y.backward(xp.ones_like(y))
    f = getattr(scipy.special, name)
    np.testing.assert_allclose(values(y), f([1, 2], z), rtol=1e-14)
    differences = (f([1, 2], z + h) - f([1, 2], z - h)) / (2 * h)
    np.testing.assert_allclose(np.conj(values(x.grad)), differences, rtol=2e-7)
    with pytest.raises(
        TypeError,
        match=rf"^special\.{name} on the backend '{backend}' takes real floating-point arrays, "
        r"not complex128\.",
    ):
        getattr(xp.special, name)(x.detach(), x.detach())


@pytest.mark.parametrize("name", ["j0", "k1e", "ive", "i0"])
def test_complex_arrays_are_refused(name: str, xp: Any, backend: str) -> None:
    arguments = (1, xp.asarray([0.5 + 1j])) if name == "ive" else (xp.asarray([0.5 + 1j]),)
    ours = (backend, name) != ("jax", "i0")
    message = (
        f"special.{name.replace('j0', 'j[0v]').replace('k1e', 'k(1|v)e')} on the backend "
        f"'{backend}' takes real floating-point arrays, not "
    )
    with pytest.raises(TypeError, match=message if ours else "i0"):
        getattr(xp.special, name)(*arguments)


# ----- transformations -----


def test_forward_mode_and_vmap(xp: Any) -> None:
    v, x = xp.asarray([0.0, 1.0, 2.0]), xp.asarray([0.7, 1.3, 4.0])
    _, slope = mg.func.jvp(lambda x: xp.special.jv(v, x), (x,), (xp.ones_like(x),))
    np.testing.assert_allclose(
        values(slope), scipy.special.jvp(np.arange(3), [0.7, 1.3, 4.0]), rtol=1e-13
    )
    rows = mg.func.vmap(xp.special.kv, in_axes=(0, None))(v, x)
    np.testing.assert_allclose(
        values(rows), scipy.special.kv(np.arange(3)[:, None], [0.7, 1.3, 4.0]), rtol=1e-13
    )


def test_under_jit() -> None:
    jax = pytest.importorskip("jax", reason="jax is an optional backend")

    @jax.jit
    def slope(array: Any) -> Any:
        x = mg.asarray(array, requires_grad=True)
        mg.special.k1(x).sum().backward()
        return x.grad.array

    np.testing.assert_allclose(
        slope(jax.numpy.asarray([0.5, 3.0])), scipy.special.kvp(1, [0.5, 3.0]), rtol=1e-13
    )
