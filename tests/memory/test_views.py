"""Views under in-place operations, beyond what the programs of parity show: transformations,
traces, memory, chains, the fast path.
"""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from conftest import values
from leaves import check, leaf

import multigrad as mg
from multigrad.autograd import Function, graph
from multigrad.errors import GradientError

X = np.asarray([1.0, 2.0, 3.0, 4.0])


def mutating(x: Any) -> Any:
    """(2 x0 x1 x2 + x3 x0)**2 summed in a roundabout way: what it does is undone nowhere, so each
    write must be seen.
    """
    xp = x.__array_namespace__()
    y = x * 1.0
    m = xp.reshape(y, (2, 2))
    m[0, ...] *= m[1, ...]  # y = x0 x2, x1 x3, x2, x3
    t = m.mT
    t[1, 0] = y[0] * 2.0  # y = x0 x2, 2 x0 x2, x2, x3
    v = y[1:3]
    v += y[2:]  # y = x0 x2, 2 x0 x2 + x2, x2 + x3, x3
    return xp.sum(y * y)


def by_hand(x: Any) -> Any:
    a, _, c, d = x
    return np.asarray([a * c, 2 * a * c + c, c + d, d])


def gradient_by_hand(x: Any) -> Any:
    a, _, c, _ = x
    y = by_hand(x)
    return 2 * np.asarray(
        [y[0] * c + y[1] * 2 * c, 0, y[0] * a + y[1] * (2 * a + 1) + y[2], y[2] + y[3]]
    )


class TestEverywhere:
    def test_reverse_mode(self, xp: Any) -> None:
        x = leaf(xp, X)
        loss = mutating(x)
        check(loss, np.sum(by_hand(X) ** 2))
        (g,) = mg.autograd.grad(loss, x, create_graph=True)
        check(g, gradient_by_hand(X))
        h = mg.autograd.functional.hessian(mutating, x)
        step = 1e-6
        for i in range(4):
            e = np.eye(4)[i] * step
            np.testing.assert_allclose(
                values(h)[i],
                (gradient_by_hand(X + e) - gradient_by_hand(X - e)) / (2 * step),
                atol=1e-7,
            )

    def test_checked_numerically(self, xp: Any) -> None:
        assert mg.autograd.gradcheck(mutating, leaf(xp, X))
        assert mg.autograd.gradgradcheck(mutating, leaf(xp, X))

    def test_inside_transformations(self, xp: Any) -> None:
        raw = xp.asarray(X.copy()).array
        found = mg.func.grad(mutating)(raw)
        np.testing.assert_allclose(np.asarray(found), gradient_by_hand(X))
        np.testing.assert_array_equal(np.asarray(raw), X)
        second = mg.func.grad(lambda x: x.__array_namespace__().sum(mg.func.grad(mutating)(x)))(raw)
        x = leaf(xp, X)
        (g,) = mg.autograd.grad(mutating(x), x, create_graph=True)
        (expected,) = mg.autograd.grad(xp.sum(g), x)
        np.testing.assert_allclose(np.asarray(second), values(expected))

    def test_a_view_of_a_captured_constant_is_not_written_from_inside(self, xp: Any) -> None:
        outside = xp.zeros(3, dtype=xp.float64)
        row = outside[1:]

        def leak(x: Any) -> Any:
            row[0] = x[0]
            return xp.sum(x)

        with pytest.raises(
            GradientError,
            match="a value of a running transformation cannot be written into an array from "
            "outside of it",
        ):
            mg.func.grad(leak)(leaf(xp, X).array)
        check(outside, np.zeros(3))

    def test_a_chain_of_views(self, xp: Any) -> None:
        x = leaf(xp, X)
        y = x * 1.0
        chain = [y]
        for _ in range(30 if "jax" in xp.__name__ else 3000):  # deeper than Python's stack
            chain.append(chain[-1][...])
        y *= 2
        check(chain[-1], 2 * X)
        chain[-1][0] = 9.0
        check(y, [9, 4, 6, 8])
        xp.sum(chain[-1] * chain[-1]).backward()
        check(x.grad, [0, 16, 24, 32])

    def test_many_writes(self, xp: Any) -> None:
        n = 50 if "jax" in xp.__name__ else 3000
        x = leaf(xp, [0.5])
        y = xp.zeros(n, dtype=xp.float64)
        y[0] = x[0]
        for i in range(1, n):
            y[i] = y[i - 1] * 1.0 + x[0]
        y[-1].backward()
        check(x.grad, [n])

    def test_a_failed_write_changes_nothing(self, xp: Any) -> None:
        y = leaf(xp, X) * 1.0
        v = y[1:3]
        node = y.grad_fn
        for write in (
            lambda: v.__iadd__(xp.ones(3, dtype=xp.float64)),
            lambda: y.__setitem__(slice(1, 3), xp.ones(3, dtype=xp.float64)),
            lambda: y.__setitem__(100, 1.0),
            lambda: v.__setitem__(100, 1.0),
            lambda: v.__iadd__(xp.asarray([1j, 1j])),
            lambda: v.__setitem__(0, 1j),
            lambda: xp.unstack(y)[0].__imul__(2.0),
        ):
            with pytest.raises((RuntimeError, IndexError, ValueError, TypeError)):
                write()
            assert y._version == v._version == 0 and y.grad_fn is node
            check(y, X)
            check(v, X[1:3])


