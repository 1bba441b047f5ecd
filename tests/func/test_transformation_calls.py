"""Calls of transformations: what they take and return, what they refuse, and that they leave nothing
behind.
"""

from __future__ import annotations

import contextlib
from contextvars import copy_context

import numpy as np
import pytest
from forward_programs import close, raw
from leaves import check

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError, LeakError


class TestTransformations:
    def test_cotangents_go_by_name(self, xp):
        x = xp.asarray(np.ones(2))
        _, pullback = func.vjp(lambda y: {"a": y, "b": 2 * y}, x)
        zero, one = xp.zeros(2), xp.ones(2)
        check(pullback({"b": one, "a": zero})[0], [2, 2])
        for wrong in ({"b": one}, {"a": one, "c": one}, [one, one]):
            with pytest.raises(ValueError, match="structure|cotangents"):
                pullback(wrong)

    def test_two_backward_passes_inside(self, xp):
        def f(x):
            p = xp.ones(3, requires_grad=True)
            xp.sum(p * p * x).backward()
            xp.sum(p * x).backward()
            return xp.sum(p.grad * p.grad)

        x = np.array([1.0, 2.0, 3.0])
        check(func.grad(f)(xp.asarray(x).array), 18 * x)

    def test_output_that_does_not_depend_on_the_input_must_be_a_scalar(self):
        with pytest.raises(GradientError, match="scalar outputs"):
            func.grad(lambda x: np.ones(3))(np.ones(2))


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


X = np.arange(1.0, 7.0).reshape(2, 3) / 4


class TestNothingIsLeftBehind:
    """A transformation that is over leaves nothing in the context of the thread, which is there as
    long as the thread.
    """

    @staticmethod
    def switched_off(s):
        mg.set_grad_enabled(False)
        return mg.sum(s * s)

    @staticmethod
    def failing(s):
        with mg.no_grad():
            raise KeyError

    @pytest.mark.parametrize("name", ["switched_off", "failing"])
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


@pytest.mark.parametrize(
    "transformed", [func.grad, func.jacrev, func.jacfwd], ids=lambda t: t.__name__
)
def test_a_leaked_batch_is_no_result(xp, transformed):
    """It was taken for a constant, whose gradient is zero."""
    kept = []
    func.vmap(lambda s: (kept.append(s), s)[1])(raw(xp, X[0]))
    with pytest.raises(LeakError, match="vmap"):
        transformed(lambda s: kept[0])(raw(xp, X[0]))
