"""Anomaly mode: nodes remember the call that made them, and passes look at what nodes return.

Switched on, it is an instrument (see instruments.py), has passes take the way of `run_in_order`, and stands in the place of `step` there.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from . import backward, graph, instruments, steps
from .graph import Node, Pick, extra
from .level import innermost

_enabled = False
_check_nan = True
_running: ContextVar[Node | None] = ContextVar("multigrad.running_node", default=None)
"""The node whose rule runs: under create_graph, it induces the nodes that are recorded."""

_PACKAGE = str(Path(__file__).parents[1])
TRACEBACK, PARENT = "traceback_", "parent_"


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return _enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, if it is on, raises for nan."""
    return _check_nan


def set_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off, for the whole process."""
    global _enabled, _check_nan
    for value, name, position in ((enabled, "enabled", 1), (check_nan, "check_nan", 2)):
        if not isinstance(value, bool):
            raise TypeError(f"set_anomaly_enabled(): argument '{name}' (position {position}) must be bool, not {type(value).__name__}")
    _check_nan = check_nan
    if enabled == _enabled:
        return
    _enabled = enabled
    if enabled:
        instruments.install(_remember)
        graph.watched.add(TRACEBACK)
        steps.surround(_watching)
    else:
        steps.expose(_watching)
        graph.watched.discard(TRACEBACK)
        instruments.remove(_remember)
    graph.hint = GOOD_LUCK if enabled else graph.ENABLE


GOOD_LUCK = ("Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in question was changed in "
             "there or anywhere later. Good luck!")


def _remember(node: Node, values: Sequence[Any], result: Any) -> None:
    """Note in a new node's metadata the Python frames that led to it, without our own at their end, and the node that induced it."""
    metadata = extra(node).metadata
    stack = traceback.extract_stack()
    while stack and stack[-1].filename.startswith((_PACKAGE, "<multigrad", "<pullback")):
        stack.pop()
    metadata[TRACEBACK] = stack.format()
    parent = _running.get()
    if parent is not None:
        metadata[PARENT] = parent


def _watching(step: Callable[..., Any]) -> Callable[..., Any]:
    def watched(node: Node, *args: Any) -> Any:
        if type(node) is Pick:  # not a node of its own to users
            return step(node, *args)
        before = _running.get()
        try:
            _running.set(node)
            found = step(node, *args)
            if _check_nan and found is not backward.STOP:
                _refuse_nan(node, found)
            return found
        except Exception:
            _tell(node)
            raise
        finally:
            _running.set(before)

    return watched


def _refuse_nan(node: Node, found: Any) -> None:
    given = iter((found,) if node.rule.single else found)
    for i, (parent, _) in enumerate(node.next_functions):
        if parent is not None and _has_nan(node, innermost(next(given))):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def _has_nan(node: Node, x: Any) -> bool:
    if x is None:
        return False
    xp = node.host.xp
    found = xp.any(xp.isnan(x))
    try:
        return bool(found)
    except Exception:  # a value that a trace has not computed yet (jax.jit): nobody can look at it
        return False


def _tell(node: Node) -> None:
    """Warn with the forward call that made `node`, and those of the nodes that induced it."""
    metadata = extra(node).metadata
    if TRACEBACK not in metadata:
        warnings.warn(f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass "
                      "for more information.", UserWarning, stacklevel=2)
        return
    warnings.warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(metadata[TRACEBACK])}",
                  UserWarning, stacklevel=2)
    parent = metadata.get(PARENT)
    while parent is not None:
        metadata = extra(parent).metadata
        if TRACEBACK not in metadata:
            warnings.warn("\n\nNo forward pass information available of the previous calculation that was induced by "
                          f"{parent.name()}. Enable detect anomaly during forward pass for more information.", UserWarning, stacklevel=2)
            return
        warnings.warn(f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the previous "
                      f"calculation:\n{''.join(metadata[TRACEBACK])}", UserWarning, stacklevel=2)
        parent = metadata.get(PARENT)
