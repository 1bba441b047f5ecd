"""Hooks on Tensors, retain_grad, hooks after accumulation."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import values
from leaves import check, leaf

import multigrad as mg
from multigrad import func
from multigrad.autograd.function import Function


def test_hook_replaces_the_gradient(xp):
    v = leaf(xp, [0.0, 0.0, 0.0])
    handle = v.register_hook(lambda g: g * 2)
    v.backward(xp.asarray(np.array([1.0, 2.0, 3.0])))
    np.testing.assert_allclose(values(v.grad), [2, 4, 6])
    handle.remove()
    handle.remove()
    v.grad = None
    v.backward(xp.asarray(np.array([1.0, 1.0, 1.0])))
    np.testing.assert_allclose(values(v.grad), [1, 1, 1])


def test_order_and_the_summed_gradient(xp):
    x = leaf(xp, [1.0])
    y = x * 2
    seen = []
    y.retain_grad()
    y.register_hook(lambda g: seen.append(("a", float(g.array[0]))) or g * 10)
    y.register_hook(lambda g: seen.append(("b", float(g.array[0]))))
    xp.sum(y * y).backward()
    assert seen == [("a", 4.0), ("b", 40.0)]
    # retain_grad stores the final value though it came first
    np.testing.assert_allclose(values(y.grad), [40])
    np.testing.assert_allclose(values(x.grad), [80])
    assert y.retains_grad and not x.retains_grad


def test_hooks_under_grad(xp):
    x = leaf(xp, [1.0])
    y = x * 2
    y.register_hook(lambda g: g * 5)
    x.register_hook(lambda g: g * 2)
    (gx, gy) = mg.autograd.grad(xp.sum(y), (x, y), retain_graph=True)
    assert float(gx.array[0]) == 20.0
    assert float(gy.array[0]) == 5.0  # hooked, whatever else is asked for
    (gy,) = mg.autograd.grad(xp.sum(y), (y,))
    assert float(gy.array[0]) == 5.0


def test_hooks_of_other_leaves_do_not_fire(xp):
    x, w = leaf(xp, [1.0]), leaf(xp, [2.0])
    seen = []
    w.register_hook(seen.append)
    w.register_post_accumulate_grad_hook(seen.append)
    mg.autograd.grad(xp.sum(x * w), x)
    assert seen == []


def test_post_accumulate(xp):
    x = leaf(xp, [1.0])
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(float(t.grad.array[0])))
    xp.sum(x * 2 + x).backward()
    assert seen == [3.0]
    x.register_post_accumulate_grad_hook(lambda t: 1)
    with pytest.raises(RuntimeError, match="post accumulate grad hooks should return None"):
        xp.sum(x * 2).backward()


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_a_gradient_beside_none(hooked, last):
    class Cut(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    x = mg.asarray(np.ones(2), requires_grad=True)
    if hooked:
        x.register_hook(lambda g: g)
    parts = [x * 3, Cut.apply(x), x * 2] if last else [Cut.apply(x), x * 3, x * 2, Cut.apply(x)]
    mg.autograd.backward([mg.sum(part) for part in parts])
    check(x.grad, [5, 5])


def test_wrong_results(xp):
    x = leaf(xp, [1.0, 2.0])

    def returning(value):
        def named(g):
            return value

        y = x * 2
        y.register_hook(named)
        return xp.sum(y)

    with pytest.raises(
        TypeError, match=r"expected Variable, but hook returned 'float' \(the hook 'named'\)"
    ):
        returning(1.0).backward()
    with pytest.raises(RuntimeError, match="hook 'named' has changed the size of value"):
        returning(xp.ones((3,), dtype=xp.float64)).backward()
    with pytest.raises(
        RuntimeError,
        match="hook 'named' has changed the type of value .was .*float64 got .*float32",
    ):
        returning(xp.ones((2,), dtype=xp.float32)).backward()


def test_registration_errors(xp):
    c = xp.ones((2,))
    with pytest.raises(
        RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"
    ):
        c.register_hook(print)
    with pytest.raises(
        RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"
    ):
        c.retain_grad()
    with pytest.raises(
        RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"
    ):
        (leaf(xp, [1.0]) * 2).register_post_accumulate_grad_hook(print)
    x = leaf(xp, [1.0])
    x.retain_grad()
    assert not x.retains_grad


def test_exceptions_pass_through_and_handles_work_in_with(xp):
    x = leaf(xp, [1.0])
    with x.register_hook(lambda g: 1 / 0), pytest.raises(ZeroDivisionError):
        xp.sum(x * 2).backward()
    xp.sum(x * 2).backward()


def test_grad_mode_in_hooks(xp):
    x = leaf(xp, [1.0])
    seen = []
    x.register_hook(lambda g: seen.append(mg.is_grad_enabled()))
    y = xp.sum(x * x)
    mg.autograd.grad(y, x, create_graph=True)
    y.backward()
    assert seen == [True, False]
    assert mg.is_grad_enabled()


def test_hook_under_create_graph_is_differentiated(xp):
    x = leaf(xp, [3.0])
    y = x * x
    with y.register_hook(lambda g: g * y):
        (g,) = mg.autograd.grad(xp.sum(y), x, create_graph=True)  # 2x * x^2
    (h,) = mg.autograd.grad(xp.sum(g), x)
    np.testing.assert_allclose(values(h), [6 * 9.0])


def test_removal_inside_the_hook(xp):
    x = leaf(xp, [1.0])
    seen = []
    first = x.register_hook(lambda g: (seen.append(1), first.remove())[1])
    x.register_hook(lambda g: seen.append(2))
    xp.sum(x * 2).backward()
    xp.sum(x * 2).backward()
    assert seen == [1, 2, 2]


def test_retained_gradient_is_the_users_own():
    go = np.ones(2)
    x = mg.asarray(np.ones(2), requires_grad=True)
    y = x + 0.0
    y.retain_grad()
    y.backward(go)
    assert not np.shares_memory(y.grad.array, go)


def test_hooks_of_one_output_of_several(xp):
    x = leaf(xp, [[1.0, 2.0], [3.0, 4.0]])
    a, b = xp.unstack(x)
    a.register_hook(lambda g: g * 10)
    xp.sum(a + b).backward()
    np.testing.assert_allclose(values(x.grad), [[10, 10], [1, 1]])


class TestHooksThatBringInAValueOfATransformation:
    """A pass on raw arrays becomes one on layers where a hook returns one, wherever that is, and
    whether the pass is watched or not.
    """

    @pytest.fixture(params=[False, True], ids=["", "watched"])
    def watch(self, request):
        t = mg.asarray(np.ones(1), requires_grad=True)
        if request.param:
            t.register_hook(lambda g: None)
        return t

    @staticmethod
    def on_leaf(a, x):
        a.register_hook(lambda g: g * x)
        return a * a

    @staticmethod
    def on_tensor(a, x):
        b = a * a
        b.register_hook(lambda g: g * x)
        return b

    @staticmethod
    def before_node(a, x):
        b = a * a
        b.grad_fn.register_prehook(lambda grads: (grads[0] * x,))
        return b

    @staticmethod
    def after_node(a, x):
        b = a * a
        b.grad_fn.register_hook(lambda grads, _: tuple(g * x for g in grads))
        return b

    @pytest.mark.parametrize("where", ["on_leaf", "on_tensor", "before_node", "after_node"])
    @pytest.mark.parametrize("how", ["backward", "grad", "inputs"])
    def test_on_a_leaf_made_inside(self, xp, watch, where, how):
        def f(x):
            a = xp.asarray(np.array([1.0, 2.0, 3.0]), requires_grad=True)
            loss = xp.sum(getattr(self, where)(a, x))
            if how == "grad":
                return xp.sum(mg.autograd.grad(loss, [a])[0] * x)
            loss.backward(inputs=[a] if how == "inputs" else None)
            xp.sum(a * 3).backward(inputs=[a])  # the hook of the leaf runs again
            return xp.sum(a.grad * x)

        again = 0 if how == "grad" else 6 * np.array([1.0, 2.0, 3.0]) if where == "on_leaf" else 3
        expected = 4 * np.array([1.0, 4.0, 9.0]) + again
        np.testing.assert_allclose(
            values(func.grad(f)(xp.asarray(np.array([1.0, 2.0, 3.0])).array)), expected
        )

    def test_of_an_operation_with_several_outputs(self, xp, watch):
        w = leaf(xp, [[2.0, 1.0], [1.0, 3.0], [0.3, 0.2]])
        outputs = xp.linalg.svd(w, full_matrices=False)
        loss = sum(xp.sum(t**3) for t in outputs)

        def f(x):
            handles = [t.register_hook(lambda g: g * x) for t in outputs]
            (g,) = mg.autograd.grad(loss, [w], retain_graph=True)
            for handle in handles:
                handle.remove()
            return xp.sum(g * g)

        (g,) = mg.autograd.grad(loss, [w], retain_graph=True)
        np.testing.assert_allclose(
            values(func.grad(f)(xp.asarray(np.asarray(1.5)).array)), 3 * np.sum(values(g) ** 2)
        )

    @pytest.mark.parametrize("where", ["on_leaf", "on_tensor", "before_node", "after_node"])
    def test_is_no_gradient_of_a_leaf_from_outside(self, xp, watch, where):
        def f(x):
            xp.sum(getattr(self, where)(w, x)).backward()
            return xp.sum(x)

        w = leaf(xp, [1.0, 2.0])
        with pytest.raises(
            RuntimeError, match="accumulate a gradient that is a Tensor of a running transformation"
        ):
            func.grad(f)(xp.asarray(np.array([1.0, 2.0])).array)
        assert w.grad is None


@pytest.mark.parametrize("of", ["hook", "Function"])
def test_the_implicit_gradient_may_be_written(of):
    """It is the user's, who gets it first.

    A constant that others hold is for passes in which only rules see it.
    """

    def doubled(g):
        g *= 2

    class Sum(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return mg.sum(x)

        @staticmethod
        def backward(ctx, g):
            doubled(g)
            return mg.ones_like(ctx.saved_tensors[0]) * g

    def f(x):
        y = Sum.apply(x) if of == "Function" else mg.sum(x)
        if of == "hook":
            y.register_hook(doubled)
        return y

    x = mg.asarray(np.ones(3), requires_grad=True)
    f(x).backward()
    np.testing.assert_array_equal(x.grad.array, 2)
    np.testing.assert_array_equal(func.grad(f)(np.ones(3)), 2)
    np.testing.assert_array_equal(func.grad(mg.sum)(np.ones(3)), 1)


def test_an_unpacked_value_keeps_its_library():
    """JAX has the dtypes of NumPy, and the rule would compute with its arrays."""
    jax = pytest.importorskip("jax")
    other = mg.asarray(jax.numpy.ones(2, dtype="float32"))
    x = mg.tensor(np.ones(2, dtype="float32"), requires_grad=True)
    with mg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: other):
        y = mg.sum(x * x)
    with pytest.raises(mg.errors.MixedBackendsError, match="saved tensor unpack_hook: got"):
        y.backward()
