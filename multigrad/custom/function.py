"""Function: user-defined operations with their derivatives, and how they are applied.

Corresponds to torch.autograd.function.

Raw arrays of a known library may be used beside Tensors. A raw array that is an argument reaches
forward unchanged, as a constant. A raw array that forward or backward returns, or that is saved, is
wrapped.

The applied object, the rule, is a class derived from Function, or a `Definition`, which has the
same names: `forward`, `backward` or `vjp`, `jvp`, `vmap`, and flags that say which of them it
defines. The application goes through the levels of its arguments from the highest inwards, and the
class of each layer decides in `_apply_custom` what happens there. On the innermost values forward
runs once. On the way back each level that differentiates makes its own node, or calls the user's
jvp, with the saved values of forward as values of that level.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Protocol, TypeVar

from .. import observe
from ..core import grad_mode, level
from ..core.computed import follow, following, mark
from ..core.element import is_array
from ..core.graph import Node
from ..core.level import BASE, Layer, as_guest, own_switch
from ..core.tensor import Tensor, wrap, wrap_at
from ..errors import GradientError
from ..layers.value_layer import ValueLayer
from ..observe import FUNCTION
from ..tracebacks import blamed
from .batch import under_batch
from .definition import Applied, call_forward, new_ctx_class, no_setup, no_vmap
from .dual import require_setup, under_dual
from .kept import PUBLIC, Computed, Ctx, FunctionCtx, arranged, each, layers_in, lowered, with_error
from .node import BackwardCFunction

F = TypeVar("F", bound=Callable[..., Any])


def of_any_parameters(f: Callable[..., Any]) -> Callable[..., Any]:
    """Let type checkers accept overrides of f with other parameters.

    For example, `backward(ctx, g)` for one output.
    """
    return f


Output = TypeVar("Output", covariant=True)


class Computing(Protocol[Output]):
    """A Function as type checkers see it: `apply` returns what forward returns."""

    @property
    def forward(self) -> Callable[..., Output]: ...


class FunctionMeta(type):
    """Metaclass that gives each Function the class of its nodes."""

    __module__ = PUBLIC
    _backward_cls: type[BackwardCFunction]
    _signature: tuple[Callable[..., Any], inspect.Signature] | None

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        cls._backward_cls = new_ctx_class(name, _forward_cls=cls)
        cls._signature = None
        super().__init__(name, bases, attrs)


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base of user-defined operations: derive a class from it, and call `apply` of that class.

        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, g):
                (y,) = ctx.saved_tensors
                return g * y

        Exp.apply(x)

    forward and backward get Tensors. forward is not recorded; backward is recorded under
    `create_graph`. Corresponds to torch.autograd.Function, except for second derivatives.

    Intermediate results of forward are not recorded either. So a second derivative that depends on
    a saved one raises, where PyTorch's is wrong. Save inputs and outputs (an intermediate result
    can be one more output), or use `func.custom_vjp`, and test with `gradgradcheck`. Intermediate
    results that are converted, by `.array`, NumPy or `float()`, or that are the `.grad` of a
    `backward()` in forward, count as constants nevertheless.
    """

    __module__ = PUBLIC
    clear_saved_tensors_on_access = False  # free saved values when they are first read
    boxed_grads_call = False  # backward gets its gradients as one list
    generate_vmap_rule = False  # under vmap, run the methods on batches
    _follows = True  # mark what forward computes from its inputs
    at_dual = at_batch = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method: define forward(ctx, ...) "
            "and backward(ctx, ...) as staticmethods and call <class>.apply(...)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: forward(ctx, *args, **kwargs).

        If setup_context is defined: forward(*args, **kwargs).
        """
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    setup_context = staticmethod(no_setup)

    @staticmethod
    @of_any_parameters
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradient of each argument of apply, given that of each output.

        Called as backward(ctx, *grad_outputs). None means that an argument has no gradient.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    @of_any_parameters
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangent of each output, given that of each argument, for forward mode.

        Called as jvp(ctx, *grad_inputs).

        `ctx.saved_tensors` has the arrays of `save_for_forward`. The tangent of an array without
        one is zeros, or None after `set_materialize_grads(False)`. The tangent of an argument that
        is not an array is None. Return None for an output without a tangent.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD. It is a staticmethod jvp(ctx, *tangents). Without it, second "
            "derivatives take reverse mode twice, as func.jacrev(func.grad(f)) does; "
            "func.custom_jvp defines a function by its jvp."
        )

    vmap = staticmethod(no_vmap)

    @classmethod
    def _backward(cls) -> Callable[..., Any]:
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise GradientError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. "
                "You should only implement one of them."
            )
        return cls.vjp

    @classmethod
    def apply(cls: type[Computing[Output]], *args: Any, **kwargs: Any) -> Output:
        """Run forward, and record the operation if an argument requires grad.

        Tensors inside lists or dictionaries are constants.
        """
        rule: Any = cls
        try:
            if rule.setup_context is not no_setup:
                if rule._signature is None or rule._signature[0] is not rule.forward:
                    rule._signature = rule.forward, inspect.signature(rule.forward)
                bound = rule._signature[1].bind(*args, **kwargs)
                bound.apply_defaults()
                args, kwargs = bound.args, bound.kwargs
            output: Output = apply_function(
                rule, (*args, *kwargs.values()) if kwargs else args, tuple(kwargs)
            )
            return output
        except Exception as error:
            error = blamed(error, f"{cls.__name__}.apply", args, kwargs)
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside


class InplaceFunction(Function):
    """Deprecated: a Function that remembers whether it works in place. Use Function."""

    __module__ = PUBLIC

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


# Applying it, or any other rule, to values of any levels


def apply_function(rule: Any, flat: Sequence[Any], names: tuple[str, ...]) -> Any:
    """Apply a rule to its arguments, the last ones named by `names`.

    Every application of a user-defined derivative calls this function.
    """
    mode = observe.gate.get()
    if mode is True:
        return _apply(rule, flat, names)
    flat = observe.passed(tuple(flat))
    return observe.call(FUNCTION, None, rule.__name__, (), flat, lambda: _apply(rule, flat, names))


def _apply(rule: Any, flat: Sequence[Any], names: tuple[str, ...]) -> Any:
    top = _top(flat)
    computed = None
    if rule._follows and top is not None and top._level > 1:  # of a transformation
        # per argument, whether a derivative with respect to it may be wanted, at any level
        moving = [any(layer._moves() for layer in layers_in(x)) for x in flat]
        computed = Computed(rule.__name__, moving) if any(moving) else None
    application = Application(rule, names, (), computed, False)
    return (Tensor if top is None else type(top))._apply_custom(application, flat, top).output


@dataclass(slots=True)
class Application:
    """An application of a rule at one level.

    The class of a layer decides what happens there, in `_apply_custom(application, values, top)`.

    rule      the Function or Definition
    names     the names of the last arguments
    needs     whether outer levels may want the gradient of each argument; None if they want none
    computed  the mark of values that forward computes from its inputs
    inner     whether an outer level needs what forward sets on its ctx
    """

    rule: Any
    names: tuple[str, ...]
    needs: tuple[bool, ...]
    computed: Computed | None
    inner: bool

    @property
    def name(self) -> str:
        """The name of the user's class or function."""
        name: str = self.rule.__name__
        return name

    def inside(
        self, values: Sequence[Any], needs: tuple[bool, ...] | None = None, rule: Any = None
    ) -> Applied:
        """Apply the rule to the next inner values.

        `needs` and `rule` replace those of this level if they are given. A Definition takes its
        arguments by position, and knows itself what forward has set on its ctx.
        """
        top = _top(values)
        same = rule is None
        application = Application(
            self.rule if same else rule,
            self.names if same else (),
            self.needs if needs is None else needs,
            self.computed,
            same,
        )
        below: Applied = (Tensor if top is None else type(top))._apply_custom(
            application, values, top
        )
        return below

    def through(
        self,
        values: Sequence[Any],
        own: Sequence[bool],
        wrap: Callable[[Any], Any],
        needs: tuple[bool, ...] | None = None,
    ) -> Applied:
        """Apply the rule at the next inner level, and wrap each resulting array by `wrap`.

        own  for each of `values` whether it is a layer of this level
        """
        inner = lowered(values, own)
        below = self.inside(inner, needs)
        lifted = [wrap(x) if is_array(x) else x for x in each(below.output)]
        return self.raised(below, lifted, inner, values)

    def raised(
        self,
        below: Applied,
        lifted: Sequence[Any],
        inner: Sequence[Any] = (),
        values: Sequence[Any] = (),
    ) -> Applied:
        """The inner result with the values `lifted` of this level in place of its arrays.

        inner, values  the arguments there and here
        """
        output, ctx = below
        if ctx is not None:
            ctx = ctx._at((*inner, *each(output)), (*values, *lifted))
        return Applied(arranged(output, list(lifted)), ctx)

    def recorded(self, values: Sequence[Any], top: Tensor | None) -> Applied:
        """Apply the rule at the level of a Tensor.

        Inner levels that also need a gradient make their nodes first.
        """
        ctx = self.rule._backward_cls()
        ctx._begin(self.rule, values, top, self.computed)
        needs = own = ctx.needs_input_grad
        if self.needs:
            needs = tuple([a or b for a, b in zip(own, self.needs, strict=True)])
        asked = self.inner
        mode = BASE if ctx._run is None else ctx._run.grad_mode
        if (
            top is not None
            and top._elem.run is not None
            and any(_wanted_below(x, top._elem.level) for x in values)
        ):
            own_level = [isinstance(x, Tensor) and x._elem.level == top._elem.level for x in values]
            output, state = self.through(values, own_level, partial(wrap_at, top), needs)
            asked = asked and state is not None
            if state is None:
                if ctx._next:
                    require_setup(self.rule)
                    as_guest("setup_context", mode, self._run, ctx, values, output)
            elif state.dirty_tensors:
                raise GradientError(
                    f"{self.name}: mark_dirty is not supported where several levels of "
                    "differentiation meet. Return a new array."
                )
            else:
                vars(ctx).update(vars(state))
        else:
            if needs is not own:
                ctx.needs_input_grad = needs  # forward may use it to save less
            output = as_guest("forward", mode, self._run, ctx, values)
            if needs is not own:
                ctx.needs_input_grad = own
        return Applied(*ctx._finish(output, values, top, asked))

    def pushed(self, values: Sequence[Any], top: Any) -> Applied:
        """Apply the rule at a Dual."""
        return (self.rule.at_dual or under_dual)(self, values, top)

    def batched(self, values: Sequence[Any], top: Any) -> Applied:
        """Apply the rule at a batch."""
        return (self.rule.at_batch or under_batch)(self, values, top)

    def _run(self, ctx: BackwardCFunction, values: Sequence[Any], *output: Any) -> Any:
        """Call forward or, with the output of a vmap, setup_context. Mark what it computes.

        Recording is off at the level of the ctx, the level that users see.
        """
        computed = ctx._computed
        # a forward around this one may need to know what is computed
        off = None if computed is not None or following.get() is not None else False
        before = level.undo()
        try:
            if computed is not None:
                follow(computed)
                if computed.moving:
                    computed.next = ctx._next
                    # arguments that are constants at the innermost level, but not at outer ones
                    for x, moving in zip(values, computed.moving, strict=True):
                        inner = moving and isinstance(x, Tensor) and x._node is None
                        if inner and x._elem.floating:
                            mark(x)
            own_switch().set(off)
            if off is None:
                level.mark_at_the_base()
            if output:
                return self.rule.setup_context(ctx, tuple(values), *output)
            return call_forward(self.rule, self.names, ctx, values)
        finally:
            try:
                level.settle(before[0])
            except MemoryError:
                level.settle_again(before)
            if computed is not None:
                computed.release()


