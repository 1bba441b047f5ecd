"""The mark of what the forward of a Function computes of its inputs: how operations make it known
while forward runs.

A derivative of a Function is what its backward says. Of an array that forward computed and kept for
it, no history was recorded. So what is computed of the inputs has a mark in the place of its node,
a node that is hidden from users (see custom/kept.py).
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .level import restored

if TYPE_CHECKING:
    from .tensor import Tensor


following: ContextVar[Any] = restored(ContextVar("multigrad.computed", default=None))
"""The mark of the innermost Function whose forward runs."""


def follow(computed: Any) -> None:
    """Have arrays of this context marked with `computed` from now on, None for none."""
    following.set(computed)


def mark(t: Tensor) -> Tensor:
    """Note, inside a forward, that `t` was computed of its inputs. Returns it."""
    forward = following.get()
    if forward is not None:
        t._node = forward
        forward.marked.append(weakref.ref(t))
    return t
