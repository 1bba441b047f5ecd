"""Straight code for the common case, generated from one template: plain Tensors of one element type.

For every operation a Python function is written with the signature of the standard. If it takes one or two arrays,
the function first tries the hot path: one test per operand, one dictionary lookup, the library's call, one Tensor, one
node. Everything else (broadcasting, mixed dtypes, layers, lists, raw arrays) goes to `dispatch.general`.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from ..registry import METADATA, OPS, Op, Rule
from . import generated, profiling
from .computed import mark
from .dispatch import arrays_of, general, operate
from .element import Element
from .graph import Node, tick
from .level import mode
from .residuals import residuals
from .rules import Needs, Pullback, is_flat, pullback, raw_function
from .tensor import Tensor, View


def conforms(op: Op) -> bool:
    """Whether gradients must be given the shape and dtype of equally shaped arguments of one dtype.

    The rules of our own elementwise operations give them by themselves, which the tests see to.
    """
    return op.kind != "elementwise" or not op.module.startswith("multigrad.")


class Plan:
    """What the hot path of one operation needs for one element type."""

    __slots__ = ("b1", "b2", "b12", "constant", "fn", "host", "out", "r1", "r2", "r12", "xp")

    def __init__(self, op: Op, elem: Element, out: Element) -> None:
        self.host = elem.host
        self.xp = elem.host.xp
        self.fn = raw_function(elem.host, op.name)
        self.out = out
        self.constant = elem.host.backend.kernels.get("constant") if elem.floating else None
        if elem.floating and op.kind != "nondifferentiable":
            def rule(needs: Needs, conform: bool) -> Pullback:
                return pullback(op, needs, out.complex, conform)

            if len(op.arrays) == 3:
                self.b1, self.b2, self.b12 = (rule(needs, True) for needs in CHOICES)
            elif len(op.arrays) == 1:
                self.r1 = rule((True,), conforms(op))
            else:
                if not conforms(op):
                    self.r1, self.r2, self.r12 = rule((True, False), False), rule((False, True), False), rule((True, True), False)
                self.b1, self.b2, self.b12 = rule((True, False), True), rule((False, True), True), rule((True, True), True)


def learn(op: Op, plans: dict[Element, Any], elem: Element, result: Any) -> Any:
    """Note how `op` turns out on `elem`, so that the hot path can take it from now on. Returns `result`.

    Only results of the same dtype, and comparisons: others may depend on a setting of the library (jax_enable_x64).
    """
    if elem.run is not None or _aside is not None or OPS.get(op.name) is not op:  # they are not to be learnt now, or this was held while it was replaced
        return result
    if op.view == "layout" and type(result) is Tensor:  # the next result may be a view
        return result
    usual = type(result) is (View if op.view else Tensor)  # not the argument itself, say
    if usual and op.name not in elem.host.backend.rules:  # which may keep something else
        out = result._elem
        if out is elem or (op.kind == "nondifferentiable" and out.bool):
            _note(plans, elem, Plan(op, elem, out))
            return result
    _note(plans, elem, False)
    return result


def _note(plans: dict[Element, Any], elem: Element, plan: Any) -> None:
    with _learning:
        if _aside is None:
            plans[elem] = plan


_caches: WeakKeyDictionary[Callable[..., Any], dict[Element, Any]] = WeakKeyDictionary()
"""The plans of each generated function, as long as that lives."""
_learning = threading.RLock()
_aside: WeakKeyDictionary[Callable[..., Any], dict[Element, Any]] | None = None
"""The plans while they are set aside, and none is learnt."""


def forget() -> None:
    """Drop all plans (after a backend or an operation was replaced)."""
    global _aside
    with _learning:
        for plans in _caches.values():
            plans.clear()
        _aside = None if _aside is None else WeakKeyDictionary()


def set_aside() -> None:
    """Close the hot path: until `bring_back`, every operation takes the general one."""
    global _aside
    with _learning:
        _aside = WeakKeyDictionary({function: plans.copy() for function, plans in _caches.items()})
        for plans in _caches.values():
            plans.clear()


def bring_back() -> None:
    """Open the hot path again."""
    global _aside
    with _learning:
        for function, before in (_aside or {}).items():
            _caches[function].update(before)
        _aside = None


def make_function(op: Op, name: str = "", reflected: bool = False, method: bool = False, operator: bool = False,
                  key_is_plain: bool = False) -> Callable[..., Any]:
    """Write the function of an operation. Names of its own begin with an underscore, which names of parameters must not.

    reflected  with its two arguments exchanged, for `__radd__` and its kin
    method     `axis` may be given by position, too
    operator   what is no array is left to the other operand: NotImplemented
    """
    text = "\n".join(_function_lines(op, reflected, method, key_is_plain))
    plans: dict[Element, Any] = {}
    scope: dict[str, Any] = {
        "_Tensor": Tensor, "_View": View, "_Node": Node, "_new": object.__new__, "_op": op, "_plans": plans, "_tick": tick, "_learn": learn,
        "_general": operate if operator else general, "_mode": mode.get, "_mark": mark, "_arrays_of": arrays_of,
    }
    scope |= {f"_residual_{n}": f.fn for n, f in residuals(op).items()}
    scope |= {f"_default_{p.name}": p.default for p in op.signature.parameters.values() if p.default is not p.empty}
    generated.run(text, f"multigrad {op.name}", scope)
    function: Callable[..., Any] = scope["function"]
    function.__name__ = function.__qualname__ = name or op.name.rpartition(".")[2]
    function.__doc__ = op.doc or None
    function.__module__ = "multigrad"
    if not reflected and not method and not operator:
        function.__signature__ = op.signature  # type: ignore[attr-defined]
    names = list(op.roles)
    with _learning:
        _caches[function] = plans
    profiling.note(function, op, [names[1], names[0], *names[2:]] if reflected else names)
    return function


def _function_lines(op: Op, reflected: bool, method: bool, key_is_plain: bool) -> Iterator[str]:
    names = list(op.roles)
    yield f"def function({_parameters(op, reflected, method)}):"
    for p in op.signature.parameters.values():  # from here on there are no other sequences than tuples and lists
        if op.roles[p.name] == "arrays" and p.kind is not p.VAR_POSITIONAL:
            yield f"    if type({p.name}) is not tuple and type({p.name}) is not list:"
            yield f"        {p.name} = _arrays_of(_op, {p.name!r}, {p.name})"
    if "key" in names and not key_is_plain:
        yield "    if type(key) is not tuple and isinstance(key, tuple):"
        yield "        key = tuple(key)"
    arrays = op.arrays
    first = names[: len(arrays)] == list(arrays) and all(op.signature.parameters[a].default is inspect.Parameter.empty for a in arrays)
    # An indexing key may hold Tensors anywhere, and whether the output is a view may depend on the arguments: the general path sees
    # to both. `key_is_plain` says that the key is one of integers and slices.
    hidden = (callable(op.view) or "key" in names) and not key_is_plain
    if first and op.outputs == () and op.kind != "composite" and "arrays" not in op.roles.values() and not hidden:
        dtype = op.signature.parameters.get("dtype")
        if dtype is None or dtype.default is None:
            if len(arrays) == 1:
                yield from _unary_lines(op)
            elif len(arrays) == 2 and not op.view:
                yield from _binary_lines(op)
            elif _chooses(op):
                yield from _choice_lines(op)
    yield f"    return _general(_op, ({''.join(f'{n}, ' for n in names)}))"


def _parameters(op: Op, reflected: bool, method: bool) -> str:
    kinds = inspect._ParameterKind
    parts: list[str] = []
    parameters = list(op.signature.parameters.values())
    if reflected:
        parameters[0], parameters[1] = parameters[1], parameters[0]
    last: Any = None
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for p in parameters:
        if last is kinds.POSITIONAL_ONLY and p.kind is not kinds.POSITIONAL_ONLY:
            parts.append("/")
        if p.kind is kinds.KEYWORD_ONLY and not starred and not (method and p.name == "axis"):
            starred = True
            parts.append("*")
        text = f"*{p.name}" if p.kind is kinds.VAR_POSITIONAL else p.name
        parts.append(text if p.default is p.empty else f"{text}=_default_{p.name}")
        last = p.kind
    if last is kinds.POSITIONAL_ONLY:
        parts.append("/")
    return ", ".join(parts)


def _unary_lines(op: Op) -> Iterator[str]:
    x = op.arrays[0]
    call = _call(op, {x: "_a"})
    guard = "".join(f" and type({p.name}) is not _Tensor" for p in op.signature.parameters.values()
                    if op.roles[p.name] == "plain" and p.kind is not p.KEYWORD_ONLY and op.name != "getitem")
    values = f"({''.join(f'{n}, ' for n in op.roles)})"
    if op.view or guard:  # a view and a node remember their arguments, which must not change
        guard += "".join(f" and not isinstance({n}, list)" for n, role in op.roles.items() if role == "plain" and n not in ("key", "copy", "dtype"))
    guard += " and dtype is None" if "dtype" in op.roles else ""
    if op.view == "layout":
        guard += " and copy is None"
    yield f"    if {_plain(x)}{guard}:"
    yield f"        _e = {x}._elem"
    yield "        _p = _plans.get(_e)"
    yield "        if _p:"
    yield f"            _a = {x}._array"
    if op.view == "layout":  # of memory in row-major order it is a view for sure; the general path asks
        yield f"            if not _p.host.dense(_p.xp, _a) or type({x}) is _View and not _p.host.mutable:"
        yield f"                return _general(_op, {values})"
    yield f"            _y = {call}"
    yield from _tensor_lines(op, "            ", x)
    if op.kind == "nondifferentiable":
        yield "            _t._node = None"
        yield "            return _t"
    else:
        yield f"            _n = {x}._node"
        yield from _constant_lines(op, "_n is None", "            ")
        yield from _node_lines(op, (True,), "            ", "_p.r1", "_n", {x: "_a"}, conform=conforms(op))
    yield "        if _p is None:"
    yield f"            return _learn(_op, _plans, _e, _general(_op, {values}))"


def _binary_lines(op: Op) -> Iterator[str]:
    x1, x2 = op.arrays
    values = f"({''.join(f'{n}, ' for n in op.roles)})"
    guard = " and dtype is None" if "dtype" in op.roles else ""
    yield f"    if {_plain(x1)}{guard}:"
    yield f"        _e = {x1}._elem"
    yield f"        if {_plain(x2)}:"
    yield f"            if {x2}._elem is _e:"
    yield "                _p = _plans.get(_e)"
    yield "                if _p:"
    yield f"                    _a = {x1}._array"
    yield f"                    _b = {x2}._array"
    yield f"                    _y = {_call(op, {x1: '_a', x2: '_b'})}"
    yield from _tensor_lines(op, "                    ", x1)
    yield from _record_lines(op, x1, x2, "                    ")
    yield "                elif _p is None:"
    yield f"                    return _learn(_op, _plans, _e, _general(_op, {values}))"
    if op.kind == "elementwise" or op.operator in ("lt", "le", "gt", "ge", "eq", "ne"):
        yield f"        elif type({x2}) is float or type({x2}) is int:"
        rules = "b" if conforms(op) else "r"
        yield from _scalar_lines(op, x1, x2, (True, False), f"_p.{rules}1")
        yield f"    elif {_plain(x2)}{guard} and (type({x1}) is float or type({x1}) is int):"
        yield f"        _e = {x2}._elem"
        yield from _scalar_lines(op, x2, x1, (False, True), f"_p.{rules}2", "        ")


CHOICES: tuple[Needs, ...] = ((False, True, False), (False, False, True), (False, True, True))


def _chooses(op: Op) -> bool:
    """Whether `op` is of the kind of `where`: of its three arrays the first, which has no rule, is all that is kept."""
    if len(op.roles) != 3 or len(op.arrays) != 3 or isinstance(op.vjp, Rule) or op.view or set(op.vjp) != set(op.arrays[1:]):
        return False
    kept = {name for needs in CHOICES for name in pullback(op, needs, False, True).plan}
    return kept <= {op.arrays[0]} | {f"{x}_{what}" for x in op.arrays[1:] for what in ("shape", "dtype")}


def _choice_lines(op: Op) -> Iterator[str]:
    first, x1, x2 = op.arrays
    yield f"    if {_plain(first)} and {first}._elem.bool:"
    yield f"        _e = {x1}._elem if {_plain(x1)} else {x2}._elem if {_plain(x2)} else None"
    yield "        _p = _plans.get(_e)"
    yield f"        if _p and {first}._elem.host is _p.host:"
    for x, value, node in ((x1, "_a", "_n1"), (x2, "_b", "_n2")):
        yield f"            if {_plain(x)} and {x}._elem is _e:"
        yield f"                {value} = {x}._array"
        yield f"                {node} = {x}._node"
        yield f"            elif (type({x}) is float or type({x}) is int) and _e.floating:"
        yield f"                {value} = {x}"
        yield f"                {node} = None"
        yield "            else:"
        yield f"                return _general(_op, ({first}, {x1}, {x2}))"
    pad = "            "
    local = {first: "_c0", x1: "_a", x2: "_b"}
    yield f"{pad}_c0 = {first}._array"
    yield f"{pad}_y = {_call(op, local)}"
    yield from _tensor_lines(op, pad, x1)
    yield from _constant_lines(op, "_n1 is None and _n2 is None", pad)
    yield f"{pad}if _n2 is None:"
    yield from _node_lines(op, CHOICES[0], pad + "    ", "_p.b1", "_n1", local, conform=True)
    yield f"{pad}if _n1 is None:"
    yield from _node_lines(op, CHOICES[1], pad + "    ", "_p.b2", "_n2", local, conform=True)
    yield from _node_lines(op, CHOICES[2], pad, "_p.b12", "(_n1, _n2)", local, conform=True)
    yield "        if _p is None and _e is not None:"
    yield f"            return _learn(_op, _plans, _e, _general(_op, ({first}, {x1}, {x2})))"


def _plain(x: str) -> str:
    """The test for a Tensor of the base level: no subclass but a view of memory that was not written since."""
    return f"(type({x}) is _Tensor or type({x}) is _View and len({x}._cell) == {x}._born)"


def _record_lines(op: Op, x1: str, x2: str, pad: str) -> Iterator[str]:
    """Record a function of two arrays: elementwise ones of equal shapes need not have their gradients summed over axes."""
    if op.kind == "nondifferentiable":
        yield f"{pad}_t._node = None"
        yield f"{pad}return _t"
        return
    local = {x1: "_a", x2: "_b"}
    yield f"{pad}_n1 = {x1}._node"
    yield f"{pad}_n2 = {x2}._node"
    yield from _constant_lines(op, "_n1 is None and _n2 is None", pad)
    for conform in ((True,) if conforms(op) else (False, True)):
        inner = pad
        if not conform:
            yield f"{pad}if _a.shape == _b.shape:"
            inner = pad + "    "
        rules = "b" if conform else "r"
        yield f"{inner}if _n2 is None:"
        yield from _node_lines(op, (True, False), inner + "    ", f"_p.{rules}1", "_n1", local, conform=conform)
        yield f"{inner}if _n1 is None:"
        yield from _node_lines(op, (False, True), inner + "    ", f"_p.{rules}2", "_n2", local, conform=conform)
        yield from _node_lines(op, (True, True), inner, f"_p.{rules}12", "(_n1, _n2)", local, conform=conform)


def _scalar_lines(op: Op, x: str, scalar: str, needs: Needs, rule: str, pad: str = "            ") -> Iterator[str]:
    """One operand is a Python scalar. A cached 0-d array in its place is twice as fast; pow looks at the scalar itself."""
    yield f"{pad}_p = _plans.get(_e)"
    yield f"{pad}if _p and _p.constant is not None:"
    yield f"{pad}    _a = {x}._array"
    yield f"{pad}    _b = _p.constant(_p.xp, {scalar}, _e.dtype, None)"
    forward = {x: "_a", scalar: scalar if op.name == "pow" else "_b"}
    yield f"{pad}    _y = {_call(op, forward)}"
    yield from _tensor_lines(op, pad + "    ", x)
    if op.kind == "nondifferentiable":
        yield f"{pad}    _t._node = None"
        yield f"{pad}    return _t"
    else:
        yield f"{pad}    _n = {x}._node"
        yield from _constant_lines(op, "_n is None", pad + "    ")
        yield from _node_lines(op, needs, pad + "    ", rule, "_n", {x: "_a", scalar: "_b"}, scalar, conforms(op))
    yield f"{pad}if _p is None and _e.floating:"
    yield f"{pad}    return _learn(_op, _plans, _e, _general(_op, ({''.join(f'{n}, ' for n in op.roles)})))"


def _tensor_lines(op: Op, pad: str, x: str) -> Iterator[str]:
    yield f"{pad}_t = _new(_{'View' if op.view else 'Tensor'})"
    yield f"{pad}_t._array = _y"
    yield f"{pad}_t._elem = _p.out"
    if op.view:
        yield f"{pad}_t._cell = _c = {x}._cell"
        yield f"{pad}_t._born = len(_c)"
        yield f"{pad}_t._base = {x}"
        yield from _mode_lines(pad)
        yield f"{pad}_t._how = (_op, ({''.join(f'{n}, ' for n in list(op.roles)[1:])}), None, _r and True)"
    else:
        yield f"{pad}_t._cell = _c = []"


def _constant_lines(op: Op, constants: str, pad: str) -> Iterator[str]:
    """What becomes of the result if its operands are `constants`, or where nothing is recorded. Inside a forward the mode is None."""
    yield f"{pad}if {constants}:"
    yield f"{pad}    _t._node = None"
    yield f"{pad}    return _t"
    if not op.view:
        yield from _mode_lines(pad)
    yield f"{pad}if not _r:"
    yield f"{pad}    _t._node = None"
    yield f"{pad}    return _t" + ("" if is_flat(op) else " if _r is False else _mark(_t)")


def _mode_lines(pad: str) -> Iterator[str]:
    """Ask the gate: whether the base level records, or a Mode whose observers are to be told."""
    yield f"{pad}_r = _mode()"
    yield f"{pad}if _r is not True:"
    yield f"{pad}    _r = _r.base and _r.at(None, 1)"


def _node_lines(op: Op, needs: Needs, pad: str, rule: str, parents: str, local: dict[str, str], scalar: str = "",
                conform: bool = False) -> Iterator[str]:
    plan = pullback(op, needs, False, conform)
    saved = "".join(_saved_text(op, name, local, scalar) + ", " for name in plan.plan)
    cells = [_cell_text(op, name, scalar) for name, source in zip(plan.plan, plan.sources, strict=True) if source is not None]
    if all(c == "()" for c in cells):
        cells = []
    yield f"{pad}_t._node = _m = _new(_Node)"
    yield f"{pad}_m.seq = _tick()"
    yield f"{pad}_m.rule = {rule}"
    yield f"{pad}_m.host = _p.host"
    yield f"{pad}_m.saved = ({saved})"
    yield f"{pad}_m.cells = {'None' if not cells else cells[0] if len(cells) == 1 else '(' + ', '.join(cells) + ')'}"
    yield f"{pad}_m.next = {parents}"
    yield f"{pad}if _r is not True:"
    yield f"{pad}    _r.recorded(_m, ({''.join(f'{n}, ' for n in op.roles)}), _t)"
    yield f"{pad}return _t"


def _saved_text(op: Op, name: str, local: dict[str, str], scalar: str) -> str:
    if name in op.roles:
        return local.get(name, name)
    if name == "ans":
        return "_y"
    f = residuals(op).get(name)
    if f is not None:
        return f"_residual_{name}(_p.xp, {', '.join(_saved_text(op, n, local, scalar) for n in f.takes[1:])})"
    argument, _, what = name.rpartition("_")
    assert what in METADATA, name
    if what == "scalar":
        return argument if argument == scalar else "None"
    array = local[argument]
    if what in ("device", "order"):
        return f"_p.host.{what}(_p.xp, {array})"
    return f"{array}.{what}"


def _cell_text(op: Op, name: str, scalar: str) -> str:
    if name == "ans":
        return "_c"
    return "()" if name == scalar or name in residuals(op) else f"{name}._cell"


def _call(op: Op, local: dict[str, str]) -> str:
    parts = []
    for p in op.signature.parameters.values():
        text = local.get(p.name, p.name)
        parts.append(f"{p.name}={text}" if p.kind is p.KEYWORD_ONLY else text)
    return f"_p.fn({', '.join(parts)})"
