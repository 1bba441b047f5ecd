"""multigrad-dask: Tensors are collections of Dask, stay lazy, and their gradients keep the
chunks.
"""

from __future__ import annotations

import operator
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import extend, func
from multigrad.errors import BackendError

dask = pytest.importorskip("dask", reason="Dask is not installed")
import dask.array as da  # noqa: E402
from dask.callbacks import Callback  # noqa: E402

if "dask" not in {b.name for b in mg.backends()}:
    pytest.skip("multigrad-dask is not installed", allow_module_level=True)

ROOT = Path(mg.__file__).parents[1]
X = np.arange(24.0).reshape(6, 4) / 10


def leaf(x: Any = X, chunks: Any = (2, 4)) -> Any:
    return mg.asarray(da.from_array(x, chunks=chunks), requires_grad=True)


class Tasks(Callback):
    """How many tasks ran."""

    def __init__(self) -> None:
        self.ran = 0

    def _pretask(self, key: Any, graph: Any, state: Any) -> None:
        self.ran += 1


class Blocks:
    """A function of chunks that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, block: Any) -> Any:
        self.calls += 1
        return block + 1.0


@pytest.fixture
def lazy() -> Any:
    """Whatever computes fails."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was computed")

    with dask.config.set(scheduler=refuse):
        yield


# ----- Collections -----


def test_compute_gives_constants() -> None:
    x = leaf()
    y = mg.sum(x * x)
    y.backward()
    value, gradient, nested, same = dask.compute(y, x.grad, {"x": [x]}, 3)
    assert value == (X * X).sum() and isinstance(value, np.floating)
    assert type(gradient) is np.ndarray and np.array_equal(gradient, 2 * X)
    assert type(nested["x"][0]) is np.ndarray and np.array_equal(nested["x"][0], X) and same == 3
    assert np.array_equal(x.compute(), X) and type(x.compute(scheduler="synchronous")) is np.ndarray


def test_persist_keeps_the_history() -> None:
    """A leaf and what was computed of it, under backward and under a second derivative; the chunks
    stay.
    """
    blocks = Blocks()
    x = leaf()
    y = mg.asarray(da.map_blocks(blocks, x.array, dtype=float, meta=np.empty((0, 0)))) * x
    assert blocks.calls == 0
    p, q = dask.persist(x, y, scheduler="synchronous")
    assert (
        type(p) is type(q) is mg.Tensor
        and q.requires_grad
        and q.chunks == y.chunks
        and blocks.calls == 3
    )
    assert np.array_equal(q.compute(), (X + 1) * X) and blocks.calls == 3
    mg.sum(q * p).backward()
    assert np.allclose(x.grad.compute(), 2 * X * (X + 1))
    (g,) = mg.autograd.grad(mg.sum(x.persist() ** 3), x, create_graph=True)
    (h,) = mg.autograd.grad(mg.sum(g.persist()), x)
    assert np.allclose(h.compute(), 6 * X)
    constant = mg.asarray(da.ones(3)).persist()
    assert type(constant) is mg.Tensor and not constant.requires_grad


def test_persist_inside_a_gradient() -> None:
    g = func.grad(lambda x: mg.sum(dask.persist(x * x)[0] * x))(da.from_array(X, chunks=2))
    assert np.allclose(g.compute(), 3 * X**2)


def test_tensors_of_one_array_are_persisted_each_with_its_own_history() -> None:
    x = leaf()
    other = mg.asarray(x.array, requires_grad=True)
    p, q, r, raw = dask.persist(x, other, x.detach(), x.array)
    (mg.sum(p) + 2.0 * mg.sum(q)).backward()
    assert np.array_equal(x.grad.compute(), np.ones_like(X)) and np.array_equal(
        other.grad.compute(), 2 * np.ones_like(X)
    )
    assert not r.requires_grad and type(raw) is da.Array


def test_optimize_keeps_the_history() -> None:
    x = leaf()
    (y,) = dask.optimize(mg.sum(mg.exp(x)))
    y.backward()
    assert np.allclose(x.grad.compute(), np.exp(X))


