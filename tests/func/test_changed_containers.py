"""Functions that change the containers they are given."""

from __future__ import annotations

import numpy as np
import pytest
from forward_programs import raw

from multigrad import func


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

    @pytest.mark.parametrize(("name", "expected"), [("swap", (0, 20)), ("add", (1800, 180))])
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

    def test_what_becomes_of_them_later(self, xp):
        d = self.arguments(xp)
        _, pullback = func.vjp(lambda d: d["b"] * d["a"], d)
        _, pushforward = func.linearize(lambda d: d["b"] * d["a"], d)
        d.clear()
        g = pullback(raw(xp, [1.0]))[0]
        assert np.asarray(g["a"]) == 10 and np.asarray(g["b"]) == 1
        assert np.asarray(pushforward({"a": raw(xp, [1.0]), "b": raw(xp, [0.0])})) == 10
