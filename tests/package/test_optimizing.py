"""The pass before a kernel: what it leaves out, and what it must not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from recorded_programs import recorded

import multigrad as mg
from multigrad import func
from multigrad.backends.numpy.program import evaluator, uniform
from multigrad.dispatch.general import general
from multigrad.extend import raw_namespace
from multigrad.optimizing import optimized
from multigrad.program import Call, Guard, Program, Write
from multigrad.registry import OPS

X, Y, N, Z = (
    np.linspace(0.1, 0.9, 5),
    np.linspace(0.5, 1.5, 5),
    np.arange(5),
    np.linspace(0.1, 0.9, 5) * (1 + 1j),
)


def names(f: Callable[..., Any] | Program, *args: Any) -> list[str]:
    """The calls that are left of a function, sin at the head of many, which makes a dense value."""
    program = f if isinstance(f, Program) else recorded(f, *args)
    found = optimized(program, evaluator(raw_namespace("numpy"), program), uniform)
    return [step.op.name for step in found.steps if isinstance(step, Call)]


M, T = np.linspace(0.1, 0.9, 12).reshape(3, 4), np.linspace(0.1, 0.9, 24).reshape(2, 3, 4)


SAME: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "times one": (lambda x: mg.exp(mg.sin(x) * 1), ["sin", "exp"]),
    "one times": (lambda x: mg.exp(1.0 * mg.sin(x)), ["sin", "exp"]),
    "times ones": (lambda x: mg.exp(mg.sin(x) * np.ones(5)), ["sin", "exp"]),
    "by one": (lambda x: mg.exp(mg.sin(x) / 1), ["sin", "exp"]),
    "less zero": (lambda x: mg.exp(mg.sin(x) - 0.0), ["sin", "exp"]),
    "plus -0.0": (lambda x: mg.exp(mg.sin(x) + -0.0), ["sin", "exp"]),
    "to the first": (lambda x: mg.exp(mg.sin(x) ** 1), ["sin", "exp"]),
    "itself": (lambda x: mg.exp(+mg.sin(x)), ["sin", "exp"]),
    "the negative of the negative": (lambda x: mg.exp(mg.negative(-mg.sin(x))), ["sin", "exp"]),
    "its own dtype": (lambda x: mg.exp(mg.astype(mg.sin(x), np.float64)), ["sin", "exp"]),
    "its own shape": (
        lambda x: mg.exp(mg.reshape(mg.broadcast_to(mg.sin(x), (5,)), (5,))),
        ["sin", "exp"],
    ),
    "its own order": (lambda x: mg.exp(mg.permute_dims(mg.sin(x), (0,))), ["sin", "exp"]),
    "plus the negative": (lambda x: mg.sin(x) + -mg.cos(x), ["sin", "cos", "subtract"]),
    "the negative plus": (lambda x: -mg.cos(x) + mg.sin(x), ["cos", "sin", "subtract"]),
    "less the negative": (lambda x: mg.sin(x) - -mg.cos(x), ["sin", "cos", "add"]),
    "plus a product with the negative": (
        lambda x: mg.sin(x) + -mg.cos(x) * x,
        ["sin", "cos", "multiply", "subtract"],
    ),
    "less a quotient of the negative": (
        lambda x: mg.sin(x) - -mg.cos(x) / x,
        ["sin", "cos", "divide", "add"],
    ),
    "what is computed twice": (lambda x: mg.sin(x) * mg.sin(x), ["sin", "multiply"]),
    "what nothing needs": (lambda x: (mg.cos(x), mg.sin(x))[1], ["sin"]),
    "constants": (lambda x: x * (np.arange(5.0) * 2 + 1), ["multiply"]),
}

DIFFERENT: dict[str, tuple[Callable[..., Any], Any, list[str]]] = {
    "-0.0 + 0.0 is 0.0": (lambda x: mg.sin(x) + 0.0, X, ["sin", "add"]),
    "-0.0 + 0 is 0.0": (lambda x: mg.sin(x) + 0, X, ["sin", "add"]),
    "-0.0 - -0.0 is 0.0": (lambda x: mg.sin(x) - -0.0, X, ["sin", "subtract"]),
    "(inf + 0j) * 1 has a nan": (lambda x: mg.sin(x) * 1, Z, ["sin", "multiply"]),
    "(inf + 0j) / 1 has a nan": (lambda x: mg.sin(x) / 1, Z, ["sin", "divide"]),
    "an integer by one is a float": (lambda x: (x * 2) / 1, N, ["multiply", "divide"]),
    "an integer times 1.0 is a float": (lambda x: (x * 2) * 1.0, N, ["multiply", "multiply"]),
    "another shape": (lambda x: mg.sin(x)[0] * np.ones(5), X, ["sin", "getitem", "multiply"]),
    "another dtype": (lambda x: mg.astype(mg.sin(x), np.float32), X, ["sin", "astype"]),
    "True is no 1": (lambda x: (x > 2) * True, N, ["greater", "multiply"]),
    "strides of the argument": (lambda x: mg.sum(x * 1), X, ["multiply", "sum"]),
    "a product that is needed besides": (
        lambda x: [y := -mg.sin(x) * mg.cos(x), mg.exp(x) + y][1] * y,
        X,
        ["sin", "negative", "cos", "multiply", "exp", "add", "multiply"],
    ),
    "a product of complex numbers": (
        lambda x: mg.exp(x) + -mg.sin(x) * x,
        Z,
        ["exp", "sin", "negative", "multiply", "add"],
    ),
    "ones that decide the order of the result": (
        lambda x: mg.sum(np.ones((3, 4)) * mg.sin(x), axis=0),
        np.asfortranarray(M),
        ["sin", "multiply", "sum"],
    ),
    "ones of strides that decide it": (
        lambda x: mg.sum(
            np.ones((2, 4, 3)).transpose(1, 0, 2) * mg.sin(mg.permute_dims(x, (2, 0, 1)))
        ),
        T,
        ["permute_dims", "sin", "multiply", "sum"],
    ),
    "ones of three axes": (
        lambda x: mg.sum(np.ones((4, 2, 3)) * mg.sin(mg.permute_dims(x, (2, 0, 1)))),
        T,
        ["permute_dims", "sin", "multiply", "sum"],
    ),
    "two results": (lambda x: (mg.sin(x), mg.sin(x)), X, ["sin", "sin"]),
    "a result and what is equal": (lambda x: [y := mg.sin(x), y * 1], X, ["sin", "multiply"]),
}


@pytest.mark.parametrize("order", "CF")
def test_ones_in_the_order_of_the_result_are_left_out(order: Any) -> None:
    x = np.asarray(M, order=order)
    f = lambda x: mg.sum(np.ones((3, 4), order=order) * mg.sin(x), axis=0)
    assert names(f, x) == ["sin", "sum"]


@pytest.mark.parametrize("name", SAME)
def test_what_changes_no_bit_is_left_out(name: str) -> None:
    f, expected = SAME[name]
    assert names(f, X) == expected


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_changes_a_bit_stays(name: str) -> None:
    f, x, expected = DIFFERENT[name]
    assert names(f, x) == expected


def test_an_integer_plus_zero_is_itself() -> None:
    assert names(lambda x: (x * 2 + 0) - 0, N) == ["multiply"]


def test_the_gradient_of_a_sum_begins_with_no_ones() -> None:
    assert names(func.grad(lambda x: mg.sum(mg.sin(x))), X) == ["cos"]


def test_guards_are_asked_once() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            if mg.sum(x) > 0:
                x = mg.sin(x)
                y = x
            if mg.sum(y) > 0:
                y = mg.cos(y)
        return y

    program = recorded(f, X)
    kept = [step for step in optimized(program).steps if isinstance(step, Guard)]
    assert len(kept) < sum(isinstance(step, Guard) for step in program.steps)
    places = [guard.place for guard in kept]
    assert places == sorted(places)


def test_writes_keep_their_targets() -> None:
    def f(w: Any, x: Any) -> None:
        w -= mg.sin(x) * 1

    found = optimized(recorded(f, X.copy(), Y))
    assert [type(step).__name__ for step in found.steps] == ["Call", "Call", "Write"]
    assert isinstance(found.steps[-1], Write) and found.steps[-1].target == found.inputs[0]


def test_checks_stay() -> None:
    refuse = OPS["refuse"]
    assert names(lambda x: (general(refuse, (mg.cos(x), x < 0, "negative")), mg.sin(x))[1], X) == [
        "cos",
        "less",
        "refuse",
        "sin",
    ]


def test_uniform_arrays() -> None:
    assert uniform(np.ones(3)) == 1.0 and uniform(np.zeros(3)) == 0.0 and uniform(np.arange(1)) == 0
    assert (
        uniform(np.asarray([0.0, -0.0])) is None
        and uniform(np.arange(3)) is None
        and uniform(np.ones(0)) is None
    )
    assert uniform(np.broadcast_to(np.float64(1.0), (2, 3))) == 1.0
    assert uniform(np.ones(3, bool)) is None and uniform(np.asarray(2.0)) == 2.0
