"""What is applied besides the user's classes, and what an application comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .kept import PUBLIC
from .node import BackwardCFunction


def no_setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
    """Save for backward, after a forward that gets no ctx."""
    raise NotImplementedError("setup_context is not implemented.")


def no_vmap(info: Any, in_dims: Any, *args: Any) -> Any:
    """Compute the outputs for a batch of examples: return (output, out_dims). For vmap.

    info      info.batch_size, the number of examples, and info.randomness, the argument of vmap
    in_dims   a tuple: for each of `args` the axis that counts the examples, or None for what is the
              same for all; nested as they are
    args      arrays of all examples

    `out_dims` says the same of the output: an int or None, or a structure of these like that of
    `output`. What vmap computes is differentiated as any function; where a gradient is taken inside
    of vmap, backward and jvp are, with what setup_context keeps.
    """
    raise NotImplementedError(
        "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
        "generate_vmap_rule=True."
    )


class Definition:
    """An operation with a derivative of its own, made for one application; it knows what belongs to
    that.

    Its names, those of methods included, are those that a class derived from autograd.Function is
    asked for. `__name__`: that of its nodes, without "Backward".
    """

    __name__: str
    _backward_cls: type[BackwardCFunction]
    # what happens at a Dual, and at a batch, where that is another application
    at_dual: Callable[..., Applied] | None = None
    at_batch: Callable[..., Applied] | None = None
    # whether what forward computes of its inputs is marked, since its derivative is not known
    _follows = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False
    generate_vmap_rule = True
    setup_context = staticmethod(no_setup)
    vmap = staticmethod(no_vmap)
    backward: Callable[..., Any]

    def _backward(self) -> Callable[..., Any]:
        return self.backward


def new_ctx_class(name: str, **attributes: Any) -> type[BackwardCFunction]:
    """The class of ctx, and so of the nodes, of an operation of this name."""
    return type(f"{name}Backward", (BackwardCFunction,), {"__module__": PUBLIC, **attributes})


class Applied(NamedTuple):
    """What an application comes to at one level.

    output    what it returns
    returned  the objects that forward returned
    state     what forward left on its ctx; None if the user's vmap ran in its place, and at the
              outermost level
    """

    output: Any
    returned: tuple[Any, ...]
    state: dict[str, Any] | None
