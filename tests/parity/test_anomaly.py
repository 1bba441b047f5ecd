"""Anomaly mode: what it tells of a pass that fails, on every backend and in PyTorch."""

from __future__ import annotations

import contextvars
import threading
import warnings
from functools import partial

import numpy as np
import pytest

import multigrad as mg

ENTERED = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should "
    "only be enabled for debugging."
)

GOOD_LUCK = (
    "is at version 1; expected version 0 instead. Hint: the backtrace further above shows the "
    "operation that failed to compute its gradient. The variable in question was changed in "
    "there or anywhere later. Good luck!"
)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        # NumPy's, about the nan that the tests make
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
    assert not mg.autograd.anomaly_mode.is_anomaly_enabled()


@pytest.fixture
def mode(side):
    """(enabled, check_nan), as the side says."""
    if side.name == "torch":
        import torch

        return lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    anomaly_mode = side.autograd.anomaly_mode
    return lambda: (anomaly_mode.is_anomaly_enabled(), anomaly_mode.is_anomaly_check_nan_enabled())


def told(caught):
    """The warnings without the one on entering."""
    return [
        str(w.message)
        for w in caught
        if issubclass(w.category, UserWarning) and ENTERED not in str(w.message)
    ]


def zero_by_zero(side):
    x = side.tensor([0.0, 1.0], requires_grad=True)
    return x, side.xp.sum((x * 0) / (x * 0))  # this line is in the traceback


def failing(g):
    raise RuntimeError("Some error in backward")


def test_entering_warns_and_leaving_restores(side, mode):
    assert mode() == (False, True)
    with pytest.warns(UserWarning, match=ENTERED), side.autograd.detect_anomaly(check_nan=False):
        assert mode() == (True, False)
        with side.autograd.set_detect_anomaly(False):
            assert mode() == (False, True)
        assert mode() == (True, False)
    assert mode() == (False, True)
    with pytest.raises(ZeroDivisionError), side.autograd.set_detect_anomaly(True):
        raise ZeroDivisionError
    assert mode() == (False, True)


def test_as_a_switch(side, mode):
    side.autograd.set_detect_anomaly(True, False)
    try:
        assert mode() == (True, False)
    finally:
        side.autograd.set_detect_anomaly(False)
    assert mode() == (False, True)
    with pytest.raises(
        TypeError,
        match=r"set_anomaly_enabled\(\): argument 'enabled' \(position 1\) must be bool, not int",
    ):
        side.autograd.set_detect_anomaly(3)


def test_the_forward_call_of_the_failing_node(side):
    x = side.tensor([1.0], requires_grad=True)
    with pytest.warns(UserWarning) as caught, side.autograd.detect_anomaly():
        y = x / 2  # the forward call
        y.grad_fn.register_prehook(failing)
        with pytest.raises(RuntimeError, match="Some error in backward"):
            side.xp.sum(y).backward()
    (message,) = told(caught)
    assert message.startswith("Error detected in Div")
    assert "Traceback of forward call that caused the error:\n" in message
    assert (
        "y = x / 2  # the forward call" in message
        and "test_the_forward_call_of_the_failing_node" in message
    )
    if side.name != "torch":
        # no frame of ours after it
        assert message.rstrip().endswith("y = x / 2  # the forward call")


def test_a_failing_function(side):
    class MyFunc(side.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise RuntimeError("Some error in backward")

    def run_fn(x):
        return side.xp.sum(MyFunc.apply(x))

    x = side.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="Some error in backward"):
        run_fn(x).backward()
    with (
        pytest.warns(UserWarning) as caught,
        side.autograd.detect_anomaly(),
        pytest.raises(RuntimeError, match="Some error in backward"),
    ):
        run_fn(x).backward()
    (message,) = told(caught)
    assert message.startswith(
        "Error detected in MyFuncBackward. Traceback of forward call that caused the error:\n"
    )
    assert "in run_fn" in message


def test_forward_without_the_mode(side):
    _, y = zero_by_zero(side)
    with (
        pytest.warns(UserWarning) as caught,
        side.autograd.detect_anomaly(),
        pytest.raises(RuntimeError, match="returned nan values"),
    ):
        y.backward()
    (message,) = told(caught)
    assert (
        "No forward pass information available. Enable detect anomaly during forward pass for "
        "more information." in message
    )


