"""Functions made from the declaration of an operation: its saved values, its jvp, its call.

pullbacks.py makes its vjp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from ..core.element import SCALARS, Library
from ..core.level import innermost
from ..core.pullback import Needs, Pullback
from ..errors import MissingRuleError
from ..registry import Op, Rule, per_operation, signature_text
from . import generated
from .conform import conform_tangent, shape_tangent
from .generated import tuple_text
from .names import Texts, compute_while_recording, info, meanings, metadata, value
from .pullbacks import missing_rule, pullback


@per_operation
def positions(op: Op) -> dict[str, int]:
    """The position of each parameter."""
    return {p: i for i, p in enumerate(op.roles)}


@per_operation
def array_index(op: Op) -> dict[str, int]:
    """The position of each array parameter among all parameters."""
    return {p: i for i, (p, role) in enumerate(op.roles.items()) if role != "plain"}


def of_arrays(op: Op, values: Sequence[Any]) -> list[Any]:
    """Those of the values of all parameters that belong to array parameters."""
    return [values[i] for i in array_index(op).values()]


def leaves(values: Iterable[Any]) -> Iterator[Any]:
    """All values, and in place of tuples their elements."""
    for x in values:
        yield from x if isinstance(x, tuple) else (x,)


@per_operation
def is_flat(op: Op) -> bool:
    """Whether the derivative is zero everywhere by declaration, as that of `floor`."""
    return (
        op.kind == "elementwise"
        and not isinstance(op.vjp, Rule)
        and all(not callable(r.fn) and r.fn == 0 for r in op.vjp.values())
    )


@per_operation
def recorder(rule: Pullback) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Write the functions that select the values that a pullback saves.

    save   `save(v, ans, like, library)` returns the saved values, given the argument values `v` and
           the output. A Python scalar becomes a 0-d array of the dtype and device of the Tensor
           `like` if its parameter has a rule, or if the operation is elementwise
    track  `track(c, t)` returns the version cells of saved arrays, from those of the arguments,
           `c`, and of the outputs, `t`
    """
    op = rule.op
    wanted = [a for a, need in zip(op.arrays, rule.needs, strict=True) if need is True]
    texts = Texts(
        op,
        context={"xp": "library"},
        values={a: f"v[{i}]" for a, i in positions(op).items()},
        ans="ans",
        computed="residual(op, {name!r}, {taken})",
        certain=wanted,  # others may be scalars, or None
    )
    saved, cells = [], []
    for name, source in zip(rule.plan, rule.sources, strict=True):
        m, text = meanings(op)[name], texts.text(name)
        numeric = op.roles.get(name) == "array" and (
            op.kind == "elementwise" or isinstance(op.vjp, Rule) or name in op.vjp
        )
        saved.append(
            f"({text} if type({text}) not in scalars else constant(library, {text}, like))"
            if numeric
            else text
        )
        if source is None:
            continue
        if m.kind == "argument":
            cells.append(f"c[{m.index}]")
        elif m.kind == "residual":  # there are no other references to it
            cells.append("None")
        else:
            several = m.index is None and op.outputs != ()
            cells.append("t" if several else f"t[{m.index or 0}]")
    # index arrays in a key
    cells += [f"c[{meanings(op)[n].index}]" for n in rule.plan if op.roles.get(n) == "plain"]
    scope: dict[str, Any] = {
        "scalars": SCALARS,
        "_metadata": metadata,
        "_info": info,
        "op": op,
        "residual": compute_while_recording,
        "constant": constant_like,
    }
    generated.run(
        f"def save(v, ans, like, library): return {saved[0] if rule.alone else tuple_text(saved)}\n"
        f"def track(c, t): return {tuple_text(cells)}",
        f"multigrad what {op.name} keeps",
        scope,
    )
    return scope["save"], scope["track"]


def constant_like(library: Library, scalar: Any, like: Any) -> Any:
    """A Python scalar as a 0-d array of the dtype and device of an array or a layer."""
    return library.constant(
        library.xp, scalar, like.dtype, library.device(library.xp, innermost(like))
    )


def vjp(op: Op, xp: Any, values: Sequence[Any], ans: Any, g: Any, needs: Needs) -> tuple[Any, ...]:
    """The gradients of `op` at `values`, one per array parameter (a tuple for a list).

    A gradient that is not needed is None. `ans` is the output (a tuple for several), `g` its
    cotangent (likewise). Each gradient has the shape and dtype of its argument.
    """
    first = ans if op.outputs == () else next(a for a in ans if a is not None)
    complex_ = bool(xp.isdtype(first.dtype, "complex floating"))
    rule = pullback(op, needs, complex_, True)
    context = {"xp": xp}
    grads = rule.vjp(xp, g, rule.together([value(op, n, context, values, ans) for n in rule.plan]))
    flat = iter((grads,) if rule.single else grads)
    return tuple(
        tuple(next(flat) if n else None for n in need)
        if isinstance(need, tuple)
        else next(flat)
        if need
        else None
        for need in needs
    )


