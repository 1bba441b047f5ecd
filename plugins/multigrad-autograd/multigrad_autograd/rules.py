"""User-defined derivatives: `primitive`, `defvjp` and `defjvp`, by multigrad.autograd.Function.

A rule sees the same values as in HIPS autograd: raw arrays, or boxes if a derivative of the rule is
taken.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import count
from typing import Any

import numpy as np

import multigrad as mg
from multigrad.autograd import Function
from multigrad.extend import level_of

from .boxes import conjugate, has_box, is_box, leaves, mapped, plain, value
from .spaces import SparseObject, vspace
from .util import subval
from .wrap_util import get_name, wraps

__all__ = [
    "JVPNode",
    "VJPNode",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "notrace_primitive",
    "primitive",
    "primitive_jvps",
    "primitive_vjps",
    "primitive_with_deprecation_warnings",
    "register_notrace",
]

Callback = Callable[..., Any]

primitive_vjps: dict[Any, Callback] = {}
"""For each primitive `maker(argnums, ans, args, kwargs)`.

It returns a function from a cotangent to those of the arguments.
"""

primitive_jvps: dict[Any, Callback] = {}
"""For each primitive `rule(argnums, gs, ans, args, kwargs)`, which returns the output's tangent."""


class VJPNode:
    """The name of reverse mode in `register_notrace`."""


class JVPNode:
    """The name of forward mode in `register_notrace`."""


notrace_primitives: defaultdict[type, set[Any]] = defaultdict(set)


def register_notrace(trace_type: type, primitive_fun: Any) -> None:
    """Make a primitive return plain values, without a derivative.

    This applies to both modes, whichever one is named.
    """
    notrace_primitives[trace_type].add(primitive_fun)


def notrace_primitive(f_raw: Callback) -> Callback:
    """Return a function without a derivative, called on the values of its arguments."""

    @wraps(f_raw)
    def on_values(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*map(value, args), **kwargs)

    return on_values


def primitive(f_raw: Callback, otherwise: Callback | None = None) -> Callback:
    """Make a function of raw arrays differentiable by `defvjp` and `defjvp`.

    otherwise  the function to call, also with boxes, while no derivative is defined

    The function is called on raw arrays. A positional argument is differentiated if it is a box, or
    a container with a box.
    """

    @wraps(f_raw)
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        if not any(map(has_box, args)):
            return f_raw(*args, **kwargs)
        given = tuple([mapped(plain, a) for a in args])
        argnums = tuple([i for i, a in enumerate(given) if has_box(a)])
        if not argnums or any(f_wrapped in known for known in notrace_primitives.values()):
            return f_raw(*map(value, given), **kwargs)
        if (
            otherwise is not None
            and f_wrapped not in primitive_vjps
            and f_wrapped not in primitive_jvps
        ):
            return otherwise(*args, **kwargs)
        call = Call(f_wrapped, f_raw, given, kwargs, argnums)
        return call.built(Primitive.apply(call, *call.given))

    f_wrapped.fun = f_raw  # type: ignore[attr-defined]
    return f_wrapped


class Call:
    """A call of a primitive.

    given   the leaves of the differentiated arguments
    output  the structure of the function's result, known after the call
    """

    def __init__(
        self,
        function: Callback,
        f_raw: Callback,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: tuple[int, ...],
    ) -> None:
        self.function, self.f_raw, self.args, self.kwargs, self.argnums = (
            function,
            f_raw,
            args,
            kwargs,
            argnums,
        )
        self.given = [x for i in argnums for x in leaves(args[i])]
        self.output: Any = None

    def filled(self, values: Iterable[Any]) -> tuple[Any, ...]:
        """Return the arguments, with other values for the leaves of the differentiated ones."""
        following = iter(values)
        return tuple(
            [
                mapped(lambda _: next(following), a) if i in self.argnums else a
                for i, a in enumerate(self.args)
            ]
        )

    def built(self, outs: Iterable[Any]) -> Any:
        following = iter(outs)
        return mapped(lambda _: next(following), self.output)

    def run(self, values: Iterable[Any]) -> tuple[Any, ...]:
        self.output = self.f_raw(*self.filled(map(value, values)), **self.kwargs)
        return tuple(
            [
                np.asarray(x) if isinstance(x, (bool, int, float, complex, np.generic)) else x
                for x in leaves(self.output)
            ]
        )

    def known(self, saved: Sequence[Any], level: int = 0) -> tuple[Any, tuple[Any, ...]]:
        """Return output and arguments from saved values, without their layer of that level."""
        values = [_scalar(plain(x.array if level and level_of(x) == level else x)) for x in saved]
        n = len(self.given)
        return self.built(values[n:]), self.filled(values[:n])

    def lists(self, grads: Iterable[Any]) -> list[Any]:
        """Return the gradients of the arguments, leaf by leaf."""
        grads_of_leaves: list[Any] = []
        for i, g in zip(self.argnums, grads, strict=True):
            g = conjugate(g.dense() if isinstance(g, SparseObject) else g)
            grads_of_leaves += [_array(b) for b in leaves(mapped(lambda _, b: b, self.args[i], g))]
        return grads_of_leaves


