"""What the functions of multigrad-special take: dtypes, complex arrays, orders and counts; and
jax.jit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import func
from multigrad.errors import MissingRuleError
from multigrad_conformance.differences import slope as along

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

mg.special  # all plugins are loaded
ARRAYS = {
    name.removeprefix("special."): [p for p, role in op.roles.items() if role == "array"]
    for name, op in mg.registry.OPS.items()
    if name.startswith("special.")
}
ONE = [n for n, arrays in ARRAYS.items() if len(arrays) == 1]
SEVERAL = [n for n in ARRAYS if n not in ONE]
EVERYWHERE = (
    *("gamma", "loggamma", "rgamma", "digamma", "erf", "erfc", "erfcx", "ndtr", "log_ndtr"),
    "sinc",
)
BY_SCIPY = ("exp1", "expi", "spence", "jv", "yv", "iv", "kv", "kve")
COMPLEX = (*EVERYWHERE, *BY_SCIPY, "psi", "polygamma", "xlogy", "xlog1py", "hyp1f1")
REAL = [n for n in ARRAYS if n not in COMPLEX]


def of_arrays(xp: Any, name: str) -> Callable[..., Any]:
    """The function of its arrays alone, with some value for a plain parameter."""
    function = getattr(xp.special, name)
    if name == "zeta_derivative":
        return partial(function, 1)
    return partial(function, d=2) if name == "multigammaln" else function


def by(name: str) -> list[int]:
    """The positions of the arrays that the function is differentiated by."""
    op = mg.registry.OPS[f"special.{name}"]
    return [i for i, p in enumerate(ARRAYS[name]) if p in op.vjp or op.kind == "composite"]


# ----- dtypes -----


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
def test_float16_is_computed_in_float32(name: str, backend: str, xp: Any) -> None:
    x = np.asarray([0.3, 0.7], dtype=np.float16)
    given = [xp.asarray(x, requires_grad=i in by(name)) for i in range(len(ARRAYS[name]))]
    y = of_arrays(xp, name)(*given)
    slopes = mg.autograd.grad(xp.sum(y), [given[i] for i in by(name)])
    assert {str(values(v).dtype) for v in (y.detach(), *slopes)} == {"float16"}
    wide = of_arrays(mg, name)(*[x.astype(np.float32)] * len(given)).array
    np.testing.assert_allclose(values(y), wide, rtol=2e-3, atol=1e-6)


@pytest.mark.filterwarnings("error::DeprecationWarning")  # SciPy's, of trials that are floats
@pytest.mark.sweep_after(45)
@pytest.mark.parametrize("name", SEVERAL)
def test_integers_take_the_dtype_of_the_others(name: str, xp: Any, backend: str) -> None:
    """Also unsigned ones, of which a rule makes 0 - 1 or -x."""
    function, others = of_arrays(xp, name), len(ARRAYS[name]) - 1
    x = np.asarray([0.25, 0.5], dtype=np.float32)
    last = xp.asarray(x, requires_grad=True)
    plain = xp.asarray(x.astype(float), requires_grad=True)
    exact = function(*[xp.asarray([2.0, 3.0])] * others, plain)
    by_last = mg.autograd.grad(xp.sum(exact), plain)
    for dtype in ("int64", "uint8"):
        whole = np.asarray([2, 3], dtype=dtype)
        y = function(*[xp.asarray(whole)] * others, last)
        (slope,) = mg.autograd.grad(xp.sum(y), last)
        # NumPy promotes as everywhere
        assert y.dtype == (np.result_type(whole, x) if backend == "numpy" else xp.float32)
        assert slope.dtype == xp.float32
        np.testing.assert_allclose(values(y), values(exact), rtol=1e-4)
        np.testing.assert_allclose(values(slope), values(by_last[0]), rtol=1e-4, atol=1e-6)
    assert function(*[2] * others, last).dtype == xp.float32


@pytest.mark.filterwarnings("error::DeprecationWarning")
@pytest.mark.parametrize("name", ARRAYS)
def test_integers_alone_become_floats(name: str, xp: Any) -> None:
    """Of the default dtype, in which the values are computed, also those of small integers."""
    function, x = of_arrays(xp, name), np.asarray([1, 2], dtype=np.uint8)
    found = function(*[xp.asarray(x)] * len(ARRAYS[name]))
    expected = function(*[xp.asarray(x.astype(float))] * len(ARRAYS[name]))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(values(found), values(expected), rtol=1e-15)


@pytest.mark.parametrize("name", ["bdtri", "nbdtri"])
def test_counts_are_subtracted_as_floats(name: str) -> None:
    """With k above n, n - k is negative, which an unsigned dtype would wrap around."""
    k, n, y = np.asarray([3, 2, 255], "u1"), np.asarray([2, 7, 255], "u1"), np.full(3, 0.3)
    slope = func.grad(lambda y, *counts: mg.sum(getattr(mg.special, name)(*counts, y)))
    np.testing.assert_array_equal(slope(y, k, n), slope(y, k.astype("f8"), n.astype("f8")))


@pytest.mark.filterwarnings("error::DeprecationWarning")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["bdtr", "bdtrc", "bdtri"])
def test_trials_may_be_floats(name: str, dtype: str) -> None:
    """SciPy deprecates them, and truncates them."""
    function = getattr(mg.special, name)
    k, n, p = (
        np.asarray(v, dtype) for v in ([1, 0, 3, 1, 1], [3, 2.5, 7, math.nan, math.inf], [0.25] * 5)
    )
    found = function(k, n, mg.asarray(p))
    whole = function(k[:3], np.asarray([3, 2, 7]), mg.asarray(p[:3]))
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(
        found[:3].array, whole.array, rtol=1e-3 if dtype == "float16" else 1e-6
    )
    assert np.all(np.isnan(found[3:].array))


@pytest.mark.parametrize("name", ["boxcox", "inv_boxcox", "huber", "kl_div", "rel_entr", "xlogy"])
def test_an_array_of_integers_beside_what_is_differentiated(name: str, xp: Any) -> None:
    f = getattr(xp.special, name)
    for i in (0, 1):
        found = []
        for beside in (xp.asarray([1, 2]), xp.asarray([1.0, 2.0])):
            t = xp.asarray([0.3, 0.4], requires_grad=True)
            found += mg.autograd.grad(xp.sum(f(t, beside) if i == 0 else f(beside, t)), t)
        np.testing.assert_allclose(values(found[0]), values(found[1]), rtol=1e-15)


def test_parameters_that_are_python_scalars_at_the_second_derivative(xp: Any) -> None:
    t = xp.asarray(np.asarray(0.4), requires_grad=True)
    (g,) = mg.autograd.grad(mg.special.betainc(1.3, 2.1, t), t, create_graph=True)
    (second,) = mg.autograd.grad(g, t)
    np.testing.assert_allclose(values(second), values(g) * (0.3 / 0.4 - 1.1 / 0.6), rtol=1e-13)


# ----- complex arrays -----


@pytest.mark.parametrize("name", REAL)
def test_complex_arrays_are_refused_by_name(name: str, xp: Any, backend: str) -> None:
    z = xp.asarray(np.asarray([0.5 + 1j]))
    with pytest.raises(
        TypeError,
        match=rf"^special\.{name} on the backend '{backend}' takes real "
        r"floating-point arrays, not .*complex128\.",
    ):
        of_arrays(xp, name)(*[z] * len(ARRAYS[name]))


def test_riemann_zeta_under_the_name_zeta_refuses_complex_arrays(xp: Any) -> None:
    with pytest.raises(TypeError, match=r"^special\.zeta on the backend"):
        xp.special.zeta(xp.asarray(np.asarray([0.5 + 1j])))


@pytest.mark.parametrize("name", [*EVERYWHERE, *BY_SCIPY])
def test_complex_arrays_have_the_holomorphic_derivative(name: str, xp: Any, backend: str) -> None:
    """SciPy's functions on NumPy and JAX, which calls them; refused by name elsewhere."""
    z, h = np.asarray([0.3 + 0.2j, -1.7 + 0.8j, 4.0 - 3.0j]), 1e-6
    order = (np.asarray([1, 2, 1]),) if len(ARRAYS[name]) > 1 else ()
    x = xp.asarray(z, requires_grad=True)
    if name in BY_SCIPY and backend not in ("numpy", "jax"):
        with pytest.raises(
            TypeError,
            match=rf"^special\.{name} on the backend '{backend}' takes real floating-point "
            r"arrays, not .*complex128\.",
        ):
            getattr(xp.special, name)(*map(xp.asarray, order), x)
        return
    y = getattr(xp.special, name)(*map(xp.asarray, order), x)
    (slope,) = mg.autograd.grad(y, x, xp.ones_like(y))
    f = getattr(scipy.special, name)
    np.testing.assert_allclose(values(y), f(*order, z), rtol=1e-12)
    differences = along(lambda t: f(*order, z + t), h)
    np.testing.assert_allclose(np.conj(values(slope)), differences, rtol=1e-6)
    if order:  # the order is real
        with pytest.raises(TypeError, match=rf"^special\.{name} .* takes real floating-point"):
            getattr(xp.special, name)(x, x)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_complex_x_log_y(name: str, xp: Any) -> None:
    x = xp.asarray([1 + 2j, 0j], requires_grad=True)
    y = xp.asarray([0.5 - 1j, 0j])
    z = getattr(xp.special, name)(x, y)
    np.testing.assert_allclose(
        values(z), getattr(scipy.special, name)(values(x), values(y)), rtol=1e-14
    )
    logarithm = np.log(values(y)[0] + (name == "xlog1py"))
    (slope,) = mg.autograd.grad(z, x, xp.ones_like(z))
    np.testing.assert_allclose(values(slope), np.conj([logarithm, 0]), rtol=1e-14)


