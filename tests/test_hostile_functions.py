"""What else a hostile reader of the transformations found: changed containers, rules beside rules,
copies, and what is no array.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from forward_programs import close, raw

import multigrad as mg
from multigrad import autograd, func
from multigrad.errors import BatchingError


class TestContainersThatTheFunctionChanges:
    """The derivatives are those by the arguments as they were passed, whatever the function does to
    the containers it is given.
    """

    @staticmethod
    def arguments(xp):
        return {"a": raw(xp, [1.0]), "b": raw(xp, [10.0])}

    @staticmethod
    def swap(d):
        d["a"], d["b"] = d["b"], d["a"]
        return (d["a"] ** 2).sum()

    @staticmethod
    def add(d):
        d["c"] = d["a"] * 3
        d["a"] = d["c"] * d["b"]
        return (d["a"] ** 2).sum()

    @staticmethod
    def take(d):
        return (d.pop("b") ** 2).sum() * 1.0

    @pytest.mark.parametrize(
        ("name", "expected"), [("swap", (0, 20)), ("add", (1800, 180)), ("take", (0, 20))]
    )
    def test_first_derivatives(self, xp, name, expected):
        f, one = getattr(self, name), raw(xp, 1.0)
        direction = {"a": raw(xp, [1.0]), "b": raw(xp, [10.0])}
        for g in (
            func.grad(f)(self.arguments(xp)),
            func.jacrev(f)(self.arguments(xp)),
            func.jacfwd(f)(self.arguments(xp)),
            func.vjp(f, self.arguments(xp))[1](one)[0],
            func.jacobian(f)(self.arguments(xp)),
        ):
            assert list(g) == ["a", "b"]
            np.testing.assert_allclose([np.asarray(g["a"])[0], np.asarray(g["b"])[0]], expected)
        slope = expected[0] + 10 * expected[1]
        np.testing.assert_allclose(
            np.asarray(func.linearize(f, self.arguments(xp))[1](direction)), slope
        )
        np.testing.assert_allclose(
            np.asarray(func.jvp(f, (self.arguments(xp),), (direction,))[1]), slope
        )

    def test_second_derivatives(self, xp):
        h = func.hessian(self.add)(self.arguments(xp))  # of 9 a^2 b^2
        np.testing.assert_allclose(
            [[np.asarray(h[i][j])[0, 0] for j in "ab"] for i in "ab"], [[1800, 360], [360, 18]]
        )

    def test_what_becomes_of_them_later(self, xp):
        d = self.arguments(xp)
        _, pullback = func.vjp(lambda d: d["b"] * d["a"], d)
        _, pushforward = func.linearize(lambda d: d["b"] * d["a"], d)
        d.clear()
        g = pullback(raw(xp, [1.0]))[0]
        assert np.asarray(g["a"]) == 10 and np.asarray(g["b"]) == 1
        assert np.asarray(pushforward({"a": raw(xp, [1.0]), "b": raw(xp, [0.0])})) == 10


def test_rules_of_nodes_made_before_a_transformation_began(xp):
    """Constants that they make are none of the transformation that the pass runs in: rows of second
    derivatives of sort and rfft beside a rule of one's own."""

    class Cube(autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(a):
            return a**3, a**2

        @staticmethod
        def setup_context(ctx, inputs, outputs):
            ctx.save_for_backward(inputs[0], outputs[1])

        @staticmethod
        def backward(ctx, g, g2):
            a, square = ctx.saved_tensors
            return 3 * square * g + 2 * a * g2

    @func.custom_vjp
    def cube(a):
        return a**3

    cube.defvjp(lambda a: (a**3, (a**3, a**2)), lambda residuals, g: (3 * residuals[1] * g,))
    x = raw(xp, [0.3, 0.5, 0.7])
    for f in (lambda a: Cube.apply(a)[0], cube):
        for inner in (
            xp.sort,
            lambda a: xp.real(xp.fft.ifft(xp.fft.fft(xp.astype(a, xp.complex128)))),
        ):

            def total(a, f=f, inner=inner):
                return xp.sum(inner(a) * f(a))

            close(func.jacrev(func.grad(total))(x), np.diag([1.08, 3.0, 5.88]))  # of a^4
            close(func.jacrev(func.jacrev(total), chunk_size=1)(x), np.diag([1.08, 3.0, 5.88]))


class TestCopies:
    @pytest.mark.parametrize("way", [copy.copy, lambda a: pickle.loads(pickle.dumps(a))])
    def test_a_copy_by_other_ways_than_operations_is_refused(self, way):
        x = np.array([1.0, 2.0, 3.0])
        with pytest.raises(
            RuntimeError,
            match=r"'grad' differentiates can be neither copied by copy.copy\(\) nor pickled; "
            r"clone",
        ):
            func.grad(lambda a: mg.sum(way(a) * a))(x)
        close(func.grad(lambda a: mg.sum(way(mg.ones(3)) * a))(x), [1, 1, 1])
        close(func.grad(lambda a: mg.sum(a.clone() * a))(x), 2 * x)
        for transform in (lambda f: func.jvp(f, (x,), (x,)), lambda f: func.vmap(f)(x)):
            with pytest.raises(
                RuntimeError,
                match=r"so it can be neither copied by copy.copy\(\) nor pickled; clone",
            ):
                transform(way)


def test_the_array_of_a_batch_is_no_value_of_an_example(xp):
    class Twice(autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return xp.asarray(2 * a.array)

        @staticmethod
        def backward(ctx, g):
            return xp.asarray(2 * g.array)

    x = xp.asarray(np.arange(3.0), requires_grad=True)
    close(autograd.functional.jacobian(Twice.apply, x), 2 * np.eye(3))
    message = (
        "array of an array inside vmap: it is one example, and the stored array is a batch of 3"
    )
    for run in (
        lambda: autograd.functional.jacobian(Twice.apply, x, vectorize=True),
        lambda: func.jacrev(Twice.apply)(raw(xp, [1.0, 2.0, 3.0])),
        lambda: func.vmap(lambda a: a.array * 2)(raw(xp, [1.0, 2.0, 3.0])),
        lambda: autograd.grad(Twice.apply(x), x, raw(xp, np.eye(3)), is_grads_batched=True),
    ):
        with pytest.raises(BatchingError, match=message):
            run()


def test_what_is_no_function():
    x = np.ones(2)
    for name in ("grad", "value_and_grad", "jacrev", "jacfwd", "jacobian", "hessian", "vmap"):
        with pytest.raises(
            TypeError, match=r": the first argument must be a function, not NoneType"
        ):
            getattr(func, name)(None)
    for call in (
        lambda: func.jvp(x, (x,), (x,)),
        lambda: func.vjp(x, x),
        lambda: func.hvp(x, (x,), (x,)),
        lambda: func.linearize(x, x),
    ):
        with pytest.raises(
            TypeError, match=r": the first argument must be a function, not ndarray"
        ):
            call()
