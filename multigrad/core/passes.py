"""One backward pass, as nodes and hooks see it; `backward/run.py` runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..observe import Observer
from .graph import AccumulateGrad, Node
from .tensor import Tensor

_LEAVES = {AccumulateGrad}


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
    reached             the nodes that run; set if their order matters (run_in_order)
    groups              the state of hooks on several Tensors; set in run_in_order, too
    found               the values that a checkpoint has recomputed for this pass; set if there is
                        one
    told                the observers that are notified of each node
    """

    __slots__ = (
        "accumulate_others",
        "accumulate_targets",
        "create_graph",
        "every",
        "found",
        "groups",
        "leaves",
        "like",
        "needed",
        "raw",
        "reached",
        "retain_graph",
        "roots",
        "targets",
        "told",
    )
    found: Any
    groups: dict[Any, Any]
    reached: set[Node]
    roots: Sequence[tuple[Node, Any]]

    def __init__(
        self,
        like: Tensor,
        retain_graph: bool,
        create_graph: bool,
        targets: dict[Node, Any] | None,
        accumulate_others: bool = False,
        every: bool = False,
    ) -> None:
        self.like = like
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.targets = targets
        self.needed: set[Node] | None = None
        self.accumulate_others = accumulate_others
        self.accumulate_targets = False
        self.leaves = every or (
            targets is not None and not accumulate_others and set(map(type, targets)) <= _LEAVES
        )
        self.every = every
        elem = like._elem
        self.raw = not create_graph and (elem.run is None or elem.level not in elem.run.deep)
        self.told: tuple[Observer, ...] = ()
