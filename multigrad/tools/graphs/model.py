"""Model of a graph: a list of vertices with names, operands and saved arrays.

Building the model leaves the graph unchanged. Shapes that `record_lines` did not record are
inferred from the saved arrays as far as possible. Saved arrays are never unpacked, because their
hooks may compute or read a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ...core.element import SCALARS
from ...core.graph import (
    AccumulateGrad,
    CustomNode,
    MultiNode,
    Node,
    OutputNode,
    flat_cells,
    version_at,
    versions,
)
from ...core.tensor import Tensor
from ...custom.kept import FunctionCtx
from ...custom.node import Slot
from ...dispatch.names import meanings
from ...memory import saved as _saved
from ..profiler.memory import arrays
from .provenance import Output, Site, dtype_name, note_of, output_of

ARGUMENT = "argument of a checkpoint"
"""The name of a saved argument from which a checkpoint recomputes an array."""


@dataclass(slots=True)
class SavedArray:
    """One array that a node saves for the backward pass.

    name      the parameter or output of the operation
    raw       the raw arrays: several for a layer of a transformation, none if hooks hold them
    origin    "input" (another node made it), "output" (this node made it), "constant" (it has no
              history), "index"
    version   the number of writes to its memory; `expected`: that number when it was saved. A
              backward pass raises if they differ
    packed    whether hooks hold it (saved_tensors_hooks, checkpoint)
    """

    name: str
    raw: tuple[Any, ...]
    origin: str
    shape: tuple[int, ...] | None
    dtype: str | None
    version: int = 0
    expected: int = 0
    packed: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the array itself, even if it shares its memory."""
        return sum(map(nbytes, self.raw))

    @property
    def changed(self) -> bool:
        """Whether it was modified in place after it was saved, so that a backward pass raises."""
        return self.version != self.expected


@dataclass(slots=True)
class Vertex:
    """One node of the graph. Its number is its index; parents have lower numbers than children."""

    number: int
    node: Node
    name: str
    parents: tuple[tuple[int, int], ...]
    """The number of each parent, and the index of the parent's output."""
    outputs: list[Output | None]
    saved: list[SavedArray]
    site: Site | None = None
    labels: tuple[tuple[str, int], ...] = ()
    param: str | None = None
    version: int = 0
    freed: bool = False

    @property
    def leaf(self) -> bool:
        return type(self.node) is AccumulateGrad

    @property
    def changed(self) -> bool:
        return any(s.changed for s in self.saved)


@dataclass(slots=True)
class Graph:
    """All vertices, and the roots.

    There is one root per requested Tensor: its vertex (None for a constant), the index of the
    output, and the output's shape and dtype.
    """

    vertices: list[Vertex]
    roots: list[tuple[int | None, int, Output]]
    children: list[list[int]] = field(default_factory=list)

    @property
    def operations(self) -> list[Vertex]:
        return [v for v in self.vertices if not v.leaf]

    @property
    def leaves(self) -> list[Vertex]:
        return [v for v in self.vertices if v.leaf]


_OF_SHAPES = ("manipulation", "indexing", "searching", "creation", "data_type", "conversion")
_CHAPTERS = {
    "elementwise": ("elementwise",),
    "linear algebra": ("linear_algebra", "linalg", "fft"),
    "reduction": ("statistical", "sorting"),
    "shape and indexing": _OF_SHAPES,
}


def kind_of(v: Vertex) -> str:
    """Return the kind of an operation: by its declaration, then by its chapter of the standard."""
    if isinstance(v.node, CustomNode):
        return "own derivative"
    op = v.node.rule.op
    if op.kind == "elementwise":
        return "elementwise"
    if op.kind == "multilinear":
        return "elementwise" if op.chapter == "elementwise" else "linear algebra"
    if op.kind == "linear" and op.chapter in ("linear_algebra", "linalg"):  # transposes, diagonals
        return "shape and indexing"
    return next((kind for kind, of in _CHAPTERS.items() if op.chapter in of), "other")


def bytes_kept(vertices: Iterable[Vertex]) -> int:
    """Return the bytes of all arrays that these vertices save, each array counted once."""
    arrays = {id(x): x for v in vertices for s in v.saved for x in s.raw}
    return sum(map(nbytes, arrays.values()))


def nbytes(x: Any) -> int:
    """Return the bytes of the elements of a raw array."""
    reported = getattr(x, "nbytes", None)
    if isinstance(reported, int):
        return reported
    return 0 if None in x.shape else prod(x.shape) * itemsize(x.dtype)


def itemsize(dtype: Any) -> int:
    """Return the bytes of one element."""
    reported = getattr(dtype, "itemsize", None)
    if isinstance(reported, int):
        return reported
    bits = dtype_name(dtype).lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(bits) // 8 if bits.isdigit() else 1


def tensors_of(argument: Any, tool: str) -> list[Tensor]:
    """Return the Tensors in the argument of a tool: a Tensor, or a sequence of them."""
    tensors = list(argument) if isinstance(argument, (list, tuple)) else [argument]
    if not tensors or not all(isinstance(t, Tensor) for t in tensors):
        kind = type(argument).__name__
        if isinstance(argument, (list, tuple)):
            kind = "a sequence with other objects" if tensors else "an empty sequence"
        raise TypeError(f"{tool} takes a Tensor or a sequence of Tensors, not {kind}")
    for t in tensors:
        t._check()
    return tensors


