"""One backward pass, as nodes and hooks see it; `backward/run.py` runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ..observe import Observer
from .graph import AccumulateGrad, Node
from .level import restored
from .tensor import Tensor

_LEAVES = {AccumulateGrad}


@dataclass(eq=False, repr=False, slots=True)
class Pass:
    """One backward pass: its settings, its targets, its results.

    like                one of the outputs: a Tensor of the level whose graph is differentiated
    roots               where the pass starts, with the gradients there; set when it starts
    retain_graph        whether saved values stay for another pass
    create_graph        whether the pass itself is recorded
    raw                 whether every value of the pass so far is a raw array; False as soon as a
                        user's function or hook returns a layer
    targets             the nodes whose gradients are wanted, with each gradient once it is known;
                        None: accumulate into the leaves
    needed              the nodes on the way to a target; None: all
    accumulate_targets  whether leaves among the targets accumulate
    accumulate_others   whether leaves that are not targets accumulate, too. Then the pass continues
                        beyond the targets
    leaves              whether every target is a leaf. A leaf takes its gradient and has no parents
    every               whether the targets are all the leaves of their transformation. Then every
                        node leads to a target
    reached             the nodes that run; set if their order matters (see `run`)
    groups              the state of hooks on several Tensors; set with `reached`
    found               the values that a checkpoint has recomputed for this pass; set if there is
                        one
    observers           those that are notified of each node
    """

    like: Tensor
    retain_graph: bool
    create_graph: bool
    targets: dict[Node, Any] | None
    accumulate_others: bool = False
    every: bool = False
    accumulate_targets: bool = field(default=False, init=False)
    needed: set[Node] | None = field(default=None, init=False)
    observers: tuple[Observer, ...] = field(default=(), init=False)
    leaves: bool = field(init=False)
    raw: bool = field(init=False)
    roots: Sequence[tuple[Node, Any]] = field(init=False)
    reached: set[Node] = field(init=False)
    groups: dict[Any, Any] = field(init=False)
    found: Any = field(init=False)

    def __post_init__(self) -> None:
        self.leaves = self.every or (
            self.targets is not None
            and not self.accumulate_others
            and set(map(type, self.targets)) <= _LEAVES
        )
        elem = self.like._elem
        self.raw = not self.create_graph and (elem.run is None or elem.level not in elem.run.deep)


current: ContextVar[Pass | None] = restored(ContextVar("multigrad.pass", default=None))
"""The innermost pass that is running in this context."""

enter_pass: Callable[[Pass | None], object] = current.set
"""Set the pass that runs in this context, None outside of any, by one call of C: see `undo`."""
