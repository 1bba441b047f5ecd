"""The graph of recorded operations: nodes, their saved values, and the check of their versions.

A node never holds a Tensor from which the node can be reached, so a graph is freed as soon as its
last result is dropped. A node keeps raw saved values, the version cells of the Tensors that they
came from, and its parents. A version cell is a list, shared by all Tensors on the same memory, with
the clock readings of the last in-place writes. One clock numbers nodes and writes, so a saved value
was changed if and only if the last write in its cell is younger than the node.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import locks
from ..errors import GradientError
from ..provided import wanted
from .level import Layer, alive, running

if TYPE_CHECKING:
    from .element import Library
    from .pullback import Pullback

Hooks = dict[int, Callable[..., Any]]

tick = count(1).__next__
"""The clock: returns increasing numbers for nodes and in-place writes."""


class Node:
    """One recorded operation; `grad_fn` of its result.

    seq     its number on the clock
    rule    the Pullback
    saved   the saved arguments of the pullback: the array if it is `alone`, else a tuple; None once
            freed
    cells   the version cells of saved arrays: one list, or a tuple of them
    next    the parent, or the tuple of parents if the pullback returns several gradients
    extra   hooks and metadata, or None; only the classes below have this slot
    noted   the notes of observers, by name; set when the first is made, see `notes`
    """

    __slots__ = ("__weakref__", "cells", "extra", "next", "noted", "rule", "saved", "seq")
    exchanged = False  # whether keepers, such as hooks, have saved arrays, see memory/saved.py
    hidden = False  # whether its Tensors are constants to users, and passes end at it
    seq: int
    rule: Pullback
    saved: Any
    cells: Any
    next: Any
    extra: Any
    noted: dict[str, Any]

    @property
    def library(self) -> Library:
        """The library of the saved arrays."""
        library: Library = self.rule.library
        return library

    def reached(self, roots: Sequence[tuple[Node, Any]]) -> None:
        """Handle a pass from these roots that arrives at a hidden node; may raise an error."""

    def name(self) -> str:
        """The name of the recorded operation, as `SinBackward`."""
        return backward_name(self.rule.op.name)

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that made the operands, each with the number of its output.

        The entry of a constant is (None, 0).
        """
        parents = iter(self.next if isinstance(self.next, tuple) else (self.next,))
        flags: list[bool] = []
        for need in self.rule.needs:
            flags += need if isinstance(need, tuple) else [need]
        return tuple(edge(next(parents)) if flag else (None, 0) for flag in flags)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's notes about this node.

        In anomaly mode it contains the stack of the call that made the node.
        """
        metadata = extra(self).metadata
        if hasattr(self, "noted"):
            for note in self.noted.values():
                if hasattr(note, "tell"):
                    note.tell(metadata)
        return metadata

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node has run.

        A tuple that it returns replaces `grad_inputs`, which has one entry for each of
        `next_functions`, None for a constant.
        """
        return RemovableHandle(extra(self).posthooks, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs.

        A tuple that it returns replaces `grad_outputs`.
        """
        return RemovableHandle(extra(self).prehooks, fn)

    def _sequence_nr(self) -> int:
        return self.seq

    @property
    def _input_metadata(self) -> tuple[OutputInfo, ...]:
        """Shape, dtype and device of each output, if the node knows them.

        A node knows those of a Tensor that get_gradient_edge or a hook noted. Raises RuntimeError
        if it does not know them.
        """
        if type(self) is AccumulateGrad:
            leaf = self.variable
            if leaf is not None:
                return (OutputInfo(tuple(leaf.shape), leaf.dtype, leaf.device),)
        elif isinstance(self, MultiNode):
            infos = [e.output[0] for _, e in sorted(self.outputs.items()) if e.output is not None]
            if len(infos) == len(self.picks):
                return tuple(infos)
        else:
            e = getattr(self, "extra", None)
            if e is not None and e.output is not None:
                return (e.output[0],)
            if "ans" in self.rule.plan and self.saved is not None:
                ans = show(self, "ans")
                return (OutputInfo(tuple(ans.shape), ans.dtype, ans.device),)
        raise RuntimeError(
            f"{self.name()} does not keep what its output is like. Ask get_gradient_edge(tensor), "
            "which notes it."
        )

    def __dir__(self) -> list[str]:
        rule = getattr(self, "rule", None)
        plan = () if rule is None else dict.fromkeys((*rule.op.arrays, *rule.plan))
        names = [n for n in object.__dir__(self) if not n.startswith(("_saved_", "_raw_saved_"))]
        return names + [f"_saved_{n}" for n in plan]

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


TRACEBACK = "traceback_"
"""The key of anomaly mode's note: the stack of the call of the operation."""


def notes(node: Node) -> dict[str, Any]:
    """The notes of observers about a node, by name; those with `tell(metadata)` add to metadata."""
    noted: dict[str, Any]
    try:
        noted = node.noted
    except AttributeError:
        node.noted = noted = {}
    return noted


def expose(names: Sequence[str]) -> None:
    """Give nodes `_saved_<name>`, a Tensor, and `_raw_saved_<name>`, which takes hooks."""
    for name in names:
        if not hasattr(Node, f"_saved_{name}"):
            setattr(Node, f"_saved_{name}", property(partial(_saved, name, False)))
            setattr(Node, f"_raw_saved_{name}", property(partial(_saved, name, True)))


def _saved(name: str, raw: bool, node: Node) -> Any:
    rule = getattr(node, "rule", None)
    if rule is None or (name not in rule.plan and name not in rule.op.arrays):
        raise AttributeError(
            f"'{node.name()}' object has no attribute '_{'raw_' * raw}saved_{name}'"
        )
    return show(node, name, raw)


@wanted
def show(node: Node, name: str, raw: bool = False) -> Any:
    """A value that `node` saved, by parameter of its rule; arrays as Tensors.

    raw  as an object that takes hooks

    Provided by memory/saved.py.
    """


class OutputInfo(NamedTuple):
    """Shape, dtype and device of an output of a node."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any


class HookedNode(Node):
    """A Node with hooks. Its first hook gives a node this class, so other nodes need no test."""

    __slots__ = ()


class MultiNode(Node):
    """A recorded operation with several outputs; it refers to their OutputNodes weakly."""

    __slots__ = ("outputs", "picks")
    picks: list[weakref.ref[OutputNode] | None]
    outputs: dict[int, NodeHooks]
    """The hooks of outputs.

    They outlive their OutputNodes, since the hook of an unused output is called with None.
    """

    def __init__(self, outputs: int) -> None:
        self.picks = [None] * outputs
        self.outputs = {}
        self.extra = None

    def pick(self, number: int) -> OutputNode:
        """The OutputNode of an output, made again if it is gone."""
        ref = self.picks[number]
        picked = ref() if ref is not None else None
        if picked is None:
            picked = OutputNode(self, number)
            self.picks[number] = weakref.ref(picked)
        return picked


class CustomNode(MultiNode):
    """The node of an autograd.Function, see custom/node.py.

    Users see its ctx instead, which has no other attributes than theirs. The ctx refers to the node
    weakly, and makes it again if it is gone.
    """

    __slots__ = ("ctx", "library")
    ctx: Any
    library: Library

    def name(self) -> str:
        return type(self.ctx).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        functions: tuple[tuple[Node | None, int], ...] = self.ctx.next_functions
        return functions


class OutputNode(Node):
    """One output of a MultiNode. Users see the MultiNode and the output's number."""

    __slots__ = ("number",)

    def __init__(self, node: MultiNode, number: int) -> None:
        self.seq = tick()  # younger than its node, so it runs first
        self.next = node
        self.saved = ()
        self.extra = node.outputs.get(number)
        self.number = number

    def name(self) -> str:
        name: str = self.next.name()
        return name


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds an arriving gradient to the leaf's gradient.

    It does not keep the leaf alive.
    """

    __slots__ = ("cell", "enabled", "tensor")

    def __init__(self, tensor: Any, cell: GradCell) -> None:
        self.seq = tick()
        self.next = ()
        self.saved = ()
        self.extra = None
        self.tensor = weakref.ref(tensor)
        self.cell = cell
        self.enabled = True

    def name(self) -> str:
        return "AccumulateGrad"

    @property
    def variable(self) -> Any:
        """The leaf, or None if it is gone."""
        return self.tensor()

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return ()


@dataclass(eq=False, repr=False, slots=True)
class GradCell:
    """Holds a gradient: of a leaf, or of a Tensor that retains it, to which it refers weakly."""

    grad: Any = None
    holder: weakref.ref[Any] | None = None


@dataclass(eq=False, repr=False, slots=True)
class NodeHooks:
    """Hooks and metadata of a node.

    hooks            of the Tensor that the node made
    retain           where that Tensor keeps its gradient
    prehooks         of the node itself, with the gradients of all its outputs
    posthooks        of the node itself, with the gradients of its operands, too
    post_accumulate  of a leaf
    output           the OutputInfo of the Tensor and a reference to it, if known
    metadata         the user's notes about the node
    """

    hooks: Hooks = field(default_factory=dict)
    prehooks: Hooks = field(default_factory=dict)
    posthooks: Hooks = field(default_factory=dict)
    post_accumulate: Hooks = field(default_factory=dict)
    retain: GradCell | None = None
    output: tuple[OutputInfo, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


_extending = locks.new_lock()

watched: set[Any] = set()
"""Weak references to leaves with hooks, and to nodes with hooks on several gradients.

A pass runs in PyTorch's order for them (see `backward.run.run`).
"""


def extra(node: Node) -> NodeHooks:
    """The NodeHooks of a node, made if it has none."""
    present: NodeHooks | None = getattr(node, "extra", None)
    if present is not None:
        return present
    hooks, kind = NodeHooks(), type(node)
    with _extending:
        if type(node) is OutputNode:
            hooks = node.next.outputs.setdefault(node.number, hooks)
        elif kind is AccumulateGrad:
            watch(node)
        # no call from here on, at which a signal handler could ask for the same node
        try:
            present = node.extra
        except AttributeError:
            present = None
        if present is None:
            node.extra = present = hooks
            if kind is Node:
                node.__class__ = HookedNode
    return present


def watch(node: Node) -> None:
    """Run passes in PyTorch's order from now on, as long as `node` lives."""
    watched.add(weakref.ref(node, watched.discard))


# Gradients that go along an edge


def added(a: Any, b: Any) -> Any:
    """The sum of two gradients or tangents.

    If one is a layer, its `+` is called: arrays of some libraries do not defer to other operands.
    """
    return b + a if isinstance(b, Layer) and not isinstance(a, Layer) else a + b


class GradientEdge(NamedTuple):
    """An output of a node: the place where a gradient arrives.

    `backward` and `grad` take it instead of the Tensor, which may then be dropped.

    An edge does not keep a leaf alive unless `ownership_token` holds it.
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


def arrival(e: GradientEdge) -> Node:
    """The node to which a gradient that arrives at this edge is delivered."""
    node = behind(e.node)
    return node.pick(e.output_nr) if isinstance(node, MultiNode) else node


def edge(node: Node) -> tuple[Node, int]:
    """A parent as users see it: (node, number of its output)."""
    if type(node) is not OutputNode:
        return node, 0
    return node.next.ctx if type(node.next) is CustomNode else node.next, node.number


def behind(shown: Any) -> Node:
    """The node behind an object that users see as a node."""
    node: Node = shown._node() if hasattr(shown, "_forward_cls") else shown
    return node


@cache
def backward_name(op_name: str) -> str:
    """`matrix_transpose` -> `MatrixTransposeBackward`."""
    if op_name in ("setitem", "copy_slices"):
        return "CopySlices"
    words = op_name.replace(".", "_").split("_")
    return "".join(w[:1].upper() + w[1:] for w in words) + "Backward"


class RemovableHandle:
    """Removes a hook: by `remove()`, as often as you like, or at the end of a `with` block."""

    def __init__(self, hooks: Hooks, hook: Callable[..., Any]) -> None:
        self.id = tick()
        self._hooks = hooks
        hooks[self.id] = hook
        if running() is not None:
            for run in alive():
                run.noted("hooks on Tensors or nodes run inside of it")

    def remove(self) -> None:
        """Remove the hook. Safe while it runs."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you "
    "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time or if you need to access saved tensors after calling "
    "backward."
)


