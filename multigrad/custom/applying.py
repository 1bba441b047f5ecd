"""Applying an operation with a derivative of the user's own to values of any levels.

What is applied, the rule, is a class derived from autograd.Function, or a `Definition`, which has the same names: `forward` and `backward` or
`vjp`, `jvp`, `vmap`, and what says which of them there are. It goes through the levels of its arguments from the highest one inwards, and each
layer's class says by `_apply_custom` what happens there. At the innermost values forward runs, once. On the way back each level that
differentiates makes a node of its own, or asks the user's jvp, with what forward kept as values of that level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import observe
from ..engine import grad_mode
from ..engine.computed import follow, following, mark
from ..engine.dispatch import _same_structure as same_structure
from ..engine.element import is_array
from ..engine.level import BASE, Layer, as_guest, own_switch, settle, undo
from ..engine.tensor import Tensor, wrap_at
from ..errors import GradientError
from ..observe import FUNCTION
from .batch import under_batch
from .context import no_setup
from .definition import Applied
from .dual import require_setup, under_dual
from .kept import Computed, lowered, replaced
from .node import BackwardCFunction


def apply_function(rule: Any, flat: Sequence[Any], names: tuple[str, ...]) -> Any:
    """Apply a rule to its arguments, the last ones by `names`: each application of a user's derivative goes through here."""
    if observe.gate.get() is True:
        return _apply(rule, flat, names)
    return observe.call(FUNCTION, None, rule.__name__, (), flat, lambda: _apply(rule, flat, names))


def _apply(rule: Any, flat: Sequence[Any], names: tuple[str, ...]) -> Any:
    top = highest(flat)
    computed = None
    if rule._follows and top is not None and top._level > 1:  # of a transformation
        moving = [moves(x) for x in flat]
        computed = Computed(rule.__name__, moving) if any(moving) else None
    application = Application(rule, names, (), computed, False)
    return (Tensor if top is None else type(top))._apply_custom(application, flat, top).output