class Primitive(Function):
    """The Function of multigrad that carries out a primitive."""

    @staticmethod
    def forward(call: Call, *values: Any) -> tuple[Any, ...]:
        return call.run(values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.call = inputs[0]
        saved = (*inputs[1:], *output)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> tuple[Any, ...]:
        call: Call = ctx.call
        maker = primitive_vjps.get(call.function)
        if maker is None:
            raise NotImplementedError(
                f"VJP of {get_name(call.function)} wrt argnums {call.argnums} not defined"
            )
        # a pass that is not recorded needs no history
        ans, args = call.known(
            ctx.saved_tensors, 0 if mg.is_grad_enabled() else max(map(level_of, gs))
        )
        g = call.built([_scalar(plain(conjugate(x))) for x in gs])
        return None, *call.lists(maker(call.argnums, ans, args, call.kwargs)(g))

    @staticmethod
    def jvp(ctx: Any, _: Any, *gs: Any) -> tuple[Any, ...]:
        call: Call = ctx.call
        rule = primitive_jvps.get(call.function)
        if rule is None:
            raise NotImplementedError(
                f"JVP of {get_name(call.function)} wrt argnums {call.argnums} not defined"
            )
        ans, args = call.known(ctx.saved_tensors)
        flags = call.filled(ctx.needs_input_grad[1:])
        moving = [i for i in call.argnums if any(leaves(flags[i]))]
        tangents = call.filled([_scalar(plain(g)) for g in gs])
        moved = rule(tuple(moving), [tangents[i] for i in moving], ans, args, call.kwargs)
        moved = moved.dense() if isinstance(moved, SparseObject) else moved
        return tuple([_array(x) for x in leaves(mapped(lambda _, t: t, call.output, moved))])


def _scalar(x: Any) -> Any:
    return x[()] if type(x) is np.ndarray and not x.ndim else x


def _array(x: Any) -> Any:
    return x if x is None or is_box(x) else np.asarray(x)


# -- reverse mode


def defvjp_argnums(fun: Any, vjpmaker: Callback) -> None:
    """Define the VJP of a primitive for several arguments at once.

    `vjpmaker(argnums, ans, args, kwargs)` returns a function from g to the gradients of these
    arguments.
    """
    primitive_vjps[fun] = vjpmaker


def defvjp_argnum(fun: Any, vjpmaker: Callback) -> None:
    """Define the VJP of a primitive for one argument at a time.

    `vjpmaker(argnum, ans, args, kwargs)` returns a function from g to the gradient of that
    argument.
    """

    def of_several(argnums: Sequence[int], *known: Any) -> Callback:
        vjps = [vjpmaker(i, *known) for i in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, of_several)


def defvjp(fun: Any, *vjpmakers: Callback | None, argnums: Iterable[int] | None = None) -> None:
    """Define the VJP of a primitive, by one function per argument.

    `vjpmaker(ans, *args, **kwargs)(g)` is the argument's gradient; None means zero.

    argnums  the positions of the arguments that the functions are for, in order
    """
    by_position = _by_position(fun, vjpmakers, argnums, "VJP")

    def of_one(argnum: int, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callback:
        if argnum not in by_position:
            raise NotImplementedError(f"VJP of {get_name(fun)} wrt argnum {argnum} not defined")
        maker = by_position[argnum]
        return (
            (lambda g: vspace(args[argnum]).zeros())
            if maker is None
            else maker(ans, *args, **kwargs)
        )

    defvjp_argnum(fun, of_one)


def _by_position(
    fun: Any, given: Sequence[Any], argnums: Iterable[int] | None, kind: str
) -> dict[int, Any]:
    for f in given:
        if f is not None and not callable(f) and not (kind == "JVP" and f == "same"):
            raise TypeError(f"Bad {kind} '{f}' for '{get_name(fun)}'")
    return dict(zip(count() if argnums is None else argnums, given, strict=False))


# -- forward mode


def defjvp_argnums(fun: Any, jvpmaker: Callback) -> None:
    """Define the JVP of a primitive for several arguments at once.

    `jvpmaker(argnums, gs, ans, args, kwargs)` returns the tangent of the output.
    """
    primitive_jvps[fun] = jvpmaker


def defjvp_argnum(fun: Any, jvpmaker: Callback) -> None:
    """Define the JVP of a primitive for one argument at a time.

    `jvpmaker(argnum, g, ans, args, kwargs)` returns the contribution of that argument's tangent g.
    """

    def of_several(argnums: Sequence[int], gs: Sequence[Any], *known: Any) -> Any:
        return sum_outgrads([jvpmaker(i, g, *known) for i, g in zip(argnums, gs, strict=True)])

    defjvp_argnums(fun, of_several)


def defjvp(fun: Any, *jvpfuns: Callback | str | None, argnums: Iterable[int] | None = None) -> None:
    """Define the JVP of a primitive, by one function per argument.

    `jvpfun(g, ans, *args, **kwargs)` is the contribution of the argument's tangent. None means
    zero. "same" means the primitive itself with g in place of the argument, in which it is linear.
    """
    by_position = _by_position(fun, jvpfuns, argnums, "JVP")

    def of_one(argnum: int, g: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if argnum not in by_position:
            raise NotImplementedError(f"JVP of {get_name(fun)} wrt argnum {argnum} not defined")
        rule = by_position[argnum]
        if rule is None:
            return vspace(ans).zeros()
        return (
            fun(*subval(args, argnum, g), **kwargs)
            if rule == "same"
            else rule(g, ans, *args, **kwargs)
        )

    defjvp_argnum(fun, of_one)


def def_linear(fun: Any) -> None:
    """Declare that a primitive is linear in each of its arguments."""
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: fun(*subval(args, argnum, g), **kwargs))


def sum_outgrads(gs: Iterable[Any]) -> Any:
    """Return the sum of vectors of one space."""
    dense = [g.dense() if isinstance(g, SparseObject) else g for g in gs]
    return reduce(lambda a, b: vspace(a).add(a, b), dense)


# -- deprecated names


def primitive_with_deprecation_warnings(f_raw: Callback) -> Callback:
    """Make a primitive with the deprecated methods `defgrad`, `defvjp` and `defvjp_is_zero`."""
    wrapped = primitive(f_raw)
    makers: dict[int, Callback | None] = {}

    def define(name: str, argnum: int, maker: Callback | None) -> None:
        warnings.warn(
            f"The {name} method is deprecated; use defvjp of multigrad_autograd.extend",
            DeprecationWarning,
            stacklevel=3,
        )
        makers[argnum] = maker
        defvjp(wrapped, *makers.values(), argnums=tuple(makers))

    def of_unstaged(vjp: Callback, argnum: int) -> Callback:
        return lambda ans, *args, **kwargs: (
            lambda g: vjp(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)
        )

    def zero(argnums: Iterable[int] = (0,)) -> None:
        for i in argnums:
            define("defvjp_is_zero", i, None)

    wrapped.defgrad = lambda maker, argnum=0: define("defgrad", argnum, maker)  # type: ignore[attr-defined]
    wrapped.defvjp = lambda vjp, argnum=0: define("defvjp", argnum, of_unstaged(vjp, argnum))  # type: ignore[attr-defined]
    wrapped.defvjp_is_zero = zero  # type: ignore[attr-defined]
    return wrapped