class TestMemory:
    def test_views_and_their_graphs_are_freed_by_counting(self, xp: Any) -> None:
        gc.collect()
        gc.disable()
        try:
            x = leaf(xp, X)
            y = x * 1.0
            v = y[1:3]
            v *= 3.0
            w = y[1:]
            kept = [weakref.ref(t) for t in (y, v, w, y.grad_fn, w.grad_fn)]
            del y, v, w
            assert [r() for r in kept] == [None] * 5
        finally:
            gc.enable()

    def test_the_memory_of_the_user_is_written(self) -> None:
        a = X.copy()
        t = mg.asarray(a)
        t[1:] *= 2
        mg.reshape(t, (2, 2)).mT[0, 1] += 1
        np.testing.assert_array_equal(a, [1, 4, 7, 8])
        b = np.asfortranarray(X.reshape(2, 2))
        u = mg.asarray(b)
        flat = mg.reshape(u.mT, (4,))  # a view: of the transpose, the memory is in row-major order
        flat[1] = 10.0
        copied = mg.reshape(u, (4,))
        copied[0] = 99.0
        np.testing.assert_array_equal(b, [[1, 2], [10, 4]])

    def test_memory_with_gaps_and_backwards(self) -> None:
        for a in (
            np.arange(12.0)[::2],
            np.arange(6.0)[::-1],
            np.arange(12.0).reshape(3, 4)[:, 1:3],
            np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        ):
            x = mg.asarray(a.copy(order="K"), requires_grad=True)
            y = mg.asarray(a)
            d = y.detach()
            w = mg.reshape(y, (6,))
            w[1:3] *= 5.0  # of the base itself, or of a copy
            assert np.shares_memory(w.array, a) == (values(w)[1] == values(mg.reshape(d, (6,)))[1])
            z = x * 1.0
            z[..., ::2] = z[..., ::2] * 3.0
            (g,) = mg.autograd.grad(z.sum(), x)
            expected = np.ones(a.shape)
            expected[..., ::2] = 3.0
            check(g, expected)

    def test_a_diagonal_is_written(self, xp: Any) -> None:
        """NumPy marks it read-only, other libraries make a copy."""
        x = leaf(xp, X.reshape(2, 2))
        y = x * 1.0
        d = xp.linalg.diagonal(y)
        d *= 10.0
        check(y, [[10, 2], [3, 40]])
        check(d, [10, 40])
        xp.sum(y * y).backward()
        check(x.grad, [[200, 4], [6, 800]])

    def test_read_only_memory(self) -> None:
        a = X.copy()
        a.flags.writeable = False
        y = mg.asarray(a)
        for t in (y, y[1:], mg.reshape(y, (2, 2)).mT):
            with pytest.raises(
                RuntimeError, match="^multiply: the memory of this Tensor is read-only"
            ):
                t *= 2
        np.testing.assert_array_equal(a, X)

    def test_infinite_parts_of_complex_numbers(self, xp: Any) -> None:
        y = xp.asarray(np.asarray([1 + 2j, 3 - 1j]), requires_grad=True) * 1.0
        re, im = xp.real(y), xp.imag(y)
        re[0] = np.inf
        im[1] = -np.inf
        np.testing.assert_array_equal(values(y).real, [np.inf, 3])
        np.testing.assert_array_equal(values(y).imag, [2, -np.inf])

    def test_copies_of_views(self, xp: Any) -> None:
        y = xp.asarray(X.copy())
        v = y[1:]
        y *= 2
        for again in (
            copy.copy(v),
            copy.deepcopy(v),
            pickle.loads(pickle.dumps(v)) if "jax" not in xp.__name__ else v.clone(),
        ):
            check(again, 2 * X[1:])

    def test_new_data_for_a_view(self, xp: Any) -> None:
        y = xp.asarray(X.copy())
        v, d = y[1:3], y.detach()
        v.data = xp.asarray(np.asarray([8.0, 9.0]))
        d.data = xp.asarray(2 * X)
        y += 1
        d *= 10
        for t, expected in (
            (v, [8, 9]),
            (v.detach(), [8, 9]),
            (d, 20 * X),
            (d.detach(), 20 * X),
            (y, X + 1),
        ):
            check(t, expected)


