"""What PyTorch has no counterpart of in autograd.Function: levels, raw arrays, tracing, memory,
threads. See parity/test_function.py.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad.autograd.function import Function, once_differentiable
from multigrad.core.level import Layer


class Cube(Function):
    """x³, with a derivative that is doubled, so that it can be told from forward's."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] ** 2 * 6


class Exp(Function):
    @staticmethod
    def forward(x):
        return x.__array_namespace__().exp(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


def raw(xp, *data):
    return xp.asarray(np.array(data, dtype=np.float64)).array


# Levels


def test_every_level_asks_the_users_backward(xp):
    """Each forward of the inner levels runs once, and none of them is differentiated through."""
    calls = []

    class Step(Function):
        @staticmethod
        def forward(ctx, x, w):
            calls.append(ctx.needs_input_grad)
            ctx.save_for_backward(x, w)
            return xp.round(x) * xp.round(w)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w, g * x

    w = xp.asarray(np.array([3.4]), requires_grad=True)
    g = mg.func.grad(lambda x: xp.sum(Step.apply(x, w)))(raw(xp, 2.3))
    assert calls == [(True, True)]
    np.testing.assert_allclose(values(g), [3.4])
    (dw,) = mg.autograd.grad(xp.sum(g), w)
    np.testing.assert_allclose(values(dw), [1])
    value, _ = mg.func.value_and_grad(lambda x: xp.sum(Step.apply(x, w)))(raw(xp, 2.3))
    value.backward()
    np.testing.assert_allclose(values(w.grad), [2.3])  # by Step's backward, not by round's rule
    # one Tensor in two arguments
    both = mg.func.grad(lambda x, y: xp.sum(Step.apply(x, y)), argnums=(0, 1))(w, w)
    (d,) = mg.autograd.grad(xp.sum(both[0] * 10 + both[1]), w)
    np.testing.assert_allclose(values(d), [11])


def test_graphs_inside_a_transformation(xp):
    def f(x):
        t = xp.asarray(np.array([2.0]), requires_grad=True)
        (g,) = mg.autograd.grad(xp.sum(Cube.apply(t * x)), t, create_graph=True)  # 6 (t x)² x
        (h,) = mg.autograd.grad(xp.sum(g), t)  # 12 t x³
        return xp.sum(h)

    np.testing.assert_allclose(values(mg.func.grad(f)(raw(xp, 3.0))), [36 * 2 * 9])


def test_a_value_of_a_transformation_that_was_not_passed(xp):
    class Leak(Function):
        @staticmethod
        def forward(ctx, w):
            return w * held[0]

    held = []
    w = xp.asarray(np.array([3.0]), requires_grad=True)

    def f(x):
        t = xp.asarray(np.array([3.0]), requires_grad=True)
        held[:] = [t]
        with mg.enable_grad():
            return xp.sum(Leak.apply(w) * x)

    mg.func.grad(f)(raw(xp, 1.0))  # what forward captures is a constant, as forward is not recorded

    class Recorded(Leak):
        @staticmethod
        def forward(ctx, w):
            with mg.enable_grad():
                return w * held[0]

    Leak.forward = Recorded.forward
    with pytest.raises(
        RuntimeError,
        match="LeakBackward: forward returned a value of a running transformation that it was "
        "not given",
    ):
        mg.func.grad(f)(raw(xp, 1.0))


def test_once_differentiable_across_levels(xp):
    class Once(Cube):
        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not mg.is_grad_enabled() or ctx._run is not None
            return Cube.backward(ctx, g)

    x = raw(xp, 1.0, 2.0)

    def total(x):
        return xp.sum(Once.apply(x))

    np.testing.assert_allclose(values(mg.func.grad(total)(x)), [6, 24])
    with pytest.raises(
        RuntimeError,
        match="trying to differentiate twice a function that was marked with @once_differentiable",
    ):
        mg.func.grad(lambda x: xp.sum(mg.func.grad(total)(x)))(x)


def test_other_layers_are_refused():
    class Batched(Layer):
        _level = 3
        _array = np.ones(1)

    with pytest.raises(
        NotImplementedError, match="cannot apply an autograd.Function under Batched yet"
    ):
        Cube.apply(Batched())


def test_mark_dirty_where_levels_meet():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x *= 2
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = np.array([1.0])
    np.testing.assert_allclose(mg.func.grad(lambda x: (Double.apply(x * 1) * 1).sum())(x), [2])
    np.testing.assert_allclose(x, [1])
    with pytest.raises(
        RuntimeError,
        match="Double: mark_dirty is not supported where several levels of differentiation meet",
    ):
        mg.func.grad(mg.func.grad(lambda x: Double.apply(x * 1).sum()))(np.asarray(1.0))


# Raw arrays


def test_raw_arrays_go_with_tensors(xp):
    seen = []

    class Scale(Function):
        @staticmethod
        def forward(ctx, x, c):
            seen.append(isinstance(c, mg.Tensor))
            ctx.save_for_backward(c)
            return (x * c).array

        @staticmethod
        def backward(ctx, g):
            (c,) = ctx.saved_tensors
            assert isinstance(c, mg.Tensor)
            return (g * c).array, g.array

    x = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
    y = Scale.apply(x, raw(xp, 3.0, 4.0))
    assert (
        seen == [False]
        and y.grad_fn.needs_input_grad == (True, False)
        and y.grad_fn.next_functions[1] == (None, 0)
    )
    xp.sum(y).backward()
    np.testing.assert_allclose(values(x.grad), [3, 4])


def test_raw_arrays_alone(xp):
    y = Exp.apply(raw(xp, 0.0))
    assert isinstance(y, mg.Tensor) and not y.requires_grad
    np.testing.assert_allclose(values(y), [1])


def test_a_backward_that_returns_none():
    """The operations before it get no gradient, of one argument and of several."""

    class Stopped(Cube):
        @staticmethod
        def backward(ctx, g):
            return None

    x = mg.asarray(np.ones(3), requires_grad=True)
    mg.sum(Stopped.apply(mg.stack([x * 2.0, x]))).backward()
    assert x.grad is None


def test_gradient_of_another_backend():
    class Foreign(Cube):
        @staticmethod
        def backward(ctx, g):
            return g.to_backend("strict")

    y = Foreign.apply(mg.asarray(np.ones(2), requires_grad=True))
    with pytest.raises(
        TypeError,
        match="the gradient 0 of ForeignBackward: got arrays of two backends, 'numpy' and 'strict'",
    ):
        y.sum().backward()


def test_named_tuples_stay():
    from collections import namedtuple

    Pair = namedtuple("Pair", "a b")

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            return Pair(x * 2, x * 3)

        @staticmethod
        def backward(ctx, a, b):
            return a + b

    found = Two.apply(mg.asarray(np.ones(1), requires_grad=True))
    assert found.b.requires_grad and found.b.output_nr == 1


# Memory


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_saved_arrays_are_freed_by_the_pass(no_collector):
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            middle = x * 2
            freed.append(weakref.ref(middle.array))
            ctx.save_for_backward(middle)
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g + ctx.saved_tensors[0]

    freed = []
    y = Keep.apply(mg.asarray(np.ones(3), requires_grad=True))
    assert freed[0]() is not None
    y.sum().backward()
    assert freed[0]() is None


def test_chain_of_many(no_collector):
    x = mg.asarray(np.ones(1), requires_grad=True)
    y = x
    for _ in range(5_000):
        y = Exp.apply(y * 0)
    y.backward()
    assert values(x.grad).item() == 0


# Threads


@pytest.mark.parametrize("create_graph", [False, True])
def test_grad_mode_of_the_methods_under_vmap(create_graph):
    seen = []

    class Square(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            seen.append(mg.is_grad_enabled())
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append(mg.is_grad_enabled())
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            seen.append(mg.is_grad_enabled())
            return g * 2 * ctx.saved_tensors[0]

    x = mg.asarray(np.arange(3.0), requires_grad=True)
    y = mg.func.vmap(Square.apply)(x)
    mg.autograd.grad(mg.sum(y), x, create_graph=create_graph)
    assert seen == [False, False, create_graph]
