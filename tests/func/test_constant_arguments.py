"""Arguments that are not transformed: constants of the library of those that are, over the caller's
memory.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, NamedTuple

import array_api_compat
import numpy as np
import pytest
from conftest import values
from forward_programs import raw

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError


def squares(w: Any, X: Any, y: Any) -> Any:
    """A loss as SciPy writes it: with one namespace for all of its arrays."""
    xp = array_api_compat.array_namespace(w, X, y)
    return xp.sum((X @ w - y) ** 2)


def data(xp: Any) -> tuple[Any, Any, Any]:
    return (
        raw(xp, [1.0, 2.0]),
        raw(xp, [[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]]),
        raw(xp, [1.0, 2.0, 3.0]),
    )


class TestOneNamespace:
    """array_namespace() of all arguments, in every transformation that leaves some of them as they
    are.
    """

    def test_grad(self, xp):
        w, X, y = data(xp)
        expected = 2 * values(X).T @ (values(X) @ values(w) - values(y))
        np.testing.assert_allclose(values(func.grad(squares)(w, X, y)), expected)
        np.testing.assert_allclose(values(func.grad(squares)(w, X=X, y=y)), expected)
        value, g = func.value_and_grad(squares)(w, X, y)
        np.testing.assert_allclose(values(g), expected)
        np.testing.assert_allclose(values(value), np.sum((values(X) @ values(w) - values(y)) ** 2))

    @pytest.mark.parametrize(
        "transform", [func.jacrev, func.jacfwd, func.jacobian], ids=lambda f: f.__name__
    )
    def test_jacobians(self, xp, transform):
        def residuals(w, X, y):
            array_api_compat.array_namespace(w, X, y)
            return X @ w - y

        w, X, y = data(xp)
        np.testing.assert_allclose(values(transform(residuals)(w, X, y)), values(X))
        np.testing.assert_allclose(values(transform(residuals)(w, X, y=y)), values(X))
        np.testing.assert_allclose(values(transform(residuals, argnums=2)(w, X, y)), -np.eye(3))

    def test_vmap(self, xp):
        _, X, y = data(xp)
        ws = raw(xp, [[1.0, 2.0], [0.0, 1.0]])
        expected = [np.sum((values(X) @ v - values(y)) ** 2) for v in values(ws)]
        np.testing.assert_allclose(
            values(func.vmap(squares, in_axes=(0, None, None))(ws, X, y)), expected
        )
        np.testing.assert_allclose(values(func.vmap(squares)(ws, X=X, y=y)), expected)

    def test_rules_of_ones_own(self, xp):
        """The functions, `fwd` and the jvp of a rule get captured arrays that are their arguments
        as constants, too.
        """
        w, X, y = data(xp)

        def fwd(w, X, y):
            return squares(w, X, y), (w, X, y)

        def bwd(residuals, g):
            w, X, y = residuals
            array_api_compat.array_namespace(w, X, y)
            return 2.0 * g * (X.T @ (X @ w - y)), None, None

        reverse = func.custom_vjp(squares)
        reverse.defvjp(fwd, bwd)
        expected = 2 * values(X).T @ (values(X) @ values(w) - values(y))
        np.testing.assert_allclose(values(func.grad(lambda w: reverse(w, X, y))(w)), expected)

        forward = func.custom_jvp(squares)

        @forward.defjvp
        def rule(primals, tangents):
            w, X, y = primals
            array_api_compat.array_namespace(*primals)
            return forward(*primals), mg.sum(2.0 * (X @ w - y) * (X @ tangents[0]))

        np.testing.assert_allclose(values(func.grad(lambda w: forward(w, X, y))(w)), expected)

    def test_checkpoint_passes_its_arguments_on(self, xp):
        w, X, y = data(xp)
        expected = 2 * values(X).T @ (values(X) @ values(w) - values(y))
        np.testing.assert_allclose(values(func.grad(func.checkpoint(squares))(w, X, y)), expected)


class Point(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Batch:
    x: Any
    label: str = dataclasses.field(metadata={"static": True})


class Bunch(dict):
    """A dictionary that cannot be made of a dictionary."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(kwargs)


