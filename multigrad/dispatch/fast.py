"""The functions of operations, generated from one template.

They classify the operands, call the library, wrap the result and record it. Each function has the
signature of the standard. Its straight code handles Tensors of one Element, at any level, and
beside them raw arrays of that dtype, Python scalars, and constants of the base level. Other
operands are handled by the generated code of `ways.py`, which is written when it is first needed.
Rare cases are handled by `dispatch.general`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from keyword import iskeyword
from types import FunctionType
from typing import Any, NamedTuple

from .. import observe
from ..core import element
from ..core.computed import mark
from ..core.element import truth_of
from ..core.graph import Node, tick
from ..core.level import Layer
from ..core.pullback import Needs
from ..core.tensor import Tensor, View, lifted
from ..observe import gate
from ..provided import provide
from ..registry import OPS, Op, Rule, keeping
from ..tracebacks import shown
from . import checking, generated, ways, wider
from .codegen import is_flat
from .endings import call_text, tuple_text
from .explaining import failed
from .general import arrays_of, composed, general, operate, resolve_composite
from .names import Texts, meanings
from .plans import CHOICES, PAIRS, conforms, learn
from .pullbacks import pullback
from .residuals import residuals
from .settings import kinds


class Operand(NamedTuple):
    """An array parameter in generated code: its name, and the names of its local variables.

    They hold its value, its node, its version cell, its Python scalar.
    """

    name: str
    value: str
    node: str
    cell: str
    scalar: str


_functions: dict[Op, Callable[..., Any]] = {}


def function_of(op: Op) -> Callable[..., Any]:
    """The differentiable function of an operation, one for all backends."""
    compiled = _functions.get(op)
    if compiled is None:
        compiled = make_function(op)
        with keeping:
            # another thread may have replaced it in the meantime
            if op.name in OPS and OPS[op.name] is op:
                compiled = _functions.setdefault(op, compiled)
    return compiled


def forget(op: Op) -> None:
    """Drop the function of a former declaration."""
    with keeping:
        for known in [known for known in list(_functions) if known.name == op.name]:
            _functions.pop(known, None)


def make_function(
    op: Op,
    name: str = "",
    reflected: bool = False,
    method: bool = False,
    operator: bool = False,
    key_is_plain: bool = False,
) -> Callable[..., Any]:
    """Write the function of an operation.

    Its local variables begin with an underscore, which parameters must not.

    method        for a class of array objects: all parameters but the array may be passed by name,
                  as in NumPy's `x.astype(dtype=float)`
    reflected     with its two arguments exchanged, for `__radd__` and the like
    operator      for Python's operators: returns NotImplemented for an operand that is not an
                  array, so that the operand's own method is called
    key_is_plain  the key consists of integers and slices
    """
    name = name or op.name.rpartition(".")[2]
    called = f"{name}_" if iskeyword(name) else name
    lines = [*_function_lines(op, called, reflected, method, key_is_plain)]
    if checking.CHECKED:
        lines += [f"def _generated({', '.join(op.roles)}):", _GATE, *_carried_out(op, key_is_plain)]
    text = "\n".join(lines)
    scope: dict[str, Any] = {
        "_Tensor": Tensor,
        "_View": View,
        "_Node": Node,
        "_new": object.__new__,
        "_op": op,
        "_tick": tick,
        "_truth": truth_of,
        "_kinds": element.operands,
        "_general": operate if operator else general,
        "_gate": gate.get,
        "_mark": mark,
        "_arrays_of": arrays_of,
        "_declined": ways.declined,
        "_way": ways.way_of(op),
        "_learn": partial(learn, inner_function),
        "_observed": observe.operation,
        "_order": _order(op, reflected),
        "_as_numpy": wider.as_numpy,
        "_unexpected": wider.unexpected,
        "_failed": failed,
        "_checked": checking.checked,
        "__tracebackhide__": shown,
    }
    scope |= {f"_residual_{n}": f.fn for n, f in residuals(op).items()}
    scope |= {
        f"_default_{p.name}": p.default
        for p in op.signature.parameters.values()
        if p.default is not p.empty
    }
    if op.kind == "composite":
        scope |= {
            "_Layer": Layer,
            "_table": OPS,
            "_form": resolve_composite(op),
            "_composed": composed,
            "_lifted": lifted,
        }
    generated.run(text, f"multigrad {op.name}", scope)
    function: Any = scope.pop(called)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = generated.documentation(op)
    function.__module__ = "multigrad"
    if not reflected and not operator:
        function.__signature__ = wider.own_signature(function) if method else op.signature
    scope["_told"] = True
    scope["_inner"] = FunctionType(
        function.__code__, scope | {"_told": False}, function.__name__, function.__defaults__
    )
    scope["_inner"].__kwdefaults__ = function.__kwdefaults__
    made: Callable[..., Any] = function
    return made


def inner_function(op: Op) -> Callable[..., Any]:
    """The function of an operation for the next inner values.

    It does not notify observers, since they were notified at the call.
    """
    inner: Callable[..., Any] = function_of(op).__globals__["_inner"]
    return inner


provide(ways, inner_function=inner_function)


def _order(op: Op, reflected: bool) -> tuple[str, ...]:
    """The names of the positional parameters for observers."""
    names = list(op.roles)
    return (names[1], names[0], *names[2:]) if reflected else tuple(names)


def _function_lines(
    op: Op, name: str, reflected: bool, method: bool, key_is_plain: bool
) -> Iterator[str]:
    yield f"def {name}({parameters_text(op, reflected, method)}):"
    yield "    try:"
    yield from (f"    {line}" for line in _body_lines(op, reflected, key_is_plain))
    yield "    except Exception as _x:"
    yield (
        f"        _y = _failed(_x, _op, {tuple_text(op.roles)})  # MULTIGRAD_TRACEBACK=full shows "
        "the frames inside"
    )
    yield "        if _y is not None:"
    yield "            raise _y from _x"
    yield "        raise"


def _body_lines(op: Op, reflected: bool, key_is_plain: bool) -> Iterator[str]:
    names = list(op.roles)
    yield from wider.lines(op)
    yield _GATE
    yield "    if _r is not True and _told and _r.operations:"
    yield f"        return _observed(_r, _op, _order, _inner, {_arguments(op, reflected)})"
    # from here on all sequences are tuples or lists
    for p in op.signature.parameters.values():
        if op.roles[p.name] == "arrays" and p.kind is not p.VAR_POSITIONAL:
            yield f"    if type({p.name}) is not tuple and type({p.name}) is not list:"
            yield f"        {p.name} = _arrays_of(_op, {p.name!r}, {p.name})"
    if "key" in names and not key_is_plain:
        yield "    if type(key) is not tuple and isinstance(key, tuple):"
        yield "        key = tuple(key)"
    if checking.CHECKED:
        yield f"    return _checked(_op, _generated, _general, {tuple_text(op.roles)})"
    else:
        yield from _carried_out(op, key_is_plain)


_GATE = "    _r = _gate()"


def _carried_out(op: Op, key_is_plain: bool) -> Iterator[str]:
    """The lines after observers were notified, and after the gate was read."""
    if op.kind == "composite":
        yield from _composite_lines(op)
        return
    if _is_straight(op, key_is_plain):
        yield from _straight_lines(op)
    yield f"    _t = _way.call({', '.join(op.roles)})"
    yield f"    return _t if _t is not _declined else _general(_op, {tuple_text(op.roles)})"


def _composite_lines(op: Op) -> Iterator[str]:
    """The body of a composite, which runs its form in the namespace of its first array.

    This applies while the declaration is that of the table. The form gets no raw arrays beside
    layers, because the operators of some libraries do not defer.
    """
    first = next((name for name, role in op.roles.items() if role == "array"), None)
    if first is not None and "arrays" not in op.roles.values():
        known = f"isinstance({first}, _Layer) and _table.get({op.name!r}) is _op"
        parameters = op.signature.parameters
        usual = "".join(
            f" and {n} is not None"
            for n, role in op.roles.items()
            if role == "array" and n != first and parameters[n].default is not None
        )
        yield f"    if {known}{_usual(op)}{usual}:"
        given = [
            name
            if role == "plain" or name == first
            else f"{name} if {name} is None or isinstance({name}, _Layer) else _lifted({name})"
            for name, role in op.roles.items()
        ]
        yield f"        _t = _form({', '.join([f'{first}._elem.library.bound', *given])})"
        yield "        return _t if isinstance(_t, _Layer) else _composed(_op, _t)"
    yield f"    return _general(_op, {tuple_text(op.roles)})"


def _is_straight(op: Op, key_is_plain: bool) -> bool:
    """Whether there is straight code for an operation."""
    arrays = op.arrays
    parameters = op.signature.parameters
    first = list(op.roles)[: len(arrays)] == list(arrays) and all(
        parameters[a].default is inspect.Parameter.empty for a in arrays
    )
    # An indexing key may contain Tensors at any place, and whether the output is a view may depend
    # on the arguments. The general ways handle both. `key_is_plain` promises that the key consists
    # of integers and slices.
    hidden = (callable(op.view) or "key" in op.roles) and not key_is_plain
    if not first or op.outputs != () or "arrays" in op.roles.values() or hidden:
        return False
    if "dtype" in parameters and parameters["dtype"].default is not None:
        return False
    return len(arrays) == 1 or (len(arrays) == 2 and not op.view) or _chooses(op)


POSITIONAL: Mapping[str, tuple[str, ...]] = {
    "diff": ("n", "axis"),
    "linalg.tensordot": ("axes",),
    "tensordot": ("axes",),
}
"""Keyword-only parameters of the standard that functions accept by position, too.

