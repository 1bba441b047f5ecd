"""Which nodes a pass runs: all nodes that it reaches, or only those that lead to its targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from ..core.graph import AccumulateGrad, Node, OutputNode
from ..core.passes import Pass


def reach(roots: Sequence[tuple[Node, Any]], p: Pass) -> tuple[set[Node], dict[Node, float]]:
    """The nodes that the pass reaches, and for each leaf when its gradient is complete.

    It is complete when all nodes above a number have run, just below the number of its oldest
    child. This number is given for each leaf.
    """
    reached: set[Node] = set()
    last: dict[Node, tuple[int, float]] = {
        root: (2**62, -i)
        for i, (root, _) in reversed(list(enumerate(roots)))
        if type(root) is AccumulateGrad
    }
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
            if type(parent) is AccumulateGrad and (
                parent not in last or node.seq < last[parent][0]
            ):
                last[parent] = (node.seq, -(i + 1) / (len(parents) + 1))
    return reached, {leaf: number + fraction for leaf, (number, fraction) in last.items()}


_number = attrgetter("seq")


def survey(
    roots: Sequence[tuple[Node, Any]], targets: Mapping[Node, Any], leaves_only: bool
) -> set[Node] | None:
    """The nodes from which a target can be reached, targets included.

    None if all nodes are needed: the roots lead to no other leaves, and the targets are leaves.
    """
    lowest = min(map(_number, targets))
    seen: set[Node] = set()
    stack = [node for node, _ in roots]
    all_lead_there = leaves_only
    while stack:
        node = stack.pop()
        while node not in seen:
            if node.seq < lowest:
                all_lead_there = False
                break
            seen.add(node)
            parents = node.next
            if type(parents) is tuple:
                stack += parents
                all_lead_there = all_lead_there and (bool(parents) or node in targets)
                break
            node = parents
    if all_lead_there:
        return None
    needed = set(targets)
    for target in targets:
        if type(target) is OutputNode:  # its node runs the hooks of all outputs
            needed.update(filter(None, (ref() for ref in target.next.picks if ref is not None)))
    for node in sorted(seen, key=_number):
        parents = node.next
        if node not in needed and any(
            q in needed for q in (parents if isinstance(parents, tuple) else (parents,))
        ):
            needed.add(node)
    return needed
