"""How functions with a rule of the user's own (custom_vjp, custom_jvp) are carried out: as an autograd.Function is.

Once, on the innermost values, and with the user's rule asked at every level of differentiation. Two things are particular here.

- Residuals that `fwd` computes are results of the operation, too, whose derivative is that of the text of `fwd`. So the text of `bwd` can be
  differentiated in all that it uses, as often as one likes.
- What a rule does not say is had by transposition: `bwd` is linear in the cotangents, so its vjp there takes tangents forward, and that of
  the tangent map of a jvp takes cotangents back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..engine import grad_mode
from ..engine.custom import BackwardCFunction, FunctionCtx
from ..engine.dispatch import is_array, recording_at
from ..engine.element import Element
from ..engine.level import Layer, innermost
from ..engine.tensor import Tensor, element_of, wrap
from ..errors import GradientError
from ..layers.dual import Dual
from . import tree
from .forward import jvp
from .reverse import Function, _zeros, vjp


class Call:
    """One call of a function with a rule: what is not an array to differentiate with respect to.

    rule        the function, a custom_vjp or custom_jvp
    arguments   all of its arguments, None in the places of those that the rule differentiates
    structure   that of the tuple of the latter
    leaves      their leaves, None in the places of arrays
    like        of each of their leaves that is an array, its shape and Element
    top         the highest level among them
    linked      whether one of them has a history or a tangent, at any level
    wanted      whether a derivative may be asked for, that is, whether such a level records
    modes       the grad modes that matter to the function, and what they were
    output      the structure of the output
    outs        its leaves: a function that makes zeros in the form of the array, or None where it is none
    residual    the structure of the residuals
    kept        their leaves: the place among the saved arrays, or (value,) of what is no array
    computed    which leaves of them are results of the operation
    """

    output: tree.Structure
    outs: list[Callable[[], Any] | None]
    smooth: list[int]
    residual: tree.Structure
    kept: list[int | tuple[Any]]
    computed: list[int]

    def __init__(self, rule: Any, args: tuple[Any, ...]) -> None:
        self.rule = rule
        fixed = rule.fixed(len(args))
        self.arguments = [a if i in fixed else None for i, a in enumerate(args)]
        self.places = [i for i in range(len(args)) if i not in fixed]
        self.fixed = [args[i] for i in fixed]
        given, self.structure = tree.flattened(tuple(args[i] for i in self.places))
        layers = [layer for x in given for layer in _tower(x)]
        self.linked = any(map(_linked, layers))
        if not self.linked:
            return
        self.given = given
        self.like = [(tuple(x.shape), element_of(x)) if is_array(x) else None for x in given]
        self.leaves = [None if like is not None else x for x, like in zip(given, self.like, strict=True)]
        self.top = max(layer._level for layer in layers)
        self.wanted = any(map(_moves, layers))
        runs = {layer._run for layer in layers if isinstance(layer, Tensor)}
        modes = {run.grad_mode for run in runs if run is not None} | {grad_mode.BASE, grad_mode._variable()}
        self.modes = [(mode, mode.get()) for mode in modes]
        self.computed = []

    def handed_over(self) -> list[Any]:
        """The leaves of the arguments, which the call itself is not to hold."""
        given, self.given = self.given, []
        return given

    def primals(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments that the rule differentiates, of their leaves as an operation gets them."""
        found: tuple[Any, ...] = tree.built(self.structure, arrays)
        return found

    def args(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments."""
        found = list(self.arguments)
        for i, x in zip(self.places, self.primals(leaves), strict=True):
            found[i] = x
        return found

    def filled(self, arrays: Sequence[Any]) -> list[Any]:
        """The leaves of the arguments, of those that are arrays."""
        it = iter(arrays)
        return [x if like is None else next(it) for x, like in zip(self.leaves, self.like, strict=True)]

    def call(self, function: Function, leaves: Sequence[Any]) -> Any:
        """Call the function on values without a history, so that one that comes out of it can only be captured."""
        with grad_mode.switched(self.modes):
            output = function(*self.args(leaves))
            self.refuse_captured(output)
        return output

    def returned(self, output: Any) -> list[Any]:
        """Take note of the output. Returns its leaves."""
        outs, self.output = tree.flattened(output)
        self.outs = [_zeros_like(x) if is_array(x) else None for x in outs]
        self.smooth = [i for i, x in enumerate(outs) if is_array(x) and element_of(x).floating]
        return outs

    def refuse_captured(self, output: Any) -> None:
        if any(_moves(layer) for x in tree.leaves(output) for layer in _tower(x)):
            raise GradientError(f"{self.rule.name} depends on a Tensor that requires grad, or on one of a running transformation, that is not among "
                                "the arguments which its rule differentiates, so its derivative would be lost. Make it such an argument, or "
                                "detach() it.")

    def zeros(self) -> list[Any]:
        """Zeros for each leaf of the output, Tensors as all that a rule gets; None where that is no array."""
        return [None if make is None else make() for make in self.outs]

    def fitted(self, structure: tree.Structure, given: Any, what: str, shown: str) -> list[Any]:
        try:
            return tree.fitted(structure, given, partial=True)
        except ValueError as error:
            raise ValueError(f"{self.rule.name}: {what} must return {shown}: {error}") from None

    def conformed(self, i: int, g: Any, shape: tuple[int, ...], elem: Element, what: str) -> Any:
        """A derivative that a rule returned, of the dtype of what it belongs to. Raises if its shape is another one."""
        if not is_array(g):
            raise TypeError(f"{self.rule.name}: {what} {i} is of type {type(g).__name__}, expected an array of shape {shape} or None")
        found = element_of(g)
        if found.host is not elem.host:
            raise TypeError(f"{self.rule.name}: {what} {i} is an array of {found.host.name!r}, expected one of {elem.host.name!r}")
        if tuple(g.shape) != shape:
            raise ValueError(f"{self.rule.name}: {what} {i} is of shape {tuple(g.shape)}, expected {shape}")
        if found is elem:
            return g
        if found.complex and not elem.complex:
            raise TypeError(f"{self.rule.name}: {what} {i} is of dtype {found.dtype}, expected the real dtype {elem.dtype}. Return its real part.")
        return (elem.host.bound if isinstance(g, Layer) else elem.host.xp).astype(g, elem.dtype)


class Operation(FunctionCtx):
    """What both operations have in common with an autograd.Function."""

    clear_saved_tensors_on_access = False
    boxed_grads_call = False
    generate_vmap_rule = True
    vmap = None
    _follows = False  # what is computed on the way has a derivative
    _backward_cls: type[BackwardCFunction]
    _vmapped: Any
    backward: Callable[..., Any]

    def __init_subclass__(cls) -> None:
        cls._vmapped = None
        cls._backward_cls = type(f"{cls.__name__}Backward", (BackwardCFunction,), {"_forward_cls": cls, "__module__": __name__})

    @classmethod
    def _base(cls) -> type[Operation]:
        return Operation

    @classmethod
    def _separate(cls) -> bool:
        return False

    @classmethod
    def _backward(cls) -> Callable[..., Any]:
        return cls.backward


class VjpOperation(Operation):
    """Its arguments are a Call and the leaves of the arguments, its results the leaves of the output and the residuals that were computed.

    The call comes in a list, which is known to be no array without a look at what libraries there are.
    """

    @staticmethod
    def forward(ctx: Any, calls: list[Call], *leaves: Any) -> tuple[Any, ...]:
        call = ctx.call = calls[0]
        ctx.set_materialize_grads(False)
        inputs = [x.detach() if isinstance(x, Layer) else x for x in leaves]  # type: ignore[attr-defined]
        if not call.wanted:
            return tuple(_own(call.returned(call.call(call.rule.fun, inputs)), inputs, leaves))
        output, residuals = _run_fwd(call, inputs)
        outs = _own(call.returned(output), inputs, leaves)
        found, call.residual = tree.flattened(residuals)
        found = _own(found, inputs, leaves)
        known = {id(x) for x in (*leaves, *outs)}
        call.computed = [i for i, x in enumerate(found) if id(x) not in known and is_array(x) and element_of(x).floating]
        saved = [x for x in leaves if is_array(x)] if call.computed else []
        call.kept = []
        for x in found:
            if is_array(x):
                call.kept.append(len(saved))
                saved.append(x)
            else:
                call.kept.append((x,))
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        return (*outs, *(found[i] for i in call.computed))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        call: Call = ctx.call
        saved = ctx.saved_tensors
        n = len(call.outs)
        found: list[Any] = [None] * len(call.leaves)
        if any(g is not None for g in grads[:n]) or all(g is None for g in grads[n:]):
            found = _pulled(call, saved, [z if g is None else g for g, z in zip(grads, call.zeros(), strict=False)])
        asked = [i for i, g in enumerate(grads[n:]) if g is not None]
        wanted = [i for i, need in enumerate(ctx.needs_input_grad[1:]) if need]
        if asked and wanted:
            args = call.filled(saved[:_arrays(call)])
            _, pullback = vjp(_residuals(call, args, wanted, asked), *(args[i] for i in wanted))
            for i, g in zip(wanted, pullback([grads[n + k] for k in asked]), strict=True):
                found[i] = g if found[i] is None else found[i] + g
        return (None, *found)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
        call: Call = ctx.call
        saved = ctx.saved_tensors
        moving = [i for i, t in enumerate(tangents) if t is not None]
        zeros = call.zeros()
        moved: list[Any] = [None] * len(zeros)
        used: list[int] = []

        def transposed(cotangents: list[Any]) -> list[Any]:
            given = dict(zip(call.smooth, cotangents, strict=True))
            pulled = _pulled(call, saved, [given.get(i, z) for i, z in enumerate(zeros)])
            used[:] = [i for i in moving if pulled[i] is not None]
            return [pulled[i] for i in used]

        if call.smooth:
            _, pushforward = vjp(transposed, [zeros[i] for i in call.smooth])
            for i, t in zip(call.smooth, pushforward([tangents[i] for i in used])[0], strict=True):
                moved[i] = t
        if not call.computed or ctx._level == call.top:  # nobody sees them
            return (*moved, *(None for _ in call.computed))
        args = call.filled(saved[:_arrays(call)])
        function = _residuals(call, args, moving, range(len(call.computed)))
        return (*moved, *jvp(function, tuple(args[i] for i in moving), tuple(tangents[i] for i in moving))[1])


def _arrays(call: Call) -> int:
    return sum(like is not None for like in call.like)


def _run_fwd(call: Call, leaves: Sequence[Any]) -> tuple[Any, Any]:
    rule = call.rule
    found = call.call(rule.fwd, leaves)
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeError(f"{rule.name}: fwd must return a tuple (output, residuals), but it returned {tree.shown(found)}")
    return found


def _residuals(call: Call, args: Sequence[Any], places: Sequence[int], which: Sequence[int]) -> Callable[..., list[Any]]:
    """What fwd computes for bwd as a function of the leaves in some places."""
    def function(*values: Any) -> list[Any]:
        full = list(args)
        for i, x in zip(places, values, strict=True):
            full[i] = x
        found = list(tree.leaves(call.rule.fwd(*call.args(full))[1]))
        return [found[call.computed[k]] for k in which]

    return function


def _pulled(call: Call, saved: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """What bwd makes of these cotangents: a gradient for each leaf of the arguments, None for zero."""
    rule = call.rule
    residuals = tree.built(call.residual, [k[0] if isinstance(k, tuple) else saved[k] for k in call.kept])
    found = rule.bwd(*call.fixed, residuals, tree.built(call.output, cotangents))
    n = len(call.places)
    if not isinstance(found, (tuple, list)) or len(found) != n:
        raise ValueError(f"{rule.name}: bwd must return a tuple with the gradient of each of the {n} arguments that it differentiates, but it "
                         f"returned {tree.shown(found)}")
    grads = call.fitted(call.structure, found, "bwd", "gradients in the structure of the arguments, or None for zero")
    return [None if g is None or like is None or not like[1].floating else call.conformed(i, g, *like, "the gradient that bwd returned for leaf")
            for i, (g, like) in enumerate(zip(grads, call.like, strict=True))]


class JvpOperation(Operation):
    """Its arguments are a list of a Call and the leaves of the arguments, its results the leaves of the output."""

    @staticmethod
    def forward(ctx: Any, calls: list[Call], *leaves: Any) -> tuple[Any, ...]:
        call = ctx.call = calls[0]
        inputs = [x.detach() if isinstance(x, Layer) else x for x in leaves]  # type: ignore[attr-defined]
        saved = [x for x in leaves if is_array(x)]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        return tuple(_own(call.returned(call.call(call.rule.fun, inputs)), inputs, leaves))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        call: Call = ctx.call
        args = call.filled(ctx.saved_tensors)
        wanted = [i for i, need in enumerate(ctx.needs_input_grad[1:]) if need]
        used: list[int] = []

        def transposed(tangents: list[Any]) -> list[Any]:
            given = dict(zip(wanted, tangents, strict=True))
            moved = _pushed(call, args, [given.get(i) for i in range(len(args))])
            used[:] = [i for i in call.smooth if moved[i] is not None]
            return [moved[i] for i in used]

        _, pullback = vjp(transposed, [_zeros(args[i]) for i in wanted])
        found = dict(zip(wanted, pullback([grads[i] for i in used])[0], strict=True))
        return (None, *(found.get(i) for i in range(len(args))))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
        call: Call = ctx.call
        return tuple(_pushed(call, call.filled(ctx.saved_tensors), tangents))


def _pushed(call: Call, args: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """What the rule makes of these tangents, None for zero: a tangent for each leaf of the output, None for zero."""
    rule = call.rule
    given = [_zeros(x) if t is None and like is not None and like[1].floating else t for x, t, like in zip(args, tangents, call.like, strict=True)]
    found = rule.jvp(*call.fixed, call.primals(args), call.primals(given))
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeError(f"{rule.name}: the jvp must return a tuple (output, tangent), but it returned {tree.shown(found)}")
    call.fitted(call.output, found[0], "the jvp", "an output in the structure of that of the function")
    moved = call.fitted(call.output, found[1], "the jvp", "tangents in the structure of the output, or None for zero")
    checked: list[Any] = [None] * len(moved)
    for i, z in enumerate(call.zeros()):
        if i in call.smooth and moved[i] is not None:
            checked[i] = call.conformed(i, moved[i], tuple(z.shape), element_of(z), "the tangent that the jvp returned for leaf")
    return checked


def _zeros_like(x: Any) -> Callable[[], Any]:
    """What makes zeros in the form of an array, without holding it."""
    elem, shape = element_of(x), tuple(x.shape)
    host = elem.host
    device = host.device(host.xp, innermost(x))
    return lambda: wrap(host.xp.zeros(shape, dtype=elem.dtype, device=device))


def _tower(x: Any) -> Iterator[Layer]:
    while isinstance(x, Layer):
        yield x
        x = x._array


def _linked(layer: Layer) -> bool:
    """Whether this very layer has a history or a tangent."""
    return layer._node is not None if isinstance(layer, Tensor) else isinstance(layer, Dual) and layer._tangent is not None


def _moves(layer: Layer) -> bool:
    """Whether this very layer is being differentiated."""
    return _linked(layer) and (not isinstance(layer, Tensor) or recording_at(layer))


def _own(values: Sequence[Any], inputs: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
    """`values` with the arguments themselves in the place of the constants that the function was given; no Tensor twice."""
    known = {id(a): b for a, b in zip(inputs, leaves, strict=True) if is_array(a)}
    found: list[Any] = []
    for x in values:
        x = known.get(id(x), x)
        found.append(x.detach() if isinstance(x, Layer) and any(x is y for y in found) else x)  # type: ignore[attr-defined]
    return found
