"""Operations besides the user's classes, and the result of an application."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .kept import PUBLIC, Ctx
from .node import BackwardCFunction


def no_setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
    """Save for backward, after a forward that gets no ctx."""
    raise NotImplementedError("setup_context is not implemented.")


def no_vmap(info: Any, in_dims: Any, *args: Any) -> Any:
    """Compute the outputs for a batch of examples: return (output, out_dims). For vmap.

    info      info.batch_size, the number of examples, and info.randomness, the argument of vmap
    in_dims   a tuple: for each of `args` the axis of the examples, or None if it is the same for
              all; nested as they are
    args      arrays of all examples

    `out_dims` describes the output in the same way: an int or None, or a structure of these like
    that of `output`. The operations of vmap are differentiated like those of any function. A
    gradient that is taken inside of vmap uses backward and jvp, with what setup_context keeps.
    """
    raise NotImplementedError(
        "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
        "generate_vmap_rule=True."
    )


class Definition:
    """An operation with its derivative that is made for one application, whose data it holds.

    It has the attributes that are read of a class derived from autograd.Function. `__name__` is the
    name of its nodes, without "Backward".
    """

    __name__: str
    _backward_cls: type[BackwardCFunction]
    # what is applied at a Dual, and at a batch, if that is another application
    at_dual: Callable[..., Applied] | None = None
    at_batch: Callable[..., Applied] | None = None
    # whether values that forward computes from its inputs are marked, since their derivative is
    # unknown
    _follows = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False
    generate_vmap_rule = True
    setup_context = staticmethod(no_setup)
    vmap = staticmethod(no_vmap)
    backward: Callable[..., Any]

    def _backward(self) -> Callable[..., Any]:
        return self.backward


def call_forward(rule: Any, names: tuple[str, ...], ctx: Any, values: Sequence[Any]) -> Any:
    """Call the user's forward, and setup_context if it is defined.

    names  the names of the last arguments
    """
    n = len(values) - len(names)
    named = dict(zip(names, values[n:], strict=True)) if names else {}
    if rule.setup_context is no_setup:
        return rule.forward(ctx, *values[:n], **named)
    output = rule.forward(*values[:n], **named)
    rule.setup_context(ctx, tuple(values), output)
    return output


def new_ctx_class(name: str, **attributes: Any) -> type[BackwardCFunction]:
    """The class of ctx, and so of the nodes, of an operation of this name."""
    return type(f"{name}Backward", (BackwardCFunction,), {"__module__": PUBLIC, **attributes})


@lru_cache(maxsize=1000)
def ctx_class(name: str) -> type[BackwardCFunction]:
    """As `new_ctx_class`, but the same class for each name.

    A class refers to itself, so that only the garbage collector frees it.
    """
    return new_ctx_class(name)


class Applied(NamedTuple):
    """The result of an application at one level.

    output  the output
    ctx     what forward set on its ctx; None at the outermost level, and if the user's vmap ran
            instead
    """

    output: Any
    ctx: Ctx | None