def named(params: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the Tensors of `params` with their names.

    `params` is a dictionary of Tensors, nested or not, or a sequence or an iterator of them.
    """
    if isinstance(params, Tensor):
        yield name, params
    elif isinstance(params, Mapping) or (hasattr(params, "items") and hasattr(params, "keys")):
        for key, value in params.items():
            yield from named(value, f"{name}.{key}" if name else str(key))
    elif isinstance(params, Iterable) and not isinstance(params, str):
        for i, value in enumerate(params):
            yield from named(value, f"{name}[{i}]" if name else f"params[{i}]")
    elif params is not None:
        raise TypeError(
            "params names leaves: a dictionary or a sequence of Tensors, but it holds a "
            f"{type(params).__name__}"
        )


def collect(tensors: Sequence[Tensor], params: Any = None) -> Graph:
    """Return the graph behind these Tensors, without recursion, so of any depth.

    params  names of leaves: a dictionary of Tensors, nested or not, or a sequence of them
    """
    leaves = ((name, getattr(t, "_leaf", None)) for name, t in named(params))
    names = {id(leaf): name for name, leaf in leaves if leaf is not None}
    nodes: dict[int, Node] = {}
    stack = [owner_of(t._node) for t in tensors if t._node is not None]
    while stack:
        node = stack.pop()
        if id(node) not in nodes:
            nodes[id(node)] = node
            stack += map(owner_of, _parents(node))
    order = sorted(nodes.values(), key=lambda n: (type(n) is not AccumulateGrad, n.seq))
    numbers = {id(n): i for i, n in enumerate(order)}
    vertices = [_vertex(i, n, numbers, names) for i, n in enumerate(order)]
    roots: list[tuple[int | None, int, Output]] = []
    for t in tensors:
        at = None if t._node is None else numbers[id(owner_of(t._node))]
        like = output_of(t)
        assert like is not None
        roots.append((at, t.output_nr, like))
        if at is not None:
            _put(vertices[at], t.output_nr, *like)
    _infer(vertices)
    children: list[list[int]] = [[] for _ in vertices]
    for v in vertices:
        for p in dict.fromkeys(number for number, _ in v.parents):
            children[p].append(v.number)
    return Graph(vertices, roots, children)


def owner_of(node: Node) -> Node:
    """Return the node itself, or the node of which it is an output."""
    owner: Node = node.next if type(node) is OutputNode else node
    return owner


def _parents(node: Node) -> tuple[Node, ...]:
    parents: tuple[Node, ...] = node.next if isinstance(node.next, tuple) else (node.next,)
    return parents


def _vertex(number: int, node: Node, numbers: dict[int, int], names: dict[int, str]) -> Vertex:
    parents = tuple(
        (numbers[id(owner_of(p))], p.number if type(p) is OutputNode else 0) for p in _parents(node)
    )
    outputs = len(node.picks) if isinstance(node, MultiNode) else 1
    v = Vertex(number, node, node.name(), parents, [None] * outputs, [])
    note = note_of(node)
    if note is not None:
        v.site, v.labels = note.site, note.labels
        v.outputs[: len(note.outputs)] = note.outputs[:outputs]
    if type(node) is AccumulateGrad:
        leaf = node.variable
        v.param = names.get(id(node))
        if leaf is not None:
            v.outputs[0] = output_of(leaf)
            v.version = leaf._version
    else:
        # several arrays may be recomputed from one argument of a checkpoint
        saved = {
            (s.name, *map(id, s.raw)) if s.name is ARGUMENT else id(s): s for s in saved_by(node)
        }
        v.saved = list(saved.values())
        stored = node.ctx._slots if isinstance(node, CustomNode) else _saved.stored(node)
        v.freed = stored is None
    return v


# ----- Saved arrays -----


def saved_by(node: Node) -> Iterator[SavedArray]:
    """Yield the arrays that a node saves."""
    if isinstance(node, CustomNode):
        yield from _saved_by_function(node)
        return
    rule = node.rule
    cells = iter(_saved.tracked(node))
    for name, source, value in zip(rule.plan, rule.sources, _saved.stored(node) or ()):
        if source is None:
            if rule.op.roles.get(name) == "plain":
                yield from (_saved_array(name, (x,), "index", x) for x in arrays(value))
            continue
        cell = next(cells, None)
        if not isinstance(value, tuple):
            yield from _one(name, value, _origin(source), cell, node.seq)
            continue
        of_each = isinstance(source[0], tuple) if source else False
        for i, x in enumerate(value):
            origin = _origin(source[i]) if of_each else "output"
            part = cell[i] if isinstance(cell, tuple) and i < len(cell) else cell
            yield from _one(f"{name}[{i}]", x, origin, part, node.seq)


def _origin(source: tuple[str, Any]) -> str:
    return "output" if source[0] == "out" else "constant" if source[1] is None else "input"


def _one(name: str, value: Any, origin: str, cell: Any, seq: int) -> Iterator[SavedArray]:
    if isinstance(value, _saved.Saved):
        if value.keeper is not None:
            yield from _with_keeper(name, value, origin)
            return
        value, cell = value.data, value.cell
    if type(value) in SCALARS or not hasattr(value, "dtype"):
        return
    now = expected = 0
    for c in flat_cells(cell) if cell else ():
        now, expected = versions(c), version_at(c, seq)[0]
    raw = tuple(arrays(value))
    yield _saved_array(name, raw, origin, value, version=now, expected=expected)


def _with_keeper(name: str, value: _saved.Saved, origin: str) -> Iterator[SavedArray]:
    """Yield what a keeper, such as hooks or a checkpoint, has of a saved array."""
    raw = tuple(x for part in value.parts for x in arrays(part.data))
    # a checkpoint keeps the arguments from which it recomputes the array
    sources = {
        id(x): (x, recorded)
        for part in value.parts
        for data, recorded in value.keeper.sources(part)
        for x in arrays(data)
    }
    for x, recorded in sources.values():
        yield _saved_array(ARGUMENT, (x,), "input" if recorded else "constant", x, packed=True)
    if raw or not sources:
        like = raw[0] if len(raw) == 1 and value.shell is None else None
        yield _saved_array(name, raw, origin, like, packed=True)


def _saved_array(
    name: str, raw: tuple[Any, ...], origin: str, like: Any, **more: Any
) -> SavedArray:
    """Return what is saved, with the shape and the dtype of `like`; None if they are unknown."""
    return SavedArray(name, raw, origin, *(output_of(like) or (None, None)), **more)


def _saved_by_function(node: CustomNode) -> Iterator[SavedArray]:
    slot: Slot | None
    for i, slot in enumerate(node.ctx._slots or ()):
        if slot is not None:
            origin = _origin(("out" if isinstance(slot.source, int) else "in", slot.source))
            yield from _one(f"saved_tensors[{i}]", slot.saved, origin, None, node.ctx._seq)
    for name, x in vars(node.ctx).items():  # attributes set by forward, which no pass frees
        raw = () if hasattr(FunctionCtx, name) else tuple(arrays(x))
        if raw:
            like = x if len(raw) == 1 and not isinstance(x, (tuple, list)) else None
            recorded = isinstance(x, Tensor) and x._node is not None
            yield _saved_array(f"ctx.{name}", raw, "input" if recorded else "constant", like)


# ----- Inference of the shapes and dtypes of outputs that were not recorded -----


def _put(v: Vertex, number: int, shape: Any, dtype: Any) -> None:
    if number < len(v.outputs):
        before = v.outputs[number] or Output(None, None)
        v.outputs[number] = Output(
            before.shape if shape is None else tuple(shape),
            before.dtype or (None if dtype is None else dtype_name(dtype)),
        )


def _infer(vertices: list[Vertex]) -> None:
    for v in reversed(vertices):
        if isinstance(v.node, CustomNode):
            for i, out in enumerate(v.node.ctx._outs):
                if out is not None:
                    _put(v, i, out[1], out[0].dtype)
        elif not v.leaf:
            _from_rule(v, vertices)
    for v in vertices:
        if not v.leaf and v.outputs[0] is None and _alike(v):
            outputs = (vertices[number].outputs[i] for number, i in v.parents)
            v.outputs[0] = next((o for o in outputs if o is not None), None)


def _alike(v: Vertex) -> bool:
    """Return whether the operands of an operation have the shape and dtype of its output.

    It is elementwise, and its rule saves no shape: it would save the shapes if it had to broadcast.
    """
    rule = v.node.rule
    return rule.op.kind == "elementwise" and not any(
        meanings(rule.op)[n].what == "shape" for n in rule.plan
    )


def _from_rule(v: Vertex, vertices: list[Vertex]) -> None:
    """Infer the output of an operation, and those of its parents, from what it saves."""
    rule = v.node.rule
    saved = dict(zip(rule.plan, _saved.stored(v.node) or ()))
    for number, name in enumerate(rule.op.outputs or ("ans",)):
        like = output_of(saved.get(name))
        if like is not None:
            _put(v, number, *like)
    alike = v.outputs[0] if _alike(v) else None
    arguments = [
        (name, i)
        for name, need in zip(rule.op.arrays, rule.needs, strict=True)
        for i, n in (enumerate(need) if isinstance(need, tuple) else [(None, need)])
        if n
    ]
    for (name, i), (parent, output) in zip(arguments, v.parents, strict=False):
        shape, dtype = output_of(_part(saved.get(name), i)) or (
            _part(saved.get(f"{name}_shape"), i),
            _part(saved.get(f"{name}_dtype"), i),
        )
        if shape is not None or dtype is not None:
            _put(vertices[parent], output, shape, dtype)
        elif alike is not None:
            _put(vertices[parent], output, *alike)


def _part(x: Any, i: int | None) -> Any:
    return x if i is None or not isinstance(x, tuple) or i >= len(x) else x[i]
