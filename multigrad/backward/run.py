"""The backward pass: from the outputs to the leaves, or to the requested Tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from time import perf_counter_ns
from typing import Any

from .. import observe
from ..core.aliasing import last_write
from ..core.element import narrow_seen
from ..core.graph import (
    FREED,
    AccumulateGrad,
    CustomNode,
    MultiNode,
    Node,
    OutputNode,
    added,
    watched,
)
from ..core.level import (
    BASE,
    Layer,
    come_back,
    go_outside,
    running,
    settle,
    settle_again,
    undo,
)
from ..core.passes import Pass, current, enter_pass
from ..core.pullback import apart
from ..core.tensor import Tensor, lifted, strip, wrap_at
from ..dispatch.pullbacks import refuse_none
from ..errors import GradientError
from ..memory.accumulation import accumulate, astype, widened
from ..memory.saved import check_versions, with_history
from ..observe import OFF, PASS, STEP, Call, gate
from .hooks import run_hooks, run_post_accumulate, run_posthooks, run_prehooks
from .reach import reach, survey

MISSING: Any = object()
"""Stands for the gradient of a node that has received none yet."""


def run(
    roots: Sequence[tuple[Node, Any]], p: Pass, due: Mapping[Node, float] | None = None
) -> None:
    """Run the pass: highest number first, each node once, with the sum of its gradients.

    Most nodes are next as soon as their child has run; these never enter the heap.

    due  for a pass in PyTorch's order, the numbers of leaves, see `reach`. Each leaf then runs as
         soon as its gradient is complete, and every node is a `step` and passes through the heap
    """
    keep, targets, needed = p.retain_graph, p.targets, p.needed
    inner = None if p.leaves else targets  # targets that may have parents
    timed = len(p.observers) == 1 and p.observers[0].timed is not None
    direct, lift = (False, _timed) if timed else (p.raw, _lifted)
    # the nodes that run here, without `step`
    plain = Node if due is None and (timed or not p.observers) else None
    leaf = AccumulateGrad if due is None and not p.observers else None
    heap: list[tuple[float, Node]] = []
    buffers: dict[Node, Any] = {}
    owned: set[Node] = set()
    narrow: dict[Node, Any] = {}  # the original dtype of sums kept in a wider one

    def deliver(node: Node, g: Any) -> None:
        """Add `g` to the gradient that the node has received so far.

        The second contribution makes a new array, later ones are added in place.
        """
        total = buffers.get(node, MISSING)
        if total is MISSING:
            buffers[node] = g
            heappush(heap, (-node.seq if due is None else -due.get(node, node.seq), node))
        elif g is None or total is None:
            buffers[node] = total if g is None else g
        elif p.raw and node in owned:
            total += g
            buffers[node] = total
        else:
            if narrow_seen[0]:
                total = widened(node, total, narrow)
            buffers[node] = total + g if p.raw else added(total, g)
            owned.add(node)

    node: Any = None  # a Node, or None while it is being chosen
    if len(roots) == 1:
        node, g = roots[0]
    else:
        for root, gradient in roots:
            deliver(root, gradient)
    gradients: Any = None
    while True:
        if node is None:
            if not heap:
                return
            node = heappop(heap)[1]
            g = buffers.pop(node)
            if g is None and due is None:
                _pass_on(node, p, heap, buffers, deliver)
                direct = direct and p.raw
                node = None
                continue
            if narrow and node in narrow:
                g = astype(g, narrow.pop(node))
        kind = type(node)
        if kind is not plain:
            if kind is leaf and node.extra is None and inner is None and not p.accumulate_targets:
                if targets is not None:
                    if node in targets:
                        targets[node] = g
                    g = gradients = gradient = node = None
                    continue
                box = [g]  # the only reference, so that a leaf may keep the array
                g = gradients = gradient = None
                accumulate(node, box, p)
                node = None
                continue
            box = [g]
            g = gradients = gradient = None
            gradients = step(node, kind, box, p, heap, buffers)
            if gradients is STOP:
                node = None
                continue
            direct = direct and p.raw
            rule = node.rule
            if due is not None:
                for parent, gradient in _edges(node, gradients):
                    if needed is None or parent in needed:
                        deliver(parent, gradient)
                node = None
                continue
        else:
            if inner is not None and node in inner:
                inner[node] = g
                if not p.accumulate_others and (needed is None or not _leads_on(node, needed)):
                    node = None
                    continue
            saved = node.saved
            rule = node.rule
            if saved is None:
                raise GradientError(FREED)
            if node.seq < last_write[0] and node.cells is not None:
                check_versions(node)
            gradients = rule.vjp(rule.xp, g, saved) if direct else lift(node, saved, g, p)
            if not keep and rule.saves:
                node.saved = node.cells = None
        parents = node.next
        if rule.single:
            if gradients is None or (needed is not None and parents not in needed):
                if gradients is None:
                    if kind is plain:
                        refuse_none(rule)
                    if needed is None or parents in needed:
                        deliver(parents, None)
                node = None
                continue
            node, g = parents, gradients
        elif (
            needed is None
            and len(parents) == 2
            and (parent := parents[0]) is not (other := parents[1])
            and (gradient := gradients[0]) is not None
            and (g := gradients[1]) is not None
        ):
            # of two parents the younger one, which may be next
            if parent.seq > other.seq:
                deliver(other, g)
                node, g = parent, gradient
            else:
                deliver(parent, gradient)
                node = other
        else:
            node = None  # the youngest parent, which may be next
            for parent, gradient in zip(parents, gradients):  # one each, by construction
                if gradient is None or (needed is not None and parent not in needed):
                    if gradient is None:
                        if kind is plain:
                            refuse_none(rule)
                        if needed is None or parent in needed:
                            deliver(parent, None)
                    continue
                if node is None:
                    node, g = parent, gradient
                elif parent.seq > node.seq:
                    deliver(node, g)
                    node, g = parent, gradient
                elif parent is node:
                    deliver(node, g)
                    deliver(node, gradient)
                    node = None
                else:
                    deliver(parent, gradient)
            if node is None:
                continue
        if heap and node.seq <= -heap[0][0]:
            deliver(node, g)
            node = None


def _pass_on(
    node: Node,
    p: Pass,
    heap: list[Any],
    buffers: dict[Node, Any],
    deliver: Callable[[Node, Any], None],
) -> None:
    """Continue after a node whose gradient a user's code made None. A Function gets zeros."""
    if type(node) is Node:
        gradients: Any = None if node.rule.single else (None,) * len(node.next)
        if not p.retain_graph and node.rule.saves:
            node.saved = node.cells = None
    else:
        gradients = step(node, type(node), [None], p, heap, buffers)
        if gradients is STOP:
            return
    for parent, gradient in _edges(node, gradients):
        if p.needed is None or parent in p.needed:
            deliver(parent, gradient)


