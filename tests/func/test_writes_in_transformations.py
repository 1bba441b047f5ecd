"""Writes inside of transformations: what nodes saved before keeps its value.

Random programs with writes, in every transformation and beside the same programs without writes,
are those of properties/.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError

X = [0.3, 0.7, 1.2]
W = [1.0, 2.0, 0.5]


def program(apart: bool) -> Callable[[Any], Any]:
    """Write to what operations have saved; `apart`: to what was computed again for it."""

    def f(x: Any) -> Any:
        c = mg.exp(x)
        y = x * c + c[1] * mg.sin(c * x)
        if apart:
            c = mg.exp(x)
        c /= mg.sum(c)
        c[1:] *= 3.0
        c[0] = x[1] * 2.0
        return mg.sum(y * c) + mg.sum(c[1:] * c[:-1])

    return f


def late(f: Callable[[Any], Any], x: Any) -> Any:
    """The pullback runs after writes to the output."""
    out, pullback = func.vjp(lambda x: mg.exp(x) * f(x), x)
    out *= 2.0
    return pullback(x)[0]


def linearized(f: Callable[[Any], Any], x: Any) -> Any:
    out, pushforward = func.linearize(lambda x: mg.exp(x) * f(x), x)
    out[0] = 5.0
    return pushforward(x)


def recorded_pass(f: Callable[[Any], Any], x: Any) -> Any:
    def g(x: Any) -> Any:
        w = mg.asarray(W, dtype=x.dtype, requires_grad=True)
        (g,) = mg.autograd.grad(f(w), w, create_graph=True)
        (h,) = mg.autograd.grad(mg.sum(g * g), w)
        return mg.sum(x * h)

    return func.grad(g)(x)


def within_a_custom_vjp(f: Callable[[Any], Any], x: Any) -> Any:
    g = func.custom_vjp(mg.sin)

    def bwd(kept: Any, gradient: Any) -> Any:
        c = kept * 1.0
        out = gradient * c
        c[0] = 9.0
        return (out,)

    g.defvjp(lambda x: (mg.sin(x), mg.cos(x)), bwd)
    return func.grad(lambda x: f(g(x)))(x)


def in_a_while_loop(f: Callable[[Any], Any], x: Any) -> Any:
    def body(state: Any) -> Any:
        i, x = state
        return i + 1, x + 0.01 * f(x)

    return func.jvp(lambda x: func.while_loop(lambda s: s[0] < 2, body, (0, x))[1], (x,), (x,))[1]


def in_allow_mutation(f: Callable[[Any], Any], x: Any) -> Any:
    with mg.autograd.graph.allow_mutation_on_saved_tensors():
        return func.grad(f)(x)


@pytest.mark.parametrize(
    "apply",
    [late, linearized, recorded_pass, within_a_custom_vjp, in_a_while_loop, in_allow_mutation],
    ids=lambda apply: apply.__name__,
)
def test_writes_as_to_values_that_nothing_has_saved(apply: Any) -> None:
    found, wanted = (apply(program(apart), np.array(X)) for apart in (False, True))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


class TestPrograms:
    def test_a_constant(self, backend):
        def f(x: Any) -> Any:
            c = x.__array_namespace__().ones(3, dtype=x.dtype)
            y = x * c
            c[0] = 7.0
            return mg.sum(y)

        x = mg.asarray(X, backend=backend).array
        np.testing.assert_array_equal(values(func.grad(f)(x)), 1.0)

    def test_a_work_buffer_that_is_used_again(self, backend):
        def f(x: Any) -> Any:
            xp = x.__array_namespace__()
            work, total = xp.zeros(3, dtype=x.dtype), xp.zeros((), dtype=x.dtype)
            for i in range(3):
                work[...] = float(i)
                total = total + xp.sum(work * x)
            return total

        x = mg.asarray(X, backend=backend).array
        np.testing.assert_array_equal(values(func.grad(f)(x)), 3.0)

    def test_softmax_in_place(self, backend):
        def f(x: Any, w: Any) -> Any:
            xp = x.__array_namespace__()
            y = xp.exp(x)
            y /= xp.sum(y)
            return xp.sum(y * w)

        x, w = mg.asarray(X, backend=backend).array, mg.asarray(W, backend=backend).array
        p = np.exp(X) / np.sum(np.exp(X))
        expected = p * (np.array(W) - np.sum(p * np.array(W)))
        np.testing.assert_allclose(values(func.grad(f)(x, w)), expected, rtol=1e-6)

    @pytest.mark.parametrize(
        "write",
        [
            lambda c: np.copyto(c, 5.0),
            lambda c: np.add.at(c, [0, 0], 1.0),
            lambda c: np.multiply(c, 2.0, out=c),
        ],
        ids=["copyto", "add.at", "out"],
    )
    @pytest.mark.parametrize("start", [lambda x: np.ones_like(x), np.exp], ids=["ones", "exp"])
    def test_functions_of_numpy(self, start, write):
        def f(x: Any, apart: bool) -> Any:
            c = start(x)
            y = x * c * c
            if apart:
                c = start(x)
            write(c)
            return np.sum(y) + np.sum(c * x)

        x = np.array(X)
        np.testing.assert_allclose(
            func.grad(f)(x, apart=False), func.grad(f)(x, apart=True), rtol=1e-14
        )

    def test_an_index_array(self):
        def f(x: Any) -> Any:
            at = mg.asarray([0, 1, 1])
            y = x[at] * x
            at[...] = 2
            return mg.sum(y)

        x = np.array(X)
        np.testing.assert_allclose(func.grad(f)(x), [2 * X[0], 2 * X[1] + X[2], X[1]], rtol=1e-14)

    def test_a_constant_of_an_outer_transformation(self):
        """The pullback of the inner one runs after the write."""

        def f(x: Any) -> Any:
            c = mg.ones(3)
            d = x * 1.0
            _, pullback = func.vjp(lambda z: z * c * d, x)
            c[0] = 7.0
            d += 9.0
            return mg.sum(pullback(mg.ones(3))[0] * x)

        np.testing.assert_allclose(func.grad(f)(np.array(X)), 2 * np.array(X), rtol=1e-14)

    def test_the_argument_of_an_inner_transformation(self):
        def f(x: Any) -> Any:
            c = x * 1.0
            _, pullback = func.vjp(lambda z: z * z, c)
            c[0] = 7.0
            return mg.sum(pullback(mg.ones(3))[0])

        np.testing.assert_allclose(func.grad(f)(np.array(X)), 2.0, rtol=1e-14)

    def test_a_function_that_saves_for_backward(self):
        class Square(mg.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, c: Any) -> Any:
                ctx.save_for_backward(x, c)
                return x * x * c

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                x, c = ctx.saved_tensors
                return 2.0 * g * x * c, None

        def f(x: Any) -> Any:
            c, z = mg.ones(3), x * 1.0
            y = Square.apply(z, c)
            c *= 5.0
            z += 1.0
            return mg.sum(y)

        np.testing.assert_allclose(func.grad(f)(np.array(X)), 2 * np.array(X), rtol=1e-14)


class TestViewsAndAliases:
    def test_views_follow(self, backend):
        def f(x: Any) -> Any:
            y = x * 1.0
            v, w = y[1:], y[:2]
            z = mg.sum(y * y) + mg.sum(v * v)
            v *= 3.0
            seen.extend([y.detach().tolist(), v.detach().tolist(), w.detach().tolist()])
            y[1] = 5.0
            seen.extend([v.detach().tolist(), w.detach().tolist()])
            return z + mg.sum(w)

        seen: list[Any] = []
        x = mg.asarray([1.0, 2.0, 3.0], backend=backend).array
        np.testing.assert_allclose(values(func.grad(f)(x)), [3.0, 8.0, 12.0])
        assert seen == [[1.0, 6.0, 9.0], [6.0, 9.0], [1.0, 6.0], [5.0, 9.0], [1.0, 5.0]]

    def test_the_strides_remain(self):
        def f(x: Any) -> Any:
            c = mg.asarray(np.arange(6.0).reshape(3, 2).T)
            y = mg.sum(c) * x
            before = c._array.strides
            z = c * x
            c[0, 0] = 3.0
            assert c._array.strides == before
            return mg.sum(z) + mg.sum(y)

        func.grad(f)(np.ones(3))

    def test_an_array_that_the_program_holds_keeps_its_values(self):
        held = np.ones(3)

        def f(x: Any) -> Any:
            c, d = mg.asarray(held), mg.ones(3)
            raw = d.array
            c[0] = d[0] = 7.0
            np.testing.assert_array_equal(raw, 1.0)
            return mg.sum(x * c * d)

        np.testing.assert_array_equal(func.grad(f)(np.ones(3)), [49.0, 1.0, 1.0])
        np.testing.assert_array_equal(held, 1.0)

    def test_versions(self):
        def f(x: Any) -> Any:
            y = mg.exp(x)
            for n in range(1, 4):
                y *= 2.0
                y[0] = 1.0
                assert y._version == 2 * n
            return mg.sum(y)

        func.grad(f)(np.array(X))


class TestCopies:
    """How often the memory of a Tensor moves."""

    @staticmethod
    def moves(write: Callable[[Any, int], None], before: Callable[[Any, Any], Any]) -> int:
        def f(x: Any) -> Any:
            nonlocal count
            c = mg.zeros(50)
            kept = before(c, x)
            for i in range(50):
                at = id(c._array)
                write(c, i)
                count += id(c._array) != at
            return mg.sum(x) + mg.sum(kept if isinstance(kept, mg.Tensor) else x)

        count = 0
        func.grad(f)(np.ones(50))
        return count

    @staticmethod
    def by_index(c: Any, i: int) -> None:
        c[i] = 1.0

    @staticmethod
    def by_view(c: Any, i: int) -> None:
        part = slice(i, i + 1)  # as Python 3.12 does, which makes the slice twice
        c.__setitem__(part, c[slice(i, i + 1)].__iadd__(1.0))

    @staticmethod
    def whole(c: Any, i: int) -> None:
        c *= 0.5

    WRITES = (by_index, by_view, whole)

    @pytest.mark.parametrize("write", ["by_index", "by_view", "whole"])
    def test_none_if_nothing_was_saved(self, write):
        assert self.moves(getattr(self, write), lambda c, x: None) == 0
        assert self.moves(getattr(self, write), lambda c, x: c + x) == 0

    @pytest.mark.parametrize("write", ["by_index", "by_view", "whole"])
    def test_one_if_nodes_have_saved_it(self, write):
        assert self.moves(getattr(self, write), lambda c, x: c * x + x * c * c) == 1

    def test_none_for_writes_through_one_view(self):
        def f(x: Any) -> Any:
            table = mg.zeros((4, 50))
            at = id(table._array)
            row = table[1]
            for i in range(50):
                row[i] = float(i)
            assert id(table._array) == at
            return mg.sum(table[1] * x)

        np.testing.assert_array_equal(func.grad(f)(np.ones(50)), np.arange(50.0))

    def test_old_values_are_freed_with_the_graph(self):
        def f(x: Any) -> Any:
            y = mg.exp(x)
            old.append(weakref.ref(y._array))
            y /= mg.sum(y)
            old.append(weakref.ref(y._array))
            return mg.sum(y * y)

        old: list[Any] = []
        gc.disable()
        try:
            func.grad(f)(np.array(X))
            assert [at() for at in old] == [None, None]
        finally:
            gc.enable()

    def test_old_values_of_inner_graphs_are_freed_while_the_memory_lives(self):
        def f(x: Any) -> Any:
            c = mg.ones(3)
            for i in range(5):
                func.grad(lambda z: mg.sum(z * c))(x)
                old.append(weakref.ref(c._array))
                c[0] = float(i)
            alive = {id(at()) for at in old if at() is not None}
            assert alive == {id(c._array)}
            return mg.sum(x)

        old: list[Any] = []
        func.grad(f)(np.array(X))


MODIFIED = "has been modified by an inplace operation"


class TestWhatStaysAnError:
    def test_writes_to_arguments(self, backend):
        def f(x: Any) -> Any:
            x[0] = 1.0
            return mg.sum(x)

        x = mg.asarray(X, backend=backend).array
        with pytest.raises(GradientError, match="It is an argument of a function"):
            func.grad(f)(x)
        np.testing.assert_allclose(values(x), X, rtol=1e-6)

    def test_a_captured_tensor_of_the_base_level(self, backend):
        c = mg.asarray([1.0, 1.0, 1.0], backend=backend)

        def f(x: Any) -> Any:
            y = x * c
            c[0] = 7.0
            return mg.sum(y)

        with pytest.raises(GradientError, match=MODIFIED):
            func.grad(f)(mg.asarray(X, backend=backend).array)

    @pytest.mark.parametrize(
        "product",
        [
            lambda x, c: (x + x.__array_namespace__().zeros(3)) * c,
            lambda x, c: (x + x.__array_namespace__().zeros(3)) ** c,
            lambda x, c: mg.stack([x + mg.zeros(3), c])[0] * c,
            lambda x, c: func.jvp(lambda z: z * c, (x,), (x,))[1],
            lambda x, c: func.vmap(lambda z: z * c)(mg.stack([x, x])),
        ],
        ids=["*", "**", "stack", "jvp", "vmap"],
    )
    @pytest.mark.parametrize("calls", [1, 8])
    def test_where_values_are_layers(self, product, calls):
        """The node of a lower level gets the version cell; generated code runs after some calls."""

        def f(x: Any) -> Any:
            for _ in range(calls):
                y = product(x, c)
            c[0] = 7.0
            return mg.sum(y)

        c = mg.asarray([1.0, 1.0, 1.0])
        with pytest.raises(GradientError, match=MODIFIED):
            func.grad(f)(np.array(X))

    def test_where_only_tangents_are_layers(self):
        def f(t: Any) -> Any:
            y = func.jvp(lambda z: z * c, (np.array(X),), (t,))[1]
            c[0] = 7.0
            return mg.sum(y)

        c = mg.asarray([1.0, 1.0, 1.0])
        with pytest.raises(GradientError, match=MODIFIED):
            func.grad(f)(np.array(X))

    def test_a_tensor_that_is_an_argument_of_vjp(self, backend):
        x = mg.asarray(X, backend=backend)
        for transform in (func.vjp, func.linearize):
            _, pullback = transform(lambda x: x * x, x)
            x[0] = 9.0
            with pytest.raises(GradientError, match=MODIFIED):
                pullback(mg.ones_like(x))

    @pytest.mark.parametrize("make", [mg.ones_like, lambda x: x * mg.ones(3)], ids=["raw", "layer"])
    @pytest.mark.parametrize(
        "body",
        [lambda z, c: z * c, lambda z, c: z * mg.ones(3) * c, lambda z, c: z + mg.sin(c)],
        ids=["with the argument", "with a constant", "alone"],
    )
    def test_an_array_that_a_checkpoint_captures(self, make, body):
        """The function would compute something else in its second run."""

        def f(x: Any) -> Any:
            c = make(x)
            y = func.checkpoint(lambda z: mg.sin(body(z, c)))(x)
            c[0] = 7.0
            return mg.sum(y)

        with pytest.raises(GradientError, match="is used in a checkpoint"):
            func.grad(f)(np.array(X))


class TestOutputs:
    """The graph of vjp and linearize remains, so their outputs have memory of their own."""

    @pytest.mark.parametrize("transform", [func.vjp, func.linearize], ids=["vjp", "linearize"])
    @pytest.mark.parametrize(
        "f",
        [mg.exp, lambda x: mg.exp(x)[1:], lambda x: (mg.sqrt(x), mg.exp(x))],
        ids=["exp", "view", "two"],
    )
    @pytest.mark.parametrize("wrapped", [False, True], ids=["raw", "Tensor"])
    def test_writes_to_them(self, transform, f, wrapped):
        x: Any = mg.asarray(np.array(X)) if wrapped else np.array(X)
        out, mapped = transform(f, x)
        leaves = mg.tree.leaves(out)
        copies = tuple(leaf * 1.0 for leaf in leaves)
        cotangents = (
            x if transform is func.linearize else copies if type(out) is tuple else copies[0]
        )
        expected = mapped(cotangents)
        for leaf in leaves:
            leaf *= 3.0
        np.testing.assert_allclose(values(x), X)
        for a, b in zip(mg.tree.leaves(mapped(cotangents)), mg.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(values(a), values(b))

    def test_aux(self):
        held = np.ones(3)

        def f(x: Any) -> Any:
            y = mg.exp(x)
            return y * 1.0, (y, held)

        _, pullback, (y, same) = func.vjp(f, np.array(X), has_aux=True)
        y *= 2.0
        np.testing.assert_allclose(pullback(np.ones(3))[0], np.exp(X))
        assert same is held
