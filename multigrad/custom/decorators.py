"""custom_vjp and custom_jvp: functions with a user-defined derivative, as in JAX."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from .. import observe, tree
from ..core.level import Layer
from ..core.tensor import strip
from ..errors import GradientError
from ..layers.transforming import constants_beside
from ..tracebacks import blamed, entry
from .definition import ctx_class
from .function import apply_function
from .rules import JvpDefinition, RuleDefinition, VjpDefinition

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")

PUBLIC = "multigrad.func.custom"
"""The module from which users import these names."""


class CustomFunction(Generic[P, R]):
    """A function with a user-defined derivative."""

    __module__ = PUBLIC
    _definition: type[RuleDefinition]
    _rule: str  # the attribute that has the rule, once it is defined
    _how: str

    @entry
    def __init__(self, fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = ()) -> None:
        kind = type(self).__name__
        if not callable(fun):
            raise TypeError(f"{kind}: expected a function, got {type(fun).__name__}")
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        if not all(type(i) is int for i in numbers):
            raise TypeError(
                f"{kind}: nondiff_argnums must be an int or a tuple of ints, not "
                f"{nondiff_argnums!r}"
            )
        update_wrapper(self, fun)
        self.fun: Callable[..., Any] = fun
        self.nondiff_argnums = numbers
        name = getattr(fun, "__name__", type(fun).__name__)
        self.name = f"{kind} function {name}"
        self._backward_cls = ctx_class(name)
        self._short_name = name
        try:
            self._signature: inspect.Signature | None = inspect.signature(fun)
        except (TypeError, ValueError):
            self._signature = None

    def fixed(self, n: int) -> list[int]:
        """The arguments that are not differentiated, in order."""
        for i in self.nondiff_argnums:
            if not -n <= i < n:
                raise ValueError(
                    f"{self.name}: nondiff_argnums names argument {i}, but it was called with {n}"
                )
        return sorted({i % n for i in self.nondiff_argnums})

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if getattr(self, self._rule) is None:
                raise GradientError(
                    f"{self.name} was called before its rule was defined by {self._how}"
                )
            arguments = tree.mapped(observe.passed, self._positional(args, kwargs))
            layers = (x for x in tree.leaves(arguments) if isinstance(x, Layer))
            arguments = constants_beside(layers)(arguments)
            call = self._definition(self, arguments)
            if not call.linked:
                output = self.fun(*arguments)
                call.refuse_captured(output)
                result: R = output if tree.has_layer(arguments) else tree.replaced(strip, output)
                return result
            leaves, call.leaves = call.leaves, []  # no node keeps them by its rule
            outs = apply_function(call, leaves, ())
            result = tree.built(call.output, outs)
            return result
        except Exception as error:
            error = blamed(error, self.name, args, kwargs)
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in order, defaults included, so that a rule knows how many there are."""
        if self._signature is None:
            if kwargs:
                raise TypeError(
                    f"{self.name}: its signature is not known, so it takes no keyword arguments"
                )
            return args
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{self.name}: the arguments {', '.join(bound.kwargs)} can only be given by "
                "name, which its rule has no place for"
            )
        return bound.args


