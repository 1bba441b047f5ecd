"""The built-in backends NumPy and JAX: their functions against the standard's meaning, their kernels, their refusals."""

from __future__ import annotations

import inspect
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import array_api_compat.numpy as reference
import numpy as np
import pytest

import multigrad as mg
import multigrad.ops
from multigrad import registry
from multigrad.backends import discovery, kernels
from multigrad.backends import numpy as numpy_backend
from multigrad.backends.raw import RawNamespace
from multigrad.errors import BackendError, GradientError, RegistrationError

ROOT = Path(mg.__file__).parents[1]
NUMPY = discovery.get("numpy")
XP = RawNamespace(NUMPY)
DTYPES = [np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int8, np.int64, np.uint8, np.bool_]
SHAPES: list[tuple[int, ...]] = [(), (1,), (5,), (0,), (3, 4), (2, 0, 3)]


def sample(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, shape)
    if np.dtype(dtype).kind == "u":
        x = abs(x)
    return np.asarray(x + 1j * rng.uniform(-3, 3, shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def outcome(f: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return f(*args, **kwargs)
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError) as error:
        return error


def assert_same(got: Any, want: Any, exact: bool = True) -> None:
    if isinstance(want, Exception):
        assert isinstance(got, Exception), (got, want)
        return
    assert not isinstance(got, Exception), (got, want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if exact:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=3 * np.finfo(got.dtype).eps, atol=0)


# ----- The record -----


def test_every_function_is_an_operation() -> None:
    assert set(NUMPY.functions) <= set(registry.OPS)
    assert set(discovery.get("jax").functions) <= set(registry.OPS)


@pytest.mark.parametrize("name", ["numpy", "jax"])
def test_functions_take_the_arguments_of_their_operation(name: str) -> None:
    """Positional-only parameters may have other names; every other name and kind has to fit."""
    for op, function in discovery.get(name).functions.items():
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # some C functions do not tell
            continue
        wanted = registry.OPS[op].signature.parameters.values()
        args = [p.name for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        signature.bind(*args, **{p.name: None for p in wanted if p.kind is p.KEYWORD_ONLY})


def test_a_backend_refuses_what_it_cannot_be() -> None:
    with pytest.raises(RegistrationError, match="Backend.name must be a non-empty string, not 3"):
        mg.Backend(3, np, (np.ndarray,))  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match=r"overrides unknown kernels: fly\. Known: constant, device"):
        mg.Backend("x", np, (np.ndarray,), kernels={"fly": print})
    with pytest.raises(RegistrationError, match="needs array_types, a tuple of the types"):
        mg.Backend("x", np, [np.ndarray])  # type: ignore[arg-type]


# ----- NumPy: functions -----


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(name: str, dtype: Any) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype)
        axes: list[Any] = [None, *range(-len(shape), len(shape)), tuple(range(len(shape))), 7]
        for axis in axes:
            for keepdims in (False, True):
                for value in (x, x[()]) if shape == () else (x, np.asfortranarray(x)):
                    want = outcome(getattr(reference, name), value, axis=axis, keepdims=keepdims)
                    assert_same(outcome(getattr(XP, name), value, axis=axis, keepdims=keepdims), want)
    for wider in (np.float64, np.complex128):
        if name in ("sum", "prod"):
            assert_same(getattr(XP, name)(sample((3,), dtype), dtype=wider), getattr(reference, name)(sample((3,), dtype), dtype=wider))


@pytest.mark.parametrize("dtype", DTYPES)
def test_shape_functions(dtype: Any) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype)
        for value in (x, x[()]) if shape == () else (x, np.asfortranarray(x)):
            for name, args, kwargs in [
                ("reshape", ((-1,),), {}), ("reshape", ((-1,),), {"copy": True}), ("reshape", ((7,),), {}),
                ("permute_dims", (tuple(reversed(range(len(shape)))),), {}), ("permute_dims", ((0, 0),), {}),
                ("expand_dims", (), {"axis": 0}), ("expand_dims", (), {"axis": -1}), ("expand_dims", (), {"axis": 9}),
                ("expand_dims", (), {"axis": (0, -1)}), ("squeeze", (0,), {}), ("broadcast_to", ((2, *shape),), {}),
                ("broadcast_to", (shape,), {}), ("broadcast_to", ((0, 2),), {}), ("real", (), {}),
            ]:
                assert_same(outcome(getattr(XP, name), value, *args, **kwargs), outcome(getattr(reference, name), value, *args, **kwargs))
            if len(shape) >= 2:
                assert_same(XP.matrix_transpose(value), reference.matrix_transpose(value))


