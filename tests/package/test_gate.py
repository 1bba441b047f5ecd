"""The gate of recording: one context value for grad modes and observers.

Who is not observed pays nothing.
"""

from __future__ import annotations

import contextvars
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func, observe
from multigrad.autograd.graph import saved_tensors_hooks
from multigrad.dispatch import general as dispatch
from multigrad.memory import saved


@pytest.fixture
def x():
    return mg.asarray(np.arange(4.0), requires_grad=True)


@pytest.fixture
def general(monkeypatch):
    """How many nodes were recorded outside of the hot path."""
    calls: list[str] = []
    record = dispatch.record
    monkeypatch.setattr(
        dispatch, "record", lambda op, *args: (calls.append(op.name), record(op, *args))[1]
    )
    return calls


def program(t: Any) -> Any:
    return mg.sum(mg.sin(t * t) + t * 2.0)


def identity() -> saved_tensors_hooks:
    return saved_tensors_hooks(lambda t: t, lambda t: t)


def test_the_default_is_true_and_comes_back(x):
    assert observe.gate.get() is True
    with mg.no_grad(), identity(), mg.enable_grad():
        program(x)
    func.grad(lambda t: program(func.checkpoint(mg.sin)(t)))(np.ones(3))
    with identity(), mg.no_grad():
        pass
    assert observe.gate.get() is True
    with identity():
        assert observe.gate.get() is not True
        with mg.no_grad():
            pass
    assert observe.gate.get() is True


@pytest.mark.runs_once
def test_hooks_and_checkpoints_take_the_hot_path(x, general):
    program(x).backward()
    expected, x.grad = x.grad.array, None
    general.clear()
    with identity():
        program(x).backward()
    assert general == []
    np.testing.assert_array_equal(x.grad.array, expected)
    x.grad = None
    func.checkpoint(program)(x).backward()
    assert general == []
    np.testing.assert_array_equal(x.grad.array, expected)


@pytest.mark.parametrize("order", ["mode first", "hooks first"])
@pytest.mark.parametrize("on", [True, False])
def test_any_order_of_leaving(x, order, on):
    """What is left in the order in which it was entered: each takes back its own."""
    packed: list[int] = []
    hooks, mode = (
        saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t),
        (mg.enable_grad if on else mg.no_grad)(),
    )
    first, second = (mode, hooks) if order == "mode first" else (hooks, mode)
    first.__enter__()
    second.__enter__()
    assert mg.is_grad_enabled() is on and saved.any_in_force()
    first.__exit__(None, None, None)
    y = mg.sin(x)
    if order == "mode first":
        assert y.requires_grad and packed == [1]
    else:
        assert y.requires_grad is on and packed == [] and not saved.any_in_force()
    second.__exit__(None, None, None)
    assert observe.gate.get() is True


def test_hooks_that_a_transformation_left_entered(x):
    """They end with it; leaving them afterwards takes away nothing of what is further out."""
    inner = identity()

    def f(t: Any) -> Any:
        inner.__enter__()
        return mg.sum(t * t)

    with identity():
        func.grad(f)(np.ones(2))
        inner.__exit__(None, None, None)
        assert saved.any_in_force()
    assert observe.gate.get() is True


def test_a_mode_that_is_left_in_another_context(x):
    """An asynchronous generator may be closed elsewhere: only the grad mode is restored there."""
    mode, hooks = mg.no_grad(), identity()

    def elsewhere() -> None:
        with hooks:
            mode.__exit__(None, None, None)
            assert mg.is_grad_enabled() and saved.any_in_force()

    try:
        mode.__enter__()
        contextvars.Context().run(elsewhere)
    finally:
        observe.gate.set(True)


def test_a_grad_mode_that_a_checkpointed_function_sets_for_good(x):
    def f(t: Any) -> Any:
        y = mg.sin(t)
        mg.set_grad_enabled(False)
        return y

    try:
        func.checkpoint(f)(x)
        assert not mg.is_grad_enabled() and not saved.any_in_force()
    finally:
        mg.set_grad_enabled(True)
    assert observe.gate.get() is True
