"""What is applied besides the user's classes, and what an application comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .context import PUBLIC, no_setup, no_vmap
from .node import BackwardCFunction


class Definition:
    """An operation with a derivative of its own, made for one application; it knows what belongs to that.

    Its names, those of methods included, are those that a class derived from autograd.Function is asked for. `__name__`: that of its nodes,
    without "Backward".
    """

    __name__: str
    _backward_cls: type[BackwardCFunction]
    _follows = False  # whether what forward computes of its inputs is marked, since its derivative is not known
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
    state     what forward left on its ctx; None if the user's vmap ran in its place, and at the outermost level
    """

    output: Any
    returned: tuple[Any, ...]
    state: dict[str, Any] | None
