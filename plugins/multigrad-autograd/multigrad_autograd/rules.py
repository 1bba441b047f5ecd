"""User-defined derivatives: `primitive`, `defvjp` and `defjvp`, by multigrad.autograd.Function.

A rule sees the same values as in HIPS autograd: raw arrays, or boxes if a derivative of the rule is
taken.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from functools import reduce
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

import multigrad as mg
from multigrad import func
from multigrad.autograd import Function
from multigrad.extend import entry, level_of

from .boxes import as_array, conjugate, has_box, is_box, leaves, level, mapped, plain, value
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
    "replaceable",
    "with_rules",
]

Callback = Callable[..., Any]

_primitives: WeakKeyDictionary[Callback, Callback | None] = WeakKeyDictionary()
"""The functions that take rules.

For a function that does not look for rules when it is called, the value makes it do so.
"""


class _Rules(MutableMapping[Any, Callback]):
    """The rules of one mode, by primitive.

    A rule is an attribute of its primitive, to which it mostly refers: a table of rules would keep
    primitives that are made inside of a function.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._attribute = f"_rule_for_{kind}"
        self._functions: WeakSet[Any] = WeakSet()

    def __getitem__(self, function: Any) -> Callback:
        if function not in self._functions:
            raise KeyError(function)
        rule: Callback = getattr(function, self._attribute)
        return rule

    def __setitem__(self, function: Any, rule: Callback) -> None:
        look_for_rules(function, f"a {self.kind}")
        setattr(function, self._attribute, rule)
        self._functions.add(function)
        _warn_of_other_forms(get_name(function), function.fun)

    def __delitem__(self, function: Any) -> None:
        self._functions.remove(function)
        delattr(function, self._attribute)

    def __contains__(self, function: object) -> bool:
        return function in self._functions

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._functions))

    def __len__(self) -> int:
        return len(self._functions)


def look_for_rules(function: Any, what: str) -> None:
    """Make a function look for rules whenever it is called.

    Raises TypeError if it cannot.
    """
    if function not in _primitives:
        name = get_name(function)
        raise TypeError(
            f"{what} for {name} would never be used: {name} is not a primitive. Make it one, f = "
            f"extend.primitive({name}), and define a rule for f and call f in its place"
        )
    use = _primitives[function]
    if use is not None:
        _primitives[function] = None
        use()


OPERATORS = {
    "absolute": "abs()",
    "add": "+",
    "divide": "/",
    "matmul": "@",
    "multiply": "*",
    "negative": "-",
    "power": "**",
    "remainder": "%",
    "subtract": "-",
}


def _warn_of_other_forms(name: str, f_raw: Callback) -> None:
    """Warn that the same operation by an operator or a method does not look for rules."""
    form = f"the operator {OPERATORS[name]}" if name in OPERATORS else f"the method {name}"
    if getattr(np, name, None) is f_raw and (name in OPERATORS or hasattr(mg.Tensor, name)):
        warnings.warn(
            f"the rule of {name} is used where the function itself is called; {form} of boxes, and "
            f"numpy.{name}, keep multigrad's",
            UserWarning,
            stacklevel=_outside(),
        )


def _outside() -> int:
    """The stacklevel at which a warning of the caller names the code outside this module.

    `defvjp` goes through more functions than `defvjp_argnums`.
    """
    level, frame = 1, sys._getframe(1)
    inside = (__name__, entry.__module__)
    while frame.f_back is not None and frame.f_globals.get("__name__") in inside:
        level, frame = level + 1, frame.f_back
    return level


primitive_vjps = _Rules("VJP")
"""For each primitive `maker(argnums, ans, args, kwargs)`.

It returns a function from a cotangent to those of the arguments.
"""

primitive_jvps = _Rules("JVP")
"""For each primitive `rule(argnums, gs, ans, args, kwargs)`, which returns the output's tangent."""


class VJPNode:
    """The name of reverse mode in `register_notrace`."""


class JVPNode:
    """The name of forward mode in `register_notrace`."""


notrace_primitives: defaultdict[type, WeakSet[Any]] = defaultdict(WeakSet)


@entry
def register_notrace(trace_type: type, primitive_fun: Any) -> None:
    """Make a primitive return plain values, without a derivative.

    This applies to both modes, whichever one is named.
    """
    look_for_rules(primitive_fun, "register_notrace")
    notrace_primitives[trace_type].add(primitive_fun)