def flat_cells(cells: Any) -> list[list[int]]:
    """The version cells of a node as a flat list."""
    if type(cells) is list:
        return [cells]
    return [c for nested in cells or () for c in flat_cells(nested)]


# The version cell of a memory


class Older(NamedTuple):
    """The entries that a version cell no longer lists, as its first entry.

    number  how many of them count as versions
    first   the time of the first one that counts
    last    the time of the last one that counts
    write   the time of the last one after which values that were saved before are gone
    """

    number: int
    first: int
    last: int
    write: int


KEPT, MOST = 64, 128
"""A version cell of more than MOST entries is shortened to KEPT."""

_shortening = locks.new_lock()


def note_change(cell: list[Any], counted: bool = True) -> None:
    """Note a change of the memory of this version cell after which saved values remain valid.

    Views are brought up to date as after a write. `counted`: it counts as a version.
    """
    cell.append(-2 * tick() - (not counted))
    if len(cell) > MOST:
        shorten(cell)


def shorten(cell: list[Any]) -> None:
    """Replace all but the last entries of a version cell by what is still needed of them."""
    with _shortening:
        dropped = cell[:-KEPT]
        if len(cell) <= MOST:  # another thread has done it
            return
        entries = list(map(_read, dropped))
        counted = [entry for entry in entries if entry[0]] or [(0, 0, 0, 0)]
        (numbers, firsts, lasts, _), (*_, writes) = zip(*counted), zip(*entries)
        older = Older(sum(numbers), min(firsts), max(lasts), max(writes))
        n, last = len(dropped), dropped[-1:]
        # a signal handler may have written to the memory meanwhile, and have done it
        if cell[n - 1 : n] == last:
            cell[:n] = [older]


