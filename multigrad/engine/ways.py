"""Straight code for what the first test of a generated function does not serve: operands of any level and dtype, lists, keys, layers.

`way(*values)` of an operation finds the operand of the highest level, and calls the ending for its class: of Tensors, which records a node;
of Duals, which computes a tangent; of Batched arrays. Ways and endings are generated when they are first needed. They decline what is rare,
which `dispatch.general` does, and what is wrong, of which it tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_
from typing import Any

from ..registry import OPS, Op, per_operation
from . import element, generated, plans
from .computed import mark
from .dispatch import backend_rules, record, shows
from .element import SCALARS, named_dtype
from .graph import Node, tick
from .level import Layer, mode
from .pullback import pullback_of
from .rules import is_flat, recorder
from .tensor import Data, Tensor, View

declined: Any = object()
"""What a way returns where the general path is to run the operation."""

Ending = Callable[..., Any]

makers: dict[type, Callable[[Op], Ending | None]] = {}
"""By the class of the operand of the highest level: what writes the ending of an operation, None where the general path is as good."""


def inner_function(op: Op) -> Callable[..., Any]:
    """`inner_function` of fast.py, which puts itself in this place."""
    raise NotImplementedError


class Way:
    """The way of an operation, written when it is first taken. It is the key of the endings among the plans of an Element."""

    __slots__ = ("call", "op")
    call: Callable[..., Any]

    def __init__(self, op: Op) -> None:
        self.op = op
        self.call = self._first

    def _first(self, *values: Any) -> Any:
        self.call = _written(self.op, self)
        return self.call(*values)


@per_operation
def way_of(op: Op) -> Way:
    """The way of an operation, one for all of its functions."""
    return Way(op)


def _decline(*_: Any) -> Any:
    return declined


def _ending(way: Way, top: Layer) -> Ending:
    """The ending for operands of which `top` is the highest, from now on among the plans of its Element."""
    op = way.op
    maker = makers.get(type(top))
    if maker is None or not plans.open_() or OPS.get(op.name) is not op:
        return _decline
    found = maker(op) or _decline
    plans.note(op, top._elem, way, found)
    return found


# ----- Classify -----


def _written(op: Op, way: Way) -> Callable[..., Any]:
    scope = {"_kinds": element.by_type, "_known": makers, "_Layer": Layer, "_declined": declined, "_key": way, "_ending": _ending,
             "_scalars": SCALARS}
    generated.run("\n".join(_way_lines(op)), f"multigrad way of {op.name}", scope)
    found: Callable[..., Any] = scope["way"]
    return found


def _way_lines(op: Op) -> Iterator[str]:
    names = ", ".join(op.roles)
    yield f"def way({names}):"
    yield "    _l = -1"
    for name, role in op.roles.items():
        if role == "array":
            yield from _seen(name, "    ", numbers=op.kind != "multilinear")  # of which the operator @ takes none
        elif role == "arrays":
            yield f"    for _x in {name} or ():"
            yield from _seen("_x", "        ")
        else:
            yield from _plain_lines(name)
    yield "    if _l < 0:"
    yield "        return _declined"
    yield "    _f = _top._elem.plans.get(_key)"
    yield "    if _f is None:"
    yield "        _f = _ending(_key, _top)"
    yield f"    return _f(_top, {names})"


def _seen(x: str, pad: str, numbers: bool = True) -> Iterator[str]:
    """Compare the level of an operand with the highest so far. `numbers`: it may be a Python scalar."""
    yield f"{pad}_k = type({x})"
    yield f"{pad}if _k in _known:"
    yield f"{pad}    if {x}._elem.level > _l:"
    yield f"{pad}        _top = {x}"
    yield f"{pad}        _l = {x}._elem.level"
    yield f"{pad}elif _k not in _kinds{'' if numbers else ' or _k in _scalars'}:"
    yield f"{pad}    return _declined"


def _plain_lines(name: str) -> Iterator[str]:
    """A parameter that is no array. In an indexing key there may be arrays; anywhere else the general path says what is wrong with them."""
    pad = "    "
    yield f"{pad}_k = type({name})"
    yield f"{pad}if _k is tuple or _k is list:"
    yield f"{pad}    for _x in {name}:"
    if name == "key":
        yield from _seen("_x", pad + "        ")
        yield f"{pad}        if _k is tuple or _k is list:"
        yield f"{pad}            return _declined"
        yield f"{pad}elif _k in _known:"
        yield f"{pad}    if {name}._elem.level > _l:"
        yield f"{pad}        _top = {name}"
        yield f"{pad}        _l = {name}._elem.level"
    else:
        yield f"{pad}        if isinstance(_x, _Layer):"
        yield f"{pad}            return _declined"
        yield f"{pad}    {name} = tuple({name})"  # a list may be changed by its owner, and not every library takes one
        yield f"{pad}elif isinstance({name}, list):"
        yield f"{pad}    return _declined"
    yield f"{pad}elif isinstance({name}, _Layer):"
    yield f"{pad}    return _declined"


# ----- The ending of Tensors -----


@per_operation
def _of_tensors(op: Op) -> Ending | None:
    """Write the ending that records: operands apart, the call one layer further in, a Tensor, a node."""
    if op.kind == "composite":
        return None
    single = op.outputs == ()
    scope = {
        "_Tensor": Tensor, "_View": View, "_Data": Data, "_Node": Node, "_Layer": Layer, "_new": object.__new__, "_op": op, "_tick": tick,
        "_kinds": element.by_type, "_known": makers, "_mode": mode.get, "_declined": declined, "_record": record, "_shows": shows,
        "_inner": inner_function(op), "_named_dtype": named_dtype, "_scalars": SCALARS, "_rules": {}, "_rule_of": _rule_of, "_is": is_, "_mark": mark,
    }
    generated.run("\n".join(_tensor_lines(op, single)), f"multigrad Tensors in {op.name}", scope)
    found: Ending = scope["ending"]
    return found


def _tensor_lines(op: Op, single: bool) -> Iterator[str]:
    names = list(op.roles)
    yield f"def ending(_top, {', '.join(names)}):"
    yield "    _e = _top._elem"
    yield "    _host = _e.host"
    yield "    _l = _e.level"
    yield "    _deep = False"
    locals_ = {n: (f"_a{i}", f"_n{i}", f"_c{i}") for i, n in enumerate(names)}
    for name, role in op.roles.items():
        value, node, cell = locals_[name]
        optional = op.signature.parameters[name].default is None
        if role == "array":
            yield from _operand(name, value, node, cell, optional, "    ")
        elif role == "arrays":
            yield from _operands(name, value, node, cell, optional)
        elif name == "key":
            yield from _key_lines(name, value, cell)
        else:
            yield from _setting(name, value)
    values = "(" + "".join(f"{n}, " for n in names) + ")"
    inner = "(" + "".join(f"{locals_[n][0]}, " for n in names) + ")"
    nodes = "(" + "".join((f"{locals_[n][1]}, " if op.roles[n] != "plain" else "None, ") for n in names) + ")"
    cells = "(" + "".join((f"{locals_[n][2]}, " if op.roles[n] != "plain" or n == "key" else "None, ") for n in names) + ")"
    yield f"    _fn = _inner if _deep else _host.xp.{op.name}"
    yield f"    _y = {_call_text(op, {n: v[0] for n, v in locals_.items()})}"
    generally = f"return _record(_op, {inner}, {nodes}, {cells}, _y, _top, {values})"
    if not single or (op.view and not callable(op.view)):
        yield f"    {generally}"
        return
    if op.view:
        yield f"    if _shows(_op, {values}):"
        yield f"        {generally}"
    arrays = [n for n, role in op.roles.items() if role == "array"]
    same = "".join(f" or _y is {locals_[n][0]}" for n in arrays)
    yield "    _k = type(_y)"
    yield f"    if (_k not in _known and _kinds.get(_k) is not _host){same}:"
    yield f"        {generally}"
    yield "    _t = _new(_Tensor)"
    yield "    _t._array = _y"
    yield "    _t._elem = _q = _e if _deep is _e.layered and _y.dtype == _e.dtype else _e.beside(_y)"
    yield "    if _q.opaque:"
    yield f"        {generally}"
    yield "    _t._cell = _c = []"
    if op.kind == "nondifferentiable":
        yield "    _t._node = None"
        yield "    return _t"
        return
    ruled = [n for n in names if op.roles[n] != "plain"]
    anything = " or ".join(f"any({locals_[n][1]})" if op.roles[n] == "arrays" else f"{locals_[n][1]} is not None" for n in ruled)
    yield f"    if not ({anything}):"
    yield "        _t._node = None"
    yield "        return _t"
    yield "    _r = _mode()"
    yield "    if _r is not True:"
    yield "        _r = _r.at(_e.run, _e.level)"
    yield "        if not _r:"
    yield "            _t._node = None"
    yield "            return _t" + ("" if is_flat(op) else " if _r is False and _e.run is None or not _q.floating else _mark(_t)")
    yield "    if not _q.floating:"
    yield "        _t._node = None"
    yield "        return _t"
    needs = "".join((f"tuple([_x is not None for _x in {locals_[n][1]}]), " if op.roles[n] == "arrays" else f"{locals_[n][1]} is not None, ")
                    for n in ruled)
    yield f"    _needs = ({needs})"
    yield "    _w = _rules.get((_needs, _q.complex, _host))"
    yield "    if _w is None:"
    yield "        _w = _rules[_needs, _q.complex, _host] = _rule_of(_op, _needs, _q)"
    yield "    _rule, _save, _track = _w"
    yield "    _t._node = _m = _new(_Node)"
    yield "    _m.seq = _tick()"
    yield "    _m.rule = _rule"
    yield f"    _m.saved = _save({inner}, _y, _t, _host)"
    yield f"    _m.cells = _track({cells}, (_c,))"
    if len(ruled) == 1 and op.roles[ruled[0]] == "array":
        yield f"    _m.next = {locals_[ruled[0]][1]}"
    else:
        flat = ", ".join(f"*{locals_[n][1]}" if op.roles[n] == "arrays" else locals_[n][1] for n in ruled)
        yield f"    _next = [_x for _x in ({flat},) if _x is not None]"
        yield "    _m.next = _next[0] if len(_next) == 1 else tuple(_next)"
    yield "    if _r is not True:"
    yield f"        _r.recorded(_m, {values}, _t)"
    yield "    return _t"


def _rule_of(op: Op, needs: Any, elem: element.Element) -> tuple[Any, Any, Any]:
    """The pullback for these wanted gradients and a result of `elem`, and what picks the values and the version cells that it keeps."""
    host = elem.host
    overrides = host.backend.rules.get(op.name)
    rule = pullback_of(op, needs, elem.complex, True, host, None if overrides is None else backend_rules(op, host))
    return (rule, *recorder(rule))


def _operand(x: str, value: str, node: str, cell: str, optional: bool, pad: str) -> Iterator[str]:
    """Take an operand apart: its value one layer further in, its node at this level, its version cell."""
    yield f"{pad}_k = type({x})"
    yield f"{pad}if _k is _Tensor or _k is _View or _k is _Data:"
    yield f"{pad}    if {x}._born is not None:"
    yield f"{pad}        {x}._check()"
    yield f"{pad}    _q = {x}._elem"
    yield f"{pad}    {cell} = {x}._cell"
    yield f"{pad}    if _q.level == _l:"
    yield f"{pad}        {value} = {x}._array"
    yield f"{pad}        {node} = {x}._node"
    yield f"{pad}        if _q.layered:"
    yield f"{pad}            _deep = True"
    yield f"{pad}    else:"
    yield f"{pad}        {node} = None"
    yield f"{pad}        if _q.run is None and {x}._node is None:"
    yield f"{pad}            {value} = {x}._array"
    yield f"{pad}        else:"
    yield f"{pad}            {value} = {x}"
    yield f"{pad}            _deep = True"
    yield f"{pad}    if _q.host is not _host:"
    yield f"{pad}        return _declined"
    yield f"{pad}elif _kinds.get(_k) is _host or _k in _scalars{f' or {x} is None' if optional else ''}:"
    yield f"{pad}    {value} = {x}"
    yield f"{pad}    {node} = {cell} = None"
    yield f"{pad}elif _k in _known and {x}._elem.host is _host:"
    yield f"{pad}    {value} = {x}"
    yield f"{pad}    {node} = None"
    yield f"{pad}    {cell} = {x}._cell"
    yield f"{pad}    _deep = True"
    yield f"{pad}else:"
    yield f"{pad}    return _declined"


def _operands(xs: str, value: str, node: str, cell: str, optional: bool) -> Iterator[str]:
    """The same of a list of arrays."""
    yield f"    if {xs} is None:"
    yield "        return _declined"
    yield f"    {value}, {node}, {cell} = [], [], []"
    yield f"    for _x in {xs}:"
    yield from _operand("_x", "_v", "_n", "_c", False, "        ")
    yield f"        {value}.append(_v)"
    yield f"        {node}.append(_n)"
    yield f"        {cell}.append(_c)"
    yield f"    {value}, {node}, {cell} = tuple({value}), tuple({node}), tuple({cell})"


def _key_lines(key: str, value: str, cell: str) -> Iterator[str]:
    """An indexing key: what arrays it has are constants."""
    yield f"    if type({key}) is tuple:"
    yield f"        {value}, {cell} = [], []"
    yield f"        for _x in {key}:"
    yield from _entry("_x", "_v", "_c", "            ")
    yield f"            {value}.append(_v)"
    yield f"            {cell}.append(_c)"
    yield f"        {value}, {cell} = tuple({value}), tuple({cell})"
    yield f"        if all(map(_is, {value}, {key})):"
    yield f"            {value} = {key}"
    yield "    else:"
    yield from _entry(key, value, cell, "        ")


def _entry(x: str, value: str, cell: str, pad: str) -> Iterator[str]:
    yield f"{pad}_k = type({x})"
    yield f"{pad}if _k not in _known:"
    yield f"{pad}    if _k is list:"
    yield f"{pad}        return _declined"
    yield f"{pad}    {value} = {x}"
    yield f"{pad}    {cell} = None"
    yield f"{pad}elif _k is _Tensor or _k is _View or _k is _Data:"
    yield f"{pad}    _q = {x}._elem"
    yield f"{pad}    {x}._check()"
    yield f"{pad}    {cell} = {x}._cell"
    yield f"{pad}    if _q.host is not _host:"
    yield f"{pad}        return _declined"
    yield f"{pad}    if _q.level == _l:"
    yield f"{pad}        {value} = {x}._array"
    yield f"{pad}        _deep = _deep or _q.layered"
    yield f"{pad}    elif _q.run is None and {x}._node is None:"
    yield f"{pad}        {value} = {x}._array"
    yield f"{pad}    else:"
    yield f"{pad}        {value} = {x}"
    yield f"{pad}        _deep = True"
    yield f"{pad}else:"
    yield f"{pad}    return _declined"


def _setting(name: str, value: str) -> Iterator[str]:
    """A parameter that is no array."""
    yield f"    {value} = " + (f"_named_dtype(_host, {name}) if type({name}) is str else {name}" if name == "dtype" else name)


def _call_text(op: Op, local: dict[str, str]) -> str:
    parts = []
    for p in op.signature.parameters.values():
        text = local[p.name]
        parts.append(f"*{text}" if p.kind is p.VAR_POSITIONAL else f"{p.name}={text}" if p.kind is p.KEYWORD_ONLY else text)
    return f"_fn({', '.join(parts)})"


makers |= dict.fromkeys((Tensor, View, Data), _of_tensors)
