"""What array-api-extra does with Tensors beyond the table of its calls: ways out, transformations,
and `at`, which writes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn, values
from consumer_tables import check

import multigrad as mg
from multigrad.errors import GradientError

xpx = pytest.importorskip(
    "array_api_extra", reason="array-api-extra is a dependency of the tests only"
)

pytestmark = pytest.mark.filterwarnings("ignore:`xpx.*is deprecated:DeprecationWarning")


def test_cov_in_float32_is_that_of_the_generic_form(backend: str) -> None:
    x = mg.asarray(drawn(2, 3).astype("float32"), backend=backend, requires_grad=True)
    y = xpx.cov(x)
    assert (
        y.dtype == mg.namespace(backend).float64
    )  # array-api-extra computes it in float64 everywhere
    (g,) = mg.autograd.grad(y, x, mg.asarray(np.ones((2, 2)), backend=backend))
    assert g.dtype == x.dtype


def test_lazy_apply_of_a_function_of_numpy_arrays(backend: str) -> None:
    x = mg.asarray(drawn(2, 3), backend=backend)
    np.testing.assert_array_equal(
        values(xpx.lazy_apply(np.exp2, x, as_numpy=True)), np.exp2(drawn(2, 3))
    )
    with pytest.raises(GradientError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        xpx.lazy_apply(np.exp2, x.requires_grad_(), as_numpy=True)


def piecewise(x: Any) -> Any:
    return xpx.apply_where(x > 1.0, x, lambda a: a * a, lambda a: -a)


def filled(x: Any) -> Any:
    return xpx.apply_where(x > 1.0, x, lambda a: a * a, fill_value=3.0)


def test_under_jit() -> None:
    jax = pytest.importorskip("jax", reason="jax is an optional backend")

    @jax.jit
    def slope(array: Any) -> Any:
        x = mg.asarray(array, requires_grad=True)
        (piecewise(x) + xpx.nansum(xpx.pad(x, 1))).sum().backward()
        return x.grad.array

    x = drawn(6)
    np.testing.assert_allclose(slope(jax.numpy.asarray(x)), np.where(x > 1, 2 * x, -1) + 6)


@pytest.mark.parametrize(("f", "slope"), [(piecewise, -1.0), (filled, 0.0)])
def test_apply_where_under_vmap(f: Callable[..., Any], slope: float, backend: str) -> None:
    """The masks of the examples select different numbers of elements."""
    rows = np.asarray([[0.5, 2.0, 3.0], [0.1, 0.2, 3.0]])
    raw = mg.asarray(rows, backend=backend).array
    for gradients in (
        mg.func.vmap(mg.func.grad(lambda x: mg.sum(f(x)))),
        mg.func.grad(lambda x: mg.sum(mg.func.vmap(f)(x))),
    ):
        np.testing.assert_allclose(
            values(mg.asarray(gradients(raw))), np.where(rows > 1, 2 * rows, slope)
        )


def test_capabilities_inside_vmap(backend: str) -> None:
    seen: list[Any] = []
    x = mg.asarray(drawn(2, 3), backend=backend)
    info = mg.namespace(x).__array_namespace_info__()

    def f(x: Any) -> Any:
        seen.append(info.capabilities())
        return mg.func.grad(lambda y: seen.append(info.capabilities()) or mg.sum(y))(x)

    mg.func.vmap(f)(x.array)
    for there in seen:
        assert there["boolean indexing"] is there["data-dependent shapes"] is False
    before = info.capabilities()
    mg.func.grad(lambda y: seen.append(info.capabilities()) or mg.sum(y))(x.array)
    assert len(seen) == 3 and seen[-1] == before


# ----- at: it writes into its argument where it may -----

UPDATES = ("add", "subtract", "multiply", "divide", "power", "min", "max")


@pytest.mark.parametrize("key", [1, slice(1, 3), ...])
def test_at_set(key: Any, backend: str) -> None:
    check(backend, lambda x, y: xpx.at(x)[key].set(y, copy=True), drawn(6), drawn(seed=5))
    check(backend, lambda x, y: xpx.at(2 * x, key).set(y), drawn(6), drawn(seed=5))


@pytest.mark.parametrize("update", UPDATES)
def test_at_a_mask(update: str, backend: str) -> None:
    def masked(x: Any, y: Any) -> Any:
        return getattr(xpx.at(x)[x > 1.0], update)(y, copy=True)

    check(backend, masked, drawn(6), drawn(seed=5))


@pytest.mark.parametrize("update", ["set", "add"])
def test_at_does_not_write_into_a_leaf(update: str, backend: str) -> None:
    x = mg.asarray(drawn(6), backend=backend, requires_grad=True)
    with pytest.raises(
        GradientError,
        match="a view of a leaf Variable that requires grad is being used in an in-place operation",
    ):
        getattr(xpx.at(x)[0], update)(7.0)
    with mg.no_grad():
        assert xpx.at(x)[0].set(7.0) is x
    assert float(values(x)[0]) == 7.0


def test_at_of_an_argument_that_is_being_differentiated(backend: str) -> None:
    """It would write into the argument, on every library: `at` knows of no other than JAX's own
    arrays that they cannot be written. With copy=True it does not.
    """
    x = mg.asarray(drawn(6), backend=backend).array
    f = lambda x, **how: mg.sum(x * xpx.at(x)[0].set(7.0, **how))
    with pytest.raises(GradientError, match=r"copy it first, x = x.clone\(\)"):
        mg.func.grad(f)(x)
    slopes = 2 * drawn(6)
    slopes[0] = 7.0
    np.testing.assert_allclose(
        values(mg.asarray(mg.func.grad(partial(f, copy=True))(x))), slopes, rtol=1e-6
    )
    np.testing.assert_array_equal(values(mg.asarray(x)), drawn(6))


@pytest.mark.parametrize("update", UPDATES)
def test_at_through_a_view_with_a_history(update: str, backend: str) -> None:
    """`x[key] += y` changes a view of x.

    Of `x[key] = minimum(x[key], y)` PyTorch says the same as we.
    """
    if update not in ("min", "max"):
        check(backend, lambda x, y: getattr(xpx.at(2 * x)[1], update)(y), drawn(6), drawn(seed=5))
        return
    x = mg.asarray(drawn(6), backend=backend, requires_grad=True)
    with pytest.raises(GradientError, match="has been modified by an inplace operation"):
        getattr(xpx.at(2 * x)[1], update)(1.0).sum().backward()
