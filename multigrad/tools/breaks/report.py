"""The report of `detect_breaks`: the lines on which gradients are lost. watch.py writes it."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any
from weakref import WeakKeyDictionary

from ... import locks
from ...core.graph import AccumulateGrad, CustomNode, MultiNode, Node, OutputNode
from ...core.tensor import Tensor
from ..graphs.model import named
from ..graphs.provenance import Site
from ..tables import counted

WHY = {
    "refused": "refused, since the gradient would be lost without a word. Use the functions of "
    "the namespace (x.__array_namespace__()), or detach() what is meant to be a "
    "constant",
    "number": "a Python number, or a list of them, which no gradient follows",
    "raw": "the library's own array, which no gradient follows",
    "detached": "a constant from here on, by request",
    "cast": "only floating dtypes have gradients",
    "index": "has no derivative (where its result only selects, what is selected keeps its "
    "gradient)",
    "comparison": "true or false, which has no derivative, is used as a value",
    "modified": "modified by the program before the backward pass, past multigrad: the gradient is "
    "that of the new values. Use a copy, or wrap it (mg.asarray) and write to the Tensor",
    "zero": "its gradient is 0 by rule, so nothing arrives at what comes before it",
    "no_grad": "not recorded, in no_grad or inference_mode, though an operand requires grad "
    "(intended, if this is an evaluation or an update)",
}
"""The explanation of each kind of break."""

VERBS = {
    "refused": "stopped",
    "number": "read",
    "raw": "read",
    "detached": "detached",
    "comparison": "compared",
    "modified": "saved, and the array modified,",
    "no_grad": "not recorded, used",
}
"""What each kind of break does to a leaf; the others make it constant."""


def times(n: int) -> str:
    """Return ` (× 3)`, or nothing for a single time."""
    return f" (× {n:,})" if n > 1 else ""


@dataclass(slots=True, eq=False)
class Break:
    """One line of a program on which a gradient is lost.

    kind   a key of WHY: "refused", "number", "raw", "detached", "cast", "index", "comparison",
           "modified", "zero", "no_grad"
    what   the call on that line: `float()`, `.detach()`, `astype to int64`, `argmax`
    site   file, line and function
    count  how often the gradient was lost there
    """

    kind: str
    what: str
    site: Site
    count: int = 0

    @property
    def why(self) -> str:
        """The explanation of this kind of break, in words."""
        return WHY[self.kind]

    @property
    def source(self) -> str:
        """The source text of the line, "" if it cannot be read."""
        return linecache.getline(self.site.file, self.site.line).strip()

    def __str__(self) -> str:
        text = f"{self.site}: {self.what}: {self.why}{times(self.count)}"
        return f"{text}\n    {self.source}" if self.source else text


@dataclass(slots=True, eq=False)
class LeafRecord:
    """The record of a leaf that requires grad.

    made     the line that made it, None if it existed before
    used     the line that used it first
    reached  whether a backward pass could reach it, or a transformation took the derivative with
             respect to it
    breaks   the breaks that lost its gradient
    facts    other events of the leaf, or of values computed from it
    stands   for a leaf of a transformation: the leaves that it replaces
    """

    shape: tuple[int, ...]
    made: Site | None = None
    used: Site | None = None
    reached: bool = False
    breaks: dict[Break, None] = field(default_factory=dict)
    facts: dict[str, None] = field(default_factory=dict)
    stands: frozenset[LeafRecord] = frozenset()

    def why(self) -> str:
        """Return the events that may have kept this leaf from reaching the loss, as text."""
        causes = [
            f"{VERBS.get(b.kind, 'made constant')} by {b.what} at {b.site}" for b in self.breaks
        ]
        facts = list(dict.fromkeys([*causes, *self.facts]))
        if facts:
            return "; ".join(facts[:4])
        if self.used is not None:
            return (
                f"used at {self.used}, but, as far as can be seen, nothing that was "
                "computed from it went into the loss"
            )
        return (
            "never used since it requires grad" if self.made is not None else "never used meanwhile"
        )


@dataclass(frozen=True, slots=True)
class Unreached:
    """A parameter that did not reach the loss, the explanation in words, and its breaks."""

    name: str
    why: str
    breaks: tuple[Break, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


class BreakReport:
    """The result of `detect_breaks`, in order of the events.

    Print it, iterate over it, or read `breaks`.

    passes  the number of backward passes, of `backward` and `autograd.grad`; passes of
            transformations do not count
    """

    def __init__(self) -> None:
        self.passes = 0
        self._lock = locks.new_lock()
        self._breaks: dict[tuple[str, str, Site], Break] = {}
        self._leaves: WeakKeyDictionary[Node, LeafRecord] = WeakKeyDictionary()
        self._made: list[LeafRecord] = []
        self._behind: WeakKeyDictionary[Node, frozenset[LeafRecord]] = WeakKeyDictionary()
        self._arrived: WeakKeyDictionary[Any, tuple[bool, ...]] = WeakKeyDictionary()

    @property
    def breaks(self) -> list[Break]:
        """The lines on which a gradient is lost, each line and cause once."""
        with self._lock:
            return list(self._breaks.values())

    def __iter__(self) -> Iterator[Break]:
        return iter(self.breaks)

    def __len__(self) -> int:
        return len(self._breaks)

    def of(self, *kinds: str) -> list[Break]:
        """Return the breaks of the given kinds. Raises ValueError for an unknown kind."""
        unknown = set(kinds) - set(WHY)
        if unknown:
            raise ValueError(
                f"unknown kind of break {sorted(unknown)[0]!r}; there are {', '.join(WHY)}"
            )
        return [b for b in self.breaks if b.kind in kinds]

    def unreached(self, loss: Any, params: Any) -> list[Unreached]:
        """Return the parameters on which `loss` does not depend, with the reasons.

        loss    a Tensor, or a sequence of Tensors
        params  a dictionary of Tensors, nested or not, or a sequence of Tensors
        """
        roots = [loss] if isinstance(loss, Tensor) else list(loss)
        with self._lock:
            arrived = self.leaves(t._node for t in roots if isinstance(t, Tensor))
        unreached = []
        for name, t in named(params):
            node = t._node
            if node is None:
                unreached.append(Unreached(name, "does not require grad", ()))
            elif type(node) is AccumulateGrad:
                leaf = self.leaf(node)
                if leaf not in arrived:
                    unreached.append(Unreached(name, leaf.why(), tuple(leaf.breaks)))
            elif not arrived & self.behind(node):
                why = "is no leaf, and what it was made of did not reach the loss either"
                unreached.append(Unreached(name, why, ()))
        return unreached

    @property
    def unreached_leaves(self) -> list[LeafRecord]:
        """The leaves made within the context that no backward pass could reach.

        The list is empty if there was no backward pass.
        """
        with self._lock:
            return [leaf for leaf in self._made if not leaf.reached] if self.passes else []

    def __str__(self) -> str:
        lines = [*map(str, self.breaks)]
        places = f"{len(lines)} place{'s' * (len(lines) > 1)}"
        lines.insert(0, f"A gradient is lost in {places}:" if lines else "No gradient was lost.")
        leaves = self.unreached_leaves
        if leaves:
            what = counted(len(leaves), "leaf that requires", "leaves that require")
            counts = Counter(
                f"{leaf.made}: leaf of shape {leaf.shape}: {leaf.why()}" for leaf in leaves
            )
            lines += ["", f"{what} grad reached no loss:"]
            lines += [text + times(n) for text, n in list(counts.items())[:200]]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<BreakReport: {len(self)} places>"

    # Interface for the observer

    def add(self, kind: str, what: str, where: Site, leaves: Iterable[LeafRecord]) -> None:
        """Record one break of a value computed from these leaves."""
        with self._lock:
            place = self._breaks.setdefault((kind, what, where), Break(kind, what, where))
            place.count += 1
            for leaf in leaves:
                leaf.breaks.setdefault(place)

    def tell(self, leaves: Iterable[LeafRecord], fact: str) -> None:
        """Record another event of a value computed from these leaves."""
        with self._lock:
            for leaf in leaves:
                leaf.facts.setdefault(fact)

    def leaf(self, node: AccumulateGrad) -> LeafRecord:
        with self._lock:
            leaf = self._leaves.get(node)
            if leaf is None:
                t = node.variable
                leaf = self._leaves[node] = LeafRecord(() if t is None else tuple(t.shape))
            return leaf

    def made(self, node: AccumulateGrad, where: Site | None) -> None:
        """Record the line that made a leaf."""
        leaf = self.leaf(node)
        with self._lock:
            if leaf.made is None:
                leaf.made = where
                self._made.append(leaf)

    def stands_for(self, node: AccumulateGrad, nodes: Iterable[Node | None]) -> None:
        """Record that this leaf of a transformation replaces the leaves behind `nodes`."""
        with self._lock:
            self.leaf(node).stands = self.leaves(n for n in nodes if type(n) is AccumulateGrad)

    def given(self, ctx: Any, arrived: Sequence[bool]) -> None:
        """Record to which operands a Function gave a gradient in a backward pass."""
        with self._lock:
            before = self._arrived.get(ctx)
            if before is None and all(arrived):
                return
            # the Function may lie between a node and the cached leaves behind the node
            self._behind.clear()
            both = zip(before or arrived, arrived, strict=True)
            self._arrived[ctx] = tuple(a or b for a, b in both)
            for node, had in zip(ctx._next, arrived, strict=True):
                if not had:
                    self.tell(self.behind(node), f"given no gradient by {ctx.name()}")

    def passed(self, roots: Sequence[Node], counts: bool) -> None:
        """Record a backward pass from these nodes. `counts`: it is not part of a transformation."""
        with self._lock:
            self.passes += counts
            for leaf in self.leaves(roots):
                leaf.reached = True

    def leaves(self, nodes: Iterable[Node | None]) -> frozenset[LeafRecord]:
        """Return the leaves that a gradient from any of these nodes would reach."""
        return frozenset().union(*(self.behind(n) for n in nodes if n is not None))

    def behind(self, node: Node) -> frozenset[LeafRecord]:
        """Return the leaves that a gradient from this node would reach.

        Results are cached, so each part of the graph is walked once.
        """
        with self._lock:
            leaves: set[LeafRecord] = set()
            seen: set[Node] = set()
            stack = [node]
            while stack:
                n = stack.pop()
                if n in seen:
                    continue
                seen.add(n)
                if n in self._behind:
                    leaves |= self._behind[n]
                elif type(n) is AccumulateGrad:
                    leaf = self.leaf(n)
                    leaves |= {leaf, *leaf.stands}
                elif type(n) is CustomNode and n.ctx in self._arrived:
                    stack += compress(n.next, self._arrived[n.ctx])
                else:
                    stack += n.next if isinstance(n.next, tuple) else (n.next,)
            result = frozenset(leaves)
            # an OutputNode may be a temporary object
            if not isinstance(node, (OutputNode, MultiNode, AccumulateGrad)):
                self._behind[node] = result
            return result
