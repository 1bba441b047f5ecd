"""The methods of ctx that forward calls, and the values that ctx keeps for backward and jvp.

Saved inputs and outputs are returned with their history. The history of an array that forward
computed on the way (marked, see `Computed`) was not recorded, and a second derivative would need
it. In an ordinary pass such an array is a constant. If a derivative of the pass itself may be
wanted, it gets a history that raises: a node at each level that records, a tangent at each level of
forward mode.
"""

from __future__ import annotations

import inspect
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cache, partial
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..core.computed import following
from ..core.element import Element, Library, is_array
from ..core.graph import Node, edge, tick
from ..core.level import Layer, Transformation, innermost
from ..core.pullback import Pullback
from ..core.tensor import Tensor, element_of, wrap, wrap_at, wrap_in
from ..dispatch.general import same_structure
from ..errors import GradientError
from ..registry import Op

OP = Op(
    name="Function",
    chapter="autograd",
    kind="define",
    signature=inspect.Signature(),
    roles={},
    outputs=None,
    vjp={},
    jvp=None,
    batching=None,
    view=False,
    operator="",
    forward=None,
    doc="The user's own.",
    module=__name__,
    builtin=True,
)

PUBLIC = "multigrad.autograd.function"
"""The module from which users import the classes of this package."""


# The ctx


class FunctionCtx:
    """The methods and attributes of ctx for forward."""

    __module__ = PUBLIC

    to_save: Sequence[Any] | None = None
    saved_for_forward: Sequence[Any] | None = None
    dirty_tensors: Sequence[Any] | None = None
    non_differentiable: Sequence[Any] | None = None
    materialize_grads: bool = True

    if TYPE_CHECKING:
        saved_tensors: tuple[Tensor, ...]
        needs_input_grad: tuple[bool, ...]

        def __getattr__(self, name: str) -> Any: ...  # attributes that forward set
        def __setattr__(self, name: str, value: Any) -> None: ...

    def save_for_backward(self, *tensors: Any) -> None:
        """Save arrays for backward, which reads them in `saved_tensors`; None is allowed.

        They may be inputs, outputs or others. Only arrays saved this way are freed after the
        backward pass and checked for in-place modification. Call it once, in forward or
        setup_context; a second call replaces the first.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save arrays for `jvp`, which reads them in `saved_tensors`.

        Call it once, like `save_for_backward`.
        """
        for x in tensors:
            if x is not None and not is_array(x):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    "non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Declare which inputs forward modifies in place, before or after it does.

        Each must be returned.
        """
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated, without effect: shared memory is tracked automatically."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are "
            "automatically tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Any) -> None:
        """Declare which outputs have no gradient. backward gets zeros for each of them."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (the default) or None for an unused output."""
        if not isinstance(value, bool):
            raise TypeError(
                "set_materialize_grads received an invalid combination of arguments - got "
                f"({type(value).__name__}), but expected (bool)"
            )
        self.materialize_grads = value

    def _at(self, arrays: Sequence[Any], others: Sequence[Any]) -> Ctx:
        """The same at another level, with `others` in place of `arrays`."""
        replacements = {id(a): b for a, b in zip(arrays, others, strict=True) if is_array(a)}
        ctx = Ctx()
        vars(ctx).update({name: replaced(x, replacements) for name, x in vars(self).items()})
        return ctx


class Ctx(FunctionCtx):
    """The ctx of one level where it is not a node.

    _saved   makes the saved_tensors of a method
    _source  for a batch, the ctx at the next inner level
    """

    __slots__ = ("_level", "_saved", "_source", "needs_input_grad")
    _level: int | None
    needs_input_grad: tuple[bool, ...]

    def __init__(self, needs: tuple[bool, ...] = (), source: Any = None) -> None:
        self.needs_input_grad = needs
        self._source = source
        self._saved: Callable[[], tuple[Any, ...]] = tuple

    @property
    def saved_tensors(self) -> tuple[Any, ...]:  # type: ignore[override]
        return self._saved()


# Intermediate results of forward


TWICE = (
    "{}: a second derivative reached an array that forward computed and kept, and how that "
    "depends on the inputs is not known. Keep inputs and outputs only, and compute the rest in "
    "backward; or use multigrad.func.custom_vjp, which differentiates what its fwd keeps. "
    "gradgradcheck tests it. What is to be a constant can be detached in backward."
)


