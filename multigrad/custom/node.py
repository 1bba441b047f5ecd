"""The ctx of one level, which users see as its node: the attributes of forward, and backward.

- Raw arrays of a known library may be used beside Tensors. A raw array that is an argument reaches
  forward unchanged, as a constant; one that forward or backward returns, or that is saved, is
  wrapped.
- If several levels want a gradient (a transformation over Tensors that require grad, or inside
  another one), forward runs once, on the innermost values. Each level has its own ctx, with the
  same attributes and its own saved Tensors.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .. import observe
from ..backward.run import current
from ..core import grad_mode, graph
from ..core.aliasing import Location
from ..core.element import Element, Library, is_array, mixed
from ..core.graph import CustomNode, Node, NodeHooks, RemovableHandle
from ..core.level import BASE, Layer, Switch, Transformation, as_guest
from ..core.passes import Pass
from ..core.pullback import Pullback
from ..core.tensor import Tensor, alias, element_of, peeled, strip, wrap, wrap_at, wrap_in, wrap_new
from ..dispatch.conform import conform_gradient
from ..dispatch.general import itself, recording_at, wrap_like
from ..errors import GradientError, kind, program
from ..memory import old_values, saved, views
from . import kept
from .kept import Computed, Ctx, Described, FunctionCtx, arranged, each

_PASSED_ON = ("to_save", "saved_for_forward", "dirty_tensors", "non_differentiable")
"""The attributes by which forward describes arrays.

