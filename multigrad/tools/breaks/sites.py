"""What all that watches for breaks of the tape asks: which reports are open, what a value was made of, which line of the program this is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import FrameType
from typing import Any

from ...engine.graph import Node
from ...engine.level import Layer
from ..graphs.noting import OWN, UNKNOWN, Site, site, skipped
from .detect import BreakReport, Leaf

reports: list[tuple[BreakReport, ...]] = [()]
"""Those that are open, as the only element."""

CALLBACKS = frozenset(os.path.join(OWN, *name) for name in (
    ("engine", "backward.py"), ("engine", "saved.py"), ("custom", "function.py"), ("custom", "decorators.py"), ("custom", "dual.py")))
"""Who calls the program in a mode of its own: hooks, and functions whose derivative is written by hand. Rules run in backward passes, too."""


def nodes_of(x: Any) -> list[Node | None]:
    """The histories of a value, on all levels, outermost first; None for a tangent, which has none."""
    found: list[Node | None] = []
    while isinstance(x, Layer):
        node = getattr(x, "_node", None)
        if node is not None:
            found.append(node)
        if getattr(x, "_tangent", None) is not None:
            found.append(None)
        x = x._array
    return found


def levels_of(x: Any, tangents: bool = True) -> set[int]:
    """The levels at which a value has a history, or a tangent."""
    found = set()
    while isinstance(x, Layer):
        if getattr(x, "_node", None) is not None or (tangents and getattr(x, "_tangent", None) is not None):
            found.add(x._level)
        x = x._array
    return found


def behind(nodes: Sequence[Node | None]) -> list[tuple[BreakReport, frozenset[Leaf]]]:
    """For each report, the leaves that values of these histories were made of."""
    known = [n for n in nodes if n is not None]
    return [(report, frozenset(leaf for n in known for leaf in report.behind(n))) for report in reports[0]]


def note(kind: str, what: str, where: Site, nodes: Sequence[Node | None]) -> None:
    """Have all reports tell of a break."""
    for report, leaves in behind(nodes):
        report.add(kind, what, where, leaves)


def place(frame: FrameType | None) -> Site | None:
    """The line of the program that these frames were called from. None in a backward pass, in hooks, in functions with derivatives of their own."""
    skip = skipped()
    found = None
    while frame is not None:
        name = frame.f_code.co_filename
        if name in CALLBACKS:
            return None
        if found is None and not name.startswith(skip):
            found = site(frame, skip)
        frame = frame.f_back
    return found or UNKNOWN