class Computed(Node):
    """The mark in place of the history of arrays that a running forward computes from its inputs.

    forward is not recorded, so saved arrays are recognized by this mark. To users such an array is
    a constant: its `_history` is None. A pass over operations that forward itself records on them
    (with enable_grad) ends there; a pass over operations recorded later raises.

    owner   the name of the Function
    moving  per argument of `apply` whether a derivative may be wanted; empty if those arguments
            have a history
    marked  weak references to the marked arrays so far
    alive   after forward, the marked arrays that are alive, by id
    over    the clock reading at the end of forward, 0 before
    """

    __slots__ = ("alive", "marked", "moving", "outer", "over", "owner")
    hidden = True
    saved = ()
    cells = None

    def __init__(
        self, owner: str, moving: Sequence[bool] = (), parents: tuple[Node, ...] = ()
    ) -> None:
        self.seq = tick()
        self.owner = owner
        self.moving = moving
        self.next = parents
        self.over = 0
        self.marked: list[weakref.ref[Tensor]] = []
        self.alive: dict[int, weakref.ref[Tensor]] = {}
        self.outer: Computed | None = following.get()

    def name(self) -> str:
        return "Computed"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return ()

    def reached(self, roots: Sequence[tuple[Node, Any]]) -> None:
        """Handle a pass from these roots that arrives here.

        If the roots are older than the end of forward, the pass is not a second derivative of it.
        """
        if self.over and any(root.seq > self.over for root, _ in roots):
            raise GradientError(TWICE.format(self.owner))

    def release(self) -> None:
        """Make all marked arrays constants.

        Arrays that a forward around this one needs to recognize get its mark.
        """
        outer = self.outer
        alive = self.alive = {}
        self.over = tick()
        for at in self.marked:
            t = at()
            if t is not None and t._node is self:
                t._node = outer
                alive[id(t)] = at
                if outer is not None:
                    outer.marked.append(at)
        self.marked = []


@cache
def refusing_rule(message: str) -> Pullback:
    """The rule of a history that raises."""

    def refuse(*_: Any) -> NoReturn:
        raise GradientError(message)

    return Pullback(OP, (), lambda: refuse, (), False, ())


class ErrorNode(Node):
    """The history of a value that cannot be differentiated again.

    `parents` are the nodes that its derivative would lead to.
    """

    __slots__ = ("library",)
    library: Library

    def __init__(self, message: str, parents: Sequence[Node], library: Library) -> None:
        self.seq = tick()
        self.rule = refusing_rule(message)
        self.saved = ()
        self.cells = None
        self.next = tuple(parents)
        self.library = library
        self.extra = None

    def name(self) -> str:
        return "Error"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple(edge(node) for node in self.next)


class Mover(NamedTuple):
    """A level that differentiates.

    It has the class and transformation of the layers, and for Tensors the nodes of the inputs.
    """

    level: int
    kind: type[Layer]
    run: Transformation | None
    nodes: list[Node]


def layers_in(x: Any) -> Iterator[Layer]:
    """`x` and the layers inside of it, outermost first."""
    while isinstance(x, Layer):
        yield x
        x = x._array


def movers(inputs: Sequence[Any], below: int) -> list[Mover]:
    """The inner levels that differentiate with respect to these arguments, innermost first.

    Inner levels are those below `below`.
    """
    by_level: dict[int, Mover] = {}
    for x in inputs:
        for layer in layers_in(x):
            if layer._level < below and layer._moves():
                at = by_level.setdefault(
                    layer._level,
                    Mover(layer._level, type(layer), getattr(layer, "_run", None), []),
                )
                if isinstance(layer, Tensor):
                    at.nodes.append(layer._node)  # type: ignore[arg-type]
    return [by_level[level] for level in sorted(by_level)]


def refusing(x: Any, levels: Sequence[Mover], name: str) -> Any:
    """A value computed from the inputs of the Function `name`, with a history that raises.

    It raises at these levels, innermost first.
    """
    for mover in levels:
        x = _refusing_at(mover, x, TWICE.format(name))
    return x