@dataclass(slots=True)
class Application:
    """An application of a rule at one level. What it does there is a layer's to choose, by `_apply_custom(application, values, top)`.

    rule      what is applied
    names     of the last arguments
    needs     which arguments levels further out may want the gradient of, if any does
    computed  what stands for what forward computes of its inputs
    inner     whether there is a level further out, which asks for what forward leaves on its ctx
    """

    rule: Any
    names: tuple[str, ...]
    needs: tuple[bool, ...]
    computed: Computed | None
    inner: bool

    @property
    def name(self) -> str:
        """That of the user's class or function."""
        name: str = self.rule.__name__
        return name

    def inside(self, values: Sequence[Any], needs: tuple[bool, ...] | None = None, rule: Any = None) -> Applied:
        """Apply the rule to values one layer further in; `needs` and `rule`: others than those of this level."""
        top = highest(values)
        names = self.names if rule is None else ()  # a Definition takes its arguments by position
        application = Application(rule or self.rule, names, self.needs if needs is None else needs, self.computed, True)
        below: Applied = (Tensor if top is None else type(top))._apply_custom(application, values, top)
        return below

    def through(self, values: Sequence[Any], own: Sequence[bool], wrap: Callable[[Any], Any], needs: tuple[bool, ...] | None = None) -> Applied:
        """Apply the rule one layer further in, and make a value of this level, by `wrap`, of each array that comes out.

        own  for each of `values` whether it is a layer of this level
        """
        inner = lowered(values, own)
        output, returned, state = self.inside(inner, needs)
        lifted = [wrap(x) if is_array(x) else x for x in (output if isinstance(output, tuple) else (output,))]
        if state is not None:
            known = {id(a): b for a, b in zip((*inner, *returned), (*values, *lifted), strict=True) if is_array(a)}
            state = {name: replaced(value, known) for name, value in state.items()}
        return self.raised(output, lifted, state)

    def raised(self, output: Any, lifted: Sequence[Any], state: dict[str, Any] | None) -> Applied:
        """What came of it further in, with the values `lifted` of this level in the place of its arrays."""
        return Applied(same_structure(output, list(lifted)) if isinstance(output, tuple) else lifted[0], tuple(lifted), state)

    def recorded(self, values: Sequence[Any], top: Tensor | None) -> Applied:
        """What happens at the level of a Tensor: a node, after the levels further in that want a gradient, too."""
        ctx = self.rule._backward_cls()
        ctx._begin(self.rule, values, top, self.computed)
        needs = own = ctx.needs_input_grad
        if self.needs:
            needs = tuple([a or b for a, b in zip(own, self.needs, strict=True)])
        if top is not None and top._elem.run is not None and any(_wanted_below(x, top._elem.level) for x in values):
            own_level = [isinstance(x, Tensor) and x._elem.level == top._elem.level for x in values]
            output, _, state = self.through(values, own_level, partial(wrap_at, top), needs)
            if state is None:
                if ctx._next:
                    self._set_up(ctx, values, output)
            elif state.get("dirty_tensors"):
                raise GradientError(f"{self.name}: mark_dirty is not supported where several levels of differentiation meet. Return a new array.")
            else:
                ctx.__dict__.update(state)
                state = dict(ctx.__dict__)
        else:
            if needs is not own:
                ctx.needs_input_grad = needs  # forward may save by what is needed
            output = as_guest("forward", BASE if ctx._run is None else ctx._run.grad_mode, self._forward, ctx, values)
            if needs is not own:
                ctx.needs_input_grad = own
            state = dict(ctx.__dict__) if self.inner else None
        result, returned = ctx._finish(output, values, top)
        return Applied(result, returned, state)

    pushed = under_dual
    batched = under_batch

    def _forward(self, ctx: BackwardCFunction, values: Sequence[Any]) -> Any:
        """Call forward, with recording off at the level of the ctx, which is where the user looks for it."""
        rule, names, computed = self.rule, self.names, ctx._computed
        off = None if computed is not None or following.get() is not None else False  # a forward around this one may have to know what is computed
        before = undo()
        try:
            if computed is not None:
                follow(computed)
                if computed.moving:
                    computed.next = ctx._next
                    _mark_inputs(computed, values)
            own_switch().set(off)
            n = len(values) - len(names)
            given, named = values[:n], dict(zip(names, values[n:], strict=True)) if names else {}
            if rule.setup_context is no_setup:
                return rule.forward(ctx, *given, **named)
            output = rule.forward(*given, **named)
            rule.setup_context(ctx, tuple(values), output)
            return output
        finally:
            settle(before)
            if computed is not None:
                computed.release()

    def _set_up(self, ctx: BackwardCFunction, values: Sequence[Any], output: Any) -> None:
        """Call a setup_context that follows no forward, and note what it computes."""
        require_setup(self.rule)
        assert ctx._run is not None
        before, computed = undo(), ctx._computed
        try:
            follow(computed)
            with grad_mode.switched_off(ctx._run.grad_mode, own_switch()):
                self.rule.setup_context(ctx, tuple(values), output)
        finally:
            settle(before)
            if computed is not None:
                computed.release()


def highest(values: Sequence[Any]) -> Any:
    """The argument of the highest level, None if none is a layer."""
    top, reach = None, 0
    for x in values:
        if isinstance(x, Tensor):
            x._check()
            level = x._elem.level
        elif isinstance(x, Layer):
            level = x._level
        else:
            continue
        if level > reach:
            top, reach = x, level
    return top


def moves(x: Any) -> bool:
    """Whether a derivative with respect to an argument may be asked for, at any level."""
    while isinstance(x, Layer):
        if x._moves():
            return True
        x = x._array
    return False


def _wanted_below(x: Any, level: int) -> bool:
    """Whether a level below this one may want the gradient of `x`."""
    while isinstance(x, Layer):
        if x._level < level and (not isinstance(x, Tensor) or x._node is not None):
            return True
        x = x._array
    return False


def _mark_inputs(computed: Computed, values: Sequence[Any]) -> None:
    """Let what is computed of the arguments be known where they are constants at the innermost level, but not further out."""
    for x, moving in zip(values, computed.moving, strict=True):
        if moving and isinstance(x, Tensor) and x._node is None and x._elem.floating:
            mark(x)
