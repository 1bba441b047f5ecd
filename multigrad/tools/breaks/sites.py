"""Queries of break detection: the histories and levels of a value, the line of the program."""

from __future__ import annotations

import sys
from itertools import dropwhile
from types import FrameType
from typing import Any

from ... import observe
from ...backward import run as backward
from ...core import conversions
from ...core.graph import Node
from ...core.level import Layer
from ...custom import decorators
from ...memory import saved
from ..graphs.provenance import OWN, UNKNOWN, Site, frames, site, skipped

CALLBACKS = frozenset(module.__file__ for module in (backward, saved, decorators))
"""Modules that call the program's code themselves: hooks, rules, custom derivatives."""

TELLING = frozenset(module.__file__ for module in (observe, conversions))
"""Modules that notify observers; the event's origin is their caller."""


def nodes_of(x: Any) -> list[Node | None]:
    """Return the histories of a value on all levels, outermost first; None for a tangent."""
    nodes: list[Node | None] = []
    while isinstance(x, Layer):
        node = getattr(x, "_node", None)
        if node is not None:
            nodes.append(node)
        if getattr(x, "_tangent", None) is not None:
            nodes.append(None)
        x = x._array
    return nodes


def levels_of(x: Any, tangents: bool = True) -> set[int]:
    """Return the levels at which a value has a history or a tangent."""
    levels = set()
    while isinstance(x, Layer):
        if getattr(x, "_node", None) is not None or (
            tangents and getattr(x, "_tangent", None) is not None
        ):
            levels.add(x._level)
        x = x._array
    return levels


def line() -> Site:
    """Return the innermost line of the program that is running, without regard to its caller."""
    return site(sys._getframe(1), skipped()) or UNKNOWN


def place(frame: FrameType | None = None) -> Site | None:
    """Return the line of the program that is running.

    None in a backward pass, in hooks, and inside a function with a custom derivative.
    """
    frame = frame or sys._getframe(1)
    if any(f.f_code.co_filename in CALLBACKS for f in frames(frame)):
        return None
    return site(frame, skipped()) or UNKNOWN


def program(frame: FrameType | None) -> FrameType | None:
    """Return the innermost of these frames outside multigrad."""
    return next((f for f in frames(frame) if not f.f_code.co_filename.startswith(OWN)), None)


def caller() -> FrameType | None:
    """Return the frame that caused the current event."""
    stack = dropwhile(lambda f: f.f_code.co_filename not in TELLING, frames(sys._getframe(1)))
    return next((f for f in stack if f.f_code.co_filename not in TELLING), None)
