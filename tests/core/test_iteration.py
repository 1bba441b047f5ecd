"""Iterating over the first axis: lazily, on every layer, and what writing to an element means."""

from __future__ import annotations

from time import thread_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from leaves import check, leaf

import multigrad as mg
from multigrad import func
from multigrad.core.array_protocols import CHUNK
from multigrad.errors import GradientError

X = np.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def by_parts(x: Any) -> Any:
    """3 a^2 + a b + b^3 of the rows a, b, in place."""
    xp = x.__array_namespace__()
    y = x * 1.0
    a, b = y
    first = (a * 1.0) * (b * 1.0)
    squares = (a * 1.0) ** 2
    a *= 0.0
    for row in y:
        row += squares  # a^2, b + a^2
    b -= y[0, ...]
    return xp.sum(3.0 * y[0, ...] + first + b**3)


def gradient(x: Any) -> Any:
    return np.stack([6 * x[0] + x[1], x[0] + 3 * x[1] ** 2])


class TestElements:
    def test_values_shapes_and_gradients(self, xp: Any) -> None:
        x = leaf(xp, X)
        rows = list(x)
        assert len(rows) == 2 and all(
            isinstance(row, mg.Tensor) and row.shape == (3,) and row.requires_grad for row in rows
        )
        check(rows[1], X[1])
        weights = np.arange(6.0).reshape(2, 3)
        xp.sum(sum(row * xp.asarray(w) for row, w in zip(x, weights, strict=True))).backward()
        check(x.grad, weights)
        assert [float(s) for s in xp.asarray(X[0].copy())] == [1, 2, 3] and list(
            xp.zeros((0, 2))
        ) == []
        assert [tuple(row.shape) for row in xp.zeros((2, 0))] == [(0,), (0,)]
        (alone,) = xp.asarray(X[:1].copy())
        check(alone, X[0])

    def test_more_than_one_chunk(self, xp: Any) -> None:
        n = 2 * CHUNK + 3
        x = leaf(xp, np.arange(float(n)))
        if "jax" in xp.__name__:
            x = leaf(xp, np.arange(float(CHUNK + 1)))
        total = 0.0
        for i, t in enumerate(x):
            total = total + t * t * float(i)
        total.backward()
        i = np.arange(x.shape[0])
        check(x.grad, 2.0 * i * i)

    def test_zero_dimensions_raise_at_once(self, xp: Any) -> None:
        with pytest.raises(TypeError, match="iteration over a 0-d Tensor"):
            iter(xp.asarray(np.asarray(1.0)))
        assert not np.iterable(xp.asarray(np.asarray(1.0)))

        def f(x: Any) -> Any:
            with pytest.raises(TypeError, match="iteration over a 0-d Tensor"):
                iter(x)
            return x

        func.jvp(f, (xp.asarray(np.asarray(1.0)).array,), (xp.asarray(np.asarray(1.0)).array,))
        func.vmap(f)(xp.asarray(X[0].copy()).array)

    def test_a_length_that_is_not_known(self) -> None:
        x = mg.zeros((2, 3))
        for n in (None, float("nan")):  # as the standard says, and as Dask has it
            x._array = SimpleNamespace(shape=(n, 3))
            for f in (iter, len):
                with pytest.raises(
                    TypeError, match="len\\(\\) and iteration need to know the first dimension"
                ):
                    f(x)


class TestLaziness:
    def test_no_element_is_made_before_it_is_asked_for(self) -> None:
        x = leaf(mg, np.zeros(200_000))
        start = thread_time()
        for _ in range(100):
            assert np.iterable(x)
        next(iter(x))
        assert thread_time() - start < 5.0  # all elements of it, 101 times, took two minutes

    def test_later_elements_have_later_values(self, xp: Any) -> None:
        x = xp.asarray(np.zeros(CHUNK + 2))
        found = 0.0
        for i, t in enumerate(x):
            if not i:
                x += 1.0
            if i in (1, CHUNK + 1):
                found += float(t)
        assert found == 2

    def test_elements_share_the_nodes_of_their_chunk(self) -> None:
        n = 3 * CHUNK + 1
        seen, todo = set(), [mg.sum(sum(row * 2.0 for row in leaf(mg, np.zeros((n, 2))))).grad_fn]
        while todo:
            node = todo.pop()
            if node is not None and node not in seen:
                seen.add(node)
                todo += [parent for parent, _ in node.next_functions]
        names = [node.name() for node in seen]
        # each makes a gradient of the size of the whole
        assert names.count("GetitemBackward") == names.count("UnstackBackward") == 4


class TestWriting:
    def test_an_element_is_written_as_an_index_is(self, xp: Any) -> None:
        x = leaf(xp, X)
        y = x * 2.0
        a, _ = y
        b = y[1, ...]
        for part in (a, b):
            part += 1.0
        check(y, 2 * X + 1)
        assert y._version == a._version == 2
        xp.sum(y * y).backward()
        check(x.grad, 8 * X + 4)

    def test_outputs_of_unstack_stay_as_they_are(self, xp: Any) -> None:
        y = leaf(xp, X) * 2.0
        with pytest.raises(
            GradientError, match="This view is the output of a function that returns multiple views"
        ):
            xp.unstack(y)[0].__iadd__(1.0)

    def test_elements_of_a_leaf(self, xp: Any) -> None:
        x = leaf(xp, X)
        a, _ = x
        with pytest.raises(GradientError, match="a view of a leaf Variable that requires grad"):
            a += 1.0
        with mg.no_grad():
            for row in x:
                row *= 2.0
        check(x, 2 * X)
        with mg.no_grad():
            y = x * 1.0
        with mg.no_grad():
            (a, _) = y
        y.requires_grad_()
        z = y * 1.0
        with mg.no_grad():
            a, _ = z
        with pytest.raises(GradientError, match="A view was created in no_grad mode"):
            a += 1.0


class TestLayers:
    def test_transformations(self, xp: Any) -> None:
        x, v = xp.asarray(X.copy()).array, xp.asarray(np.cos(X)).array
        check(func.grad(by_parts)(x), gradient(X))
        check(func.jvp(by_parts, (x,), (v,))[1], np.sum(gradient(X) * np.cos(X)))
        both = xp.asarray(np.stack([X, 2 * X])).array
        check(func.vmap(func.grad(by_parts))(both), np.stack([gradient(X), gradient(2 * X)]))
        check(
            func.grad(lambda both: xp.sum(func.vmap(by_parts)(both)))(both),
            np.stack([gradient(X), gradient(2 * X)]),
        )
        second = np.stack(
            [np.stack([6 + 0 * X[0], 1 + 0 * X[0]]), np.stack([1 + 0 * X[0], 6 * X[1]])]
        )
        check(func.jvp(func.grad(by_parts), (x,), (v,))[1], np.sum(second * np.cos(X), axis=1))

    def test_under_a_trace(self) -> None:
        jax = pytest.importorskip("jax")
        check(jax.jit(func.grad(by_parts))(jax.numpy.asarray(X)), gradient(X))
