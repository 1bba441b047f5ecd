"""Grad modes that an interrupt meets while they are entered; faults/ has interrupts everywhere."""

from __future__ import annotations

from typing import Any

import pytest

import multigrad as mg
from multigrad import observe
from multigrad.core import grad_mode, level


class Interrupt(BaseException):
    """Raised as KeyboardInterrupt is by Ctrl-C."""


class Mode:
    """A grad mode where the first write is interrupted once it is done."""

    def __init__(self) -> None:
        self.values = [True]

    def turn(self, on: bool) -> None:
        self.values.append(on)
        if len(self.values) == 2:
            raise Interrupt


@pytest.fixture
def interrupted(monkeypatch):
    """Interrupt the next write of the gate by a context manager once it is done.

    Returns what is written.
    """
    written, write = [], observe.gate.set

    def interrupting(gate: Any) -> Any:
        written.append(gate)
        token = write(gate)
        if len(written) == 1:
            raise Interrupt
        return token

    monkeypatch.setattr(grad_mode, "_set", interrupting)
    return written


@pytest.mark.parametrize(
    "made",
    [mg.no_grad, lambda: mg.set_grad_enabled(False), mg.inference_mode],
    ids=["no_grad", "set_grad", "inference"],
)
def test_a_mode_that_is_interrupted_when_it_is_entered(interrupted, made):
    with pytest.raises(Interrupt), made():
        pass
    assert len(interrupted) == 2 and mg.is_grad_enabled() and observe.gate.get() is True


def test_a_mode_can_be_entered_again_after_an_interrupt(interrupted):
    context = mg.no_grad()
    with pytest.raises(Interrupt), context:
        pass
    with context:
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()


def test_modes_of_the_engine_that_are_interrupted():
    mode = Mode()
    with pytest.raises(Interrupt), grad_mode.switched([(level.BASE, False), (mode, False)]):  # type: ignore[list-item]
        pass
    assert observe.gate.get() is True and level.running() is None