def test_broadcast_to_is_read_only_memory_of_its_argument() -> None:
    for x in (np.array(2.0), np.float64(2.0), np.ones(3)):
        y = XP.broadcast_to(x, (2, 3))
        with pytest.raises(ValueError, match="read-only"):
            y[0, 0] = 1.0
    x = np.array(2.0)
    y = XP.broadcast_to(x, (4,))
    x[...] = 3.0
    assert y.tolist() == [3.0] * 4
    del x
    assert y.tolist() == [3.0] * 4


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_functions(dtype: Any) -> None:
    for shape in SHAPES:
        x, y = sample(shape, dtype), sample(shape, dtype, seed=1)
        for name in ("add", "subtract", "multiply", "divide", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
            assert_same(outcome(getattr(XP, name), x, y), outcome(getattr(reference, name), x, y))
            assert_same(outcome(getattr(XP, name), x, 2), outcome(getattr(reference, name), x, 2))
            assert_same(outcome(getattr(XP, name), 2, y), outcome(getattr(reference, name), 2, y))
        for name in ("negative", "abs", "sign"):
            assert_same(outcome(getattr(XP, name), x), outcome(getattr(reference, name), x))
        for axis in (None, *range(-len(shape), len(shape))):
            for initial in (False, True):
                assert_same(outcome(XP.cumulative_sum, x, axis=axis, include_initial=initial),
                            outcome(reference.cumulative_sum, x, axis=axis, include_initial=initial))
        for low, high in ((-1.0, 1.0), (None, 1.0), (-1.0, None), (None, None), (-1, 1), (y, None), (None, y), (np.float32(-1), 1.0)):
            assert_same(outcome(XP.clip, x, low, high), outcome(reference.clip, x, low, high))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int8, np.int64])
def test_powers(dtype: Any) -> None:
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e200, -1e-200, 1.5, -2.0]
    kind = np.dtype(dtype).kind
    values = np.array(special, dtype=dtype) if kind == "f" else sample((20,), dtype)
    # (At -inf and -0.0, NumPy itself does not agree with itself about the exponent 0.5: a square root on some paths only.)
    for exponent in (0, 1, 2, 3, 4, 5, -1, 1.5, 2.0, 3.0, 4.0, -2.0):
        if kind == "i" and (exponent < 0 or isinstance(exponent, float)):
            continue
        for x in (values, values[3], np.array(values[7])):
            got, want = XP.pow(x, exponent), reference.pow(x, exponent)
            assert_same(got, want, exact=kind == "i")
            if kind == "f":
                assert np.array_equal(np.signbit(got), np.signbit(want))
        assert_same(XP.pow(values, np.array(exponent, dtype)), reference.pow(values, np.array(exponent, dtype)), exact=kind == "i")
    assert_same(XP.pow(2.0, values), reference.pow(2.0, values), exact=kind == "i")
    wide = np.array(3.0)  # a float64 exponent makes a float64 result, even of float32
    assert XP.pow(np.ones(2, np.float32), wide).dtype == np.float64


def test_cubes_are_as_exact_as_powers() -> None:
    x = np.random.default_rng(0).uniform(-10, 10, 10_000)
    exact = np.array([float(v) for v in x.astype(np.longdouble) ** 3])
    assert np.max(abs(XP.pow(x, 3) - exact) / np.spacing(abs(exact))) <= 1.5


def test_creation_takes_the_one_device() -> None:
    x = np.float32(1) * np.ones((2, 3), np.float32)
    for name in ("empty", "ones", "zeros"):
        assert getattr(XP, name)((2,), dtype=np.float32, device="cpu").dtype == np.float32
        assert getattr(XP, f"{name}_like")(x, device="cpu").dtype == np.float32
        with pytest.raises(ValueError, match="gpu"):
            getattr(XP, name)((2,), device="gpu")
    assert XP.asarray([1.0], device="cpu").dtype == np.float64
    assert XP.asarray(x, copy=True) is not x
    assert XP.asarray(x) is x
    assert XP.astype(x, np.float32, copy=False) is x
    with pytest.raises(ValueError, match="Unsupported device for NumPy: 'gpu'"):
        XP.astype(x, np.float64, device="gpu")


