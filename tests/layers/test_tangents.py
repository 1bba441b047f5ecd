"""Runners of Duals: on raw arrays nothing becomes a layer; declarations that are replaced, rules of
others, and what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import func, registry
from multigrad.autograd import forward_ad
from multigrad.errors import MissingRuleError, MixedBackendsError

pytestmark = pytest.mark.usefixtures("no_runners")
A = np.asarray([0.5, -1.5])


def test_of_raw_arrays_nothing_becomes_layered() -> None:
    """A constant Tensor that meets a Dual is taken bare: with it, all that follows would be
    computed on layers.
    """

    constant = mg.asarray(A)

    def f(x: Any) -> Any:
        y = x * constant + mg.stack([x, constant[::-1]])[0]
        assert not y._elem.layered
        return y

    for _ in range(3):
        func.jvp(f, (A,), (A,))


def test_what_is_wrong_raises_as_ever() -> None:
    strict = mg.namespace("strict")
    other = strict.asarray([1.0, 2.0])
    left: list[Any] = []
    for _ in range(3):
        for f in (
            lambda x: x * other,
            lambda x: x * other.array,
            lambda x: mg.stack([x, other]),
            lambda x: x[other > 0],
        ):
            with pytest.raises((MixedBackendsError, TypeError, IndexError)):
                func.jvp(f, (A,), (A,))
        with pytest.raises(TypeError):
            func.jvp(lambda x: mg.namespace("numpy").sin(None) + x, (A,), (A,))
        func.jvp(lambda x: left.append(x) or x * 1.0, (A,), (A,))
        for x in left:
            with pytest.raises(mg.errors.LeakError):
                x * 2.0


def test_terms_are_added_in_the_order_of_their_arguments() -> None:
    w, u = mg.asarray(np.eye(2), requires_grad=True), np.ones((2, 2))
    for _ in range(3):
        tangent = func.jvp(mg.matmul, (w, A), (u, A))[1]
        assert [node is None for node, _ in tangent.grad_fn.next_functions] == [True, False]


def test_a_level_that_was_left() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(mg.asarray(A), mg.asarray(A))
        y = x * x
    assert values(y * 2.0).tolist() == (2 * A * A).tolist() and values(x[0]) == 0.5


def test_an_operation_that_is_declared_anew(operations: dict[str, registry.Op]) -> None:
    registry.elementwise("twice(x, /)", x=2.0, forward=lambda xp, x: x * 2.0, doc="Twice.")
    xp = mg.namespace("numpy")
    held = xp.twice

    def tangents() -> list[Any]:
        nested = func.jvp(lambda u: func.jvp(held, (u,), (u,))[1], (A,), (A,))[1]
        return [values(func.jvp(held, (A,), (np.ones(2),))[1]).tolist(), values(nested).tolist()]

    assert tangents() == tangents() == [[2.0, 2.0], (2 * A).tolist()]
    registry.elementwise(
        "twice(x, /)", x=3.0, forward=lambda xp, x: x * 2.0, doc="Twice.", override=True
    )
    assert tangents() == tangents() == [[3.0, 3.0], (3 * A).tolist()]


def test_rules_of_strangers(operations: dict[str, registry.Op]) -> None:
    """Their tangents are checked, and what they make belongs to no transformation."""
    captured = mg.asarray(np.ones(2))
    made: list[Any] = []

    def making(xp: Any, x: Any) -> Any:
        made.append(mg.asarray(np.ones(2)))
        return captured * 1.0

    registry.elementwise(
        "first_of_theirs(x, /)",
        x=lambda xp, x: np.ones((3, 2)),
        forward=lambda xp, x: xp.sin(x),
        doc="Wrong.",
    )
    registry.elementwise(
        "second_of_theirs(x, /)", x=making, forward=lambda xp, x: xp.sin(x), doc="With a Tensor."
    )
    registry.elementwise(
        "third_of_theirs(x1, x2, /)", x1=1, forward=lambda xp, x1, x2: x1 + x2, doc="One rule."
    )
    registry.linear(
        "fourth_of_theirs(x, y, /)",
        x=lambda xp, g: g,
        forward=lambda xp, x, y: x * y,
        doc="One rule.",
    )
    xp = mg.namespace("numpy")
    for _ in range(3):
        with pytest.raises((ValueError, RuntimeError)):
            func.jvp(xp.first_of_theirs, (A,), (A,))
        tangent = func.jvp(lambda x: xp.second_of_theirs(xp.second_of_theirs(x)), (A,), (A,))[1]
        np.testing.assert_array_equal(values(tangent), A)
        assert all(t._elem.run is None for t in made) and made
        for f, expected in ((xp.third_of_theirs, A), (xp.fourth_of_theirs, A * A)):
            assert (
                values(func.jvp(lambda x, f=f: f(x, A), (A,), (A,))[1]).tolist()
                == expected.tolist()
            )
            with pytest.raises(MissingRuleError):
                func.jvp(lambda x, f=f: f(A, x), (A,), (A,))
            with pytest.raises(MissingRuleError):
                func.jvp(lambda y, f=f: func.jvp(lambda x: f(y, x), (A,), (y,))[1], (A,), (A,))
