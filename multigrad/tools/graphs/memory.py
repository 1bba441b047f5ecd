"""Memory that a graph keeps for the backward pass, and checkpoint estimates: `memory_report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt
from typing import Any

from ...tracebacks import entry
from .drawing import counted, size
from .folding import described
from .model import Graph, SavedArray, Vertex, _raws, collect, itemsize, nbytes, tensors_of
from .provenance import Output, Site

ENABLE = "not recorded (run the forward pass within autograd.graph.record_lines())"


@dataclass(frozen=True, slots=True)
class Share:
    """The memory of all operations with one name, or on one source line.

    It is the bytes that these operations were the first to keep; `arrays` is the number of
    memories.
    """

    where: str
    nbytes: int
    arrays: int
    operations: int


@dataclass(frozen=True, slots=True)
class Kept:
    """One memory that the graph keeps, with the array saved first and all operations that keep it.

    kind  "leaf" (the memory of a leaf of this graph, which exists anyway), "constant" (an array
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
    """Estimated memory of the graph if it were cut into `segments`, each under func.checkpoint.

    The segments have about equal bytes. kept = between + largest. `between`: the results that one
    segment makes and a later one uses; they remain. `largest`: the memory of the segment that keeps
    most; it exists while that segment is recomputed. The forward pass of each segment runs twice.
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


@entry
def memory_report(tensor: Any, params: Any = None) -> MemoryReport:
    """Report the memory that the graph of a Tensor, or of several Tensors, keeps for backward.

    params  names of leaves: a dictionary of Tensors, nested or not, or a sequence of them

    Each memory is counted once, even if several operations keep it or views of it. Print the report
    for its tables. Source lines are known for operations recorded within `record_lines` or
    `detect_anomaly`. The report runs no hook and changes nothing.
    """
    tensors = tensors_of(tensor, "memory_report")
    return MemoryReport(collect(tensors, params))


class MemoryReport:
    """The result of `memory_report`.

    total          bytes that the graph keeps: leaves + constants + intermediates
    leaves         bytes in memories of its leaves, which exist anyway
    constants      bytes of arrays without a history, which the program may hold as well
    intermediates  bytes of results, kept for the backward pass only
    memories       all memories (Kept), the largest first
    by_operation   Shares by the name of the operation, the largest first; each memory belongs to
                   the operation that kept it first
    by_line        Shares by source line
    checkpointing  an estimate, see Checkpointing
    packed         the number of arrays packed by saved-tensor hooks; their memory is unknown

    For a checkpoint, the arguments that it keeps for recomputation are counted.
    """

    @entry
    def __init__(self, graph: Graph) -> None:
        self.operations = len(graph.operations)
        self.freed = sum(v.freed for v in graph.vertices)
        self.packed = 0
        memories = _Memories()
        own: dict[int, str | None] = {}  # for the memory of a leaf: its name
        for v in graph.leaves:
            leaf: Any = v.node.variable  # type: ignore[attr-defined]
            for x in _raws(leaf) if leaf is not None else ():
                own[memories.add(x)] = v.param or "leaf"
        users_of: dict[int, list[tuple[Vertex, SavedArray]]] = {}
        for v in graph.operations:
            for s in v.saved:
                self.packed += s.packed and not s.raw
                for x in s.raw:
                    users_of.setdefault(memories.add(x), []).append((v, s))
        sizes = memories.settle(users_of, own)
        merged: dict[int, list[tuple[Vertex, SavedArray]]] = {}
        for key, users in users_of.items():
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

    @entry
    def largest(self, n: int = 10) -> list[Kept]:
        """Return the `n` largest memories."""
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
                f"  {counted(self.packed, 'array')} held by saved-tensor hooks or by "
                "checkpoint, not counted"
            )
        if self.freed:
            lines.append(f"  {counted(self.freed, 'operation')} freed by a backward pass")
        for title, shares in (("by operation", self.by_operation), ("by line", self.by_line)):
            rows = [
                (s.where, size(s.nbytes), f"{s.arrays:,}", f"{s.operations:,}") for s in shares[:12]
            ]
            lines += ["", *_table((title, "bytes", "arrays", "operations"), rows)]
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
    users: list[tuple[Vertex, SavedArray]], nbytes_: int, leaves: dict[int, str | None], key: int
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
    entries: Sequence[tuple[Kept, list[tuple[Vertex, SavedArray]]]], name: Callable[[Vertex], str]
) -> list[Share]:
    counts: dict[str, list[tuple[int, int]]] = {}
    for kept, users in entries:
        v = users[0][0]
        counts.setdefault(name(v), []).append((kept.nbytes, v.number))
    shares = [
        Share(where, sum(n for n, _ in kept), len(kept), len({number for _, number in kept}))
        for where, kept in counts.items()
    ]
    return sorted(shares, key=lambda s: (-s.nbytes, s.where))


class _Memories:
    """The memories of arrays: arrays with one base, or with overlapping addresses, share one."""

    def __init__(self) -> None:
        self.keys: dict[Hashable, int] = {}
        self.bounds: list[tuple[int, int] | None] = []
        self.sizes: list[int] = []
        self.alive: list[Any] = []  # keeps each array alive, so that its id stays unique
        self.parent: list[int] = []
        self.known: dict[int, int] = {}

    def add(self, x: Any) -> int:
        """Return the number of an array's memory."""
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
        """Merge memories whose addresses overlap, and return the bytes of each memory."""
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
    """Return the array that owns the memory of `x`, if the library reports it; otherwise `x`."""
    base = getattr(x, "base", None)
    while base is not None and hasattr(base, "shape") and hasattr(base, "dtype"):
        x, base = base, getattr(base, "base", None)
    return x


def _bounds(x: Any) -> tuple[int, int] | None:
    """Return the first address of an array and the address after its last byte.

    None if the array is not in the memory of this machine.
    """
    import numpy as np

    try:
        a = x if isinstance(x, np.ndarray) else np.from_dlpack(x)
        return tuple(map(int, np.lib.array_utils.byte_bounds(a)))  # type: ignore[return-value]
    except Exception:
        # on another device, under a trace, or of a dtype unknown to NumPy: it has its own memory
        return None


def _checkpointing(graph: Graph, intermediates: list[tuple[int, int]]) -> Checkpointing:
    """Estimate checkpointing from (operation that kept it first, bytes) of each memory."""
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
    """Return the bytes of an operation's outputs, with `mean` for an output of unknown shape."""
    return sum(
        mean
        if o is None or o.shape is None or None in o.shape
        else prod(o.shape) * itemsize(o.dtype or "float64")
        for o in v.outputs
    )