class TestWhatArrives:
    def test_structures(self, xp):
        w, X, _ = data(xp)
        seen = []

        def f(w, given, **more):
            seen.append((given, more))
            return mg.sum(w)

        given = {"p": Point(X, 1.0), "l": [X, (X, None, "text")], "b": Batch(X, "name")}
        func.grad(f)(w, given, flag=True, extra=[X])
        arrived, more = seen[0]
        arrays = [
            arrived["p"].a,
            arrived["l"][0],
            arrived["l"][1][0],
            arrived["b"].x,
            more["extra"][0],
        ]
        assert all(type(x) is mg.Tensor and x.array is X for x in arrays)
        assert len(set(map(id, arrays))) == 1  # one Tensor for one array, so one version counter
        assert (
            arrived["p"].b == 1.0
            and arrived["l"][1][1:] == (None, "text")
            and arrived["b"].label == "name"
            and more["flag"] is True
        )
        assert type(arrived["p"]) is Point and type(arrived["b"]) is Batch

    def test_what_is_none_of_those_arrives_unchanged(self):
        class Mine(np.ndarray):
            pass

        w = np.ones(2)
        masked, matrix = (
            np.ma.masked_array([1.0, 2.0], [True, False]),
            np.ones((1, 2)).view(np.matrix),
        )
        structured = np.zeros(2, dtype=[("a", float), ("b", int)])
        others = [
            np.ones(2).view(Mine),
            np.float64(1.0),
            None,
            np.array(["a", None], dtype=object),
            structured,
            masked,
            matrix,
            SimpleNamespace(x=w),
            Bunch(x=w),
            (1, 2),
        ]

        def f(w, *given, k):
            assert all(a is b for a, b in zip(given, others, strict=True)) and k is others[0]
            return mg.sum(w)

        func.grad(f)(w, *others, k=others[0])
        func.jacfwd(f)(w, *others, k=others[0])
        func.vmap(lambda w, k: w if k is others[0] else None)(w, k=others[0])

    def test_arrays_of_another_library(self):
        strict = pytest.importorskip("array_api_strict")
        other = strict.ones(2)
        func.grad(lambda w, x: mg.sum(w) if x is other else None)(np.ones(2), other)

    def test_tensors_arrive_themselves(self, xp):
        w, X, _ = data(xp)
        t = mg.asarray(X, requires_grad=True)
        value = func.grad(lambda w, x: mg.sum(w) * mg.sum(x) if x is t else None)(w, t)
        value.sum().backward()
        np.testing.assert_allclose(values(t.grad), np.full((3, 2), 2.0))

    def test_integers_and_masks(self, xp):
        w = raw(xp, [1.0, 2.0, 3.0])
        index, mask = (
            xp.asarray(np.array([2, 0])).array,
            xp.asarray(np.array([True, False, True])).array,
        )
        np.testing.assert_allclose(
            values(func.grad(lambda w, i: mg.sum(xp.take(w, i) ** 2))(w, index)), [2, 0, 6]
        )
        np.testing.assert_allclose(
            values(func.grad(lambda w, m: mg.sum(mg.where(m, w, 0.0) ** 2))(w, mask)), [2, 0, 6]
        )
        np.testing.assert_allclose(
            values(func.vmap(lambda w, i: i[w], in_axes=(0, None))(index, w)), [3, 1]
        )

    def test_under_a_transformation_of_jax(self):
        jax = pytest.importorskip("jax")
        xp = mg.namespace("jax")
        w, X, y = data(xp)
        expected = 2 * values(X).T @ (values(X) @ values(w) - values(y))
        np.testing.assert_allclose(jax.jit(func.grad(squares))(w, X, y), expected)
        key = jax.random.key(0)
        np.testing.assert_allclose(
            func.grad(lambda w, k: mg.sum(w * mg.asarray(jax.random.normal(k, (2,)))))(w, key),
            jax.random.normal(key, (2,)),
        )


class TestOverTheSameMemory:
    @pytest.mark.parametrize("transform", ["grad", "jacrev", "jacfwd", "vmap"])
    def test_writes_reach_the_callers_array(self, transform):
        X = np.zeros(3)

        def f(w, X):
            X[0] = 5.0
            X += 1.0
            return mg.sum(w * X)

        if transform == "vmap":
            func.vmap(f, in_axes=(0, None))(np.ones((2, 3)), X)
        else:
            getattr(func, transform)(f)(np.ones(3), X)
        assert X[1] >= 1.0 and X[0] == 5.0 + 1.0

    def test_a_transformed_value_cannot_be_written_there(self, xp):
        w, _, y = data(xp)

        def f(w, y):
            y[0] = w[0]
            return mg.sum(y)

        with pytest.raises(
            GradientError,
            match="a value of a running transformation cannot be written into an array from "
            "outside of it",
        ):
            func.grad(f)(w, y)

    def test_a_write_that_spoils_what_was_saved_is_noticed(self):
        def f(w, X, same):
            loss = mg.sum(w * X)
            same[0] = 5.0
            return loss

        X = np.zeros(2)
        with pytest.raises(GradientError, match="modified by an inplace operation"):
            func.grad(f)(np.ones(2), X, X)

    def test_results_are_raw(self, xp):
        w, X, y = data(xp)
        _, aux = func.grad(lambda w, X, y: (mg.sum(w), (X, {"y": y}, X * 2.0)), has_aux=True)(
            w, X, y
        )
        assert aux[0] is X and aux[1]["y"] is y and type(aux[2]) is type(X)
        _, aux = func.jacrev(lambda w, X: (w, X), has_aux=True)(w, X)
        assert aux is X
        _, aux = func.jacfwd(lambda w, X: (w, X), has_aux=True)(w, X)
        assert aux is X
        assert func.vmap(lambda w, X: X, in_axes=(0, None), out_axes=None)(w, X) is X
        value, _ = func.value_and_grad(lambda w, X: mg.sum(X))(w, X)
        assert not isinstance(value, mg.Tensor)


class TestAttributes:
    def test_of_the_raw_array_only(self):
        message = (
            r"'Tensor' object has no attribute 'tobytes', which only the numpy array in "
            r"it has. Use x.array.tobytes, through which"
        )
        with pytest.raises(AttributeError, match=message):
            func.grad(lambda w, X: mg.sum(w * X.tobytes()))(np.ones(2), np.ones(2))
        with pytest.raises(
            AttributeError,
            match=r"'Dual' object has no attribute 'tobytes', which only the numpy array in it has",
        ):
            func.jvp(lambda w: w.tobytes(), (np.ones(2),), (np.ones(2),))
        assert func.grad(lambda w, X: mg.sum(w * mg.asarray(X.array.ravel())))(
            np.ones(2), np.ones(2)
        ).shape == (2,)
