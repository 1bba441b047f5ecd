"""The mark of values that the forward of a Function computes from its inputs.

The user's backward defines the derivative of a Function, so no history is recorded for arrays that
forward computes and saves. While forward runs, operations put a mark in the place of the node of
each value that is computed from the inputs: a node that is hidden from users (see custom/kept.py).
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import Any

from .level import restored

following: ContextVar[Any] = restored(ContextVar("multigrad.computed", default=None))
"""The mark of the innermost Function whose forward runs."""


def follow(computed: Any) -> None:
    """Mark arrays of this context with `computed` from now on; None marks none."""
    following.set(computed)


def mark(t: Any) -> Any:
    """Mark `t` as computed from the inputs if a forward runs. Returns `t`."""
    forward = following.get()
    if forward is not None:
        t._node = forward
        forward.marked.append(weakref.ref(t))
    return t
