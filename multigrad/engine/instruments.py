"""Instruments: what looks at every node as it is recorded, on every thread (anomaly mode, labels of a graph).

Nothing of this costs anything while there is none. When the first is entered, the plans of the hot path are set aside, so that every
operation takes the general path, whose last step, `record`, is exchanged for one that shows the new node around.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from . import dispatch, plans
from .graph import Node, Pick
from .tensor import Tensor

Instrument = Callable[[Node, Sequence[Any], Any], None]
"""Called with a new node, the values of the operation's parameters, and its result."""

_lock = threading.Lock()
_installed: tuple[Instrument, ...] = ()
_record = dispatch.record


def install(instrument: Instrument) -> None:
    """Have `instrument` called for every node that is recorded, on every thread."""
    global _installed
    with _lock:
        if not _installed:
            dispatch.record = _record_watched  # type: ignore[assignment]
            plans.set_aside()
        _installed = (*_installed, instrument)


def remove(instrument: Instrument) -> None:
    """Undo one `install` of this instrument."""
    global _installed
    with _lock:
        kept = list(_installed)
        kept.remove(instrument)
        _installed = tuple(kept)
        if not kept:
            dispatch.record = _record
            plans.bring_back()


def recorded(node: Node, values: Sequence[Any], result: Any) -> None:
    """Show a new node to the instruments; for those who make nodes themselves."""
    for instrument in dict.fromkeys(_installed):
        instrument(node, values, result)


def _record_watched(*args: Any) -> Any:
    result = _record(*args)
    outs = (result,) if isinstance(result, Tensor) else result if isinstance(result, (tuple, list)) else ()
    node = next((t._node for t in outs if isinstance(t, Tensor) and t._history is not None), None)
    if node is not None:
        recorded(node.next if type(node) is Pick else node, args[-1], result)
    return result


PACKAGE = str(Path(__file__).parents[1]) + os.sep
"""How the names of multigrad's own files begin."""


def program() -> int:
    """How far up the program is from the function that asks, as `warnings` counts in `stacklevel`: those who watch may stand between."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