# ----- NumPy: scatters -----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rest", [(), (1,), (3,), (2, 0), (2, 130)])
def test_scatter_add(dtype: Any, rest: tuple[int, ...]) -> None:
    for m, n in ((7, 4), (0, 4), (0, 0), (300, 2)):
        indices = np.random.default_rng(m).integers(-n, n, m) if m else np.zeros(0, np.int64)
        values = sample((m, *rest), dtype)
        want = np.zeros((n, *rest), dtype)
        np.add.at(want, indices, values)
        got = XP.scatter_add(values, indices.astype(np.int32), n)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-2 if dtype is np.float16 else 1e-5, atol=0.5 if dtype is np.float16 else 1e-4)


def test_scatter_add_keeps_inf_and_nan_to_their_rows() -> None:
    got = XP.scatter_add(np.array([1.0, math.inf, math.nan, 2.0]), np.array([0, 1, 2, 0]), 4)
    np.testing.assert_array_equal(got, [3.0, math.inf, math.nan, 0.0])


@pytest.mark.parametrize("index", [4, -5])
@pytest.mark.parametrize("rest", [(), (3,), (300,)])
def test_scatter_add_refuses_an_index_out_of_bounds(index: int, rest: tuple[int, ...]) -> None:
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 0 with size 4"):
        XP.scatter_add(np.ones((1, *rest)), np.array([index]), 4)


KEYS: list[Any] = [
    1, -1, slice(None), slice(3, 0, -2), None, Ellipsis, (), (1, 2), (Ellipsis, 0), (slice(1), None, 2),
    np.array([0, 2, 0, -1]), np.array(2), (np.array([[0, 1], [0, 1]]), np.array([1, -1])), (1, np.array([0, 0])),
    (np.array([0, 0]), slice(1, 3)), (np.array([1, 1]), np.array([2, 2]), 0), (slice(None), np.array([1, 1])), [0, 0, 1],
    np.arange(3) > 0, (np.arange(3) > 0, 1), np.ones((3, 4), bool), np.int64(2), True, np.zeros(3, bool), np.zeros(0, np.int64),
    (np.array([0, 1], np.uint8), np.array([3, 3], np.int32)),
]


@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.int64])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_unindex_and_setitem(key: Any, dtype: Any) -> None:
    x = sample((3, 4, 2), dtype)
    values = sample(x[key].shape, dtype, seed=1)
    want = np.zeros(x.shape, dtype)
    np.add.at(want, key, values)
    got = XP.unindex(values, key, x.shape)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-5)
    before = x.copy()
    want = x.copy()
    want[key] = values
    np.testing.assert_array_equal(XP.setitem(x, key, values), want)
    np.testing.assert_array_equal(x, before)


# ----- NumPy: kernels -----


def owned(make: Any, like: Any) -> tuple[Any, Any]:
    """What `own` makes of an array that only this function's local variable holds; its id first."""
    g = make()
    number = id(g)
    return number, numpy_backend.own(XP, g, like)


def test_own_returns_what_nobody_else_holds() -> None:
    x = np.ones((3, 4))
    for make in (lambda: np.full((3, 4), 2.0), lambda: np.full((3, 4), 2.0, np.float32)):
        number, g = owned(make, x)
        assert (id(g) == number) is (kernels.SOLE_OWNER > 0)
    number, g = owned(lambda: np.full(3, 2.0), None)
    assert (id(g) == number) is (kernels.SOLE_OWNER > 0)


def test_own_copies_what_somebody_else_holds() -> None:
    x = np.ones((3, 4))
    held = np.full((3, 4), 2.0)
    number, g = owned(lambda: held, x)
    assert id(g) != number
    assert not np.shares_memory(g, held)

    def caller() -> tuple[Any, Any]:
        g = np.full((3, 4), 2.0)
        keep = g[0]  # a view
        return keep, numpy_backend.own(XP, g, x)

    keep, g = caller()
    assert not np.shares_memory(keep, g)

    def exporter() -> tuple[Any, Any]:
        g = np.full((3, 4), 2.0)
        keep = memoryview(g)
        return np.asarray(keep), numpy_backend.own(XP, g, x)

    keep, g = exporter()
    assert not np.shares_memory(keep, g)


