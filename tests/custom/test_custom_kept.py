"""What the forward of a Function keeps besides inputs and outputs, under second derivatives: how it
depends on the inputs is not known.

In PyTorch such an array is a constant, and a second derivative is silently short of what it
contributes. Here it raises, in every composition; what was computed of constants alone stays one.
"""

from __future__ import annotations

import gc
import inspect
import weakref
from typing import Any

import numpy as np
import pytest
from conftest import values
from forward_programs import close, raw

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad
from multigrad.autograd.function import Function, once_differentiable
from multigrad.core.level import BASE

X = np.asarray([0.1, 0.5, -0.3])
P = np.exp(X) / np.exp(X).sum()
V = np.asarray([1.0, -2.0, 0.5])
REACHED = (
    "a second derivative reached an array that forward computed and kept.*custom_vjp.*gradgradcheck"
)


def logsumexp(xp, keep, kept):
    """The textbook's, which keeps its softmax: `keep(ctx, x, softmax)` does, and `kept(ctx)` finds
    it again.
    """

    class LogSumExp(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            m = xp.max(x)
            e = xp.exp(x - m)
            s = xp.sum(e)
            keep(ctx, x, e / s)
            return m + xp.log(s)

        @staticmethod
        def backward(ctx, g):
            return g * kept(ctx)

        @staticmethod
        def jvp(ctx, t):
            return xp.sum(kept(ctx) * t)

    return LogSumExp.apply


def saved(xp):
    def keep(ctx, x, p):
        ctx.save_for_backward(p)
        ctx.save_for_forward(p)

    return logsumexp(xp, keep, lambda ctx: ctx.saved_tensors[0])


def nested_attribute(xp):
    def keep(ctx, x, p):
        ctx.notes = {"p": [(1, p)]}

    return logsumexp(xp, keep, lambda ctx: ctx.notes["p"][0][1])


def written(xp):
    """Computed of the input by writing it into an array made anew, through a view."""

    def keep(ctx, x, p):
        both = xp.zeros((2, 3), dtype=p.dtype)
        row = both[1, ...]
        row += p
        both[0, ...] = 1.0
        ctx.save_for_backward(both)
        ctx.save_for_forward(both)

    return logsumexp(xp, keep, lambda ctx: ctx.saved_tensors[0][1, ...])


def by_another_function(xp):
    """Kept is what a Function gave that forward applies."""

    class Same(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    def keep(ctx, x, p):
        ctx.p = Same.apply(p)

    return logsumexp(xp, keep, lambda ctx: ctx.p)


def from_setup(xp):
    """What setup_context computes is what forward does."""

    class LogSumExp(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return xp.log(xp.sum(xp.exp(x)))

        @staticmethod
        def setup_context(ctx, inputs, output):
            p = xp.exp(inputs[0] - output)
            ctx.save_for_backward(p)
            ctx.save_for_forward(p)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, t):
            return xp.sum(ctx.saved_tensors[0] * t)

    return LogSumExp.apply


def by_a_tangent(xp):
    def keep(ctx, x, p):
        ctx.p = func.jvp(lambda p: p, (xp.ones_like(p),), (p,))[1]

    return logsumexp(xp, keep, lambda ctx: ctx.p)


def made_data(xp):
    def keep(ctx, x, p):
        ctx.p = xp.zeros_like(p)
        ctx.p.data = p

    return logsumexp(xp, keep, lambda ctx: ctx.p)


WAYS = pytest.mark.parametrize(
    "way",
    [saved, nested_attribute, written, by_another_function, from_setup, by_a_tangent, made_data],
)


def ones(x):
    xp = mg.namespace(mg.asarray(x) if not isinstance(x, mg.core.level.Layer) else x)
    found = xp.ones_like(x)
    return found if isinstance(x, mg.core.level.Layer) else found.array


def along(f):
    return lambda x: func.jvp(f, (x,), (ones(x),))[1]


def over_rows(f):
    """vmap of f, of which the first row is taken."""

    def first(x):
        xp = mg.namespace(mg.asarray(x))
        return func.vmap(f)(xp.stack([xp.asarray(x), xp.asarray(x) * 2]))[0, ...]

    return first


SECOND = {
    "jacrev of grad": lambda f: func.jacrev(func.grad(f)),
    "jacfwd of grad": lambda f: func.jacfwd(func.grad(f)),
    "hessian": func.hessian,
    "grad of grad": lambda f: func.grad(lambda x: func.grad(f)(x)[0]),
    "jvp of grad": lambda f: along(func.grad(f)),
    "grad of jvp": lambda f: func.grad(along(f)),
    "hvp": lambda f: lambda x: func.hvp(f, (x,), (ones(x),))[1][0],
    "grad of vmap of grad": lambda f: func.grad(lambda x: over_rows(func.grad(f))(x)[0]),
    "vmap of jacrev of grad": lambda f: over_rows(func.jacrev(func.grad(f))),
    "vmap of hessian": lambda f: over_rows(func.hessian(f)),
}
FIRST = {
    "grad": lambda f: func.grad(f),
    "jvp": along,
    "jacrev": func.jacrev,
    "vmap of grad": lambda f: over_rows(func.grad(f)),
    "grad of vmap": lambda f: func.grad(over_rows(f)),
}


class TestWhatForwardComputed:
    @WAYS
    def test_second_derivatives_raise(self, xp, way):
        f = way(xp)
        for name, transformed in SECOND.items():
            with pytest.raises(RuntimeError, match=REACHED):
                found = transformed(f)(raw(xp, X))
                pytest.fail(f"{name}: {found}")

    @WAYS
    def test_first_derivatives_work(self, xp, way):
        f = way(xp)
        for name, transformed in FIRST.items():
            np.testing.assert_allclose(
                values(transformed(f)(raw(xp, X))),
                1.0 if "jvp" in name else P,
                rtol=1e-12,
                err_msg=name,
            )

    @WAYS
    @pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
    def test_over_tensors(self, xp, way):
        f = way(xp)
        t = xp.asarray(raw(xp, X), requires_grad=True)
        (g,) = mg.autograd.grad(f(t), t, create_graph=True)
        np.testing.assert_allclose(values(g), P, rtol=1e-12)
        with pytest.raises(RuntimeError, match=REACHED):
            mg.autograd.grad(xp.sum(g * V[0]), t)
        f(t).backward(create_graph=True)
        with pytest.raises(RuntimeError, match=REACHED):
            xp.sum(t.grad * t).backward()
        assert mg.autograd.gradcheck(f, (t,))
        with pytest.raises(RuntimeError, match=REACHED):
            mg.autograd.gradgradcheck(f, (t,))

    def test_batched_passes(self, xp):
        f = saved(xp)
        t = xp.asarray(raw(xp, X), requires_grad=True)
        (g,) = mg.autograd.grad(f(t), t, create_graph=True)
        with pytest.raises(RuntimeError, match=REACHED):
            mg.autograd.grad(g, t, xp.eye(3, dtype=t.dtype), is_grads_batched=True)

    @WAYS
    def test_duals_over_tensors(self, xp, way):
        f = way(xp)
        t = xp.asarray(raw(xp, X), requires_grad=True)
        with forward_ad.dual_level():
            moved = forward_ad.unpack_dual(
                f(forward_ad.make_dual(t, xp.ones(3, dtype=t.dtype)))
            ).tangent
            np.testing.assert_allclose(values(moved), 1.0, rtol=1e-12)
            with pytest.raises(RuntimeError, match=REACHED):
                mg.autograd.grad(moved, t)
        with forward_ad.dual_level(), pytest.raises(RuntimeError, match=REACHED):
            g = func.grad(f)(forward_ad.make_dual(t.detach(), xp.ones(3, dtype=t.dtype)))
            forward_ad.unpack_dual(g)

    def test_a_tangent_that_is_not_known_is_not_handed_out(self, xp):
        """The gradient is the array itself, so no operation on it could raise."""

        class Product(Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.y = y * 3.0
                return xp.sum(x * ctx.y)

            @staticmethod
            def backward(ctx, g):
                return ctx.y, None

            @staticmethod
            def jvp(ctx, a, b):
                return None

        x, y = raw(xp, X), raw(xp, V)
        f = func.grad(lambda x, y: Product.apply(x, y))
        np.testing.assert_allclose(values(f(x, y)), V * 3)
        with pytest.raises(RuntimeError, match=REACHED):
            func.jvp(lambda y: f(x, y), (y,), (y,))
        with forward_ad.dual_level(), pytest.raises(RuntimeError, match=REACHED):
            forward_ad.unpack_dual(
                f(xp.asarray(x), forward_ad.make_dual(xp.asarray(y), xp.asarray(y)))
            )

    def test_recorded_inside_forward(self, xp):
        """With enable_grad, of what was computed before: a pass inside of forward ends there, one
        after it raises.
        """
        w = xp.asarray(raw(xp, V), requires_grad=True)

        class Inner(Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                with mg.enable_grad():
                    z = y * w
                    xp.sum(z).backward()
                    ctx.save_for_backward(y * w)
                return xp.sum(x)

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]

        t = xp.asarray(raw(xp, X), requires_grad=True)
        (g,) = mg.autograd.grad(Inner.apply(t), t, create_graph=True)
        np.testing.assert_allclose(values(w.grad), 2 * X)
        with pytest.raises(RuntimeError, match=REACHED):
            mg.autograd.grad(xp.sum(g), t)

    def test_gradients_that_leaves_have_inside_forward(self, xp):
        class Slope(Function):
            @staticmethod
            def forward(ctx, x):
                with mg.enable_grad():
                    inner = x.detach().requires_grad_()
                    xp.sum(xp.sin(inner)).backward()
                ctx.save_for_backward(x, inner.grad)
                return xp.sum(xp.sin(x))

            @staticmethod
            def backward(ctx, g):
                x, slope = ctx.saved_tensors
                return g * slope * (1.0 + 0.0 * x)

        t = xp.asarray(raw(xp, X), requires_grad=True)
        (g,) = mg.autograd.grad(Slope.apply(t), t, create_graph=True)
        np.testing.assert_allclose(values(g), np.cos(X))
        with pytest.raises(RuntimeError, match=REACHED):
            mg.autograd.grad(xp.sum(g), t)
        with pytest.raises(RuntimeError, match=REACHED):
            func.jacrev(func.grad(Slope.apply))(raw(xp, X))

    def test_gradients_inside_forward_at_every_level(self, xp):
        """enable_grad in forward is about the arrays that forward gets, whichever transformation
        runs.
        """

        class Slope(Function):
            @staticmethod
            def forward(ctx, x):
                with mg.enable_grad():
                    inner = x.detach().requires_grad_()
                    (g,) = mg.autograd.grad(xp.sum(xp.sin(inner)), inner)
                ctx.save_for_backward(x)
                ctx.save_for_forward(x)
                return g

            @staticmethod
            def backward(ctx, g):
                return -g * xp.sin(ctx.saved_tensors[0])

            @staticmethod
            def jvp(ctx, t):
                return -t * xp.sin(ctx.saved_tensors[0])

        def f(x):
            return xp.sum(Slope.apply(x))

        x = raw(xp, X)
        y, t = func.jvp(f, (x,), (xp.ones_like(x),))
        np.testing.assert_allclose(values(y), np.cos(X).sum())
        np.testing.assert_allclose(values(t), -np.sin(X).sum())
        np.testing.assert_allclose(values(func.jacrev(func.grad(f))(x)), -np.diag(np.cos(X)))
        np.testing.assert_allclose(values(func.jacfwd(func.grad(f))(x)), -np.diag(np.cos(X)))
        np.testing.assert_allclose(
            values(func.grad(f)(xp.asarray(x, requires_grad=True))), -np.sin(X)
        )

    def test_functional_derivatives_inside_forward(self, xp):
        """They differentiate at the level where forward runs: under another one they would silently
        be zeros.
        """

        class Slopes(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return mg.autograd.functional.vjp(xp.sin, x, xp.ones_like(x))[1]

            @staticmethod
            def backward(ctx, g):
                return -g * xp.sin(ctx.saved_tensors[0])

            @staticmethod
            def jvp(ctx, t):
                return t

        x = raw(xp, X)
        np.testing.assert_allclose(values(func.jvp(Slopes.apply, (x,), (x,))[0]), np.cos(X))
        y, g = func.value_and_grad(lambda x: xp.sum(Slopes.apply(x)))(
            xp.asarray(x, requires_grad=True)
        )
        np.testing.assert_allclose([*values(g), values(y)], [*-np.sin(X), np.cos(X).sum()])

    def test_gradients_inside_backward_at_every_level(self, xp):
        """The modes there are about the arrays that backward gets, whichever transformation
        runs.
        """

        class Pulled(Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return xp.sin(x)

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                with mg.enable_grad():
                    inner = x.detach().requires_grad_()
                    (found,) = mg.autograd.grad(xp.sin(inner), inner, g)
                return (found + mg.autograd.functional.vjp(xp.sin, x, g)[1]) / 2.0

        def f(x):
            return xp.sum(Pulled.apply(x) ** 2)

        x = raw(xp, X)
        w = xp.asarray(x, requires_grad=True)
        slope = np.sin(2 * X)
        np.testing.assert_allclose(values(func.grad(f)(x)), slope)
        np.testing.assert_allclose(values(func.grad(f)(w)), slope)
        np.testing.assert_allclose(values(func.jacrev(Pulled.apply)(x)), np.diag(np.cos(X)))
        w = xp.asarray(x, requires_grad=True)
        f(w).backward()
        np.testing.assert_allclose(values(w.grad), slope)

    def test_the_mode_of_captured_arrays_comes_back(self, xp):
        """After enable_grad in a backward under a transformation, what is recorded outside of it is
        recorded as before.
        """
        w = xp.asarray(raw(xp, V), requires_grad=True)

        class Weighted(Function):
            @staticmethod
            def forward(ctx, x):
                return x * w

            @staticmethod
            def backward(ctx, g):
                with mg.enable_grad():
                    pass
                return g * w

        g = func.grad(lambda x: xp.sum(Weighted.apply(x)))(raw(xp, X))
        assert g.requires_grad
        xp.sum(g).backward()
        np.testing.assert_allclose(values(w.grad), 1.0)

    def test_what_forward_recorded_is_differentiated_later(self, xp):
        """A backward that pulls through what forward recorded takes no second derivative: what
        forward computed before is a constant to it.
        """
        w = xp.asarray(raw(xp, V), requires_grad=True)

        class Replayed(Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                with mg.enable_grad():
                    ctx.inner = x.detach().requires_grad_()
                    ctx.out = ctx.inner * y * w
                return xp.sum(ctx.out.detach())

            @staticmethod
            def backward(ctx, g):
                ctx.out.backward(xp.ones_like(ctx.out))
                return g * ctx.inner.grad

        t = xp.asarray(raw(xp, X), requires_grad=True)
        Replayed.apply(t).backward()
        np.testing.assert_allclose(values(t.grad), 2 * X * V)
        np.testing.assert_allclose(values(w.grad), 2 * X * X)

    @pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
    @pytest.mark.filterwarnings("ignore:Error detected in")
    def test_who_watches_does_not_matter(self, xp):
        f = saved(xp)
        t = xp.asarray(raw(xp, X), requires_grad=True)
        with (
            mg.autograd.detect_anomaly(),
            mg.autograd.graph.save_on_cpu(),
            pytest.raises(RuntimeError, match=REACHED),
        ):
            (g,) = mg.autograd.grad(f(t), t, create_graph=True)
            mg.autograd.grad(xp.sum(g * V[0]), t)
        with mg.autograd.profiler.profile(), pytest.raises(RuntimeError, match=REACHED):
            (g,) = mg.autograd.grad(f(t), t, create_graph=True)
            mg.autograd.grad(xp.sum(g * V[0]), t)

    def test_where_no_derivative_passes(self, xp):
        """A mask of what was kept, or the kept array after detach() in backward, has no derivative,
        so nothing is missing.
        """

        class Relu(Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.save_for_backward(x * w, w)
                return xp.where(x * w > 0, x * w, 0.0)

            @staticmethod
            def backward(ctx, g):
                z, w = ctx.saved_tensors
                return xp.where(z > 0, g * w, 0.0) + 0.0 * z.detach(), None

            @staticmethod
            def jvp(ctx, t, _):
                return xp.where(x * w > 0, t * w, 0.0)

        x, w = raw(xp, X), raw(xp, V)
        f = lambda x: xp.sum(Relu.apply(x, w) ** 2)
        expected = np.diag(np.where(X * V > 0, 2 * V * V, 0.0))
        for name in ("jacrev of grad", "jacfwd of grad", "hessian"):
            np.testing.assert_allclose(
                values(SECOND[name](f)(x)), expected, atol=1e-12, err_msg=name
            )

    def test_once_differentiable_says_so_first(self, xp):
        class Once(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.p = xp.exp(x)
                return ctx.p * 1

            @staticmethod
            @once_differentiable
            def backward(ctx, g):
                return g * ctx.p

        t = xp.asarray(raw(xp, X), requires_grad=True)
        (g,) = mg.autograd.grad(xp.sum(Once.apply(t) ** 2), t, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            mg.autograd.grad(xp.sum(g), t)


class TestWhatStaysKnown:
    def test_inputs_and_outputs(self, xp):
        """Kept by save_for_backward, or as attributes: they come back with their history."""

        class Exp(Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(ctx, x):
                y = xp.exp(x)
                ctx.save_for_backward(x)
                ctx.save_for_forward(y)
                ctx.y = y
                return y

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * ctx.y * xp.cos(x) / xp.cos(x)

            @staticmethod
            def jvp(ctx, t):
                return t * ctx.y

        f = lambda x: xp.sum(Exp.apply(x))
        E = np.exp(X)
        for name in ("jacrev of grad", "hessian", "vmap of hessian", "grad of jvp", "hvp"):
            np.testing.assert_allclose(
                values(SECOND[name](f)(raw(xp, X))),
                E if name in ("grad of jvp", "hvp") else np.diag(E),
                rtol=1e-12,
                atol=1e-12,
                err_msg=name,
            )

    def test_constants(self, xp):
        """Weights, a dropout mask in the dtype of the input, a step of the input, integers."""
        weights = xp.asarray(raw(xp, V))
        rng = np.random.default_rng(0)

        class Layer(Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(ctx, x):
                mask = xp.astype(xp.asarray(raw(xp, rng.random(3))) > 0.0, x.dtype) / 2.0
                own = xp.zeros_like(x)
                own[...] = 4.0
                own *= weights
                order = xp.argsort(x)
                ctx.save_for_backward(
                    x, mask, own, xp.floor(x) * 0.0, order, xp.astype(x > 0, x.dtype)
                )
                ctx.weights = weights * 2.0
                return xp.sum(x * x * mask * own * ctx.weights)

            @staticmethod
            def backward(ctx, g):
                x, mask, own, step, order, positive = ctx.saved_tensors
                assert not xp.isdtype(order.dtype, "real floating")
                return (
                    g * 2.0 * x * mask * own * ctx.weights
                    + step
                    + 0.0 * positive * x
                    + 0.0 * xp.take(x, order)
                )

            @staticmethod
            def jvp(ctx, t):
                return xp.sum(t)  # of the value, which a derivative of the gradient does not need

        for name in ("jacrev of grad", "jacfwd of grad", "hessian", "vmap of jacrev of grad"):
            np.testing.assert_allclose(
                values(SECOND[name](Layer.apply)(raw(xp, X))),
                np.diag(8.0 * V * V),
                rtol=1e-12,
                atol=1e-12,
                err_msg=name,
            )

    def test_arguments_without_a_gradient(self, xp):
        """What is computed of arguments that are constants is one."""

        class Scaled(Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.save_for_backward(x, w * 2.0)
                return xp.sum(x * x * w)

            @staticmethod
            def backward(ctx, g):
                x, w = ctx.saved_tensors
                return g * x * w, None

            @staticmethod
            def jvp(ctx, t, _):
                return xp.sum(t)

        for name in ("jacrev of grad", "hessian"):
            w = raw(xp, V) if name == "hessian" else xp.asarray(raw(xp, V))
            found = SECOND[name](lambda x, w=w: Scaled.apply(x, w))(raw(xp, X))
            np.testing.assert_allclose(values(found), np.diag(2.0 * V), atol=1e-12, err_msg=name)

    def test_raw_arrays(self, xp):
        """What left the Tensors by `.array` is a constant, as the docstring says."""

        class Own(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(xp.asarray(x.array) * 1)
                return xp.sum(x * x)

            @staticmethod
            def backward(ctx, g):
                return g * 2 * ctx.saved_tensors[0]

        t = xp.asarray(raw(xp, X), requires_grad=True)
        (g,) = mg.autograd.grad(
            Own.apply(t), t, xp.ones((), dtype=t.dtype, requires_grad=True), create_graph=True
        )
        assert mg.autograd.grad(xp.sum(g), t, allow_unused=True) == (None,)
        assert "`.array`" in inspect.getdoc(Function)


class TestInsideForward:
    def test_what_is_computed_there_is_a_constant_to_the_user(self, xp):
        seen = []

        class Looked(Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                assert not mg.is_grad_enabled() and x.requires_grad
                assert (
                    not y.requires_grad
                    and y.is_leaf
                    and y.grad_fn is None
                    and "requires_grad" not in repr(y)
                    and y.grad is None
                )
                assert not y.retains_grad and y.output_nr == 0
                np.testing.assert_array_equal(values(y), 2 * X)
                float(y[0])
                for method in (lambda: y.register_hook(print), y.retain_grad, y.backward):
                    with pytest.raises(RuntimeError):
                        method()
                y.requires_grad = False
                own = y.detach().requires_grad_()
                assert own.is_leaf and own.requires_grad
                seen.append((y, y[1:], own))
                ctx.y = y
                return x * 1

            @staticmethod
            def backward(ctx, g):
                return g

        t = xp.asarray(raw(xp, X), requires_grad=True)
        Looked.apply(t)
        ((y, part, own),) = seen
        assert not y.requires_grad and not part.requires_grad and own.requires_grad
        assert not (y * 2).requires_grad and not (part * 2).requires_grad  # outside, too

    def test_running_statistics(self, xp):
        """What forward leaves elsewhere is a constant there."""
        mean = xp.zeros(3)

        class Normed(Function):
            @staticmethod
            def forward(ctx, x):
                nonlocal mean
                mean = mean * 0.5 + x * 0.5
                store[...] = x
                return x - 1

            @staticmethod
            def backward(ctx, g):
                return g

        store = xp.zeros(3, dtype=xp.float64)
        t = xp.asarray(raw(xp, X), requires_grad=True)
        xp.sum(Normed.apply(t) * mean * store).backward()
        assert not mean.requires_grad and not store.requires_grad
        np.testing.assert_allclose(values(t.grad), X / 2 * X)

    def test_nothing_is_kept_alive(self, xp):
        """Neither what forward computed on the way, nor, after the pass, what it kept."""
        held = []

        class Way(Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                z = y * 3
                held.extend([weakref.ref(y), weakref.ref(z)])
                ctx.z = z
                return z * 1

            @staticmethod
            def backward(ctx, g):
                return g * 6

        t = xp.asarray(raw(xp, X), requires_grad=True)
        gc.disable()
        try:
            out = xp.sum(Way.apply(t))
            assert held[0]() is None and held[1]() is not None
            out.backward()
            del out
            assert held[1]() is None
        finally:
            gc.enable()

    def test_attributes_are_the_users_own_afterwards(self, xp):
        """What a pass shows in their place is there for its time only, and what backward puts there
        stays.
        """
        f = nested_attribute(xp)
        t = xp.asarray(raw(xp, X), requires_grad=True)
        out = f(t)
        before = out.grad_fn.notes
        (g,) = mg.autograd.grad(out, t, create_graph=True)
        assert out.grad_fn.notes is before and g.requires_grad

        class Notes(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.y = x * 2
                return x * 1

            @staticmethod
            def backward(ctx, g):
                ctx.y = "done"
                return g

        out = Notes.apply(t)
        mg.autograd.grad(xp.sum(out), t, create_graph=True)
        assert out.grad_fn.y == "done"


ROWS = np.arange(1.0, 7.0).reshape(2, 3) / 4


class TestFunctionThatKeepsADictionary:
    """Arrays in a dictionary on the ctx are told apart by level and batch, as those in tuples and
    lists are.
    """

    @staticmethod
    def apply(xp):
        class Scaled(Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(x, w):
                return xp.sin(x) * w

            @staticmethod
            def setup_context(ctx, inputs, output):
                x, w = inputs
                ctx.kept = {"cos": xp.cos(x), "more": [{"w": w}], "name": "scaled"}
                ctx.save_for_backward(x)

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                assert ctx.kept["name"] == "scaled"
                return g * ctx.kept["cos"] * ctx.kept["more"][0]["w"], g * xp.sin(x)

        return Scaled.apply

    def test_grad_of_vmap(self, xp):
        f = self.apply(xp)
        dx, dw = func.grad(
            lambda x, w: xp.sum(func.vmap(f, in_axes=(0, None))(x, w)), argnums=(0, 1)
        )(raw(xp, ROWS), raw(xp, ROWS[0]))
        close(dx, np.cos(ROWS) * ROWS[0])
        close(dw, np.sin(ROWS).sum(0))

    def test_no_cycle_keeps_what_it_computed(self, xp):
        """What forward returned had the node as its history, and the node kept it."""
        kept = []

        class Doubled(Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(ctx, x):
                y = x * 2
                kept.append(weakref.ref(y))
                return y

            @staticmethod
            def backward(ctx, g):
                return g * 2

        gc.disable()
        try:
            close(
                func.grad(lambda x: xp.sum(func.vmap(Doubled.apply)(x)))(raw(xp, ROWS)),
                np.full(ROWS.shape, 2),
            )
            assert [r() for r in kept] == [None]
        finally:
            gc.enable()

    def test_backward_of_a_batch_that_outlived_the_transformation(self, xp):
        w = xp.asarray(ROWS[0], requires_grad=True)
        f = self.apply(xp)
        xp.sum(func.vmap(f, in_axes=(0, None))(raw(xp, ROWS), w)).backward()
        close(w.grad, np.sin(ROWS).sum(0))


def test_a_forward_that_is_followed_inside_of_one_that_is_not() -> None:
    """The base level is off for both. Only in the inner one do operations mark what they compute."""
    seen = []

    class Inner(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append(BASE.get())
            return mg.sin(x) * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    class Outer(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            slope = mg.func.grad(mg.func.grad(Inner.apply))(x)
            seen.append(BASE.get())
            return slope

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    Outer.apply(mg.asarray(1.0))
    assert seen == [None, False]
