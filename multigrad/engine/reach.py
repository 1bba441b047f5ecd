"""Which nodes a pass runs: those that it reaches, and, where it is to end at some of them, those that lead there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .graph import AccumulateGrad, Node, Pick

if TYPE_CHECKING:
    from .backward import Pass


def reach(roots: Sequence[tuple[Node, Any]], p: Pass) -> tuple[set[Node], dict[Node, float]]:
    """The nodes that the pass reaches, and for each leaf the number at which its gradient is complete: just below its oldest child's."""
    reached: set[Node] = set()
    last: dict[Node, tuple[int, float]] = {root: (2**62, -i) for i, (root, _) in reversed(list(enumerate(roots))) if type(root) is AccumulateGrad}
    stack = [root for root, _ in roots]
    while stack:
        node = stack.pop()
        if node in reached:
            continue
        reached.add(node)
        parents = node.next if isinstance(node.next, tuple) else (node.next,)
        for i, parent in enumerate(parents):
            if p.needed is not None and parent not in p.needed:
                continue
            stack.append(parent)
            if type(parent) is AccumulateGrad and (parent not in last or node.seq < last[parent][0]):
                last[parent] = (node.seq, -(i + 1) / (len(parents) + 1))
    return reached, {leaf: number + fraction for leaf, (number, fraction) in last.items()}


def survey(roots: Sequence[tuple[Node, Any]], targets: Mapping[Node, Any]) -> set[Node]:
    """The nodes from which a target can be reached, targets included."""
    lowest = min(node.seq for node in targets)
    order: list[Node] = []
    seen: set[Node] = set()
    stack = [node for node, _ in roots]
    while stack:
        node = stack.pop()
        if node in seen or node.seq < lowest:
            continue
        seen.add(node)
        order.append(node)
        parents = node.next
        stack += parents if isinstance(parents, tuple) else (parents,)
    needed = set(targets)
    for target in targets:
        if type(target) is Pick:  # its node runs the hooks of all outputs
            needed.update(filter(None, (ref() for ref in target.next.picks if ref is not None)))
    for node in sorted(order, key=lambda n: n.seq):
        parents = node.next
        if node not in needed and any(q in needed for q in (parents if isinstance(parents, tuple) else (parents,))):
            needed.add(node)
    return needed
