"""Loops whose later steps depend on more arrays than the first one.

A body may branch on values that are known, such as a counter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.errors import GradientError

Function = Callable[..., Any]
H, B = np.array([0.3, 0.7]), np.asarray(0.9)
HS, BS = np.array([[0.3, 0.7], [0.1, 1.2]]), np.array([0.9, 0.4])


def body(c: Any, b: Any) -> Any:
    return (c[0] * 1.1 if c[1] < 2 else c[0] * b, c[1] + 1)


def scanned(checkpoint: Any) -> Function:
    def loss(h: Any, b: Any) -> Any:
        (h, _), ys = func.scan(
            lambda c, _: (body(c, b), c[0] if c[1] < 2 else c[0] * b),
            (h, np.asarray(0)),
            length=4,
            checkpoint=checkpoint,
        )
        return mg.sum(mg.sin(h)) + mg.sum(ys**2)

    return loss


def unrolled(h: Any, b: Any) -> Any:
    c, ys = (h, np.asarray(0)), 0.0
    for _ in range(4):
        ys = ys + mg.sum((c[0] if c[1] < 2 else c[0] * b) ** 2)
        c = body(c, b)
    return mg.sum(mg.sin(c[0])) + ys


WRAPPED: dict[str, Function] = {
    "jvp": lambda f: func.jvp(lambda b: f(H, b), B, B),
    "jvp(grad)": lambda f: func.jvp(lambda b: func.grad(f, (0, 1))(H, b), B, B),
    "vmap of h": lambda f: func.vmap(f, in_axes=(0, None))(HS, B),
    "vmap of b": lambda f: func.vmap(f, in_axes=(None, 0))(H, BS),
    "vmap(grad) of h": lambda f: func.vmap(func.grad(f, (0, 1)), in_axes=(0, None))(HS, B),
    "vmap(grad) of b": lambda f: func.vmap(func.grad(f, (0, 1)), in_axes=(None, 0))(H, BS),
    "grad(vmap) of b": lambda f: func.grad(
        lambda h, b: mg.sum(func.vmap(f, in_axes=(None, 0))(h, b)), (0, 1)
    )(H, BS),
    "hessian of h": lambda f: func.hessian(f, 0)(H, B),
    "hessian of b": lambda f: func.hessian(f, 1)(H, B),
    "grad(grad)": lambda f: func.grad(func.grad(f, 1), 1)(H, B),
}


@pytest.mark.parametrize("checkpoint", ["step", 2])
@pytest.mark.parametrize("wrapped", WRAPPED)
def test_a_later_step_depends_on_another_array(wrapped: str, checkpoint: Any) -> None:
    found, right = (func.tree.leaves(WRAPPED[wrapped](f)) for f in (scanned(checkpoint), unrolled))
    for x, y in zip(found, right, strict=True):
        assert np.allclose(x, y)


@pytest.mark.parametrize("wrapped", ["jvp", "vmap of h", "vmap of b"])
def test_a_later_step_of_a_while_loop_depends_on_another_array(wrapped: str) -> None:
    def looped(h: Any, b: Any) -> Any:
        return func.while_loop(lambda c: c[1] < 4, lambda c: body(c, b), (h, np.asarray(0)))[0]

    def plain(h: Any, b: Any) -> Any:
        c = (h, np.asarray(0))
        for _ in range(4):
            c = body(c, b)
        return c[0]

    found, right = (func.tree.leaves(WRAPPED[wrapped](f)) for f in (looped, plain))
    for x, y in zip(found, right, strict=True):
        assert np.allclose(x, y)


def test_a_condition_that_depends_on_an_example_at_a_later_call_alone() -> None:
    calls: list[int] = []

    def condition(c: Any) -> Any:
        calls.append(1)
        return c < 9.0 if len(calls) % 3 == 0 else True

    with pytest.raises(GradientError, match="at a later step than at the first one"):
        func.vmap(lambda c: func.while_loop(condition, lambda c: c * 2.0, c))(BS)
