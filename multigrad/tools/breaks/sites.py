"""What break detection asks of a value and of the stack: which histories a value has, at which
levels, and which line of the program this is.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from ... import observe
from ...backward import run as backward
from ...core import conversions
from ...core.graph import Node
from ...core.level import Layer
from ...custom import decorators
from ...memory import saved
from ..graphs.provenance import OWN, UNKNOWN, Site, site, skipped

CALLBACKS = frozenset(module.__file__ for module in (backward, saved, decorators))
"""Who calls the program for purposes of its own: hooks, rules in a backward pass, functions whose
derivative is written by hand.
"""

TELLING = frozenset(module.__file__ for module in (observe, conversions))
"""Who tells observers, and so is called by what they are told of."""


def nodes_of(x: Any) -> list[Node | None]:
    """The histories of a value, on all levels, outermost first; None for a tangent, which has
    none.
    """
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
    """The levels at which a value has a history, or a tangent."""
    levels = set()
    while isinstance(x, Layer):
        if getattr(x, "_node", None) is not None or (
            tangents and getattr(x, "_tangent", None) is not None
        ):
            levels.add(x._level)
        x = x._array
    return levels


def line() -> Site:
    """The innermost line of the program that is running, whoever called it."""
    return site(sys._getframe(1), skipped()) or UNKNOWN


def place(frame: FrameType | None = None) -> Site | None:
    """The line of the program that is running.

    None in a backward pass, in hooks, and where a function with a derivative of its own calls it.
    """
    frame = frame or sys._getframe(1)
    skip = skipped()
    where = None
    while frame is not None:
        name = frame.f_code.co_filename
        if name in CALLBACKS:
            return None
        if where is None and not name.startswith(skip):
            where = site(frame, skip)
        frame = frame.f_back
    return where or UNKNOWN


def program(frame: FrameType | None) -> FrameType | None:
    """The innermost of these frames that is none of multigrad's."""
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return frame


def caller() -> FrameType | None:
    """The frame that called what observers are being told of."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename not in TELLING:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename in TELLING:
        frame = frame.f_back
    return frame
