"""The graph of recorded operations: nodes, what they save, and the check that it was not changed since.

A node never holds a Tensor that it could be reached from, so a graph is freed as soon as its last result is dropped.
It keeps raw saved values, the version cells of the Tensors they came from, and its parents. A version cell is a list,
shared by all Tensors on the same memory, with the clock reading of each in-place write; its length is the version.
Nodes and writes are numbered by one clock, so a saved value was changed exactly if its cell's last entry is younger
than the node.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from ..errors import GradientError

if TYPE_CHECKING:
    from .element import Host
    from .rules import Pullback
    from .tensor import Tensor

tick = count(1).__next__
"""The clock: numbers nodes and in-place writes, growing."""

last_write = [0]
"""The clock reading of the last in-place write anywhere: if a node is younger, nothing that it saved has changed."""


class Node:
    """One recorded operation; `grad_fn` of its result.

    seq     its number on the clock
    rule    the Pullback
    saved   what the pullback takes, None once freed
    cells   the version cells of saved arrays: one list, or a tuple of them
    next    the parent, or the tuple of parents if the pullback returns several gradients
    host    whose library the saved arrays are of
    extra   hooks and metadata; set only on nodes of the class HookedNode
    """

    __slots__ = ("__weakref__", "cells", "extra", "host", "next", "rule", "saved", "seq")
    seq: int
    rule: Pullback
    saved: tuple[Any, ...] | None
    cells: Any
    next: Any
    host: Host
    extra: Extra

    def name(self) -> str:
        """The name of the operation that was recorded, as `SinBackward`."""
        return backward_name(self.rule.op.name)

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that made the operands, each with the number of its output; (None, 0) for a constant."""
        wanted = iter(self.next if isinstance(self.next, tuple) else (self.next,))
        flags: list[bool] = []
        for need in self.rule.needs:
            flags += need if isinstance(need, tuple) else [need]
        return tuple(edge(next(wanted)) if flag else (None, 0) for flag in flags)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes about this node."""
        return extra(self).metadata

    def _sequence_nr(self) -> int:
        return self.seq

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class HookedNode(Node):
    """A Node with hooks. A node becomes one when its first hook is registered, so that others need not look for any."""

    __slots__ = ()


class MultiNode(Node):
    """A recorded operation with several outputs; each has a Pick in front of it, held weakly."""

    __slots__ = ("picks",)
    picks: list[weakref.ref[Pick] | None]

    def pick(self, number: int) -> Pick:
        """The Pick of an output, made anew if nobody holds it any more."""
        ref = self.picks[number]
        found = ref() if ref is not None else None
        if found is None:
            found = Pick(self, number)
            self.picks[number] = weakref.ref(found)
        return found


class Pick(Node):
    """One output of a MultiNode. Users see the MultiNode and the output's number."""

    __slots__ = ("number",)

    def __init__(self, node: MultiNode, number: int) -> None:
        self.seq = tick()  # younger than its node, so it runs before
        self.next = node
        self.saved = ()
        self.extra = Extra()
        self.number = number

    def name(self) -> str:
        name: str = self.next.name()
        return name


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives to the leaf's gradient. It does not keep the leaf alive."""

    __slots__ = ("cell", "enabled", "tensor")

    def __init__(self, tensor: Tensor, cell: GradCell) -> None:
        self.seq = tick()
        self.next = ()
        self.saved = ()
        self.extra = Extra()
        self.tensor = weakref.ref(tensor)
        self.cell = cell
        self.enabled = True

    def name(self) -> str:
        return "AccumulateGrad"

    @property
    def variable(self) -> Tensor | None:
        """The leaf, or None if it is gone."""
        return self.tensor()

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return ()


class GradCell:
    """Holds a gradient: of a leaf, or of a Tensor that retains it, which it knows weakly."""

    __slots__ = ("grad", "holder")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.holder: weakref.ref[Tensor] | None = None


class Extra:
    """Hooks and metadata of a node."""

    __slots__ = ("hooks", "metadata", "post_accumulate", "retain")

    def __init__(self) -> None:
        self.hooks: dict[int, Callable[..., Any]] = {}
        self.post_accumulate: dict[int, Callable[..., Any]] = {}
        self.retain: GradCell | None = None
        self.metadata: dict[str, Any] = {}


def extra(node: Node) -> Extra:
    """The hooks of a node, which has room for them from now on."""
    kind = type(node)
    if kind is Node:
        node.extra = Extra()
        node.__class__ = HookedNode
    return node.extra


def edge(node: Node) -> tuple[Node, int]:
    """A parent as users see it: the node and the number of its output."""
    return (node.next, node.number) if type(node) is Pick else (node, 0)


_names: dict[str, str] = {}


def backward_name(op_name: str) -> str:
    """`matrix_transpose` -> `MatrixTransposeBackward`."""
    if op_name == "setitem":
        return "CopySlices"
    name = _names.get(op_name)
    if name is None:
        name = _names[op_name] = "".join(w[:1].upper() + w[1:] for w in op_name.replace(".", "_").split("_")) + "Backward"
    return name


class RemovableHandle:
    """Removes a hook: by `remove()`, as often as you like, or at the end of a `with` block."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self.id = tick()
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Remove the hook. Safe while it runs."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


FREED = ("Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved "
         "intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
         "backward through the graph a second time or if you need to access saved tensors after calling backward.")


def flat_cells(cells: Any) -> list[list[int]]:
    """The version cells of a node, whatever their nesting."""
    if type(cells) is list:
        return [cells]
    return [c for nested in cells or () for c in flat_cells(nested)]


def check_versions(node: Node) -> None:
    """Raise if an array that `node` saved was modified in place since."""
    for cell in flat_cells(node.cells):
        if cell and cell[-1] > node.seq:
            expected = sum(1 for written in cell if written < node.seq)
            raise GradientError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{_describe(node, cell)} is at version {len(cell)}; expected version {expected} instead. Hint: enable anomaly detection to "
                "find the operation that failed to compute its gradient, with multigrad.autograd.set_detect_anomaly(True, check_nan=False).")


def _describe(node: Node, cell: list[int]) -> str:
    """The changed array as `[numpy float64 [3]], which is output 0 of Add,`."""
    tracked = [i for i, source in enumerate(node.rule.sources) if source is not None]
    cells = [node.cells] if type(node.cells) is list else node.cells
    found = [i for i, nested in zip(tracked, cells, strict=False) if any(c is cell for c in flat_cells(nested))]
    if not found:  # an array inside an indexing key: their cells follow the others
        return f"an index array of {node.name()}"
    i = found[0]
    value, source = (node.saved or ())[i], node.rule.sources[i]
    text = f"[{node.host.name} {value.dtype} {list(value.shape)}]" if hasattr(value, "shape") else f"an array saved by {node.name()}"
    if isinstance(source[0], tuple):
        return text
    kind, number = source
    made_by: tuple[Node | None, int] = (None, 0)
    if kind == "out":
        made_by = (node, number)
    elif number is not None:
        parents = node.next if isinstance(node.next, tuple) else (node.next,)
        made_by = edge(parents[number])
    parent, output = made_by
    if parent is None or type(parent) is AccumulateGrad:
        return f"{text},"
    return f"{text}, which is output {output} of {parent.name().removesuffix('Backward')},"
