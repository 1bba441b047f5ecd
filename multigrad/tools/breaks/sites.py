"""Queries of break detection: the histories and levels of a value, the line of the program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import dropwhile
from types import FrameType
from typing import Any

from ... import observe
from ...backward import run as backward
from ...core import conversions
from ...core.graph import Node
from ...core.level import Layer
from ...custom import decorators
from ...errors import PACKAGE
from ...memory import saved
from ..graphs.provenance import UNKNOWN, Site, frames, site, skipped

CALLBACKS = frozenset(module.__file__ for module in (backward, saved, decorators))
"""Modules that call the program's code themselves: hooks, rules, custom derivatives."""

TELLING = frozenset(module.__file__ for module in (observe, conversions))
"""Modules that notify observers; the event's origin is their caller."""


def histories(x: Any) -> Iterator[tuple[int, Node | None]]:
    """Yield the level and the node of each history of a value, the outermost level first.

    A tangent has None instead of a node.
    """
    while isinstance(x, Layer):
        node = getattr(x, "_node", None)
        if node is not None:
            yield x._level, node
        if getattr(x, "_tangent", None) is not None:
            yield x._level, None
        x = x._array


def nodes_of(x: Any) -> list[Node | None]:
    return [node for _, node in histories(x)]


def levels_of(x: Any) -> set[int]:
    return {level for level, _ in histories(x)}


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
    return next((f for f in frames(frame) if not f.f_code.co_filename.startswith(PACKAGE)), None)


def caller() -> FrameType | None:
    """Return the frame that caused the current event."""
    stack = dropwhile(lambda f: f.f_code.co_filename not in TELLING, frames(sys._getframe(1)))
    return next((f for f in stack if f.f_code.co_filename not in TELLING), None)
