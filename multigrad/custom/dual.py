"""User-defined derivatives under Duals: forward runs on the primals, jvp on the tangents.

Both are applied at the next inner level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.element import is_array
from ..core.level import BASE, Guest, Layer, outside
from ..core.tensor import element_of, strip, wrap
from ..errors import GradientError
from ..layers.dual import Dual
from .definition import Applied, no_setup
from .kept import FunctionCtx, computed_in, lowered, movers, refusing, replaced
from .node import given_back

if TYPE_CHECKING:
    from .function import Application


class ForwardCtx(FunctionCtx):
    """The ctx that a jvp gets: the attributes that forward set, and the level of the Duals.

    `saved_tensors` has the arrays of save_for_forward.
    """

    saved_tensors: tuple[Any, ...] = ()
    _level: int
    needs_input_grad: tuple[bool, ...]


def under_dual(application: Application, values: Sequence[Any], top: Dual) -> Applied:
    """Apply a rule to arguments that include Duals of the level of `top`."""
    top._check()
    rule = application.rule
    inner = lowered(values, [type(x) is Dual and x._level == top._level for x in values])
    output, returned, state = application.inside(inner)
    outs = output if isinstance(output, tuple) else (output,)
    moving = tuple(_tangent(x, top) is not None for x in values)
    vmapped = state is None
    if state is None:
        state, returned = _set_up(rule, inner, output, moving), outs
    if state.get("dirty_tensors"):
        raise GradientError(
            f"{rule.__name__}: mark_dirty is not supported in forward mode. Return a new array."
        )
    moved: Sequence[Any] = (None,) * len(outs)
    if any(moving):
        shown = _refused(application, state, inner, movers(values, top._level))
        shown |= zip(map(id, returned), outs, strict=True)
        ctx = ForwardCtx()
        ctx.__dict__.update({name: replaced(value, shown) for name, value in state.items()})
        ctx.saved_tensors = tuple(ctx.saved_for_forward or ())
        ctx._level = top._level
        ctx.needs_input_grad = moving
        given = Guest("jvp", BASE).call(
            lambda: rule.jvp(
                ctx, *(_given(x, y, top, ctx) for x, y in zip(values, inner, strict=True))
            )
        )
        moved = given if isinstance(given, tuple) else (given,)
        if len(moved) != len(outs):
            raise GradientError(
                f"{rule.__name__}: jvp returned {len(moved)} tangents for {len(outs)} outputs"
            )
    fixed = {id(x) for x in state.get("non_differentiable") or ()}
    lifted = [
        Dual._make(
            strip(x),
            None if id(was) in fixed else _checked(rule, i, x, t, top),
            top._run,
            top._level,
        )
        if is_array(x)
        else x
        for i, (x, t, was) in enumerate(zip(outs, moved, returned, strict=True))
    ]
    known = {
        id(a): b
        for a, b in zip((*inner, *returned), (*values, *lifted), strict=True)
        if is_array(a)
    }
    left = None if vmapped else {name: replaced(value, known) for name, value in state.items()}
    return application.raised(output, lifted, left)


def _refused(
    application: Application, state: dict[str, Any], inner: Sequence[Any], levels: Sequence[Any]
) -> dict[int, Any]:
    """The values that forward computed and set on its ctx, by id, with histories that raise.

    jvp gets these if inner levels differentiate, too.
    """
    if not levels:
        return {}
    known = {id(x) for x in inner}
    computed = computed_in(list(state.values()), application.computed)
    return {id(x): refusing(x, levels, application.name) for x in computed if id(x) not in known}


def _set_up(cls: Any, inner: Sequence[Any], output: Any, needs: tuple[bool, ...]) -> dict[str, Any]:
    """What setup_context sets on a ctx, if the user's vmap ran instead of forward."""
    if not any(needs):
        return {}
    require_setup(cls)
    ctx = ForwardCtx()
    ctx.needs_input_grad = needs
    cls.setup_context(ctx, tuple(inner), output)
    return {name: value for name, value in ctx.__dict__.items() if name != "needs_input_grad"}


def require_setup(cls: Any) -> None:
    if cls.setup_context is no_setup:
        raise GradientError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            "jacrev, ...), it must override the setup_context staticmethod: the vmap of "
            f"{cls.__name__} computes its result without a ctx."
        )


def _tangent(x: Any, top: Dual) -> Any:
    return x._tangent if type(x) is Dual and x._level == top._level else None


def _given(x: Any, value: Any, top: Dual, ctx: ForwardCtx) -> Any:
    """The tangent of an argument as jvp gets it."""
    t = _tangent(x, top)
    if t is not None:
        return t if isinstance(t, Layer) else wrap(t)
    if not is_array(x) or not ctx.materialize_grads or not element_of(x).floating:
        return None
    with outside():
        return element_of(value).library.bound.zeros_like(value)


def _checked(cls: Any, i: int, x: Any, t: Any, top: Dual) -> Any:
    """A tangent that jvp returned, with the shape and dtype of its output."""
    elem = element_of(x)
    if t is None or not elem.floating:
        return None
    if not is_array(t):
        raise TypeError(
            f"{cls.__name__}: jvp must return arrays or None, but tangent {i} is of type "
            f"{type(t).__name__}"
        )
    t = given_back(t, top._level - 1, f"{cls.__name__}: jvp")
    if element_of(t).library is not elem.library or tuple(t.shape) != tuple(x.shape):
        raise GradientError(
            f"{cls.__name__}: jvp returned a tangent of shape {tuple(t.shape)} at index {i} for "
            f"an output of shape {tuple(x.shape)}"
        )
    if element_of(t) is not elem.base:
        if element_of(t).complex and not elem.complex:
            raise GradientError(
                f"{cls.__name__}: jvp returned a complex tangent at index {i} for a real "
                "output. Return its real part."
            )
        t = elem.library.bound.astype(t, elem.dtype)
    return strip(t)