@entry
def notrace_primitive(f_raw: Callback) -> Callback:
    """Return a function without a derivative, called on the values of its arguments."""
    _check_function("notrace_primitive", f_raw)

    @wraps(f_raw)
    def on_values(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*map(value, args), **kwargs)

    return on_values


def _check_function(name: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(f"{name}: expected a function, not {type(function).__name__}")


def primitive(f_raw: Callback, otherwise: Callback | None = None) -> Callback:
    """Make a function of raw arrays differentiable by `defvjp` and `defjvp`.

    otherwise  the function to call, also with boxes, while no derivative is defined. It also gives
               the derivative of a mode for which none is defined

    The function is called on raw arrays. A positional argument is differentiated if it is a box, or
    a container with a box.
    """
    _check_function("primitive", f_raw)
    if otherwise is not None:
        _check_function("primitive", otherwise)

    @wraps(f_raw)
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        return _called(f_wrapped, f_raw, otherwise, args, kwargs)

    f_wrapped.fun = f_raw  # type: ignore[attr-defined]
    f_wrapped._is_autograd_primitive = True  # type: ignore[attr-defined]
    _primitives[f_wrapped] = None
    return f_wrapped


def with_rules(function: Callback) -> Callback:
    """Let rules of users replace the derivative of a function that takes boxes."""
    return primitive(function, otherwise=function)


def replaceable(
    function: Callback, f_raw: Callback, copied: Callable[[], Callback], use: Callable[[Any], None]
) -> Callback:
    """Let rules of users replace the derivative of a function that has one of its own.

    The function does not look for rules until there is one, so that it loses no time.

    f_raw   the function of raw arrays
    copied  returns the same function once more, which keeps its own derivative
    use     called at the first rule, with the function that looks for rules: the function must call
            that from then on
    """

    def looking() -> None:
        own = copied()
        use(lambda *args, **kwargs: _called(function, f_raw, own, args, kwargs))

    function.fun = f_raw  # type: ignore[attr-defined]
    function._is_autograd_primitive = True  # type: ignore[attr-defined]
    _primitives[function] = looking
    return function


def _called(
    function: Callback,
    f_raw: Callback,
    otherwise: Callback | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a primitive."""
    if not any(map(has_box, args)):
        named = otherwise is not None and any(map(has_box, kwargs.values()))
        return (otherwise if named and otherwise is not None else f_raw)(*args, **kwargs)
    given = tuple([mapped(plain, a) for a in args])
    if any(function in known for known in notrace_primitives.values()):
        return f_raw(*map(value, given), **kwargs)
    argnums = tuple([i for i, a in enumerate(given) if has_box(a)])
    if not argnums or (function not in primitive_vjps and function not in primitive_jvps):
        if otherwise is not None:
            return otherwise(*args, **kwargs)
        if not argnums:
            return f_raw(*given, **kwargs)
    for name, x in kwargs.items():
        if has_box(x) and level(mapped(plain, x)) >= level(given):
            raise TypeError(
                f"{get_name(function)}: the keyword argument {name!r} needs a derivative, which "
                "only positional arguments have; pass it by position"
            )
    call = Call(function, f_raw, otherwise, given, kwargs, argnums)
    return call.built(Primitive.apply(call, *call.given))


class Call:
    """A call of a primitive.

    given     the leaves of the differentiated arguments
    vjp, jvp  the rules that the primitive had at the call, or None
    output    the structure of the function's result, known after the call
    """

    def __init__(
        self,
        function: Callback,
        f_raw: Callback,
        otherwise: Callback | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: tuple[int, ...],
    ) -> None:
        self.function, self.f_raw, self.otherwise, self.args, self.kwargs, self.argnums = (
            function,
            f_raw,
            otherwise,
            args,
            kwargs,
            argnums,
        )
        self.vjp, self.jvp = primitive_vjps.get(function), primitive_jvps.get(function)
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
        values = [_scalar(plain(_inside(x, level))) for x in saved]
        n = len(self.given)
        return self.built(values[n:]), self.filled(values[:n])

    def own(self, saved: Sequence[Any], level: int = 0) -> tuple[list[int], list[Any], Callback]:
        """Return what `otherwise` is differentiated by, and that function of it.

        These are the leaves that are boxes: their positions and their values.
        """
        values = [_inside(x, level) for x in saved[: len(self.given)]]
        at = [i for i, x in enumerate(self.given) if is_box(x)]

        def function(*moving: Any) -> tuple[Any, ...]:
            whole = list(values)
            for i, x in zip(at, moving, strict=True):
                whole[i] = x
            assert self.otherwise is not None
            return tuple(map(_array, leaves(self.otherwise(*self.filled(whole), **self.kwargs))))

        return at, [values[i] for i in at], function

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
        # a pass that is not recorded needs no history
        level = 0 if mg.is_grad_enabled() else max(map(level_of, gs))
        if call.vjp is None:
            if call.otherwise is None:
                raise NotImplementedError(
                    f"VJP of {get_name(call.function)} wrt argnums {call.argnums} not defined"
                )
            at, values, function = call.own(ctx.saved_tensors, level)
            grads: list[Any] = [None] * len(call.given)
            for i, grad in zip(at, func.vjp(function, *values)[1](gs), strict=True):
                grads[i] = grad
            return None, *grads
        ans, args = call.known(ctx.saved_tensors, level)
        g = call.built([_scalar(plain(conjugate(x))) for x in gs])
        return None, *call.lists(call.vjp(call.argnums, ans, args, call.kwargs)(g))

    @staticmethod
    def jvp(ctx: Any, _: Any, *gs: Any) -> tuple[Any, ...]:
        call: Call = ctx.call
        if call.jvp is None:
            if call.otherwise is None:
                raise NotImplementedError(
                    f"JVP of {get_name(call.function)} wrt argnums {call.argnums} not defined"
                )
            at, values, function = call.own(ctx.saved_tensors)
            return tuple(func.jvp(function, tuple(values), tuple([gs[i] for i in at]))[1])
        ans, args = call.known(ctx.saved_tensors)
        flags = call.filled(ctx.needs_input_grad[1:])
        moving = [i for i in call.argnums if any(leaves(flags[i]))]
        tangents = call.filled([_scalar(plain(g)) for g in gs])
        moved = call.jvp(tuple(moving), [tangents[i] for i in moving], ans, args, call.kwargs)
        moved = moved.dense() if isinstance(moved, SparseObject) else moved
        return tuple([_array(x) for x in leaves(mapped(lambda _, t: t, call.output, moved))])


def _inside(x: Any, level: int) -> Any:
    return x.array if level and level_of(x) == level else x


def _scalar(x: Any) -> Any:
    return x[()] if type(x) is np.ndarray and not x.ndim else x


def _array(x: Any) -> Any:
    return x if x is None or is_box(x) else as_array(x)


# -- reverse mode


@entry
def defvjp_argnums(fun: Any, vjpmaker: Callback) -> None:
    """Define the VJP of a primitive for several arguments at once.

    `vjpmaker(argnums, ans, args, kwargs)` returns a function from g to the gradients of these
    arguments.
    """
    primitive_vjps[fun] = vjpmaker


@entry
def defvjp_argnum(fun: Any, vjpmaker: Callback) -> None:
    """Define the VJP of a primitive for one argument at a time.

    `vjpmaker(argnum, ans, args, kwargs)` returns a function from g to the gradient of that
    argument.
    """

    def of_several(argnums: Sequence[int], *known: Any) -> Callback:
        vjps = [vjpmaker(i, *known) for i in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, of_several)


@entry
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


@entry
def defjvp_argnums(fun: Any, jvpmaker: Callback) -> None:
    """Define the JVP of a primitive for several arguments at once.

    `jvpmaker(argnums, gs, ans, args, kwargs)` returns the tangent of the output.
    """
    primitive_jvps[fun] = jvpmaker


@entry
def defjvp_argnum(fun: Any, jvpmaker: Callback) -> None:
    """Define the JVP of a primitive for one argument at a time.

    `jvpmaker(argnum, g, ans, args, kwargs)` returns the contribution of that argument's tangent g.
    """

    def of_several(argnums: Sequence[int], gs: Sequence[Any], *known: Any) -> Any:
        return sum_outgrads([jvpmaker(i, g, *known) for i, g in zip(argnums, gs, strict=True)])

    defjvp_argnums(fun, of_several)


@entry
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


@entry
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
