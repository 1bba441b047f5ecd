"""Batching rules at their edges, against a loop over the examples: axes, shapes, dtypes, Python
scalars, what is the same for all.
"""

from __future__ import annotations

import numpy as np
import pytest
from batches import looped, numpy, raw

import multigrad as mg
from multigrad import func
from multigrad.errors import BatchingError, GradientError, LeakError, MixedBackendsError
from multigrad.registry import define, linear

DRAW = np.random.default_rng(11)
X = DRAW.uniform(-2, 2, (3, 2, 4))
V = DRAW.uniform(-2, 2, (3, 4))
M = DRAW.uniform(-2, 2, (3, 4, 4))


def on(x, axis):
    """A stack of examples, or, where all have the same, the first one."""
    return x if axis == 0 else x[0]


class TestAxes:
    """An axis of an example is never that of the batch."""

    def test_an_axis_out_of_bounds_raises(self, xp):
        calls = [
            lambda x, a: xp.sum(x, axis=a),
            lambda x, a: xp.max(x, axis=(0, a)),
            lambda x, a: xp.flip(x, axis=a),
            lambda x, a: xp.sort(x, axis=a),
            lambda x, a: xp.concat([x, x], axis=a),
            lambda x, a: xp.squeeze(x, axis=a),
            lambda x, a: xp.moveaxis(x, a, 0),
            lambda x, a: xp.fft.fft(x, axis=a),
            lambda x, a: xp.fft.fftn(x, axes=(a,)),
            lambda x, a: xp.linalg.vector_norm(x, axis=a),
            lambda x, a: xp.repeat(x, 2, axis=a),
            lambda x, a: xp.take(x, xp.asarray([0]), axis=a),
            lambda x, a: xp.vecdot(x, x, axis=a),
            lambda x, a: xp.linalg.cross(x, x, axis=a),
            lambda x, a: xp.expand_dims(x, axis=a + 1 if a > 0 else a - 1),
            lambda x, a: xp.stack([x, x], axis=a + 1 if a > 0 else a - 1),
        ]
        for f in calls:
            for a in (2, -3):
                with pytest.raises(
                    IndexError, match=r"axis -?\d is out of bounds for an array of dimension [23]"
                ):
                    func.vmap(lambda x, f=f, a=a: f(x, a))(raw(xp, X))

    def test_axes_counted_from_the_front_of_two_operands(self, xp, backend):
        x = DRAW.uniform(-1, 1, (2, 3, 2))
        looped(xp, lambda x, y: xp.linalg.cross(x, y, axis=0), x, x[::-1].copy())
        if backend != "strict":  # which takes negative ones alone
            looped(xp, lambda x, y: xp.vecdot(x, y, axis=0), x, x[::-1].copy())

    def test_a_transform_over_more_axes_than_there_are(self, xp):
        with pytest.raises(IndexError, match="axis -3 is out of bounds"):
            func.vmap(lambda x: xp.fft.fftn(x, s=(2, 2, 2)))(raw(xp, X))

    def test_shapes_that_do_not_fit(self, xp):
        for shape in ((3,), (-1, -1), (0, -1)):
            with pytest.raises(ValueError, match="cannot take the shape"):
                func.vmap(lambda x, shape=shape: xp.reshape(x, shape))(raw(xp, X))
        with pytest.raises(ValueError, match=r"shape \(0, 2\) cannot take the shape \(0, -1\)"):
            func.vmap(lambda x: xp.reshape(x, (0, -1)))(raw(xp, np.zeros((3, 0, 2))))
        with pytest.raises(ValueError, match="cannot be broadcast to"):
            func.vmap(lambda x: xp.broadcast_to(x, (4,)))(raw(xp, X))

    def test_matrices_are_asked_of_examples(self, xp):
        for f in (
            xp.linalg.inv,
            xp.linalg.svdvals,
            xp.tril,
            xp.linalg.trace,
            xp.matrix_transpose,
            lambda x: xp.linalg.solve(x, x),
        ):
            with pytest.raises(
                ValueError, match="expected matrices, but inside vmap got an array of shape"
            ):
                func.vmap(f)(raw(xp, M[0]))