def _edges(node: Node, gradients: Any) -> Iterable[tuple[Node, Any]]:
    """The parents of a node, each with its gradient."""
    return ((node.next, gradients),) if node.rule.single else zip(node.next, gradients, strict=True)


STOP: Any = object()
"""Returned instead of gradients: the pass does not continue from here."""


def step(
    node: Node, kind: type, box: list[Any], p: Pass, heap: list[Any], buffers: dict[Node, Any]
) -> Any:
    """Run a node with hooks, of another class, or observed. Returns its gradients, or STOP."""
    if kind is OutputNode:
        _collect(node, box[0], heap, buffers)  # type: ignore[arg-type]
        return STOP
    if not p.observers:
        return _stepped(node, kind, box, p)
    operands = box[0] if type(box[0]) in (tuple, list) else tuple(box)
    call = Call(STEP, None, node.name(), (), operands, node=node)
    del operands  # a leaf may take over an array that has no other reference
    gradients = observe.around(p.observers, call, lambda: _stepped(node, kind, box, p))
    if gradients is not STOP and not p.retain_graph and node.rule.saves:
        node.saved = node.cells = None
    return gradients


def _stepped(node: Node, kind: type, box: list[Any], p: Pass) -> Any:
    if node.hidden:
        node.reached(p.roots)
        return STOP
    e = getattr(node, "extra", None)
    if isinstance(node, MultiNode):
        for number, of_output in sorted(node.outputs.items()):
            box[0][number] = run_hooks(of_output, box[0][number], p)
        box[0] = tuple(box[0])
    elif e is not None:
        box[0] = run_hooks(e, box[0], p)
    if p.targets is not None and not _reported(node, box[0], p):
        return STOP
    if kind is AccumulateGrad:
        if p.targets is None or (
            p.accumulate_targets if node in p.targets else p.accumulate_others
        ):
            _finish(node, box, p)  # type: ignore[arg-type]
        return STOP
    gradients = execute(node, box[0], p)
    if p.raw and _any_layer(gradients if type(gradients) is tuple else (gradients,)):
        p.raw = False
    return gradients


