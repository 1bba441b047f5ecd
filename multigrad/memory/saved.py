"""Saved values as users see them: as Tensors, and in the hands of keepers, such as hooks.

An array that a keeper has is replaced by a handle, `Saved`. A node with handles is a KeptNode,
whose `saved` asks for the arrays each time it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from operator import is_not
from typing import Any

from .. import observe
from ..core import grad_mode, graph
from ..core.element import SCALARS, mixed
from ..core.graph import (
    FREED,
    AccumulateGrad,
    HookedNode,
    MultiNode,
    Node,
    OutputInfo,
    changed_after,
    describe,
    extra,
    flat_cells,
    modified,
    written_after,
)
from ..core.level import Layer, innermost
from ..core.nested import NestedLayer, put_together, taken_apart
from ..core.pullback import Pullback, apart
from ..core.tensor import Tensor, wrap, wrap_at
from ..dispatch.codegen import positions
from ..errors import GradientError
from ..observe import SAVED, Observer, gate, watched, watching
from ..provided import provide
from ..registry import per_operation

Hooks = tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]]
Copy = Callable[[Any], Any]
"""Makes a copy of an array."""

_new: Any = object.__new__
slot: Any = Node.__dict__["saved"]
"""The slot `saved` of a node, even if its class overrides the attribute."""


def stored(node: Node) -> Any:
    """The tuple of what is in the slot `saved` of a node, None once freed."""
    saved = slot.__get__(node)
    return None if saved is None else apart(saved)


def store(node: Node, values: Sequence[Any] | None) -> None:
    slot.__set__(node, None if values is None else node.rule.together(values))


def tracked(node: Node) -> Sequence[Any]:
    """The version cells of what a node saved: of each array or list of arrays, and of a key."""
    return (node.cells,) if type(node.cells) is list else node.cells or ()


# Versions


def check_versions(node: Node) -> None:
    """Raise if an array that `node` saved, and no keeper has, was modified in place since."""
    seq = node.seq
    for cell in flat_cells(node.cells):
        if cell and (cell[-1] > seq or (cell[-1] < 0 and written_after(cell, seq))):
            what = _described(node, cell)
            if what:
                raise modified(what, cell, seq)
    for x in _layers(slot.__get__(node)):
        # the program may have it, too, such as an argument of vjp that is a Tensor
        gone = written_after if x._elem.run is None else changed_after
        if x._cell and gone(x._cell, seq):
            raise modified(describe(node.library, x, None), x._cell, seq)


def _layers(saved: Any) -> Iterator[Layer]:
    if isinstance(saved, Layer):
        yield saved
    elif type(saved) is tuple:
        for x in saved:
            yield from _layers(x)


def _described(node: Node, cell: list[int]) -> str:
    """Describe the array of this cell, as `describe` does; "" if keepers have it."""
    saved, arrays, cells = stored(node), _arrays(node.rule), tracked(node)
    for (i, _, source), nested in zip(arrays, cells, strict=False):
        value = saved[i]
        if not _is_on(value, nested, cell):
            continue
        if not hasattr(value, "shape"):
            return f"an array saved by {node.name()}"
        return describe(node.library, value, _history(node, *source))
    keys = any(c is cell for nested in cells[len(arrays) :] for c in flat_cells(nested))
    return f"an index array of {node.name()}" if keys else ""


def _is_on(value: Any, cells: Any, cell: list[int]) -> bool:
    """Whether a saved value that no keeper has is on the memory of a version cell."""
    if isinstance(value, tuple):
        each = cells if type(cells) is tuple else (cells,) * len(value)
        return any(_is_on(v, c, cell) for v, c in zip(value, each, strict=False))
    return cells is cell and not isinstance(value, Saved)


# Handles


@dataclass(eq=False, repr=False, slots=True, weakref_slot=True)
class Saved:
    """A value that was saved for a backward pass.

    Of a nested value the raw arrays are kept one by one, as constants of the base level. So keepers
    work inside a transformation, after its end, and under any other, and histories and tangents are
    preserved.

    keeper  who decides how it is kept; None: it is kept unchanged
    name    the name of the operation that saved it
    data    what the keeper has in its place; of a nested value the handles of its raw arrays
    cell    the version cell of its memory
    shell   the layers of a nested value, without its raw arrays, else None
    seq     the time of the last write before it was saved, if it is kept unchanged
    """

    keeper: Any
    name: str
    data: Any
    cell: list[int]
    shell: NestedLayer | None = None
    seq: int = field(init=False)

    @property
    def parts(self) -> Sequence[Saved]:
        """The handles of its raw arrays."""
        parts: Sequence[Saved] = (self,) if self.shell is None else self.data
        return parts

    @property
    def cells(self) -> tuple[list[int], ...]:
        """The version cells that matter to it."""
        inner = () if self.shell is None else self.parts
        return self.cell, *(part.cell for part in inner)

    def unpack(self) -> Any:
        """The value that was saved."""
        if self.shell is not None:
            return put_together(self.shell, iter([part.unpack() for part in self.parts]))
        return self.data if self.keeper is None else self.keeper.unpack(self)

    def keep_old(self, cell: list[int], copied: Copy) -> None:
        """Keep copies of the arrays on a memory that is about to be written."""
        every = self.cell is cell
        for part in self.parts:
            if every or part.cell is cell:
                before, copy = part.cell, copied(part.data)
                if part.cell is before:  # no signal handler has written meanwhile
                    part.data, part.cell = copy, []
        if every:
            self.cell = []


def packed(keeper: Keeper | None, name: str, t: Tensor) -> Saved:
    """Let a keeper have the value of a Tensor."""
    return packed_raw(keeper, name, t._array, t._cell, t if t._elem.run is None else None)


def packed_raw(
    keeper: Keeper | None, name: str, value: Any, cell: list[int], t: Tensor | None = None
) -> Saved:
    """Let a keeper have a value with this version cell.

    t  the Tensor of the base level that the program may see, None for a constant
    """
    if not isinstance(value, Layer):
        if keeper is None:
            return Saved(None, name, value, cell)
        return keeper.pack(name, value, cell, t)
    arrays: list[Any] = []
    cells: list[list[int]] = []
    shell = taken_apart(value, arrays, cells, cell)
    parts = [packed_raw(keeper, name, x, c) for x, c in zip(arrays, cells, strict=True)]
    return Saved(keeper, name, parts, cell, shell)


# Keepers


disabled: ContextVar[str | None] = ContextVar(
    "multigrad.saved_tensors_hooks_disabled", default=None
)
"""The message for hooks that are entered while they are forbidden, None if they are allowed."""


class Keeper(Observer):
    """Decides how the arrays that operations save are kept, in the contexts that it was entered in.

    If several Keepers are entered, the innermost one that wants these arrays gets them.
    """

    __slots__ = ()
    events = frozenset({SAVED})
    exclusive = False
    """Whether saved values stay unchanged and outer ones get nothing."""

    def look(self, operands: Sequence[Any]) -> None:
        """Handle a recorded operation on these operands, which need not save anything."""

    def wants(self, name: str, level: int) -> bool:
        """Whether it takes the values that the operation of this name saves at this level."""
        raise NotImplementedError

    def pack(self, name: str, value: Any, cell: list[int], t: Tensor | None) -> Saved:
        """Replace a raw array that the operation of this name saves.

        cell  its version cell
        t     the Tensor of the base level that the program may see, None for a constant
        """
        raise NotImplementedError

    def unpack(self, x: Saved) -> Any:
        """The raw array that was replaced."""
        return x.data

    def sources(self, x: Saved) -> Sequence[tuple[Any, bool]]:
        """The arrays from which it computes the array, and whether each has a history."""
        return ()

    def keep(self, node: Node, value: Any, source: Any, of: Any, result: Tensor) -> Saved:
        """Replace an array that `node` saved.

        of      an object that may hold the array as its value
        result  the result of the operation, the first Tensor
        """
        cell = of._cell if isinstance(of, Layer) and of._array is value else []
        name = node.rule.op.name
        if isinstance(value, Layer):
            return packed_raw(self, name, value, cell)
        return self.pack(name, value, cell, None)

    def recorded(self, node: Node, operands: tuple[Any, ...], result: Any) -> None:
        self.look(operands)
        saved, rule = stored(node), node.rule
        if not saved or node.exchanged or _is_left(self):
            return
        alone = isinstance(result, Tensor)
        first: Tensor = result if alone else next(t for t in result if isinstance(t, Tensor))
        if not self.wants(rule.op.name, first._elem.level):
            return
        values = list(saved)
        for i, at, source in _arrays(rule):
            of: Any = operands[at] if at >= 0 else None if source[0] == "in" else result
            if type(saved[i]) is tuple:
                values[i] = self._exchanged(node, saved[i], source, of, first)
            elif type(of) not in SCALARS and hasattr(saved[i], "dtype"):
                if of is result and not alone:
                    of = result[source[1]]
                values[i] = self.keep(node, saved[i], source, of, first)
        if any(map(is_not, values, saved)):
            _exchange(node, values)

    def _exchanged(self, node: Node, value: Any, source: Any, of: Any, result: Tensor) -> Any:
        """A saved value with handles in place of arrays."""
        if type(value) is tuple:
            each = of if isinstance(of, (tuple, list)) else (None,) * len(value)
            return tuple(
                self._exchanged(node, v, s, y, result)
                for v, s, y in zip(value, _sources(source, value), each, strict=True)
            )
        if type(of) in SCALARS or not hasattr(value, "dtype"):
            return value
        return self.keep(node, value, source, of, result)


def _is_left(keeper: Keeper) -> bool:
    """Whether an inner Keeper has an exclusive claim to all saved values."""
    for x in reversed(watching()):
        if x is keeper:
            return False
        if isinstance(x, Keeper) and x.exclusive:
            return True
    return False


def _sources(source: Any, values: tuple[Any, ...]) -> Sequence[Any]:
    """The sources of the arrays of a tuple that is saved under one name."""
    return (
        source
        if source and isinstance(source[0], tuple)
        else [("out", i) for i in range(len(values))]
    )


@per_operation
def _arrays(rule: Pullback) -> tuple[tuple[int, int, Any], ...]:
    """The places of arrays among the saved values of a rule.

    For each there is its index, that of its operand (-1: none), and its source.
    """
    position = positions(rule.op)
    return tuple(
        (i, position.get(name, -1), source)
        for i, (name, source) in enumerate(zip(rule.plan, rule.sources, strict=True))
        if source is not None
    )


class HookPair(Keeper):
    """A user's pair of hooks. It keeps what pack_hook returns, and the library of the array."""

    __slots__ = ("hooks",)

    def __init__(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
        self.hooks = pack, unpack

    def wants(self, name: str, level: int) -> bool:
        return True

    def pack(self, name: str, value: Any, cell: list[int], t: Tensor | None) -> Saved:
        if t is not None:
            return self._packed(t)
        t = wrap(value)
        t._cell = cell
        return self._packed(t, own=True)

    def unpack(self, x: Saved) -> Any:
        data, library = x.data
        t = self.hooks[1](data)
        if not isinstance(t, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                f"type {type(t).__name__}"
            )
        if t._elem.library is not library:
            raise mixed("saved tensor unpack_hook", library, t._elem.library)
        if type(t) is not Tensor:
            t._check()
        x = t._array
        return innermost(x) if isinstance(x, Layer) else x

    def keep(self, node: Node, value: Any, source: Any, of: Any, result: Tensor) -> Saved:
        if result._elem.run is not None or isinstance(value, Layer):
            return super().keep(node, value, source, of, result)
        if not isinstance(of, Tensor) or of._array is not value:
            t = with_history(node, value, source)
        elif source[0] == "in" and type(of._node) is AccumulateGrad:
            return self._packed(of)
        else:
            # not `of` itself: this may be an in-place operation, which is about to change it
            t = _new(Tensor)
            t._array, t._elem, t._cell = value, of._elem, of._cell
            t._node = _history(node, *source) if of._elem.floating else None
        packed = self._packed(t, own=True)
        t._node = None  # the hook's value must not refer back to the node
        return packed

    def _packed(self, t: Tensor, own: bool = False) -> Saved:
        """Pass a Tensor of the base level to pack_hook.

        own  whether multigrad made the Tensor for this hook. The node may keep such a Tensor
        """
        version = t._version if t._cell else 0
        before = gate.get()
        try:
            gate.set(grad_mode.quiet(before))
            data = self.hooks[0](t)
        finally:
            try:
                gate.set(before)
            except MemoryError:
                observe.put_back(gate, before)
        if t._cell and t._version != version:
            raise GradientError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook cannot be modified by in-place operations as this can lead to "
                "unexpected side-effects."
            )
        # a Tensor of the user may get a node in an in-place operation
        if data is t and not own:
            data = t.data
        return Saved(self, "", (data, t._elem.library), t._cell)


