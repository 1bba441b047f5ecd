"""What surrounds the nodes of a pass: anomaly mode, the profiler. Swapped in when entered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from . import backward

Function = Callable[..., Any]
Around = Callable[[Function], Function]

_lock = threading.Lock()
_step, _lifted = backward.step, backward._lifted
_steps: tuple[Around, ...] = ()
_rules: tuple[Around, ...] = ()


def surround(step: Around, rule: Around | None = None) -> None:
    """Run nodes by `step(what runs them)`, and the rules of plain nodes by `rule(what runs those)`. Who comes later stands further out.

    A pass that nobody watches (see graph.watched) has steps for what is no plain node only.
    """
    global _steps, _rules
    with _lock:
        _steps = (*_steps, step)
        _rules = _rules if rule is None else (*_rules, rule)
        _compose()


def expose(step: Around, rule: Around | None = None) -> None:
    """Undo `surround`."""
    global _steps, _rules
    with _lock:
        _steps = tuple(a for a in _steps if a is not step)
        _rules = tuple(a for a in _rules if a is not rule)
        _compose()


def _compose() -> None:
    run, lifted = _step, _lifted
    for around in _steps:
        run = around(run)
    for around in _rules:
        lifted = around(lifted)
    backward.step, backward._lifted = run, lifted
    backward.stepped = bool(_rules)