def _reported(node: Node, g: Any, p: Pass) -> bool:
    """Store the gradient of a target. Returns whether the pass continues from here."""
    targets = p.targets
    assert targets is not None
    if isinstance(node, MultiNode):
        for ref, gradient in zip(node.picks, g, strict=True):
            pick = None if ref is None else ref()
            if pick is not None and pick in targets:
                targets[pick] = gradient
        return p.needed is None or node in p.needed
    if node not in targets or (p.accumulate_targets and type(node) is AccumulateGrad):
        return True
    targets[node] = g
    return p.accumulate_others or (p.needed is not None and _leads_on(node, p.needed))


def execute(node: Node, g: Any, p: Pass) -> Any:
    """Run the rule of a node between the node's own hooks."""
    e = getattr(node, "extra", None)
    if e is not None and e.prehooks:
        g = run_prehooks(e, g, p)
    saved = node.saved
    if saved is None:
        raise GradientError(FREED)
    if node.seq < last_write[0] and node.cells is not None:
        check_versions(node)
    rule = node.rule
    gradients: Any
    # a function or a hook returned None
    if g is None or (
        type(g) is tuple and not isinstance(node, CustomNode) and all(x is None for x in g)
    ):
        g = None
        gradients = None if rule.single else (None,) * len(node.next)
    elif isinstance(node, CustomNode):
        gradients = rule.vjp(node.library.xp, partial(node.ctx._propagate, g, p), saved)
    else:
        if p.raw and not _any_layer(g if type(g) is tuple else (g,)):
            gradients = rule.vjp(node.library.xp, g, saved)
        elif p.observers and type(node) is not Node:
            # the operations of the rule, not those of hooks, are marked as part of it
            gradients = observe.within(_lifted, node, saved, g, p)
        else:
            gradients = _lifted(node, saved, g, p)
    # for observers the saved arrays are freed after the node, see step
    if not p.retain_graph and rule.saves and not p.observers:
        node.saved = node.cells = None
    if g is not None and any(x is None for x in ((gradients,) if rule.single else gradients)):
        refuse_none(rule)
    return run_posthooks(node, e, gradients, g, p) if e is not None and e.posthooks else gradients


def _finish(node: AccumulateGrad, box: list[Any], p: Pass) -> None:
    """Accumulate into a leaf, between the hooks of its node."""
    e = node.extra
    if e is None:
        if box[0] is not None:
            accumulate(node, box, p)
        return
    if e.prehooks:
        box[0] = run_prehooks(e, box[0], p)
    g = box[0] if e.posthooks else None
    leaf = accumulate(node, box, p) if box[0] is not None else node.tensor()
    if leaf is not None and e.post_accumulate:
        run_post_accumulate(e, leaf)
    if e.posthooks:
        run_posthooks(node, e, (), g, p)


def _leads_on(node: Node, needed: set[Node]) -> bool:
    """Whether another target can be reached from this one."""
    return not needed.isdisjoint(node.next if type(node.next) is tuple else (node.next,))


def _collect(pick: OutputNode, g: Any, heap: list[Any], buffers: dict[Node, Any]) -> None:
    node = pick.next
    if node not in buffers:
        buffers[node] = [None] * len(node.picks)
        heappush(heap, (-node.seq, node))
    before = buffers[node][pick.number]
    if g is not None:
        buffers[node][pick.number] = g if before is None else added(before, g)