class custom_vjp(CustomFunction[P, R]):
    """Decorate a function to give it your own reverse-mode derivative.

        @custom_vjp
        def clip(x, low, high):
            return mg.clip(x, low, high)

        def forward(x, low, high):
            return clip(x, low, high), (x, low, high)      # output, residuals

        def backward(residuals, g):
            x, low, high = residuals
            return mg.where((x > low) & (x < high), g, 0.0), None, None

        clip.defvjp(forward, backward)

    nondiff_argnums  the positions of arguments that are not differentiated, and may be of any type;
                     backward gets them first: bwd(*nondiff, residuals, g)

    Arguments, output and residuals are arrays, Tensors or pytrees of these. `bwd` gets cotangents
    in the structure of the output, with zeros for unused outputs. It returns a tuple with one
    gradient for each argument, in the structure of the argument; None means zero, for any part of
    it. `fwd` takes the arguments of the function, and runs instead of the function if a derivative
    may be needed. Values that the function captures, and arguments that are not differentiated,
    must not need a derivative: that is an error.

    Transformations may be nested in any way; each of them uses the rule. Higher derivatives
    differentiate `bwd` and the part of `fwd` that computes the residuals. For this purpose the
    arguments are kept, too, unless all floating residuals are themselves arguments or outputs.
    Forward mode transposes `bwd`, which is linear in the cotangents; JAX raises there. A library
    that differentiates its own arrays (jax.grad of a function of raw arrays) does not see the rule,
    and differentiates the code of the function. Same as jax.custom_vjp.
    """

    __module__ = PUBLIC
    _definition = VjpDefinition
    _rule = "fwd"
    _how = "defvjp(fwd, bwd)"
    fwd: Function | None = None
    bwd: Function | None = None

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Set the rule: `fwd(*args)` and `bwd(*nondiff, residuals, cotangents)`.

        `fwd` returns (output, residuals), `bwd` a tuple of gradients.
        """
        for name, f in (("fwd", fwd), ("bwd", bwd)):
            if not callable(f):
                raise TypeError(f"{self.name}: {name} must be a function, not {type(f).__name__}")
        self.fwd, self.bwd = fwd, bwd


class custom_jvp(CustomFunction[P, R]):
    """Decorate a function to give it your own derivative for forward and reverse mode.

        @custom_jvp
        def log1pexp(x):
            return mg.log(1 + mg.exp(x))

        @log1pexp.defjvp
        def rule(primals, tangents):
            (x,), (t,) = primals, tangents
            return log1pexp(x), (1 - 1 / (1 + mg.exp(x))) * t      # output, tangent

    nondiff_argnums  the positions of arguments that are not differentiated, and may be of any type;
                     the rule gets them first: jvp(*nondiff, primals, tangents)

    Arguments and output are arrays, Tensors or pytrees of these. The rule gets the tuple of
    arguments and a tuple of tangents in the same structure: zeros for an argument without a
    tangent, None for one whose dtype is not floating. The rule must be linear in the tangents,
    since reverse mode transposes it. Only the tangent that it returns is used, in which None means
    zero; the output is always that of the function itself. In reverse mode the rule runs in the
    backward pass, for which the arguments are kept. Values that the function captures must not need
    a derivative: that is an error.

    Transformations may be nested in any way; each of them uses the rule. Higher derivatives
    differentiate the code of the rule. Same as jax.custom_jvp.
    """

    __module__ = PUBLIC
    _definition = JvpDefinition
    _rule = "jvp"
    _how = "defjvp(jvp)"
    jvp: Function | None = None

    def defjvp(self, jvp: Function) -> Function:
        """Set the rule: jvp(*nondiff, primals, tangents) -> (output, tangent).

        Returns `jvp`, so this is a decorator.
        """
        if not callable(jvp):
            raise TypeError(f"{self.name}: the jvp must be a function, not {type(jvp).__name__}")
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Set a rule for each argument: jvps[i](tangent, output, *args) -> tangent; None for none.

        The results for all arguments are added.
        """
        if self.nondiff_argnums:
            raise TypeError(
                f"{self.name}: defjvps is not for functions with nondiff_argnums. Use defjvp."
            )

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise TypeError(
                    f"{self.name}: defjvps got {len(jvps)} rules, but the function has "
                    f"{len(primals)} arguments"
                )
            function: Function = self
            output = function(*primals)
            total: list[Any] = [None] * len(tree.leaves(output))
            _, structure = tree.flattened(output)
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is not None:
                    for i, x in enumerate(
                        tree.fitted(structure, rule(t, output, *primals), partial=True)
                    ):
                        total[i] = (
                            x if total[i] is None else total[i] if x is None else total[i] + x
                        )
            return output, tree.built(structure, total)

        self.jvp = jvp
