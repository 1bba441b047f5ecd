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
from ..engine.element import is_array
from ..engine.graph import Node
from ..engine.level import own_switch
from ..engine.tensor import Tensor, wrap, wrap_at
from ..errors import GradientError
from ..layers.immutable import Immutable
from . import applying
from .batch import BatchCtx
from .context import PUBLIC, FunctionCtx, no_setup, no_vmap
from .definition import new_ctx_class
from .kept import with_error
from .node import BackwardCFunction, mode_in_backward

F = TypeVar("F", bound=Callable[..., Any])


class FunctionMeta(type):
    """Gives each Function the class of its nodes."""

    __module__ = PUBLIC
    _backward_cls: type[BackwardCFunction]
    _signature: tuple[Callable[..., Any], inspect.Signature] | None

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        cls._backward_cls = new_ctx_class(name, _forward_cls=cls)
        cls._signature = None
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

    __module__ = PUBLIC
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

    setup_context = staticmethod(no_setup)

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

    vmap = staticmethod(no_vmap)

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
        if cls.setup_context is not no_setup:
            if cls._signature is None or cls._signature[0] is not cls.forward:
                cls._signature = cls.forward, inspect.signature(cls.forward)
            bound = cls._signature[1].bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        return applying.apply_function(cls, (*args, *kwargs.values()) if kwargs else args, tuple(kwargs))


class InplaceFunction(Function):
    """A Function of former days, which remembers whether it works in place. Use Function."""

    __module__ = PUBLIC

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
        mode = own_switch() if own is None else mode_in_backward(own._run, own._level)
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


once_differentiable.__module__ = PUBLIC


def _below(x: Any) -> Any:
    """The value of a batch or a dual."""
    while isinstance(x, Immutable):
        x = x._array
    return x


def _poisoned(x: Any, parents: Sequence[Node]) -> Any:
    """A constant that raises when it is differentiated: by this level if `parents` are given, by those further in if they recorded it."""
    if isinstance(x, Immutable):  # the gradients of a batch, or a dual
        copied = x._copied()
        copied._put(_poisoned(x._array, parents))
        return copied
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
