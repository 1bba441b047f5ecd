"""The lines of the user's code that recorded operations come from."""

from __future__ import annotations

import inspect
import sys
from types import FrameType

from ..errors import OWN

DEEP = 12
"""The least depth of the stack at which a frame half way is remembered.

The frames of the operation itself are gone at the next operation.
"""
RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""The flags of code whose frames may have another caller the next time."""

_own: set[str] = set()
"""The files of multigrad whose functions were seen on the stack, generated ones included."""


class Lines:
    """Finds the innermost frame outside of multigrad.

    Looking at a frame creates an object for it. So a frame of multigrad half way up is remembered:
    in a pass, the next operations are called from inside of it, too. The frames around it do not
    change while it runs.
    """

    __slots__ = ("_anchor", "_around")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._anchor: FrameType | None = None
        self._around: FrameType | None = None

    def here(self) -> str:
        """file:line, or an empty string if there is no such frame."""
        anchor = self._anchor
        # the caller of this method, and its caller, belong to multigrad
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
