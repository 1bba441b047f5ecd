"""Calls of custom_vjp and custom_jvp functions, which are carried out like an autograd.Function.

The function runs once, on the innermost values, and each level of differentiation calls the user's
rule. Two things are specific to these functions.

- The residuals that `fwd` computes are outputs of the operation, too, and their derivative is that
  of the code of `fwd`. So `bwd` can be differentiated any number of times with respect to all its
  arguments.
- The direction that a rule does not define is made by transposition. `bwd` is linear in the
  cotangents, so its vjp takes tangents forward. The vjp of the tangent map of a jvp takes
  cotangents back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import tree
from ..core import grad_mode
from ..core.element import is_array
from ..core.level import BASE, Layer, Transformation, own_switch
from ..core.tensor import Tensor, detached, element_of, wrap
from ..dispatch.general import recording_at
from ..errors import GradientError
from ..layers.transforming import Listed, derivative, jvp, namespace, vjp, within, zeros_like
from .definition import Definition
from .kept import Described, described, layers_in

Function = Callable[..., Any]


class RuleDefinition(Definition):
    """One call of a function with a rule, applied to the leaves of the differentiated arguments.

    Its outputs are the leaves of the function's output, and the computed residuals.

    rule        the function, a custom_vjp or custom_jvp
    arguments   all arguments of the call, with None for those that the rule differentiates
    structure   the structure of the tuple of the differentiated arguments
    leaves      the leaves of the differentiated arguments
    constants   these leaves, with None for arrays
    like        for each of these leaves its Described if it is an array, else None
    top         the highest level among them
    linked      whether one of them has a history or a tangent, at any level
    wanted      whether a derivative may be wanted, that is, whether such a level records
    modes       the grad modes that matter to the function, and their values
    output      the structure of the output
    outs        for each leaf of the output its Described if it is an array, else None
    smooth      which leaves of the output are floating arrays
    residual    the structure of the residuals
    residuals   for each leaf of the residuals its index among the saved arrays, or (value,) if it
                is not an array
    computed    which leaves of the residuals are outputs of the operation
    """

    output: tree.Structure
    outs: list[Described | None]
    smooth: list[int]
    residual: tree.Structure
    residuals: list[int | tuple[Any]]
    computed: list[int]

    def __init__(self, rule: Any, args: tuple[Any, ...]) -> None:
        self.rule = rule
        self.__name__ = rule._short_name
        self._backward_cls = rule._backward_cls
        fixed = rule.fixed(len(args))
        self.arguments = [a if i in fixed else None for i, a in enumerate(args)]
        self.places = [i for i in range(len(args)) if i not in fixed]
        self.fixed = [args[i] for i in fixed]
        self.leaves, self.structure = tree.flattened(tuple(args[i] for i in self.places))
        layers = [layer for x in self.leaves for layer in layers_in(x)]
        self.linked = any(map(_linked, layers))
        if not self.linked:
            return
        self.like = [described(x) if is_array(x) else None for x in self.leaves]
        self.constants = [None if is_array(x) else x for x in self.leaves]
        self.top = max(layer._level for layer in layers)
        self.wanted = any(map(_moves, layers))
        runs = {layer._run for layer in layers if isinstance(layer, Tensor)}
        modes = {run.grad_mode for run in runs if run is not None} | {BASE, own_switch()}
        self.modes = [(mode, mode.get()) for mode in modes]
        self.computed = []

    def args(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments, with these leaves of the differentiated ones."""
        args = list(self.arguments)
        for i, x in zip(self.places, tree.built(self.structure, leaves), strict=True):
            args[i] = x
        return args

    def filled(self, arrays: Sequence[Any]) -> list[Any]:
        """The leaves of the arguments, with `arrays` in the places of arrays."""
        it = iter(arrays)
        return [
            x if like is None else next(it)
            for x, like in zip(self.constants, self.like, strict=True)
        ]

    def forward(self, ctx: Any, *leaves: Any) -> tuple[Any, ...]:
        inputs = list(map(detached, leaves))
        return tuple(_own(self.returned(self.call(self.rule.fun, inputs)), inputs, leaves))

    def call(self, function: Function, leaves: Sequence[Any]) -> Any:
        """Call the function on values without a history.

        So a history in its output belongs to a captured value.
        """
        with grad_mode.switched(self.modes):
            output = function(*self.args(leaves))
            self.refuse_captured(output)
        return output

    def returned(self, output: Any) -> list[Any]:
        """Store the structure of the output. Returns its leaves."""
        outs, self.output = tree.flattened(output)
        self.outs = [described(x) if is_array(x) else None for x in outs]
        self.smooth = [i for i, x in enumerate(self.outs) if x is not None and x.elem.floating]
        return outs

    def refuse_captured(self, output: Any) -> None:
        if any(_moves(layer) for x in tree.leaves(output) for layer in layers_in(x)):
            raise GradientError(
                f"{self.rule.name} depends on a Tensor that requires grad, or on one of a "
                "running transformation, that is not among the arguments which its rule "
                "differentiates, so its derivative would be lost. Make it such an argument, or "
                "detach() it."
            )

    def fitted(self, structure: tree.Structure, x: Any, what: str, expected: str) -> list[Any]:
        try:
            return tree.fitted(structure, x, partial=True)
        except ValueError as error:
            raise ValueError(f"{self.rule.name}: {what} must return {expected}: {error}") from None

    def conformed(self, i: int, g: Any, like: Described | None, what: str) -> Any:
        """A derivative that a rule returned, converted to the dtype of its argument or output.

        Gives None, which means zero, for None and for an argument or output without a derivative.
        Raises if the shape is wrong.
        """
        if g is None or like is None or not like.elem.floating:
            return None
        elem, what = like.elem, f"{self.rule.name}: {what} {i}"
        if not is_array(g):
            raise TypeError(
                f"{what} is of type {type(g).__name__}, expected an array of shape {like.shape} or "
                "None"
            )
        actual = element_of(g)
        if actual.library is not elem.library:
            raise TypeError(
                f"{what} is an array of {actual.library.name!r}, expected one of "
                f"{elem.library.name!r}"
            )
        if tuple(g.shape) != like.shape:
            raise ValueError(f"{what} is of shape {tuple(g.shape)}, expected {like.shape}")
        if actual is elem:
            return g
        if actual.complex and not elem.complex:
            raise TypeError(
                f"{what} is of dtype {actual.dtype}, expected the real dtype {elem.dtype}. Return "
                "its real part."
            )
        return namespace(g).astype(g, elem.dtype)


