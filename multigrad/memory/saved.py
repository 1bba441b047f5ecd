"""Saved values as users see them: as Tensors, and with hooks that pack and unpack them.

If some of a node's saved arrays are packed, the node is a PackedNode, whose `saved` unpacks them
each time it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any

from .. import observe
from ..core import grad_mode, graph
from ..core.element import SCALARS, Library, mixed
from ..core.graph import (
    FREED,
    AccumulateGrad,
    HookedNode,
    MultiNode,
    Node,
    OutputInfo,
    check_versions,
    extra,
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
Take = Callable[[Tensor], "Packed"]
"""Replaces a raw array, given as a Tensor of the base level."""

_new: Any = object.__new__
slot: Any = Node.__dict__["saved"]
"""The slot `saved` of a node, even if its class overrides the attribute."""


def stored(node: Node) -> Any:
    """The tuple of what is in the slot `saved` of a node, None once freed."""
    saved = slot.__get__(node)
    return None if saved is None else apart(saved)


def store(node: Node, values: Sequence[Any] | None) -> None:
    slot.__set__(node, None if values is None else node.rule.together(values))


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
    """Whether outer ones get nothing, even if this one leaves the saved values unchanged"""

    def look(self, operands: Sequence[Any]) -> None:
        """Handle a recorded operation on these operands, which need not save anything."""

    def wants(self, name: str, level: int) -> bool:
        """Whether it takes the values that the operation of this name saves at this level."""
        raise NotImplementedError

    def take(self, name: str) -> Take | None:
        """How to replace the arrays that the operation of this name saves; None: not at all."""
        raise NotImplementedError

    def keep(self, node: Node, value: Any, source: Any, of: Any, result: Tensor) -> Packed:
        """Replace an array that `node` saved.

        of      an object that may hold the array as its value
        result  the result of the operation, the first Tensor
        """
        known = isinstance(of, Layer) and of._array is value
        take = self.take(node.rule.op.name)
        assert take is not None
        return packed_raw(take, value, of._cell if known else [])

    def recorded(self, node: Node, operands: tuple[Any, ...], result: Any) -> None:
        self.look(operands)
        saved, rule = stored(node), node.rule
        if not saved or node.unchecked or _is_left(self):
            return
        first: Tensor = (
            result
            if isinstance(result, Tensor)
            else next(t for t in result if isinstance(t, Tensor))
        )
        if not self.wants(rule.op.name, first._elem.level):
            return
        kept: Any = None
        for i, at, source in _arrays(rule):
            value = saved[i]
            of: Any = (
                operands[at]
                if at >= 0
                else None
                if source[0] == "in"
                else first
                if first is result
                else result
            )
            if type(value) is tuple:
                x: Any = self._keep_all(node, value, source, of, first)
            elif type(of) in SCALARS or not hasattr(value, "dtype"):
                continue
            else:
                x = self.keep(
                    node,
                    value,
                    source,
                    result[source[1]] if of is result and first is not result else of,
                    first,
                )
            if kept is None:
                kept = list(saved)
            kept[i] = x
        if kept is not None:
            _replace(node, kept)

    def _keep_all(
        self, node: Node, values: tuple[Any, ...], source: Any, of: Any, result: Tensor
    ) -> tuple[Any, ...]:
        sources = (
            source
            if source and isinstance(source[0], tuple)
            else [("out", i) for i in range(len(values))]
        )
        given = of if isinstance(of, (tuple, list)) else [None] * len(values)
        return tuple(
            v if not hasattr(v, "dtype") or type(x) in SCALARS else self.keep(node, v, s, x, result)
            for v, s, x in zip(values, sources, given, strict=True)
        )


def _is_left(keeper: Keeper) -> bool:
    """Whether an inner Keeper has an exclusive claim to all saved values."""
    for x in reversed(watching()):
        if x is keeper:
            return False
        if isinstance(x, Keeper) and x.exclusive:
            return True
    return False


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


class Pair(Keeper):
    """A user's pair of hooks."""

    __slots__ = ("pair",)

    def __init__(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
        self.pair = pack, unpack

    def wants(self, name: str, level: int) -> bool:
        return True

    def take(self, name: str) -> Take:
        return partial(pack_array, self.pair)

    def keep(self, node: Node, value: Any, source: Any, of: Any, result: Tensor) -> Packed:
        known = isinstance(of, Tensor) and of._array is value
        if not known or isinstance(value, Layer):
            t = _shown(node, value, source, result)
            if known:
                t._cell = of._cell
            kept = packed(partial(pack_array, self.pair, own=True), t)
        elif of._elem.run is not None:
            return packed_raw(self.take(""), value, of._cell)
        elif source[0] == "in" and type(of._node) is AccumulateGrad:
            return pack_array(self.pair, of)
        else:
            # not `of` itself: this may be an in-place operation, which is about to change it
            t = _new(Tensor)
            t._array = value
            t._elem = of._elem
            t._cell = of._cell
            t._node = _history(node, *source) if of._elem.floating else None
            kept = pack_array(self.pair, t, True)
        t._node = None  # the hook's value must not refer back to the node
        return kept


def enter(keeper: Keeper) -> None:
    """Enter `keeper` in this context, until `observe.leave`."""
    _refuse_if_disabled()
    observe.enter(keeper)


def under(keeper: Keeper, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return `function(*args, **kwargs)`, called with `keeper` entered.

    The former state is restored, also after an interrupt.
    """
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
    """Refuse hooks that are entered in this context from now on, with this message.

    None allows them.
    """
    try:
        disabled.set(message)
    except MemoryError:  # as in `observe.put_back`
        disabled.set(message)


def _refuse_if_disabled() -> None:
    message = disabled.get()
    if message is not None:
        raise RuntimeError(message)


def any_in_force() -> bool:
    """Whether any hooks are entered."""
    return any(isinstance(x, Keeper) for x in watching())


def in_force(name: str, level: int, operands: Sequence[Any] = ()) -> Take | None:
    """How to replace the arrays that an operation saves, for callers that save them themselves."""
    chosen: Keeper | None = None
    for x in reversed(watching()):
        if isinstance(x, Keeper):
            x.look(operands)
            if chosen is None and x.wants(name, level):
                chosen = x
    return None if chosen is None else chosen.take(name)


class Packed:
    """The replacement of an array that a node saved.

    data   the replacement of the raw arrays
    shell  the layers of a nested value, without its raw arrays. It is None for a raw array
    """

    __slots__ = ()
    shell: NestedLayer | None = None

    @property
    def data(self) -> list[Any]:
        return [self]

    def unpack(self) -> Any:
        """The value that the node saved."""
        raise NotImplementedError

    def again(self, value: Any) -> Packed:
        """Another value packed in the same way."""
        raise NotImplementedError


class PackedArray(Packed):
    """An array packed by the user's hooks: the return value of pack_hook."""

    __slots__ = ("kept", "library", "pair")
    kept: Any
    library: Library
    pair: Hooks

    @property
    def data(self) -> list[Any]:
        return [self.kept]

    def unpack(self) -> Any:
        t = self.pair[1](self.kept)
        if not isinstance(t, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                f"type {type(t).__name__}"
            )
        if t._elem.library is not self.library:
            raise mixed("saved tensor unpack_hook", self.library, t._elem.library)
        if type(t) is Tensor:
            x = t._array
            return innermost(x) if isinstance(x, Layer) else x
        t._check()
        return innermost(t)

    def again(self, value: Any) -> Packed:
        return packed(partial(pack_array, self.pair), wrap(value))


def pack_array(pair: Hooks, t: Tensor, own: bool = False) -> PackedArray:
    """Pass a Tensor of the base level to the user's hook.

    own  whether multigrad made the Tensor for this hook. The node may keep such a Tensor
    """
    version = t._version if t._cell else 0
    before = gate.get()
    try:
        gate.set(grad_mode.quiet(before))
        data = pair[0](t)
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
    x: PackedArray = _new(PackedArray)
    x.pair, x.library = pair, t._elem.library
    x.kept = data
    # a Tensor of the user, which may get a node in an in-place operation
    if data is t and not own:
        x.kept = t.data
    return x


class PackedNested(Packed):
    """A nested value whose raw arrays are packed one by one, as constant Tensors of the base level.

    So hooks work inside a transformation, after its end, and under any other, and histories and
    tangents are preserved.
    """

    __slots__ = ("parts", "shell", "take")

    def __init__(self, take: Take, shell: NestedLayer, parts: list[Packed]) -> None:
        self.take = take
        self.shell = shell
        self.parts = parts

    @property
    def data(self) -> list[Any]:
        return [x for part in self.parts for x in part.data]

    def unpack(self) -> Any:
        return put_together(self.shell, iter([part.unpack() for part in self.parts]))

    def again(self, value: Any) -> Packed:
        return packed(self.take, wrap(value))


def packed(take: Take, t: Tensor) -> Packed:
    """Replace the value of a Tensor."""
    return (
        packed_raw(take, t._array, t._cell)
        if t._elem.run is not None or isinstance(t._array, Layer)
        else take(t)
    )


def packed_raw(take: Take, value: Any, cell: list[int]) -> Packed:
    """Replace a value with this version cell that has no history of the base level."""
    arrays: list[Any] = []
    cells: list[list[int]] = []
    shell = taken_apart(value, arrays, cells, cell)
    parts = []
    for x, c in zip(arrays, cells, strict=True):
        t = wrap(x)
        t._cell = c
        parts.append(take(t))
    return parts[0] if shell is None else PackedNested(take, shell, parts)


def _opened(value: Any) -> Any:
    # tuples of other types contain nothing that was packed, and stay unchanged
    if type(value) is tuple:
        return tuple(_opened(v) for v in value)
    return value.unpack() if isinstance(value, Packed) else value


def _closed(value: Any, before: Any) -> Any:
    if type(before) is tuple:
        return tuple(_closed(v, b) for v, b in zip(value, before, strict=True))
    return before.again(value) if isinstance(before, Packed) else value


def _unpacked(node: Node) -> Any:
    saved = stored(node)
    if saved is None:
        return None
    values = list(saved)
    for i, _, _ in _arrays(node.rule):
        x = saved[i]
        values[i] = x.unpack() if isinstance(x, Packed) else _opened(x) if type(x) is tuple else x
    return node.rule.together(values)


def _repack(node: Node, value: Any) -> None:
    store(node, None if value is None else list(map(_closed, apart(value), stored(node))))


_through_hooks = property(_unpacked, _repack)


class PackedNode(HookedNode):
    """A node whose saved arrays were packed when it was made."""

    __slots__ = ()

    unchecked = True
    saved = _through_hooks


class PackedMultiNode(MultiNode):
    """A PackedNode with several outputs."""

    __slots__ = ()

    unchecked = True
    saved = _through_hooks


class PackedLaterNode(HookedNode):
    """A node with saved arrays that were packed after their versions had been checked.

    The versions of its other arrays are checked as usual.
    """

    __slots__ = ()

    saved = _through_hooks


class PackedLaterMultiNode(MultiNode):
    """A PackedLaterNode with several outputs."""

    __slots__ = ()

    saved = _through_hooks


def _replace(node: Node, saved: Sequence[Any], later: bool = False) -> None:
    store(node, saved)
    kind = type(node)
    if kind is Node:
        node.extra = None
    if kind is not PackedNode and kind is not PackedMultiNode:
        of_one, of_several = (
            (PackedLaterNode, PackedLaterMultiNode) if later else (PackedNode, PackedMultiNode)
        )
        node.__class__ = of_several if isinstance(node, MultiNode) else of_one


def _shown(node: Node, value: Any, source: Any, like: Tensor | None) -> Tensor:
    """A saved value as a Tensor of the level of `like`, with its history.

    That is the history of an operand, or the node itself for an output.
    """
    t = wrap(value) if like is None else wrap_at(like, value)
    kind, number = source
    if kind == "in" or t._elem.floating:
        t._node = _history(node, kind, number)
    return t


def _history(node: Node, kind: str, number: int | None) -> Node | None:
    if kind == "out":
        return node.pick(number) if isinstance(node, MultiNode) and number is not None else node
    if number is None:
        return None
    parent: Node = node.next[number] if isinstance(node.next, tuple) else node.next
    return parent


def show(node: Node, name: str) -> Any:
    """The value that `node` saved under this name of its rule's parameters; arrays as Tensors."""
    saved = node.saved
    if saved is None:
        raise GradientError(FREED)
    if name not in node.rule.plan:  # an operand that no rule needs
        return None
    i = node.rule.plan.index(name)
    source = node.rule.sources[i]
    value = apart(saved)[i]
    if source is None:
        return value
    if node.cells is not None and not node.unchecked:
        check_versions(node)
    if isinstance(value, tuple):
        sources = (
            source if isinstance(source[0], tuple) else [("out", k) for k in range(len(value))]
        )
        return tuple(_one(node, v, s) for v, s in zip(value, sources, strict=True))
    return _one(node, value, source)


def _one(node: Node, value: Any, source: Any) -> Any:
    if not hasattr(value, "dtype"):
        return value
    t = _shown(node, value, source, None)
    leaf = t._node.variable if type(t._node) is AccumulateGrad else None
    return leaf if leaf is not None and leaf._array is value else t


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


HOOKED = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
    "only one pair of hooks is allowed at a time."
)


def pack_saved(node: Node, name: str, hooks: Hooks) -> None:
    """Let a pair of hooks pack a value that an operation has saved under this name."""
    i = node.rule.plan.index(name) if name in node.rule.plan else None
    saved = stored(node)
    if saved is None:
        raise GradientError(
            "Calling register_hooks on a saved tensor after it has been freed. Saved "
            "intermediate values of the graph are freed when you call .backward() or "
            "autograd.grad(). Specify retain_graph=True if you need to backward through the "
            "graph a second time or if you need to access saved variables after calling "
            "backward."
        )
    value, source = (None, None) if i is None else (saved[i], node.rule.sources[i])
    if isinstance(value, Packed):
        raise GradientError(HOOKED)
    if i is None or source is None or not hasattr(value, "dtype"):
        raise GradientError(
            "Calling register_hooks on a saved tensor with value None is forbidden; "
            f"_saved_{name} of {node.name()} is not a single array"
        )
    t = show(node, name)  # raises if it was modified
    kept = packed(partial(pack_array, hooks), t)
    tracked = [k for k, s in enumerate(node.rule.sources) if s is not None]
    cells = [node.cells] if type(node.cells) is list else list(node.cells or ())
    for k, at in zip(range(len(cells)), tracked, strict=False):
        if at == i:
            cells[k] = []  # versions do not apply to it any more
    _replace(node, [*saved[:i], kept, *saved[i + 1 :]], later=True)
    node.cells = tuple(cells)


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


def saved_tensor(node: Node, name: str) -> SavedTensor:
    """The value that `node` saved under this name, as an object that takes hooks."""
    return SavedTensor(partial(pack_saved, node, name))


provide(graph, show=show, saved_tensor=saved_tensor)