class TestSizes:
    """Examples without axes or elements, batches of one and of none."""

    def test_examples_without_axes(self, xp):
        looped(
            xp,
            lambda x: (
                xp.sum(x),
                xp.max(x, keepdims=True),
                xp.reshape(x, (1, 1)),
                xp.stack([x, x]),
                xp.expand_dims(x, axis=-1),
                x * 2,
                -x,
                xp.concat([x, x], axis=None),
                xp.broadcast_to(x, (2,)),
                xp.full((2, 2), x),
                xp.flip(x),
            ),
            V[:, 0],
        )

    def test_no_examples_at_all(self, xp):
        f = lambda x, y, i: (
            xp.sum(x),
            x @ y,
            x[i],
            xp.concat([x, x]),
            xp.take(x, i, axis=0),
            xp.sort(x),
            xp.where(x > 0, x, 0),
        )
        found = func.vmap(f, in_axes=(0, None, 0))(
            raw(xp, X[:0]), raw(xp, X[0].T), raw(xp, np.zeros((0, 3), np.int64))
        )
        assert [tuple(y.shape) for y in found] == [
            (0,),
            (0, 2, 2),
            (0, 3, 4),
            (0, 4, 4),
            (0, 3, 4),
            (0, 2, 4),
            (0, 2, 4),
        ]

    def test_examples_without_elements(self, xp):
        empty = np.zeros((3, 0, 2))
        looped(
            xp,
            lambda x: (
                xp.sum(x, axis=0),
                x @ xp.ones((2, 4), dtype=x.dtype),
                xp.concat([x, x]),
                xp.reshape(x, (2, 0)),
                x.T,
            ),
            empty,
        )
        looped(xp, lambda x, v: xp.searchsorted(x, v), np.zeros((3, 0)), V)


class TestOperands:
    """Ranks, dtypes and scalars on either side."""

    @pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
    def test_elementwise_operands_of_any_rank(self, xp, axes, backend):
        ranks = (((3, 4), (3, 2, 1)), ((3,), (3, 2, 4)), ((3, 2, 4), (3,)), ((3, 3), (3, 2, 3)))
        for a, b in ranks[:1] if backend == "jax" else ranks:
            a, b = DRAW.uniform(0.5, 2, a), DRAW.uniform(0.5, 2, b)
            f = lambda x, y: (x + y, xp.atan2(x, y), xp.where(x > y, x, y), xp.clip(x, y, y + 1))
            looped(xp, f, on(a, axes[0]), on(b, axes[1]), in_axes=axes)

    @pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
    def test_products_of_any_rank(self, xp, axes, backend):
        # A length equal to that of the batch hides a wrong axis: both kinds are here.
        ranks = (
            ((3, 3), (3, 3)),
            ((3,), (2, 3, 2)),
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (3, 2)),
            ((2, 2, 3), (3, 3)),
            ((3, 3), (2, 3, 2)),
            ((2, 2, 3), (3,)),
            ((2, 1, 2, 3), (3, 3, 2)),
        )
        for a, b in ranks[:2] if backend == "jax" else ranks:  # which compiles each of them
            a, b = DRAW.uniform(-1, 1, (3, *a)), DRAW.uniform(-1, 1, (3, *b))
            looped(xp, lambda x, y: x @ y, on(a, axes[0]), on(b, axes[1]), in_axes=axes)

    @pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
    def test_systems_of_any_rank(self, xp, axes, backend):
        ranks = (
            ((3, 3), (3,)),
            ((3, 3), (3, 2)),
            ((2, 3, 3), (3, 2)),
            ((3, 3), (2, 3, 2)),
            ((2, 3, 3), (3,)),
        )
        for a, b in ranks[:1] if backend == "jax" else ranks:
            a, b = DRAW.uniform(-1, 1, (3, *a)) + 2 * np.eye(3), DRAW.uniform(-1, 1, (3, *b))
            looped(
                xp, lambda x, y: xp.linalg.solve(x, y), on(a, axes[0]), on(b, axes[1]), in_axes=axes
            )

    def test_products_that_do_not_fit(self, xp):
        for f, text in (
            (lambda x: x @ x[0, 0, ...], "must have at least one dimension"),
            (lambda x: xp.tensordot(x, x, axes=1), "different lengths"),
            (lambda x: xp.linalg.outer(x, x[0, :]), "must have one dimension"),
        ):
            with pytest.raises(ValueError, match=text):
                func.vmap(f)(raw(xp, X))

    def test_another_backend_is_refused(self, xp, backend):
        other = mg.asarray(np.ones(4), backend="strict" if backend == "numpy" else "numpy")
        for f in (lambda x: x + other, lambda x: xp.stack([x, other]), lambda x: x @ other):
            with pytest.raises(MixedBackendsError, match="two backends"):
                func.vmap(f)(raw(xp, V))


