"""The plugin multigrad-special: a third party that registers operations through hooks alone.

Values and derivatives are compared with SciPy; that every rule passes all checks on every backend
is for the conformance suite, in which the plugin enrols itself.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import registry
from multigrad.backends import hooks
from multigrad.errors import BackendError, MissingRuleError, RegistrationError
from multigrad_special import standard, words

pytest.importorskip("scipy", reason="SciPy is not installed")

import scipy.special

SLOPE = 2 / math.sqrt(math.pi)
NAMES = ("erf", "erfc", "gammaln", "digamma", "polygamma", "expit")
POINTS = np.asarray([-40.3, -2.5, -0.7, -0.2, 0.1, 0.9, 1.5, 2.3, 4.0, 11.0, 60.0])


def expit_slope(x: Any) -> Any:
    return scipy.special.expit(x) * scipy.special.expit(-x)


# operation -> its value and its first two derivatives, by SciPy
EXPECTED: dict[str, tuple[Any, Any, Any]] = {
    "erf": (
        scipy.special.erf,
        lambda x: SLOPE * np.exp(-x * x),
        lambda x: -2 * x * SLOPE * np.exp(-x * x),
    ),
    "erfc": (
        scipy.special.erfc,
        lambda x: -SLOPE * np.exp(-x * x),
        lambda x: 2 * x * SLOPE * np.exp(-x * x),
    ),
    "gammaln": (
        scipy.special.gammaln,
        scipy.special.digamma,
        lambda x: scipy.special.polygamma(1, x),
    ),
    "digamma": (
        scipy.special.digamma,
        lambda x: scipy.special.polygamma(1, x),
        lambda x: scipy.special.polygamma(2, x),
    ),
    "polygamma": tuple(lambda x, n=n: scipy.special.polygamma(n, x) for n in (2, 3, 4)),  # type: ignore[dict-item, misc]
    "expit": (
        scipy.special.expit,
        expit_slope,
        lambda x: expit_slope(x) * (1 - 2 * scipy.special.expit(x)),
    ),
}


def call(namespace: Any, name: str, x: Any) -> Any:
    function = getattr(namespace.special, name)
    return function(2, x) if name == "polygamma" else function(x)


# ----- what the plugin adds -----


def test_finding_the_plugin_imports_no_array_library() -> None:
    code = (
        "import multigrad as mg, sys; mg.special; mg.namespace('numpy').special.erf; "
        "print(*{'scipy', 'jax', 'cupy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip() == ""


def test_the_operations_come_from_the_hook() -> None:
    declared = [registry.OPS[f"special.{name}"] for name in dir(mg.namespace("numpy").special)]
    assert {"special.erf", "special.psi", "special.iv"} <= {op.name for op in declared}
    assert {op.module.rpartition(".")[0] for op in declared} == {"multigrad_special.operations"}
    assert {op.chapter for op in declared} == {"special"}


def test_every_operation_enrols_itself_in_conformance() -> None:
    samples = hooks.load_samples()
    assert {name for name in samples if name.startswith("special.")} == {
        f"special.{name}" for name in dir(mg.namespace("numpy").special)
    }


@pytest.mark.parametrize("name", NAMES)
def test_values_and_two_derivatives_are_those_of_scipy(name: str, xp: Any) -> None:
    x = xp.asarray(POINTS, requires_grad=True)
    found = [call(xp, name, x)]
    for _ in range(2):
        found += mg.autograd.grad(xp.sum(found[-1]), x, create_graph=True)
    for y, expected in zip(found, EXPECTED[name], strict=True):
        # Between poles an even polygamma passes through 0, and SciPy's digits are lost there first.
        np.testing.assert_allclose(values(y), expected(POINTS), rtol=2e-13, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_float32_stays_float32(name: str, xp: Any) -> None:
    x = xp.asarray(np.asarray([-1.5, 0.3, 2.5], dtype=np.float32), requires_grad=True)
    found = [call(xp, name, x)]
    for _ in range(2):
        found += mg.autograd.grad(xp.sum(found[-1]), x, create_graph=True)
    for y, expected in zip(found, EXPECTED[name], strict=True):
        assert y.dtype == xp.float32
        np.testing.assert_allclose(
            values(y), expected(values(x).astype(float)), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("name", NAMES)
def test_multigrad_special_dispatches_on_its_arguments(name: str, xp: Any) -> None:
    x = xp.asarray(POINTS)
    for argument in (x, x.array):
        y = call(mg, name, argument)
        assert isinstance(y, mg.Tensor) and type(y.array) is type(x.array)
        np.testing.assert_allclose(values(y), values(call(xp, name, x)))


def test_the_derivatives_go_on_and_on() -> None:
    x = mg.asarray(np.asarray(0.7), requires_grad=True)
    y = mg.special.gammaln(x)
    for n in range(7):
        (y,) = mg.autograd.grad(y, x, create_graph=True)
        np.testing.assert_allclose(y.array, scipy.special.polygamma(n, 0.7), rtol=1e-13)


def test_under_jit() -> None:
    jax = pytest.importorskip("jax", reason="jax is an optional backend")

    @jax.jit
    def slope(array: Any) -> Any:
        x = mg.asarray(array, requires_grad=True)
        mg.special.digamma(x).sum().backward()
        return x.grad.array

    x = jax.numpy.asarray(POINTS)
    np.testing.assert_allclose(slope(x), scipy.special.polygamma(1, POINTS), rtol=1e-13)


# ----- edges -----

EDGES = np.asarray([0.0, -0.0, -1.0, -2.0, math.inf, -math.inf, math.nan])


@pytest.mark.parametrize("name", NAMES)
def test_edges_on_numpy_are_those_of_scipy(name: str) -> None:
    np.testing.assert_array_equal(call(mg, name, EDGES).array, EXPECTED[name][0](EDGES))


@pytest.mark.parametrize("name", NAMES)
def test_edges_without_a_library_of_special_functions_are_those_of_scipy(name: str) -> None:
    finite = EDGES[np.isfinite(EDGES) | (EDGES > 0)] if name in ("gammaln", "polygamma") else EDGES
    with np.errstate(all="ignore"):
        y = values(call(mg, name, mg.namespace("strict").asarray(finite)))
    np.testing.assert_allclose(y, EXPECTED[name][0](finite), rtol=1e-15)


def test_polygamma_on_jax_at_the_edges_and_far_below_zero() -> None:
    """Where JAX's own (0.10.2) gives nan, and -0.01 for 15.07."""
    jax = pytest.importorskip("jax", reason="jax is an optional backend")
    x = np.asarray([0.0, math.inf, -100.3])
    for n in (1, 2):
        np.testing.assert_allclose(
            mg.special.polygamma(n, jax.numpy.asarray(x)).array,
            scipy.special.polygamma(n, x),
            rtol=1e-13,
        )


