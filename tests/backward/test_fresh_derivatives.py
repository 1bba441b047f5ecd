"""Derivatives that func and autograd hand out: arrays of their own, writable where the library's
are.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import values
from forward_programs import raw

import multigrad as mg
from multigrad import func, tree
from multigrad.autograd import functional
from multigrad.backward import gradients
from multigrad.layers import transforming


def halve(t: Any) -> Any:
    """`t *= 0.5`, which writes into the memory of `t` where arrays are mutable."""
    t *= 0.5
    return t


def assert_fresh(xp: Any, derivatives: Any, given: Any) -> None:
    """Each array among `derivatives` can be written without a change of another one, nor of what
    was `given`.
    """
    fresh, others = list(tree.leaves(derivatives)), list(tree.leaves(given))
    assert fresh
    before = [np.array(values(x)) for x in fresh]
    kept = [np.array(values(x)) for x in others]
    for i, x in enumerate(fresh):
        for other, value in zip(fresh[i:], before[i:], strict=True):
            np.testing.assert_array_equal(values(other), value)
        with mg.no_grad():
            fresh[i] = halve(x)
        np.testing.assert_array_equal(values(fresh[i]), before[i] * 0.5)
    for x, value in zip(others, kept, strict=True):
        np.testing.assert_array_equal(values(x), value)


def address(x: Any) -> int:
    found: int = x.__array_interface__["data"][0]
    return found


def shared(p: Any) -> Any:
    """A loss whose gradients are one array unless each is made its own."""
    return mg.sum(p["a"] + p["b"])


class TestReverse:
    def test_gradients_of_a_sum(self, xp):
        x = raw(xp, [1.0, 2.0, 3.0])
        given = {"a": x, "b": x}
        g = func.grad(lambda p: mg.sum(mg.sin(p["a"] + p["b"])))(given)
        for k in g:
            g[k] = halve(g[k])
        for k in g:
            np.testing.assert_allclose(values(g[k]), 0.5 * np.cos([2.0, 4.0, 6.0]))
        np.testing.assert_array_equal(values(x), [1, 2, 3])
        assert_fresh(xp, func.grad(shared)(given), given)

    @pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0), (2, 3), (1,)])
    def test_a_broadcast_is_not_handed_out(self, xp, shape):
        x = raw(xp, np.ones(shape))
        assert_fresh(xp, func.grad(mg.sum)(x), x)
        assert_fresh(xp, func.value_and_grad(mg.sum)(x)[1], x)

    def test_the_same_argument_twice(self, xp):
        x = raw(xp, [1.0, 2.0])
        assert_fresh(xp, func.grad(lambda a, b: mg.sum(a * b), argnums=(0, 0, 1))(x, x), x)

    def test_what_is_captured_is_not_handed_out(self, xp):
        x, c = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        assert_fresh(xp, func.grad(lambda a: mg.sum(a * mg.asarray(c)))(x), (x, c))
        constant = mg.asarray(c)
        assert_fresh(xp, func.vjp(lambda a: a + 1.0, x)[1](constant), (x, constant))
        assert_fresh(xp, func.vjp(lambda a: a + 1.0, constant)[1](constant), constant)

    def test_pullbacks(self, xp):
        x, v = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        _, pullback = func.vjp(lambda a, b: a + b, x, x)
        first, second = pullback(v), pullback(v)
        assert_fresh(xp, (first, second), (x, v))

    def test_outputs_stay_what_the_function_returned(self, xp):
        x, kept = raw(xp, [1.0, 2.0]), raw(xp, [3.0])
        output, _ = func.vjp(lambda a: a, x)
        assert output is x
        _, aux = func.grad(lambda a: (mg.sum(a), kept), has_aux=True)(x)
        assert aux is kept

    def test_tensors(self, xp):
        x = mg.asarray(raw(xp, [1.0, 2.0]))
        given = {"a": x, "b": x}
        assert_fresh(xp, func.grad(shared)(given), given)
        assert_fresh(xp, func.grad(lambda p: mg.sum(p["a"] * p["b"]))(given), given)

    def test_tensors_that_require_grad(self, xp):
        w = mg.asarray(raw(xp, [1.0, 2.0]), requires_grad=True)
        x = raw(xp, [3.0, 4.0])
        for f in (lambda p: mg.sum((p["a"] + p["b"]) * w), lambda p: mg.sum(w) * shared(p)):
            assert_fresh(xp, func.grad(f)({"a": x, "b": x}), (x, w))
            g = func.grad(f)({"a": x, "b": x})
            g["a"] *= 3.0  # recorded, as any write
            (mg.sum(g["a"]) + mg.sum(g["b"])).backward()
        np.testing.assert_allclose(values(w.grad), [4 + 8, 4 + 8])
        v = mg.asarray(raw(xp, [1.0, 1.0]), requires_grad=True)
        (g,) = func.vjp(lambda a: a + 1.0, w)[1](v * 1.0)
        assert g is not v
        mg.sum(g * g).backward()
        np.testing.assert_allclose(values(v.grad), [2, 2])

    def test_an_array_of_its_own_is_not_copied(self):
        """What the last rule of a pass has made is handed out itself."""
        made: list[int] = []

        class Double(mg.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2.0

            @staticmethod
            def backward(ctx, g):
                found = g * 2.0
                made.append(address(found.array))
                return found

        f = lambda x: mg.sum(Double.apply(x))
        x = np.arange(5.0)
        assert address(func.grad(f)(x)) == made.pop()
        w = mg.asarray(x, requires_grad=True)
        assert address(mg.autograd.grad(f(w), w)[0].array) == made.pop()

    def test_a_copy_of_a_broadcast_lies_by_rows(self):
        g = func.grad(lambda x: mg.sum(mg.sum(x, axis=0) * np.arange(4.0)))(np.ones((3, 4)))
        assert g.flags.c_contiguous and g.flags.owndata

    def test_scalars_of_the_library_stay_scalars(self):
        assert type(func.grad(lambda x: x * x)(np.float64(3.0))) is np.float64
        assert type(func.grad(lambda x: x * x)(np.asarray(3.0))) is np.ndarray


class TestForward:
    def test_tangents(self, xp):
        x, v = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        (y, z), tangents = func.jvp(lambda a: (a + 1.0, a - 1.0), (x,), (v,))
        assert_fresh(xp, tangents, (x, v, y, z))
        assert_fresh(xp, func.jvp(lambda a: mg.broadcast_to(a, (3, 2)), (x,), (v,))[1], (x, v))
        t = mg.asarray(v)
        assert_fresh(xp, func.jvp(lambda a: (a, a + 1.0), (mg.asarray(x),), (t,))[1], (x, t))

    def test_pushforwards(self, xp):
        x, v = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        _, pushforward = func.linearize(lambda a: (a + 1.0, a), x)
        assert_fresh(xp, (pushforward(v), pushforward(v)), (x, v))

    def test_products(self, xp):
        x, v = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        _, product = func.hvp(lambda a, b: mg.sum(a * b), (x, x), (v, v))
        assert_fresh(xp, product, (x, v))


class TestMatrices:
    @pytest.mark.parametrize(
        "transform", [func.jacrev, func.jacfwd, func.jacobian], ids=lambda f: f.__name__
    )
    def test_jacobians(self, xp, transform):
        x = raw(xp, [1.0, 2.0])
        given = {"a": x, "b": x}
        assert_fresh(
            xp,
            transform(lambda p: {"s": p["a"] + p["b"], "t": p["a"] + p["b"], "c": p["a"]})(given),
            given,
        )
        assert_fresh(xp, transform(shared)(given), given)
        assert_fresh(xp, transform(lambda p: mg.broadcast_to(mg.sum(p["a"]), (3,)))(given), given)
        assert_fresh(xp, transform(lambda p: p["a"] + p["b"], chunk_size=1)(given), given)

    def test_hessians(self, xp):
        x = raw(xp, [1.0, 2.0])
        given = {"a": x, "b": x}
        assert_fresh(xp, func.hessian(lambda p: mg.sum(p["a"] * p["b"]))(given), given)
        assert_fresh(xp, func.hessian(shared)(given), given)


class TestNested:
    def test_batches(self, xp):
        rows = raw(xp, np.arange(6.0).reshape(3, 2))
        given = {"a": rows, "b": rows}
        assert_fresh(xp, func.vmap(func.grad(mg.sum))(rows), rows)
        assert_fresh(xp, func.vmap(func.grad(shared))(given), given)
        assert_fresh(
            xp, func.vmap(func.grad(lambda p: mg.sum(mg.sin(p["a"] + p["b"]))))(given), given
        )
        assert_fresh(
            xp, func.vmap(lambda r: func.jvp(lambda a: (a + 1.0, a), (r,), (r,))[1])(rows), rows
        )
        assert_fresh(xp, func.vmap(func.jacrev(lambda a: (a, a)))(rows), rows)
        assert_fresh(xp, func.vmap(func.hessian(shared))(given), given)
        assert_fresh(xp, func.vmap(func.grad(shared), out_axes=1)(given), given)
        assert_fresh(xp, func.vmap(func.grad(shared), chunk_size=2)(given), given)

    def test_what_is_the_same_for_all_examples_with_out_axes_none(self, xp):
        x, rows = raw(xp, [1.0, 2.0]), raw(xp, np.ones((3, 2)))
        given = {"a": x, "b": x}
        both = func.vmap(lambda r: func.grad(shared)(given), out_axes=None)(rows)
        assert_fresh(xp, both, given)

    def test_the_gradient_that_a_jvp_returns(self, xp):
        x = raw(xp, [1.0, 2.0])
        given = {"a": x, "b": x}
        gradient, product = func.jvp(
            func.grad(lambda p: mg.sum(mg.sin(p["a"] + p["b"]))), (given,), (given,)
        )
        assert_fresh(xp, (gradient, product), given)

    def test_writes_inside(self, xp):
        """Each of two gradients is halved inside another transformation, as any array may be
        written there.
        """

        def f(x):
            g = func.grad(lambda p: mg.sum(mg.sin(p["a"] + p["b"])))({"a": x, "b": x})
            for k in g:
                g[k] *= 0.5
            return mg.sum(g["a"] + g["b"])  # the sum of cos(2 x)

        x, rows = np.asarray([1.0, 2.0]), np.asarray([[1.0, 2.0], [3.0, 4.0]])
        for transform in (func.grad, func.jacfwd):
            np.testing.assert_allclose(values(transform(f)(raw(xp, x))), -2 * np.sin(2 * x))
        np.testing.assert_allclose(values(func.vmap(f)(raw(xp, rows))), np.cos(2 * rows).sum(1))

    @pytest.mark.parametrize("outer", ["grad", "jvp", "vmap"])
    def test_writes_inside_leave_what_was_captured(self, xp, outer):
        """The gradient of sum(a + b) x is x itself, whose other uses must not see the write."""

        def f(x):
            g = func.vjp(lambda a: a + 1.0, x)[1](x)[0]
            g *= 0.5
            return mg.sum(g * x) + mg.sum(x)

        x = raw(xp, [1.0, 2.0])
        if outer == "grad":
            np.testing.assert_allclose(values(func.grad(f)(x)), [2, 3])
        elif outer == "jvp":
            np.testing.assert_allclose(values(func.jvp(f, (x,), (x,))[1]), 2 * 1 + 3 * 2)
        else:
            np.testing.assert_allclose(values(func.vmap(f)(raw(xp, [[1.0, 2.0]]))), [2.5 + 3])
        np.testing.assert_array_equal(values(x), [1, 2])

    def test_second_derivatives_see_the_copies(self, xp):
        x = raw(xp, [1.0, 2.0])
        f = func.grad(
            lambda x: mg.sum(func.grad(lambda y: mg.sum(mg.reshape(y, (1, 2))[0, ...] ** 3))(x) * x)
        )
        np.testing.assert_allclose(values(f(x)), [9, 36])
        third = func.grad(func.grad(func.grad(lambda x: x**4)))
        np.testing.assert_allclose(values(third(raw(xp, 2.0))), 48)


class TestAutograd:
    def test_grad(self, xp):
        a, b = (mg.asarray(raw(xp, [1.0, 2.0]), requires_grad=True) for _ in range(2))
        v = raw(xp, [3.0, 4.0])
        assert_fresh(xp, mg.autograd.grad(mg.sum(mg.sin(a + b)), [a, b]), (a, b))
        assert_fresh(xp, mg.autograd.grad(mg.sum(a + b), [a, b, a]), (a, b))
        assert_fresh(xp, mg.autograd.grad(a + b, [a, b], [v]), (a, b, v))
        assert_fresh(xp, mg.autograd.grad(a + b, [a, b], [mg.asarray(v)]), (a, b, v))
        assert_fresh(
            xp,
            mg.autograd.grad(a + b, [a, b], [raw(xp, np.ones((3, 2)))], is_grads_batched=True),
            (a, b),
        )
        assert_fresh(
            xp,
            mg.autograd.grad(mg.sum(a), [a, b], allow_unused=True, materialize_grads=True),
            (a, b),
        )

    def test_grad_that_is_recorded(self, xp):
        a, b = (mg.asarray(raw(xp, [1.0, 2.0]), requires_grad=True) for _ in range(2))
        v = mg.asarray(raw(xp, [3.0, 4.0]), requires_grad=True)
        found = mg.autograd.grad(a * 1.0 + b, [a, b], [v], create_graph=True)
        assert all(g is not v for g in found)
        for g in found:
            g *= 2.0
        (mg.sum(found[0]) + 10.0 * mg.sum(found[1])).backward()
        np.testing.assert_allclose(values(v.grad), [22, 22])
        np.testing.assert_array_equal(values(v), [3, 4])
        assert_fresh(xp, mg.autograd.grad(mg.sum(a + b), [a, b], create_graph=True), (a, b))

    @pytest.mark.parametrize("vectorize", [False, True])
    def test_functional(self, xp, vectorize):
        a, b = (mg.asarray(raw(xp, [1.0, 2.0])) for _ in range(2))
        given = (a, b)
        assert_fresh(xp, functional.vjp(lambda x, y: x + y, given, a)[1], given)
        assert_fresh(xp, functional.jvp(lambda x, y: (x + y, x), given, given)[1], given)
        assert_fresh(xp, functional.hvp(lambda x, y: mg.sum(x * y), given, given)[1], given)
        assert_fresh(xp, functional.vhp(lambda x, y: mg.sum(x * y), given, given)[1], given)
        assert_fresh(
            xp, functional.jacobian(lambda x, y: (x + y, x + y), given, vectorize=vectorize), given
        )
        assert_fresh(
            xp, functional.jacobian(lambda x, y: mg.sum(x + y), given, vectorize=vectorize), given
        )
        assert_fresh(
            xp,
            functional.jacobian(
                lambda x, y: (x + 1.0, x + 2.0), given, vectorize=True, strategy="forward-mode"
            ),
            given,
        )
        assert_fresh(
            xp, functional.hessian(lambda x, y: mg.sum(x * y), given, vectorize=vectorize), given
        )


def layers(p: Any, x: Any) -> Any:
    for matrix, shift in p:
        x = mg.tanh(x @ matrix + shift)
    return mg.sum(x * x)


PARAMETERS = [(np.eye(60), np.ones(60)) for _ in range(3)]
ROWS, VECTOR, MATRIX = np.ones((200, 60)), np.ones(60), np.ones((60, 60))
LEAF = mg.asarray(VECTOR, requires_grad=True)
PULLBACK = func.vjp(lambda t: t * 2.0, ROWS)[1]
PROGRAMS: dict[str, Callable[[], Any]] = {
    "grad": lambda: func.grad(layers)(PARAMETERS, ROWS),
    # whose result is all that it takes: a copy of it would be twice as much
    "pullback": lambda: PULLBACK(ROWS),
    "grad of a transpose": lambda: func.grad(
        lambda a: mg.sum(mg.sin(mg.matrix_transpose(mg.reshape(a, (60, 200)))))
    )(ROWS),
    "jvp": lambda: func.jvp(lambda t: mg.sin(t) * t, (ROWS,), (ROWS,)),
    "jacrev": lambda: func.jacrev(lambda t: mg.tanh(MATRIX @ t))(VECTOR),
    "jacfwd": lambda: func.jacfwd(lambda t: mg.tanh(MATRIX @ t))(VECTOR),
    "hessian": lambda: func.hessian(lambda t: mg.sum(mg.tanh(MATRIX @ t)))(VECTOR),
    "autograd.grad": lambda: mg.autograd.grad(mg.sum(mg.tanh(MATRIX @ mg.sin(LEAF))), LEAF),
}


def peak(program: Callable[[], Any]) -> int:
    """The most memory that the arrays of a program take at once, with its result."""
    program()
    gc.collect()
    tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        program()
        return tracemalloc.get_traced_memory()[1] - start
    finally:
        tracemalloc.stop()


@pytest.mark.sweep_after(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_memory(monkeypatch, name):
    """At most a tenth more than where what the pass has found is handed out as it is."""
    for _ in range(8):  # which may write code
        PROGRAMS[name]()
    found = peak(PROGRAMS[name])
    for module in (transforming, gradients):
        monkeypatch.setattr(module, "owned", lambda values, like: values.pop())
    assert found <= 1.1 * peak(PROGRAMS[name])