class TestOperations:
    """Those with a rule of their own."""

    def test_searching_sorted_rows(self, xp):
        rows, values = (
            np.sort(DRAW.integers(0, 5, (3, 6)).astype(float)),
            np.array([[np.nan, 0.5, 2, 9], [-1, 2, np.inf, 3], [4, 4, 0, np.nan]]),
        )
        rows[1, 4:] = np.nan
        for side in ("left", "right"):
            looped(xp, lambda x, v, side=side: xp.searchsorted(x, v, side=side), rows, values)
        order = np.stack([DRAW.permutation(6) for _ in range(3)])
        mixed = np.empty((3, 6))
        np.put_along_axis(mixed, order, np.sort(DRAW.uniform(-1, 1, (3, 6))), axis=1)
        looped(xp, lambda x, v, p: xp.searchsorted(x, v, sorter=p), mixed, V, order)

    def test_running_sums_of_matrices(self, xp):
        with pytest.raises(ValueError, match="axis is required for an array of 2 dimensions"):
            func.vmap(lambda x: xp.cumulative_sum(x))(raw(xp, X))

    def test_a_place_out_of_bounds_is_no_place_of_another_example(self, xp, backend):
        if backend == "jax":
            pytest.skip("under jax no index is out of bounds: it is clamped, or gives nan")
        calls = [
            (lambda x, i: xp.take(x, i, axis=0), (3, 2)),
            (lambda x, i: xp.take(x, i, axis=1), (3, 2)),
            (lambda x, i: xp.take_along_axis(x, i, axis=0), (3, 2, 4)),
        ]
        for f, shape in calls:
            for place in (4, -5):
                with pytest.raises(IndexError, match="out of bounds"):
                    func.vmap(f)(raw(xp, M), raw(xp, np.full(shape, place)))

    def test_a_tolerance_for_each_example(self, xp):
        for axes in ((0, 0), (None, 0), (0, None)):
            rtol = np.array([1e-3, 0.3, 0.8])
            looped(
                xp,
                lambda x, t: (xp.linalg.pinv(x, rtol=t), xp.linalg.matrix_rank(x, rtol=t)),
                on(X, axes[0]),
                on(rtol, axes[1]),
                in_axes=axes,
            )
        stacks = DRAW.uniform(-1, 1, (3, 2, 3, 3))
        looped(xp, lambda x, t: xp.linalg.pinv(x, rtol=t), stacks, DRAW.uniform(0.1, 0.9, (3, 2)))

    def test_a_refusal_for_one_example(self, xp, backend):
        f = lambda x, bad: xp.refuse(x, bad, "no such thing")
        looped(xp, f, V[0], np.zeros(3, bool), in_axes=(None, 0))
        with pytest.raises(GradientError, match="no such thing"):
            func.vmap(f, in_axes=(None, 0))(raw(xp, V[0]), raw(xp, [False, True, False]))

    def test_what_must_be_the_same_for_all(self, xp):
        n = lambda x: xp.astype(x[0] > 0, xp.int64)
        calls = {
            "shift": lambda x: xp.roll(x, n(x)),
            "shape": lambda x: xp.reshape(x, (n(x), 4)),
            "num": lambda x: xp.linspace(x[0], 1.0, n(x)),
            "k": lambda x: xp.tril(xp.stack([x, x]), k=n(x)),
            "axis": lambda x: xp.sum(x, axis=n(x)),
            "repetitions": lambda x: xp.tile(x, (n(x),)),
        }
        for name, f in calls.items():
            with pytest.raises(
                BatchingError, match=f"the argument {name!r} must be the same for all examples"
            ):
                func.vmap(f)(raw(xp, V))

    def test_shapes_that_depend_on_values(self, xp):
        repeats = lambda x: xp.repeat(x, xp.astype(x > 0, xp.int64))
        for f in (
            lambda x: xp.nonzero(x),
            lambda x: xp.unique_values(x),
            lambda x: xp.unique_inverse(x),
            lambda x: x[x > 0],
            repeats,
        ):
            with pytest.raises(
                BatchingError, match="inside vmap: the shape of its result depends on the values"
            ):
                func.vmap(f)(raw(xp, V))

    def test_conversion(self, xp, backend):
        other = "strict" if backend == "numpy" else "numpy"
        looped(xp, lambda x: x.to_backend(other).to_backend(backend) * 2, V)
        found = func.vmap(lambda x: mg.namespace(other).sum(x.to_backend(other)))(raw(xp, V))
        np.testing.assert_allclose(numpy(found), V.sum(1))
        looped(xp, lambda x: x.to_device(x.device), V)


