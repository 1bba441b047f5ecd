"""The text of runners for Duals: the operation on the primals, its rule on the tangents.

If all primals and tangents are raw arrays, the rule runs on these, as in an ordinary backward pass.
If some may be layers of lower levels, it runs on layers only. Results of third parties' rules are
checked; of multigrad's own, the tests check the shapes and dtypes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..core.level import Layer, come_back, go_outside
from ..core.tensor import lifted, strip
from ..dispatch import writer
from ..dispatch.codegen import constant_like, raw_function, zero
from ..dispatch.conform import conform_tangent, shape_tangent
from ..dispatch.generated import call_text, tuple_text
from ..dispatch.names import arrays_taken, compute
from ..dispatch.pullbacks import called, missing_rule, scaled
from ..dispatch.signature import Operand
from ..dispatch.writer import Lines, OperandTexts, Unwritten, Writer
from ..registry import Rule
from .value_layer import tie


def _added(a: Any, b: Any) -> Any:
    """The sum of two terms, in the order of the general path, where raw arrays are lifted."""
    return lifted(a) + b if isinstance(b, Layer) else a + b


class DualWriter(Writer):
    """The writer for Duals, whose results have a tangent.

    high    whether values or tangents may be layers
    parted  the operands that may have a tangent
    xp      the text of the namespace of rules
    """

    common: ClassVar[dict[str, Any]] = Writer.common | {
        "_go_outside": go_outside,
        "_come_back": come_back,
        "_strip": strip,
        "_shaped": shape_tangent,
        "_tie": tie,
        "_constant": constant_like,
        "_conform": conform_tangent,
        "_lifted": lifted,
        "_zero": zero,
        "_added": _added,
        "_compute": compute,
    }
    part = "_tangent"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        op = self.op
        self.high = self.deep or any(p.elem.layered for p in self.own)
        if self.high and any(p.status == "many" for p in self.operands.values()):
            raise Unwritten
        self.parted = [p for p in self.all if p.status == "own" and p.elem.floating]
        self.xp = "_bound" if self.high else "_xp"
        self.several = len(op.arrays) > 1 or op.roles[op.arrays[0]] == "arrays"

    def guard(self, p: Operand) -> Lines:
        yield from super().guard(p)
        # the tangent alone may be a layer
        if p.status == "own" and p.elem.layered:
            yield f"{'' if p.layer else 'not '}_isinstance({p.x}._array, _Layer)"

    def begin(self) -> Lines:
        yield "    if _mode is not True and _mode.watch.tangents:"
        yield f"        {self.again}"

    def outer(self) -> dict[str, str]:
        """What rules on layers get: a constant of the base level as the Tensor that it is."""
        return self.expressed(lambda p: p.x if p.status == "const" else p.value)

    def _moves(self, p: Operand) -> bool:
        return any(q in self.parted for q in p.parts or (p,))

    def _test(self, p: Operand) -> str:
        """The test whether a parameter has a tangent."""
        if p.status == "many":
            return f"_any([_each is not None for _each in {self.part_of(p)}])"
        return " or ".join(
            f"{self.part_of(q)} is not None" for q in p.parts or (p,) if q in self.parted
        )

    # ----- The result -----

    def apart(self) -> str:
        """What functions of the general path take: the values and tangents of all parameters."""
        values = tuple_text(self.outer()[n] for n in self.op.roles)
        tangents = [
            self.part_text(p)
            if not p.parts
            else f"({self.part_text(p)} if {self._test(p)} else None)"
            if self._moves(p)
            else "None"
            for p in self.operands.values()
        ]
        return f"_op, _library, {values}, {tuple_text(tangents)}"

    def generally(self) -> str:
        return (
            f"_finish({self.apart()}, _ans, {self.first(self.main)}, {tuple_text(self.op.roles)})"
        )

    def surprises(self) -> Lines:
        array = "_kinds.get(_type(_ans)) is not _library"
        yield f"{array} and not _isinstance(_ans, _Layer)" if self.deep else array

    def wrapped(self) -> Lines:
        r = self.out
        yield "    _tangent = None"
        moving = [n for n, p in self.operands.items() if self._moves(p)]
        if self.op.kind != "nondifferentiable" and r.floating and moving:
            yield f"    if {' or '.join(self._test(self.operands[n]) for n in moving)}:"
            yield from self.tangent(moving)
        yield "    _result = _new(_Dual)"
        yield "    _result._array = _ans"
        yield "    _result._tangent = _tangent"
        layers = ["_isinstance(_ans, _Layer)"] * self.deep
        # a Tensor may be among the arguments of a third party's rule
        layers += ["_isinstance(_tangent, _Layer)"] * (self.high or not self.ours)
        if layers:
            yield f"    _layered = {' or '.join(layers)}"
        deep = "_layered" if layers else False
        at = f"{self.name(r.base)}.at(_elem.run, _elem.level, {deep}, _Dual)"
        same = f"_elem if _layered is _elem.layered else {at}" if layers else "_elem"
        yield f"    _result._elem = {same if r.base is self.elem.base else at}"
        if self.view is True:
            yield from self.as_view()
        else:
            yield "    _result._cell = []"
            yield "    _result._view = None"
            if self.view:
                top = self.first(self.main)
                yield f"    _tie(_op, {tuple_text(self.op.roles)}, (_result,), {top})"
        yield "    return _result"

    # ----- The tangent -----

    def tangent(self, moving: Sequence[str]) -> Lines:
        op = self.op
        pad = " " * 8
        lists = any(p.parts for p in self.operands.values())
        write = (
            (self.by_rule if not self.several else None)
            if op.jvp is not None
            else {
                "elementwise": None if lists else self.elementwise,
                "linear": self.linear,
                "multilinear": None if lists else self.multilinear,
            }.get(op.kind)
        )
        if write is None:  # also without a rule, which it explains
            yield f"{pad}_tangent, = _pushed({self.apart()}, (_ans,))"
            return
        if not self.high and self.ours:
            yield from write(moving, pad)
            return
        if self.high:
            yield f"{pad}_bound = _library.bound"
        yield f"{pad}_before = _go_outside(None)"
        yield f"{pad}try:"
        yield from write(moving, pad + "    ")
        yield f"{pad}finally:"
        yield f"{pad}    _come_back(_before)"
        if self.high:
            yield f"{pad}if _isinstance(_tangent, _Tensor):"
            yield f"{pad}    _tangent = _strip(_tangent)"

    def elementwise(self, moving: Sequence[str], pad: str) -> Lines:
        """The sum of the terms of all arguments that have a tangent."""
        base = self.out.base
        other = any(self.operands[n].elem.base is not base for n in moving)
        for n in moving:
            p = self.operands[n]
            t, inner = self.part_of(p), pad
            if len(moving) > 1:
                yield f"{pad}if {t} is not None:"
                inner += "    "
            yield f"{inner}_arg_tangent = {f'_lifted({t})' if self.high else t}"
            if p.elem.base is not base:
                yield f"{inner}if _arg_tangent.dtype != _ans.dtype:"
                yield f"{inner}    _arg_tangent = {self.xp}.astype(_arg_tangent, _ans.dtype)"
            yield from self.term(n, inner)
            if n == moving[0]:
                yield f"{inner}_tangent = _term"
            else:
                yield f"{inner}_tangent = _term if _tangent is None else _tangent + _term"
        tests = ["_tangent.dtype != _ans.dtype"] * (other or not self.ours)
        if len(self.arrays) > 1 or not self.ours:
            part = ""
            if self.ours and len(moving) == len(self.arrays):
                part = " or ".join(f"{self.part_of(self.operands[n])} is None" for n in moving)
            tests.append(f"{f'({part}) and ' if part else ''}_tangent.shape != _ans.shape")
        if tests:
            yield f"{pad}if {' or '.join(tests)}:"
            yield f"{pad}    _tangent = _conform({self.xp}, _tangent, _ans, _op, True)"

    def term(self, n: str, pad: str) -> Lines:
        """The term of an argument, whose tangent is `_arg_tangent`, as `_term`."""
        op = self.op
        assert not isinstance(op.vjp, Rule)
        rule = op.vjp.get(n)
        if rule is None:
            yield f"{pad}_term = {self.name(missing_rule(op, n))}()"
            return
        if not callable(rule.fn):
            yield f"{pad}_term = {scaled('_arg_tangent', rule.fn, self.xp, self.name)}"
            return
        if "g" not in rule.takes:
            # partial derivatives at raw arrays are computed from these
            yield f"{pad}_term = {self.rule_text(rule, raw=not self.deep)}"
            for a in arrays_taken(op, rule.takes) if self.high else ():
                if self.operands[a].status == "const":  # its version cell is needed further in
                    yield f"{pad}if _term is {self.operands[a].value}:"
                    yield f"{pad}    _term = {self.operands[a].x}"
            yield f"{pad}_term = _arg_tangent * _term"
            return
        if self.several or not self.ours:
            yield f"{pad}if _arg_tangent.shape != _ans.shape:"
            yield f"{pad}    _arg_tangent = {self.xp}.broadcast_to(_arg_tangent, _ans.shape)"
        yield f"{pad}_term = {self.rule_text(rule)}"
        if not self.ours:
            yield f"{pad}_term = _shaped({self.xp}, _term, _ans.shape, _op, False, {n!r})"

    def rule_text(self, rule: Rule, raw: bool = False) -> str:
        """The call of a rule; `raw`: on the raw arrays, although a tangent may be a layer."""
        texts = _RuleTexts(self, self.high and not raw)
        return called(rule.fn, list(map(texts.text, rule.takes)), self.name)

    def linear(self, moving: Sequence[str], pad: str) -> Lines:
        """The operation itself, on the tangents of the arguments that have a rule."""
        op = self.op
        ruled = op.arrays if isinstance(op.vjp, Rule) else tuple(op.vjp)
        moved = {}
        for n, p in self.operands.items():
            if n not in ruled and not p.parts:
                if n in moving:
                    yield f"{pad}if {self.part_of(p)} is not None:"
                    yield f"{pad}    {self.name(missing_rule(op, n))}()"
                continue
            if p.status == "many":
                each = f"{self._zero('_value')} if _each is None else _each"
                each += f" for _value, _each in _zip({p.value}, {self.part_of(p)})"
                text = f"_tuple([{each}])"
            elif p.status == "list":
                text = tuple_text(self._moved(q, False) for q in p.parts)
            else:
                text = self._moved(p, moving == [n])
            moved[n] = f"_moved_{n}" if self.high else text
            if self.high:
                yield f"{pad}{moved[n]} = {text}"
        yield f"{pad}_tangent = {self.applied(moved)}"
        yield from self.conformed(pad)

    def _moved(self, p: Operand, only: bool) -> str:
        """The tangent of an operand, or zeros. `only`: no other operand has a tangent."""
        if p not in self.parted:
            return self._zero(self._called(p))
        t = self.part_of(p)
        return t if only else f"({self._zero(self._called(p))} if {t} is None else {t})"

    def _zero(self, x: str) -> str:
        xp = f"_bound if _isinstance({x}, _Layer) else _xp" if self.high else "_xp"
        return f"_zero({xp}, {x})"

    def applied(self, moved: Mapping[str, str]) -> str:
        """The operation on tangents: multigrad's own, if an operand is a layer."""
        if not self.high:
            return call_text(self.op, "_fn", self.called() | dict(moved))
        self.scope["_inner"] = writer.inner_function(self.op)
        inner = call_text(self.op, "_inner", self.outer() | dict(moved))
        others = [p for n, p in self.operands.items() if n not in moved]
        if any(p.layer for p in (*others, *self.keyed)):
            return inner
        self.scope["_raw"] = raw_function(self.library, self.op.name)
        raw = call_text(self.op, "_raw", self.values() | dict(moved))
        tests = [
            f"_any([_isinstance(_value, _Layer) for _value in {text}])"
            if self.operands[n].parts
            else f"_isinstance({text}, _Layer)"
            for n, text in moved.items()
        ]
        return f"{inner} if {' or '.join(tests)} else {raw}"

    def multilinear(self, moving: Sequence[str], pad: str) -> Lines:
        """For each argument with a tangent, the operation with the tangent in its place."""
        for n in moving:
            t, inner = self.part_of(self.operands[n]), pad
            if len(moving) > 1:
                yield f"{pad}if {t} is not None:"
                inner += "    "
            total = "_added(_tangent, _term)" if self.high else "_tangent + _term"
            yield f"{inner}_term = {self.applied({n: t})}"
            first = n == moving[0]
            yield f"{inner}_tangent = _term{'' if first else f' if _tangent is None else {total}'}"
        yield from self.conformed(pad)

    def by_rule(self, moving: Sequence[str], pad: str) -> Lines:
        """The rule for tangents of an operation of one array."""
        rule = self.op.jvp
        assert rule is not None
        t = self.part_of(self.operands[moving[0]])
        yield f"{pad}_arg_tangent = {f'_lifted({t})' if self.high else t}"
        yield f"{pad}_tangent = {self.rule_text(rule)}"
        if self.ours:
            differs = "_tangent.dtype != _ans.dtype or _tangent.shape != _ans.shape"
            yield f"{pad}if _tangent is not None and ({differs}):"
            yield f"{pad}    _tangent = _conform({self.xp}, _tangent, _ans, _op)"
        yield from self.conformed(pad)

    def conformed(self, pad: str) -> Lines:
        """Check the tangents of a third party's operation, whose shape and dtype may be wrong."""
        if not self.ours:
            xp = "(_bound if _isinstance(_tangent, _Layer) else _xp)" if self.high else "_xp"
            yield f"{pad}_tangent = _conform({xp}, _tangent, _ans, _op)"


class _RuleTexts(OperandTexts):
    """The expressions for the names of rules of tangents; `high`: as layers."""

    def __init__(self, writer: DualWriter, high: bool) -> None:
        tangents = ("g", "t", *(f"t_{x}" for x in writer.op.arrays))
        context = {"xp": "_bound" if high else "_xp", **dict.fromkeys(tangents, "_arg_tangent")}
        computed = "_compute(_op, {name!r}, {taken})"
        result = "_lifted(_ans)" if high else "_ans"
        super().__init__(writer, context, result, computed, "_constant(_library, {x}, _ans)")
        self.high = high
        self.values = writer.outer() if high else writer.values()

    def argument(self, name: str) -> str:
        text = super().argument(name)
        operand = self.operands.get(name)
        lifted = self.high and operand is not None and operand.status != "none"
        return f"_lifted({text})" if lifted else text

    def metadata(self, name: str, what: str) -> str:
        # the rule gets an array in place of a scalar, as on the general path
        return "None" if what == "scalar" else super().metadata(name, what)