They are dropped after forward, since an output among them would keep its own node alive.
"""

_PROPAGATE = Pullback(kept.OP, (), lambda: lambda xp, propagate, saved: propagate(), (), False, ())


class Slot:
    """A saved array of a ctx.

    saved     its value
    source    its history: a node, or its number if it is an output
    original  a weak reference to the Tensor
    computed  whether forward computed it from its inputs, and it is not an output
    """

    __slots__ = ("computed", "elem", "original", "saved", "source")

    def __init__(
        self, t: Tensor, source: Node | int | None, ctx: BackwardCFunction, computed: bool
    ) -> None:
        self.computed = computed
        self.elem = t._elem
        self.source = source
        self.original: Callable[[], Tensor | None] = weakref.ref(t)
        name = ctx._rule.__name__
        keeper = saved.in_force(name, ctx._level, (t,))
        if keeper is not None:
            self.saved = saved.packed(keeper, name, t)
        else:
            self.saved = saved.handle(None, name, t._array, t._cell)
            old_values.noted(self.saved)

    def unpack(self, ctx: BackwardCFunction) -> Tensor:
        """The Tensor that was saved, or one of the same value and history."""
        node = ctx._node().pick(self.source) if isinstance(self.source, int) else self.source
        x = self.saved
        if x.keeper is None and graph.written_after(x.cell, ctx._seq):
            raise graph.modified(graph.describe(self.elem.library, x.data, node), x.cell, ctx._seq)
        t = self.original()
        if t is None or t._node is not node or t._array is not x.data:
            t = wrap_in(self.elem.run, self.elem.level, x.unpack())
            if x.keeper is None:
                t._cell = x.cell
            t._node = node
        return ctx._refusing(t) if self.computed else t


class BackwardCFunction(FunctionCtx):
    """The ctx of one level, which users also see as the node.

    Each Function has its own subclass, named `<Function>Backward`.

    Users may set attributes of any name that does not begin with an underscore and is not a
    property.
    """

    __slots__ = (
        "_arguments",
        "_attributes",
        "_computed",
        "_edges",
        "_extra",
        "_gone",
        "_level",
        "_library",
        "_movers",
        "_next",
        "_outputs",
        "_outs",
        "_ref",
        "_rule",
        "_run",
        "_seq",
        "_slots",
        "_start",
        "needs_input_grad",
    )
    __module__ = kept.PUBLIC
    _forward_cls: Any = None  # the Function; None for a Definition
    needs_input_grad: tuple[bool, ...]  # per argument of apply
    _rule: Any  # the Function or Definition
    # per argument of apply: its shape and Element if it is an array
    _arguments: list[tuple[tuple[int, ...], Element] | None]
    _edges: list[Node | None]  # per argument that is an array
    _outs: list[Described | None]  # per output that is an array
    _slots: list[Slot | None] | None  # None once freed
    _gone: str  # the reason, then
    _computed: Computed | None  # the mark of computed values, while forward runs
    # the user's attributes, with the arrays in them that forward computed from its inputs
    _attributes: dict[str, list[weakref.ref[Any]]]
    _movers: Sequence[kept.Mover]  # inner levels that differentiate, if forward kept such an array
    _run: Transformation | None  # the transformation it belongs to
    _level: int
    _start: int  # when forward began
    _seq: int  # when it ended
    _next: tuple[Node, ...]  # the nodes of arguments that need a gradient
    _library: Library
    _extra: NodeHooks | None  # hooks of the node
    _outputs: dict[int, NodeHooks]  # hooks of outputs
    _ref: weakref.ref[CustomNode] | None

    def _begin(
        self, rule: Any, flat: Sequence[Any], top: Tensor | None, computed: Computed | None
    ) -> None:
        """Store a description of the arguments, which are up to date, before forward."""
        self._rule = rule
        if top is None:
            self._run, self._level, records = None, 1, False
        else:
            elem, mode = top._elem, observe.gate.get()
            self._run, self._level, self._library = elem.run, elem.level, elem.library
            records = mode is True or mode.at(elem.run, elem.level)
        needs, edges, nodes = [], [], []
        arguments: list[tuple[tuple[int, ...], Element] | None] = []
        for x in flat:
            node = None
            if isinstance(x, Tensor):
                elem, shape = x._elem, x._array.shape
                if elem.level == self._level and x._node is not None and not x._node.hidden:
                    node = x._node
            elif is_array(x):
                elem, shape = element_of(x), x.shape
            else:
                needs.append(False)
                arguments.append(None)
                continue
            arguments.append((tuple(shape), elem.base))
            needs.append(node is not None)
            if not records:
                node = None
            elif node is not None:
                nodes.append(node)
            edges.append(node)
        self._arguments = arguments
        self.needs_input_grad = tuple(needs)
        self._edges = edges if nodes else []
        self._next = tuple(nodes)
        self._slots, self._gone, self._outs, self._outputs = [], graph.FREED, [], {}
        self._extra = self._ref = None
        self._attributes, self._movers = {}, ()
        if computed is None and nodes and rule._follows:
            computed = Computed(rule.__name__, (), self._next)
        self._computed = computed
        self._seq = self._start = graph.tick()

    def _node(self) -> CustomNode:
        """The node, made again if it is gone."""
        node = None if self._ref is None else self._ref()
        if node is None:
            node = CustomNode(len(self._outs))
            node.ctx = self
            node.rule = _PROPAGATE
            node.saved = ()
            node.cells = None
            node.next = self._next
            node.library = self._library
            node.seq = self._seq
            node.outputs = self._outputs
            node.extra = self._extra
            self._ref = weakref.ref(node)
        return node

    def _hooks(self) -> NodeHooks:
        self._extra = graph.extra(self._node())
        return self._extra

    def _finish(
        self, output: Any, flat: Sequence[Any], top: Tensor | None, asked: bool
    ) -> tuple[Any, Ctx | None]:
        """Give the outputs of forward their history.

        Returns them, and the ctx for outer levels if it is asked for.
        """
        outs = each(output)
        inputs = {
            id(x) for x, argument in zip(flat, self._arguments, strict=True) if argument is not None
        }
        constant: set[int] = set()
        if self.non_differentiable:
            message = "mark_non_differentiable only accepts variable arguments, but got {kind}"
            constant = {id(x) for x in _arrays(self.non_differentiable, message)}
        dirty = self._dirty(outs, inputs) if self.dirty_tensors else {}
        self._seq = graph.tick()
        results = [self._at_level(out, top) if is_array(out) else out for out in outs]
        node = None
        if self._next:
            self._outs = [kept.described(t) if isinstance(t, Tensor) else None for t in results]
            self._ref = None  # what forward set on the node is in _extra
            node = self._node()
        for i, (out, t) in enumerate(zip(outs, results, strict=True)):
            if not isinstance(t, Tensor):
                continue
            if node is not None and t._elem.floating and id(out) not in constant:
                if id(out) in dirty:
                    self._rebase(t, node, i)
                    continue
                if id(out) in inputs or (
                    t._node is not None and t._node.seq < self._start and t._history is not None
                ):
                    # not forward's own Tensor: another one on its memory
                    t = wrap_like(t, t._array, t, itself(t))
                views.inside_function(t)
                t._node = node.pick(i)
            elif (t._node is not None and t._history is not None) or (
                id(out) in inputs and id(out) not in dirty
            ):
                t = alias(t)
            results[i] = t
        try:
            if node is not None:
                if self.to_save:
                    self._save(outs, results, inputs - dirty.keys(), top)
                if self._computed is not None:
                    self._notice(flat, self._computed)
                mode = observe.gate.get()
                if mode is not True:
                    mode.recorded(node, tuple(flat), tuple(results))
            ctx = self._at(outs, results) if asked else None
        finally:  # the second run of a checkpoint may end here
            for name in _PASSED_ON:
                self.__dict__.pop(name, None)
            self._computed = None
        return arranged(output, results), ctx

    def _at_level(self, x: Any, like: Tensor | None, whence: str = "forward") -> Tensor:
        """An array that the user's code made, as a Tensor of this level."""
        if like is None:
            return x if isinstance(x, Tensor) else wrap_new(x)
        if isinstance(x, Layer):
            x = given_back(x, self._level, f"{type(self).__name__}: {whence}")
        own = isinstance(x, Tensor) and x._elem.level == self._level
        return x if own else wrap_in(self._run, self._level, x)

    def _dirty(self, outs: tuple[Any, ...], inputs: set[int]) -> dict[int, Tensor]:
        """The Tensors that forward has modified, by id."""
        marked = _arrays(
            self.dirty_tensors,
            "mark_dirty can only accept variables, but argument {i} is of type {kind}",
        )
        dirty = {id(x): x for x in marked if isinstance(x, Tensor)}
        for key, t in dirty.items():
            if key not in inputs:
                warnings.warn(
                    "ctx.mark_dirty() received a tensor that was not an input. Only input "
                    "Tensors that have been mutated should be passed to ctx.mark_dirty().",
                    UserWarning,
                    stacklevel=program(),
                )
            if not any(t is out for out in outs):
                raise GradientError(
                    "Some elements marked as dirty during the forward method were not returned "
                    "as output. The inputs that are modified inplace must all be outputs of the "
                    "Function."
                )
        for t in dirty.values():
            place = Location(t)
            if views.is_part(t):
                views.permit(t, place, recording_at(t), bool(self._next))
            views.written(t, place)
        return dirty

    def _rebase(self, t: Tensor, own: CustomNode, number: int) -> None:
        """Make a modified input an output of the node."""
        if type(t._node) is graph.AccumulateGrad:
            outside = "" if views.is_argument(t) else ", or under `with multigrad.no_grad():`"
            raise GradientError(
                "a leaf Variable that requires grad has been used in an in-place operation. "
                f"Apply the Function to a copy, x.clone(){outside}."
            )
        node = own.pick(number)
        if not views.is_part(t):
            views.move_retained(t._node, node)
            t._node = node
            return
        if len(self._outs) > 1:
            raise GradientError(
                "If your Function modifies inplace an input that is a view of another Tensor, "
                "your Function cannot return more than one Tensor. Make sure the input is not a "
                "view (using .clone()), or split the Function into two."
            )
        value = wrap_at(t, t._array)
        value._node = node
        views.rebase(t, value)

    # Saved values

    def _save(
        self, outs: tuple[Any, ...], results: list[Any], inputs: set[int], top: Tensor | None
    ) -> None:
        numbers = {
            id(out): i
            for i, out in enumerate(outs)
            if isinstance(results[i], Tensor) and id(out) not in inputs
        }
        message = "save_for_backward can only save variables, but argument {i} is of type {kind}"
        slots: list[Slot | None] = []
        for x in _arrays(self.to_save, message, none=True):
            if x is None:
                slots.append(None)
                continue
            number = numbers.get(id(x))
            computed = False
            if number is not None:
                t = results[number]
            else:
                inner = isinstance(x, Tensor) and x._level < self._level
                t = x if inner else self._at_level(x, top)
                computed = id(x) not in inputs and kept.was_computed(x, self._computed)
            t._check()
            recorded = number is not None and t._history is not None
            slots.append(Slot(t, number if recorded else t._history, self, computed))
        self._slots = slots

    def _notice(self, flat: Sequence[Any], forward: Computed) -> None:
        """Note the attributes with arrays that forward computed from its inputs.

        Note also the inner levels that would need their history.
        """
        inputs = {id(x) for x in flat}
        for name, value in self.__dict__.items():
            if name not in _PASSED_ON:
                arrays = [
                    weakref.ref(x) for x in kept.computed_in(value, forward) if id(x) not in inputs
                ]
                if arrays:
                    self._attributes[name] = arrays
        if self._run is not None and (
            self._attributes
            or any(slot is not None and slot.computed for slot in self._slots or ())
        ):
            self._movers = kept.movers(flat, self._level)

    def _refusing(self, x: Any) -> Any:
        """An array that forward computed from its inputs, as backward gets it.

        A second derivative that depends on it raises.
        """
        records = current.get() is not None and (
            grad_mode.recording() if self._run is None else self._run.records(self._level)
        )
        if not records and not self._movers:
            return x
        x._check()
        own = isinstance(x, Tensor) and x._level == self._level
        name = self._rule.__name__
        value = kept.refusing(x._array if own else x, self._movers, name)
        if not records and not own:
            return value
        t = wrap(strip(value)) if self._run is None else wrap_in(self._run, self._level, value)
        return kept.with_error(t, self._next, kept.TWICE.format(name)) if records else t

    def _called(self, grads: Sequence[Any]) -> Any:
        """Call the user's backward, with the noted arrays among the attributes replaced.

        `_notice` has noted them, and `_refusing` makes the replacements.
        """
        attributes, exchanged = self.__dict__, {}
        for name, refs in self._attributes.items():
            arrays = [x for ref in refs if (x := ref()) is not None]
            replacements = {id(x): self._refusing(x) for x in arrays}
            if name in attributes and any(replacements[id(x)] is not x for x in arrays):
                value = attributes[name]
                exchanged[name] = value, kept.replaced(value, replacements)
                attributes[name] = exchanged[name][1]
        try:
            return BackwardCFunction.apply(self, *grads)
        finally:
            for name, (value, replacement) in exchanged.items():
                if attributes.get(name) is replacement:
                    attributes[name] = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        """The arrays of save_for_backward, each with its history.

        Raises GradientError if one was modified in place since, or if they were freed.
        """
        if self._slots is None:
            raise GradientError(self._gone)
        tensors = tuple(None if slot is None else slot.unpack(self) for slot in self._slots)
        if self._rule.clear_saved_tensors_on_access and self._slots:
            self._slots = None
            self._gone = (
                "saved_tensors can only be accessed once when "
                "clear_saved_tensors_on_access=True is set on the autograd.Function. Either "
                "access saved_tensors only once, or set clear_saved_tensors_on_access=False."
            )
        return tensors

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """Deprecated name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[saved.SavedTensor, ...]:
        """The arrays of save_for_backward, as objects that take hooks."""
        if self._slots is None:
            raise GradientError(graph.FREED)
        return tuple(saved.SavedTensor(partial(self._pack, slot)) for slot in self._slots)

    def _pack(self, slot: Slot | None, hooks: Any) -> None:
        """Let a pair of hooks pack a saved array."""
        if slot is None:
            raise GradientError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        if self._slots is None:
            raise GradientError(
                "Calling register_hooks on a saved tensor after it has been freed. "
                + graph.FREED[graph.FREED.index("Saved") :]
            )
        slot.saved = saved.by_hooks(hooks, slot.saved, lambda: alias(slot.unpack(self)))

    # The interface of a node

    def name(self) -> str:
        return type(self).__name__

    @property
    def requires_grad(self) -> bool:
        """Whether backward may be called: some argument requires grad."""
        return bool(self._next)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's notes about this node."""
        self._hooks()  # the node may be made again
        return self._node().metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after backward.

        A tuple that it returns replaces `grad_inputs`.
        """
        return RemovableHandle(self._hooks().posthooks, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before backward; a tuple that it returns replaces them."""
        return RemovableHandle(self._hooks().prehooks, hook)

    def _sequence_nr(self) -> int:
        return self._seq

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """One entry for each argument that is an array."""
        return tuple((None, 0) if node is None else graph.edge(node) for node in self._edges)

    def apply(self, *grads: Any) -> Any:
        """Call the user's backward."""
        return kept.call_backward(self._rule, self, grads)

    def apply_jvp(self, *tangents: Any) -> Any:
        """Call the user's jvp."""
        return self._rule.jvp(self, *tangents)

    @property
    def _mode(self) -> Switch:
        """The grad mode of this level in backward: inner levels may be differentiating the pass."""
        if self._run is None:
            return BASE
        return self._run.grad_mode if self._level == self._run.own_level else self._run.inner

    def _propagate(self, g: tuple[Any, ...], p: Pass) -> tuple[Any, ...]:
        like = p.like
        cotangents = [self._cotangent(i, x, like) for i, x in enumerate(g)]
        # above this level: gradients of a transformation
        reach = max((x._level for x in cotangents if isinstance(x, Layer)), default=0)
        mode = self._mode
        if p.create_graph or (self._run is None and not grad_mode.recording()):
            output = as_guest("backward", mode, self._called, cotangents)
        else:
            with grad_mode.switched_off(mode):
                output = as_guest("backward", mode, self._called, cotangents)
        results = each(output)
        expected = len(self._arguments)
        if len(results) > expected and all(x is None for x in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise GradientError(
                f"function {type(self).__name__} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(results)}). It returns one for each argument "
                "of forward, None for what has none."
            )
        arrays = 0
        grads = []
        for i, (x, argument) in enumerate(zip(results, self._arguments, strict=True)):
            if argument is None:
                if x is not None:
                    raise GradientError(
                        f"function {type(self).__name__} returned a gradient different than "
                        f"None at position {i + 1}, but the corresponding forward input was not "
                        "a Variable"
                    )
                continue
            if x is not None and type(x) is not Tensor and not is_array(x):
                raise GradientError(
                    f"expected Variable or None (got {kind(x)}): function {type(self).__name__} "
                    f"returned it at position {i + 1}"
                )
            if self._edges[arrays] is not None:  # whatever the user has set needs_input_grad to
                grads.append(None if x is None else self._conformed(x, arrays, *argument, p, reach))
            arrays += 1
        if not p.retain_graph:
            self._slots = None
        return tuple(grads)

    def _cotangent(self, i: int, x: Any, like: Tensor) -> Any:
        """The gradient of an output as backward gets it."""
        if x is None:
            if (out := self._outs[i]) is None or not self.materialize_grads:
                return None
            return wrap_at(like, out.zeros())
        own = isinstance(x, Tensor) and x._level == self._level
        return x if own or _stays(x, self._level) else wrap_at(like, x)

    def _conformed(
        self, x: Any, number: int, shape: tuple[int, ...], elem: Element, p: Pass, reach: int
    ) -> Any:
        """A gradient that backward returned, in the shape and dtype of the argument."""
        # backward may have computed with arrays made where another transformation runs
        x = peeled(x, self._level)
        above = _stays(x, self._level) and x._level <= reach
        base = type(x) is Tensor and x._elem.run is None and self._run is None
        t = x if above or base else self._at_level(x, p.like, "backward")
        t._check()
        dims = tuple(t.shape)
        if t._elem.base is not elem or dims != shape:
            if t._elem.library is not elem.library:
                raise mixed(
                    f"the gradient {number} of {type(self).__name__}", elem.library, t._elem.library
                )
            if t._elem.complex and not elem.complex:
                raise GradientError(
                    f"Function {type(self).__name__} returned a complex gradient at index "
                    f"{number} for a real input. Return its real part."
                )
            if len(dims) < len(shape) or any(
                n != 1 and n != m for n, m in zip(reversed(shape), reversed(dims), strict=False)
            ):
                raise GradientError(
                    f"Function {type(self).__name__} returned an invalid gradient at index "
                    f"{number} - got {list(dims)} but expected shape compatible with "
                    f"{list(shape)}"
                )
            t = conform_gradient(elem.library.bound, t, shape, elem.dtype)
        if p.create_graph:
            return t
        return _without_tensors(t, self._level) if above else strip(t._array)


def _without_tensors(x: Any, level: int) -> Any:
    """A batch or a dual above this level, without Tensors of this level inside of it.

    They are constants, since nothing was recorded.
    """
    while isinstance(x, Tensor) and x._level >= level:
        x = strip(x._array)
    if not isinstance(x, Layer) or x._level < level:
        return x
    return x._mapped(lambda part: _without_tensors(part, level))  # type: ignore[attr-defined]


def _stays(x: Any, level: int) -> bool:
    """Whether a gradient is a batch or a dual of a transformation above this level.

    No Tensor of the level can hold it.
    """
    return isinstance(x, Layer) and not isinstance(x, Tensor) and x._level > level


def _arrays(arguments: Any, message: str, none: bool = False) -> Sequence[Any]:
    """The arguments of a method of ctx; raises if one is not an array."""
    for i, x in enumerate(arguments or ()):
        if not is_array(x) and not (none and x is None):
            raise (TypeError if none else GradientError)(message.format(i=i, kind=type(x).__name__))
    return arguments or ()


def given_back(x: Any, most: int, whence: str) -> Any:
    """An array that the user's code returned, as a value of level `most` or lower.

    If the code met arrays that it made inside of other transformations, `x` may have layers of
    their levels; it is a constant there, and these layers are removed. If `x` still depends on a
    level above `most`, the code has captured a value of that level, and its derivative would be
    lost. Then this raises.
    """
    x = peeled(x, most)
    if isinstance(x, Layer) and x._level > most:
        raise GradientError(
            f"{whence} returned a value of a running transformation that it was not given. Pass "
            "the Tensor that it comes from as an argument of apply."
        )
    return x
