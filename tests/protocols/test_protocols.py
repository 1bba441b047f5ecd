"""NumPy's protocols: every ufunc and function that has a counterpart gives NumPy's values and the
derivative, on every backend and at every level.
"""

from __future__ import annotations

import operator
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn, tensors, values
from consumer_tables import check, leaves

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError, MixedBackendsError
from multigrad.protocols import functions, ufuncs
from multigrad.protocols.table import COUNTERPARTS

X, Y, V, W = drawn(2, 3), drawn(2, 3, seed=1), drawn(5), drawn(5, seed=2)
SIGNED = drawn(2, 3, low=-0.9, high=0.9)
Z = V + 1j * W
SQUARE = drawn(3, 3) + 3 * np.eye(3)
SYMMETRIC = SQUARE + SQUARE.T
TURNING = np.asarray([[1.0, 2.0], [-3.0, 1.5]])
MASK = [[True, False, True], [False, True, True]]  # lists become arrays of the library
PLACES = [2, 0, 2]
GRID = [0.0, 0.5, 1.1, 2.0, 2.5]


def symmetric(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of the symmetric part, so that differences stay among symmetric matrices."""
    return lambda a: function((a + np.matrix_transpose(a)) / 2)


INTEGERS = np.asarray([5, 3, 8]), np.asarray([1, 2, 3])
UFUNCS: dict[str, tuple[Any, ...]] = {
    # of one array of positive numbers, or of two
    **{name: (X, Y)[: getattr(np, name).nin] for name in (*ufuncs.NAMES, *ufuncs.COMPOSED)},
    **dict.fromkeys(("arccos", "arcsin", "arcsinh", "arctan", "arctanh", "modf"), (SIGNED,)),
    "arccosh": (X + 1,),
    "matmul": (X, Y.T),
    "matvec": (X, drawn(3)),
    "vecmat": (drawn(2), X),
    **dict.fromkeys(
        ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"), INTEGERS
    ),
    "invert": INTEGERS[:1],
}

FUNCTIONS: dict[str, tuple[Any, ...]] = {
    # reductions
    "all": (lambda x: np.all(x > 1, axis=0), X),
    "any": (lambda x: np.any(x, axis=1, where=MASK), X),
    "amin": (lambda x: np.amin(x, 1, keepdims=True), X),
    "argmax": (lambda x: np.argmax(x, 1), X),
    "count_nonzero": (lambda x: np.count_nonzero(x, axis=1), X),
    "cumprod": (lambda x: np.cumprod(x, axis=1), X),
    "cumulative_prod": (lambda x: np.cumulative_prod(x, axis=1), X),
    "cumulative_sum": (lambda x: np.cumulative_sum(x, axis=0, include_initial=True), X),
    "max": (lambda x: np.max(x, axis=1, initial=0.5, where=MASK), X),
    "mean": (lambda x: np.mean(x, axis=0, where=MASK, keepdims=True), X),
    "min": (lambda x: np.min(x, axis=(0, 1), initial=9.0), X),
    "prod": (lambda x: np.prod(x, axis=1, initial=2.0, where=MASK), X),
    "std": (lambda x: np.std(x, axis=1, ddof=1), X),
    "sum": (lambda x: np.sum(x, axis=1, initial=2.0, where=MASK), X),
    "var": (lambda x: np.var(x, axis=1, where=[True, True, False]), X),
    # joining, splitting
    "append": (lambda x, y: np.append(x, y, axis=0), X, Y),
    "array_split": (lambda v: np.array_split(v, 3), V),
    "broadcast_arrays": (np.broadcast_arrays, X, drawn(3)),
    "column_stack": (lambda v, w: np.column_stack([v, w]), V, W),
    "concatenate": (lambda x, y: np.concatenate([x, y], axis=1), X, Y),
    "dsplit": (lambda x: np.dsplit(np.reshape(x, (1, 2, 3)), 3), X),
    "dstack": (lambda x, y: np.dstack([x, y]), X, Y),
    "hsplit": (lambda x: np.hsplit(x, [1]), X),
    "hstack": (lambda v, w: np.hstack([v, w]), V, W),
    "stack": (lambda x, y: np.stack([x, y], axis=1), X, Y),
    "unstack": (lambda x: np.unstack(x, axis=1), X),
    "vsplit": (lambda x: np.vsplit(x, 2), X),
    "vstack": (lambda v, w: np.vstack([v, w]), V, W),
    "split": (lambda v: np.split(v, [1, 3]), V),
    # arranging
    "broadcast_to": (lambda v: np.broadcast_to(v, (2, 5)), V),
    "expand_dims": (lambda x: np.expand_dims(x, (0, 2)), X),
    "astype": (lambda a: np.astype(a, np.complex128), X),
    "moveaxis": (lambda x: np.moveaxis(x, 0, 1), X),
    "ravel": (
        lambda x: np.ravel(x, "F") if isinstance(x, np.ndarray) else np.ravel(x, order="F"),
        X,
    ),
    "repeat": (lambda x: np.repeat(x, 2, axis=1), X),
    "reshape": (lambda x: np.reshape(x, (3, -1), order="F"), X),
    "roll": (lambda x: np.roll(x, (1, 2), axis=(0, 1)), X),
    "rollaxis": (lambda x: np.rollaxis(x, 1), X),
    "rot90": (lambda x: (np.rot90(x), np.rot90(x, 2), np.rot90(x, 3)), X),
    "squeeze": (lambda x: np.squeeze(np.expand_dims(x, 0)), X),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 1), X),
    "lib.stride_tricks.sliding_window_view": (
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1),
        X,
    ),
    "tile": (lambda x: np.tile(x, 2), X),
    "triu": (lambda x: np.triu(x, 1), SQUARE),
    "diagonal": (lambda x: np.diagonal(x, 1), SQUARE),
    # selecting
    "argwhere": (lambda x: np.argwhere(x > 1), X),
    "clip": (lambda x: np.clip(x, 0.5, None), X),
    "compress": (lambda x: np.compress([False, True], x, axis=0), X),
    "digitize": (lambda x: np.digitize(x, [0.5, 1.0]), X),
    "extract": (lambda x: np.extract(MASK, x), X),
    "flatnonzero": (lambda x: np.flatnonzero(x > 1), X),
    "isin": (lambda x: np.isin(x, [1, 2]), np.asarray([1, 5, 2])),
    "nonzero": (lambda x: np.nonzero(x > 1), X),
    "searchsorted": (lambda v: np.searchsorted(v, [0.5, 1.0]), np.sort(V)),
    "select": (lambda x, y: np.select([x > 1.2, y > 1], [x, y], 0.5), X, Y),
    "take": (lambda x: np.take(x, PLACES, axis=1), X),
    "take_along_axis": (
        lambda x: np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), axis=1),
        X,
    ),
    "where": (lambda x, y: np.where(MASK, x, y), X, Y),
    # sorting, sets
    "argpartition": (lambda v: np.take(v, np.sort(np.argpartition(v, 1)[:2])), V),
    "partition": (lambda v: np.partition(v, 2)[2], V),
    "sort": (lambda x: np.sort(x, axis=0), X),
    "unique": (lambda v: np.unique(v, return_counts=True), V),
    # making
    "full_like": (lambda x: np.full_like(x, 2.0), X),
    "zeros_like": (lambda x: np.zeros_like(x, shape=(2,)), X),
    "empty_like": (lambda x: np.empty_like(x, shape=(0, 2)), X),
    "linspace": (lambda v: np.linspace(v[0], v[1], 4), V),
    "meshgrid": (lambda v, w: np.meshgrid(v, w, indexing="ij"), V, W),
    "copyto": (lambda x, y: np.copyto(z := np.copy(x), y) or z, X, Y),
    # complex parts, comparisons
    "angle": (np.angle, Z),
    "imag": (np.imag, Z),
    "real": (np.real, Z),
    "real_if_close": (np.real_if_close, Z),
    "isclose": (np.isclose, X, Y),
    "iscomplex": (np.iscomplex, Z),
    "allclose": (np.allclose, X, X),
    "array_equal": (np.array_equal, X, Y),
    "array_equiv": (np.array_equiv, X, X),
    # about arrays
    "iscomplexobj": (np.iscomplexobj, Z),
    "can_cast": (
        lambda x: np.can_cast(x, "float32") if not isinstance(x, np.ndarray) else False,
        X,
    ),
    "shares_memory": (np.shares_memory, X, Y),
    "may_share_memory": (np.may_share_memory, X, Y),
    # products, formulas
    "convolve": (np.convolve, V, drawn(3)),
    "correlate": (lambda v, w: np.correlate(v, w, "full"), V, drawn(3)),
    "cross": (np.cross, X, Y),
    "dot": (np.dot, X, Y.T),
    "einsum": (lambda x, y: np.einsum("ij,kj->ik", x, y), X, Y),
    "inner": (np.inner, X, Y),
    "kron": (np.kron, X, Y),
    "outer": (np.outer, V, W),
    "tensordot": (lambda x, y: np.tensordot(x, y, axes=([1], [1])), X, Y),
    "vdot": (np.vdot, Z, Z[::-1].copy()),
    "average": (lambda v, w: np.average(v, weights=w), V, W),
    "diff": (lambda v: np.diff(v, 2), V),
    "ediff1d": (lambda v: np.ediff1d(v, to_end=v[:1]), V),
    "interp": (lambda v: np.interp(1.0, GRID, v), V),
    "median": (lambda x: np.median(x, axis=1), X),
    "pad": (lambda x: np.pad(x, 1, mode="edge"), X),
    "percentile": (lambda v: np.percentile(v, 30), V),
    "polyval": (np.polyval, V, W),
    "quantile": (lambda v: np.quantile(v, [0.2, 0.7]), V),
    "round": (lambda x: np.round(x, 1), X),
    "trapezoid": (lambda v, w: np.trapezoid(v, np.cumsum(w)), V, W),
    "unwrap": (lambda v: np.unwrap(5 * v), V),
    "vander": (lambda v: np.vander(v, 3), V),
    # nan
    **{
        f"nan{name}": (
            lambda x, name=name: getattr(np, f"nan{name}")(np.where(MASK, x, np.nan), axis=1),
            X,
        )
        for name in (
            "max",
            "mean",
            "median",
            "min",
            "prod",
            "std",
            "sum",
            "var",
            "cumsum",
            "cumprod",
            "argmax",
            "argmin",
        )
    },
    "nanquantile": (lambda x: np.nanquantile(np.where(MASK, x, np.nan), 0.3, axis=1), X),
    "nanpercentile": (lambda x: np.nanpercentile(np.where(MASK, x, np.nan), 30, axis=1), X),
    # linear algebra
    "linalg.cholesky": (lambda a: np.linalg.cholesky(np.matmul(a, np.matrix_transpose(a))), SQUARE),
    "linalg.cross": (np.linalg.cross, X, Y),
    "linalg.eig": (lambda a: np.linalg.eig(a)[0], TURNING),
    "linalg.eigh": (symmetric(lambda a: np.linalg.eigh(a)[0]), SYMMETRIC),
    "linalg.eigvals": (np.linalg.eigvals, TURNING),
    "linalg.eigvalsh": (symmetric(np.linalg.eigvalsh), SYMMETRIC),
    "linalg.matmul": (np.linalg.matmul, X, Y.T),
    "linalg.matrix_power": (lambda a: np.linalg.matrix_power(a, 3), SQUARE),
    "linalg.multi_dot": (lambda x, y: np.linalg.multi_dot([x, y, x]), X, Y.T.copy()),
    "linalg.norm": (
        lambda a: (
            np.linalg.norm(a),
            np.linalg.norm(a, axis=1),
            np.linalg.norm(a, 1),
            np.linalg.norm(a, axis=(0, 1), keepdims=True),
        ),
        X,
    ),
    "linalg.outer": (np.linalg.outer, V, W),
    "linalg.qr": (lambda a: np.linalg.qr(a, mode="r"), SQUARE),
    "linalg.solve": (np.linalg.solve, SQUARE, drawn(3)),
    "linalg.svd": (lambda a: np.linalg.svd(a, compute_uv=False), X),
    "linalg.tensordot": (lambda x, y: np.linalg.tensordot(x, y, axes=2), X, Y),
    "linalg.vecdot": (np.linalg.vecdot, X, Y),
    # Fourier transforms of complex arrays
    **{f"fft.{name}": (getattr(np.fft, name), Z) for name in ("hfft", "irfft")},
    **{f"fft.{name}": (getattr(np.fft, name), X + 1j * Y) for name in ("irfft2", "irfftn")},
}
DTYPES = {"common_type", "einsum_path", "min_scalar_type", "result_type"}
"""Counterparts that return dtypes, or no arrays, which have a test of their own."""
ELSEWHERE = {"i0", "concat", "permute_dims", "trapz"}
"""The one that needs a plugin, and other names of the same functions."""
BARE = {
    name: (operator.attrgetter(name)(np), SQUARE)
    for name in sorted({*COUNTERPARTS, *functions.SAME} - DTYPES - ELSEWHERE - set(FUNCTIONS))
}
"""All others, of a matrix alone."""
FLAT = {"divmod", "empty_like", "floor_divide", "full_like", "nextafter", "ones_like", "zeros_like"}
"""Those whose floating results are constants, as divmod's quotient is."""


SLOW = pytest.param("jax", marks=pytest.mark.slow)


@pytest.mark.parametrize("backend", ["numpy", "strict", SLOW], indirect=True)
@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs(name: str, backend: str) -> None:
    compare(backend, name, getattr(np, name), *UFUNCS[name])


@pytest.mark.parametrize("backend", ["numpy", "strict", SLOW], indirect=True)
@pytest.mark.parametrize("name", FUNCTIONS | BARE)
def test_functions(name: str, backend: str) -> None:
    if name == "sort_complex" and backend == "strict":
        pytest.skip("array_api_strict sorts no complex numbers, which the standard leaves open")
    function, *args = (FUNCTIONS | BARE)[name]
    compare(backend, name, function, *args)


def compare(backend: str, name: str, function: Callable[..., Any], *args: Any) -> None:
    if name not in FLAT:
        return check(backend, function, *args, rtol=1e-6)
    ys = leaves(function(*tensors(backend, args)))
    for y, known in zip(ys, leaves(function(*args)), strict=True):
        assert isinstance(y, mg.Tensor) and tuple(y.shape) == known.shape
        np.testing.assert_allclose(values(y), known)
    return None


# ----- keywords and methods of ufuncs -----


def leaf(x: Any, backend: str = "numpy") -> Any:
    return mg.tensor(x, backend=backend, requires_grad=True)


def gradient(y: Any, x: Any) -> Any:
    return values(mg.autograd.grad(mg.sum(y), x)[0])


def test_a_ufunc_is_told_by_its_identity() -> None:
    """Another library's ufunc of the same name is not ours: of constants it runs as it is, and it
    refuses what requires grad.
    """
    numba = pytest.importorskip("numba", reason="numba is a dependency of the tests only")

    @numba.vectorize(["float64(float64, float64)"])
    def add(x: float, y: float) -> float:
        return x - y

    assert add.__name__ == "add"
    t = mg.asarray(V)
    np.testing.assert_array_equal(add(t, W), V - W)
    with pytest.raises(
        GradientError,
        match=r"Can't call add\(\) on Tensor that requires grad: multigrad has no derivative of it",
    ):
        add(leaf(V), V)


@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
def test_out_is_a_write_in_place(backend: str) -> None:
    x = leaf(V, backend)
    out = mg.zeros_like(x.detach())
    version = out._version
    assert np.multiply(x, 2.0, out=out) is out and out._version == version + 1
    np.testing.assert_array_equal(gradient(out * out, x), 8 * V)
    kept = mg.exp(x)
    loss = mg.sum(kept)
    np.add(kept, 1.0, out=kept)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        loss.backward()
    with pytest.raises(
        RuntimeError,
        match="a leaf Variable that requires grad is being used in an in-place operation",
    ):
        np.add(x, 1.0, out=x)


def test_out_of_functions() -> None:
    x = leaf(X)
    out = mg.zeros(2, dtype="float64")
    assert np.sum(x, axis=1, out=out) is out
    np.testing.assert_array_equal(gradient(out, x), np.ones((2, 3)))
    first, second = mg.zeros(5, dtype="float64"), mg.zeros(5, dtype="float64")
    assert np.modf(mg.asarray(3 * V), out=(first, second))[1] is second
    np.testing.assert_array_equal(values(second), np.trunc(3 * V))


def test_a_numpy_array_takes_constants_only() -> None:
    a, t = np.ones(5), mg.asarray(V)
    a += t
    np.testing.assert_array_equal(a, 1 + V)
    assert np.sqrt(t, out=a) is a
    np.testing.assert_array_equal(a, np.sqrt(V))
    t.requires_grad_()
    with pytest.raises(
        GradientError,
        match=r"numpy.add: the result requires grad, and a NumPy array cannot keep its history. "
        r"Write a = a \+ t instead of a \+= t",
    ):
        a += t
    with pytest.raises(
        GradientError, match="numpy.sqrt: the result requires grad, .* Leave out out=, or detach"
    ):
        np.sqrt(t, out=a)
    with pytest.raises(MixedBackendsError, match="'numpy' and 'strict'"):
        a += mg.asarray(V, backend="strict")
    np.testing.assert_array_equal(a, np.sqrt(V))


def test_where_computes_nothing_where_it_is_false() -> None:
    """The quotient by 0 that is not selected leaves neither a value nor a nan in the gradient."""
    x, y = leaf(np.asarray([1.0, 2.0, 3.0])), leaf(np.asarray([0.0, 4.0, 0.0]))
    q = np.divide(x, y, out=mg.zeros(3, dtype="float64"), where=y.array != 0)
    np.testing.assert_array_equal(values(q), [0, 0.5, 0])
    by_x, by_y = mg.autograd.grad(mg.sum(q * q), [x, y])
    np.testing.assert_array_equal(values(by_x), [0, 0.25, 0])
    np.testing.assert_array_equal(values(by_y), [0, -0.125, 0])
    with pytest.raises(
        TypeError, match="numpy.divide: where= leaves elements without a value; give out="
    ):
        np.divide(x, y, where=y.array != 0)


def test_dtype() -> None:
    x = leaf(V.astype("float32"))
    y = np.multiply(x, x, dtype=np.float64)
    assert y.dtype == np.float64
    np.testing.assert_allclose(gradient(y, x), 2 * V, rtol=1e-6)
    assert (
        np.sum(x, dtype="float64").dtype == np.float64
        and np.mean(x, dtype=np.float64).dtype == np.float64
    )


@pytest.mark.parametrize("keywords", [{"casting": "no"}, {"order": "F"}, {"subok": False}])
def test_a_keyword_that_is_not_honoured_is_named(keywords: dict[str, Any]) -> None:
    (name,) = keywords
    with pytest.raises(TypeError, match=f"numpy.add: {name}=.* is not supported for Tensors"):
        np.add(mg.asarray(V), 1.0, **keywords)


def test_keywords_of_functions_that_are_not_honoured() -> None:
    t = mg.asarray(X)
    for call, text in (
        (lambda: np.take(t, [0], mode="no"), "numpy.take: mode='no' is not supported"),
        (lambda: np.sort(t, order="name"), "numpy.sort: order='name' is not supported"),
        (lambda: np.linalg.qr(t, mode="raw"), "numpy.linalg.qr: mode='raw' is not supported"),
    ):
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(ValueError, match="numpy.max: where= needs initial=, as in NumPy"):
        np.max(t, where=MASK)


def test_methods_of_ufuncs() -> None:
    check("numpy", lambda x: np.add.reduce(x), X)
    check("numpy", lambda x: np.multiply.reduce(x, axis=None, keepdims=True), X)
    check("numpy", lambda x: np.maximum.reduce(x, axis=1, initial=1.0), X)
    check("numpy", lambda x: np.logical_and.reduce(x > 1, axis=1), X)
    check("numpy", lambda x: np.add.accumulate(x, axis=1), X)
    check("numpy", lambda x: np.multiply.accumulate(x), X)
    check("numpy", np.subtract.outer, V, W)
    check("numpy", lambda v, x: np.multiply.outer(v, x), V, X)
    t = mg.asarray(V)
    with pytest.raises(
        TypeError,
        match="numpy.subtract.reduce is not supported for Tensors; reduce is there for add, "
        "multiply",
    ):
        np.subtract.reduce(t)
    with pytest.raises(
        TypeError,
        match="numpy.fmax.accumulate is not supported for Tensors; accumulate is there for add, "
        "maximum, minimum, m",
    ):
        np.fmax.accumulate(t)
    with pytest.raises(TypeError, match="numpy.add.reduceat is not supported for Tensors"):
        np.add.reduceat(t, [0, 2])


def test_at_adds_up_where_indices_repeat() -> None:
    x, v = leaf(np.zeros(4)), leaf(np.asarray([1.0, 2.0, 3.0]))
    y = x * 1.0
    np.add.at(y, np.asarray([1, 1, 3]), v)
    np.testing.assert_array_equal(values(y), [0, 3, 0, 3])
    np.testing.assert_array_equal(gradient(y * y, v), [6, 6, 6])
    np.subtract.at(y, 0, 1.0)
    np.testing.assert_array_equal(values(y), [-1, 3, 0, 3])
    with pytest.raises(
        TypeError,
        match="numpy.multiply.at is not supported for Tensors; at is there for add, subtract",
    ):
        np.multiply.at(y, 0, 2.0)
    a = np.zeros(2)
    np.add.at(a, [0, 0], mg.asarray(np.ones(2)))
    assert a.tolist() == [2, 0]
    with pytest.raises(
        GradientError,
        match=r"numpy.add.at: a NumPy array cannot keep the history of a Tensor that requires grad",
    ):
        np.add.at(a, [0, 0], leaf(np.ones(2)))


# ----- functions without a counterpart -----


def test_a_function_without_a_counterpart() -> None:
    t = mg.asarray(V)
    np.testing.assert_array_equal(np.histogram(t, 3)[0], np.histogram(V, 3)[0])
    t.requires_grad_()
    with pytest.raises(
        GradientError,
        match=r"Can't call numpy.histogram\(\) on Tensor that requires grad: multigrad has no "
        r"counterpart of it. Use tensor.detach\(\) instead",
    ):
        np.histogram(t, 3)
    with pytest.raises(
        GradientError,
        match=r"numpy.apply_along_axis\(\) .* Use multigrad.func.vmap, or tensor.detach\(\) "
        r"instead",
    ):
        np.apply_along_axis(np.sum, 0, t)


def test_a_function_that_writes_into_a_tensor_is_refused() -> None:
    t = mg.asarray(V)
    with pytest.raises(
        TypeError, match=r"numpy.put cannot write into a Tensor. Use t\[key\] = value instead"
    ):
        np.put(t, [0], 1.0)
    with pytest.raises(TypeError, match=r"numpy.fill_diagonal cannot write into a Tensor"):
        np.fill_diagonal(mg.asarray(SQUARE), 0.0)
    np.testing.assert_array_equal(values(t), V)


def test_dtypes_of_arguments() -> None:
    t = leaf(X.astype("float32"))
    assert np.result_type(t, np.float64) == np.float64 and np.result_type(t, 1.0) == np.float32
    assert np.common_type(t) == np.float32 and np.min_scalar_type(t) == np.float32
    assert np.can_cast(t, np.float64) and not np.can_cast(mg.asarray(X), np.float32)


def test_the_casting_that_is_numpys_default_is_taken() -> None:
    t = leaf(V)
    for function in (np.hstack, np.vstack, np.concatenate, np.stack):
        np.testing.assert_array_equal(
            values(function([t, t], casting="same_kind")), function([V, V])
        )
        with pytest.raises(TypeError, match="casting"):
            function([t, t], casting="no")


def test_the_path_of_einsum_is_that_of_the_shapes() -> None:
    t = leaf(X)
    assert np.einsum_path("ij,kj,kl->il", t, Y, mg.asarray(X)) == np.einsum_path(
        "ij,kj,kl->il", X, Y, X
    )


def test_norm_names_a_wrong_axis_as_numpy_does() -> None:
    with pytest.raises(np.exceptions.AxisError, match="axis 5 is out of bounds"):
        np.linalg.norm(leaf(X), axis=5)


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_like_makes_an_array_of_the_library(backend: str) -> None:
    t = mg.asarray(X, backend=backend)
    for y, known in (
        (np.zeros(3, like=t), np.zeros(3)),
        (np.full((2, 2), 1.5, like=t), np.full((2, 2), 1.5)),
        (np.eye(2, like=t), np.eye(2)),
        (np.eye(2, 3, 1, like=t), np.eye(2, 3, 1)),
        (np.eye(3, M=2, k=-1, like=t), np.eye(3, M=2, k=-1)),
        (np.arange(3, like=t), np.arange(3)),
        (np.asarray([1.0, 2.0], like=t), [1.0, 2.0]),
        (np.identity(2, like=t), np.eye(2)),
        (np.ones(2, dtype=np.float32, like=t), np.ones(2)),
        (np.array([1, 2], like=t), [1, 2]),
        (np.array([1, 2], subok=True, ndmin=3, order="C", like=t), [[[1, 2]]]),
        (np.array(1, ndmin=0, like=t), 1),
    ):
        assert isinstance(y, mg.Tensor) and y.array.__class__ is t.array.__class__
        np.testing.assert_array_equal(values(y), known)


# ----- libraries and levels -----


@pytest.mark.parametrize("backend", ["jax", "strict"], indirect=True)
def test_two_libraries_do_not_mix(backend: str) -> None:
    t = mg.asarray(V, backend=backend)
    for call in (
        lambda: np.add(t, V),
        lambda: V * t,
        lambda: np.concatenate([t, V]),
        lambda: np.where(V > 1, t, 0.0),
        lambda: np.dot(V, t),
    ):
        with pytest.raises(MixedBackendsError, match=f"numpy.*{backend}|{backend}.*numpy"):
            call()


@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
def test_operators_of_raw_arrays_give_tensors(backend: str) -> None:
    raw = mg.asarray(V, backend=backend).array
    t = leaf(W, backend)
    for y, known in (
        (raw * t, V * W),
        (raw - t, V - W),
        (raw**t, V**W),
        (raw @ t, V @ W),
        (raw < t, V < W),
    ):
        assert isinstance(y, mg.Tensor)
        np.testing.assert_allclose(values(y), known)


class Cupys:
    """An operator as CuPy's arrays have it: it leaves the operation to a right operand whose
    `__array_ufunc__` is None.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __mul__(self, other: Any) -> Any:
        assert other.__array_ufunc__ is None, "cupy.multiply would be called, and refuse"
        return other.__rmul__(self.value)


class Dasks(Cupys):
    """An operator as Dask's arrays have it: such an operand, or one that has another
    `__array_ufunc__` than Dask's, is asked.
    """

    def __mul__(self, other: Any) -> Any:
        known = type(other).__array_ufunc__ is getattr(Dasks, "__array_ufunc__", None)
        assert hasattr(other, "__array_ufunc__") and (other.__array_ufunc__ is None or not known)
        return NotImplemented if not hasattr(self.value, "shape") else other.__rmul__(self.value)


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
@pytest.mark.parametrize("kind", [Cupys, Dasks])
def test_other_libraries_defer_to_tensors_of_theirs(kind: Any, backend: str) -> None:
    """CuPy's and Dask's operators look at `__array_ufunc__` of the instance, NumPy at that of the
    class.
    """
    t = leaf(W, backend)
    assert t.__array_ufunc__ is None
    y = kind(mg.asarray(V, backend=backend).array) * t
    np.testing.assert_allclose(values(y), V * W)
    np.testing.assert_allclose(gradient(y, t), V)
    t = mg.asarray(V)
    assert t.__array_ufunc__(np.add, "__call__", t, t).array.tolist() == (2 * V).tolist()


def test_an_operand_of_another_kind_is_asked() -> None:
    class Other:
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> str:
            return f"{ufunc.__name__} of Other"

        def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> str:
            return f"{function.__name__} of Other"

    assert np.add(mg.asarray(V), Other()) == "add of Other"
    assert np.concatenate([mg.asarray(V), Other()]) == "concatenate of Other"


def test_a_function_that_takes_values_refuses_inside_transformations() -> None:
    with pytest.raises(GradientError, match="Can't call numpy"):
        mg.func.grad(lambda x: np.histogram(x, 3)[0][0] * 1.0)(V)


def test_a_replaced_operation_is_the_one_that_runs() -> None:
    before = mg.registry.OPS["sin"]
    try:
        mg.registry.elementwise("sin(x, /)", forward=lambda xp, x: xp.cos(x), x=0, override=True)
        np.testing.assert_array_equal(values(np.sin(mg.asarray(V))), np.cos(V))
    finally:
        mg.registry.restore({"sin": before}, [mg.registry.OPS["sin"]])
    np.testing.assert_array_equal(values(np.sin(mg.asarray(V))), np.sin(V))


def test_nothing_becomes_a_plain_array_in_silence() -> None:
    """Every public function of NumPy that takes an array: of a Tensor that requires grad it gives
    Tensors, Python values, or an error.
    """
    import inspect

    for module in (np, np.linalg, np.fft):
        for name, function in sorted(vars(module).items()):
            if (
                name.startswith("_")
                or not callable(function)
                or inspect.isclass(function)
                or name in ("info", "save", "savetxt", "savez", "show_config")
            ):
                continue
            try:
                result = function(leaf(SQUARE))
            except Exception:  # it needs more arguments, or refuses
                continue
            for part in leaves(result):
                assert not isinstance(part, np.ndarray) or part.dtype.kind not in "fc", name


def test_a_tensor_among_the_options_alone() -> None:
    near = np.isclose(np.ones(2), np.asarray([1.05, 2.0]), atol=mg.asarray(0.1))
    assert isinstance(near, mg.Tensor) and values(near).tolist() == [True, False]
    np.testing.assert_allclose(np.ones(2), np.ones(2) + 0.05, atol=mg.asarray(0.1))
    with pytest.raises(
        TypeError,
        match="numpy.add.reduce: a Tensor is given for an option only, beside NumPy arrays. "
        "Wrap the arrays with",
    ):
        np.sum(np.ones(2), where=mg.asarray([True, False]))


TALL = drawn(2, 3, 4)
NANS = np.asarray([2.0, np.nan, 1.0, np.nan, 2.0])
SAME_AS_NUMPY: dict[str, tuple[Callable[..., Any], Any]] = {
    "angle of negative numbers, zeros and infinities": (
        np.angle,
        np.asarray([-1.0, -0.0, 0.0, 2.0, np.inf, -np.inf]),
    ),
    "angle of integers": (np.angle, np.asarray([-3, 0, 2])),
    "correlate with the longer vector second": (lambda a: np.correlate(a[:2], a, "same"), V),
    "correlate of complex numbers": (lambda a: np.correlate(a[:2], a * 1j, "full"), Z),
    "astype to a type of NumPy": (lambda a: np.astype(a, np.float32), V),
    "astype to a short name": (lambda a: np.astype(a, "c8"), V),
    "astype without a copy": (lambda a: np.astype(a, a.dtype, copy=False), V),
    "float_power of complex64": (lambda a: np.float_power(a, 2), Z.astype("complex64")),
    "unique of nans": (
        lambda a: np.unique(a, return_index=True, return_inverse=True, return_counts=True),
        NANS,
    ),
    "unique of nans, each on its own": (lambda a: np.unique(a, equal_nan=False), NANS),
    "linspace of integers": (lambda a: np.linspace(a[0], 3, 5, dtype=int), np.asarray([-2.5])),
    "linspace of integers, in parallel": (
        lambda a: np.linspace(a, 3, 5, dtype=int),
        np.asarray([-2.5, 0.3]),
    ),
    "select keeps the dtype": (lambda a: np.select([a > 0], [a], 0.5), SIGNED.astype("float32")),
    "round of integers": (lambda a: (np.round(a, -1), np.round(a, 1)), np.asarray([17, -25, 4])),
    "rint, fabs and modf of integers": (
        lambda a: (np.rint(a), np.fabs(a), *np.modf(a)),
        np.asarray([-3, 2]),
    ),
    "max of booleans with an initial value": (
        lambda a: np.max(a, initial=2),
        np.asarray([True, False]),
    ),
    "var of complex numbers, of some": (
        lambda a: np.var(a, where=[True, True, False, True, True]),
        Z,
    ),
    "var with ddof beyond the count": (
        lambda a: np.var(a, ddof=10, where=[True, True, False, True, True]),
        V,
    ),
    "full_like by keyword": (lambda a: np.full_like(a, fill_value=2), X),
    "tensordot with an axis count of NumPy": (lambda a: np.tensordot(a, a, axes=np.int64(2)), X),
    "array_split at an array": (lambda a: np.array_split(a, np.asarray([2, 3])), V),
    "isclose of booleans, array_equal of integers": (
        lambda a: (np.isclose(a, a), np.array_equal(a, a, equal_nan=True)),
        np.asarray([True, False]),
    ),
    "pinv of integers": (np.linalg.pinv, np.asarray([[2, 1], [1, 3]])),
    "matrix_rank with a tolerance for each matrix": (
        lambda a: np.linalg.matrix_rank(a, tol=np.asarray([0.1, 1e3])),
        np.stack([SQUARE, SQUARE]),
    ),
    "vander without columns": (lambda a: np.vander(a, 0), V),
    "comparison with dtype=bool": (lambda a: np.equal(a, a[0], dtype=bool), np.asarray([2.0, 3.0])),
    "real_if_close of integers": (np.real_if_close, np.asarray([1, 2])),
    "unwrap": (lambda a: np.unwrap(9 * a, axis=0), TALL),
    "unwrap with a period and a discontinuity": (
        lambda a: np.unwrap(9 * a, 5.0, period=2.5),
        X.astype("float32"),
    ),
    "unwrap of integers": (
        lambda a: (np.unwrap(a, period=4), np.unwrap(a, period=3), np.unwrap(a)),
        np.asarray([0, 1, 2, -1, 0, 7]),
    ),
    "take along a negative axis": (lambda a: np.take(a, [[0, 1]], axis=-2), TALL),
}


@pytest.mark.parametrize("case", SAME_AS_NUMPY)
def test_values_and_dtypes_are_those_of_numpy(case: str) -> None:
    function, a = SAME_AS_NUMPY[case]
    with np.errstate(all="ignore"):
        want, got = leaves(function(a)), leaves(function(mg.asarray(a)))
    assert len(want) == len(got)
    for one, other in zip(want, got, strict=True):
        one, other = np.asarray(one), np.asarray(values(other))
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(other, one, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda a: np.add(a, 1.0, dtype=int),
            TypeError,
            "numpy.add: float64 cannot be cast to .*int64.*, which is of a lower kind",
        ),
        (
            lambda a: np.multiply(a * 1j, 1.0, dtype=float),
            TypeError,
            "numpy.multiply: complex128 cannot be cast to",
        ),
        (
            lambda a: np.equal(a, a, dtype=float),
            TypeError,
            "numpy.equal: dtype=<class 'float'> is not supported for Tensors; the result is one of",
        ),
        (
            lambda a: np.mean(a, dtype=int),
            TypeError,
            "numpy.mean: dtype=<class 'int'> is not supported for Tensors: a mean in integers "
            "loses its",
        ),
        (
            lambda a: np.transpose(a, (0, 3)),
            IndexError,
            "axis 3 is out of bounds for an array with 2 axes",
        ),
        (
            lambda a: np.rot90(a, 1, (0, -5)),
            IndexError,
            "numpy.rot90: axis -5 is out of bounds for an array with 2 axes",
        ),
        (lambda a: np.rot90(a, 1, (0, -2)), ValueError, "Axes must be different"),
        (
            lambda a: np.linalg.norm(a[None], axis=(0, 1, 2)),
            ValueError,
            "Improper number of dimensions to norm",
        ),
        (lambda a: np.linalg.norm(a, axis=(0, -2)), ValueError, "Duplicate axes given"),
        (
            lambda a: np.linalg.multi_dot([a[None], a]),
            ValueError,
            "numpy.linalg.multi_dot: operand 0 has 3 axes; it takes matrices, and vectors at",
        ),
        (lambda a: np.vander(a), ValueError, "x must be a one-dimensional array"),
        (
            lambda a: np.digitize(a, [0.0, 2.0, 1.0]),
            ValueError,
            "bins must be monotonically increasing or decreasing",
        ),
        (lambda a: np.partition(a, 9), ValueError, r"kth\(=9\) out of bounds \(3\)"),
        (
            lambda a: np.select([a], [a]),
            TypeError,
            "invalid entry 0 in condlist: should be boolean ndarray",
        ),
        (
            lambda a: np.select([a > 0], [a, a]),
            ValueError,
            "list of cases must be same length as list of conditions",
        ),
        (
            lambda a: np.reshape(a.T, (2, 3), order="A"),
            TypeError,
            "numpy.reshape: order='A' is not supported for Tensors",
        ),
        (lambda a: np.full_like(a, 1.0, fill=3), TypeError, "unexpected keyword argument 'fill'"),
    ],
)
def test_wrong_arguments_raise_as_in_numpy(
    call: Callable[..., Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        call(leaf(X))


def test_the_operands_of_matvec_and_vecmat_have_their_axes() -> None:
    for function, operand in ((np.matvec, "first"), (np.vecmat, "second")):
        with pytest.raises(
            ValueError, match=f"{operand} operand must have two axes at least; its shape is "
        ):
            function(mg.asarray(V), mg.asarray(V))


@pytest.mark.parametrize("value", [np.inf, np.nan, 0.0])
def test_what_where_leaves_out_has_the_gradient_zero(value: float) -> None:
    t = leaf(np.asarray([4.0, value, 9.0]))
    np.sum(np.sqrt(t, where=[True, False, True], out=mg.asarray(np.zeros(3)))).backward()
    assert values(t.grad).tolist() == [0.25, 0.0, 1 / 6]


def test_unwrap_is_differentiable_inside_transformations() -> None:
    slope = mg.func.vmap(mg.func.grad(lambda a: np.sum(np.unwrap(a) ** 2)))
    np.testing.assert_allclose(slope(np.stack([9 * V, V]))[0], 2 * np.unwrap(9 * V))


def test_an_axis_out_of_bounds_is_named_by_each_function() -> None:
    a = mg.asarray(X)
    for call, name in (
        (lambda: np.rollaxis(a, 2), "rollaxis: axis 2"),
        (lambda: np.take(a, [0], axis=4), "take: axis 4"),
        (lambda: np.trapezoid(a, axis=5), "trapezoid: axis 5"),
        (lambda: np.diff(a, axis=3, prepend=0.0), "axis 3"),
        (lambda: np.array_split(a, 2, axis=3), "array_split: axis 3"),
        (lambda: np.linalg.norm(a, axis=(0, 5)), "linalg.norm: axis 5"),
    ):
        with pytest.raises(IndexError, match=f"{name} is out of bounds"):
            call()


def test_ufunc_at_takes_lists() -> None:
    y, t = mg.asarray(np.zeros((2, 2))), leaf(np.asarray([[1.0, 2.0], [3.0, 4.0]]))
    np.add.at(y, [0, 0], t)
    np.add.at(y, ([1], [-1]), 5.0)
    assert values(y).tolist() == [[4.0, 6.0], [0.0, 5.0]]
    np.sum(y * y).backward()
    assert values(t.grad).tolist() == [[8.0, 12.0], [8.0, 12.0]]


def test_extract_and_compress_of_a_raw_array() -> None:
    assert (
        values(np.extract(mg.asarray(X) > np.median(X), X)).tolist()
        == np.extract(X > np.median(X), X).tolist()
    )
    assert values(np.compress(mg.asarray([True, False]), X, axis=0)).tolist() == X[:1].tolist()


@pytest.mark.parametrize("name", ["mean", "std", "var", "sum"])
def test_where_of_another_library_is_named(name: str) -> None:
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(
        MixedBackendsError, match="where: got arrays of two backends, 'numpy' and 'strict'"
    ):
        getattr(np, name)(mg.asarray(strict.asarray(V)), where=V > 0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("ufunc", [np.add, np.subtract])
def test_at_keeps_the_sign_of_zeros_elsewhere(ufunc: Any, dtype: str) -> None:
    x = np.asarray([-0.0, 1.0, 0.0, -0.0], dtype)
    wanted = x.copy()
    ufunc.at(wanted, [1, 1], np.asarray([2.5, 1.0], dtype))

    def f(x: Any) -> Any:
        y = x.clone() if isinstance(x, mg.Tensor) else x + np.asarray(-0.0, dtype)
        ufunc.at(y, [1, 1], np.asarray([2.5, 1.0], dtype))
        return y

    for got in (f(leaf(x)), f(mg.asarray(x)), func.jvp(f, x, x)[0], func.vmap(f)(x[None])[0]):
        got = values(mg.asarray(got))
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got.real), np.signbit(wanted.real))


CONDITION = np.asarray([True, False, True])


@pytest.mark.parametrize("choices", [[1.0, 2.0], [1, 2], [True, 2.5], [True, 2], [1j, 2]], ids=str)
def test_select_among_numbers(xp: Any, choices: list[Any]) -> None:
    """Without an array among them the widest number decides; `True` is a condition."""
    got = np.select([xp.asarray(CONDITION), True], choices)
    wanted = np.select([CONDITION, True], choices)
    np.testing.assert_allclose(values(got), wanted)
    default = xp.asarray(max(choices, key=lambda x: [bool, int, float, complex].index(type(x))))
    assert got.dtype == default.dtype


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 1), (1, 1, 3), (1, 2, 1)])
def test_full_like_with_an_array(xp: Any, shape: tuple[int, ...]) -> None:
    """NumPy drops leading axes of length 1."""
    x, fill = np.ones((2, 3)), np.arange(1.0, 1 + int(np.prod(shape))).reshape(shape)
    w = np.arange(6.0).reshape(2, 3)
    t = xp.asarray(fill, requires_grad=True)
    for y in (np.full_like(xp.asarray(x), t), xp.full((2, 3), t)):
        np.testing.assert_allclose(values(y), np.full_like(x, fill))
        (g,) = mg.autograd.grad(xp.sum(y * xp.asarray(w)), t)
        wanted = [
            np.sum(w * np.full_like(x, np.equal(np.arange(fill.size), i).reshape(shape)))
            for i in range(fill.size)
        ]
        assert g.shape == shape
        np.testing.assert_allclose(values(g).reshape(-1), wanted)


def test_i0_without_the_plugin() -> None:
    """Its values are NumPy's; its derivative comes with the plugin."""
    code = """
import numpy as np, multigrad as mg
t = mg.asarray([1.0, 2.0])
assert type(np.i0(t)) is np.ndarray
np.testing.assert_array_equal(np.i0(t), np.i0(np.asarray([1.0, 2.0])))
try:
    np.i0(t.requires_grad_())
except mg.errors.GradientError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "MULTIGRAD_BLOCK": "special"},
        check=True,
    )
    assert done.stdout == (
        "Can't call numpy.i0() on Tensor that requires grad: its derivative comes with the plugin "
        "multigrad-special. Install that, or use tensor.detach() instead.\n"
    )
