"""What a graph keeps in memory for the backward pass, where, and what checkpointing would save:
`memory_report`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt
from typing import Any

from .drawing import counted, size
from .folding import described
from .model import Graph, Saved, Vertex, _raws, collect, itemsize, nbytes, tensors_of
from .provenance import Output, Site

ENABLE = "not recorded (run the forward pass within autograd.graph.record_lines())"


@dataclass(frozen=True, slots=True)
class Share:
    """The bytes that operations of one name, or on one line, were the first to keep; `arrays` is
    how many memories that are.
    """

    where: str
    nbytes: int
    arrays: int
    operations: int


@dataclass(frozen=True, slots=True)
class Kept:
    """One memory that the graph keeps: by the array that was kept first, and all operations that
    keep it or a part of it.

    kind  "leaf" (the memory of a leaf of this graph, which is kept anyway), "constant" (an array
          without a history: data, a mask, an index; the program may hold it, too) or "intermediate"
          (a result, kept for the backward pass only)
    """

    nbytes: int
    shape: tuple[int, ...] | None
    dtype: str | None
    name: str
    operations: tuple[str, ...]
    site: Site | None
    kind: str
    param: str | None


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """What would be kept if the graph were cut into `segments` of about equal bytes, each run under
    func.checkpoint. An estimate.

    kept = between + largest. `between`: the results that one segment makes and a later one uses,
    which stay; `largest`: what the segment that keeps most keeps, which is there while it is
    computed again. The forward pass of each segment runs twice.
    """

    segments: int
    between: int
    largest: int
    now: int

    @property
    def kept(self) -> int:
        return min(self.now, self.between + self.largest)

    @property
    def saved(self) -> int:
        return self.now - self.kept


def memory_report(tensor: Any, params: Any = None) -> MemoryReport:
    """Tell what the graph of a Tensor, or of several, keeps in memory for the backward pass.

    params  names of leaves: a dictionary of Tensors, nested or not, or a sequence of them

    Each memory is counted once, whoever keeps it, views of it included. Print the report for its
    tables. Lines are known of what was recorded within `record_lines` or `detect_anomaly`. Looking
    runs no hook, and changes nothing.
    """
    tensors = tensors_of(tensor, "memory_report")
    return MemoryReport(collect(tensors, params))


class MemoryReport:
    """See `memory_report`.

    total          bytes that the graph keeps: leaves + constants + intermediates
    leaves         of these, those of its leaves, which are kept anyway
    constants      those of arrays without a history, which the program may hold as well
    intermediates  those of results, kept for the backward pass only
    memories       all memories (Kept), the largest first
    by_operation   Shares by the name of the operation, the largest first; each memory belongs to
                   the operation that kept it first
    by_line        Shares by source line
    checkpointing  an estimate, see Checkpointing
    packed         how many arrays are in the hands of saved-tensor hooks, which alone know what
                   they keep

    Of what a checkpoint computes again, the arguments that it keeps for that are counted.
    """

    def __init__(self, graph: Graph) -> None:
        self.operations = len(graph.operations)
        self.freed = sum(v.freed for v in graph.vertices)
        self.packed = 0
        memories = _Memories()
        own: dict[int, str | None] = {}  # of the memory of a leaf, its name
        for v in graph.leaves:
            leaf: Any = v.node.variable  # type: ignore[attr-defined]
            for x in _raws(leaf) if leaf is not None else ():
                own[memories.add(x)] = v.param or "leaf"
        found: dict[int, list[tuple[Vertex, Saved]]] = {}
        for v in graph.operations:
            for s in v.saved:
                self.packed += s.packed and not s.raw
                for x in s.raw:
                    found.setdefault(memories.add(x), []).append((v, s))
        sizes = memories.settle(found, own)
        merged: dict[int, list[tuple[Vertex, Saved]]] = {}
        for key, users in found.items():
            merged.setdefault(memories.root(key), []).extend(users)
        named = {memories.root(key): name for key, name in own.items()}
        entries = [(_kept(users, sizes[key], named, key), users) for key, users in merged.items()]
        self.memories = sorted((kept for kept, _ in entries), key=lambda k: -k.nbytes)
        self.leaves, self.constants, self.intermediates = (
            sum(k.nbytes for k in self.memories if k.kind == kind)
            for kind in ("leaf", "constant", "intermediate")
        )
        self.total = self.leaves + self.constants + self.intermediates
        self.leaf_bytes = sum(nbytes(x) for v in graph.leaves for x in _raws(v.node.variable))  # type: ignore[attr-defined, misc]
        self.by_operation = _shares(entries, lambda v: v.name)
        self.by_line = _shares(entries, lambda v: str(v.site) if v.site else ENABLE)
        self.checkpointing = _checkpointing(
            graph,
            [(users[0][0].number, k.nbytes) for k, users in entries if k.kind == "intermediate"],
        )

    def largest(self, n: int = 10) -> list[Kept]:
        """The memories that take most."""
        return self.memories[:n]

    def __str__(self) -> str:
        c = self.checkpointing
        what = (
            f"{size(self.total)} in {counted(len(self.memories), 'array')}, by "
            f"{counted(self.operations, 'operation')}"
        )
        lines = [
            f"Kept for the backward pass: {what}",
            f"  results, for the backward pass only {size(self.intermediates):>12}",
            f"  constants (data, masks, indices)    {size(self.constants):>12}",
            f"  leaves, kept anyway                 {size(self.leaves):>12}   (all leaves of "
            f"this graph: {size(self.leaf_bytes)})",
        ]
        if self.packed:
            lines.append(
                f"  {counted(self.packed, 'array')} in the hands of saved-tensor hooks or of "
                "checkpoint, not counted"
            )
        if self.freed:
            lines.append(f"  {counted(self.freed, 'operation')} freed by a backward pass")
        lines += [
            "",
            *_table(
                ("by operation", "bytes", "arrays", "operations"),
                [
                    (s.where, size(s.nbytes), f"{s.arrays:,}", f"{s.operations:,}")
                    for s in self.by_operation[:12]
                ],
            ),
        ]
        lines += [
            "",
            *_table(
                ("by line", "bytes", "arrays", "operations"),
                [
                    (s.where, size(s.nbytes), f"{s.arrays:,}", f"{s.operations:,}")
                    for s in self.by_line[:12]
                ],
            ),
        ]
        alike = Counter(
            (described(Output(k.shape, k.dtype)), k.nbytes, k.param or k.kind, _users(k))
            for k in self.memories
        )
        lines += [
            "",
            *_table(
                ("largest", "bytes", "how many", "what", "kept by"),
                [
                    (shape, size(n), f"{times:,}", what, users)
                    for (shape, n, what, users), times in list(alike.items())[:8]
                ],
            ),
        ]
        lines += [
            "",
            f"With checkpoint in {counted(c.segments, 'segment')} of about equal bytes, about "
            f"{size(c.kept)} of {size(c.now)} in results would be kept, {size(c.saved)} less:",
            f"  {size(c.between)} of results that pass from one segment to a later one + "
            f"{size(c.largest)} of the segment that keeps most.",
            "  segments = ceil(sqrt(operations)); the forward pass runs twice. An estimate.",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<MemoryReport: {size(self.total)} kept by {counted(self.operations, 'operation')}>"


def _users(k: Kept) -> str:
    names = list(dict.fromkeys(k.operations))
    text = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return text + (f" at {k.site.short}" if k.site else "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    numeric = [
        i > 0 and name in ("bytes", "arrays", "operations", "how many")
        for i, name in enumerate(head)
    ]
    text = [
        "  ".join(
            c.rjust(w) if right else c.ljust(w)
            for c, w, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    ]
    return [text[0], "-" * len(text[0]), *text[1:]]


def _kept(
    users: list[tuple[Vertex, Saved]], nbytes_: int, leaves: dict[int, str | None], key: int
) -> Kept:
    v, s = users[0]
    kind = (
        "leaf"
        if key in leaves
        else "intermediate"
        if any(s.origin in ("input", "output") for _, s in users)
        else "constant"
    )
    return Kept(
        nbytes_,
        s.shape,
        s.dtype,
        s.name,
        tuple(v.name for v, _ in users),
        v.site,
        kind,
        leaves.get(key),
    )


def _shares(
    entries: Sequence[tuple[Kept, list[tuple[Vertex, Saved]]]], name: Callable[[Vertex], str]
) -> list[Share]:
    found: dict[str, list[tuple[int, int]]] = {}
    for kept, users in entries:
        v = users[0][0]
        found.setdefault(name(v), []).append((kept.nbytes, v.number))
    shares = [
        Share(where, sum(n for n, _ in kept), len(kept), len({number for _, number in kept}))
        for where, kept in found.items()
    ]
    return sorted(shares, key=lambda s: (-s.nbytes, s.where))


class _Memories:
    """Which arrays lie in one memory: those on one base, and those whose addresses overlap."""

    def __init__(self) -> None:
        self.keys: dict[Hashable, int] = {}
        self.bounds: list[tuple[int, int] | None] = []
        self.sizes: list[int] = []
        self.alive: list[Any] = []  # as long as an id is to mean one array
        self.parent: list[int] = []
        self.known: dict[int, int] = {}

    def add(self, x: Any) -> int:
        """The number of the memory of an array."""
        seen = self.known.get(id(x))
        if seen is not None:
            return seen
        base = _base(x)
        key = self.keys.setdefault(id(base), len(self.sizes))
        if key == len(self.sizes):
            self.sizes.append(nbytes(base))
            self.bounds.append(_bounds(base))
            self.parent.append(key)
            self.alive.append(base)
        self.known[id(x)] = key
        self.alive.append(x)
        return key

    def root(self, key: int) -> int:
        while self.parent[key] != key:
            key = self.parent[key]
        return key

    def settle(self, *wanted: Iterable[int]) -> dict[int, int]:
        """The bytes of each memory, after those whose addresses overlap were found to be one."""
        spans = sorted(
            (b[0], b[1], key) for key, b in enumerate(self.bounds) if b is not None and b[0] < b[1]
        )
        sizes = dict(enumerate(self.sizes))
        start = end = last = -1
        for low, high, key in spans:
            if low < end:
                self.parent[key] = last
                end = max(end, high)
            else:
                start, end, last = low, high, key
            sizes[last] = (
                max(
                    self.sizes[last],
                    self.sizes[key],
                    min(end - start, sizes[last] + self.sizes[key]),
                )
                if key != last
                else self.sizes[key]
            )
        return sizes


def _base(x: Any) -> Any:
    """The array that owns the memory of `x`, where the library tells."""
    base = getattr(x, "base", None)
    while base is not None and hasattr(base, "shape") and hasattr(base, "dtype"):
        x, base = base, getattr(base, "base", None)
    return x


def _bounds(x: Any) -> tuple[int, int] | None:
    """The addresses of the first byte and of that behind the last one, where the array lies in the
    memory of this machine.
    """
    import numpy as np

    try:
        a = x if isinstance(x, np.ndarray) else np.from_dlpack(x)
        return tuple(map(int, np.lib.array_utils.byte_bounds(a)))  # type: ignore[return-value]
    except Exception:
        # on another device, under a trace, of a dtype that NumPy does not know: an array of its own
        return None


def _checkpointing(graph: Graph, intermediates: list[tuple[int, int]]) -> Checkpointing:
    """`intermediates`: of each memory the operation that kept it first, and its bytes."""
    operations = graph.operations
    now = sum(n for _, n in intermediates)
    segments = max(1, ceil(sqrt(len(operations))))
    if not operations or not now:
        return Checkpointing(segments, 0, 0, now)
    own: dict[int, int] = {}
    for number, n in intermediates:
        own[number] = own.get(number, 0) + n
    segment: dict[int, int] = {}
    total = 0
    for v in operations:
        total += own.get(v.number, 0)
        segment[v.number] = min(segments - 1, max(0, ceil(total * segments / now) - 1))
    kept = [0] * segments
    for number, n in own.items():
        kept[segment[number]] += n
    mean = now // max(1, len(intermediates))
    between = sum(
        _passing(v, mean)
        for v in operations
        if any(segment[c] > segment[v.number] for c in graph.children[v.number])
    )
    return Checkpointing(segments, between, max(kept), now)


def _passing(v: Vertex, mean: int) -> int:
    """The bytes of the outputs of an operation; the mean of what is saved where they are not
    known.
    """
    return sum(
        mean
        if o is None or o.shape is None or None in o.shape
        else prod(o.shape) * itemsize(o.dtype or "float64")
        for o in v.outputs
    )
