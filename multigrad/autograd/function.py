"""Function: operations with a derivative of the user's own. The meaning is that of torch.autograd.function.

Raw arrays of a known library go with Tensors: as an argument a raw array reaches forward as it is, a constant; one that
forward or backward returns, or that is saved, is wrapped.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..engine import grad_mode
from ..engine.custom import BackwardCFunction, FunctionCtx, mode_in_backward
from ..engine.dispatch import is_array
from ..engine.graph import Node
from ..engine.kept import with_error
from ..engine.tensor import Tensor, wrap, wrap_at
from ..errors import GradientError
from ..layers.applying import apply_function
from ..layers.custom_batched import BatchCtx
from ..layers.immutable import Immutable

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]

F = TypeVar("F", bound=Callable[..., Any])

_ContextMethodMixin = FunctionCtx

class FunctionMeta(type):
    """Gives each Function the class of its nodes."""

    _backward_cls: type[BackwardCFunction]
    _signature: tuple[Callable[..., Any], inspect.Signature] | None
    _vmapped: Any  # what generate_vmap_rule has made of it

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls, "__module__": __name__})
        cls._signature = cls._vmapped = None
        super().__init__(name, bases, attrs)


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base of operations with a derivative of the user's own: subclass it, and call `apply` of the subclass.

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

    forward and backward get Tensors; forward is not recorded, backward is where the pass is (create_graph). As
    torch.autograd.Function, but for second derivatives.

    What forward computes of its inputs and keeps is not recorded either, so a second derivative that reaches it raises, where PyTorch's is wrong.
    Keep inputs and outputs (an intermediate result can be one more output), or use `func.custom_vjp`, and test with `gradgradcheck`. What leaves
    the Tensors on its way, by `.array`, NumPy or `float()`, or is the `.grad` of a `backward()` in forward, counts as a constant all the same.
    """

    clear_saved_tensors_on_access = False  # free what was saved when it is first asked for
    boxed_grads_call = False  # backward gets its gradients as one list
    generate_vmap_rule = False  # under vmap, run the methods on batches themselves
    _follows = True  # what forward computes of its inputs is known again when it is kept

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the "
                      "class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
                      DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
                           "static forward method: define forward(ctx, ...) and backward(ctx, ...) as staticmethods and call <class>.apply(...).")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: forward(ctx, *args, **kwargs), or forward(*args, **kwargs) where setup_context is defined."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save for backward, after a forward that gets no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradient of each argument of apply, given that of each output; None where there is none."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it with "
                                  "backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangent of each output, given that of each argument. For forward mode.

        What `save_for_forward` kept is in `ctx.saved_tensors`. The tangent of an array that has none is zeros, or None after
        `set_materialize_grads(False)`; that of what is no array is None. For an output that has no tangent return None.
        """
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Compute the outputs for a batch of examples: return (output, out_dims). For vmap.

        info      info.batch_size, the number of examples, and info.randomness, the argument of vmap
        in_dims   a tuple: for each of `args` the axis that counts the examples, or None for what is the same for all; nested as they are
        args      arrays of all examples

        `out_dims` says the same of the output: an int or None, or a structure of these like that of `output`. What vmap computes is
        differentiated as any function; where a gradient is taken inside of vmap, backward and jvp are, with what setup_context keeps.
        """
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
                                  "generate_vmap_rule=True.")

    @classmethod
    def _base(cls) -> type[Function]:
        return Function

    @classmethod
    def _separate(cls) -> bool:
        """Whether forward gets no ctx, and setup_context follows it."""
        return cls.setup_context is not Function.setup_context

    @classmethod
    def _backward(cls) -> Callable[..., Any]:
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise GradientError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.")
        return cls.vjp

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record it, if an argument requires grad. Tensors inside lists or dictionaries are constants."""
        if cls._separate():
            if cls._signature is None or cls._signature[0] is not cls.forward:
                cls._signature = cls.forward, inspect.signature(cls.forward)
            bound = cls._signature[1].bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        flat = (*args, *kwargs.values())
        return apply_function(cls, flat, tuple(kwargs))


class InplaceFunction(Function):
    """A Function of former days, which remembers whether it works in place. Use Function."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


# Once differentiable


_ONCE = "trying to differentiate twice a function that was marked with @once_differentiable"


def once_differentiable(fn: F) -> F:
    """Decorate a backward that is not to be differentiated itself: it is not recorded, and differentiating its result raises."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        node = ctx
        while isinstance(node, BatchCtx):
            node = node._source
        own = node if isinstance(node, BackwardCFunction) else None
        mode = grad_mode._variable() if own is None else mode_in_backward(own._run, own._level)
        records = mode.get()
        with grad_mode.switched_off(mode):
            outputs = fn(ctx, *args, **kwargs)
        wanted = [x._node for x in map(_below, args) if isinstance(x, Tensor) and x._node is not None] if records else []
        if wanted and own is not None:
            wanted += own._next
        if isinstance(outputs, tuple):
            return tuple(_poisoned(x, wanted) for x in outputs)
        return _poisoned(outputs, wanted)

    return wrapper  # type: ignore[return-value]


def _below(x: Any) -> Any:
    """The value of a batch or a dual."""
    while isinstance(x, Immutable):
        x = x._array
    return x


def _poisoned(x: Any, parents: Sequence[Node]) -> Any:
    """A constant that raises when it is differentiated: by this level if `parents` are given, by those further in if they recorded it."""
    if isinstance(x, Immutable):  # the gradients of a batch, or a dual
        found = x._copied()
        found._put(_poisoned(x._array, parents))
        return found
    if not isinstance(x, Tensor):
        if is_array(x) and parents:
            x = wrap(x)
        else:
            return x
    inner = x._array
    if isinstance(inner, Tensor):
        inner = _poisoned(inner, [] if inner._node is None else [inner._node])
    if inner is x._array and not parents and x._node is None:
        return x
    t = wrap_at(x, inner)
    return with_error(t, parents, _ONCE) if parents else t
