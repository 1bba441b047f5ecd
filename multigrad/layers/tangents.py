"""Generated code for Duals: the operation on the primals, its rule on the tangents.

An operation has two of these endings, from the template of dispatch/endings.py. One is for primals
and tangents that are raw arrays: rules run on these, as in an ordinary backward pass. The other,
written when it is first needed, is for values that may be layers of lower levels: there, rules run
on layers only. Rare cases and errors are left to `Dual._apply`, by `dispatch.general`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from ..core.graph import added
from ..core.level import come_back, go_outside, innermost
from ..core.tensor import strip
from ..dispatch import plans, ways
from ..dispatch.codegen import zero
from ..dispatch.conform import shape_tangent
from ..dispatch.endings import Lines, Locals, Part, Text, call_text, tuple_text
from ..dispatch.names import Texts, arrays_taken, metadata, takes_result
from ..dispatch.pullbacks import missing_rule, scaled
from ..dispatch.residuals import compute
from ..dispatch.ways import Ending
from ..observe import gate
from ..registry import Op, Rule, per_operation
from .value_layer import tie


def maker(**names: Any) -> Callable[[Op], Ending | None]:
    """Return the function that writes the endings of Duals.

    `names` are the objects of dual.py that the generated code needs:

    Dual     the class
    finish   the rest of the general path, after the operation was carried out
    pushed   the tangents of results, by any rule
    conform  a tangent in the shape and the dtype of its result
    lifted   a raw array as a constant, so that a rule gets layers only
    """
    of_duals = {f"_{name}": value for name, value in names.items()}

    @per_operation
    def written(op: Op, deep: bool) -> Ending:
        text = _Duals(op, deep)
        text.scope |= of_duals | {"_deeper": later(lambda top: written(op, True))}
        return text.written("Duals")

    def noted(op: Op, top: Any) -> Ending:
        ending = written(op, top._elem.layered)
        plans.note(op, top._elem, ways.way_of(op), ending)
        return ending

    def made(op: Op) -> Ending | None:
        lists = "arrays" in op.roles.values()
        if (
            op.kind == "composite"
            or op.outputs != ()
            or not op.arrays
            or (lists and op.kind != "linear")
        ):
            return None
        return later(lambda top: noted(op, top))

    return made


PATIENCE = 4
"""How often an operation takes the general path before generated code is written for it.

Writing the code takes as long as thirty calls on the general path.
"""


def later(made: Callable[[Any], Ending]) -> Ending:
    """An ending that uses the general path for the first calls, and then the ending from `made`.

    `made` gets the operand of the highest level.
    """
    count = 0

    def ending(top: Any, *values: Any) -> Any:
        nonlocal count
        if count < PATIENCE:
            count += 1
            return ways.declined
        return made(top)(top, *values)

    return ending


def _fitted(xp: Any, t: Any, like: Any, op: Op) -> Any:
    """A sum of terms in the shape and the dtype of the result."""
    if t.shape != like.shape:
        t = shape_tangent(xp, t, like.shape, op, True)
    return t if t.dtype == like.dtype else xp.astype(t, like.dtype)


def _constant(library: Any, scalar: Any, like: Any) -> Any:
    """A Python scalar, for a rule, as a 0-d array of the result's dtype."""
    return library.constant(
        library.xp, scalar, like.dtype, library.device(library.xp, innermost(like))
    )


