"""Views under in-place operations, beyond what random programs show: long chains, failed writes,
copies, Functions, traces.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import values
from leaves import check, leaf

import multigrad as mg
from multigrad.autograd import Function
from multigrad.errors import GradientError

X = np.asarray([1.0, 2.0, 3.0, 4.0])


class TestEverywhere:
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


@pytest.mark.sweep
def test_under_jit() -> None:
    jax = pytest.importorskip("jax")
    x = mg.asarray(X, backend="jax").array

    def loss(t: Any) -> Any:
        y = t * 1.0
        rows = mg.reshape(y, (2, 2))
        rows[0, ...] *= rows[1, ...]
        return mg.sum(y * y)

    def gradient(raw: Any) -> Any:
        t = mg.asarray(raw, requires_grad=True)
        return mg.autograd.grad(loss(t), t)[0].array

    expected = jax.grad(lambda a: sum(a[2:] ** 2) + sum((a[:2] * a[2:]) ** 2))
    np.testing.assert_allclose(jax.jit(gradient)(x), expected(x))
    np.testing.assert_allclose(jax.grad(lambda raw: loss(mg.asarray(raw)).array)(x), expected(x))
    batch = jax.vmap(gradient)(jax.numpy.stack([x, 2 * x]))
    np.testing.assert_allclose(batch[1], expected(2 * x))


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