def test_loss_and_gradient_share_one_pass() -> None:
    """Each task of the forward runs once for both."""
    blocks = Blocks()
    x = da.map_blocks(blocks, da.from_array(X, chunks=(2, 4)), dtype=float, meta=np.empty((0, 0)))
    w = mg.asarray(da.from_array(np.ones(4)), requires_grad=True)
    y = mg.sum((mg.asarray(x) @ w) ** 2)
    y.backward()
    with dask.config.set(scheduler="synchronous"):
        with Tasks() as loss:
            y.compute()
        with Tasks() as gradient:
            w.grad.compute()
        assert blocks.calls == 6
        with Tasks() as both:
            value, g = dask.compute(y, w.grad)
    assert blocks.calls == 9 and both.ran < loss.ran + gradient.ran
    assert value == pytest.approx((((X + 1) @ np.ones(4)) ** 2).sum()) and np.allclose(
        g, 2 * (X + 1).T @ (X + 1) @ np.ones(4)
    )


def test_only_tensors_of_dask_arrays_are_collections() -> None:
    assert dask.is_dask_collection(leaf()) and not dask.is_dask_collection(mg.asarray(X))
    other = mg.asarray(X, requires_grad=True)
    for name in ("visualize", "compute", "persist", "chunks", "__dask_graph__", "__dask_keys__"):
        assert hasattr(leaf(), name) and not hasattr(other, name) and not hasattr(mg.Tensor, name)
    assert dask.compute(other)[0] is other and dask.persist(other)[0] is other
    assert "visualize" in dir(leaf()) and "visualize" not in dir(other)
    x = leaf()
    assert x.visualize.__self__ is x.array and x.chunks == ((2, 2, 2), (4,))
    with pytest.raises(AttributeError, match="^'Tensor' object has no attribute 'visualize'$"):
        other.visualize()


def test_what_stands_for_several_arrays_is_no_collection() -> None:
    """Dask hands it through unchanged, and the derivative stays right."""
    seen = []

    def f(x: Any) -> Any:
        seen.append(x)
        (y,) = dask.persist(x * x)
        assert not dask.is_dask_collection(x)
        return mg.sum(y)

    x, t = da.from_array(X, chunks=2), da.ones((6, 4), chunks=2)
    assert np.allclose(func.jvp(f, (x,), (t,))[1].compute(), 2 * X.sum())
    assert np.allclose(func.vmap(f)(x).compute(), (X * X).sum(axis=1))
    assert len(seen) == 2

    def asked(x: Any) -> Any:
        with pytest.raises(
            AttributeError,
            match="a Dual inside func.jvp or func.vmap is not a Dask collection: it consists of "
            "several arrays. Compute the result of the transformation.",
        ):
            x.visualize()
        return x

    func.jvp(asked, (x,), (t,))


# ----- Laziness and chunks -----


def test_no_derivative_computes(lazy: Any) -> None:
    """In reverse and forward mode, of second order, over batches; in place, and through `.grad`."""
    x = leaf()
    y = (
        mg.sum(mg.where(x > 1.0, mg.tanh(x), x[::-1, :]) / (1.0 + mg.var(x, axis=0)))
        + mg.max(x)
        + mg.linalg.vector_norm(x)
    )
    (g,) = mg.autograd.grad(y, x, create_graph=True)
    mg.sum(g * g).backward()
    v = x * 1.0
    v[1:3, 0] = 2.0
    v += 1.0
    mg.sum(v[v > 1.0]).backward()
    func.jvp(lambda x: mg.prod(x, axis=1), (x.array,), (x.array,))
    func.vmap(func.grad(lambda row: mg.sum(row**3)))(x.array)
    assert x.grad.chunks == x.chunks
    assert (
        repr(x).startswith("Tensor(dask.array<")
        and x.shape == (6, 4)
        and x.device == "cpu"
        and len(x) == 6
    )