def jvp(
    op: Op,
    xp: Any,
    values: Sequence[Any],
    tangents: Sequence[Any],
    ans: Any,
    raw: tuple[Any, Sequence[Any], Any] | None = None,
) -> Any:
    """The tangent of the output(s) of `op` at `values`, given one tangent per array parameter.

    A tangent of None is zero. The rule is derived for elementwise, linear and multilinear
    operations, and declared for the others.

    raw  namespace, values and output without layers, for the case that only tangents are layers.
         Partial derivatives are computed from these, which is faster
    """
    if op.jvp is not None:
        return _written_jvp(op, xp, values, tangents, ans)
    if op.kind == "elementwise":
        return _elementwise_jvp(op, xp, values, tangents, ans, raw)
    if op.kind == "linear":
        return _linear_jvp(op, xp, values, tangents)
    if op.kind == "multilinear":
        terms = [
            call(op, attrgetter(op.name)(xp), [*values[:i], t, *values[i + 1 :]])
            for i, t in zip(array_index(op).values(), tangents, strict=True)
            if t is not None
        ]
        return sum(terms[1:], terms[0])
    moving = ", ".join(repr(a) for a, t in zip(op.arrays, tangents, strict=True) if t is not None)
    raise MissingRuleError(
        f"the operation {op.name!r} has no jvp, so it cannot be differentiated in forward mode, "
        f"as it was by {moving}. Declare it with one: "
        f"multigrad.registry.define({signature_text(op)!r}, jvp=rule, ..., override=True)."
    )


def _written_jvp(op: Op, xp: Any, values: Sequence[Any], tangents: Sequence[Any], ans: Any) -> Any:
    rule = op.jvp
    assert rule is not None and callable(rule.fn)
    moved = dict(zip(op.arrays, tangents, strict=True))
    if rule.materialize:  # zeros in place of None; of an integer with the dtype of another tangent
        dtype = next(t.dtype for t in leaves(tangents) if t is not None)
        for argument, i in array_index(op).items():
            first = "t" in rule.takes and argument == op.arrays[0]
            if first or f"t_{argument}" in rule.takes:
                x, t = values[i], moved[argument]
                moved[argument] = (
                    tuple(_filled(xp, *pair, dtype) for pair in zip(x, t or (None,) * len(x)))
                    if op.roles[argument] == "arrays"
                    else _filled(xp, x, t, dtype)
                )
    context = {f"t_{a}": t for a, t in moved.items()} | {"t": moved[op.arrays[0]], "xp": xp}
    return rule.fn(*(value(op, n, context, values, ans) for n in rule.takes))


def _filled(xp: Any, x: Any, t: Any, dtype: Any) -> Any:
    if t is not None:
        return t
    if not hasattr(x, "dtype"):
        return zero(xp, x)
    floating = xp.isdtype(x.dtype, ("real floating", "complex floating"))
    return xp.zeros_like(x, dtype=x.dtype if floating else dtype)


def _elementwise_jvp(
    op: Op,
    xp: Any,
    values: Sequence[Any],
    tangents: Sequence[Any],
    ans: Any,
    raw: tuple[Any, Sequence[Any], Any] | None,
) -> Any:
    assert not isinstance(op.vjp, Rule)
    total = None
    for argument, t in zip(op.arrays, tangents, strict=True):
        if t is None:
            continue
        rule = op.vjp.get(argument) or Rule(missing_rule(op, argument), ("xp", "g"))
        if t.dtype != ans.dtype:
            t = xp.astype(t, ans.dtype)
        if not callable(rule.fn):
            term = (
                t
                if rule.fn == 1
                else -t
                if rule.fn == -1
                else xp.zeros_like(t)
                if rule.fn == 0
                else t * rule.fn
            )
        elif raw is not None and "g" not in rule.takes:
            partial = rule.fn(*(value(op, n, {"xp": raw[0]}, *raw[1:]) for n in rule.takes))
            # an argument itself: as the constant that it was taken from, which has a version cell
            term = t * next(
                (v for x, v in zip(raw[1], values, strict=True) if x is partial), partial
            )
        else:
            context = {"xp": xp, "g": t}
            if "g" in rule.takes and t.shape != ans.shape:
                context["g"] = xp.broadcast_to(t, ans.shape)
            term = rule.fn(*(value(op, n, context, values, ans) for n in rule.takes))
            term = (
                shape_tangent(xp, term, ans.shape, op, argument=argument)
                if "g" in rule.takes
                else t * term
            )
        total = term if total is None else total + term
    return conform_tangent(xp, total, ans, op, term=True)


def _linear_jvp(op: Op, xp: Any, values: Sequence[Any], tangents: Sequence[Any]) -> Any:
    ruled = op.arrays if isinstance(op.vjp, Rule) else op.vjp
    values = list(values)
    position = array_index(op)
    for argument, t in zip(op.arrays, tangents, strict=True):
        i = position[argument]
        if op.roles[argument] == "arrays":
            ts = (None,) * len(values[i]) if t is None else t
            values[i] = type(values[i])(
                zero(xp, v) if u is None else u for v, u in zip(values[i], ts, strict=True)
            )
        elif argument in ruled:
            values[i] = zero(xp, values[i]) if t is None else t
        elif t is not None:
            missing_rule(op, argument)()
    return call(op, attrgetter(op.name)(xp), values)


def zero(xp: Any, x: Any) -> Any:
    """The tangent zero of an array, a Python scalar or None."""
    return xp.zeros_like(x) if hasattr(x, "dtype") else x if x is None else type(x)(0)


def raw_function(library: Library, name: str) -> Callable[..., Any]:
    """The function of a library's raw namespace that carries out the operation `name`."""
    function: Callable[..., Any] = attrgetter(name)(library.xp)
    return function


def call(op: Op, function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Call a function with the values of all parameters, passed as the signature requires."""
    args: list[Any] = []
    named = {}
    for p, x in zip(op.signature.parameters.values(), values, strict=True):
        if p.kind is p.KEYWORD_ONLY:
            named[p.name] = x
        else:
            args += x if p.kind is p.VAR_POSITIONAL else (x,)
    return function(*args, **named)