def test_an_array_of_orders_of_a_complex_array_is_refused(xp: Any) -> None:
    with pytest.raises(
        TypeError, match="special.polygamma: the order of a complex array is one int from 0 to 100"
    ):
        xp.special.polygamma(xp.asarray([1, 2]), xp.asarray([1.0 + 1j, 2.0]))


def test_hyp1f1_of_complex_arrays(xp: Any, backend: str) -> None:
    a, z = xp.asarray([0.5], requires_grad=True), xp.asarray([1 + 2j], requires_grad=True)
    refused = rf" on the backend '{backend}' takes real floating-point arrays, not .*complex128\.$"
    if backend == "strict":
        with pytest.raises(TypeError, match=r"^special\.hyp1f1" + refused):
            xp.special.hyp1f1(a, 1.5, z)
        return
    y = xp.special.hyp1f1(a.detach(), 1.5, z)
    np.testing.assert_allclose(values(y), scipy.special.hyp1f1(0.5, 1.5, [1 + 2j]))
    (slope,) = mg.autograd.grad(y, z, xp.ones_like(y))
    np.testing.assert_allclose(values(slope), np.conj(scipy.special.hyp1f1(1.5, 2.5, [1 + 2j]) / 3))
    y = xp.special.hyp1f1(a, 1.5, z.detach())
    with pytest.raises(TypeError, match=r"^special\.hyp1f1 by a" + refused.removesuffix("$")):
        mg.autograd.grad(y, a, xp.ones_like(y))
    with pytest.raises(TypeError, match=r"^special\.hyp1f1" + refused):
        xp.special.hyp1f1(z, 1.5, z)