@pytest.mark.parametrize("make", [
    lambda: np.broadcast_to(2.0, (3, 4)), lambda: np.full((4, 3), 2.0).T, lambda: np.full((6, 8), 2.0)[::2, ::2],
    lambda: np.full((3, 4), 2.0, order="F"), lambda: np.frombuffer(np.full((3, 4), 2.0).tobytes()).reshape(3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_own_gives_dense_writable_memory_in_the_order_of_the_leaf(make: Any, order: Any) -> None:
    like = np.ones((3, 4), order=order)
    _, g = owned(make, like)
    assert g.strides == like.strides
    assert g.flags.writeable
    assert (g == 2.0).all()
    g += 1
    assert (g == 3.0).all()


def test_own_makes_an_array_of_a_scalar() -> None:
    for like in (np.array(1.0), np.float64(1.0), None):
        _, g = owned(lambda: np.float64(2.0), like)
        assert type(g) is np.ndarray
        assert g.shape == ()
    _, g = owned(lambda: np.full((3,), 2.0), np.float64(1.0))
    assert g.shape == (3,)


def test_constants_are_remembered_and_not_confused() -> None:
    constant = NUMPY.kernel("constant")
    values: list[Any] = [0.0, -0.0, 0, 1, 1.0, True, False, 1j, complex(0, -0.0), complex(-0.0, 0), complex(1, -0.0), 2.5, math.nan, math.inf]
    for dtype in (np.complex128, np.float64, np.float32):
        for _ in range(2):
            for value in values:
                if type(value) is complex and dtype is not np.complex128:
                    continue
                got, want = constant(XP, value, np.dtype(dtype), "cpu"), np.asarray(value, dtype=dtype)
                assert got.shape == ()
                assert got.tobytes() == want.tobytes() or math.isnan(got)
                assert got.dtype == want.dtype
    assert constant(XP, 2.5, np.dtype("f8"), None) is constant(XP, 2.5, np.dtype("f8"), None)
    with pytest.raises(ValueError, match="read-only"):
        constant(XP, 2.5, np.dtype("f8"), None)[...] = 1
    for i in range(3000):
        constant(XP, float(i), np.dtype("f8"), None)
        constant(XP, float("nan"), np.dtype("f8"), None)
    assert len(numpy_backend._constants) <= 1024


def test_write() -> None:
    x = np.zeros(3)
    assert NUMPY.kernel("write")(XP, x, np.arange(3.0)) is x
    assert x.tolist() == [0, 1, 2]
    y = NUMPY.kernel("write")(XP, np.float64(1), 2.0)
    assert type(y) is np.ndarray
    assert y == 2.0


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_arrays_with_other_rules_are_refused() -> None:
    for x, name in ((np.matrix([[1.0]]), "numpy.matrix"), (np.ma.masked_array([1.0]), "numpy.ma.MaskedArray")):
        with pytest.raises(BackendError, match=f"arrays of type {name} do not follow the Array API standard and are refused by the backend 'numpy'"):
            discovery.backend_of(x)


def test_the_defaults_of_the_kernels_run_on_numpy() -> None:
    default = kernels.DEFAULTS
    x = np.ones((2, 2))
    assert default["own"](XP, x, x) is not x
    assert default["place"](XP, x, x) is x
    assert default["constant"](XP, 2.0, np.float32, None).dtype == np.float32
    assert default["device"](XP, x) == "cpu"
    assert default["device"](XP, object()) is None
    assert default["devices"](reference) == ("cpu",)
    assert default["write"](XP, x, np.zeros((2, 2))) is x
    default["synchronize"](XP, x)


# ----- JAX -----


def jax_parts() -> tuple[Any, Any, Any]:
    jax = pytest.importorskip("jax")
    return jax, jax.numpy, RawNamespace(discovery.get("jax"))


@pytest.mark.parametrize("x64", [False, True])
def test_jax_mends(x64: bool) -> None:
    jax, jnp, xp = jax_parts()
    with discovery.get("jax").variants["x64" if x64 else "x32"]() as device:
        assert device is None
        x = jnp.arange(6.0).reshape(2, 3)
        assert xp.permute_dims(x, (-1, 0)).shape == (3, 2)
        assert xp.cumulative_prod(jnp.ones(3, jnp.int8)).dtype == jnp.asarray(1).dtype
        assert xp.cumulative_prod(jnp.ones(3, jnp.float32)).dtype == jnp.float32
        assert xp.searchsorted(jnp.array([1.0, 2.0]), 1.5).dtype == jnp.asarray(1).dtype
        assert type(xp.broadcast_arrays(x, x)) is tuple
        assert type(xp.meshgrid(x[0], x[1])) is tuple
        for made in (xp.asarray(2.0), xp.full((2,), 2.0), xp.asarray(True), xp.asarray(1), xp.asarray(1j), xp.zeros(3), xp.arange(3)):
            assert not made.weak_type
        assert xp.asarray(2.0).dtype == (jnp.float64 if x64 else jnp.float32)
        assert not xp.zeros((3,), device=xp.device_of(x)).committed
        assert jax.config.jax_enable_x64 == x64


def test_jax_index_out_of_bounds() -> None:
    _, jnp, xp = jax_parts()
    x = jnp.arange(6.0).reshape(2, 3)
    for key, message in [(5, "index 5 is out of bounds for axis 0 with size 2"), (-3, "index -3 is out of bounds for axis 0 with size 2"),
                         ((Ellipsis, 3), "index 3 is out of bounds for axis 1 with size 3"), ((slice(None), -4), "index -4 .* axis 1"),
                         ((None, 0, 7), "index 7 .* axis 1"), (np.array([0, 2]), "index 2 .* axis 0"), (np.array([0, -3]), "index -3")]:
        with pytest.raises(IndexError, match=message):
            xp.getitem(x, key)
        with pytest.raises(IndexError, match=message):
            xp.setitem(x, key, 0.0)
    for key in (1, -2, (Ellipsis, -3), (None, 1, 2), np.array([1, -2]), x[:, 0] > 0, x > 1, (0, Ellipsis), slice(5)):
        np.testing.assert_array_equal(xp.getitem(x, key), np.asarray(x)[np.asarray(key) if hasattr(key, "dtype") else key])
    key = jnp.array([0, 2])
    assert np.isnan(xp.getitem(x, key)[1]).all()  # and no gradient comes back from there
    np.testing.assert_array_equal(xp.unindex(jnp.ones((2, 3)), key, (2, 3)), [[1, 1, 1], [0, 0, 0]])


@pytest.mark.parametrize("key", [k for k in KEYS if not isinstance(k, list)], ids=str)
def test_jax_unindex_and_setitem(key: Any) -> None:
    _, jnp, xp = jax_parts()
    x = sample((3, 4, 2), np.float32)
    values = sample(x[key].shape, np.float32, seed=1)
    for convert in (lambda k: k, lambda k: jnp.asarray(k) if isinstance(k, np.ndarray) else k):
        its = tuple(convert(k) for k in key) if isinstance(key, tuple) else convert(key)
        np.testing.assert_array_equal(xp.getitem(jnp.asarray(x), its), x[key])
        np.testing.assert_allclose(xp.unindex(jnp.asarray(values), its, x.shape), XP.unindex(values, key, x.shape), rtol=1e-6)
        np.testing.assert_array_equal(xp.setitem(jnp.asarray(x), its, jnp.asarray(values)), XP.setitem(x, key, values))


def test_jax_scatters_under_jit() -> None:
    jax, jnp, xp = jax_parts()
    x, mask = jnp.arange(6.0).reshape(2, 3), jnp.array([[True, False, True], [False, False, True]])
    values = jnp.array([7.0, 8.0, 9.0])
    got = jax.jit(lambda x, m, v: (xp.setitem(x, m, v), xp.unindex(v, m, (2, 3)), xp.setitem(x, m, 0.0)))(x, mask, values)
    np.testing.assert_array_equal(got[0], [[7, 1, 8], [3, 4, 9]])
    np.testing.assert_array_equal(got[1], [[7, 0, 8], [0, 0, 9]])
    np.testing.assert_array_equal(got[2], [[0, 1, 0], [3, 4, 0]])
    added = jax.jit(lambda v, i: xp.scatter_add(v, i, 4))(values, jnp.array([0, -1, 0]))
    np.testing.assert_array_equal(added, [16, 0, 0, 8])


def test_jax_copies_numpy_arrays_at_once() -> None:
    """jax.numpy copies later, or never: a change of the source right after could reach the array."""
    _, _, xp = jax_parts()
    for _ in range(20):
        source = np.ones(200_000, np.float32)
        copies = [xp.asarray(source), xp.from_dlpack(source, copy=True)]
        source[:] = 5
        assert all((np.asarray(x) == 1).all() for x in copies)
    with pytest.raises(ValueError, match="JAX cannot use the memory of a NumPy array and stay immutable"):
        xp.asarray(np.ones(3), copy=False)
    assert xp.from_dlpack(np.ones((3, 4), np.float32)[:, ::2]).shape == (3, 2)


def test_jax_kernels() -> None:
    jax, jnp, xp = jax_parts()
    kernel = discovery.get("jax").kernel
    x = jnp.ones(3)
    assert kernel("own")(xp, x, x) is x
    assert kernel("write")(xp, x, x + 1).tolist() == [2, 2, 2]
    assert kernel("constant")(xp, 2.0, x.dtype, None) is kernel("constant")(xp, 2.0, x.dtype, None)
    assert math.copysign(1, kernel("constant")(xp, -0.0, x.dtype, None)) == -1
    assert kernel("devices")(xp) == tuple(jax.devices())
    kernel("synchronize")(xp, x)
    seen = []

    def traced(t: Any) -> Any:
        assert kernel("device")(xp, t) is None
        assert kernel("place")(xp, t, x) is t
        assert kernel("own")(xp, t, t + 1) is t
        kernel("synchronize")(xp, t)
        seen.append(kernel("constant")(xp, 123.5, t.dtype, None))
        return t * seen[-1]

    jax.jit(traced)(x)
    assert float(kernel("constant")(xp, 123.5, x.dtype, None)) == 123.5  # no tracer was remembered
    with pytest.raises(GradientError, match=r"would write a tracer into the \.grad of a Tensor from outside it"):
        jax.jit(lambda t: kernel("own")(xp, t, x))(x)


def test_a_tensor_is_a_pytree() -> None:
    jax, jnp, _ = jax_parts()
    x = mg.asarray(jnp.arange(3.0))
    leaves, tree = jax.tree_util.tree_flatten({"x": x})
    assert [type(v) for v in leaves] == [type(jnp.ones(1))]
    assert type(jax.tree_util.tree_unflatten(tree, leaves)["x"]) is mg.Tensor
    assert type(jax.tree_util.tree_unflatten(tree, [object()])["x"]) is mg.Tensor  # JAX passes placeholders
    assert jax.tree_util.tree_unflatten(tree, [np.ones(2)])["x"].array.tolist() == [1, 1]
    assert jax.eval_shape(lambda t: t, x).shape == (3,)
    assert jax.vmap(lambda t: t * 2)(x).array.tolist() == [0, 2, 4]
    count = []

    @jax.jit
    def step(w: mg.Tensor, x: mg.Tensor) -> Any:
        count.append(1)
        w = w.detach().requires_grad_()
        loss = (w * x).sum()
        loss.backward()
        assert w.grad is not None
        return (w - 0.1 * w.grad).detach(), loss.detach()

    w = mg.asarray(jnp.ones(3), requires_grad=True)
    for _ in range(3):
        w, loss = step(w, x)
    assert len(count) == 1
    assert loss.array.shape == ()
    with pytest.raises(GradientError, match=r"a Tensor with a grad_fn cannot pass into or out of a JAX transformation"):
        jax.jit(lambda t: t)(mg.asarray(jnp.ones(3), requires_grad=True) * 2)


def test_sharded_arrays_stay_sharded() -> None:
    """On eight devices, which only a process of its own can have."""
    pytest.importorskip("jax")
    code = """
    import jax, jax.numpy as jnp, numpy as np
    import multigrad as mg
    from multigrad.backends import discovery
    kernel = discovery.get("jax").kernel
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("rows",))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
    x = jax.device_put(jnp.arange(32.0).reshape(16, 2), rows)
    assert kernel("place")(jnp, jnp.ones((16, 2)), x).sharding == rows
    assert kernel("own")(jnp, jnp.ones((16, 2)), x).sharding == rows
    everywhere = kernel("device")(jnp, x)
    assert mg.namespace("jax").zeros((3,), device=everywhere).array.sharding.num_devices == 8
    t, w = mg.asarray(x, requires_grad=True), mg.asarray(jnp.ones((2, 3)), requires_grad=True)
    for _ in range(2):
        ((t @ w) ** 3 * mg.namespace("jax").exp(t).sum()).mean().backward()
    assert t.grad.array.sharding.is_equivalent_to(rows, 2), t.grad.array.sharding
    assert not (w - 0.1 * w.grad).array.is_deleted()
    print("sharded")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300, check=False,
                          env=os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "PYTHONPATH": str(ROOT)})
    assert done.stdout == "sharded\n", done.stderr