class VjpDefinition(RuleDefinition):
    """A call of a custom_vjp."""

    def forward(self, ctx: Any, *leaves: Any) -> tuple[Any, ...]:
        ctx.materialize_grads = False
        if not self.wanted:
            return super().forward(ctx, *leaves)
        inputs = list(map(detached, leaves))
        pair = self.call(self.rule.fwd, inputs)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"{self.rule.name}: fwd must return a tuple (output, residuals), but it "
                f"returned {tree.shown(pair)}"
            )
        output, residuals = pair
        outs = _own(self.returned(output), inputs, leaves)
        parts, self.residual = tree.flattened(residuals)
        parts = _own(parts, inputs, leaves)
        others = {id(x) for x in (*leaves, *outs)}
        self.computed = [
            i
            for i, x in enumerate(parts)
            if id(x) not in others and is_array(x) and element_of(x).floating
        ]
        saved = [x for x in leaves if is_array(x)] if self.computed else []
        self.residuals = []
        for x in parts:
            if is_array(x):
                self.residuals.append(len(saved))
                saved.append(x)
            else:
                self.residuals.append((x,))
        ctx.to_save = ctx.saved_for_forward = saved
        return (*outs, *(parts[i] for i in self.computed))

    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        n = len(self.outs)
        results: list[Any] = [None] * len(self.like)
        if any(g is not None for g in grads[:n]) or all(g is None for g in grads[n:]):
            results = self._pulled(saved, dict(enumerate(grads[:n])))
        asked = [i for i, g in enumerate(grads[n:]) if g is not None]
        wanted = [i for i, need in enumerate(ctx.needs_input_grad) if need]
        if asked and wanted:
            args = self.filled(saved)
            _, pullback = _vjp(self._residuals(args, wanted, asked), [args[i] for i in wanted])
            for i, g in zip(wanted, _fresh(pullback([grads[n + k] for k in asked])), strict=True):
                results[i] = g if results[i] is None else results[i] + g
        return tuple(results)

    def jvp(self, ctx: Any, *tangents: Any) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        moving = [i for i, t in enumerate(tangents) if t is not None]
        pushed: dict[int, Any] = {}
        if self.smooth:
            pushed = _transposed(
                lambda cotangents: self._pulled(saved, cotangents),
                {i: wrap(self.outs[i].zeros()) for i in self.smooth},  # type: ignore[union-attr]
                {i: tangents[i] for i in moving},
            )
        outputs = [pushed.get(i) for i in range(len(self.outs))]
        if not self.computed or ctx._level == self.top:  # nothing sees them
            return (*outputs, *(None for _ in self.computed))
        args = self.filled(saved)
        function = self._residuals(args, moving, range(len(self.computed)))
        run = Transformation("jvp")
        outs, moved = jvp(
            lambda values: within(function(values), run),
            [args[i] for i in moving],
            [tangents[i] for i in moving],
            run,
        )
        last_first = [
            zeros_like(x) if t is None else t
            for x, t in zip(reversed(outs), reversed(moved), strict=True)
        ]
        return (*outputs, *_fresh(last_first))

    def _residuals(
        self, args: Sequence[Any], places: Sequence[int], which: Sequence[int]
    ) -> Callable[[list[Any]], list[Any]]:
        """The residuals that fwd computes, as a function of the leaves in these places."""

        def function(values: list[Any]) -> list[Any]:
            full = list(args)
            for i, x in zip(places, values, strict=True):
                full[i] = x
            parts = list(tree.leaves(self.rule.fwd(*self.args(full))[1]))
            return [parts[self.computed[k]] for k in which]

        return function

    def _pulled(self, saved: Sequence[Any], cotangents: dict[int, Any]) -> list[Any]:
        """The gradients that bwd makes from the cotangents of these leaves of the output.

        There is one for each leaf of the arguments; None means zero.
        """
        rule = self.rule
        residuals = tree.built(
            self.residual, [k[0] if isinstance(k, tuple) else saved[k] for k in self.residuals]
        )
        full = [
            cotangents.get(i) if cotangents.get(i) is not None or x is None else wrap(x.zeros())
            for i, x in enumerate(self.outs)
        ]
        grads = rule.bwd(*self.fixed, residuals, tree.built(self.output, full))
        n = len(self.places)
        if not isinstance(grads, (tuple, list)) or len(grads) != n:
            raise ValueError(
                f"{rule.name}: bwd must return a tuple with the gradient of each of the {n} "
                f"arguments that it differentiates, but it returned {tree.shown(grads)}"
            )
        grads = self.fitted(
            self.structure,
            grads,
            "bwd",
            "gradients in the structure of the arguments, or None for zero",
        )
        return [
            self.conformed(i, g, like, "the gradient that bwd returned for leaf")
            for i, (g, like) in enumerate(zip(grads, self.like, strict=True))
        ]


