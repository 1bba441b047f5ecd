"""The text of endings: generated code for operands whose highest is of one class (see ways.py).

All endings come from one template. `Text` **classifies**: it takes the parameters apart by their
roles, each operand into its inner value and whatever else the ending needs of it. It **calls** the
library's function on raw arrays, or multigrad's own if a value is a layer. Each class of array
objects has its own Text, which defines what is taken from an operand besides the value, **wraps**
the result and **records** it. The Text of Tensors, which makes a node, is here; that of Duals, with
a tangent, in layers/tangents.py; that of batches in layers/batch_code.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import is_
from typing import Any, NamedTuple

from ..core import element
from ..core.computed import mark
from ..core.element import SCALARS, named_dtype
from ..core.graph import Node, tick
from ..core.level import Layer
from ..core.tensor import Data, Tensor, View
from ..observe import gate
from ..registry import Op, per_operation
from . import generated, ways
from .codegen import is_flat
from .general import outer, record, rule_of, shows
from .ways import Ending

Lines = Iterator[str]

_BUILTINS = {
    f"_{b.__name__}": b
    for b in (
        *(all, any, complex, float, int, isinstance, len),
        *(list, map, max, range, str, tuple, type, zip),
    )
}
"""Builtins under other names, since parameters may have the same: those of clip are min and max."""


_OF_TENSORS = "(_k is _Tensor or _k is _View or _k is _Data)"


def tuple_text(names: Iterable[str]) -> str:
    """The text of a tuple."""
    return f"({''.join(f'{n}, ' for n in names)})"


def call_text(op: Op, function: str, local: dict[str, str]) -> str:
    """The text of a call. `local`: the expressions for parameters that are not their names."""
    parts = []
    for p in op.signature.parameters.values():
        text = local.get(p.name, p.name)
        parts.append(
            f"*{text}"
            if p.kind is p.VAR_POSITIONAL
            else f"{p.name}={text}"
            if p.kind is p.KEYWORD_ONLY
            else text
        )
    return f"{function}({', '.join(parts)})"


class Part(NamedTuple):
    """A part of an operand that an ending takes besides its value.

    The fields are texts in which `{x}` is the operand and `{value}` is its value.

    name   the name of its local variable, without a number at the end
    own    for an array of the ending's class and level
    layer  for an array of a lower level, a constant
    raw    for a raw array or a Python scalar; `{scalar}` is the test for a scalar
    keys   whether it is taken from the entries of an indexing key, too
    """

    name: str
    own: str
    layer: str
    raw: str
    keys: bool = False


class Locals(NamedTuple):
    """The names of the local variables of an operand: itself, its value, its parts.

    `scalar` is the test for other objects that are allowed in place of an array.
    """

    x: str
    value: str
    parts: dict[Part, str]
    scalar: str
    key: bool = False

    def all(self) -> list[str]:
        return [self.value, *self.parts.values()]

    def taken(self, source: str, pad: str) -> Lines:
        """Take the parts from an operand whose value is known. `source`: the field of a Part."""
        for part, local in self.parts.items():
            yield (
                f"{pad}{local} = "
                f"{getattr(part, source).format(x=self.x, value=self.value, scalar=self.scalar)}"
            )


class Text:
    """The text of an ending while it is written; `scope` has the objects that it refers to.

    classes  the test whether an operand, of type `_k`, is of the ending's class
    parts    the parts that are taken from an operand besides its value
    inside   the test whether the value of an operand with the Element `{q}` is a layer; "" if the
             text leaves such values to another one
    leave    the statement that leaves the operation to another text
    deep_key the statement for a key with a layer in it
    saves    whether the values are used again after the call, in a node
    """

    classes = ""
    parts: tuple[Part, ...] = ()
    inside = "{q}.layered"
    leave = "return _declined"
    deep_key = "_deep = True"
    saves = False

    def __init__(self, op: Op) -> None:
        self.op = op
        self.optional = {n for n, p in op.signature.parameters.items() if p.default is None}
        roles = list(op.roles.values())
        # If there is one array, the ending was chosen for it.
        self.alone = (
            roles.count("array") == 1
            and roles[0] == "array"
            and "arrays" not in roles
            and "key" not in op.roles
        )
        # A setting that is true or false needs no test.
        plain = {
            n
            for n, p in op.signature.parameters.items()
            if type(p.default) is bool and op.roles[n] == "plain"
        }
        self.values = {n: n if n in plain else f"_a{i}" for i, n in enumerate(op.roles)}
        self.locals = {n: self._locals(n, i, role) for i, (n, role) in enumerate(op.roles.items())}
        self.scope: dict[str, Any] = {
            "_Tensor": Tensor,
            "_View": View,
            "_Data": Data,
            "_Layer": Layer,
            "_new": object.__new__,
            "_op": op,
            "_kinds": element.by_type,
            "_known": ways.makers,
            "_declined": ways.declined,
            "_inner": ways.inner_function(op),
            "_named_dtype": named_dtype,
            "_scalars": SCALARS,
            "_outer": outer,
            "_is": is_,
            **_BUILTINS,
        }

    def _locals(self, name: str, i: int, role: str) -> Locals:
        key = role == "plain"
        parts = {
            part: f"{part.name}{i}"
            for part in self.parts
            if not key or (name == "key" and part.keys)
        }
        return Locals(name, self.values[name], parts, self._scalar(name), key)

    def _scalar(self, x: str) -> str:
        """The test for a Python scalar, or None if scalars are not allowed."""
        return f"_k in _scalars{f' or {x} is None' if x in self.optional else ''}"

    def of(self, name: str) -> dict[str, str]:
        """By parameter, the local variables of the part of this name."""
        return {
            n: local
            for n, x in self.locals.items()
            for part, local in x.parts.items()
            if part.name == name
        }

    def further(self) -> str:
        """The arguments after the first, as a view of the first stores them."""
        return tuple_text(
            f"_tuple({n}) if _isinstance({n}, _list) else {n}" for n in list(self.op.roles)[1:]
        )

    def written(self, of: str) -> Ending:
        """Write the function. `of`: the name of its operands in the file name of its source."""
        generated.run("\n".join(self.lines()), f"multigrad {of} in {self.op.name}", self.scope)
        compiled: Ending = self.scope["ending"]
        return compiled

    def lines(self) -> Lines:
        op = self.op
        yield f"def ending(_top, {', '.join(op.roles)}):"
        yield "    _e = _top._elem"
        yield from self.gate()
        yield "    _library = _e.library"
        yield "    _xp = _library.xp"
        yield "    _l = _e.level"
        if self.inside and not self.alone:
            yield "    _deep = _low = False"
        for name, role in op.roles.items():
            if role == "array":
                yield from (
                    self.only(self.locals[name])
                    if self.alone
                    else self.operand(self.locals[name], "    ")
                )
            elif role == "arrays":
                yield from self.operands(self.locals[name])
            elif name == "key":
                yield from self.key(self.locals[name])
            else:
                yield from self.setting(name, self.values[name])
        if self.inside and not self.alone and not self.saves:
            yield "    if _deep and _low:"
            for n, text in self.outer().items():
                yield f"        {self.values[n]} = {text}"
        yield from self.call()
        yield from self.finish()

    def outer(self) -> dict[str, str]:
        """By parameter, the text of its value, or of the Tensor of the base level that had it.

        Where a value is a layer, such Tensors are passed on: nodes further in take their cells.
        """
        return {
            n: f"_outer({n}, {self.values[n]})"
            for n, role in self.op.roles.items()
            if role != "plain" or n == "key"
        }

    def gate(self) -> Lines:
        """The cases that are declined, or left to another text, before operands are inspected."""
        yield from ()

    def call(self) -> Lines:
        if list(self.op.roles.values()) == ["array", "array"]:
            # complex.__mul__ accepts np.float64, which is a float, and returns no array
            x1, x2 = self.values.values()
            yield f"    if _type({x1}) is _complex and _isinstance({x2}, _float):"
            yield f"        {self.leave}"
        yield (
            f"    _fn = _inner if _deep else _xp.{self.op.name}"
            if self.inside
            else f"    _fn = _xp.{self.op.name}"
        )
        yield f"    _y = {call_text(self.op, '_fn', self.values)}"

    def finish(self) -> Lines:
        """Wrap the result `_y` and record it."""
        raise NotImplementedError

    # Taking operands apart

    def only(self, x: Locals) -> Lines:
        """Take apart the only array, which is `_top`."""
        yield f"    if {x.x}._view is not None:"
        yield f"        {x.x}._check()"
        yield f"        _e = {x.x}._elem"
        if not self.inside:
            yield "        if _e.layered:"
            yield f"            {self.leave}"
        yield f"    {x.value} = {x.x}._array"
        yield from x.taken("own", "    ")
        if self.inside:
            yield f"    _deep = {self.inside.format(q='_e', value=x.value)}"

    def operand(self, x: Locals, pad: str) -> Lines:
        """Take apart an array parameter, or an array of a list."""
        yield f"{pad}_k = _type({x.x})"
        yield from self.own(x, pad, "if")
        yield f"{pad}elif _kinds.get(_k) is _library or {x.scalar}:"
        yield f"{pad}    {x.value} = {x.x}"
        yield from x.taken("raw", pad + "    ")
        yield from self.lower(x, pad)

    def operands(self, xs: Locals) -> Lines:
        """Take apart a list of arrays: a tuple for each part."""
        if xs.x in self.optional:
            yield f"    if {xs.x} is None:"
            yield "        return _declined"
        yield from self.each(xs, self.operand, "    ")

    def key(self, key: Locals) -> Lines:
        """Take apart an indexing key, which may contain arrays."""
        yield f"    if _type({key.x}) is _tuple:"
        yield from self.each(key, self.entry, "        ")
        yield "    else:"
        yield from self.entry(key, "        ")

    def each(self, xs: Locals, one: Callable[[Locals, str], Lines], pad: str) -> Lines:
        """Take apart the elements of a list or a tuple, by `one`."""
        names = xs.all()
        x = Locals("_x", "_v", {part: part.name for part in xs.parts}, self._scalar("_x"), xs.key)
        yield f"{pad}{', '.join(names)} = {', '.join(['[]'] * len(names))}"
        yield f"{pad}for _x in {xs.x}:"
        yield from one(x, pad + "    ")
        for several, single in zip(names, x.all(), strict=True):
            yield f"{pad}    {several}.append({single})"
        yield f"{pad}{', '.join(names)} = {', '.join(f'_tuple({n})' for n in names)}"

    def entry(self, x: Locals, pad: str) -> Lines:
        """Take apart an entry of an indexing key."""
        yield f"{pad}_k = _type({x.x})"
        yield f"{pad}if _k not in _known:"
        yield from self.raw_entry(pad + "    ")
        yield f"{pad}    {x.value} = {x.x}"
        yield from x.taken("raw", pad + "    ")
        yield from self.own(x, pad, "elif")
        yield from self.lower(x, pad)

    def raw_entry(self, pad: str) -> Lines:
        """Refuse an entry that is not allowed in a key, if the library would accept it."""
        yield f"{pad}if _k is _list:"
        yield f"{pad}    return _declined"

    def own(self, x: Locals, pad: str, word: str) -> Lines:
        """Take apart an array of the ending's class and level."""
        yield f"{pad}{word} {self.classes} and {x.x}._elem.level == _l:"
        yield f"{pad}    if {x.x}._view is not None:"
        yield f"{pad}        {x.x}._check()"
        yield f"{pad}    _q = {x.x}._elem"
        other = "_q.library is not _library"
        other = other if self.inside else f"({other} or _q.layered)"
        yield f"{pad}    if _q is not _e and {other}:"
        yield f"{pad}        {self.leave}"
        yield f"{pad}    {x.value} = {x.x}._array"
        yield from x.taken("own", pad + "    ")
        if self.inside:
            yield f"{pad}    if {self.inside.format(q='_q', value=x.value)}:"
            yield f"{pad}        {self.deep_key if x.key else '_deep = True'}"

    def lower(self, x: Locals, pad: str) -> Lines:
        """Take apart an array of a lower level.

        One of the base level without a history is replaced by its value.
        """
        elem = f"{x.x}._elem"
        yield f"{pad}elif {_OF_TENSORS} and {elem}.run is None and {elem}.library is _library:"
        yield f"{pad}    if {x.x}._view is not None:"
        yield f"{pad}        {x.x}._check()"
        yield f"{pad}    if {x.x}._node is None:"
        yield f"{pad}        {x.value} = {x.x}._array"
        if self.inside:
            yield f"{pad}        _low = True"
        yield f"{pad}    else:"
        yield from self.as_layer(x, pad + "        ")
        yield from x.taken("layer", pad + "    ")
        if self.inside:
            yield f"{pad}elif _k in _known and {x.x}._elem.library is _library:"
            yield from self.as_layer(x, pad + "    ")
            yield from x.taken("layer", pad + "    ")
        yield f"{pad}else:"
        yield f"{pad}    {self.leave}"

    def as_layer(self, x: Locals, pad: str) -> Lines:
        """Keep a layer, which the operation on the inner values takes apart."""
        if not self.inside:
            yield f"{pad}{self.leave}"
            return
        yield f"{pad}{x.value} = {x.x}"
        yield f"{pad}{self.deep_key if x.key else '_deep = True'}"

    def setting(self, name: str, value: str) -> Lines:
        """A parameter that is not an array. A list may be changed by its owner."""
        if name == "dtype":
            named = f"_named_dtype(_library, {name})"
            yield f"    {value} = {named} if _type({name}) is _str else {name}"
        elif value != name:
            yield f"    {value} = _tuple({name}) if _isinstance({name}, _list) else {name}"