def _refusing_at(mover: Mover, x: Any, message: str) -> Any:
    own = x._level if isinstance(x, Layer) else 0
    if own >= mover.level:
        if not isinstance(x, Tensor):
            further_in = partial(_refusing_at, mover, message=message)
            return x if own == mover.level else x._mapped(further_in)
        if x._history is not None:
            return x
        if own > mover.level:  # a value made where another transformation runs
            return wrap_at(x, _refusing_at(mover, x._array, message))
        x = x._array
    if issubclass(mover.kind, Tensor):
        return with_error(wrap_in(mover.run, mover.level, x), mover.nodes, message)
    return mover.kind._refusing(x, message, mover.run, mover.level)  # type: ignore[attr-defined]


def with_error(t: Tensor, parents: Sequence[Node], message: str) -> Tensor:
    """Give a new Tensor a history that raises."""
    if t._elem.floating:
        t._node = ErrorNode(message, parents, t._elem.library)
    return t


def was_computed(x: Any, forward: Computed | None) -> bool:
    """Whether forward computed a saved array from its inputs."""
    return forward is not None and any(
        (ref := forward.alive.get(id(layer))) is not None and ref() is layer
        for layer in layers_in(x)
    )


class Described(NamedTuple):
    """What is remembered of an array."""

    elem: Element
    shape: tuple[int, ...]
    device: Any

    def zeros(self) -> Any:
        return self.elem.library.xp.zeros(self.shape, dtype=self.elem.dtype, device=self.device)


def described(x: Any) -> Described:
    elem, value = element_of(x), x
    if type(x) is Tensor and not x._elem.layered:  # the common case takes less time
        value = x._array
    return Described(
        elem, tuple(value.shape), elem.library.device(elem.library.xp, innermost(value))
    )


def value_in(x: Any) -> Any:
    """The value of a layer as the user's functions get it: a new object, recognized by identity."""
    x._check()
    value = x._array
    return value._frozen() if isinstance(value, Layer) else wrap(value)


def lowered(values: Sequence[Any], own: Sequence[bool]) -> list[Any]:
    """The next inner values of layers of a level, marked in `own`.

    If several arguments are one Tensor, each gets its own object.
    """
    inner: list[Any] = []
    for x, mine in zip(values, own, strict=True):
        if mine:
            x = value_in(x)
        if isinstance(x, Tensor) and any(x is y for y in inner):
            twin = wrap_at(x, x._array)
            twin._cell, twin._node = x._cell, x._node
            x = twin
        inner.append(x)
    return inner


def call_backward(rule: Any, ctx: Any, grads: Sequence[Any]) -> Any:
    """Call the user's backward."""
    backward = rule._backward()
    return backward(ctx, list(grads)) if rule.boxed_grads_call else backward(ctx, *grads)


def each(output: Any) -> tuple[Any, ...]:
    """The outputs of an operation, which is a tuple if there are several."""
    return output if isinstance(output, tuple) else (output,)


def arranged(output: Any, parts: list[Any]) -> Any:
    """The inverse of `each`: these parts in the form of `output`."""
    return same_structure(output, parts) if isinstance(output, tuple) else parts[0]


CONTAINERS = (tuple, list, dict)
"""The containers among the attributes of a ctx that are searched for arrays."""


def computed_in(value: Any, forward: Computed | None) -> Iterator[Layer]:
    """The arrays in an attribute of ctx, or in its containers, that forward computed."""
    if isinstance(value, CONTAINERS):
        for x in value.values() if isinstance(value, dict) else value:
            yield from computed_in(x, forward)
    elif isinstance(value, Layer) and was_computed(value, forward):
        yield value


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """`function(value)`, or a container of the same class with the results for its contents."""
    if not isinstance(value, CONTAINERS):
        return function(value)
    contents = list(value.values() if isinstance(value, dict) else value)
    results = [mapped(function, x) for x in contents]
    if type(value) not in CONTAINERS and all(map(is_, contents, results)):
        return value  # its class may not allow a new instance
    if isinstance(value, tuple):
        return type(value)(*results) if hasattr(value, "_fields") else type(value)(results)
    copied: Any = copy(value)
    if isinstance(value, dict):
        copied.update(zip(value, results, strict=True))
    else:
        copied[:] = results
    return copied


def replaced(value: Any, replacements: dict[int, Any]) -> Any:
    """`value`, an array or a container, with the replacements for arrays, by id."""
    return mapped(lambda x: replacements.get(id(x), x) if is_array(x) else x, value)