# ----- orders, counts and options -----


@pytest.mark.parametrize(
    "name, argument",
    [
        *((name, "v") for name in ("jv", "yv", "iv", "ive", "kv", "kve", "lpmv")),
        *((name, "n") for name in ("polygamma", "yn", "expn", "bdtr")),
        *((name, "k") for name in ("pdtr", "pdtrc", "pdtri", "bdtr", "bdtrc", "bdtri")),
        *((name, "k") for name in ("nbdtr", "nbdtrc", "nbdtri")),
    ],
)
def test_orders_and_counts_have_no_derivative(name: str, argument: str, xp: Any) -> None:
    given = [xp.asarray(2.0, requires_grad=p == argument) for p in ARRAYS[name][:-1]]
    y = getattr(xp.special, name)(*given, xp.asarray(0.4))
    with pytest.raises(
        MissingRuleError,
        match=rf"'special\.{name}' has no derivative rule for its argument '{argument}'",
    ):
        y.backward()


@pytest.mark.parametrize("d", [0, 1.5, "2"])
def test_multigammaln_of_no_dimension(d: Any, xp: Any) -> None:
    with pytest.raises(ValueError, match="special.multigammaln: d should be a positive integer"):
        xp.special.multigammaln(xp.asarray([2.0]), d)


def test_gelu_by_tanh_and_by_another_approximation(xp: Any) -> None:
    x = np.asarray([-1.3, 0.0, 0.7])
    np.testing.assert_allclose(
        values(xp.special.gelu(xp.asarray(x), approximate="tanh")),
        x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        rtol=1e-13,
    )
    with pytest.raises(
        ValueError, match="special.gelu: approximate must be 'none' or 'tanh', not 'erf'"
    ):
        xp.special.gelu(xp.asarray([1.0]), approximate="erf")


# ----- jax.jit -----


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize(
    "name, args",
    [
        ("polygamma", (np.asarray([0, 1, 3]), np.asarray([0.4, 2.5, 11.0]))),
        ("k1", (np.asarray([0.5, 3.0]),)),
        ("gammaincinv", (np.asarray([0.5, 4.0]), np.asarray([0.3, 0.9]))),
        ("betaincinv", (1.0, 2.5, 0.3)),
        ("stdtr", (3.5, 0.2)),
        ("lpmv", (1, 2.5, np.asarray([0.2, 0.6]))),
    ],
)
def test_gradients_under_jit_and_vmap_of_jax(name: str, args: tuple[Any, ...]) -> None:
    jax = pytest.importorskip("jax", reason="jax is an optional backend")

    def slope(*arrays: Any) -> Any:
        *others, last = arrays
        t = mg.asarray(last, requires_grad=True)
        getattr(mg.special, name)(*others, t).sum().backward()
        return t.grad.array

    given = [jax.numpy.asarray(a) for a in args]
    exact = slope(*map(np.asarray, args))
    np.testing.assert_allclose(jax.jit(slope)(*given), exact, rtol=1e-12)
    rows = jax.vmap(slope)(*(jax.numpy.broadcast_to(a, (2, *exact.shape)) for a in given))
    np.testing.assert_allclose(rows, [exact, exact], rtol=1e-12)