def _read(entry: Any) -> tuple[int, int, int, int]:
    """What an entry of a version cell says, in the form of `Older`.

    It is an Older, the time t of a write, -2t for a change that counts, or -2t - 1 for one that
    does not.
    """
    if type(entry) is Older:
        return entry
    if entry > 0:
        return 1, entry, entry, entry
    time = -entry // 2
    return 1 - entry % 2, time, time, 0


def versions(cell: list[Any]) -> int:
    """The number of in-place writes to the memory, without those through `x.data`."""
    return sum(number for number, *_ in map(_read, cell))


def written_after(cell: list[Any], time: int) -> bool:
    """Whether the memory was written since, so that values which were saved before are gone."""
    if not cell or cell[-1] > time:  # also while another thread shortens it
        return bool(cell)
    return cell[-1] < 0 and any(write > time for *_, write in map(_read, cell))


def changed_after(cell: list[Any], time: int) -> bool:
    """Whether the memory has had another value since, though saved values may still be valid."""
    return any(number and last > time for number, _, last, _ in map(_read, cell))


def first_change(cell: list[Any]) -> int:
    """The time of the first change of a memory that has changed."""
    return next(first for number, first, *_ in map(_read, cell) if number)


def version_at(cell: list[Any], time: int) -> tuple[int, bool]:
    """The version of the memory at a time, and whether it is exact.

    It is not if the cell no longer lists the writes of that time. Then it is the first version
    that is certainly later.
    """
    count = 0
    for number, first, last, _ in map(_read, cell):
        if last < time:
            count += number
        elif first < time:
            return count + number, False
    return count, True


ENABLE = (
    "Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
    "with multigrad.autograd.set_detect_anomaly(True, check_nan=False)."
)
ALLOW = (
    "To let the graph keep the values that it saved, write within "
    "mg.autograd.graph.allow_mutation_on_saved_tensors()."
)


def modified(what: str, cell: list[int], seq: int, remedy: str = f" {ALLOW}") -> GradientError:
    """The error for a saved array that was written after the node with number `seq` had saved it.

    what  the description of the array
    """
    expected, exact = version_at(cell, seq)
    return GradientError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: {what} is at version {versions(cell)}; expected "
        f"{'' if exact else 'one before '}version {expected} instead. {ENABLE}{remedy}"
    )


def describe(library: Library, value: Any, node: Node | None) -> str:
    """Describe an array, as in `[numpy float64 [3]], which is output 0 of Add,`."""
    text = f"[{library.name} {value.dtype} {list(value.shape)}]"
    if node is None or type(node) is AccumulateGrad:
        return text
    parent, output = edge(node)
    return f"{text}, which is output {output} of {parent.name().removesuffix('Backward')},"