def test_asking_for_a_value_computes() -> None:
    x = mg.asarray(da.from_array(np.array([2.0]), chunks=1))
    assert bool(x[0] > 1.0) is True and float(x[0]) == 2.0 and int(x[0]) == 2 and x[0].item() == 2.0
    assert operator.index(mg.asarray(da.from_array(np.array(3)))) == 3
    assert (
        np.array_equal(np.asarray(x), [2.0])
        and np.array_equal(x.numpy(), [2.0])
        and x.tolist() == [2.0]
    )


FUNCTIONS = {
    "sum": lambda x: mg.sum(x),
    "sum of an axis": lambda x: mg.sum(mg.sum(x, axis=0) ** 2),
    "mean": lambda x: mg.mean(x),
    "mean of an axis": lambda x: mg.sum(mg.mean(x, axis=1, keepdims=True) ** 2),
    "var": lambda x: mg.var(x),
    "std": lambda x: mg.sum(mg.std(x, axis=1)),
    "max": lambda x: mg.max(x),
    "prod": lambda x: mg.sum(mg.prod(x, axis=1)),
    "norm": lambda x: mg.linalg.vector_norm(x),
    "matmul": lambda x: mg.sum((x @ x.T) ** 2),
    "reshape": lambda x: mg.sum(mg.reshape(x, (-1,)) ** 2),
    "slice": lambda x: mg.sum(x[1:4, ::2] ** 2),
    "mask": lambda x: mg.sum(x[x > 1.0] ** 2),
    "concat": lambda x: mg.sum(mg.concat([x, x]) ** 2),
    "cumulative_sum": lambda x: mg.sum(mg.cumulative_sum(x, axis=0)),
    "logsumexp": lambda x: mg.logsumexp(x),
    "fft": lambda x: mg.sum(mg.abs(mg.fft.fft(x, axis=0)) ** 2),
    "svd": lambda x: mg.sum(mg.linalg.svdvals(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_keep_the_chunks(name: str) -> None:
    f = FUNCTIONS[name]
    x = leaf(chunks=(2, 2))
    f(x).backward()
    expected = mg.asarray(X, requires_grad=True)
    f(expected).backward()
    assert x.grad.array.chunks == x.array.chunks
    value, g = func.value_and_grad(f)(x.array)
    assert (
        g.chunks
        == func.vjp(f, x.array)[1](value)[0].chunks
        == mg.autograd.grad(f(x), x)[0].chunks
        == x.array.chunks
    )
    assert np.allclose(x.grad.compute(), expected.grad.array)


def test_a_sum_spreads_its_cotangent_in_chunks() -> None:
    """Not only the gradient of the leaf: no task between has a larger block."""
    x = leaf(np.ones((1000, 10)), chunks=(100, 10))
    (mg.sum(x * 2.0) + mg.mean(x**2)).backward()
    with dask.config.set({"optimization.fuse.active": False}):
        blocks: list[int] = []

        class Sizes(Callback):
            def _posttask(self, key: Any, result: Any, graph: Any, state: Any, worker: Any) -> None:
                blocks.append(getattr(result, "size", 0))

        with Sizes():
            x.grad.array.compute(scheduler="synchronous", optimize_graph=False)
    assert sorted(blocks)[-2] <= 1000 and blocks.count(10_000) <= 2  # the source, and the result


def test_tensors_are_not_changed_by_what_is_made_of_them() -> None:
    """A Dask array that is written gets another graph: its views and its gradients do not."""
    x = leaf()
    y = x * 1.0
    view = y[0]
    y[0, 0] = 7.0
    assert view.compute()[0] == 7.0 and np.array_equal(x.compute(), X)
    mg.sum(y * y).backward()
    first = x.grad.compute()
    g = x.grad
    mg.sum(x).backward()
    assert np.array_equal(x.grad.compute(), first + 1.0) and g is x.grad


# ----- Unknown sizes -----


def selected(*, requires_grad: bool = True, chunks: int = 4) -> tuple[Any, Any, Any]:
    """A leaf, what a mask selects of its rows, and the same rows of NumPy's."""
    x = leaf(chunks=(2, chunks)) if requires_grad else leaf(chunks=(2, chunks)).detach()
    return x, x[da.from_array(CHOSEN, chunks=2)], mg.asarray(X[CHOSEN], requires_grad=True)


CHOSEN = np.array([False, True, True, True, False, True])
W = np.arange(4.0)
EXACT = {
    "sum": lambda y: mg.sum(y),
    "mean": lambda y: mg.mean(y),
    "mean of rows": lambda y: mg.sum(mg.mean(y, axis=0) ** 2),
    "mean along rows": lambda y: mg.sum(mg.mean(y, axis=1) ** 2),
    "elementwise": lambda y: mg.sum(mg.exp(-y) * y / (1.0 + y**2)),
    "max": lambda y: mg.max(y),
    "max of rows": lambda y: mg.sum(mg.max(y, axis=1)),
    "matmul": lambda y: mg.sum((y @ mg.asarray(W)) ** 2),
    "gram": lambda y: mg.sum((y.T @ y) ** 2),
    "broadcast": lambda y: mg.sum((y - mg.mean(y, axis=0)) ** 2),
    "where": lambda y: mg.sum(mg.where(y > 1, y, y**2)),
    "clip": lambda y: mg.sum(mg.clip(y, 0.5, 2.0) ** 2),
    "softmax": lambda y: mg.sum(mg.softmax(y, axis=1) ** 2),
    "masked again": lambda y: mg.sum(y[y[:, 0] > 1.0] ** 2),
    "keepdims": lambda y: mg.sum(y / mg.sum(y, axis=1, keepdims=True)),
}


def test_clip_keeps_the_dtype_or_raises(lazy: Any) -> None:
    narrow = mg.asarray(da.from_array(X.astype(np.float32), chunks=(2, 4)))
    limit = da.from_array(X, chunks=(2, 4))
    assert mg.clip(narrow, limit).dtype == mg.clip(narrow, 0.5, limit).dtype == np.float32
    for x, low in ((X > 1, 0), (X.astype(int), 0.5), (X + 1j, 0.0)):
        with pytest.raises(TypeError, match="clip: .*(limits are for|the bounds must be)"):
            mg.clip(mg.asarray(da.from_array(x, chunks=(2, 4))), low)


@pytest.mark.parametrize("name", EXACT)
def test_gradients_of_what_a_mask_selects(name: str, lazy: Any) -> None:
    """As on NumPy, in the chunks of the argument; nothing is computed on the way."""
    x, y, plain = selected()
    f = EXACT[name]
    if name == "matmul":
        f = lambda y: mg.sum(
            (y @ mg.asarray(da.from_array(W) if y.array is not plain.array else W)) ** 2
        )
    f(y).backward()
    f(plain).backward()
    expected = np.zeros_like(X)
    expected[CHOSEN] = plain.grad.array
    assert x.grad.array.chunks == x.array.chunks
    assert np.allclose(x.grad.array.compute(scheduler="synchronous"), expected)


def test_higher_derivatives_and_tangents_of_what_a_mask_selects() -> None:
    mask = da.from_array(X > 1.0, chunks=(3, 2))
    f = lambda x: mg.sum(mg.sin(x[mask]) ** 3)
    x, t = da.from_array(X, chunks=(2, 4)), da.from_array(np.cos(X), chunks=(2, 4))
    g = lambda x: mg.sum(mg.sin(mg.asarray(x)[X > 1.0]) ** 3)
    assert np.allclose(
        dask.compute(func.hvp(f, (x,), (t,))[1])[0], func.hvp(g, (X,), (np.cos(X),))[1]
    )
    assert np.allclose(func.jvp(f, (x,), (t,))[1].compute(), func.jvp(g, (X,), (np.cos(X),))[1])


REFUSED = {
    "var": lambda y: mg.var(y),
    "std": lambda y: mg.sum(mg.std(y, axis=0)),
    "prod": lambda y: mg.prod(y),
    "cumulative_sum": lambda y: mg.sum(mg.cumulative_sum(y, axis=0) ** 2),
    "getitem": lambda y: mg.sum(y[:, 0]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_sizes_is_refused_by_name(name: str, lazy: Any) -> None:
    _, y, _ = selected()
    with pytest.raises(BackendError) as raised:
        REFUSED[name](y).backward()
    assert str(raised.value).startswith(f"{name}: its gradient needs sizes of arrays")
    assert str(raised.value).endswith(
        ". Compute unknown sizes (nan) first: call "
        "x.array.compute_chunk_sizes() on the Tensor x that has them."
    )


def test_forwards_that_need_sizes_are_refused(lazy: Any) -> None:
    _, y, _ = selected(requires_grad=False)
    for f, text in (
        (
            lambda: mg.reshape(y, (-1,)),
            "reshape: an array of shape (nan, 4) cannot be given the shape (-1,)",
        ),
        (
            lambda: mg.broadcast_to(y[:, 0], (3, 5)),
            "broadcast_to: an array of shape (nan,) cannot be given the shape (3, 5)",
        ),
        (
            lambda: mg.searchsorted(y[:, 0], da.ones(1)),
            "searchsorted: places need the sizes of the array",
        ),
        (
            lambda: mg.cumulative_sum(y, axis=0, include_initial=True),
            "cumulative_sum: an initial value needs the sizes of the array",
        ),
    ):
        with pytest.raises(BackendError) as raised:
            f()
        assert str(raised.value).startswith(text) and "compute_chunk_sizes()" in str(raised.value)
    for f, text in (
        (
            lambda: mg.sort(y, axis=0),
            "sort needs sizes of arrays (Can not perform automatic rechunking with unknown "
            "(nan) chunk sizes)",
        ),
        (lambda: y[0], "getitem needs sizes of arrays (Arrays chunk sizes are unknown: (nan, 4))"),
        (
            lambda: mg.linalg.svdvals(y),
            "linalg.svdvals needs sizes of arrays (Array chunk sizes are unknown.",
        ),
    ):
        with pytest.raises(BackendError) as raised:
            f()
        assert (
            str(raised.value).startswith(text)
            and str(raised.value).count("compute_chunk_sizes()") == 1
        )
    with pytest.raises(
        ValueError,
        match=r"the number of elements that go into a mean or a variance is unknown: the sizes "
        r"of the array are \(nan,",
    ):
        func.jvp(mg.var, (y.array,), (y.array,))


def test_the_place_of_one_number() -> None:
    assert int(mg.searchsorted(da.arange(4, chunks=2), da.asarray(2.5))) == 3
    assert mg.searchsorted(da.arange(4, chunks=2), da.ones((0, 2))).shape == (0, 2)
    assert (
        float(mg.interp(da.asarray(0.5), da.arange(3, chunks=3), da.asarray([0.0, 2.0, 4.0])))
        == 1.0
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda x: da.ma.masked_array(x, mask=x > 1.0),
            "the chunks of this Dask array are masked arrays, of which derivative rules would "
            "count every element. Pass the values and the mask apart, as in multigrad.sum("
            "multigrad.where(da.ma.getmaskarray(x), 0.0, da.ma.getdata(x))).",
        ),
        (
            lambda x: x.map_blocks(np.matrix),
            "the chunks of this Dask array are of the type numpy.matrix, which may not follow the "
            "Array API standard. Convert them to plain arrays first: x.map_blocks(numpy.asarray).",
        ),
    ],
)
def test_chunks_that_are_no_plain_arrays_are_refused(
    make: Callable[[Any], Any], message: str
) -> None:
    """A mean of a masked array has fewer elements than its gradient would count."""
    x = make(da.from_array(X, chunks=(2, 2)))
    for enter in (mg.sin, mg.asarray, func.grad(mg.mean), lambda x: leaf() + x):
        with pytest.raises(BackendError, match=re.escape(f"backend 'dask': {message}")):
            enter(x)


def test_the_way_out_of_a_masked_array() -> None:
    x = da.ma.masked_array(da.from_array(X, chunks=(2, 2)), mask=X > 1.0)
    values, mask = mg.asarray(da.ma.getdata(x), requires_grad=True), da.ma.getmaskarray(x)
    mean = mg.sum(mg.where(mask, 0.0, values)) / mg.sum(mg.astype(~mask, values.dtype))
    mean.backward()
    assert np.allclose(mean.compute(), x.mean().compute())
    assert np.allclose(values.grad.compute(), (X <= 1.0) / (X <= 1.0).sum())


def test_lengths_without_axes_are_those_of_the_last_axes() -> None:
    x = leaf(np.arange(24.0).reshape(4, 3, 2), chunks=(2, 2, 1))
    y = mg.asarray(x.array.compute(), requires_grad=True)
    for t in (x, y):
        mg.sum(mg.abs(mg.fft.fftn(t, s=(4, 4))) ** 2).backward()
    assert mg.fft.fftn(x, s=(4, 4)).shape == (4, 4, 4)
    assert np.allclose(x.grad.compute(), y.grad.array)


@pytest.mark.parametrize("shape", [(3,), (2, 5), (5, 2), (0, 3)])
def test_the_diagonal_of_a_matrix_that_is_no_square(shape: tuple[int, ...]) -> None:
    for k in (-4, -1, 0, 1, 4):
        made = mg.namespace("dask").eye(*shape, k=k, dtype=np.float32)
        assert made.dtype == np.float32
        assert np.array_equal(made.compute(), np.eye(*shape, k=k))


def test_matrices_without_elements_beside_others() -> None:
    none, one = da.zeros((0, 2, 2), chunks=1), da.ones((2, 1), chunks=1)
    assert mg.linalg.solve(none, one).compute().shape == (0, 2, 1)
    assert mg.linalg.solve(one @ one.T, da.zeros((2, 0))).compute().shape == (2, 0)
    x = mg.asarray(da.ones((2, 3), chunks=1)[:, :0], requires_grad=True)
    mg.sum(mg.linalg.svdvals(x)).backward()
    assert x.grad.compute().shape == (2, 0)
    assert mg.linalg.matrix_norm(da.zeros((0, 2, 3), chunks=1), ord=2).compute().shape == (0,)
    assert mg.linalg.matrix_norm(da.ones((2, 2, 3), chunks=1), ord="nuc").compute().shape == (2,)


def test_repeats_that_are_an_array(lazy: Any) -> None:
    """The size is unknown; the gradient is summed block by block."""
    times = np.array([2, 0, 3, 1, 0, 1])
    plain = mg.asarray(X, requires_grad=True)
    for axis, n in ((0, 6), (None, X.size)):
        repeats = np.resize(times, n)
        mg.sum(mg.repeat(plain, repeats, axis=axis) ** 2).backward()
        x = leaf(chunks=(2, 2))
        y = mg.repeat(x, da.from_array(repeats, chunks=4), axis=axis)
        mg.sum(y**2).backward()
        assert x.grad.array.chunks == x.array.chunks
        assert np.allclose(x.grad.compute(scheduler="synchronous"), plain.grad.array)
        plain.grad = None


def test_repeats_that_are_an_array_beside_one_in_other_chunks() -> None:
    x = leaf(chunks=(2, 2))
    y = mg.repeat(x, da.from_array(np.array([2, 0, 3, 1, 0, 1]), chunks=2), axis=0)
    y.array.compute_chunk_sizes()
    weights = np.arange(28.0).reshape(7, 4)
    mg.sum(y * da.from_array(weights, chunks=(3, 4))).backward()
    expected = mg.asarray(X, requires_grad=True)
    mg.sum(mg.repeat(expected, np.array([2, 0, 3, 1, 0, 1]), axis=0) * weights).backward()
    assert np.allclose(x.grad.compute(), expected.grad.array)


def test_rows_of_unknown_sizes_are_not_added_at_other_places() -> None:
    """NumPy would add a single row at each place."""
    values, places = da.ones(4, chunks=4), da.arange(4, chunks=4)
    one = values[da.from_array(np.arange(4) == 1, chunks=4)]
    scatter_add = extend.raw_namespace("dask").scatter_add
    with pytest.raises(
        ValueError, match=r"a block of 1 rows is to be added at 4 places: arrays of "
    ):
        scatter_add(one, places, 4).compute(scheduler="synchronous")
    with pytest.raises(
        BackendError, match=r"scatter_add: an array of shape \(4,\) cannot be given"
    ):
        scatter_add(one, da.arange(4, chunks=2), 4)


def test_a_gradient_that_is_the_same_for_all_examples() -> None:
    """That of a linear function has no axis of examples, unlike its argument, whose chunks it gets."""
    x = da.from_array(X, chunks=(2, 2))
    pulled = func.vmap(lambda row: func.vjp(lambda y: y * 2.0, row)[1](da.ones(4))[0])(x)
    assert np.array_equal(np.asarray(pulled), np.full((6, 4), 2.0))


def test_take_from_a_vector() -> None:
    x = leaf(np.arange(4.0), chunks=2)
    mg.take(x, da.from_array(np.array([3, 0, 3]), chunks=2)).sum().backward()
    assert x.grad.compute().tolist() == [1.0, 0.0, 0.0, 2.0]


@pytest.mark.parametrize("name", ["max", "min"])
def test_blocks_without_elements_have_no_extremum(name: str) -> None:
    """Neither where a mask has left them so, nor where there are none to begin with."""
    x = leaf(chunks=(2, 2))
    y = x[da.from_array(np.array([False, False, True, False, False, True]), chunks=2)]
    f = getattr(mg, name)
    for axis in (None, 0, (0, 1)):
        out = f(y, axis=axis)
        assert np.array_equal(out.compute(), f(mg.asarray(X[[2, 5]]), axis=axis).array)
    mg.sum(f(y, axis=0)).backward()
    expected = np.zeros_like(X)
    expected[5 if name == "max" else 2] = 1.0
    assert np.array_equal(x.grad.compute(), expected)
    assert f(da.ones((0, 3)), axis=1).compute().shape == (0,)
    with pytest.raises(ValueError, match="zero-size array to reduction operation"):
        f(y[y > 99.0]).compute()


def test_blocks_of_unknown_sizes_are_not_broadcast() -> None:
    """NumPy would repeat a block of one element, and the gradient would have the shape of the
    other.
    """
    x = mg.asarray(da.from_array(np.arange(4.0), chunks=4), requires_grad=True)
    one, three = (
        x[da.from_array(np.arange(4) == 1, chunks=4)],
        x[da.from_array(np.arange(4) > 0, chunks=4)],
    )
    y = mg.sum(one * three)
    y.backward()
    with pytest.raises(ValueError) as raised:
        y.compute(scheduler="synchronous")
    assert str(raised.value) == (
        "multiply: arrays of unknown sizes must have the same sizes block by block, but two "
        "have (1,) and (3,). Compute them before they are broadcast: "
        "x.array.compute_chunk_sizes()."
    )


def test_sizes_that_were_computed_are_known() -> None:
    x, y, plain = selected()
    y.array.compute_chunk_sizes()
    assert y.shape == plain.shape
    mg.var(y).backward()
    mg.var(plain).backward()
    assert np.allclose(x.grad.compute()[CHOSEN], plain.grad.array)


def test_unique_values_have_gradients() -> None:
    x = mg.asarray(da.from_array(np.array([3.0, 1.0, 3.0, 2.0]), chunks=2), requires_grad=True)
    mg.sum(mg.unique_values(x) ** 2).backward()
    assert x.grad.compute().sum() == pytest.approx(12.0)


# ----- The example -----


def test_out_of_core_trains(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys,
        "argv",
        ["out_of_core.py", "--megabytes", "8", "--steps", "2", "--scheduler", "threads"],
    )
    runpy.run_path(str(ROOT / "examples" / "out_of_core.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert "8 MB in 1 chunks of 8.0 MB" in lines
    first, second = (
        float(line.split("the loss was ")[1].split(",")[0])
        for line in lines
        if "the loss was" in line
    )
    assert second < 0.2 * first


def test_out_of_core_on_a_cluster(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    monkeypatch.setattr(
        sys, "argv", ["out_of_core.py", "--megabytes", "40", "--steps", "1", "--memory", "500MB"]
    )
    runpy.run_path(str(ROOT / "examples" / "out_of_core.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert "100% Completed" in out and "step 1: the loss was" in out