def test_nan(side):
    with pytest.warns(UserWarning) as caught, side.autograd.detect_anomaly():
        _, y = zero_by_zero(side)
        with pytest.raises(
            RuntimeError, match=r"Function 'Div\w+' returned nan values in its 1th output."
        ):
            y.backward()
    (message,) = told(caught)
    assert "# this line is in the traceback" in message


def test_nan_unchecked_and_inf(side):
    with side.autograd.set_detect_anomaly(True, check_nan=False):
        x, y = zero_by_zero(side)
        y.backward()
    assert np.isnan(side.values(x.grad)).all()
    with side.autograd.set_detect_anomaly(True):
        x = side.tensor([0.0], requires_grad=True)
        side.xp.sum(side.xp.sqrt(x)).backward()
    assert np.isinf(side.values(x.grad)).all()


def test_nan_made_by_hooks(side):
    with side.autograd.set_detect_anomaly(True):
        x = side.tensor([1.0], requires_grad=True)
        x.register_hook(lambda g: g * float("nan"))  # no output of a node
        (x * 2).backward()
        assert np.isnan(side.values(x.grad)).all()
        y = side.tensor([1.0], requires_grad=True) * 2
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * float("nan"), None))
        with (
            pytest.warns(UserWarning),
            pytest.raises(
                RuntimeError, match=r"Function 'Mul\w+' returned nan values in its 0th output."
            ),
        ):
            y.backward()


def test_the_node_that_induced_the_failing_one(side):
    x = side.tensor([4.0], requires_grad=True)
    with pytest.warns(UserWarning) as caught, side.autograd.detect_anomaly():
        y = side.xp.sqrt(x)  # the inducing call
        (g,) = side.autograd.grad(y, x, create_graph=True)  # the induced call
        assert sorted(y.grad_fn.metadata) == ["traceback_"]
        assert sorted(g.grad_fn.metadata) == ["parent_", "traceback_"]
        assert g.grad_fn.metadata["parent_"] is y.grad_fn
        g.register_hook(failing)
        with pytest.raises(RuntimeError, match="Some error in backward"):
            g.backward()
    first, second = told(caught)
    assert first.startswith("Error detected in Div") and "# the induced call" in first
    assert second.startswith("\n\nPrevious calculation was induced by Sqrt")
    assert (
        "Traceback of forward call that induced the previous calculation:\n" in second
        and "# the inducing call" in second
    )


def test_modified_in_place(side):
    with pytest.warns(UserWarning) as caught, side.autograd.detect_anomaly():
        x = side.tensor([4.0], requires_grad=True)
        y = side.xp.exp(x)
        y += 1
        with pytest.raises(RuntimeError, match=GOOD_LUCK):
            y.backward()
    (message,) = told(caught)
    assert message.startswith("Error detected in Exp")
    x = side.tensor([4.0], requires_grad=True)
    y = side.xp.exp(x)
    y += 1
    with pytest.raises(
        RuntimeError,
        match="Hint: enable anomaly detection to find the operation that failed to compute its "
        "gradient",
    ):
        y.backward()


def test_the_mode_belongs_to_the_context(side, mode):
    """In PyTorch it belongs to the process; here other threads, which pay nothing, have a mode of
    their own, unless they run in a copy.
    """
    seen = []
    with side.autograd.set_detect_anomaly(True):
        for target in (mode, partial(contextvars.copy_context().run, mode)):
            thread = threading.Thread(target=lambda target=target: seen.append(target()))
            thread.start()
            thread.join()
    assert seen == [(side.name == "torch", True), (True, True)]


def test_gradients_are_the_same(side):
    def gradients():
        x, y = (
            side.tensor([1.0, 2.0], requires_grad=True),
            side.tensor([3.0, 4.0], requires_grad=True),
        )
        a, b = side.xp.unstack(x * y + x)
        side.xp.sum(a * b * y).backward()
        return side.values((x.grad, y.grad))

    plain = gradients()
    with side.autograd.set_detect_anomaly(True):
        watched = gradients()
    for a, b in zip(plain, watched, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_under_a_trace(backend):
    import jax

    def f(a):
        x = mg.asarray(a, requires_grad=True)
        (g,) = mg.autograd.grad(mg.sum(x / x), x)
        return g.array

    with mg.autograd.set_detect_anomaly(True):  # the values of a trace cannot be looked at
        np.testing.assert_array_equal(np.isnan(jax.jit(f)(jax.numpy.zeros(2))), [True, True])
