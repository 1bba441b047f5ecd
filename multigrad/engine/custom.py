"""Running operations with a derivative of the user's own: the ctx of an autograd.Function, and what `apply` does.

What is particular here:

- Raw arrays of a known library go with Tensors. As an argument a raw array reaches forward as it is, a constant; one that
  forward or backward returns, or that is saved, is wrapped.
- Where several levels want a gradient (a transformation over Tensors that require grad, or inside another one), forward runs
  once, on the values of the innermost one; each level has a ctx of its own, with the same attributes and its own saved Tensors.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .. import observe
from ..errors import GradientError, program
from . import grad_mode
from .backward import Pass, current
from .computed import TWICE, Computed
from .dispatch import _same_structure, is_array, itself, recording_at, wrap_like
from .element import Element, Host, mixed
from .graph import FREED, AccumulateGrad, CustomNode, Extra, Node, RemovableHandle, edge, extra, tick
from .inplace import written
from .kept import CONTAINERS, OP, Mover, SavedTensor, Slot, computed_in, movers, refusing, replaced, was_computed, with_error
from .level import Guest, Layer, Run, Switch
from .pullback import Pullback, conform_gradient
from .tensor import Tensor, alias, element_of, peeled, strip, wrap, wrap_at, wrap_in, wrap_new
from .views import inside_function, move_retained, rebase, refuse


class FunctionCtx:
    """What forward may ask of its ctx."""

    to_save: Sequence[Any] | None = None
    saved_for_forward: Sequence[Any] | None = None
    dirty_tensors: Sequence[Any] | None = None
    non_differentiable: Sequence[Any] | None = None
    materialize_grads: bool = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep arrays for backward, which finds them in `saved_tensors`: inputs, outputs or others; None is allowed.

        Only what is kept this way is freed after the backward pass and checked for in-place modification. To be called
        once, in forward or setup_context; a second call replaces the first.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep arrays for `jvp`, which finds them in `saved_tensors`. To be called once, as `save_for_backward`."""
        for x in tensors:
            if x is not None and not is_array(x):
                raise AssertionError("save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx.")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs forward modifies in place, before or after it does. Each must be returned."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated, and without effect: shared memory is tracked by itself."""
        warnings.warn("`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. "
                      "Note that calls to `set_()` are not tracked", FutureWarning, stacklevel=2)

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which outputs have no gradient. backward still gets one for each of them: zeros."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None as the gradient of an output that was not used."""
        if not isinstance(value, bool):
            raise TypeError(f"set_materialize_grads received an invalid combination of arguments - got ({type(value).__name__}), but expected (bool)")
        self.materialize_grads = value


_PASSED_ON = ("to_save", "saved_for_forward", "dirty_tensors", "non_differentiable")
"""What forward says about arrays; dropped with forward, since an output among them would keep its own node alive."""

_RULE = Pullback(OP, (), lambda: lambda xp, propagate: propagate(), (), False, ())


