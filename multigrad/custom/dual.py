"""User-defined derivatives under Duals: forward runs on the primals, jvp on the tangents.

Both are applied at the next inner level.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..core.element import is_array
from ..core.level import BASE, Guest, Layer, outside
from ..core.tensor import element_of, strip, wrap
from ..errors import GradientError
from ..layers.dual import Dual
from .definition import Applied, no_setup
from .kept import Ctx, computed_in, each, lowered, movers, refusing
from .node import given_back


def under_dual(application: Any, values: Sequence[Any], top: Dual) -> Applied:
    """Apply a rule to arguments that include Duals of the level of `top`."""
    top._check()
    rule = application.rule
    inner = lowered(values, [type(x) is Dual and x._level == top._level for x in values])
    output, state = application.inside(inner)
    outs = each(output)
    moving = tuple(_tangent(x, top) is not None for x in values)
    forward = _set_up(rule, inner, output, moving) if state is None else state
    if forward.dirty_tensors:
        raise GradientError(
            f"{rule.__name__}: mark_dirty is not supported in forward mode. Return a new array."
        )
    moved: tuple[Any, ...] = (None,) * len(outs)
    if any(moving):
        levels = movers(values, top._level)
        known = {id(x) for x in (*inner, *outs)}
        found = computed_in(list(vars(forward).values()), application.computed) if levels else ()
        computed = [x for x in found if id(x) not in known]
        # if inner levels differentiate, too
        ctx = forward._at(computed, [refusing(x, levels, application.name) for x in computed])
        ctx._saved = partial(tuple, ctx.saved_for_forward or ())
        ctx._level = top._level
        ctx.needs_input_grad = moving
        moved = each(
            Guest("jvp", BASE).call(
                lambda: rule.jvp(
                    ctx, *(_given(x, y, top, ctx) for x, y in zip(values, inner, strict=True))
                )
            )
        )
        if len(moved) != len(outs):
            raise GradientError(
                f"{rule.__name__}: jvp returned {len(moved)} tangents for {len(outs)} outputs"
            )
    fixed = {id(x) for x in forward.non_differentiable or ()}
    lifted = [
        Dual._make(
            strip(x),
            None if id(x) in fixed else _checked(rule, i, x, t, top),
            top._run,
            top._level,
        )
        if is_array(x)
        else x
        for i, (x, t) in enumerate(zip(outs, moved, strict=True))
    ]
    left = state if application.inner else None
    raised: Applied = application.raised(Applied(output, left), lifted, inner, values)
    return raised


def _set_up(cls: Any, inner: Sequence[Any], output: Any, needs: tuple[bool, ...]) -> Ctx:
    """The ctx of setup_context, if the user's vmap ran instead of forward."""
    ctx = Ctx(needs)
    if any(needs):
        require_setup(cls)
        cls.setup_context(ctx, tuple(inner), output)
    return ctx


def require_setup(cls: Any) -> None:
    if cls.setup_context is no_setup:
        raise GradientError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            "jacrev, ...), it must override the setup_context staticmethod: the vmap of "
            f"{cls.__name__} computes its result without a ctx."
        )


def _tangent(x: Any, top: Dual) -> Any:
    return x._tangent if type(x) is Dual and x._level == top._level else None


def _given(x: Any, value: Any, top: Dual, ctx: Ctx) -> Any:
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
