"""Applying an operation with a derivative of the user's own to values of any levels.

It is a class like autograd.Function, which is the one that users derive from: `forward` and `backward` or `vjp`, `jvp`, `vmap`, and what says
which of them there are. See engine/custom.py for what one level does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from .. import observe
from ..engine import grad_mode
from ..engine.computed import Computed, following, mark
from ..engine.custom import BackwardCFunction
from ..engine.dispatch import _same_structure as same_structure
from ..engine.dispatch import is_array
from ..engine.kept import replaced
from ..engine.level import Guest, Layer, Run, settle, undo
from ..engine.tensor import Tensor, wrap, wrap_at
from ..errors import GradientError
from ..observe import FUNCTION
from .batched import Batched
from .custom import Applied, apply_dual, require_setup
from .custom_batched import apply_batched
from .dual import Dual


def apply_function(cls: Any, flat: Sequence[Any], names: tuple[str, ...]) -> Any:
    """Apply `cls` to its arguments, the last ones by `names`."""
    return observe.call(FUNCTION, None, cls.__name__, (), flat, lambda: _apply(cls, flat, names))


def _apply(cls: Any, flat: Sequence[Any], names: tuple[str, ...]) -> Any:
    top = _top(flat)
    forward = None
    if top is not None and top._run is not None and cls._follows:
        moving = [_moves(x) for x in flat]
        forward = Computed(cls.__name__, moving) if any(moving) else None
    if isinstance(top, Dual):
        return apply_dual(cls, flat, top, partial(_apply_inside, cls, names=names, forward=forward), forward)[0]
    if isinstance(top, Batched):
        return apply_batched(cls, flat, names, top, partial(_apply_inside, forward=forward))[0]
    ctx = cls._backward_cls()
    ctx._begin(flat, top, forward)
    if isinstance(top, Tensor) and top._elem.run is not None and any(_has_history(x, top) for x in flat):
        return _apply_levels(cls, ctx, flat, names, top, ctx.needs_input_grad)[0]
    return ctx._finish(_run_forward(cls, ctx, flat, names, top), flat, top)[0]


def _moves(x: Any) -> bool:
    """Whether a derivative with respect to an argument may be asked for, at any level."""
    while isinstance(x, Layer):
        if x._moves():
            return True
        x = x._array
    return False


def _apply_levels(cls: Any, ctx: BackwardCFunction, flat: Sequence[Any], names: tuple[str, ...], top: Tensor | None,
                  needs: tuple[bool, ...]) -> Applied:
    """Apply `cls` at the level of `top`, after the levels further in that want a gradient, too.

    `needs`: of this level and those further out. Returns the result, the objects that forward returned, and what it left on its ctx.
    """
    if isinstance(top, Tensor) and top._elem.run is not None and any(_has_history(x, top) for x in flat):
        inner: list[Any] = []
        for x in flat:
            y = _one_in(x, top)
            inner.append(_twin(y) if isinstance(y, Tensor) and any(y is z for z in inner) else y)  # so that each can be told from the others
        found, returned, state = _apply_inside(cls, inner, names, needs, ctx._forward)
        results = found if isinstance(found, tuple) else (found,)
        lifted = [wrap_at(top, x) if is_array(x) else x for x in results]
        output = same_structure(found, lifted) if isinstance(found, tuple) else lifted[0]
        if state is None:
            if ctx._next:
                require_setup(cls)
                _set_up(cls, ctx, flat, output, top._elem.run)
            return (*ctx._finish(output, flat, top), None)
        known = {id(a): b for a, b in zip((*inner, *returned), (*flat, *lifted), strict=True) if is_array(a)}
        if state.get("dirty_tensors"):
            raise GradientError(f"{cls.__name__}: mark_dirty is not supported where several levels of differentiation meet. Return a new array.")
        ctx.__dict__.update({name: replaced(value, known) for name, value in state.items()})
    else:
        own, ctx.needs_input_grad = ctx.needs_input_grad, needs  # forward may save by what is needed
        output = _run_forward(cls, ctx, flat, names, top)
        ctx.needs_input_grad = own
    state = dict(ctx.__dict__)
    return (*ctx._finish(output, flat, top), state)


def _apply_inside(cls: Any, inner: Sequence[Any], names: tuple[str, ...], needs: tuple[bool, ...] = (),
                  forward: Computed | None = None) -> Applied:
    """Apply `cls` to the values of arguments one level further in. Returns what `_apply_levels` does."""
    top = _top(inner)
    if isinstance(top, Dual):
        return apply_dual(cls, inner, top, partial(_apply_inside, cls, names=names, needs=needs, forward=forward), forward)
    if isinstance(top, Batched):
        return apply_batched(cls, inner, names, top, partial(_apply_inside, needs=needs, forward=forward))
    ctx = cls._backward_cls()
    ctx._begin(inner, top, forward)
    return _apply_levels(cls, ctx, inner, names, top, tuple(a or b for a, b in zip_longest(ctx.needs_input_grad, needs, fillvalue=False)))


def _run_forward(cls: Any, ctx: BackwardCFunction, flat: Sequence[Any], names: tuple[str, ...], top: Tensor | None) -> Any:
    """Call forward, with recording off at the level of `top`, which is where the user looks for it."""
    n = len(flat) - len(names)
    mode = grad_mode.BASE if top is None or top._run is None else top._run.grad_mode
    innermost = grad_mode.joined(mode)
    if innermost is not grad_mode._variable():  # or enable_grad in forward would do nothing for the arrays that it gets
        return Guest("forward", innermost).call(lambda: _run_forward(cls, ctx, flat, names, top))
    forward = ctx._forward
    off = None if forward is not None or following.get() is not None else False  # a forward around this one may have to know what is computed
    before = undo()
    try:
        if forward is not None:
            following.set(forward)
            if forward.moving:
                forward.next = ctx._next
                _mark_inputs(forward, flat)
        innermost.set(off)
        if not cls._separate():
            return cls.forward(ctx, *flat[:n], **dict(zip(names, flat[n:], strict=True)))
        output = cls.forward(*flat[:n], **dict(zip(names, flat[n:], strict=True)))
        cls.setup_context(ctx, tuple(flat), output)
        return output
    finally:
        settle(before)
        if forward is not None:
            forward.release()


def _set_up(cls: Any, ctx: BackwardCFunction, flat: Sequence[Any], output: Any, run: Run) -> None:
    """Call a setup_context that follows no forward, and note what it computes."""
    before, forward = undo(), ctx._forward
    try:
        following.set(forward)
        with grad_mode.switched_off(run.grad_mode, grad_mode._variable()):
            cls.setup_context(ctx, tuple(flat), output)
    finally:
        settle(before)
        if forward is not None:
            forward.release()


def _mark_inputs(forward: Computed, flat: Sequence[Any]) -> None:
    """Let what is computed of the arguments be known where they are constants at the innermost level, but not further out."""
    for x, moves in zip(reversed(flat), reversed(forward.moving), strict=False):
        if moves and isinstance(x, Tensor) and x._node is None and x._elem.floating:
            mark(x)


def _top(flat: Sequence[Any]) -> Any:
    """The argument of the highest level: a Tensor, a Dual, a Batched, or None."""
    top: Layer | None = None
    for x in flat:
        if isinstance(x, Layer) and (top is None or x._level > top._level):
            top = x
        if isinstance(x, Tensor):
            x._check()
    if top is not None and not isinstance(top, (Tensor, Dual, Batched)):
        raise NotImplementedError(f"multigrad cannot apply an autograd.Function under {type(top).__name__} yet")
    return top


def _has_history(x: Any, top: Tensor) -> bool:
    """Whether a level below that of `top` may want the gradient of `x`."""
    while isinstance(x, Layer):
        if x._level < top._level and (not isinstance(x, Tensor) or x._node is not None):
            return True
        x = x._array
    return False


def _one_in(x: Any, top: Tensor) -> Any:
    """The value of an argument one level further in, as a Tensor."""
    if not isinstance(x, Tensor) or x._level != top._level:
        return x
    return x._array if isinstance(x._array, Layer) else wrap(x._array)


def _twin(t: Tensor) -> Tensor:
    """Another Tensor of the same value and history."""
    found = wrap_at(t, t._array)
    found._cell = t._cell
    found._node = t._node
    return found
