"""The pullback (vjp) of an operation, written from its declaration.

Work that is the same for every rule happens here and not in rules: conjugating a holomorphic
partial derivative if the dtype is complex, summing a gradient to the shape of a broadcast argument,
taking the real part for a real argument, and casting to the argument's dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..core.graph import expose
from ..core.pullback import Needs, Pullback, apart, is_alone
from ..errors import GradientError, MissingRuleError
from ..registry import Op, Rule, checked_rule, per_operation, signature_text
from . import generated
from .conform import conform_gradient
from .explaining import failed_rule
from .names import meanings

if TYPE_CHECKING:
    from ..core.element import Library


@per_operation
def pullback(
    op: Op, needs: Needs, complex_: bool, conform: bool, library: Library | None = None
) -> Pullback:
    """Write the vjp of `op` for the arguments in `needs`.

    complex_  whether the result is complex
    library   that of the arrays, if this is the rule of nodes. Its backend may have its own rules
    """
    source = _Source()
    rules = op.vjp if library is None else _rules(op, library)
    if isinstance(rules, Rule):
        lines = _joint_lines(op, rules, needs, source)
    else:
        lines = _separate_lines(op, rules, needs, complex_, source)
    if conform:
        lines = [line._replace(text=_conformed(op, line, source)) for line in lines]
    single = len(lines) == 1 and not lines[0].indexes
    parts = [f"*[{x.text} for _i in {x.indexes}]" if x.indexes else x.text for x in lines]
    body = parts[0] if single else f"({', '.join(parts)},)"
    head = "".join(f"        {line}\n" for line in source.head)
    arguments = ", ".join(f"{n!r}: {n}" for n in ("g", *source.plan))
    sources = _sources(op, needs, source.plan)
    alone = is_alone(op, sources)
    taken = f"    {', '.join(source.plan)}, = _saved\n" if source.plan and not alone else ""
    text = (
        f"def vjp(xp, g, {source.plan[0] if alone else '_saved'}):\n{taken}"
        "    try:\n"
        f"{head}        return {body}\n"
        "    except Exception as error:\n"
        f"        _failed(error, {source.name(op)}, {{{arguments}}})\n"
        "        raise\n"
    )
    expose((*op.arrays, *source.plan))

    def make() -> Callable[..., Any]:
        generated.run(text, f"pullback of {op.name}", source.scope)
        vjp: Callable[..., Any] = source.scope["vjp"]
        kernel = None if library is None else library.backend.kernels.get("rule")
        if library is None or kernel is None:
            return vjp
        compiled = kernel(
            library.xp, op.name, lambda xp, g, *saved: vjp(xp, g, saved[0] if alone else saved)
        )
        return lambda xp, g, saved: compiled(xp, g, *apart(saved))

    return Pullback(op, needs, make, tuple(source.plan), single, sources, library)


def _rules(op: Op, library: Library) -> Any:
    """The rules of `op`, including those that the backend overrides."""
    overrides = library.backend.rules.get(op.name)
    if not overrides:
        return op.vjp
    rules = {"": op.vjp} if isinstance(op.vjp, Rule) else dict(op.vjp)
    materialize = all(rule.materialize for rule in rules.values())
    return rules | {
        a: replace(
            checked_rule(
                op.name,
                a,
                fn,
                op.roles,
                op.outputs,
                kind="partial" if op.kind == "elementwise" else "vjp",
            ),
            materialize=materialize,
        )
        for a, fn in overrides.items()
    }


def _sources(op: Op, needs: Needs, plan: Sequence[str]) -> tuple[Any, ...]:
    number = count()
    inputs = {
        a: tuple([("in", next(number) if n else None) for n in need])
        if isinstance(need, tuple)
        else ("in", next(number) if need else None)
        for a, need in zip(op.arrays, needs, strict=True)
    }

    def source(name: str) -> Any:
        m = meanings(op)[name]
        if m.kind == "argument":
            return inputs.get(name) or None
        return {"result": ("out", m.index or 0), "residual": ("in", None)}.get(m.kind)

    return tuple(map(source, plan))


def conforms(op: Op) -> bool:
    """Whether gradients must be converted to the shape and dtype of equally shaped arguments.

    The rules of multigrad's own elementwise operations need no conversion; tests check that.
    """
    return op.kind != "elementwise" or not op.builtin


def materialized(xp: Any, g: Any, info: Any) -> Any:
    """A cotangent, or a tuple of them, with zeros for unused outputs.

    `info`: an OutputInfo, or a tuple of these.
    """
    if type(info) is tuple:
        return tuple(materialized(xp, part, of) for part, of in zip(g, info, strict=True))
    return (
        xp.zeros(tuple(info.shape), dtype=info.dtype, device=info.device)
        if g is None and info is not None
        else g
    )


class _Source:
    """The source of a pullback while it is generated.

    plan        the names of the values that the node saves
    scope       the objects that the source refers to, by name
    head        the first lines
    cotangents  the variables of cotangents, by the name of the output's OutputInfo
    """

    def __init__(self) -> None:
        self.plan: list[str] = []
        self.scope: dict[str, Any] = {
            "_conform": conform_gradient,
            "_materialized": materialized,
            "_failed": failed_rule,
        }
        self.head: list[str] = []
        self.cotangents: dict[str, str] = {}

    def use(self, *names: str) -> None:
        self.plan += [n for n in names if n not in self.plan]

    def name(self, value: Any, of: str = "object") -> str:
        key = f"_{of}{len(self.scope)}"
        self.scope[key] = value
        return key

    def constant(self, needs: Needs) -> str:
        """The text of wanted gradients, whose length is that of a list of arrays."""
        long = any(isinstance(need, tuple) and len(need) > LONG for need in (needs, *needs))
        return self.name(needs) if long else repr(needs)

    def cotangent(self, text: str, info: str) -> str:
        """The name of the variable that holds a cotangent, with zeros if an output was not used."""
        self.use(info)
        name = self.cotangents.get(info)
        if name is None:
            name = self.cotangents[info] = self.name(None, "cotangent")
            self.head.append(f"{name} = _materialized(xp, {text}, {info})")
        return name


class _Line(NamedTuple):
    """The text of the gradient of an argument.

    indexes  for all gradients of a long list, the name of their indexes, which `_i` runs through
    """

    argument: str
    text: str
    indexes: str = ""


def _wanted(op: Op, needs: Needs) -> list[tuple[str, Any]]:
    return [
        (a, n)
        for a, n in zip(op.arrays, needs, strict=True)
        if (any(n) if isinstance(n, tuple) else n)
    ]


def _separate_lines(
    op: Op, rules: Any, needs: Needs, complex_: bool, source: _Source
) -> list[_Line]:
    lines = []
    for argument, need in _wanted(op, needs):
        rule = rules.get(argument) or Rule(missing_rule(op, argument), ("xp", "g"))
        if op.kind == "elementwise" or not callable(rule.fn):
            lines.append(_Line(argument, _partial_text(rule, complex_, source)))
        elif isinstance(need, tuple):
            result = source.name(None, "gradients")
            source.use(*rule.keeps)
            source.head.append(f"{result} = {_call(op, rule, source, source.constant(need))}")
            lines += _list_lines(argument, result, need, source)
        else:
            source.use(*rule.keeps)
            lines.append(_Line(argument, _call(op, rule, source, repr(need))))
    return lines


def _list_lines(argument: str, result: str, need: Sequence[bool], source: _Source) -> list[_Line]:
    """The gradients for a list of arrays: a line each, or one line for all of a long list."""
    wanted = range(len(need)) if all(need) else tuple(i for i, n in enumerate(need) if n)
    if len(need) <= LONG:
        return [_Line(f"{argument}[{i}]", f"{result}[{i}]") for i in wanted]
    return [_Line(f"{argument}[_i]", f"{result}[_i]", source.name(wanted))]


LONG = 16
"""The length of a list of arrays from which the code of a pullback is the same for all lengths."""


def _joint_lines(op: Op, rule: Rule, needs: Needs, source: _Source) -> list[_Line]:
    wanted = _wanted(op, needs)
    saved = set(rule.keeps)
    if rule.keep:
        saved = {n for a, _ in wanted for n in rule.keep.get(a, rule.keeps)}
    source.use(*(n for n in rule.keeps if n in saved))
    result = source.name(None, "gradients")
    source.head.append(f"{result} = {_call(op, rule, source, source.constant(needs), saved)}")
    lines = []
    for i, (argument, need) in enumerate(zip(op.arrays, needs, strict=True)):
        if isinstance(need, tuple):
            lines += _list_lines(argument, f"{result}[{i}]", need, source)
        elif need:
            lines.append(_Line(argument, f"{result}[{i}]"))
    return lines


def _call(op: Op, rule: Rule, source: _Source, needs: str, saved: set[str] | None = None) -> str:
    outputs = {f"g_{o}": (f"g[{i}]", f"{o}_info") for i, o in enumerate(op.outputs or ())}
    if op.outputs is None:
        outputs["g"] = "g", "ans_info"
    cotangents = {
        n: source.cotangent(text, info) if rule.materialize else text
        for n, (text, info) in outputs.items()
        if n in rule.takes
    }
    arguments = [
        cotangents.get(n)
        or (
            needs
            if n == "needs"
            else n
            if n in ("xp", "g") or saved is None or n in saved
            else "None"
        )
        for n in rule.takes
    ]
    return f"{source.name(rule.fn)}({', '.join(arguments)})"


def scaled(g: str, number: complex, xp: str, name: Callable[[Any], str]) -> str:
    """The text of a cotangent or tangent times a constant partial derivative."""
    if number in (1, -1):
        return g if number == 1 else f"-{g}"
    return f"{xp}.zeros_like({g})" if number == 0 else f"{g} * {name(number)}"


def called(fn: Any, arguments: Sequence[str], name: Callable[[Any], str]) -> str:
    """The text of a call of a rule, or only of the argument that the rule returns as it is."""
    # other callables may have the code of a function that they do more with
    if type(fn) is FunctionType and fn.__code__.co_argcount == len(arguments):
        for i, text in enumerate(arguments):
            if fn.__code__.co_code == _returning(len(arguments), i):
                return text
    return f"{name(fn)}({', '.join(arguments)})"


@cache
def _returning(count: int, i: int) -> bytes:
    """The code of a function that returns the `i`-th of its parameters."""
    names = [f"x{k}" for k in range(count)]
    function: Any = eval(f"lambda {', '.join(names)}: {names[i]}")
    code: bytes = function.__code__.co_code
    return code


def _partial_text(rule: Rule, complex_: bool, source: _Source) -> str:
    if not callable(rule.fn):
        return scaled("g", rule.fn.conjugate(), "xp", source.name)
    source.use(*rule.keeps)
    conj = complex_ and "g" in rule.takes
    call = called(
        rule.fn, ["xp.conj(g)" if conj and n == "g" else n for n in rule.takes], source.name
    )
    if "g" in rule.takes:
        return f"xp.conj({call})" if complex_ else call
    return f"g * xp.conj({call})" if complex_ else f"g * {call}"


def _conformed(op: Op, line: _Line, source: _Source) -> str:
    name, bracket, index = line.argument.partition("[")
    source.use(f"{name}_shape", f"{name}_dtype")
    of = source.name((op, name if line.indexes else line.argument))
    return (
        f"_conform(xp, {line.text}, {name}_shape{bracket}{index}, {name}_dtype{bracket}{index}, "
        f"g, {of})"
    )


def refuse_none(rule: Any) -> None:
    """Raise if a rule that returned None must not do that; usually a `return` is missing.

    A joint rule may return None for a zero gradient, and so may a rule of an operation with several
    outputs or a list of arrays.
    """
    op = rule.op
    if op.outputs == () and not isinstance(op.vjp, Rule) and "arrays" not in op.roles.values():
        raise GradientError(
            f"a derivative rule of the operation {op.name!r} returned None; it must return the "
            "gradient"
        )


def missing_rule(op: Op, argument: str) -> Callable[..., NoReturn]:
    """Return a rule that raises, and explains how to register the missing one."""

    def raise_missing(*_: Any) -> NoReturn:
        kind = op.kind if op.kind not in ("nondifferentiable", "composite") else "define"
        raise MissingRuleError(
            f"the operation {op.name!r} has no derivative rule for its argument {argument!r}. "
            f"Declare it with one, as in multigrad.registry.{kind}({signature_text(op)!r}, "
            f"{argument}=rule, override=True), or detach the argument."
        )

    return raise_missing