class _Duals(Text):
    """The text that computes a tangent. `deep`: values may be layers."""

    classes = "_k is _Dual"
    inside = "_isinstance({value}, _Layer)"
    parts = (Part("_t", own="{x}._tangent", layer="None", raw="None"),)
    deep_key = "_deep = _keyed = True"

    def __init__(self, op: Op, deep: bool) -> None:
        super().__init__(op)
        self.deep = deep
        if not deep:
            self.inside, self.leave = "", f"return _deeper(_top, {', '.join(op.roles)})"
        self.scope |= {
            "_gate": gate.get,
            "_go_outside": go_outside,
            "_come_back": come_back,
            "_strip": strip,
            "_shaped": shape_tangent,
            "_tie": tie,
            "_fitted": _fitted,
            "_constant": _constant,
            "_zero": zero,
            "_added": added,
            "_metadata": metadata,
            "_compute": compute,
        }
        self.tangents = self.of("_t")
        self.apart = f"{tuple_text(self.values.values())}, {tuple_text(self.tangents.values())}"
        self.several = len(op.arrays) > 1 or op.roles[op.arrays[0]] == "arrays"
        # the tests check that their results have the right shape and dtype
        self.own_rules = op.module.startswith("multigrad.")

    def name(self, value: Any) -> str:
        local = f"_r{len(self.scope)}"
        self.scope[local] = value
        return local

    def gate(self) -> Lines:
        yield "    _g = _gate()"
        yield "    if _e.run.finished or _g is not True and _g.watch.tangents:"
        yield f"        {self.leave}"
        if self.deep:
            yield "    _keyed = False"

    def operands(self, xs: Locals) -> Lines:
        """Take a list apart; its tangent is None if no element has one."""
        yield from super().operands(xs)
        t = self.tangents[xs.x]
        yield f"    {t} = {t} if _any([_x is not None for _x in {t}]) else None"

    def finish(self) -> Lines:
        op = self.op
        yield "    if _kinds.get(_type(_y)) is not _library" + (
            " and not _isinstance(_y, _Layer):" if self.deep else ":"
        )
        roles = tuple_text(op.roles)
        yield f"        return _finish(_op, _library, {self.apart}, _y, _top, {roles})"
        yield from self.element()
        yield "    _t = None"
        if op.kind != "nondifferentiable":
            moves = " or ".join(f"{t} is not None" for t in self.tangents.values())
            yield f"    if _b.floating and ({moves}):"
            yield from self.tangent()
        yield from self.wrapped()

    # The result

    def element(self) -> Lines:
        """The Element of raw arrays of the result's dtype."""
        if self.deep:
            yield "    _b = _library.element(_y.dtype) if not _isinstance(_y, _Layer) else \\"
            yield "        _y._elem.base"
        else:
            yield "    _b = _e.base if _y.dtype == _e.dtype else _library.element(_y.dtype)"

    def wrapped(self) -> Lines:
        op = self.op
        yield "    _d = _new(_Dual)"
        yield "    _d._array = _y"
        yield "    _d._tangent = _t"
        if self.deep:
            yield "    _n = _isinstance(_y, _Layer) or _isinstance(_t, _Layer)"
        elif not self.own_rules:  # a Tensor may be among the arguments of its rule
            yield "    _n = _isinstance(_t, _Layer)"
        layered, same = (
            ("False", "") if self.own_rules and not self.deep else ("_n", " and _n is _e.layered")
        )
        yield f"    _d._elem = _e if _b is _e.base{same} else _b.at(_e.run, _l, {layered}, _Dual)"
        if op.view is True:
            x = next(iter(op.roles))
            yield f"    if _type({x}) is _Dual and {x}._elem.level == _l:"
            yield f"        _d._view = ({x}, _op, {self.further()}, None, None)"
            yield f"        _d._cell = _c = {x}._cell"
            yield "        _d._seen = _c[-1] if _c else 0"
            yield "        return _d"
        yield "    _d._cell = []"
        yield "    _d._view = None"
        if op.view and op.view is not True:
            yield f"    _tie(_op, {tuple_text(op.roles)}, (_d,), _top, False)"
        yield "    return _d"

    # The tangent

    def tangent(self) -> Lines:
        op, deep = self.op, self.deep
        pad = " " * 8
        if op.jvp is not None and self.several:
            yield f"{pad}_t, = _pushed(_op, _library, {self.apart}, (_y,))"
            return
        if op.jvp is None and op.kind not in ("elementwise", "linear", "multilinear"):
            # it explains the missing rule
            yield f"{pad}_pushed(_op, _library, {self.apart}, (_y,))"
            return
        ways_ = {
            "elementwise": self.elementwise,
            "linear": self.linear,
            "multilinear": self.multilinear,
        }
        made = self.by_rule if op.jvp is not None else ways_[op.kind]
        if not deep and self.own_rules:
            yield from made(pad)
            return
        yield f"{pad}_o = _go_outside(None)"
        yield f"{pad}try:"
        if deep:
            yield f"{pad}    _bound = _library.bound"
        yield from made(pad + "    ")
        yield f"{pad}finally:"
        yield f"{pad}    _come_back(_o)"
        if deep:
            yield f"{pad}if _isinstance(_t, _Tensor):"
            yield f"{pad}    _t = _strip(_t)"

    def elementwise(self, pad: str) -> Lines:
        """The sum of the terms of all arguments that have a tangent."""
        op = self.op
        assert not isinstance(op.vjp, Rule)
        namespace = "_bound" if self.deep else "_xp"
        for x in op.arrays:
            t = self.tangents[x]
            inner = pad
            if self.several:
                yield f"{pad}if {t} is not None:"
                inner += "    "
            yield (
                f"{inner}_g = "
                f"{f'{t} if _isinstance({t}, _Layer) else _lifted({t})' if self.deep else t}"
            )
            yield f"{inner}if _b is not {x}._elem.base and _g.dtype != _y.dtype:"
            yield f"{inner}    _g = {namespace}.astype(_g, _y.dtype)"
            yield from self.term(x, namespace, inner)
            rule = op.vjp.get(x)
            if not self.own_rules and rule is not None and callable(rule.fn) and "g" in rule.takes:
                yield f"{inner}_u = _shaped({namespace}, _u, _y.shape, _op, False, {x!r})"
            if x != op.arrays[0]:
                yield f"{inner}_t = _u if _t is None else _t + _u"
            else:
                yield f"{inner}_t = _u"
        if not self.several and self.own_rules:
            yield f"{pad}if _b is not _e.base and _t.dtype != _y.dtype:"
        else:
            part = (
                " or ".join(f"{t} is None" for t in self.tangents.values())
                if self.several and self.own_rules
                else ""
            )
            yield (
                f"{pad}if _t.dtype != _y.dtype or {f'({part}) and ' if part else ''}_t.shape "
                "!= _y.shape:"
            )
        yield f"{pad}    _t = _fitted({namespace}, _t, _y, _op)"

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
            yield f"{pad}_u = {scaled('_g', rule.fn, namespace, self.name)}"
            return
        taken = arrays_taken(op, rule.takes) if self.several else ()
        for n in taken:  # a Python scalar, or None
            value = self.values[n]
            yield f"{pad}if _type({value}) in _scalars:"
            yield f"{pad}    {value} = _constant(_library, {value}, _y)"
        if "g" in rule.takes and (self.several or not self.own_rules):
            yield f"{pad}if _g.shape != _y.shape:"
            yield f"{pad}    _g = {namespace}.broadcast_to(_g, _y.shape)"
        times = "" if "g" in rule.takes else "_g * "
        if not self.deep:
            yield f"{pad}_u = {times}{self.rule_text(rule, self.values, '_y', '_xp')}"
            return
        inner = pad
        if times:  # raw arrays, from which the partial derivative is computed
            yield f"{pad}if not _deep:"
            yield f"{pad}    _u = _g * {self.rule_text(rule, self.values, '_y', '_xp')}"
            yield f"{pad}else:"
            inner += "    "
        lifted = yield from self.lifted(rule, inner)
        yield f"{inner}_u = {times}{self.rule_text(rule, lifted, '_ly', '_bound')}"

    def rule_text(self, rule: Rule, values: dict[str, str], y: str, xp: str) -> str:
        tangents = ("g", "t", *(f"t_{x}" for x in self.op.arrays))
        texts = Texts(
            self.op,
            given={"xp": xp, **dict.fromkeys(tangents, "_g")},
            values=values,
            ans=y,
            computed="_compute(_op, {name!r}, {taken})",
            certain=() if self.several else self.op.arrays,
        )
        return f"{self.name(rule.fn)}({', '.join(map(texts.text, rule.takes))})"

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
                yield f"{pad}{moved[x]} = {t} or (None,) * _len({value})"
                yield (
                    f"{pad}{moved[x]} = _tuple([{self.zero('_v')} if _u is None else _u for "
                    f"_v, _u in _zip({value}, {moved[x]})])"
                )
            elif len(only) > 1:
                yield f"{pad}{moved[x]} = {self.zero(value)} if {t} is None else {t}"
            else:
                moved[x] = t
        if self.deep:
            yield f"{pad}_fn = _inner if _keyed or {self.any_layer(moved)} else _xp.{op.name}"
        yield f"{pad}_t = {call_text(op, '_fn', moved)}"
        yield from self.conformed(pad)

    def zero(self, value: str) -> str:
        return (
            f"_zero(_bound if _isinstance({value}, _Layer) else _xp, {value})"
            if self.deep
            else f"_zero(_xp, {value})"
        )

    def any_layer(self, values: dict[str, str]) -> str:
        """The test whether an operand of a call is a layer; if none is, the library is called."""
        tests = [
            f"_any([_isinstance(_x, _Layer) for _x in {values[x]}])"
            if self.op.roles[x] == "arrays"
            else f"_isinstance({values[x]}, _Layer)"
            for x in self.op.arrays
        ]
        return " or ".join(tests)

    def conformed(self, pad: str) -> Lines:
        """Check the tangents of a user-defined operation, whose shape and dtype may be wrong."""
        if not self.own_rules:
            yield (
                f"{pad}_t = "
                f"_conform({'_bound if _isinstance(_t, _Layer) else _xp' if self.deep else '_xp'}, "
                "_t, _y, _op)"
            )

    def multilinear(self, pad: str) -> Lines:
        """For each argument with a tangent, the operation with the tangent in its place."""
        op = self.op
        for x in op.arrays:
            moved = self.values | {x: self.tangents[x]}
            yield f"{pad}if {self.tangents[x]} is not None:"
            if self.deep:
                yield f"{pad}    _fn = _inner if {self.any_layer(moved)} else _xp.{op.name}"
            yield f"{pad}    _u = {call_text(op, '_fn', moved)}"
            yield (
                f"{pad}    _t = _u if _t is None else "
                f"{'_added(_t, _u)' if self.deep else '_t + _u'}"
            )
        yield from self.conformed(pad)

    def by_rule(self, pad: str) -> Lines:
        """The rule for tangents of an operation of one array."""
        rule = self.op.jvp
        assert rule is not None
        t = self.tangents[self.op.arrays[0]]
        if not self.deep:
            yield f"{pad}_g = {t}"
            yield f"{pad}_t = {self.rule_text(rule, self.values, '_y', '_xp')}"
        else:
            yield f"{pad}_g = {t} if _isinstance({t}, _Layer) else _lifted({t})"
            lifted = yield from self.lifted(rule, pad)
            yield f"{pad}_t = {self.rule_text(rule, lifted, '_ly', '_bound')}"
        if self.own_rules:
            yield f"{pad}if _t is not None and (_t.dtype != _y.dtype or _t.shape != _y.shape):"
            yield f"{pad}    _t = _conform({'_bound' if self.deep else '_xp'}, _t, _y, _op)"
        yield from self.conformed(pad)

    def lifted(self, rule: Rule, pad: str) -> Generator[str, None, dict[str, str]]:
        """Wrap the arguments of a rule as layers.

        Returns the names of the parameters afterwards; the result is `_ly`.
        """
        taken = arrays_taken(self.op, rule.takes)
        lifted_names = self.values | {n: f"_l{self.values[n]}" for n in taken}
        for n in taken:
            yield (
                f"{pad}{lifted_names[n]} = {self.values[n]} if _isinstance({self.values[n]}, "
                f"_Layer) else _lifted({self.values[n]})"
            )
        if takes_result(self.op, rule.takes):
            yield f"{pad}_ly = _y if _isinstance(_y, _Layer) else _lifted(_y)"
        return lifted_names