class TestValues:
    """What one example has as its value is not known."""

    def test_questions(self, xp):
        questions = {
            "bool": bool,
            "float": float,
            "int": int,
            "item": lambda x: x.item(),
            "tolist": lambda x: x.tolist(),
            "an index": lambda x: [0, 1][x],
        }
        for name, f in questions.items():
            with pytest.raises(
                BatchingError,
                match=rf"{name}(\(\))? of an array inside vmap: it is a batch of 3 "
                r"examples",
            ):
                func.vmap(lambda x, f=f: f(xp.astype(x[0], xp.int64)))(raw(xp, V))

    def test_numpy(self, xp):
        with pytest.raises(
            GradientError, match=r"Can't call numpy\(\) on a batch: .* make that a Tensor"
        ):
            func.vmap(lambda x: np.asarray(x))(raw(xp, V))

    def test_afterwards(self, xp):
        kept = []
        func.vmap(lambda x: (kept.append(x), x)[1])(raw(xp, V))
        with pytest.raises(LeakError, match="used after it had finished"):
            kept[0] + 1


class TestLayers:
    """Batches in batches, over Tensors and under them."""

    def test_indices_of_either_level(self, xp, backend):
        # where integer arrays stand beside integers alone
        last = () if backend == "strict" else (slice(None, None, -1),)
        table, rows = DRAW.uniform(-1, 1, (3, 5, 2)), DRAW.integers(0, 5, (3, 4))
        found = func.vmap(
            lambda t, i: func.vmap(lambda j: t[(j, *last)] if last else t[j, ...])(i)
        )(raw(xp, table), raw(xp, rows))
        np.testing.assert_array_equal(
            numpy(found), np.take_along_axis(table, rows[:, :, None], axis=1)[(..., *last)]
        )

    def test_tensors_outside(self, xp):
        x, w = xp.asarray(V, requires_grad=True), xp.asarray(V[0], requires_grad=True)
        out = func.vmap(lambda a: xp.sum(xp.sin(a) * w))(x)
        (out * xp.asarray(np.array([1.0, 2.0, 3.0]))).sum().backward()
        scale = np.array([1.0, 2.0, 3.0])[:, None]
        np.testing.assert_allclose(numpy(x.grad), np.cos(V) * V[0] * scale)
        np.testing.assert_allclose(numpy(w.grad), (np.sin(V) * scale).sum(0))

    def test_writes_with_tensors_outside(self, xp):
        def f(a):
            b = a * 1
            b[0] = b[1] * 2
            part = b[1:]
            part *= 3
            return b

        x = xp.asarray(V, requires_grad=True)
        (func.vmap(f)(x) * xp.asarray(np.array([1.0, 10.0, 100.0, 1000.0]))).sum().backward()
        np.testing.assert_allclose(numpy(x.grad), np.tile([0.0, 32.0, 300.0, 3000.0], (3, 1)))


@pytest.mark.filterwarnings("ignore:the operation")
def test_a_list_of_arrays_without_a_batching_rule(operations):
    """Of an operation that is computed for one example after the other."""
    linear(
        "t.mix(arrays: arrays, /)",
        forward=lambda xp, arrays: arrays[0] + 2 * arrays[1],
        arrays=lambda xp, g, needs: [g, 2 * g],
    )
    for kind in (tuple, list):
        try:
            found = func.vmap(lambda x, y, kind=kind: mg.t.mix(kind((x, y))))(V, V)
        except ValueError as error:  # of a RecursionError
            raise AssertionError from error
        np.testing.assert_array_equal(found, 3 * V)


@pytest.mark.parametrize("axis", [mg.asarray(0), np.int64(0)], ids=["Tensor", "scalar"])
def test_an_axis_that_is_an_array_is_that_of_an_example(axis):
    """Also where the batch holds Tensors or Duals."""
    x, batch = np.array([[3.0, 1.0], [1.0, 4.0]]), func.vmap
    xs = np.stack([x, x + 1])
    for f in (mg.sum, mg.sort, mg.flip, mg.max):
        of_axis = lambda a, f=f, axis=axis: f(a, axis=axis)
        _, tangents = func.jvp(batch(of_axis), (xs,), (xs,))
        np.testing.assert_array_equal(tangents, np.stack([f(a, axis=0) for a in xs]))
    t = mg.asarray(xs)
    gradients = batch(func.grad(lambda a: mg.sum(mg.sort(a, axis=axis) ** 2)))(t)
    np.testing.assert_array_equal(numpy(gradients), 2 * xs)


@pytest.mark.filterwarnings("ignore:the operation")
def test_a_constant_beside_examples_that_were_computed_one_by_one(operations):
    """The node of each example knows when the constant is written."""
    define(
        "t.scale(x, c, /)",
        forward=lambda xp, x, c: x * c,
        x=lambda xp, g, c: g * c,
        c=lambda xp, g, x: g * x,
    )
    x = mg.asarray(V, requires_grad=True)
    c = mg.asarray(V[0].copy())
    y = func.vmap(lambda v: mg.t.scale(v, c))(x)
    c.zero_()
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        mg.sum(y).backward()
