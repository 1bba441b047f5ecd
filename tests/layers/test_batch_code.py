"""Runners of batches: declarations that are replaced, what rules are told, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.errors import BatchingError, LeakError, MixedBackendsError
from multigrad.registry import elementwise, linear


def batched(f: Callable[[Any], Any], x: Any = None) -> Any:
    return func.vmap(f)(np.ones((2, 3)) if x is None else x)


def test_what_is_declared_anew(operations):
    elementwise("t.f(x, /)", forward=lambda xp, x: x + 1, x=1)
    f = mg.t.f
    np.testing.assert_array_equal(batched(f), np.full((2, 3), 2.0))
    elementwise("t.f(x, /)", forward=lambda xp, x: x + 2, x=1, override=True)
    np.testing.assert_array_equal(batched(f), np.full((2, 3), 3.0))
    linear(
        "t.f(x, /)",
        forward=lambda xp, x: x + 3,
        x=lambda xp, g: g,
        batching=lambda xp, x: x + 4,
        override=True,
    )
    np.testing.assert_array_equal(batched(f), np.full((2, 3), 5.0))


def test_a_replacement_while_it_is_running(operations):
    elementwise("t.f(x, /)", forward=lambda xp, x: x + 1, x=1)
    f = mg.t.f

    def run(x: Any) -> Any:
        x = f(x)
        elementwise("t.f(x, /)", forward=lambda xp, x: x + 10, x=1, override=True)
        return f(x)

    np.testing.assert_array_equal(batched(run), np.full((2, 3), 12.0))


def declare(parameter: str, batching: Any) -> None:
    forward = lambda xp, x, y, *_: x + y
    rules = dict.fromkeys("xy", lambda xp, g: g)
    linear(f"t.f(x, y, /, {parameter})", forward=forward, **rules, batching=batching)


@pytest.mark.runs_once
@pytest.mark.parametrize("batching", ["axis", "leading", "elementwise", "rule"])
def test_what_a_rule_is_told(operations, batching):
    told: list[Any] = []

    def rule(xp: Any, x: Any, y: Any, sizes: Any, size: Any, batched: Any) -> Any:
        told.append((x.shape, getattr(y, "shape", y), size, batched))
        return x + y

    if batching == "rule":
        declare("sizes", rule)
        both = {"x": True, "sizes": (False, False)}
        for y, shape, own in ((np.ones(3), (1, 3), False), (2.0, 2.0, False), (None, (2, 3), True)):
            told.clear()
            for _ in range(3):
                batched(lambda x, y=y: mg.t.f(x, x if y is None else y, (1, 2)))
            assert told == [((2, 3), shape, 2, both | {"y": own})] * 3
        return
    declare("axis=None", batching)
    for _ in range(3):  # two arrays are declared for one: the general path sees to it
        if batching == "elementwise":
            np.testing.assert_array_equal(batched(lambda x: mg.t.f(x, x)), np.full((2, 3), 2.0))
        else:
            assert batched(lambda x: mg.t.f(x, 1.0), np.ones((2, 3, 3))).shape == (2, 3, 3)


def test_an_axis_that_is_not_declared(operations):
    linear("t.f(x, /)", forward=lambda xp, x: x, x=lambda xp, g: g, batching="axis")
    for _ in range(3):
        with pytest.raises(TypeError, match="KeyError: .axes."):
            batched(mg.t.f)


def test_what_is_wrong():
    other = mg.asarray([1.0, 2.0, 3.0], backend="strict")
    leaked: list[Any] = []
    for _ in range(3):
        batched(lambda x: leaked.append(x) or x)
        for f, error in (
            (lambda x: x + other, MixedBackendsError),
            (lambda x: mg.multiply(other.array, x), MixedBackendsError),
            (lambda x: mg.sin(leaked[0]), LeakError),
            (lambda x: x + leaked[-1], LeakError),
            (lambda x: leaked[0][0], LeakError),
            (lambda x: mg.sum(x, axis=x[0]), BatchingError),
            (lambda x: mg.roll(x, (x[0],)), BatchingError),
            (lambda x: mg.sum(x, axis=1), IndexError),
            (lambda x: mg.tril(x), ValueError),
            (lambda x: x[x > 0], BatchingError),
            (lambda x: x + "a", TypeError),
            (lambda x: mg.stack([x, "a"]), TypeError),
        ):
            with pytest.raises(error):
                batched(f)
