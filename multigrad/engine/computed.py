"""What the forward of a Function computes of its inputs: known while it runs, and refused where a second derivative reaches it.

A derivative of a Function is what its backward says. Of an array that forward computed and kept for it, no history was recorded.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..errors import GradientError
from .graph import Node, tick
from .level import state

if TYPE_CHECKING:
    from .tensor import Tensor

TWICE = ("{}: a second derivative reached an array that forward computed and kept, and how that depends on the inputs is not known. Keep inputs "
         "and outputs only, and compute the rest in backward; or use multigrad.func.custom_vjp, which differentiates what its fwd keeps. "
         "gradgradcheck tests it. What is to be a constant can be detached in backward.")


class Computed(Node):
    """What stands for the history of the arrays that the forward of a Function computes of its inputs, as long as forward runs.

    forward is not recorded, so this is how such an array is known when forward keeps it. For users it is a constant: `_history` of it is None.
    A pass over what forward itself records of them (with enable_grad) ends there; one over what is recorded later raises.

    owner   the name of the Function
    moving  per argument of `apply` whether a derivative may be asked for; empty where those that are have a history
    known   once it has run, what it has computed that is alive, by its id
    over    when it had run, 0 before
    """

    __slots__ = ("known", "marked", "moving", "outer", "over", "owner")
    saved = ()
    cells = None

    def __init__(self, owner: str, moving: Sequence[bool] = (), parents: tuple[Node, ...] = ()) -> None:
        self.seq = tick()
        self.owner = owner
        self.moving = moving
        self.next = parents
        self.over = 0
        self.marked: list[weakref.ref[Tensor]] = []
        self.known: dict[int, weakref.ref[Tensor]] = {}
        self.outer = following.get()

    def name(self) -> str:
        return "Computed"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return ()

    def reached(self, roots: Sequence[tuple[Node, Any]]) -> None:
        """A pass from these roots has arrived here. Below roots that are older than the end of forward there is no second derivative of it."""
        if self.over and any(root.seq > self.over for root, _ in roots):
            raise GradientError(TWICE.format(self.owner))

    def release(self) -> None:
        """Make constants of all that was marked. What a forward around this one has to know stays marked for that."""
        outer = self.outer
        known = self.known = {}
        self.over = tick()
        for at in self.marked:
            t = at()
            if t is not None and t._node is self:
                t._node = outer
                known[id(t)] = at
                if outer is not None:
                    outer.marked.append(at)
        self.marked = []


following: ContextVar[Computed | None] = ContextVar("multigrad.computed", default=None)
"""The mark of the innermost Function whose forward runs."""

state.append(following)


def mark(t: Tensor) -> Tensor:
    """Note, inside a forward, that `t` was computed of its inputs. Returns it."""
    forward = following.get()
    if forward is not None:
        t._node = forward
        forward.marked.append(weakref.ref(t))
    return t