# ----- the standard-only forms: far more points than the conformance suite has -----


GRID = np.concatenate(
    [np.linspace(-9.97, 30.03, 801), np.geomspace(1e-12, 200, 99), -np.geomspace(1e-12, 90.7, 99)]
)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "polygamma"])
@pytest.mark.parametrize("dtype, tolerance", [("float64", 2e-14), ("float32", 1e-5)])
def test_standard_forms(name: str, dtype: str, tolerance: float, strict: Any) -> None:
    x = GRID.astype(dtype)
    y = getattr(standard, name)(strict, strict.asarray(x))
    expected = EXPECTED[name][0](x.astype(float))
    passes_zero = name in ("gammaln", "digamma")
    tiny = np.finfo(dtype).tiny
    far = 5 if name == "erfc" else 1  # of SciPy's erfc, exp(-x**2) is not that exact
    np.testing.assert_allclose(
        np.asarray(y), expected, rtol=far * tolerance, atol=tolerance if passes_zero else tiny
    )


@pytest.mark.parametrize(
    "x, exact",
    [(2.5, 0.0004069520174449589), (10.3, 4.5947618530992265e-48), (26.0, 5.663192408856143e-296)],
)
def test_standard_erfc_is_exact_in_the_tail(x: float, exact: float, strict: Any) -> None:
    assert float(standard.erfc(strict, strict.asarray(x))) == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 13, 21])
def test_standard_polygamma(n: int, strict: Any) -> None:
    x = GRID[np.abs(GRID) > 1e-8]
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


# ----- what bad input gets -----


@pytest.mark.parametrize("n", [-1, 0.5, math.nan])
def test_orders_that_make_no_sense(n: Any, xp: Any) -> None:
    """As of SciPy, polygamma of an order that is no integer, or negative, is nan; so is its
    gradient.
    """
    x = xp.asarray([1.0, 2.0], requires_grad=True)
    with np.errstate(invalid="ignore"):
        y = xp.special.polygamma(n, x)
        (slope,) = mg.autograd.grad(xp.sum(y), x)
    assert np.isnan(values(y)).all()
    assert np.isnan(values(slope)).all() or n == -1  # whose derivative would be of order 0


def test_an_order_that_requires_a_gradient_is_refused(xp: Any) -> None:
    n = xp.asarray(1.0, requires_grad=True)
    y = xp.sum(xp.special.polygamma(n, xp.asarray([1.0, 2.0])))
    with pytest.raises(
        MissingRuleError, match="'special.polygamma' has no derivative rule for its argument 'n'"
    ):
        y.backward()


@pytest.mark.parametrize("name", ["gammaln", "erfinv"])
def test_complex_arrays_are_refused(name: str, xp: Any, backend: str) -> None:
    message = (
        f"special.{name} on the backend '{backend}' takes real floating-point arrays, "
        "not .*complex128"
    )
    with pytest.raises(TypeError, match=message):
        call(xp, name, xp.asarray([0.5 + 1j]))