def _top(values: Sequence[Any]) -> Any:
    """The argument of the highest level, None if none is a layer."""
    layers = []  # those inside of lists are no arguments
    for x in values:
        if isinstance(x, Layer):
            if isinstance(x, Tensor):
                x._check()
            layers.append(x)
    return level.highest(layers)


def _wanted_below(x: Any, own: int) -> bool:
    """Whether an inner level may want the gradient of `x`.

    That is a level below `own`, or the level of a gradient that a backward gets.
    """
    return any(
        layer._level != own and (not isinstance(layer, Tensor) or layer._node is not None)
        for layer in layers_in(x)
    )


# Once differentiable


_ONCE = "trying to differentiate twice a function that was marked with @once_differentiable"


def once_differentiable(fn: F) -> F:
    """Decorate a backward that cannot be differentiated.

    It is not recorded, and differentiating its result raises.
    """

    if not callable(fn):
        raise TypeError(f"once_differentiable: expected a function, not {type(fn).__name__}")

    @wraps(fn)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        node = ctx
        while isinstance(node, Ctx) and node._source is not None:
            node = node._source
        own = node if isinstance(node, BackwardCFunction) else None
        mode = own_switch() if own is None else own._mode
        records = mode.get()
        with grad_mode.switched_off(mode):
            outputs = fn(ctx, *args, **kwargs)
        parents = []
        for x in args if records else ():
            tensor = next((t for t in layers_in(x) if isinstance(t, Tensor)), None)
            if tensor is not None and tensor._node is not None:
                parents.append(tensor._node)
        if parents and own is not None:
            parents += own._next
        return arranged(outputs, [_poisoned(x, parents) for x in each(outputs)])

    return wrapper  # type: ignore[return-value]


once_differentiable.__module__ = PUBLIC


def _poisoned(x: Any, parents: Sequence[Node]) -> Any:
    """A constant that raises when it is differentiated.

    This level raises if `parents` are given; inner levels raise if they recorded the value.
    """
    if isinstance(x, ValueLayer):  # the gradient of a batch or a dual
        copied = x._copied()
        copied._put(_poisoned(x._array, parents))
        return copied
    if not isinstance(x, Tensor):
        if not parents or not is_array(x):
            return x
        x = wrap(x)
    inner = x._array
    if isinstance(inner, Tensor):
        inner = _poisoned(inner, [] if inner._node is None else [inner._node])
    if inner is x._array and not parents and x._node is None:
        return x
    t = wrap_at(x, inner)
    return with_error(t, parents, _ONCE) if parents else t
