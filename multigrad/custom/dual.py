"""An autograd.Function under Duals: forward runs one layer further in, on the primals, and the Function's own jvp moves the tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine import grad_mode
from ..engine.computed import Computed
from ..engine.custom import FunctionCtx
from ..engine.dispatch import _same_structure as same_structure
from ..engine.dispatch import is_array
from ..engine.kept import computed_in, movers, refusing, replaced
from ..engine.level import Guest, Layer, outside
from ..engine.tensor import element_of, peeled, strip, wrap
from ..errors import GradientError
from .dual import Dual

Applied = tuple[Any, tuple[Any, ...], dict[str, Any] | None]
"""What a Function returned, the objects that its forward returned, and what forward left on its ctx; of that None if its vmap ran instead."""


class ForwardCtx(FunctionCtx):
    """The ctx that a jvp gets: what forward left on its own, in `saved_tensors` what it kept by save_for_forward, and the level of the Duals."""

    saved_tensors: tuple[Any, ...] = ()
    _level: int
    needs_input_grad: tuple[bool, ...]


def apply_dual(cls: Any, flat: Sequence[Any], top: Dual, apply: Callable[[Sequence[Any]], Applied], forward: Computed | None) -> Applied:
    """Apply the Function `cls` to arguments among which there are Duals of the level of `top`; `apply` does so one layer further in.

    `forward`: what its forward computes.
    """
    top._check()
    inner = [_primal(x, top) for x in flat]
    found, returned, left = apply(inner)
    results = found if isinstance(found, tuple) else (found,)
    moving = tuple(_tangent(x, top) is not None for x in flat)
    state, returned = (set_up(cls, inner, found, moving), results) if left is None else (left, returned)
    if state.get("dirty_tensors"):
        raise GradientError(f"{cls.__name__}: mark_dirty is not supported in forward mode. Return a new array.")
    constant = {id(x) for x in state.get("non_differentiable") or ()}
    fixed = [id(x) in constant for x in returned]
    moved: Sequence[Any] = (None,) * len(results)
    if any(moving):
        made = _unknown(cls, state, inner, movers(flat, top._level), forward)
        made |= {id(a): b for a, b in zip(returned, results, strict=True) if is_array(a)}
        ctx = ForwardCtx()
        ctx.__dict__.update({name: replaced(value, made) for name, value in state.items()})
        ctx.saved_tensors = tuple(ctx.saved_for_forward or ())
        ctx._level = top._level
        ctx.needs_input_grad = moving
        given = Guest("jvp", grad_mode.BASE).call(lambda: cls.jvp(ctx, *(_given(x, value, top, ctx) for x, value in zip(flat, inner, strict=True))))
        moved = given if isinstance(given, tuple) else (given,)
        if len(moved) != len(results):
            raise GradientError(f"{cls.__name__}: jvp returned {len(moved)} tangents for {len(results)} outputs")
    lifted = [Dual._make(strip(x), None if skip else _checked(cls, i, x, t, top), top._run, top._level) if is_array(x) else x
              for i, (x, t, skip) in enumerate(zip(results, moved, fixed, strict=True))]
    result = same_structure(found, lifted) if isinstance(found, tuple) else lifted[0]
    if left is None:
        return result, tuple(lifted), None
    known = {id(a): b for a, b in zip((*inner, *returned), (*flat, *lifted), strict=True) if is_array(a)}
    return result, tuple(lifted), {name: replaced(value, known) for name, value in state.items()}


def _unknown(cls: Any, state: dict[str, Any], inner: Sequence[Any], levels: Sequence[Any],
             forward: Computed | None) -> dict[int, Any]:
    """What forward computed of its inputs and left on its ctx, by its id, as jvp gets it where levels further in differentiate, too."""
    if not levels:
        return {}
    known = {id(x) for x in inner}
    return {id(x): refusing(x, levels, cls.__name__) for x in computed_in(list(state.values()), forward) if id(x) not in known}


def set_up(cls: Any, inner: Sequence[Any], output: Any, needs: tuple[bool, ...]) -> dict[str, Any]:
    """What setup_context leaves on a ctx, where the user's vmap ran in the place of forward."""
    if not any(needs):
        return {}
    require_setup(cls)
    ctx = ForwardCtx()
    ctx.needs_input_grad = needs
    cls.setup_context(ctx, tuple(inner), output)
    return {name: value for name, value in ctx.__dict__.items() if name != "needs_input_grad"}


def require_setup(cls: Any) -> None:
    if not cls._separate():
        raise GradientError("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
                            f"setup_context staticmethod: the vmap of {cls.__name__} computes its result without a ctx.")


def _primal(x: Any, top: Dual) -> Any:
    """The value of an argument one layer further in, as forward gets it: an object of its own, so that it is known again."""
    if type(x) is not Dual or x._level != top._level:
        return x
    x._check()
    value = x._array
    if type(value) is Dual:
        return Dual._make(value._array, value._tangent, value._run, value._level)
    return value if isinstance(value, Layer) else wrap(value)


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
        return element_of(value).host.bound.zeros_like(value)


def _checked(cls: Any, i: int, x: Any, t: Any, top: Dual) -> Any:
    """A tangent that jvp returned, of the shape and dtype of its output."""
    elem = element_of(x)
    if t is None or not elem.floating:
        return None
    if not is_array(t):
        raise TypeError(f"{cls.__name__}: jvp must return arrays or None, but tangent {i} is of type {type(t).__name__}")
    t = peeled(t, top._level)
    if isinstance(t, Layer) and t._level >= top._level:
        raise GradientError(f"{cls.__name__}: jvp returned a value of a running transformation that it was not given. Pass the array that it "
                            "comes from as an argument of apply.")
    if element_of(t).host is not elem.host or tuple(t.shape) != tuple(x.shape):
        raise GradientError(f"{cls.__name__}: jvp returned a tangent of shape {tuple(t.shape)} at index {i} for an output of shape {tuple(x.shape)}")
    if element_of(t) is not elem.base:
        if element_of(t).complex and not elem.complex:
            raise GradientError(f"{cls.__name__}: jvp returned a complex tangent at index {i} for a real output. Return its real part.")
        t = elem.host.bound.astype(t, elem.dtype)
    return strip(t)