def test_complex_erf_of_scipy_has_the_right_gradient() -> None:
    z = mg.asarray(np.asarray([0.3 + 0.2j]), requires_grad=True)
    mg.special.erf(z).backward(mg.asarray(np.asarray([1.0 + 0j])))
    np.testing.assert_allclose(z.grad.array, np.conj(SLOPE * np.exp(-(z.array**2))), rtol=1e-14)


def test_complex_digamma_of_scipy_has_the_right_gradient() -> None:
    z = mg.asarray(np.asarray([0.3 + 0.2j]), requires_grad=True)
    mg.special.digamma(z).backward(mg.asarray(np.asarray([1.0 + 0j])))
    trigamma = np.sum(1.0 / (z.array + np.arange(200000.0)) ** 2) + 1 / (z.array + 199999.5)
    np.testing.assert_allclose(z.grad.array, np.conj(trigamma), rtol=1e-13)


# ----- what a careless rule author gets -----


@pytest.fixture
def table() -> Iterator[None]:
    """The table of operations, put back afterwards."""
    mg.special  # all plugins are loaded
    before = dict(registry.OPS)
    yield
    registry.restore(before)


@pytest.mark.parametrize(
    "rules, message",
    [
        ({"y": 1}, "special.mine: there is no array argument 'y' to write a rule for; it has x"),
        (
            {"x": lambda xp, y: y},
            "special.mine: the rule 'x' takes 'y', which is not one of ans, g, x,",
        ),
        (
            {"x": lambda x: x},
            "special.mine: the rule 'x' must take xp first, then the names it needs; it takes x",
        ),
        (
            {"x": np.cos},
            "special.mine: the rule 'x' must be a Python function with positional parameters only",
        ),
        ({"x": "cos"}, "special.mine: the rule 'x' must be a function or a number, not str"),
    ],
)
def test_wrong_rules_are_refused_when_declared(
    rules: dict[str, Any], message: str, table: None
) -> None:
    with pytest.raises(RegistrationError, match=message):
        registry.elementwise(
            "special.mine(x, /)", forward={"*": "multigrad_special.standard:erf"}, **rules
        )
    assert "special.mine" not in registry.OPS


def test_a_name_that_is_taken_names_both_modules(table: None) -> None:
    with pytest.raises(
        RegistrationError,
        match=rf"'special.erf' is declared by {__name__} but was already declared by "
        "multigrad_special.operations.declare. Choose another name, or pass override=True",
    ):
        registry.elementwise("special.erf(x, /)", x=1)


def test_override_replaces_value_and_rule(xp: Any, backend: str, table: None) -> None:
    x = xp.asarray([0.5, 1.0], requires_grad=True)
    mg.special.erf(x)  # what was made of the old one must go
    registry.elementwise(
        "special.erf(x, /)",
        x=lambda xp, x: 3 * xp.ones_like(x),
        forward={"*": lambda xp, x: 3 * x},
        override=True,
    )
    for function in (mg.special.erf, mg.namespace(backend).special.erf):
        y = function(x)
        np.testing.assert_array_equal(values(y), [1.5, 3.0])
        np.testing.assert_array_equal(values(mg.autograd.grad(xp.sum(y), x)[0]), [3.0, 3.0])


def test_a_missing_rule_says_how_to_register_one(xp: Any, table: None) -> None:
    registry.elementwise("special.mine(x, /)", forward={"*": lambda xp, x: xp.sin(x)})
    y = xp.special.mine(xp.asarray([0.5], requires_grad=True))
    with pytest.raises(
        MissingRuleError,
        match=r"the operation 'special.mine' has no derivative rule for its argument 'x'. "
        r"Declare it with one.* multigrad.registry.elementwise\('special.mine\(x, /\)', x=rule",
    ):
        xp.sum(y).backward()


def test_a_missing_forward_names_function_and_backend(xp: Any, backend: str, table: None) -> None:
    registry.elementwise("special.mine(x, /)", x=1, forward={"another": "nowhere:nothing"})
    with pytest.raises(
        AttributeError,
        match=f"backend '{backend}' has no function for the operation 'special.mine': give one in",
    ):
        xp.special.mine(xp.asarray([0.5]))


def test_a_forward_that_is_not_there_is_named(table: None) -> None:
    registry.elementwise("special.mine(x, /)", x=1, forward={"numpy": "scipy.special:nothing"})
    with pytest.raises(
        BackendError,
        match=r"cannot load 'scipy.special:nothing': module 'scipy.special' has no attribute "
        r"'nothing'",
    ):
        mg.special.mine(np.asarray([0.5]))


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


@pytest.mark.parametrize("name", words.AS_PYTORCH)
def test_derivatives_that_a_docstring_calls_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    points = np.asarray([-np.inf, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, np.inf])
    x = mg.asarray(points, requires_grad=True)
    theirs = torch.tensor(points, requires_grad=True)
    with np.errstate(all="ignore"):
        getattr(mg.special, name)(x).sum().backward()
    getattr(torch.special, name)(theirs).sum().backward()
    np.testing.assert_allclose(x.grad.array, theirs.grad.numpy(), rtol=1e-12)