def _lifted(node: Node, saved: Any, g: Any, p: Pass) -> Any:
    """Run a rule on layers: under create_graph, or if the value of a Tensor is itself a layer."""
    rule = node.rule
    if p.create_graph:
        wrap = partial(wrap_at, p.like)
        values = [
            with_history(node, value, source, wrap)
            for value, source in zip(apart(saved), rule.sources, strict=True)
        ]
    elif (
        isinstance(g, Layer)
        or (type(g) is tuple and _any_layer(g))
        or (not p.raw and _any_layer(apart(saved)))
    ):
        values = [
            value if source is None or isinstance(value, Layer) else lifted(value)
            for value, source in zip(apart(saved), rule.sources)
        ]
    else:
        return rule.vjp(node.library.xp, g, saved)
    if not isinstance(g, Layer):
        g = lifted(g)
    # constants of the rule must not belong to a transformation that runs now and is unrelated to
    # the node
    token = go_outside(None)
    try:
        gradients = rule.vjp(node.library.bound, g, rule.together(values))
    finally:
        come_back(token)
    if p.create_graph:
        return gradients
    if rule.single:
        return strip(gradients) if isinstance(gradients, Tensor) else gradients
    return tuple([strip(x) if isinstance(x, Tensor) else x for x in gradients])


def _timed(node: Node, saved: Any, g: Any, p: Pass) -> Any:
    """Run the rule of a node, and report its times to the observer, which takes times only."""
    observer, start = p.observers[0], perf_counter_ns()
    try:
        return node.rule.vjp(node.rule.xp, g, saved) if p.raw else _lifted(node, saved, g, p)
    finally:
        if observer.timed is not None and not observer.ended:
            observer.timed(node, start, perf_counter_ns(), None)


def _any_layer(values: tuple[Any, ...]) -> bool:
    return any(isinstance(x, Layer) or (type(x) is tuple and _any_layer(x)) for x in values)


def run_pass(roots: list[tuple[Node, Any]], p: Pass, name: str = "") -> None:
    """Run a pass for the function `name`: "backward", "grad", or "" for a transformation."""
    mode = gate.get()
    if mode is not True and mode.watch is not observe.NOTHING:
        p.observers = mode.watch.of(STEP)
        observe.call(PASS, None, name, (), (roots, p), lambda: _run_pass(mode, roots, p))
    else:
        _run_pass(mode, roots, p)


def _run_pass(mode: Any, roots: list[tuple[Node, Any]], p: Pass) -> None:
    """Run a pass in the grad mode that hooks rely on: on if the pass is recorded, else off."""
    if p.raw and any(isinstance(g, Layer) for _, g in roots):
        p.raw = False
    run = p.like._elem.run
    if p.targets is not None and p.needed is None and not p.accumulate_others and not p.every:
        p.needed = survey(roots, p.targets, p.leaves)
        if p.needed is not None:
            # an output that leads to no target keeps its graph
            roots = [root for root in roots if root[0] in p.needed]
    if run is not None or running() is not None:
        before = undo()
        try:
            (BASE if run is None else run.inner).turn(p.create_graph)
            _run_here(roots, p)
        finally:
            try:
                settle(before[0])
            except MemoryError:
                settle_again(before)
        return
    outer = current.get()
    try:  # a shorter way for the base level, which takes a third of the time
        try:
            if mode is not True or p.create_graph:
                BASE.turn(p.create_graph)
            else:
                gate.set(OFF)
            _run_here(roots, p)
        finally:
            try:
                enter_pass(outer)
            except MemoryError:
                observe.put_back(current, outer)
    finally:
        try:
            gate.set(mode)
        except MemoryError:
            observe.put_back(gate, mode)


def _run_here(roots: list[tuple[Node, Any]], p: Pass) -> None:
    p.roots = roots
    enter_pass(p)
    if watched:
        p.reached, due = reach(roots, p)
        p.groups = {}
        run(roots, p, due)
    else:
        run(roots, p)
