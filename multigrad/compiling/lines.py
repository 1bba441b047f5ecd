"""The lines of the user's code that operations come from, while they are recorded."""

from __future__ import annotations

import inspect
import sys
from types import FrameType

from ..errors import OWN

DEEP = 12
"""From how many frames on one half way is remembered: those of an operation itself are gone with
the next one.
"""
RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""What code is marked as whose frames may be called from elsewhere the next time."""

_own: set[str] = set()
"""The files of multigrad whose functions were met on the stack, generated ones included."""


class Lines:
    """Finds the innermost frame that is not multigrad's.

    Looking at a frame makes an object of it. So one of multigrad's half way there is remembered: in
    a pass it is around the operations to come, too, and what is around it stays the same as long as
    it runs.
    """

    __slots__ = ("_anchor", "_around")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._anchor: FrameType | None = None
        self._around: FrameType | None = None

    def here(self) -> str:
        """file:line, or nothing where there is none."""
        anchor = self._anchor
        # what calls this method, and what calls that, is multigrad's
        frame: FrameType | None = sys._getframe(3)
        half, steps = frame, 0
        while frame is not None:
            if frame is anchor:
                return _place(self._around)
            name = frame.f_code.co_filename
            if name not in _own:
                if not name.startswith(OWN):
                    break
                _own.add(name)
            frame = frame.f_back
            steps += 1
            if not steps % 2:
                half = half.f_back  # type: ignore[union-attr]
        if half is not None and steps > DEEP and not half.f_code.co_flags & RESUMED:
            self._anchor, self._around = half, frame
        return _place(frame)


def _place(frame: FrameType | None) -> str:
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
