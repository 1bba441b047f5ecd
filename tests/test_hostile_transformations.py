"""What a hostile reader of the transformations found, and compositions that were tried on them."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import textwrap
import weakref
from contextvars import copy_context

import numpy as np
import pytest
from conftest import values
from forward_programs import close, raw

import multigrad as mg
from multigrad import func
from multigrad.autograd.function import Function
from multigrad.errors import GradientError, LeakError

X = np.arange(1.0, 7.0).reshape(2, 3) / 4

FIRST_USE = textwrap.dedent("""
    import sys, threading
    import numpy as np
    import multigrad as mg
    from multigrad import func

    sys.setswitchinterval(1e-6)
    x = np.arange(12.0).reshape(4, 3)
    together, found = threading.Barrier(8), []

    def first():
        together.wait()
        try:
            found.append(func.vmap(func.hessian(lambda s: mg.sum(mg.sin(s) * s**2)))(x).shape)
        except BaseException as error:
            found.append(repr(error))

    threads = [threading.Thread(target=first) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(set(found))
""")


def test_first_use_in_several_threads_at_once():
    """Whoever comes while another thread fills the tables waits for it, and does not find them half
    full.
    """
    found = subprocess.run(
        [sys.executable, "-c", FIRST_USE], capture_output=True, text=True, timeout=120, check=True
    )
    assert found.stdout.strip() == "{(4, 3, 3)}", found.stdout


class TestNothingIsLeftBehind:
    """A transformation that is over leaves nothing in the context of the thread, which is there as
    long as the thread.
    """

    @staticmethod
    def without_grad(s):
        with mg.no_grad():
            factor = s * 2
        return mg.sum(factor * s)

    @staticmethod
    def switched_off(s):
        mg.set_grad_enabled(False)
        return mg.sum(s * s)

    @staticmethod
    def backward_inside(s):
        p = mg.asarray(np.ones(3), requires_grad=True)
        mg.sum(p * p * s).backward()
        return mg.sum(p.grad)

    @staticmethod
    def failing(s):
        with mg.no_grad():
            raise KeyError

    @pytest.mark.parametrize("name", ["without_grad", "switched_off", "backward_inside", "failing"])
    def test_in_the_context(self, name):
        f = getattr(self, name)
        for transformed in (
            func.grad(f),
            func.vmap(f),
            func.hessian(func.checkpoint(f)),
            lambda x: func.linearize(f, x)[1](x),
        ):
            sizes = []
            for _ in range(3):
                with contextlib.suppress(KeyError):
                    transformed(X)
                sizes.append(len(copy_context()))
            assert sizes[0] == sizes[1] == sizes[2]
        assert mg.is_grad_enabled()

    def test_modes_of_two_transformations_are_their_own(self, xp):
        def f(s):
            with mg.no_grad():
                # recorded in its own level, a constant to the outer one
                inner = func.grad(lambda t: xp.sum(t * t * s))(s)
                assert not mg.is_grad_enabled()
            assert mg.is_grad_enabled()
            return xp.sum(inner * s)

        close(func.grad(f)(raw(xp, X[0])), 2 * X[0] ** 2)


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
        )(raw(xp, X), raw(xp, X[0]))
        close(dx, np.cos(X) * X[0])
        close(dw, np.sin(X).sum(0))

    def test_vmap_of_grad(self, xp):
        f = self.apply(xp)
        each = func.vmap(
            func.grad(lambda x, w: xp.sum(f(x, w)), argnums=(0, 1)), in_axes=(0, None)
        )(raw(xp, X), raw(xp, X[0]))
        close(each[0], np.cos(X) * X[0])
        close(each[1], np.sin(X))

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
                func.grad(lambda x: xp.sum(func.vmap(Doubled.apply)(x)))(raw(xp, X)),
                np.full(X.shape, 2),
            )
            assert [r() for r in kept] == [None]
        finally:
            gc.enable()

    def test_backward_of_a_batch_that_outlived_the_transformation(self, xp):
        w = xp.asarray(X[0], requires_grad=True)
        f = self.apply(xp)
        xp.sum(func.vmap(f, in_axes=(0, None))(raw(xp, X), w)).backward()
        close(w.grad, np.sin(X).sum(0))


@pytest.mark.parametrize(
    "transformed", [func.grad, func.jacrev, func.jacfwd], ids=lambda t: t.__name__
)
def test_a_leaked_batch_is_no_result(xp, transformed):
    """It was taken for a constant, whose gradient is zero."""
    kept = []
    func.vmap(lambda s: (kept.append(s), s)[1])(raw(xp, X[0]))
    with pytest.raises(LeakError, match="vmap"):
        transformed(lambda s: kept[0])(raw(xp, X[0]))


def test_what_is_computed_of_arrays_from_outside_alone_says_how_to_write_to_it(xp):
    outside = xp.asarray(X[0])

    def f(w):
        y = outside * 2
        y[0] = w[1]
        return xp.sum(y)

    with pytest.raises(
        GradientError,
        match="nor into what is computed from such arrays alone. Write into one that is made "
        "inside, as by zeros",
    ):
        func.grad(f)(raw(xp, X[0]))

    def made_inside(w):
        y = xp.zeros(3)
        y[...] = outside * 2
        y[0] = w[1]
        return xp.sum(y * w)

    close(func.grad(made_inside)(raw(xp, X[0])), [X[0, 1], X[0, 0] + 2 * X[0, 1], 2 * X[0, 2]])


class TestViewsInBatches:
    """Overlapping views, written one after the other, in a function of one example."""

    @staticmethod
    def program(y, total):
        tail, column, back = y[1:], y.reshape((3, 1)), y[::-1]
        tail += 10.0
        column[0, 0] = y[2] * 1.0
        tail[0] *= column[0, 0]
        back[0] += 1.0
        return y * total(tail) + back

    def test_values_and_derivatives(self, xp):
        f = lambda s: self.program(s * 1.0, xp.sum)
        expected = np.stack([self.program(row * 1.0, np.sum) for row in X])
        close(func.vmap(f)(raw(xp, X)), expected)
        h = 1e-6
        moved = lambda row, d: (
            (self.program(row + d, np.sum) - self.program(row - d, np.sum)) / (2 * h)
        )
        jacobian = np.stack([np.stack([moved(row, h * e) for e in np.eye(3)], -1) for row in X])
        for mode in (func.jacfwd, func.jacrev):
            np.testing.assert_allclose(
                values(mg.asarray(func.vmap(mode(f))(raw(xp, X)))), jacobian, atol=1e-6
            )


def test_index_of_an_outer_batch_in_an_inner_one(xp):
    """As an index, as a mask of where, as what is written, and as where to write."""

    def f(row):
        k, mask = xp.argmax(xp.sin(row * 3)), row > 0.6

        def g(s):
            y = xp.zeros(3) + s
            y[k] = row[k] * s
            return xp.sum(xp.where(mask, y, row))

        return func.vmap(func.grad(g))(row)

    def expected(row):
        k, mask = int(np.argmax(np.sin(row * 3))), row > 0.6
        slope = np.ones(3)
        slope[k] = row[k]
        return np.full(3, slope[mask].sum())

    close(func.vmap(f)(raw(xp, X)), np.stack([expected(row) for row in X]))
