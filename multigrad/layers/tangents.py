"""Straight code for Duals: operands apart, the operation on the primals, its rule on the tangents, a Dual around both.

An operation has two of these endings (see engine/ways.py). One is for primals and tangents that are raw arrays: rules run on these, as in an
ordinary backward pass. The other, written when it is first needed, is for values that may be layers of lower levels: there, rules run on layers
only. What is rare, and what is wrong, goes to `Dual._apply`, by `dispatch.general`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from operator import is_
from typing import Any

from ..engine import element, generated, plans, profiling, ways
from ..engine.element import SCALARS, named_dtype
from ..engine.level import Layer, come_back, go_outside, innermost
from ..engine.pullback import missing_rule
from ..engine.residuals import compute, residuals
from ..engine.rules import _metadata as metadata
from ..engine.rules import _zero as zero
from ..engine.tensor import Data, Tensor, View, strip
from ..engine.ways import Ending
from ..engine.ways import _call_text as call_text
from ..registry import METADATA, Op, Rule, per_operation
from .immutable import tie

Lines = Iterator[str]


def maker(**names: Any) -> Callable[[Op], Ending | None]:
    """Return what writes the endings of Duals. `names`: what the generated code needs of dual.py.

    Dual     the class
    finish   the rest of the general path, after the operation was carried out
    pushed   the tangents of results, by any rule
    conform  a tangent in the shape and the dtype of its result
    lifted   a raw array as a constant, so that a rule sees layers only
    """
    of_duals = {f"_{name}": value for name, value in names.items()}

    @per_operation
    def written(op: Op, deep: bool) -> Ending:
        text = _Text(op, deep)
        lines = "\n".join(text.lines())
        scope = _scope(op) | text.scope | of_duals | {"_deeper": later(lambda top: written(op, True))}
        generated.run(lines, f"multigrad tangents of {op.name}", scope)
        found: Ending = scope["ending"]
        return found

    def noted(op: Op, top: Any) -> Ending:
        found = written(op, top._elem.layered)
        plans.note(op, top._elem, ways.way_of(op), found)
        return found

    def made(op: Op) -> Ending | None:
        lists = "arrays" in op.roles.values()
        if op.kind == "composite" or op.outputs != () or not op.arrays or (lists and op.kind != "linear"):
            return None
        return later(lambda top: noted(op, top))

    return made


PATIENCE = 4
"""How often an operation takes the general path before straight code is written for it, which takes as long as the general path thirty times."""


def later(found: Callable[[Any], Ending]) -> Ending:
    """An ending that lets the general path do the first few calls, and then what `found` gives for the operand of the highest level."""
    count = 0

    def ending(top: Any, *values: Any) -> Any:
        nonlocal count
        if count < PATIENCE:
            count += 1
            return ways.declined
        return found(top)(top, *values)

    return ending


def _scope(op: Op) -> dict[str, Any]:
    return {
        "_Tensor": Tensor, "_View": View, "_Data": Data, "_Layer": Layer, "_new": object.__new__, "_op": op, "_kinds": element.by_type,
        "_known": ways.makers, "_declined": ways.declined, "_inner": ways.inner_function(op), "_named_dtype": named_dtype, "_scalars": SCALARS,
        "_is": is_, "_watchers": profiling._watchers, "_here": profiling.here.get, "_go_outside": go_outside, "_come_back": come_back,
        "_strip": strip, "_tie": tie, "_fitted": _fitted, "_constant": _constant, "_zero": zero, "_added": _added, "_metadata": metadata,
        "_compute": compute,
    }


def _fitted(xp: Any, t: Any, like: Any) -> Any:
    """A sum of terms in the shape and the dtype of the result."""
    if t.shape != like.shape:
        t = xp.broadcast_to(t, like.shape)
    return t if t.dtype == like.dtype else xp.astype(t, like.dtype)


def _constant(host: Any, scalar: Any, like: Any) -> Any:
    """To the rule of an elementwise operation, a Python scalar is a 0-d array of the result's dtype."""
    return host.constant(host.xp, scalar, like.dtype, host.device(host.xp, innermost(like)))


