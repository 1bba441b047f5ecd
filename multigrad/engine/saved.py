"""What nodes save, as users see it: as Tensors, and by way of hooks that pack and unpack it.

A node some of whose saved arrays were packed becomes a PackedNode: its `saved` unpacks them each time that it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from ..errors import GradientError
from . import grad_mode
from .element import SCALARS
from .graph import FREED, AccumulateGrad, Extra, HookedNode, MultiNode, Node, OutputInfo, check_versions, extra
from .level import Layer, Observer, innermost, mode, settle, undo, watched, watching
from .rules import positions
from .tensor import Tensor, wrap, wrap_at
from .towers import Shell, put_together, taken_apart

Hooks = tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]]

disabled: ContextVar[str | None] = ContextVar("multigrad.saved_tensors_hooks_disabled", default=None)
"""Why no hooks may be entered, if so."""


class Keeper(Observer):
    """What decides how the arrays that operations save are kept, in the contexts that it was entered in."""

    __slots__ = ()

    def hooks(self, name: str, level: int, operands: Sequence[Any]) -> Hooks | None:
        """The hooks for what the operation of this name saves at this level, or None to leave it to what is in force further out."""
        raise NotImplementedError

    def recorded(self, node: Node, operands: tuple[Any, ...], result: Any) -> bool:
        saved = _slot.__get__(node)
        if not saved:
            return True
        outs = (result,) if isinstance(result, Tensor) else tuple(result)
        hooks = self.hooks(node.rule.op.name, next(t._level for t in outs if isinstance(t, Tensor)), operands)
        if hooks is None:
            return False
        _pack_all(hooks, node, saved, operands, outs)
        return True


class Pair(Keeper):
    """A user's pair of hooks."""

    __slots__ = ("pair",)

    def __init__(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
        self.pair = pack, unpack

    def hooks(self, name: str, level: int, operands: Sequence[Any]) -> Hooks | None:
        return self.pair


def enter(keeper: Keeper) -> None:
    """Put this in force, until `leave`."""
    _refuse_if_disabled()
    before = mode.get()
    try:
        mode.set(watched(before, (*watching(before), keeper)))
    except BaseException:  # an interrupt, after which `leave` is not called
        mode.set(before)
        raise


def leave(keeper: Keeper) -> None:
    """Take what was entered last out of force. Where `keeper` itself is no more, what it was entered in has ended, and all in it."""
    gate = mode.get()
    observers = watching(gate)
    if keeper in observers:
        last = next(x for x in reversed(observers) if isinstance(x, Keeper))
        mode.set(watched(gate, tuple(x for x in observers if x is not last)))


def under(keeper: Keeper, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return `function(*args, **kwargs)`, called with this in force. What was in force before is so again, also after an interrupt."""
    _refuse_if_disabled()
    before = mode.get()
    ours = watched(before, (*watching(before), keeper))
    try:
        mode.set(ours)
        return function(*args, **kwargs)
    finally:
        token = mode.set(before)
        if token.old_value is not ours:  # a grad mode that the function has set for good
            mode.set(watched(token.old_value, watching(before)))


def _refuse_if_disabled() -> None:
    message = disabled.get()
    if message is not None:
        raise RuntimeError(message)


def any_in_force() -> bool:
    """Whether any hooks are in force."""
    return any(isinstance(x, Keeper) for x in watching(mode.get()))


def in_force(name: str, level: int, operands: Sequence[Any] = ()) -> Hooks | None:
    """The hooks for what an operation saves."""
    for x in reversed(watching(mode.get())):
        found = x.hooks(name, level, operands) if isinstance(x, Keeper) else None
        if found is not None:
            return found
    return None


_slot: Any = Node.__dict__["saved"]


class Packed:
    """A saved array in the hands of the user's hooks.

    Of a value that is itself a layer they get the raw arrays, one by one, as constant Tensors of the base level; so any hooks do inside a
    transformation, after its end, and under any other, and histories and tangents are what they were.
    """

    __slots__ = ("data", "hooks", "shell")

    def __init__(self, hooks: Hooks, t: Tensor) -> None:
        self.hooks = hooks
        self.shell: Shell | None = None
        if t._elem.run is None:
            self.data = [self._pack(t)]
            return
        arrays: list[Any] = []
        cells: list[list[int]] = []
        self.shell = taken_apart(t._array, arrays, cells, t._cell)
        self.data = []
        for x, cell in zip(arrays, cells, strict=True):
            raw = wrap(x)
            raw._cell = cell
            self.data.append(self._pack(raw))

    def _pack(self, t: Tensor) -> Any:
        version = t._version
        before = undo()
        try:
            grad_mode._variable().set(False)
            data = self.hooks[0](t)
        finally:
            settle(before)
        if t._version != version:
            raise GradientError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified "
                                "by in-place operations as this can lead to unexpected side-effects.")
        return t.data if data is t else data  # not the Tensor itself, which an in-place operation may give the node

    def again(self, value: Any) -> Packed:
        """Another value packed in the same way."""
        return Packed(self.hooks, wrap(value))

    def unpack(self) -> Any:
        """The value, as the node had it."""
        return put_together(self.shell, iter([self._unpack(data) for data in self.data]))

    def _unpack(self, data: Any) -> Any:
        t = self.hooks[1](data)
        if not isinstance(t, Tensor):
            raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(t).__name__}")
        t._check()
        return innermost(t)


def _opened(value: Any) -> Any:
    if type(value) is tuple:  # those of other types hold nothing that was packed, and stay what they are
        return tuple(_opened(v) for v in value)
    return value.unpack() if isinstance(value, Packed) else value


def _closed(value: Any, before: Any) -> Any:
    if type(before) is tuple:
        return tuple(_closed(v, b) for v, b in zip(value, before, strict=True))
    return before.again(value) if isinstance(before, Packed) else value


def _unpacked(node: Node) -> tuple[Any, ...] | None:
    found: tuple[Any, ...] | None = _opened(_slot.__get__(node))
    return found


def _repack(node: Node, value: tuple[Any, ...] | None) -> None:
    _slot.__set__(node, None if value is None else _closed(value, _slot.__get__(node)))


_through_hooks = property(_unpacked, _repack)


class PackedNode(HookedNode):
    """A node whose saved arrays were packed."""

    __slots__ = ()

    saved = _through_hooks


class PackedMultiNode(MultiNode):
    """The same with several outputs."""

    __slots__ = ()

    saved = _through_hooks


def _replace(node: Node, saved: Sequence[Any]) -> Extra:
    e = extra(node)
    _slot.__set__(node, tuple(saved))
    node.__class__ = PackedMultiNode if isinstance(node, MultiNode) else PackedNode
    return e


def _pack_all(hooks: Hooks, node: Node, saved: tuple[Any, ...], operands: Sequence[Any], outs: tuple[Any, ...]) -> None:
    """Pack the arrays that a new node saves."""
    rule = node.rule
    position = positions(rule.op)
    given = [operands[position[name]] if name in position else None for name in rule.plan]
    packed = [_pack(hooks, node, *entry, outs) for entry in zip(saved, rule.sources, given, strict=True)]
    if any(a is not b for a, b in zip(packed, saved, strict=True)):
        _replace(node, packed).unchecked = True


def _pack(hooks: Hooks, node: Node, value: Any, source: Any, given: Any, outs: tuple[Any, ...]) -> Any:
    if source is None:
        return value
    if isinstance(value, tuple):
        sources = source if source and isinstance(source[0], tuple) else [("out", i) for i in range(len(value))]
        items = given if isinstance(given, (tuple, list)) else [None] * len(value)
        return tuple(_pack(hooks, node, v, s, t, outs) for v, s, t in zip(value, sources, items, strict=True))
    if not hasattr(value, "dtype") or type(given) in SCALARS:
        return value
    known = isinstance(given, Tensor) and given._array is value
    if known and type(given._node) is AccumulateGrad:
        return Packed(hooks, given)
    out = outs[source[1]] if source[0] == "out" else None
    t = _shown(node, value, source, out if isinstance(out, Tensor) else next(t for t in outs if isinstance(t, Tensor)))
    if known:  # not `given` itself: this may be an in-place operation, which is about to change it
        t._cell = given._cell
    packed = Packed(hooks, t)
    t._node = None  # what the hook keeps must not lead back to the node
    return packed


def _shown(node: Node, value: Any, source: Any, like: Tensor | None) -> Tensor:
    """A saved value as a Tensor with the history it had: that of an operand, or the node itself for an output."""
    t = wrap(value) if like is None else wrap_at(like, value)
    kind, number = source
    if kind == "out":
        if like is not None and like._array is value:
            t._cell = like._cell
        if t._elem.floating:
            t._node = node.pick(number) if isinstance(node, MultiNode) else node
    elif number is not None:
        t._node = node.next[number] if isinstance(node.next, tuple) else node.next
    return t


def show(node: Node, name: str) -> Any:
    """What `node` saved under this name of its rule's parameters; arrays as Tensors."""
    saved = node.saved
    if saved is None:
        raise GradientError(FREED)
    if name not in node.rule.plan:  # an operand that no rule asked for
        return None
    i = node.rule.plan.index(name)
    source = node.rule.sources[i]
    value = saved[i]
    if source is None:
        return value
    e = getattr(node, "extra", None)
    if node.cells is not None and not (e is not None and e.unchecked):
        check_versions(node)
    if isinstance(value, tuple):
        sources = source if isinstance(source[0], tuple) else [("out", k) for k in range(len(value))]
        return tuple(_one(node, v, s) for v, s in zip(value, sources, strict=True))
    return _one(node, value, source)


def _one(node: Node, value: Any, source: Any) -> Any:
    if not hasattr(value, "dtype"):
        return value
    t = _shown(node, value, source, None)
    leaf = t._node.variable if type(t._node) is AccumulateGrad else None
    return leaf if leaf is not None and leaf._array is value else t


class SavedTensor:
    """One array that a node saved. `register_hooks(pack, unpack)` packs it at once and unpacks it whenever it is needed."""

    def __init__(self, node: Node, name: str) -> None:
        self._node = node
        self._name = name

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Keep what `pack_hook` makes of the array in its place; `unpack_hook` makes a Tensor of that again. As torch's SavedTensor."""
        node = self._node
        i = node.rule.plan.index(self._name) if self._name in node.rule.plan else None
        saved = _slot.__get__(node)
        if saved is None:
            raise GradientError("Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed "
                                "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph "
                                "a second time or if you need to access saved variables after calling backward.")
        value, source = (None, None) if i is None else (saved[i], node.rule.sources[i])
        if isinstance(value, Packed):
            raise GradientError("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed "
                                "at a time.")
        if i is None or source is None or not hasattr(value, "dtype"):
            raise GradientError("Calling register_hooks on a saved tensor with value None is forbidden; "
                                f"_saved_{self._name} of {node.name()} is no single array")
        t = show(node, self._name)  # raises if it was modified
        packed = Packed((pack_hook, unpack_hook), t)
        tracked = [k for k, s in enumerate(node.rule.sources) if s is not None]
        cells = [node.cells] if type(node.cells) is list else list(node.cells or ())
        for k, at in zip(range(len(cells)), tracked, strict=False):
            if at == i:
                cells[k] = []  # its version says nothing any more
        _replace(node, [*saved[:i], packed, *saved[i + 1:]])
        node.cells = tuple(cells)


def output_info(node: Node) -> tuple[OutputInfo, ...]:
    """Shape, dtype and device of the outputs of a node, where it knows them."""
    if type(node) is AccumulateGrad:
        leaf = node.variable
        if leaf is not None:
            return (OutputInfo(tuple(leaf.shape), leaf.dtype, leaf.device),)
    elif isinstance(node, MultiNode):
        found = [e.output for _, e in sorted(node.outputs.items())]
        if len(found) == len(node.picks) and None not in found:
            return tuple(f[0] for f in found if f is not None)
    else:
        e = getattr(node, "extra", None)
        if e is not None and e.output is not None:
            return (e.output[0],)
        if "ans" in node.rule.plan and node.saved is not None:
            ans = show(node, "ans")
            return (OutputInfo(tuple(ans.shape), ans.dtype, ans.device),)
    raise RuntimeError(f"{node.name()} does not keep what its output is like. Ask get_gradient_edge(tensor), which notes it.")


def note_output(t: Tensor) -> None:
    """Let the node of `t` know what `t` is like."""
    node = t._node
    assert node is not None
    if type(node) is not AccumulateGrad:
        e = extra(node)
        if e.output is None:
            host = t._elem.host
            value: Any = host.xp.ones((), dtype=t.dtype, device=t.device) if not isinstance(t._array, Layer) else t._array
            e.output = OutputInfo(tuple(t.shape), t.dtype, t.device), wrap_at(t, value)