def enter(keeper: Keeper) -> None:
    """Enter `keeper` in this context, until `observe.leave`."""
    _refuse_if_disabled()
    observe.enter(keeper)


def under(keeper: Keeper, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return `function(*args, **kwargs)`, called with `keeper` entered, and restore the state."""
    _refuse_if_disabled()
    before = gate.get()
    ours = watched(before, (*watching(before), keeper))
    try:
        gate.set(ours)
        return function(*args, **kwargs)
    finally:
        try:
            token = gate.set(before)
        except MemoryError:
            token = gate.set(before)
        if token.old_value is not ours:  # a grad mode that the function has set permanently
            gate.set(watched(token.old_value, watching(before)))


def forbid(message: str | None) -> None:
    """Refuse hooks that are entered from now on, with this message; None allows them."""
    try:
        disabled.set(message)
    except MemoryError:  # as in `observe.put_back`, whose call an interrupt could keep from running
        disabled.set(message)


def _refuse_if_disabled() -> None:
    message = disabled.get()
    if message is not None:
        raise RuntimeError(message)


def any_in_force() -> bool:
    """Whether any hooks are entered."""
    return any(isinstance(x, Keeper) for x in watching())


def in_force(name: str, level: int, operands: Sequence[Any] = ()) -> Keeper | None:
    """The Keeper of the arrays that an operation saves, for callers that save them themselves."""
    chosen: Keeper | None = None
    for x in reversed(watching()):
        if isinstance(x, Keeper):
            x.look(operands)
            if chosen is None and (x.exclusive or x.wants(name, level)):
                chosen = x
    return None if chosen is None or chosen.exclusive else chosen


# Nodes


def _opened(value: Any) -> Any:
    # tuples of other types contain no handles, and stay unchanged
    if type(value) is tuple:
        return tuple(map(_opened, value))
    return value.unpack() if isinstance(value, Saved) else value


def _unpacked(node: Node) -> Any:
    saved = stored(node)
    if saved is None:
        return None
    values = list(saved)
    for i, _, _ in _arrays(node.rule):
        x = saved[i]
        alone = type(x) is Saved and x.shell is None
        values[i] = x.keeper.unpack(x) if alone else _opened(x)
    return node.rule.together(values)


_through_keepers = property(_unpacked, slot.__set__)


class KeptNode(HookedNode):
    """A node with handles in place of saved arrays; reading `saved` unpacks them."""

    __slots__ = ()
    exchanged = True
    saved = _through_keepers


class KeptMultiNode(MultiNode):
    """A KeptNode with several outputs."""

    __slots__ = ()
    exchanged = True
    saved = _through_keepers


def _exchange(node: Node, values: Sequence[Any]) -> None:
    """Store values among which there are handles."""
    store(node, values)
    if type(node) is Node:
        node.extra = None
    node.__class__ = KeptMultiNode if isinstance(node, MultiNode) else KeptNode


def with_history(node: Node, value: Any, source: Any, wrap: Callable[[Any], Tensor] = wrap) -> Any:
    """A saved value with its history, each array as the Tensor that `wrap` makes of it.

    An argument gets the edge that it came from, an output the node itself.
    """
    if source is None:
        return value
    if isinstance(value, tuple):
        return tuple(
            with_history(node, v, s, wrap)
            for v, s in zip(value, _sources(source, value), strict=True)
        )
    if not hasattr(value, "dtype"):
        return value
    t = wrap(value)
    kind, number = source
    if kind == "in" or t._elem.floating:  # integer outputs, such as indices, are constants
        t._node = _history(node, kind, number)
    return t


def _history(node: Node, kind: str, number: int | None) -> Node | None:
    if kind == "out":
        return node.pick(number) if isinstance(node, MultiNode) and number is not None else node
    if number is None:
        return None
    parent: Node = node.next[number] if isinstance(node.next, tuple) else node.next
    return parent


def show(node: Node, name: str, raw: bool = False) -> Any:
    """The value that `node` saved under this name of its rule's parameters; arrays as Tensors.

    raw  as an object that takes hooks
    """
    if raw:
        return SavedTensor(partial(pack_saved, node, name))
    saved = node.saved
    if saved is None:
        raise GradientError(FREED)
    if name not in node.rule.plan:  # an operand that no rule needs
        return None
    i = node.rule.plan.index(name)
    source = node.rule.sources[i]
    value = apart(saved)[i]
    if source is not None and node.cells is not None:
        check_versions(node)
    value = with_history(node, value, source)
    return tuple(map(_or_leaf, value)) if type(value) is tuple else _or_leaf(value)


def _or_leaf(x: Any) -> Any:
    """The leaf in place of a Tensor with its value and its node; another object itself."""
    leaf = x._node.variable if isinstance(x, Tensor) and type(x._node) is AccumulateGrad else None
    return leaf if leaf is not None and leaf._array is x._array else x


class SavedTensor:
    """One array that a node saved.

    `register_hooks(pack, unpack)` packs it at once and unpacks it whenever it is needed.

    pack   replaces the array by the result of a pair of hooks
    """

    def __init__(self, pack: Callable[[Hooks], None]) -> None:
        self._pack = pack

    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        """Replace the array by the return value of `pack_hook`.

        `unpack_hook` makes a Tensor from this value again.

        Same as torch's SavedTensor.register_hooks.
        """
        self._pack((pack_hook, unpack_hook))


def by_hooks(hooks: Hooks, value: Any, shown: Callable[[], Tensor]) -> Saved:
    """Let a pair of hooks have a saved value, which the program sees as the Tensor `shown()`."""
    if isinstance(value, Saved) and value.keeper is not None:
        raise GradientError(
            "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
            "only one pair of hooks is allowed at a time."
        )
    return packed(HookPair(*hooks), "", shown())


def pack_saved(node: Node, name: str, hooks: Hooks) -> None:
    """Let a pair of hooks pack a value that an operation has saved under this name."""
    i = node.rule.plan.index(name) if name in node.rule.plan else -1
    saved = stored(node)
    if saved is None:
        raise GradientError(
            "Calling register_hooks on a saved tensor after it has been freed. Saved "
            "intermediate values of the graph are freed when you call .backward() or "
            "autograd.grad(). Specify retain_graph=True if you need to backward through the "
            "graph a second time or if you need to access saved variables after calling "
            "backward."
        )
    value, source = (None, None) if i < 0 else (saved[i], node.rule.sources[i])
    if not isinstance(value, Saved) and (source is None or not hasattr(value, "dtype")):
        raise GradientError(
            "Calling register_hooks on a saved tensor with value None is forbidden; "
            f"_saved_{name} of {node.name()} is not a single array"
        )
    # `show` raises if it was modified
    packed = by_hooks(hooks, value, lambda: show(node, name))
    _exchange(node, [*saved[:i], packed, *saved[i + 1 :]])


def note_output(t: Tensor) -> None:
    """Store the shape, dtype and device of `t` in its node."""
    node = t._node
    assert node is not None
    if type(node) is not AccumulateGrad:
        e = extra(node)
        if e.output is None:
            library = t._elem.library
            value: Any = (
                library.xp.ones((), dtype=t.dtype, device=t.device)
                if not isinstance(t._array, Layer)
                else t._array
            )
            e.output = OutputInfo(tuple(t.shape), t.dtype, t.device), wrap_at(t, value)


provide(graph, show=show)