# ----- The ending of Tensors -----


class _Tensors(Text):
    """The text that records: a Tensor, a node."""

    classes = _OF_TENSORS
    saves = True
    parts = (
        Part("_n", own="{x}._node", layer="None", raw="None"),
        Part("_c", own="{x}._cell", layer="{x}._cell", raw="None", keys=True),
    )

    def __init__(self, op: Op) -> None:
        super().__init__(op)
        self.scope |= {
            "_Node": Node,
            "_tick": tick,
            "_gate": gate.get,
            "_record": record,
            "_shows": shows,
            "_rules": {},
            "_rule_of": rule_of,
            "_mark": mark,
        }
        nodes, cells = self.of("_n"), self.of("_c")
        self.ruled = nodes
        self.inner = tuple_text(self.values.values())
        self.cells = tuple_text(cells.get(n, "None") for n in op.roles)
        self.given = tuple_text(op.roles)
        everything = (
            f"{self.inner}, {tuple_text(nodes.get(n, 'None') for n in op.roles)}, {self.cells}"
        )
        self.generally = f"return _record(_op, {everything}, _y, _top, {self.given})"

    def call(self) -> Lines:
        # Constants of a run are reported before a node further in saves their values.
        yield "    if _deep:"
        yield "        _r = _gate()"
        yield "        if _r is not True:"
        yield f"            _r.looked({self.given})"
        if self.alone:
            yield from super().call()
            return
        yield "    if _deep and _low:"
        yield f"        _y = {call_text(self.op, '_inner', self.values | self.outer())}"
        yield "    else:"
        yield from (f"    {line}" for line in super().call())

    def as_layer(self, x: Locals, pad: str) -> Lines:
        # the node may save it
        yield f"{pad}{x.value} = {x.x}._frozen() if {_OF_TENSORS} else {x.x}"
        yield f"{pad}{self.deep_key if x.key else '_deep = True'}"

    def key(self, key: Locals) -> Lines:
        yield from super().key(key)
        # y[key] += v recognizes it by its identity
        yield f"    if _type({key.x}) is _tuple and _all(_map(_is, {key.value}, {key.x})):"
        yield f"        {key.value} = {key.x}"

    def finish(self) -> Lines:
        op = self.op
        if op.outputs != () or (op.view and not callable(op.view)):
            yield f"    {self.generally}"
            return
        if op.view:
            yield f"    if _shows(_op, {self.given}):"
            yield f"        {self.generally}"
        same = "".join(
            f" or _y is {self.values[n]}" for n, role in op.roles.items() if role == "array"
        )
        yield "    _k = _type(_y)"
        yield f"    if (_k not in _known and _kinds.get(_k) is not _library){same}:"
        yield f"        {self.generally}"
        yield "    _t = _new(_Tensor)"
        yield "    _t._array = _y"
        yield (
            "    _t._elem = _q = _e if _deep is _e.layered and _y.dtype == _e.dtype else "
            "_e.beside(_y)"
        )
        yield "    if _q.opaque:"
        yield f"        {self.generally}"
        yield "    _t._cell = _c = []"
        if op.kind == "nondifferentiable":
            yield "    _t._node = None"
            yield "    return _t"
        else:
            yield from self.recorded()

    def recorded(self) -> Lines:
        """Make the node, if an operand has one and the gate is open."""
        lists = [local for n, local in self.ruled.items() if self.op.roles[n] == "arrays"]
        nodes = list(self.ruled.values())
        anything = " or ".join(f"_any({n})" if n in lists else f"{n} is not None" for n in nodes)
        yield f"    if not ({anything}):"
        yield "        _t._node = None"
        yield "        return _t"
        yield "    _r = _gate()"
        yield "    if _r is not True:"
        yield "        _r = _r.at(_e.run, _e.level)"
        yield "        if not _r:"
        yield "            _t._node = None"
        yield "            return _t" + (
            ""
            if is_flat(self.op)
            else " if _r is False and _e.run is None or not _q.floating else _mark(_t)"
        )
        yield "    if not _q.floating:"
        yield "        _t._node = None"
        yield "        return _t"
        needs = (
            f"_tuple([_x is not None for _x in {n}])" if n in lists else f"{n} is not None"
            for n in nodes
        )
        yield f"    _needs = {tuple_text(needs)}"
        yield "    _w = _rules.get((_needs, _q.complex, _library))"
        yield "    if _w is None:"
        yield "        _w = _rules[_needs, _q.complex, _library] = _rule_of(_op, _needs, _q)"
        yield "    _rule, _save, _track = _w"
        yield "    _t._node = _m = _new(_Node)"
        yield "    _m.seq = _tick()"
        yield "    _m.rule = _rule"
        yield f"    _m.saved = _save({self.inner}, _y, _t, _library)"
        yield f"    _m.cells = _track({self.cells}, (_c,))"
        if len(nodes) == 1 and not lists:
            yield f"    _m.next = {nodes[0]}"
        else:
            yield (
                "    _next = [_x for _x in "
                f"{tuple_text(f'*{n}' if n in lists else n for n in nodes)} if _x is not "
                "None]"
            )
            yield "    _m.next = _next[0] if _len(_next) == 1 else _tuple(_next)"
        yield "    if _r is not True:"
        yield f"        _r.recorded(_m, {self.given}, _t)"
        yield "    return _t"


@per_operation
def _of_tensors(op: Op) -> Ending | None:
    """Write the ending that records."""
    return None if op.kind == "composite" else _Tensors(op).written("Tensors")


ways.ends_by(_of_tensors, Tensor, View, Data)
