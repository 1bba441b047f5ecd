"""Every function of array-api-extra takes Tensors, and its gradients agree with differences.

Not one of them knows of multigrad. Those that multigrad cannot carry a gradient through say so;
none drops it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from consumer_checks import check, check_float32, drawn, values

import multigrad as mg
from multigrad.errors import GradientError

xpx = pytest.importorskip(
    "array_api_extra", reason="array-api-extra is a dependency of the tests only"
)

pytestmark = pytest.mark.filterwarnings("ignore:`xpx.*is deprecated:DeprecationWarning")

NAN, INF = np.nan, np.inf
GAPS = np.asarray([[1.0, NAN, 3.0], [5.0, 4.0, NAN]])
Z = drawn(2, 3) + 1j * drawn(2, 3, seed=1)


def namespace(x: Any) -> Any:
    """What a library that knows no array library would ask for."""
    import array_api_compat

    return array_api_compat.array_namespace(x)


CASES: dict[str, tuple[Any, ...]] = {
    "angle": (xpx.angle, drawn(2, 3) - 1),
    "angle, complex": (xpx.angle, Z),
    "angle, degrees": (lambda z: xpx.angle(z, deg=True), Z),
    "apply_where": (
        lambda x, y: xpx.apply_where(x > y, (x, y), lambda a, b: a * b, lambda a, b: a - b**2),
        drawn(2, 3),
        drawn(2, 3, seed=1),
    ),
    "apply_where, filled": (
        lambda x, y: xpx.apply_where(x > y, (x, y), lambda a, b: a * b, fill_value=2.0),
        drawn(2, 3),
        drawn(2, 3, seed=1),
    ),
    "apply_where, filled with an array": (
        lambda x, y: xpx.apply_where(x > y, x, xpx.sinc, fill_value=y),
        drawn(2, 3),
        drawn(2, 3, seed=1),
    ),
    "argpartition": (lambda x: namespace(x).take(x, xpx.argpartition(x, 0)[:1]), drawn(6)),
    "atleast_nd": (lambda x: xpx.atleast_nd(x, ndim=3), drawn(2, 3)),
    "broadcast_shapes": (
        lambda x, y: xpx.broadcast_shapes(x.shape, y.shape),
        drawn(2, 1),
        drawn(3),
    ),
    "cov": (xpx.cov, drawn(2, 3)),
    "cov, one variable": (xpx.cov, drawn(6)),
    "cov, complex": (xpx.cov, Z),
    "cov, batched": (lambda x: xpx.cov(x, correction=0.5, axis=-2), drawn(2, 3, 2)),
    "cov, weights": (lambda x, w: xpx.cov(x, aweights=w), drawn(2, 3), drawn(3)),
    "cov, frequencies": (lambda x, n: xpx.cov(x, fweights=n), drawn(2, 3), np.asarray([1, 2, 3])),
    "create_diagonal": (lambda x: xpx.create_diagonal(x, offset=-1), drawn(3)),
    "create_diagonal, batched": (lambda x: xpx.create_diagonal(x, offset=1), drawn(2, 3)),
    "default_dtype": (lambda x: xpx.default_dtype(namespace(x)) == x.dtype, drawn(2, 3)),
    "deg2rad": (xpx.deg2rad, drawn(2, 3)),
    "diag_indices": (lambda x: x[xpx.diag_indices(3, xp=namespace(x))], drawn(3, 3)),
    "expand_dims": (lambda x: xpx.expand_dims(x, axis=(0, 2)), drawn(2, 3)),
    "isclose": (xpx.isclose, drawn(2, 3), drawn(2, 3)),
    "isin": (xpx.isin, drawn(2, 3), drawn(3, seed=1)),
    "kron": (xpx.kron, drawn(2, 3), drawn(2, 2)),
    "lazy_apply": (lambda x: xpx.lazy_apply(lambda a: a * a, x), drawn(2, 3)),
    "nan_to_num": (lambda x: xpx.nan_to_num(x, fill_value=2.0), GAPS),
    "nanmax": (xpx.nanmax, GAPS),
    "nanmax, axis": (lambda x: xpx.nanmax(x, axis=1), GAPS),
    "nanmean": (lambda x: xpx.nanmean(x, axis=0), GAPS),
    "nanmin": (lambda x: xpx.nanmin(x, axis=1), GAPS),
    "nansum": (lambda x: xpx.nansum(x, axis=1), GAPS),
    "nunique": (xpx.nunique, np.asarray([1.0, 2.0, 2.0])),
    "one_hot": (lambda i: xpx.one_hot(i, 4), np.asarray([1, 0, 3])),
    "pad": (lambda x: xpx.pad(x, [(1, 0), (0, 2)], constant_values=3.0), drawn(2, 3)),
    "partition": (lambda x: xpx.partition(x, 0)[:1], drawn(6)),
    "rad2deg": (xpx.rad2deg, drawn(2, 3)),
    "searchsorted": (xpx.searchsorted, np.sort(drawn(6)), drawn(3, seed=3)),
    "searchsorted, rows": (
        lambda a, b: xpx.searchsorted(a, b, side="right"),
        np.sort(drawn(2, 6)),
        drawn(2, 3, seed=3),
    ),
    "setdiff1d": (xpx.setdiff1d, drawn(3), drawn(6)),
    "setdiff1d, unique": (lambda a, b: xpx.setdiff1d(a, b, assume_unique=True), drawn(3), drawn(6)),
    "sinc": (xpx.sinc, drawn(2, 3) - 1),
    "tril_indices": (lambda x: x[xpx.tril_indices(3, xp=namespace(x))], drawn(3, 3)),
    "triu_indices": (lambda x: x[xpx.triu_indices(3, xp=namespace(x))], drawn(3, 3)),
    "union1d": (xpx.union1d, drawn(3), drawn(6)),
    "unravel_index": (lambda i: xpx.unravel_index(i, (2, 3)), np.asarray([5, 0, 2])),
}
# some library's own form of these has another idea of the dtype for float32
WIDENS = ("angle", "cov")


def test_no_function_is_left_out() -> None:
    functions = {
        name
        for name in xpx.__all__
        if callable(getattr(xpx, name)) and not inspect.ismodule(getattr(xpx, name))
    }
    assert functions == {name.partition(",")[0] for name in CASES} | {"at"}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, backend: str) -> None:
    function, *args = CASES[name]
    check(backend, function, *args)


@pytest.mark.parametrize("name", [name for name in CASES if name.partition(",")[0] not in WIDENS])
def test_float32_stays_float32(name: str) -> None:
    function, *args = CASES[name]
    check_float32("numpy", function, *args)


def test_cov_in_float32_is_that_of_the_generic_form(backend: str) -> None:
    x = mg.asarray(drawn(2, 3).astype("float32"), backend=backend, requires_grad=True)
    y = xpx.cov(x)
    assert y.dtype == namespace(x).float64  # array-api-extra computes it in float64 everywhere
    (g,) = mg.autograd.grad(y, x, mg.asarray(np.ones((2, 2)), backend=backend))
    assert g.dtype == x.dtype


def test_nan_to_num_of_infinities(backend: str) -> None:
    """Differences do not exist there: the result is a constant."""
    x = mg.asarray(np.asarray([1.0, NAN, INF, -INF]), backend=backend, requires_grad=True)
    y = xpx.nan_to_num(x)
    np.testing.assert_array_equal(values(y), np.nan_to_num(values(x)))
    np.testing.assert_array_equal(
        values(mg.autograd.grad(namespace(x).sum(y), x)[0]), [1.0, 0.0, 0.0, 0.0]
    )


@pytest.mark.parametrize("unique", [False, True])
def test_setdiff1d_where_something_is_taken_away(unique: bool, backend: str) -> None:
    """Differences do not exist there: the number of elements would change."""
    x, other = (
        mg.asarray(np.asarray(v), backend=backend, requires_grad=True)
        for v in ([3.0, 1.0, 2.0], [2.0, 5.0])
    )
    y = xpx.setdiff1d(x, other, assume_unique=unique)
    np.testing.assert_array_equal(values(y), [3.0, 1.0] if unique else [1.0, 3.0])
    gradients = mg.autograd.grad(namespace(x).sum(y * y), (x, other), allow_unused=True)
    np.testing.assert_array_equal(values(gradients[0]), [6.0, 2.0, 0.0])
    assert gradients[1] is None


def test_lazy_apply_of_a_function_of_numpy_arrays(backend: str) -> None:
    x = mg.asarray(drawn(2, 3), backend=backend)
    np.testing.assert_array_equal(
        values(xpx.lazy_apply(np.exp2, x, as_numpy=True)), np.exp2(drawn(2, 3))
    )
    with pytest.raises(
        GradientError,
        match=r"Can't call numpy\(\) on Tensor that requires grad. Use "
        r"tensor.detach\(\).numpy\(\) instead",
    ):
        xpx.lazy_apply(np.exp2, x.requires_grad_(), as_numpy=True)


def test_under_jit() -> None:
    jax = pytest.importorskip("jax", reason="jax is an optional backend")

    @jax.jit
    def slope(array: Any) -> Any:
        x = mg.asarray(array, requires_grad=True)
        y = xpx.apply_where(x > 1.0, x, lambda a: a * a, lambda a: xpx.sinc(a)) + xpx.nansum(
            xpx.pad(x, 1)
        )
        y.sum().backward()
        return x.grad.array

    x = mg.asarray(drawn(6), requires_grad=True)
    y = xpx.apply_where(x > 1.0, x, lambda a: a * a, lambda a: xpx.sinc(a)) + xpx.nansum(
        xpx.pad(x, 1)
    )
    y.sum().backward()
    np.testing.assert_allclose(slope(jax.numpy.asarray(drawn(6))), x.grad.array, rtol=1e-12)


def piecewise(x: Any) -> Any:
    return xpx.apply_where(x > 1.0, x, lambda a: a * a, lambda a: -a)


@pytest.mark.parametrize("fill", [None, 3.0], ids=["two functions", "a fill value"])
def test_apply_where_under_vmap(fill: float | None, backend: str) -> None:
    """The masks of the examples select different numbers of elements."""

    def f(x: Any) -> Any:
        if fill is None:
            return piecewise(x)
        return xpx.apply_where(x > 1.0, x, lambda a: a * a, fill_value=fill)

    rows = np.asarray([[0.5, 2.0, 3.0], [0.1, 0.2, 3.0]])
    x = mg.asarray(rows, backend=backend)
    raw = x.array
    np.testing.assert_allclose(
        values(mg.asarray(mg.func.vmap(f)(raw))),
        np.where(rows > 1, rows**2, -rows if fill is None else fill),
    )
    slopes = np.where(rows > 1, 2 * rows, -1.0 if fill is None else 0.0)
    total = lambda x: mg.sum(f(x))
    for gradients in (
        mg.func.vmap(mg.func.grad(total)),
        mg.func.grad(lambda x: mg.sum(mg.func.vmap(f)(x))),
    ):
        np.testing.assert_allclose(values(mg.asarray(gradients(raw))), slopes)


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

INDICES: dict[str, Any] = {"an integer": 1, "a slice": slice(1, 3), "everything": ...}
UPDATES = ("add", "subtract", "multiply", "divide", "power", "min", "max")


def masked(update: str) -> Callable[..., Any]:
    return lambda x, y: getattr(xpx.at(x)[x > 1.0], update)(y, copy=True)


@pytest.mark.parametrize("index", INDICES)
def test_at_set(index: str, backend: str) -> None:
    key = INDICES[index]
    check(backend, lambda x, y: xpx.at(x)[key].set(y, copy=True), drawn(6), drawn(seed=5))
    check(backend, lambda x, y: xpx.at(2 * x, key).set(y), drawn(6), drawn(seed=5))


@pytest.mark.parametrize("update", ("set", *UPDATES))
def test_at_a_mask(update: str, backend: str) -> None:
    check(backend, masked(update), drawn(6), drawn(seed=5))


def test_at_set_of_many_values(backend: str) -> None:
    check(backend, lambda x, y: xpx.at(x)[1:4].set(y, copy=True), drawn(6), drawn(3))
    check(backend, lambda x, y: xpx.at(x)[:, 1].set(y, copy=True), drawn(2, 3), drawn(2))


def test_at_float32() -> None:
    check_float32("numpy", lambda x, y: xpx.at(x)[1:4].set(y, copy=True), drawn(6), drawn(3))
    check_float32("numpy", masked("multiply"), drawn(6), drawn(seed=5))


def test_at_leaves_a_copied_argument_alone(backend: str) -> None:
    x = mg.asarray(drawn(6), backend=backend, requires_grad=True)
    y = xpx.at(x)[0].set(7.0, copy=True)
    assert y is not x and x.is_leaf and float(values(y)[0]) == 7.0
    np.testing.assert_array_equal(values(x), drawn(6))


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


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("update", UPDATES)
def test_at_through_a_view_with_a_history(update: str, index: str, backend: str) -> None:
    """`x[key] += y` changes a view of x.

    Of `x[key] = minimum(x[key], y)` PyTorch says the same as we.
    """
    key = INDICES[index]
    if update not in ("min", "max"):
        check(backend, lambda x, y: getattr(xpx.at(2 * x)[key], update)(y), drawn(6), drawn(seed=5))
        return
    x = mg.asarray(drawn(6), backend=backend, requires_grad=True)
    with pytest.raises(GradientError, match="has been modified by an inplace operation"):
        getattr(xpx.at(2 * x)[key], update)(1.0).sum().backward()


def test_at_spoils_no_gradient_silently(backend: str) -> None:
    x = mg.asarray(drawn(6), backend=backend, requires_grad=True)
    y = 2 * x
    z = y * y
    assert xpx.at(y)[0].set(7.0) is y
    with pytest.raises(GradientError, match="has been modified by an inplace operation"):
        z.sum().backward()
