"""Memory that a graph keeps for the backward pass, and checkpoint estimates: `memory_report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt
from typing import Any

from ...tracebacks import entry
from ..profiler.memory import arrays
from ..tables import aligned, counted, size
from .folding import described
from .model import Graph, SavedArray, Vertex, collect, itemsize, nbytes, tensors_of
from .provenance import Site

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
        self.packed = sum(s.packed and not s.raw for v in graph.operations for s in v.saved)
        leaves = [
            (v, x)
            for v in graph.leaves
            for x in arrays(v.node.variable)  # type: ignore[attr-defined]
        ]
        uses = [(v, s, x) for v in graph.operations for s in v.saved for x in s.raw]
        memory_of, sizes = _memories([*(x for _, x in leaves), *(x for *_, x in uses)])
        names = {memory_of[id(x)]: v.param or "leaf" for v, x in leaves}
        users: dict[int, list[tuple[Vertex, SavedArray]]] = {}
        for v, s, x in uses:
            users.setdefault(memory_of[id(x)], []).append((v, s))
        entries = [
            (_kept(pairs, sizes[memory], names.get(memory)), pairs[0][0])
            for memory, pairs in users.items()
        ]
        self.memories = sorted((memory for memory, _ in entries), key=lambda m: -m.nbytes)
        self.leaves, self.constants, self.intermediates = (
            sum(m.nbytes for m in self.memories if m.kind == kind)
            for kind in ("leaf", "constant", "intermediate")
        )
        self.total = self.leaves + self.constants + self.intermediates
        self.leaf_bytes = sum(nbytes(x) for _, x in leaves)
        self.by_operation = _shares(entries, lambda v: v.name)
        self.by_line = _shares(entries, lambda v: str(v.site) if v.site else ENABLE)
        self.checkpointing = _checkpointing(
            graph, [(v.number, m.nbytes) for m, v in entries if m.kind == "intermediate"]
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
            lines += _table((title, "bytes", "arrays", "operations"), rows, {1, 2, 3})
        alike = Counter(
            (described(k), size(k.nbytes), k.param or k.kind, _users(k)) for k in self.memories
        )
        largest = [
            (shape, total, f"{times:,}", what, users)
            for (shape, total, what, users), times in list(alike.items())[:8]
        ]
        lines += _table(("largest", "bytes", "how many", "what", "kept by"), largest, {1, 2})
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


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int]) -> list[str]:
    title, *lines = aligned([head, *rows], right)
    return ["", title, "-" * len(title), *lines]


def _kept(users: list[tuple[Vertex, SavedArray]], size: int, leaf: str | None) -> Kept:
    v, s = users[0]
    kind = "constant"
    if leaf is not None:
        kind = "leaf"
    elif any(s.origin in ("input", "output") for _, s in users):
        kind = "intermediate"
    names = tuple(v.name for v, _ in users)
    return Kept(size, s.shape, s.dtype, s.name, names, v.site, kind, leaf)


def _shares(entries: Sequence[tuple[Kept, Vertex]], name: Callable[[Vertex], str]) -> list[Share]:
    """Return the memories by a name of the operation that kept them first."""
    groups: dict[str, list[tuple[Kept, Vertex]]] = {}
    for memory, v in entries:
        groups.setdefault(name(v), []).append((memory, v))
    shares = [
        Share(where, sum(m.nbytes for m, _ in group), len(group), len({v.number for _, v in group}))
        for where, group in groups.items()
    ]
    return sorted(shares, key=lambda s: (-s.nbytes, s.where))


def _memories(raws: Iterable[Any]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the memory of each array, by the array's id, and the bytes of each memory.

    Arrays with one base, or with overlapping addresses, share a memory.
    """
    bases = {id(x): _base(x) for x in raws}
    memories = {id(base): base for base in bases.values()}
    sizes = {key: nbytes(base) for key, base in memories.items()}
    shared = {key: key for key in memories}
    spans = [(b, key) for key, x in memories.items() if (b := _bounds(x)) and b[0] < b[1]]
    start = end = last = -1
    for (low, high), key in sorted(spans):
        if low < end:
            shared[key] = last
            end = max(end, high)
            sizes[last] = max(sizes[last], sizes[key], min(end - start, sizes[last] + sizes[key]))
        else:
            start, end, last = low, high, key
    return {x: shared[id(base)] for x, base in bases.items()}, sizes


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
    if not now:
        return Checkpointing(segments, 0, 0, now)
    bytes_of: Counter[int] = Counter()
    for number, n in intermediates:
        bytes_of[number] += n
    segment: dict[int, int] = {}
    kept = [0] * segments
    total = 0
    for v in operations:
        total += bytes_of[v.number]
        segment[v.number] = min(segments - 1, max(0, ceil(total * segments / now) - 1))
        kept[segment[v.number]] += bytes_of[v.number]
    mean = now // len(intermediates)
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