class BackwardCFunction(FunctionCtx):
    """The ctx of a Function, which users also see as its node. Each Function has a subclass of its own, named `<Function>Backward`.

    All that is not private is for users: their attributes may have any name but those of the properties.
    """

    __slots__ = ("_arguments", "_attributes", "_edges", "_extra", "_forward", "_gone", "_host", "_level", "_movers", "_next", "_outputs", "_outs",
                 "_ref", "_run", "_seq", "_slots", "_start", "needs_input_grad")
    _forward_cls: Any
    needs_input_grad: tuple[bool, ...]  # per argument of apply
    _arguments: list[tuple[tuple[int, ...], Element] | None]  # per argument of apply: its shape and Element if it is an array
    _edges: list[Node | None]  # per argument that is an array
    _outs: list[Callable[[], Any] | None]  # per output that is an array: makes zeros in its form
    _slots: list[Slot | None] | None  # None once freed
    _gone: str  # why, then
    _forward: Computed | None  # what forward has computed, until it is over
    _attributes: dict[str, list[weakref.ref[Any]]]  # the user's, with the arrays in them that forward computed of its inputs
    _movers: Sequence[Mover]  # levels further in that differentiate, if forward kept such an array
    _run: Run | None  # the transformation it belongs to
    _level: int
    _start: int  # when forward began
    _seq: int  # when it ended
    _next: tuple[Node, ...]  # the nodes of arguments that need a gradient
    _host: Host
    _extra: Extra | None  # hooks of the node
    _outputs: dict[int, Extra]  # hooks of outputs
    _ref: weakref.ref[CustomNode] | None

    def _begin(self, flat: Sequence[Any], top: Tensor | None, forward: Computed | None = None) -> None:
        """Take note of the arguments, as they are before forward."""
        self._run = None if top is None else top._elem.run
        self._level = 1 if top is None else top._level
        records = top is not None and recording_at(top)
        needs, edges, nodes, self._arguments = [], [], [], []
        for x in flat:
            node = None
            if isinstance(x, Tensor):
                if x._level == self._level:
                    x._check()
                    node = x._history
            elif not is_array(x):
                needs.append(False)
                self._arguments.append(None)
                continue
            needs.append(node is not None)
            node = node if records else None
            edges.append(node)
            self._arguments.append((tuple(x.shape), element_of(x)))
            if node is not None:
                nodes.append(node)
        self.needs_input_grad = tuple(needs)
        self._edges = edges if nodes else []
        self._next = tuple(nodes)
        self._slots = []
        self._gone = FREED
        self._outs = []
        self._outputs = {}
        self._extra = self._ref = None
        self._attributes, self._movers = {}, ()
        if top is not None:
            self._host = top._elem.host
        if forward is None and nodes and self._forward_cls._follows:
            forward = Computed(self._forward_cls.__name__, (), self._next)
        self._forward = forward
        self._seq = self._start = tick()

    def _node(self) -> CustomNode:
        """The node, made anew if nobody holds it any more."""
        node = None if self._ref is None else self._ref()
        if node is None:
            node = CustomNode(len(self._outs))
            node.ctx = self
            node.rule = _RULE
            node.saved = ()
            node.cells = None
            node.next = self._next
            node.host = self._host
            node.seq = self._seq
            node.outputs = self._outputs
            node.extra = self._extra
            self._ref = weakref.ref(node)
        return node

    def _hooks(self) -> Extra:
        self._extra = extra(self._node())
        return self._extra

    def _finish(self, output: Any, flat: Sequence[Any], top: Tensor | None) -> tuple[Any, tuple[Any, ...]]:
        """Give what forward returned its history. Returns that, and the objects that forward returned."""
        outs = output if isinstance(output, tuple) else (output,)
        inputs = {id(x) for x in flat if is_array(x)}
        constant = {id(x) for x in _arrays(self.non_differentiable, "mark_non_differentiable only accepts variable arguments, but got {kind}")}
        dirty = self._dirty(outs, inputs)
        for t in dirty.values():
            if t._how is not None:
                refuse(t, recording_at(t), bool(self._next))
            written(t)
        self._seq = tick()
        tensors = [self._at_level(out, top) if is_array(out) else None for out in outs]
        self._outs = [None if t is None else partial(_zeros, t._elem, tuple(t.shape), t.device) for t in tensors]
        self._ref = None  # what was asked of the node in forward is in _extra
        node = self._node() if self._next else None
        results = []
        for i, (out, made) in enumerate(zip(outs, tensors, strict=True)):
            if made is None:
                results.append(out)
                continue
            t = made
            recorded = node is not None and t._elem.floating and id(out) not in constant
            if node is not None and recorded:
                if id(out) in dirty:
                    self._rebase(t, node, i)
                else:
                    if id(out) in inputs or (t._node is not None and t._node.seq < self._start and t._history is not None):
                        # not forward's own: another one on its memory
                        t = wrap_like(t, t._array, t, itself(t))
                    inside_function(t)
                    t._node = node.pick(i)
            elif (t._node is not None and t._history is not None) or (id(out) in inputs and id(out) not in dirty):
                t = alias(t)
            results.append(t)
        if node is not None:
            self._save(outs, results, inputs - set(dirty), top)
            if self._forward is not None:
                self._notice(flat, self._forward)
            mode = observe.gate.get()
            if mode is not True:
                mode.recorded(node, tuple(flat), tuple(results))
        for name in _PASSED_ON:
            self.__dict__.pop(name, None)
        self._forward = None
        return (_same_structure(output, results) if isinstance(output, tuple) else results[0]), outs

    def _at_level(self, x: Any, like: Tensor | None, whence: str = "forward") -> Tensor:
        """An array that the user's code made, as a Tensor of this level."""
        if like is None:
            return x if isinstance(x, Tensor) else wrap_new(x)
        x = peeled(x, self._level)
        if isinstance(x, Layer) and x._level > self._level:
            raise GradientError(f"{type(self).__name__}: {whence} returned a value of a running transformation that it was not given. "
                                "Pass the Tensor that it comes from as an argument of apply.")
        return x if isinstance(x, Tensor) and x._level == self._level else wrap_at(like, x)

    def _dirty(self, outs: tuple[Any, ...], inputs: set[int]) -> dict[int, Tensor]:
        """The Tensors that forward has modified, by their id."""
        marked = _arrays(self.dirty_tensors, "mark_dirty can only accept variables, but argument {i} is of type {kind}")
        found = {id(x): x for x in marked if isinstance(x, Tensor)}
        for key, t in found.items():
            if key not in inputs:
                warnings.warn("ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
                              "passed to ctx.mark_dirty().", UserWarning, stacklevel=program())
            if not any(t is out for out in outs):
                raise GradientError("Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                                    "modified inplace must all be outputs of the Function.")
        return found

    def _rebase(self, t: Tensor, own: CustomNode, number: int) -> None:
        """Make a modified input an output of the node."""
        if type(t._node) is AccumulateGrad:
            raise GradientError("a leaf Variable that requires grad has been used in an in-place operation.")
        node = own.pick(number)
        if t._how is None:
            move_retained(t._node, node)
            t._node = node
            return
        if len(self._outs) > 1:
            raise GradientError("If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
                                "than one Tensor. Make sure the input is not a view (using .clone()), or split the Function into two.")
        value = wrap_at(t, t._array)
        value._node = node
        rebase(t, value)

    # What was saved

    def _save(self, outs: tuple[Any, ...], results: list[Any], inputs: set[int], top: Tensor | None) -> None:
        made = {id(out): i for i, out in enumerate(outs) if is_array(out) and id(out) not in inputs}
        message = "save_for_backward can only save variables, but argument {i} is of type {kind}"
        slots: list[Slot | None] = []
        for x in _arrays(self.to_save, message, none=True):
            number = made.get(id(x))
            if x is None:
                slots.append(None)
                continue
            t = results[number] if number is not None else x if isinstance(x, Tensor) and x._level < self._level else self._at_level(x, top)
            t._check()
            own = number is not None and t._history is not None
            slots.append(Slot(t, number if own else t._history, self, number is None and id(x) not in inputs and was_computed(x, self._forward)))
        self._slots = slots

    def _notice(self, flat: Sequence[Any], forward: Computed) -> None:
        """Note which attributes hold arrays that forward computed of its inputs, and which levels further in would need to know how."""
        for name, value in self.__dict__.items():
            if name not in _PASSED_ON and isinstance(value, (Layer, *CONTAINERS)):
                known = {id(x) for x in flat}
                found = [weakref.ref(x) for x in computed_in(value, forward) if id(x) not in known]
                if found:
                    self._attributes[name] = found
        if self._run is not None and (self._attributes or any(slot is not None and slot.computed for slot in self._slots or ())):
            self._movers = movers(flat, self._level)

    def _refusing(self, x: Any) -> Any:
        """An array that forward computed of its inputs, as backward gets it: a second derivative raises when it reaches it."""
        records = current.get() is not None and (grad_mode.recording() if self._run is None else self._run.records(self._level))
        if not records and not self._movers:
            return x
        x._check()
        own = isinstance(x, Tensor) and x._level == self._level
        name = self._forward_cls.__name__
        value = refusing(x._array if own else x, self._movers, name)
        if not records and not own:
            return value
        t = wrap(strip(value)) if self._run is None else wrap_in(self._run, self._level, value)
        return with_error(t, self._next, TWICE.format(name)) if records else t

    def _called(self, given: Sequence[Any]) -> Any:
        """Call the user's backward, with such arrays among the attributes, too."""
        if not self._attributes:
            return BackwardCFunction.apply(self, *given)
        before = {}
        for name, refs in self._attributes.items():
            known = {id(x): self._refusing(x) for ref in refs if (x := ref()) is not None}
            if name in self.__dict__ and any(id(x) != key for key, x in known.items()):
                value = self.__dict__[name]
                before[name] = value, replaced(value, known)
                self.__dict__[name] = before[name][1]
        try:
            return BackwardCFunction.apply(self, *given)
        finally:
            for name, (value, shown) in before.items():
                if self.__dict__.get(name) is shown:
                    self.__dict__[name] = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What save_for_backward kept, each with its history. Raises if it was modified in place since, or freed."""
        if self._slots is None:
            raise GradientError(self._gone)
        found = tuple(None if slot is None else slot.unpack(self) for slot in self._slots)
        if self._forward_cls.clear_saved_tensors_on_access and self._slots:
            self._slots = None
            self._gone = ("saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. Either "
                          "access saved_tensors only once, or set clear_saved_tensors_on_access=False.")
        return found

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The former name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """What save_for_backward kept, for hooks of its own."""
        if self._slots is None:
            raise GradientError(FREED)
        return tuple(SavedTensor(self, slot) for slot in self._slots)

    # What the engine and users ask of a node

    def name(self) -> str:
        return type(self).__name__

    @property
    def requires_grad(self) -> bool:
        """Whether backward may be called: some argument requires grad."""
        return bool(self._next)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes about this node."""
        return self._node().metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after backward; a tuple that it returns replaces `grad_inputs`."""
        return RemovableHandle(self._hooks().posthooks, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before backward; a tuple that it returns replaces `grad_outputs`."""
        return RemovableHandle(self._hooks().prehooks, hook)

    def _sequence_nr(self) -> int:
        return self._seq

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """One entry for each argument that is an array."""
        return tuple((None, 0) if node is None else edge(node) for node in self._edges)

    def apply(self, *grads: Any) -> Any:
        """Call the user's backward."""
        cls = self._forward_cls
        return cls._backward()(self, list(grads)) if cls.boxed_grads_call else cls._backward()(self, *grads)

    def apply_jvp(self, *tangents: Any) -> Any:
        """Call the user's jvp."""
        return self._forward_cls.jvp(self, *tangents)

    def _propagate(self, g: tuple[Any, ...], p: Pass) -> tuple[Any, ...]:
        like = p.like
        given = [self._given(i, x, like) for i, x in enumerate(g)]
        reach = max((x._level for x in given if isinstance(x, Layer)), default=0)  # above this level: gradients that are of a transformation
        mode = mode_in_backward(self._run, self._level)
        innermost = grad_mode.joined(mode)
        called = self._called if innermost is grad_mode._variable() else partial(Guest("backward", innermost).call, self._called)
        if p.create or (self._run is None and not grad_mode.recording()):
            found = called(given)
        else:
            with grad_mode.switched_off(mode):
                found = called(given)
        results = found if isinstance(found, tuple) else (found,)
        expected = len(self._arguments)
        if len(results) > expected and all(x is None for x in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise GradientError(f"function {type(self).__name__} returned an incorrect number of gradients (expected {expected}, got {len(results)})")
        arrays = 0
        grads = []
        for i, (x, argument) in enumerate(zip(results, self._arguments, strict=True)):
            if argument is None:
                if x is not None:
                    raise GradientError(f"function {type(self).__name__} returned a gradient different than None at position {i + 1}, but the "
                                        "corresponding forward input was not a Variable")
                continue
            if x is not None and type(x) is not Tensor and not is_array(x):
                raise GradientError(f"expected Variable or None (got {type(x).__name__})")
            if self._edges[arrays] is not None:  # whatever the user made of needs_input_grad
                grads.append(None if x is None else self._conformed(x, arrays, *argument, p, reach))
            arrays += 1
        if not p.keep:
            self._slots = None
        return tuple(grads)

    def _given(self, i: int, x: Any, like: Tensor) -> Any:
        """The gradient of an output as backward gets it."""
        if x is None:
            out = self._outs[i]
            return wrap_at(like, out()) if out is not None and self.materialize_grads else None
        return x if _stays(x, self._level) or (isinstance(x, Tensor) and x._level == self._level) else wrap_at(like, x)

    def _conformed(self, x: Any, number: int, shape: tuple[int, ...], elem: Element, p: Pass, reach: int) -> Any:
        """A gradient that backward returned, as the engine takes it: of the argument's shape and dtype."""
        x = peeled(x, self._level)  # what it was computed with may have been made where another transformation runs
        above = _stays(x, self._level) and x._level <= reach
        t = x if above or (type(x) is Tensor and x._elem.run is None and self._run is None) else self._at_level(x, p.like, "backward")
        t._check()
        given = tuple(t.shape)
        if t._elem.base is not elem or given != shape:
            if t._elem.host is not elem.host:
                raise mixed(f"the gradient {number} of {type(self).__name__}", elem.host, t._elem.host)
            if t._elem.complex and not elem.complex:
                raise GradientError(f"Function {type(self).__name__} returned a complex gradient at index {number} for a real input. Return its "
                                    "real part.")
            if len(given) < len(shape) or any(n != 1 and n != m for n, m in zip(reversed(shape), reversed(given), strict=False)):
                raise GradientError(f"Function {type(self).__name__} returned an invalid gradient at index {number} - got {list(given)} but expected "
                                    f"shape compatible with {list(shape)}")
            t = conform_gradient(elem.host.bound, t, shape, elem.dtype)
        return t if p.create else _within(t, self._level) if above else strip(t._array)


def _within(x: Any, level: int) -> Any:
    """A batch or a dual above this level, without the Tensors of the level that it is made of: constants, since nothing was recorded."""
    while isinstance(x, Tensor) and x._level >= level:
        x = strip(x._array)
    if not isinstance(x, Layer) or x._level < level:
        return x
    return x._mapped(lambda part: _within(part, level))  # type: ignore[attr-defined]


def _stays(x: Any, level: int) -> bool:
    """Whether a gradient is a batch, or a dual, of a transformation above this level, which no Tensor of the level can hold."""
    return isinstance(x, Layer) and not isinstance(x, Tensor) and x._level > level


def _arrays(given: Any, message: str, none: bool = False) -> Sequence[Any]:
    """The arguments of a method of ctx, if all of them are arrays."""
    for i, x in enumerate(given or ()):
        if not is_array(x) and not (none and x is None):
            raise (TypeError if none else GradientError)(message.format(i=i, kind=type(x).__name__))
    found: Sequence[Any] = given or ()
    return found


def _zeros(elem: Element, shape: tuple[int, ...], device: Any) -> Any:
    return elem.host.xp.zeros(shape, dtype=elem.dtype, device=device)


def mode_in_backward(run: Run | None, level: int) -> Switch:
    """What switches off the recording of one level only: the levels further in may be about to differentiate this pass."""
    if run is None:
        return grad_mode.BASE
    return run.grad_mode if level == run.own_level else run.inner