They are in NumPy's order, as in array libraries.
"""


def _also_positional(op: Op) -> tuple[str, ...]:
    """The keyword-only parameters that the function of an operation accepts by position, too.

    For operations that are not in POSITIONAL, it is the axis, if that comes first.
    """
    first = next((n for n, p in op.signature.parameters.items() if p.kind is p.KEYWORD_ONLY), "")
    return POSITIONAL.get(op.name, ("axis",) if first == "axis" else ())


def parameters_text(op: Op, reflected: bool, method: bool) -> str:
    """The parameters of a function of an operation, as its source has them."""
    kinds = inspect._ParameterKind
    parts: list[str] = []
    parameters = list(op.signature.parameters.values())
    if reflected:
        parameters[0], parameters[1] = parameters[1], parameters[0]
    last: Any = None
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    free = () if starred else _also_positional(op)
    parameters.sort(
        key=lambda p: (
            0
            if p.kind is not p.KEYWORD_ONLY
            else 1 + free.index(p.name)
            if p.name in free
            else 1 + len(free)
        )
    )
    for p in parameters:
        if last is kinds.POSITIONAL_ONLY and (method or p.kind is not kinds.POSITIONAL_ONLY):
            parts.append("/")
        if p.kind is kinds.KEYWORD_ONLY and not starred and p.name not in free:
            starred = True
            parts.append("*")
        text = f"*{p.name}" if p.kind is kinds.VAR_POSITIONAL else p.name
        omitted = p.name in wider.OMITTED.get(op.name, ())
        parts.append(
            f"{text}=None"
            if omitted
            else text
            if p.default is p.empty
            else f"{text}=_default_{p.name}"
        )
        last = p.kind if last is None or not method else kinds.KEYWORD_ONLY
    if last is kinds.POSITIONAL_ONLY:
        parts.append("/")
    return ", ".join(parts + ["**_more"] * wider.takes_more(op))


def _arguments(op: Op, reflected: bool) -> str:
    """The arguments of a function, as the text `args, kwargs`."""
    parameters = op.signature.parameters
    by_name = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    given = [
        f"*{n}" if parameters[n].kind is inspect.Parameter.VAR_POSITIONAL else n
        for n in _order(op, reflected)
        if n not in by_name
    ]
    return f"{tuple_text(given)}, {{{', '.join(f'{n!r}: {n}' for n in by_name)}}}"


# ----- Classify -----


def _chooses(op: Op) -> bool:
    """Whether `op` is like `where`: it saves only the first of three arrays, which has no rule."""
    if (
        len(op.roles) != 3
        or len(op.arrays) != 3
        or isinstance(op.vjp, Rule)
        or op.view
        or set(op.vjp) != set(op.arrays[1:])
    ):
        return False
    kept = {name for needs in CHOICES for name in pullback(op, needs, False, True).plan}
    return kept <= {op.arrays[0]} | {
        f"{x}_{what}" for x in op.arrays[1:] for what in ("shape", "dtype")
    }


def _straight_lines(op: Op) -> Iterator[str]:
    operands = [Operand(x, f"_a{i}", f"_n{i}", f"_c{i}", f"_s{i}") for i, x in enumerate(op.arrays)]
    if len(operands) == 1:
        yield from _one(op, operands[0])
    elif len(operands) == 2:
        yield from _two(op, *operands)
    else:
        yield from _choice(op, *operands)
    yield "    if _p:"
    yield from _body(op, operands)
    yield "    if _p is None:"
    yield f"        return _learn(_op, _e, _general(_op, {tuple_text(op.roles)}))"


def _plain(x: str) -> str:
    """The test for a Tensor, or a view whose memory was not written since."""
    return (
        f"type({x}) is _Tensor or type({x}) is _View and "
        f"({x}._cell[-1] if {x}._cell else 0) == {x}._seen"
    )


def _fetch(op: Op, x: Operand, pad: str) -> Iterator[str]:
    """Take a Tensor apart."""
    yield f"{pad}{x.value} = {x.name}._array"
    if op.kind != "nondifferentiable":
        yield f"{pad}{x.node} = {x.name}._node"
    yield from _further(op, x, f"{x.name}._cell", x.value, "None", pad)


def _as_constant(op: Op, x: Operand, scalar: str, pad: str) -> Iterator[str]:
    """Take apart an operand without a history."""
    if op.kind != "nondifferentiable":
        yield f"{pad}{x.node} = None"
    yield from _further(op, x, "()", scalar or x.value, scalar or "None", pad)


def _further(op: Op, x: Operand, cell: str, given: str, scalar: str, pad: str) -> Iterator[str]:
    """The version cell of an operand, and its Python scalar, if they are used."""
    names = _taken(op)
    if x.name in names and not op.view:
        yield f"{pad}{x.cell} = {cell}"
    if f"{x.name}_scalar" in names:
        yield f"{pad}{x.scalar} = {scalar}"
    if op.name == "pow":  # its rule inspects the scalar
        yield f"{pad}{x.value}_given = {given}"


def _taken(op: Op) -> set[str]:
    """The names that the rules of an operation take."""
    rules = (op.vjp,) if isinstance(op.vjp, Rule) else op.vjp.values()
    return {name for rule in rules for name in rule.keeps}


def _one(op: Op, x: Operand) -> Iterator[str]:
    known = kinds(op)
    guard = _usual(op) + "".join(
        f" and type({p.name}) is not _Tensor"
        for p in op.signature.parameters.values()
        if op.roles[p.name] == "plain" and p.kind is not p.KEYWORD_ONLY and op.name != "getitem"
        if p.name not in known
    )
    # A view and a node keep their arguments, which must not change, and some libraries do not
    # accept lists.
    guard += "".join(
        f" and not isinstance({n}, list)"
        for n, role in op.roles.items()
        if role == "plain" and n not in ("key", "dtype", "correction", *known)
    )
    guard += " and dtype is None" if "dtype" in op.roles else ""
    if op.view == "layout":
        guard += " and copy is None"
    yield f"    if ({_plain(x.name)}){guard}:"
    yield f"        _e = {x.name}._elem"
    yield "        _p = _e.plans.get(_op)"
    yield from _fetch(op, x, "        ")
    # memory in row-major order certainly gives a view; the general path tests other memory
    if op.view == "layout":
        yield (
            f"        if _p and (not _p.library.is_c_contiguous(_p.xp, {x.value}) or "
            f"type({x.name}) is _View and not _p.library.mutable):"
        )
        yield "            _p = False"
    yield "    else:"
    yield "        _p = False"


def _usual(op: Op) -> str:
    """The tests that the settings of an operation have their usual types."""
    return "".join(f" and {kind.usual.format(n=n)}" for n, kind in kinds(op).items())


def _two(op: Op, x1: Operand, x2: Operand) -> Iterator[str]:
    guard = _usual(op) + (" and dtype is None" if "dtype" in op.roles else "")
    for x, y, word in ((x1, x2, "if"), (x2, x1, "elif")):
        yield f"    {word} ({_plain(x.name)}){guard}:"
        yield f"        _e = {x.name}._elem"
        yield "        _p = _e.plans.get(_op)"
        yield from _fetch(op, x, "        ")
        if x is x1:
            yield f"        if {_plain(y.name)}:"
            yield from _meet(op, x, y)
        yield from _beside(op, y, "        ", "if" if x is x2 else "elif")
    yield "    else:"
    yield "        _p = False"


def _meet(op: Op, x1: Operand, x2: Operand) -> Iterator[str]:
    """Two Tensors: of one Element, or one of them a constant of the base level."""
    pad = "            "
    yield f"{pad}if {x2.name}._elem is not _e:"
    yield f"{pad}    if {x2.name}._elem is _e.base and {x2.name}._node is None:"
    yield f"{pad}        if _e.layered:"
    yield f"{pad}            _p = False"
    yield f"{pad}    elif _e is {x2.name}._elem.base and {x1.name}._node is None:"
    yield f"{pad}        _e = {x2.name}._elem"
    yield f"{pad}        _p = not _e.layered and _e.plans.get(_op)"
    yield f"{pad}    else:"
    yield f"{pad}        _p = False"
    yield from _fetch(op, x2, pad)


def _beside(op: Op, x: Operand, pad: str, word: str) -> Iterator[str]:
    """The other operands allowed beside a Tensor.

    They are a Python scalar, and a raw array of its library and dtype.
    """
    if op.kind == "elementwise" or op.operator in ("lt", "le", "gt", "ge", "eq", "ne"):
        yield f"{pad}{word} type({x.name}) is float or type({x.name}) is int:"
        yield f"{pad}    if _p and _p.constant is not None:"
        yield f"{pad}        {x.value} = _p.constant(_p.xp, {x.name}, _e.dtype, None)"
        yield from _as_constant(op, x, x.name, pad + "        ")
        yield f"{pad}    elif _p or not _e.floating:"
        yield f"{pad}        _p = False"
        word = "elif"
    yield f"{pad}{word} _kinds.get(type({x.name})) is _e.library and {x.name}.dtype == _e.dtype:"
    yield f"{pad}    {x.value} = {x.name}"
    yield from _as_constant(op, x, "", pad + "    ")
    yield f"{pad}else:"
    yield f"{pad}    _p = False"


def _choice(op: Op, chosen: Operand, x1: Operand, x2: Operand) -> Iterator[str]:
    c = chosen.name
    yield (
        f"    _e = {x1.name}._elem if {_plain(x1.name)} else {x2.name}._elem if "
        f"{_plain(x2.name)} else None"
    )
    yield f"    if _e is not None and ({_plain(c)}){_usual(op)}:"
    yield f"        _q = {c}._elem"
    yield f"        if type({x2.name}) is _Tensor and _e is {x2.name}._elem.base:"
    yield f"            _e = {x2.name}._elem"
    yield "        _p = _e.plans.get(_op)"
    yield "        if not _q.bool or _q.library is not _e.library \\"
    yield "                or (_q.layered and not _e.layered) \\"
    yield "                or (_q.run is None and _e.layered) \\"
    yield (
        f"                or (_q.level != _e.level and (_q.run is not None or {c}._node is "
        "not None)):"
    )
    yield "            _p = False"
    yield f"        {chosen.value} = {c}._array"
    yield from _further(op, chosen, f"{c}._cell", chosen.value, "None", "        ")
    for x in (x1, x2):
        yield (
            f"        if ({_plain(x.name)}) and ({x.name}._elem is _e or {x.name}._elem is "
            f"_e.base and {x.name}._node is None):"
        )
        yield from _fetch(op, x, "            ")
        yield f"            if _e.layered and {x.name}._elem is not _e:"
        yield "                _p = False"
        yield f"        elif (type({x.name}) is float or type({x.name}) is int) and _e.floating:"
        yield f"            {x.value} = {x.name}"
        yield from _as_constant(op, x, "", "            ")
        kind = f"_kinds.get(type({x.name}))"
        yield f"        elif {kind} is _e.library and {x.name}.dtype == _e.dtype:"
        yield f"            {x.value} = {x.name}"
        yield from _as_constant(op, x, "", "            ")
        yield "        else:"
        yield "            _p = False"
    yield "    else:"
    yield "        _p = False"


# ----- Call, wrap, record -----


def _body(op: Op, operands: Sequence[Operand]) -> Iterator[str]:
    pad = "        "
    given = "_given" if op.name == "pow" else ""
    if not op.view:  # a view shares the version cell
        yield from _looked(op, pad)
    yield f"{pad}_y = {call_text(op, '_p.fn', {x.name: x.value + given for x in operands})}"
    # a function that is not the library's may sometimes return its argument: a view, which the
    # other way detects
    own = op.forward is None and op.module.startswith("multigrad.")
    if not op.view and not own:
        yield f"{pad}if {' or '.join(f'_y is {x.value}' for x in operands)}:"
        yield f"{pad}    return _general(_op, {tuple_text(op.roles)})"
    yield from _wrap(op, operands[0], pad)
    if op.kind == "nondifferentiable":
        yield f"{pad}_t._node = None"
        yield f"{pad}return _t"
        return
    ruled = operands[-2:]
    yield f"{pad}if {' and '.join(f'{x.node} is None' for x in ruled)}:"
    yield f"{pad}    _t._node = None"
    yield f"{pad}    return _t"
    off = "" if is_flat(op) else " if _r is False and _e.run is None else _mark(_t)"
    if op.view:  # the view's code has read the gate
        yield f"{pad}if not _r:"
        yield f"{pad}    _t._node = None"
        yield f"{pad}    return _t{off}"
    else:
        yield from _ask(pad)
        yield f"{pad}    if not _r:"
        yield f"{pad}        _t._node = None"
        yield f"{pad}        return _t{off}"
    yield f"{pad}_t._node = _m = _new(_Node)"
    yield f"{pad}_m.seq = _tick()"
    if len(operands) == 1:
        yield from _node(op, (True,), pad, "_p.r1", operands)
    elif len(operands) == 3:
        yield from _patterns(op, operands, CHOICES, "b", pad)
    elif conforms(op):
        yield from _patterns(op, operands, PAIRS, "b", pad)
    else:
        yield from _patterns(op, operands, PAIRS, "r", pad)


def _patterns(
    op: Op, operands: Sequence[Operand], needs: Sequence[Needs], rules: str, pad: str
) -> Iterator[str]:
    """Make a node for each pattern of wanted gradients.

    Elementwise functions of equal shapes need not sum their gradients over axes.
    """
    x1, x2 = operands[-2:]
    same = {x.name: f"_y.shape == {x.value}.shape" for x in (x1, x2)}
    tests = (f"if {x2.node} is None:", f"elif {x1.node} is None:", "else:")
    equal = (same[x1.name], same[x2.name], f"{x1.value}.shape == {x2.value}.shape")
    for pattern, number, test, shapes in zip(needs, ("1", "2", "12"), tests, equal, strict=True):
        yield f"{pad}{test}"
        if rules == "r":
            yield f"{pad}    if {shapes}:"
            yield from _node(
                op, pattern, pad + "        ", f"_p.r{number}", operands, conform=False
            )
            yield f"{pad}    else:"
            yield from _node(op, pattern, pad + "        ", f"_p.b{number}", operands, conform=True)
        else:
            yield from _node(op, pattern, pad + "    ", f"_p.b{number}", operands, conform=True)
    yield from _told(op, pad)


def _wrap(op: Op, x: Operand, pad: str) -> Iterator[str]:
    yield f"{pad}_t = _new(_{'View' if op.view else 'Tensor'})"
    yield f"{pad}_t._array = _y"
    yield f"{pad}_t._elem = _e" + (
        " if _p.same else _e.truth or _truth(_e)" if op.kind == "nondifferentiable" else ""
    )
    if op.view:
        yield f"{pad}_t._cell = _c = {x.name}._cell"
        yield f"{pad}_t._seen = _c[-1] if _c else 0"
        yield from _ask(pad)
        yield (
            f"{pad}_t._view = ({x.name}, _op, {tuple_text(list(op.roles)[1:])}, None, not not _r)"
        )
    else:
        yield f"{pad}_t._cell = _c = []"


def _ask(pad: str) -> Iterator[str]:
    """Write the test whether the level records, by the gate that was read at the beginning.

    The result in `_r` may be a Mode, whose observers are then notified.
    """
    yield f"{pad}if _r is not True:"
    yield (
        f"{pad}    _r = (_r if _r.tells else _r.base) if _e.run is None else _r.at(_e.run, "
        "_e.level)"
    )


def _looked(op: Op, pad: str) -> Iterator[str]:
    """Report constants of a run that are used: a checkpoint runs the function again with them."""
    yield f"{pad}if _r is not True and _e.run is not None:"
    yield f"{pad}    _r.looked({tuple_text(op.roles)})"


def _told(op: Op, pad: str) -> Iterator[str]:
    yield f"{pad}if _r is not True:"
    yield f"{pad}    _r.recorded(_m, {tuple_text(op.roles)}, _t)"
    yield f"{pad}return _t"


def _node(
    op: Op, needs: Needs, pad: str, rule: str, operands: Sequence[Operand], conform: bool = False
) -> Iterator[str]:
    """Fill in the node of the result."""
    wanted = [x.node for x, need in zip(operands, needs, strict=True) if need]
    plan = pullback(op, needs, False, conform or conforms(op))
    texts = _Straight(op, operands)
    saved = "".join(f"{texts.text(name)}, " for name in plan.plan)
    cells = [
        texts.cell(name)
        for name, source in zip(plan.plan, plan.sources, strict=True)
        if source is not None
    ]
    yield f"{pad}_m.rule = {rule}"
    yield f"{pad}_m.saved = ({saved})"
    yield (
        f"{pad}_m.cells = "
        f"{'None' if not cells else cells[0] if len(cells) == 1 else '(' + ', '.join(cells) + ')'}"
    )
    yield f"{pad}_m.next = {wanted[0] if len(wanted) == 1 else '(' + ', '.join(wanted) + ')'}"
    if len(operands) == 1:
        yield from _told(op, pad)


class _Straight(Texts):
    """The expressions for names in straight code, where all operands are of one Element."""

    def __init__(self, op: Op, operands: Sequence[Operand]) -> None:
        values = {x.name: x.value for x in operands}
        super().__init__(op, {"xp": "_p.xp"}, values, "_y", "_residual_{name}({taken})")
        self.operands = {x.name: x for x in operands}

    def metadata(self, name: str, what: str) -> str:
        x = self.operands[name]
        if what in ("device", "order"):
            return f"_p.library.{what}(_p.xp, {x.value})"
        return {"scalar": x.scalar, "dtype": "_e.dtype", "shape": f"{x.value}.shape"}[what]

    def cell(self, name: str) -> str:
        """The version cell of an array that a node saves."""
        kind = meanings(self.op)[name].kind
        if kind == "residual":
            return "()"
        if kind == "result" or self.op.view:  # a view shares the cell of its operand
            return "_c"
        return self.operands[name].cell
