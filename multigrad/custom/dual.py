"""User-defined derivatives under Duals: forward runs on the primals, jvp on the tangents.

Both are applied at the next inner level.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..core.element import is_array
from ..core.level import BASE, Guest, Layer
from ..core.tensor import element_of, strip, wrap
from ..errors import GradientError
from ..layers.dual import Dual
from ..layers.transforming import zeros_like
from .definition import Applied, no_setup
from .kept import Ctx, computed_in, each, lowered, movers, refusing
from .node import given_back


def under_dual(application: Any, values: Sequence[Any], top: Dual) -> Applied:
    """Apply a rule to arguments that include Duals of the level of `top`."""
    rule, name = application.rule, application.name
    inner, tangents = tangents_at(values, top)
    moving = tuple([t is not None for t in tangents])
    output, state = application.inside(inner)
    outs = each(output)
    forward = state
    if state is None:  # the user's vmap ran instead of forward
        forward = Ctx(moving)
        if any(moving):
            require_setup(rule)
            rule.setup_context(forward, tuple(inner), output)
    if forward.dirty_tensors:
        raise GradientError(
            f"{name}: mark_dirty is not supported in forward mode. Return a new array."
        )
    pushed: tuple[Any, ...] = (None,) * len(outs)
    if any(moving):
        levels = movers(values, top._level)  # if inner levels differentiate, too
        others = {id(x) for x in (*inner, *outs)}
        found = computed_in(list(vars(forward).values()), application.computed) if levels else ()
        computed = [x for x in found if id(x) not in others]
        ctx = forward._at(computed, [refusing(x, levels, name) for x in computed])
        ctx._saved = partial(tuple, ctx.saved_for_forward or ())
        ctx._level = top._level
        ctx.needs_input_grad = moving
        arguments = [_tangent(x, t, ctx) for x, t in zip(inner, tangents, strict=True)]
        pushed = each(Guest("jvp", BASE).call(lambda: rule.jvp(ctx, *arguments)))
        if len(pushed) != len(outs):
            raise GradientError(
                f"{name}: jvp returned {len(pushed)} tangents for {len(outs)} outputs"
            )
    constant = {id(x) for x in forward.non_differentiable or ()}
    lifted = [
        Dual._make(
            strip(x),
            None if id(x) in constant else _checked(name, i, x, t, top),
            top._run,
            top._level,
        )
        if is_array(x)
        else x
        for i, (x, t) in enumerate(zip(outs, pushed, strict=True))
    ]
    ctx = state if application.inner else None
    result: Applied = application.raised(Applied(output, ctx), lifted, inner, values)
    return result


def tangents_at(values: Sequence[Any], top: Dual) -> tuple[list[Any], list[Any]]:
    """The values one level below the Duals of the level of `top`, and their tangents.

    A zero tangent is None.
    """
    top._check()
    own = [type(x) is Dual and x._level == top._level for x in values]
    return lowered(values, own), [
        x._tangent if mine else None for x, mine in zip(values, own, strict=True)
    ]


def require_setup(cls: Any) -> None:
    if cls.setup_context is no_setup:
        raise GradientError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            "jacrev, ...), it must override the setup_context staticmethod: the vmap of "
            f"{cls.__name__} computes its result without a ctx."
        )


def _tangent(x: Any, t: Any, ctx: Ctx) -> Any:
    """The tangent of an argument `x` as jvp gets it."""
    if t is None:
        if not is_array(x) or not ctx.materialize_grads or not element_of(x).floating:
            return None
        t = zeros_like(x)
    return t if isinstance(t, Layer) else wrap(t)


def _checked(name: str, i: int, x: Any, t: Any, top: Dual) -> Any:
    """A tangent that jvp returned, with the shape and dtype of its output."""
    elem = element_of(x)
    if t is None or not elem.floating:
        return None
    if not is_array(t):
        raise TypeError(
            f"{name}: jvp must return arrays or None, but tangent {i} is of type {type(t).__name__}"
        )
    t = given_back(t, top._level - 1, f"{name}: jvp")
    if element_of(t).library is not elem.library or tuple(t.shape) != tuple(x.shape):
        raise GradientError(
            f"{name}: jvp returned a tangent of shape {tuple(t.shape)} at index {i} for "
            f"an output of shape {tuple(x.shape)}"
        )
    if element_of(t) is not elem:
        if element_of(t).complex and not elem.complex:
            raise GradientError(
                f"{name}: jvp returned a complex tangent at index {i} for a real "
                "output. Return its real part."
            )
        t = elem.library.bound.astype(t, elem.dtype)
    return strip(t)