class TestReshape:
    def test_the_fast_path_knows_views_from_copies(self, xp: Any) -> None:
        base = xp.asarray(np.arange(6.0).reshape(2, 3))
        for _ in range(3):  # the first call learns
            views = (
                xp.reshape(base, (6,)),
                xp.reshape(base[1:, :], (3, 1)),
                xp.reshape(xp.reshape(base, (3, 2))[:, 0], (3, 1)),
                base.reshape(-1),
            )
            copies = (
                xp.reshape(base.mT, (6,)),
                xp.reshape(base[:, :2], (4,)),
                xp.reshape(base, (6,), copy=True),
                xp.reshape(base[:, ::2], (4,)),
            )
            base += 1
            now = values(base)
            check(views[0], now.reshape(-1))
            check(views[1], now[1:].reshape(3, 1))
            check(views[2], now.reshape(3, 2)[:, :1])
            check(views[3], now.reshape(-1))
            for found, expected in zip(copies, (now.T, now[:, :2], now, now[:, ::2]), strict=True):
                check(found, expected.reshape(-1) - 1)

    def test_copy_false(self, xp: Any) -> None:
        if "jax" in xp.__name__:
            pytest.skip("jax.numpy does not take copy=False")
        base = xp.asarray(np.arange(6.0).reshape(2, 3))
        xp.reshape(base, (6,), copy=False)[0] = 9.0
        assert float(base[0, 0]) == 9.0
        with pytest.raises((ValueError, AttributeError)):  # AttributeError: of array_api_strict
            xp.reshape(base.mT, (6,), copy=False)


class Doubled(Function):
    """Doubles its argument in place."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x *= 2.0
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2.0 * g


class Tail(Function):
    """A view of its argument."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x[1:]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        xp = g.__array_namespace__()
        return xp.concat([xp.zeros(1, dtype=g.dtype), g])


class TestFunctions:
    def test_a_view_modified_inside(self, xp: Any) -> None:
        x = leaf(xp, X)
        y = x * 1.0
        v = y[1:3]
        assert Doubled.apply(v) is v
        check(y, [1, 4, 6, 4])
        assert y.grad_fn.name() == "CopySlices" and v.grad_fn.name() == "GetitemBackward"
        xp.sum(y * y).backward()
        check(x.grad, [2, 16, 24, 8])

    def test_a_view_made_under_no_grad_modified_inside(self, xp: Any) -> None:
        y = leaf(xp, X) * 1.0
        with mg.no_grad():
            w = y[:2]
        with pytest.raises(
            GradientError, match="A view was created in no_grad mode and is being modified inplace"
        ):
            Doubled.apply(w)

    def test_views_made_inside(self, xp: Any) -> None:
        y = leaf(xp, X) * 1.0
        v = Tail.apply(y)
        with pytest.raises(
            GradientError,
            match="Output 0 of Tail is a view and is being modified inplace. This view was "
            "created inside a custom",
        ):
            v *= 2
        y *= 2
        with pytest.raises(
            GradientError,
            match="Output 0 of Tail is a view and its base or another view of its base has been "
            "modified inplace",
        ):
            v + 1
        assert "grad_fn=<Invalid>" in repr(v)
        check(v.detach(), 2 * X[1:])

    def test_saved_hooks_and_anomaly_mode(self, xp: Any) -> None:
        expected = gradient_by_hand(X)
        with graph.saved_tensors_hooks(lambda t: values(t).copy(), lambda a: xp.asarray(a)):
            x = leaf(xp, X)
            loss = mutating(x)
        loss.backward()
        check(x.grad, expected)
        with pytest.warns(UserWarning, match="Anomaly Detection"), mg.autograd.detect_anomaly():
            x = leaf(xp, X)
            mutating(x).backward()
        check(x.grad, expected)


def test_threads_that_write_different_rows() -> None:
    y = mg.zeros((8, 1000), dtype="float64")
    rows = [y[i, ...] for i in range(8)]

    def work(i: int) -> None:
        for _ in range(200):
            rows[i] += i + 1.0

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(y, np.repeat(200.0 * np.arange(1, 9)[:, None], 1000, axis=1))
    assert y._version == 1600 * 1  # `rows[i] += ...` assigns to the list, not to y


@pytest.mark.sweep
def test_under_jit() -> None:
    jax = pytest.importorskip("jax")
    x = mg.asarray(X, backend="jax").array

    def loss_and_gradient(raw: Any) -> Any:
        t = mg.asarray(raw, requires_grad=True)
        loss = mutating(t)
        return loss.detach().array, mg.autograd.grad(loss, t)[0].array

    loss, g = jax.jit(loss_and_gradient)(x)
    np.testing.assert_allclose(loss, np.sum(by_hand(X) ** 2))
    np.testing.assert_allclose(g, gradient_by_hand(X))
    np.testing.assert_allclose(
        jax.grad(lambda raw: mutating(mg.asarray(raw)).array)(x), gradient_by_hand(X)
    )
    batch = jax.vmap(lambda raw: loss_and_gradient(raw)[1])(jax.numpy.stack([x, 2 * x]))
    np.testing.assert_allclose(batch[1], gradient_by_hand(2 * X))


def test_a_tracer_does_not_stay_in_a_view_from_outside() -> None:
    jax = pytest.importorskip("jax")
    outside = mg.namespace("jax").zeros(3)
    row = outside[1:]

    def leak(raw: Any) -> Any:
        row[0] = mg.asarray(raw)[0]
        return raw

    with pytest.raises(GradientError, match="tracer"):
        jax.jit(leak)(mg.asarray(X, backend="jax").array)
    np.testing.assert_array_equal(values(outside), 0)