class JvpDefinition(RuleDefinition):
    """A call of a custom_jvp."""

    def forward(self, ctx: Any, *leaves: Any) -> tuple[Any, ...]:
        ctx.to_save = ctx.saved_for_forward = [x for x in leaves if is_array(x)]
        return super().forward(ctx, *leaves)

    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        args = self.filled(ctx.saved_tensors)
        results = _transposed(
            lambda tangents: self._pushed(args, [tangents.get(i) for i in range(len(args))]),
            {i: zeros_like(args[i]) for i, need in enumerate(ctx.needs_input_grad) if need},
            {i: grads[i] for i in self.smooth},
        )
        return tuple(results.get(i) for i in range(len(args)))

    def jvp(self, ctx: Any, *tangents: Any) -> tuple[Any, ...]:
        return tuple(self._pushed(self.filled(ctx.saved_tensors), tangents))

    def _pushed(self, args: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """The tangents of the output that the rule makes, by leaf; None for zero."""
        rule = self.rule
        full = [
            zeros_like(x) if t is None and like is not None and like.elem.floating else t
            for x, t, like in zip(args, tangents, self.like, strict=True)
        ]
        primals, moved = (tree.built(self.structure, leaves) for leaves in (args, full))
        pair = rule.jvp(*self.fixed, primals, moved)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"{rule.name}: the jvp must return a tuple (output, tangent), but it returned "
                f"{tree.shown(pair)}"
            )
        self.fitted(
            self.output, pair[0], "the jvp", "an output in the structure of that of the function"
        )
        results = self.fitted(
            self.output,
            pair[1],
            "the jvp",
            "tangents in the structure of the output, or None for zero",
        )
        return [
            self.conformed(i, t, like, "the tangent that the jvp returned for leaf")
            for i, (t, like) in enumerate(zip(results, self.outs, strict=True))
        ]


def _transposed(
    linear: Callable[[dict[int, Any]], list[Any]],
    zeros: dict[int, Any],
    cotangents: dict[int, Any],
) -> dict[int, Any]:
    """The transpose of a linear function, at these cotangents of its results.

    linear  takes values by number, as `zeros` has them, and returns a list with None for zero
    """
    used: list[int] = []

    def listed(values: list[Any]) -> list[Any]:
        results = linear(dict(zip(zeros, values, strict=True)))
        used[:] = [i for i in cotangents if results[i] is not None]
        return [results[i] for i in used]

    _, pullback = _vjp(listed, list(zeros.values()))
    return dict(zip(zeros, _fresh(pullback([cotangents[i] for i in used])), strict=True))


def _vjp(
    function: Listed, values: Sequence[Any]
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    run = Transformation("vjp")
    return vjp(lambda inputs: within(function(inputs), run), values, run)


def _fresh(last_first: list[Any]) -> list[Any]:
    """Derivatives, in their order, on memory that nothing else shares."""
    return [derivative(last_first, None, False) for _ in range(len(last_first))]


def _linked(layer: Layer) -> bool:
    """Whether this layer itself has a history or a tangent."""
    return layer._node is not None if isinstance(layer, Tensor) else layer._moves()


def _moves(layer: Layer) -> bool:
    """Whether this layer itself is being differentiated."""
    return _linked(layer) and (not isinstance(layer, Tensor) or recording_at(layer))


def _own(values: Sequence[Any], inputs: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
    """`values` with the arguments themselves in place of the constants that the function got.

    No Tensor occurs twice.
    """
    arguments = {id(a): b for a, b in zip(inputs, leaves, strict=True) if is_array(a)}
    distinct: list[Any] = []
    for x in values:
        x = arguments.get(id(x), x)
        distinct.append(x.detach() if isinstance(x, Layer) and any(x is y for y in distinct) else x)  # type: ignore[attr-defined]
    return distinct