def _added(a: Any, b: Any) -> Any:
    """The sum of two terms. Of a raw array and a layer, the layer adds: not every library's arrays defer to others."""
    return b + a if isinstance(b, Layer) and not isinstance(a, Layer) else a + b


class _Text:
    """The text of an ending while it is written, and the objects that it refers to. `deep`: values may be layers."""

    def __init__(self, op: Op, deep: bool) -> None:
        self.op = op
        self.deep = deep
        self.scope: dict[str, Any] = {}
        self.values = {n: f"_a{i}" for i, n in enumerate(op.roles)}
        self.tangents = {n: f"_t{i}" for i, n in enumerate(op.roles) if op.roles[n] != "plain"}
        self.several = len(op.arrays) > 1 or op.roles[op.arrays[0]] == "arrays"
        self.own = op.module.startswith("multigrad.")  # what its rules return has the right shape and dtype: the tests see to it

    def name(self, value: Any) -> str:
        found = f"_r{len(self.scope)}"
        self.scope[found] = value
        return found

    def lines(self) -> Lines:
        op, deep = self.op, self.deep
        names = ", ".join(op.roles)
        yield f"def ending(_top, {names}):"
        yield "    _e = _top._elem"
        if deep:
            yield "    if _e.run.finished or _watchers and _here() is not None:"
            yield "        return _declined"
            yield "    _deep = _keyed = False"
        else:
            yield "    if _e.run.finished or _watchers:"
            yield f"        return _deeper(_top, {names})"
        yield "    _host = _e.host"
        yield "    _xp = _host.xp"
        yield "    _l = _e.level"
        for name, role in op.roles.items():
            yield from self.parameter(name, role)
        yield f"    _fn = _inner if _deep else _xp.{op.name}" if deep else f"    _fn = _xp.{op.name}"
        yield f"    _y = {call_text(op, self.values)}"
        yield "    if _kinds.get(type(_y)) is not _host" + (" and not isinstance(_y, _Layer):" if deep else ":")
        yield f"        return _finish(_op, _host, {_tuple(self.values.values())}, {_tuple(self.tangents.values())}, _y, _top, {_tuple(op.roles)})"
        yield from self.element()
        yield "    _t = None"
        if op.kind != "nondifferentiable":
            moves = " or ".join(f"{t} is not None" for t in self.tangents.values())
            yield f"    if _b.floating and ({moves}):"
            yield from self.tangent()
        yield from self.wrapped()

    # Operands apart

    def parameter(self, name: str, role: str) -> Lines:
        value = self.values[name]
        if role == "array":
            yield from self.operand(name, value, self.tangents[name], self.op.signature.parameters[name].default is None, "    ")
        elif role == "arrays":
            yield from self.operands(name, value, self.tangents[name])
        elif name == "key":
            yield from self.key(name, value)
        elif name == "dtype":
            yield f"    {value} = _named_dtype(_host, {name}) if type({name}) is str else {name}"
        else:
            yield f"    {value} = {name}"

    def operand(self, x: str, value: str, tangent: str, optional: bool, pad: str) -> Lines:
        """The value of an operand one layer further in, and its tangent."""
        away = "return _declined" if self.deep else f"return _deeper(_top, {', '.join(self.op.roles)})"
        yield f"{pad}_k = type({x})"
        yield f"{pad}if _k is _Dual and {x}._elem.level == _l:"
        yield f"{pad}    if {x}._born is not None:"
        yield f"{pad}        {x}._check()"
        yield f"{pad}    _q = {x}._elem"
        yield f"{pad}    if _q is not _e and (_q.host is not _host{'' if self.deep else ' or _q.layered'}):"
        yield f"{pad}        {away}"
        yield f"{pad}    {value} = {x}._array"
        yield f"{pad}    {tangent} = {x}._tangent"
        if self.deep:
            yield f"{pad}    if isinstance({value}, _Layer):"
            yield f"{pad}        _deep = True"
        yield f"{pad}elif (_k is _Tensor or _k is _View or _k is _Data) and {x}._elem.run is None and {x}._elem.host is _host:"
        yield f"{pad}    if {x}._born is not None:"
        yield f"{pad}        {x}._check()"
        yield f"{pad}    {tangent} = None"
        yield f"{pad}    if {x}._node is None:"
        yield f"{pad}        {value} = {x}._array"
        yield f"{pad}    else:"
        if self.deep:
            yield f"{pad}        {value} = {x}"
            yield f"{pad}        _deep = True"
        else:
            yield f"{pad}        {away}"
        yield f"{pad}elif _kinds.get(_k) is _host or _k in _scalars{f' or {x} is None' if optional else ''}:"
        yield f"{pad}    {value} = {x}"
        yield f"{pad}    {tangent} = None"
        if self.deep:
            yield f"{pad}elif _k in _known and {x}._elem.host is _host:"
            yield f"{pad}    {value} = {x}"
            yield f"{pad}    {tangent} = None"
            yield f"{pad}    _deep = True"
        yield f"{pad}else:"
        yield f"{pad}    {away}"

    def operands(self, xs: str, value: str, tangent: str) -> Lines:
        """The same of a list of arrays. Its tangent is None, or has one for each, None for what does not move."""
        yield f"    if {xs} is None:"
        yield "        return _declined"
        yield f"    {value}, {tangent} = [], []"
        yield f"    for _x in {xs}:"
        yield from self.operand("_x", "_v", "_t", False, "        ")
        yield f"        {value}.append(_v)"
        yield f"        {tangent}.append(_t)"
        yield f"    {value} = tuple({value})"
        yield f"    {tangent} = tuple({tangent}) if any([_t is not None for _t in {tangent}]) else None"

    def key(self, key: str, value: str) -> Lines:
        """An indexing key: what arrays it has are constants."""
        yield f"    if type({key}) is tuple:"
        yield f"        {value} = []"
        yield f"        for _x in {key}:"
        yield from self.entry("_x", "_v", "            ")
        yield f"            {value}.append(_v)"
        yield f"        {value} = tuple({value})"
        yield "    else:"
        yield from self.entry(key, value, "        ")

    def entry(self, x: str, value: str, pad: str) -> Lines:
        away = "return _declined" if self.deep else f"return _deeper(_top, {', '.join(self.op.roles)})"
        yield f"{pad}_k = type({x})"
        yield f"{pad}if _k not in _known:"
        yield f"{pad}    if _k is list:"
        yield f"{pad}        return _declined"
        yield f"{pad}    {value} = {x}"
        yield f"{pad}elif {x}._elem.host is not _host:"
        yield f"{pad}    return _declined"
        yield f"{pad}else:"
        yield f"{pad}    {x}._check()"
        yield f"{pad}    {value} = {x}._array if _k is _Dual and {x}._elem.level == _l else _strip({x})"
        yield f"{pad}    if isinstance({value}, _Layer):"
        if self.deep:
            yield f"{pad}        _deep = _keyed = True"
        else:
            yield f"{pad}        {away}"

    # What the result is

    def element(self) -> Lines:
        """The Element of raw arrays of the result's dtype."""
        if self.deep:
            yield "    _b = _y._elem.base if isinstance(_y, _Layer) else _host.element(_y.dtype)"
        else:
            yield "    _b = _e.base if _y.dtype == _e.dtype else _host.element(_y.dtype)"

    def wrapped(self) -> Lines:
        op = self.op
        yield "    _d = _new(_Dual)"
        yield "    _d._array = _y"
        yield "    _d._tangent = _t"
        if self.deep:
            yield "    _n = isinstance(_y, _Layer) or isinstance(_t, _Layer)"
        elif not self.own:  # whose rule may hold a Tensor
            yield "    _n = isinstance(_t, _Layer)"
        layered, same = ("False", "") if self.own and not self.deep else ("_n", " and _n is _e.layered")
        yield f"    _d._elem = _e if _b is _e.base{same} else _b.at(_e.run, _l, {layered}, _Dual)"
        if op.view is True:
            x, *rest = op.roles
            yield f"    if type({x}) is _Dual and {x}._elem.level == _l:"
            yield f"        _d._base = {x}"
            yield f"        _d._how = (_op, {_tuple(rest)}, None, None)"
            yield f"        _d._cell = _c = {x}._cell"
            yield "        _d._born = len(_c)"
            yield "        return _d"
        yield "    _d._cell = []"
        yield "    _d._born = _d._how = None"
        if op.view and op.view is not True:
            yield f"    _tie(_op, {_tuple(op.roles)}, (_d,), _top, False)"
        yield "    return _d"

    # The tangent

    def tangent(self) -> Lines:
        op, deep = self.op, self.deep
        pad = " " * 8
        if op.jvp is not None and self.several:
            values, tangents = _tuple(self.values.values()), _tuple(self.tangents.values())
            yield f"{pad}_t, = _pushed(_op, _host, {values}, {tangents}, (_y,))"
            return
        if op.jvp is None and op.kind not in ("elementwise", "linear", "multilinear"):
            yield f"{pad}_pushed(_op, _host, {_tuple(self.values.values())}, {_tuple(self.tangents.values())}, (_y,))"  # which says what is missing
            return
        ways_ = {"elementwise": self.elementwise, "linear": self.linear, "multilinear": self.multilinear}
        made = self.written if op.jvp is not None else ways_[op.kind]
        if not deep and self.own:
            yield from made(pad)
            return
        yield f"{pad}_o = _go_outside(None)"
        yield f"{pad}try:"
        if deep:
            yield f"{pad}    _bound = _host.bound"
        yield from made(pad + "    ")
        yield f"{pad}finally:"
        yield f"{pad}    _come_back(_o)"
        if deep:
            yield f"{pad}if isinstance(_t, _Tensor):"
            yield f"{pad}    _t = _strip(_t)"

    def elementwise(self, pad: str) -> Lines:
        """The sum of the terms of all arguments that move."""
        op = self.op
        assert not isinstance(op.vjp, Rule)
        namespace = "_bound" if self.deep else "_xp"
        for x in op.arrays:
            t = self.tangents[x]
            inner = pad
            if self.several:
                yield f"{pad}if {t} is not None:"
                inner += "    "
            yield f"{inner}_g = {f'{t} if isinstance({t}, _Layer) else _lifted({t})' if self.deep else t}"
            yield f"{inner}if _b is not {x}._elem.base and _g.dtype != _y.dtype:"
            yield f"{inner}    _g = {namespace}.astype(_g, _y.dtype)"
            yield from self.term(x, namespace, inner)
            if x != op.arrays[0]:
                yield f"{inner}_t = _u if _t is None else _t + _u"
            else:
                yield f"{inner}_t = _u"
        if not self.several and self.own:
            yield f"{pad}if _b is not _e.base and _t.dtype != _y.dtype:"
        else:
            part = " or ".join(f"{t} is None" for t in self.tangents.values()) if self.several and self.own else ""
            yield f"{pad}if _t.dtype != _y.dtype or {f'({part}) and ' if part else ''}_t.shape != _y.shape:"
        yield f"{pad}    _t = _fitted({namespace}, _t, _y)"

    def term(self, x: str, namespace: str, pad: str) -> Lines:
        """The term of an argument, whose tangent is `_g`, as `_u`."""
        op = self.op
        assert not isinstance(op.vjp, Rule)
        rule = op.vjp.get(x)
        if rule is None:
            yield f"{pad}{self.name(missing_rule(op, x))}()"
            yield f"{pad}_u = _g"
            return
        if not callable(rule.fn):
            c = rule.fn
            yield f"{pad}_u = " + ("_g" if c == 1 else "-_g" if c == -1 else f"{namespace}.zeros_like(_g)" if c == 0 else f"_g * {self.name(c)}")
            return
        for n in self.arrays_of(rule.takes) if self.several else ():  # a Python scalar, or None
            value = self.values[n]
            yield f"{pad}if type({value}) in _scalars:"
            yield f"{pad}    {value} = _constant(_host, {value}, _y)"
        if "g" in rule.takes and (self.several or not self.own):
            yield f"{pad}if _g.shape != _y.shape:"
            yield f"{pad}    _g = {namespace}.broadcast_to(_g, _y.shape)"
        times = "" if "g" in rule.takes else "_g * "
        if not self.deep:
            yield f"{pad}_u = {times}{self.call(rule, self.values, '_y', '_xp')}"
            return
        inner = pad
        if times:  # values that are raw arrays: the partial derivative is computed of these
            yield f"{pad}if not _deep:"
            yield f"{pad}    _u = _g * {self.call(rule, self.values, '_y', '_xp')}"
            yield f"{pad}else:"
            inner += "    "
        lifted = yield from self.lifted(rule, inner)
        yield f"{inner}_u = {times}{self.call(rule, lifted, '_ly', '_bound')}"

    def takes_result(self, names: tuple[str, ...]) -> bool:
        """Whether a rule takes the result, itself or by way of a residual."""
        further = residuals(self.op)
        return any(n in ("ans", "ans_info") or (n in further and self.takes_result(further[n].takes)) for n in names)

    def arrays_of(self, names: tuple[str, ...]) -> list[str]:
        """The array parameters that a rule takes, themselves, or what describes them, or by way of a residual."""
        found: list[str] = []
        further = residuals(self.op)
        for n in names:
            if n in further:
                found += self.arrays_of(further[n].takes)
            elif n in self.values:
                found += [n] if self.op.roles[n] != "plain" else []
            elif n.rpartition("_")[0] in self.tangents and not n.startswith("t_"):
                found.append(n.rpartition("_")[0])
        return list(dict.fromkeys(found))

    def call(self, rule: Rule, values: dict[str, str], y: str, xp: str) -> str:
        given = ", ".join(self.taken(n, values, y, xp) for n in rule.takes)
        return f"{self.name(rule.fn)}({given})"

    def taken(self, n: str, values: dict[str, str], y: str, xp: str) -> str:
        """What a rule takes by the name `n`."""
        if n == "xp":
            return xp
        if n in ("g", "t") or n.startswith("t_"):
            return "_g"
        if n in values:
            return values[n]
        if n == "ans":
            return y
        f = residuals(self.op).get(n)
        if f is not None:
            return f"_compute(_op, {n!r}, {', '.join(self.taken(m, values, y, xp) for m in f.takes)})"
        argument, _, what = n.rpartition("_")
        assert what in METADATA and argument in values, n
        if what in ("shape", "dtype") and not self.several:
            return f"{values[argument]}.{what}"
        return f"_metadata({values[argument]}, {what!r})"

    def linear(self, pad: str) -> Lines:
        """The operation itself, on the tangents of the arguments that have a rule."""
        op = self.op
        moved = dict(self.values)
        ruled = op.arrays if isinstance(op.vjp, Rule) else tuple(op.vjp)
        only = [x for x in op.arrays if x in ruled or op.roles[x] == "arrays"]
        for x in op.arrays:
            if x not in only:
                yield f"{pad}if {self.tangents[x]} is not None:"
                yield f"{pad}    {self.name(missing_rule(op, x))}()"
        for x in only:
            value, t = self.values[x], self.tangents[x]
            moved[x] = f"_m{t}"
            if op.roles[x] == "arrays":
                yield f"{pad}{moved[x]} = {t} or (None,) * len({value})"
                yield f"{pad}{moved[x]} = tuple([{self.zero('_v')} if _u is None else _u for _v, _u in zip({value}, {moved[x]})])"
            elif len(only) > 1:
                yield f"{pad}{moved[x]} = {self.zero(value)} if {t} is None else {t}"
            else:
                moved[x] = t
        if self.deep:
            yield f"{pad}_fn = _inner if _keyed or {self.any_layer(moved)} else _xp.{op.name}"
        yield f"{pad}_t = {call_text(op, moved)}"
        yield from self.conformed(pad)

    def zero(self, value: str) -> str:
        return f"_zero(_bound if isinstance({value}, _Layer) else _xp, {value})" if self.deep else f"_zero(_xp, {value})"

    def any_layer(self, values: dict[str, str]) -> str:
        """The test whether an operand of a call is a layer: else it is the library's to carry out."""
        tests = [f"any([isinstance(_x, _Layer) for _x in {values[x]}])" if self.op.roles[x] == "arrays" else f"isinstance({values[x]}, _Layer)"
                 for x in self.op.arrays]
        return " or ".join(tests)

    def conformed(self, pad: str) -> Lines:
        """Of a stranger's operation, it is not known that tangents have the shape and the dtype of results."""
        if not self.own:
            yield f"{pad}_t = _conform({'_bound if isinstance(_t, _Layer) else _xp' if self.deep else '_xp'}, _t, _y)"

    def multilinear(self, pad: str) -> Lines:
        """For each argument that moves, the operation with its tangent in its place."""
        op = self.op
        for x in op.arrays:
            moved = self.values | {x: self.tangents[x]}
            yield f"{pad}if {self.tangents[x]} is not None:"
            if self.deep:
                yield f"{pad}    _fn = _inner if {self.any_layer(moved)} else _xp.{op.name}"
            yield f"{pad}    _u = {call_text(op, moved)}"
            yield f"{pad}    _t = _u if _t is None else {'_added(_t, _u)' if self.deep else '_t + _u'}"
        yield from self.conformed(pad)

    def written(self, pad: str) -> Lines:
        """The rule for tangents of an operation of one array."""
        rule = self.op.jvp
        assert rule is not None
        t = self.tangents[self.op.arrays[0]]
        if not self.deep:
            yield f"{pad}_g = {t}"
            yield f"{pad}_t = {self.call(rule, self.values, '_y', '_xp')}"
        else:
            yield f"{pad}_g = {t} if isinstance({t}, _Layer) else _lifted({t})"
            lifted = yield from self.lifted(rule, pad)
            yield f"{pad}_t = {self.call(rule, lifted, '_ly', '_bound')}"
        yield f"{pad}if _t is not None and (_t.dtype != _y.dtype or _t.shape != _y.shape):"
        yield f"{pad}    _t = _conform({'_bound' if self.deep else '_xp'}, _t, _y)"

    def lifted(self, rule: Rule, pad: str) -> Generator[str, None, dict[str, str]]:
        """Lift what a rule takes. Returns the names of the parameters then; the result is `_ly`."""
        taken = self.arrays_of(rule.takes)
        found = self.values | {n: f"_l{self.values[n]}" for n in taken}
        for n in taken:
            yield f"{pad}{found[n]} = {self.values[n]} if isinstance({self.values[n]}, _Layer) else _lifted({self.values[n]})"
        if self.takes_result(rule.takes):
            yield f"{pad}_ly = _y if isinstance(_y, _Layer) else _lifted(_y)"
        return found


def _tuple(names: Any) -> str:
    return "(" + "".join(f"{n}, " for n in names) + ")"
