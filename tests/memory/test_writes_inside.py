"""Writes into arrays that are made where a transformation or a batched pass runs: they take the
values of any level that is there.
"""

from __future__ import annotations

import numpy as np
import pytest
from conftest import values
from forward_programs import close, raw

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad
from multigrad.autograd.function import Function
from multigrad.core.level import Layer
from multigrad.errors import GradientError

X = np.asarray([1.0, 2.0, -3.0])
EYE = np.eye(3)


def by_parts(z, g):
    z[:2] = g[:2]
    z[2:] = g[2:]


def added(z, g):
    z += g


WRITES = pytest.mark.parametrize("write", [by_parts, added])
MAKERS = {
    "zeros": lambda xp, g: xp.zeros(3, dtype=xp.float64),
    "zeros_like": lambda xp, g: xp.zeros_like(g),
}
MADE = pytest.mark.parametrize("made", MAKERS)


def square(xp, made, write):
    """x², whose derivatives are written into an array that they make."""

    def filled(g):
        z = MAKERS[made](xp, g)
        write(z, g)
        return z

    class Square(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return filled(g * 2 * ctx.saved_tensors[0])

        @staticmethod
        def jvp(ctx, t):
            return filled(t * 2 * ctx.saved_tensors[0])

    return Square.apply


def along(f, xp):
    return lambda x: func.jvp(
        f, (x,), (xp.ones_like(x) if isinstance(x, Layer) else xp.ones_like(x).array,)
    )[1]


class TestUsersDerivatives:
    @WRITES
    @MADE
    def test_batched_passes(self, xp, made, write):
        f = square(xp, made, write)
        t = xp.asarray(raw(xp, X), requires_grad=True)
        (rows,) = mg.autograd.grad(f(t), t, xp.eye(3, dtype=t.dtype), is_grads_batched=True)
        np.testing.assert_allclose(values(rows), np.diag(2 * X))
        (rows,) = mg.autograd.grad(
            f(t), t, xp.eye(3, dtype=t.dtype), is_grads_batched=True, create_graph=True
        )
        (g,) = mg.autograd.grad(xp.sum(rows * rows), t)
        np.testing.assert_allclose(values(g), 8 * X)

    @WRITES
    @MADE
    def test_transformations(self, xp, made, write):
        f = square(xp, made, write)
        x = raw(xp, X)
        rows = raw(xp, np.stack([X, X + 1]))
        total = lambda x: xp.sum(f(x))
        for name, found, expected in (
            ("jacrev", func.jacrev(f)(x), np.diag(2 * X)),
            ("jacfwd", func.jacfwd(f)(x), np.diag(2 * X)),
            ("hessian", func.hessian(total)(x), 2 * EYE),
            ("jacrev of grad", func.jacrev(func.grad(total))(x), 2 * EYE),
            ("jvp of jvp", along(along(f, xp), xp)(x), 2 * np.ones(3)),
            ("grad of jvp", func.grad(lambda x: xp.sum(along(f, xp)(x)))(x), 2 * np.ones(3)),
            ("vmap of grad", func.vmap(func.grad(total))(rows), np.stack([2 * X, 2 * X + 2])),
            ("vmap of jvp", func.vmap(along(f, xp))(rows), np.stack([2 * X, 2 * X + 2])),
            ("vmap of hessian", func.vmap(func.hessian(total))(rows), np.stack([2 * EYE] * 2)),
            (
                "grad of vmap",
                func.grad(lambda r: xp.sum(func.vmap(f)(r)))(rows),
                np.stack([2 * X, 2 * X + 2]),
            ),
        ):
            np.testing.assert_allclose(values(found), expected, err_msg=name)

    def test_the_mode_is_that_of_the_pass(self, xp):
        """Also where what the user makes belongs to a level of its own, recording can be switched
        on, as for computing again.
        """
        seen = []

        class Again(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return xp.sin(x)

            @staticmethod
            def backward(ctx, g):
                seen.append(mg.is_grad_enabled())
                (x,) = ctx.saved_tensors
                with mg.enable_grad():
                    own = x.detach().requires_grad_()
                    (d,) = mg.autograd.grad(xp.sum(xp.sin(own)), own)
                return g * d

        t = xp.asarray(raw(xp, X), requires_grad=True)
        (rows,) = mg.autograd.grad(
            Again.apply(t), t, xp.eye(3, dtype=t.dtype), is_grads_batched=True
        )
        np.testing.assert_allclose(values(rows), np.diag(np.cos(X)))
        mg.autograd.grad(
            Again.apply(t), t, xp.eye(3, dtype=t.dtype), is_grads_batched=True, create_graph=True
        )
        assert seen == [False, True] and mg.is_grad_enabled()


class TestHooks:
    @WRITES
    @MADE
    def test_of_tensors_and_nodes(self, xp, made, write):
        def filled(g):
            z = MAKERS[made](xp, g)
            write(z, g * 3)
            return z

        def f(x):
            y = x * x
            y.register_hook(filled)
            z = y * 1
            z.grad_fn.register_prehook(lambda g: (filled(g[0]),))
            z.grad_fn.register_hook(lambda inputs, outputs: (filled(inputs[0]), *inputs[1:]))
            return z * 1

        t = xp.asarray(raw(xp, X), requires_grad=True)
        (rows,) = mg.autograd.grad(f(t), t, xp.eye(3, dtype=t.dtype), is_grads_batched=True)
        np.testing.assert_allclose(values(rows), np.diag(54 * X))
        np.testing.assert_allclose(values(func.jacrev(f)(raw(xp, X))), np.diag(54 * X))
        np.testing.assert_allclose(
            values(func.hessian(lambda x: xp.sum(f(x)))(raw(xp, X))), 54 * EYE
        )


LIKE = {
    "zeros_like": lambda xp, y: xp.zeros_like(y),
    "empty_like": lambda xp, y: xp.empty_like(y),
}


class TestInTheFormOfAnOuterValue:
    """z has the form of y, which belongs to a transformation further out, or to none, and takes a
    value of the one that runs.
    """

    @staticmethod
    def inner(xp, like, y):
        def h(a):
            z = LIKE[like](xp, y)
            z[...] = 0.0
            z[0, ...] = a[0, ...]
            z[1:] += a[1:] * 2
            return xp.sum(z * z * y)

        return h

    EXPECTED = np.asarray([2.0, 8.0, 8.0])  # of the derivative with respect to a, divided by a y

    @pytest.mark.parametrize("like", LIKE)
    def test_zeros_like(self, xp, like):
        x = raw(xp, X)
        rows = raw(xp, np.stack([X, X * 2]))
        slope = lambda y: func.grad(self.inner(xp, like, y))(y * 1.0)
        for name, found, expected in (
            ("grad", slope(xp.asarray(x)), self.EXPECTED * X * X),
            (
                "vmap of grad",
                func.vmap(slope)(rows),
                np.stack([self.EXPECTED * X * X, 4 * self.EXPECTED * X * X]),
            ),
            ("grad of grad", func.grad(lambda y: xp.sum(slope(y)))(x), self.EXPECTED * 2 * X),
            ("jacrev of grad", func.jacrev(slope)(x), np.diag(self.EXPECTED * 2 * X)),
            ("jvp of grad", along(slope, xp)(x), self.EXPECTED * 2 * X),
            (
                "jvp of jvp",
                along(lambda y: along(self.inner(xp, like, y), xp)(y), xp)(x),
                np.sum(self.EXPECTED * 2 * X),
            ),
            (
                "grad of jvp",
                func.grad(lambda y: along(self.inner(xp, like, y), xp)(y))(x),
                self.EXPECTED * 2 * X,
            ),
            (
                "vmap of vmap",
                func.vmap(lambda y: func.vmap(self.inner(xp, like, y))(xp.stack([y, y])))(rows),
                np.stack([[np.sum(self.EXPECTED / 2 * v**3)] * 2 for v in (X, 2 * X)]),
            ),
        ):
            np.testing.assert_allclose(values(found), expected, err_msg=name)

    def test_of_a_tensor_that_requires_grad(self, xp):
        w = xp.asarray(raw(xp, X), requires_grad=True)
        out = func.grad(self.inner(xp, "zeros_like", w))(raw(xp, X))
        np.testing.assert_allclose(values(mg.autograd.grad(xp.sum(out), w)[0]), self.EXPECTED * X)

    def test_in_forward_mode_inside_a_transformation(self, xp):
        """A Dual of a level that was entered inside is above it."""

        def f(x):
            with forward_ad.dual_level():
                d = forward_ad.make_dual(x, xp.ones_like(x))
                z = xp.zeros_like(d)
                z[0, ...] = d[0, ...] * d[0, ...]
                return forward_ad.unpack_dual(xp.sum(z)).tangent

        np.testing.assert_allclose(values(func.grad(f)(raw(xp, X))), [2.0, 0, 0])

    def test_it_is_refused_by_the_same_words_where_both_differentiate(self, xp):
        """It was said that numpy() cannot be called: what the operation keeps was copied before."""

        def outer(y):
            def h(a):
                z = y * 2.0
                z *= xp.sum(a)
                return xp.sum(z)

            return xp.sum(func.grad(h)(raw(xp, X)))

        with pytest.raises(
            RuntimeError, match="cannot be written into an array from outside of it"
        ):
            func.grad(outer)(raw(xp, X))


ROWS = np.arange(1.0, 7.0).reshape(2, 3) / 4


def test_what_is_computed_of_arrays_from_outside_alone_says_how_to_write_to_it(xp):
    outside = xp.asarray(ROWS[0])

    def f(w):
        y = outside * 2
        y[0] = w[1]
        return xp.sum(y)

    with pytest.raises(
        GradientError,
        match="nor into what is computed from such arrays alone. Write into one that is made "
        "inside, as by zeros",
    ):
        func.grad(f)(raw(xp, ROWS[0]))

    def made_inside(w):
        y = xp.zeros(3)
        y[...] = outside * 2
        y[0] = w[1]
        return xp.sum(y * w)

    close(
        func.grad(made_inside)(raw(xp, ROWS[0])),
        [ROWS[0, 1], ROWS[0, 0] + 2 * ROWS[0, 1], 2 * ROWS[0, 2]],
    )
