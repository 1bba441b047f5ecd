"""Generated code for operations on batches: the endings for a Batched as the highest operand.

The template of dispatch/endings.py takes the operands apart. The library is called on whole
batches; if a value is itself a layer, multigrad's function is called on the next inner values. The
result becomes a Batched. Rare cases and errors are declined, so that `dispatch.general` and
`Batched._apply` handle them.
"""

from __future__ import annotations

from typing import Any

from ..core.element import SCALARS, Library
from ..core.level import Layer, outside
from ..core.tensor import lifted, strip
from ..dispatch.endings import Lines, Locals, Part, Text, tuple_text
from ..dispatch.general import same_structure
from ..dispatch.ways import Ending
from ..registry import Op, behind_batch, per_operation


@per_operation
def ending_of(op: Op, cls: Any) -> Ending | None:
    """Write the ending of an operation for operands whose highest is of class `cls`, a Batched."""
    text = _text(op)
    if text is None:
        return None
    text.scope |= {"_Batched": cls, "_made": cls._made}
    return text.written("batches")


def _text(op: Op) -> _Batches | None:
    """The text of the ending, None if the general path is as good."""
    if op.batching == "elementwise":
        return (
            _Elementwise(op)
            if "arrays" not in op.roles.values() and "key" not in op.roles
            else None
        )
    if op.batching == "axis" or op.batching == "leading":
        text = _Along(op)
        return (
            text
            if text.alone and (op.batching == "leading" or "axis" in op.roles or "axes" in op.roles)
            else None
        )
    return None if op.batching is None or op.batching == "form" else _ByRule(op)


# ----- Functions that generated code calls in rare cases -----


def namespace(x: Any, library: Library) -> Any:
    """The namespace for computing with `x`."""
    return library.bound if isinstance(x, Layer) else library.xp


def raised(x: Any, library: Library, ndim: int) -> Any:
    """A batch with axes of length 1 after its first, so that an example has `ndim` dimensions."""
    missing = ndim + 1 - len(x.shape)
    return (
        namespace(x, library).reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:]))
        if missing
        else x
    )


def leading(xp: Any, x: Any, own: bool, layered: bool) -> Any:
    """An operand for a batching rule: its first axis is the batch, of length 1 if it has none."""
    if layered:
        x = lifted(x)
    return x if own or x is None or type(x) in SCALARS else xp.expand_dims(x, axis=0)


def _strip_each(results: Any) -> Any:
    """Several outputs of a rule, constants among them as raw arrays."""
    return same_structure(results, [strip(x) for x in results])


# ----- Texts -----

_OWN = Part("_o", own="True", layer="False", raw="False", keys=True)
_RANK = Part(
    "_r", own="{value}.ndim - 1", layer="{value}.ndim", raw="0 if {scalar} else {value}.ndim"
)


class _Batches(Text):
    """The text that makes a Batched.

    It takes from an operand whether it is a batch, and the number of dimensions of an example.
    """

    classes = "_k is _Batched"

    def __init__(self, op: Op) -> None:
        super().__init__(op)
        self.scope |= {
            "_behind": behind_batch,
            "_raised": raised,
            "_leading": leading,
            "_lifted": lifted,
            "_outside": outside,
            "_strip": strip,
            "_strip_each": _strip_each,
            "_rule": getattr(op.batching, "fn", None),
            "_view": op.view,
            "_has": hasattr,
        }

    def _locals(self, name: str, i: int, role: str) -> Locals:
        """Leave out the parts if the operation takes one array, which must be the batch."""
        x = super()._locals(name, i, role)
        return x._replace(parts={}) if self.alone else x

    def gate(self) -> Lines:
        yield "    if _e.run.finished:"
        yield "        return _declined"

    def raw_entry(self, pad: str) -> Lines:
        """Handle an entry of a key; a rule inspects keys with functions of one library."""
        yield f"{pad}_h = _kinds.get(_k, _declined)"
        yield f"{pad}if _k is _list or (_h is not None and _h is not _library):"
        yield f"{pad}    return _declined"

    def finish(self) -> Lines:
        """Wrap the result, as a view if it is one."""
        op = self.op
        generally = f"return _made(_op, {tuple_text(op.roles)}, _y, _top)"
        if op.outputs != ():
            yield f"    {generally}"
            return
        yield "    if _deep:"
        yield "        if _type(_y) not in _known:"
        yield f"            {generally}"
        yield "        if not _e.layered or _y._elem.base is not _e.base:"
        yield "            _e = _y._elem.base.at(_e.run, _l, True, _Batched)"
        yield "    else:"
        yield "        if _kinds.get(_type(_y)) is not _library:"
        yield f"            {generally}"
        yield "        if _e.layered or _y.dtype != _e.dtype:"
        yield "            _e = _library.element(_y.dtype).at(_e.run, _l, False, _Batched)"
        yield "    _t = _new(_Batched)"
        yield "    _t._array = _y"
        yield "    _t._elem = _e"
        if op.view is False:
            yield from _no_view("    ")
            return
        first = next(iter(op.roles))
        if not self.alone:
            yield f"    if _type({first}) is not _Batched or {first}._elem.level != _l:"
            yield from _no_view("        ")
        if op.view == "layout":
            # a computed array on its own memory can always be reshaped without a copy
            yield (
                f"    _s = {'not copy' if 'copy' in op.roles else 'True'} and ({first}._view "
                f"is None and not _has({first}, '_given') or 'layout')"
            )
        elif op.view is not True:
            yield "    _s = " + (
                f"_view({', '.join(op.roles)})" if callable(op.view) else repr(op.view)
            )
        if op.view is not True:
            yield "    if _s is not True:"
            yield "        if _s:"
            yield f"            {generally}"
            yield from _no_view("        ")
        yield f"    _t._view = ({first}, _op, {self.further()}, None, None)"
        yield f"    _t._cell = _c = {first}._cell"
        yield "    _t._seen = _c[-1] if _c else 0"
        yield "    return _t"


def _no_view(pad: str) -> Lines:
    yield f"{pad}_t._cell = []"
    yield f"{pad}_t._view = None"
    yield f"{pad}return _t"


class _Elementwise(_Batches):
    """The text of elementwise operations.

    The batch comes first, and the axes of examples are aligned at the end. Axes are inserted after
    the batch if another operand has more.
    """

    parts = (_OWN, _RANK)

    def call(self) -> Lines:
        if not self.alone:
            yield from self.aligned()
        yield from super().call()

    def aligned(self) -> Lines:
        values = [self.values[n] for n in self.op.arrays]
        owns, ranks = (list(self.of(part).values()) for part in ("_o", "_r"))
        if len(values) == 2:
            yield f"    if {ranks[0]} != {ranks[1]}:"
            yield f"        if {ranks[0]} < {ranks[1]}:"
            yield f"            if {owns[0]}:"
            yield f"                {values[0]} = _raised({values[0]}, _library, {ranks[1]})"
            yield f"        elif {owns[1]}:"
            yield f"            {values[1]} = _raised({values[1]}, _library, {ranks[0]})"
            return
        yield f"    if not {' == '.join(ranks)}:"
        yield f"        _m = _max({', '.join(ranks)})"
        for value, own, rank in zip(values, owns, ranks, strict=True):
            yield f"        if {own} and {rank} < _m:"
            yield f"            {value} = _raised({value}, _library, _m)"


class _Along(_Batches):
    """The text of operations on one array along axes, and of matrix functions.

    Axes are counted from the one after the batch.
    """

    def setting(self, name: str, value: str) -> Lines:
        if self.op.batching == "leading" or name != ("axis" if "axis" in self.op.roles else "axes"):
            yield from super().setting(name, value)
            return
        yield "    _m = _a0.ndim - 1"
        yield f"    if _type({name}) is _int and -_m <= {name} < _m:"
        yield f"        {value} = {name} % _m + 1"
        yield f"    elif not _m and {name} is not None:"
        yield "        return _declined"
        yield "    else:"
        yield (
            f"        {value} = _tuple(_range(1, _m + 1)) if {name} is None else "
            f"_behind({name}, _m)"
        )

    def call(self) -> Lines:
        if self.op.batching == "leading":
            yield "    if _a0.ndim < 3:"
            yield "        return _declined"
        yield from super().call()


class _ByRule(_Batches):
    """The text that calls the batching rule of the operation.

    The rule runs on raw arrays, or, if a value is itself a layer, on layers only.
    """

    parts = (_OWN,)

    def call(self) -> Lines:
        op, values, own, takes = self.op, self.values, self.of("_o"), self.op.batching.takes
        first = next(iter(op.roles))
        if "axis" in op.roles and op.roles[first] == "array":  # an axis of 0-d examples
            mine = "" if self.alone else f" and {own[first]}"
            yield f"    if {values['axis']} is not None{mine} and {values[first]}.ndim == 1:"
            yield "        return _declined"
        given = values | {"xp": "_xp", "size": "_top._array.shape[0]"}
        given["batched"] = "{" + ", ".join(f"{n!r}: {self.batched(n)}" for n in op.roles) + "}"
        arrays = [
            n
            for n, role in op.roles.items()
            if role != "plain" and n in takes and not (self.alone and role == "array")
        ]
        layers = given | {
            n: f"_lifted({given[n]})" for n, role in op.roles.items() if role == "plain"
        }
        yield "    if _deep:"
        yield "        _xp = _library.bound"
        for n in arrays:
            yield f"        {values[n]} = {self.leading(n, own[n], True)}"
        yield "        with _outside():"
        yield f"            _y = _rule({', '.join(layers[n] for n in takes)})"
        yield f"        _y = {'_strip(_y)' if op.outputs == () else '_strip_each(_y)'}"
        yield "    else:"
        for n in arrays:
            if op.roles[n] == "array":
                none = f" and {values[n]} is not None" if n in self.optional else ""
                yield f"        if not {own[n]} and _type({values[n]}) not in _scalars{none}:"
                yield f"            {values[n]} = _xp.expand_dims({values[n]}, axis=0)"
            else:
                yield f"        if not _all({own[n]}):"
                yield f"            {values[n]} = {self.leading(n, own[n], False)}"
        yield f"        _y = _rule({', '.join(given[n] for n in takes)})"

    def batched(self, name: str) -> str:
        """For a parameter of a rule: whether it is batched, or a tuple of this for its parts."""
        value = self.values[name]
        if self.op.roles[name] == "plain" and name != "key":
            return f"(False,) * _len({value}) if _type({value}) is _tuple else False"
        return self.of("_o").get(name, "True")

    def leading(self, name: str, own: str, layered: bool) -> str:
        """Arrays for a rule: with the batch as their first axis."""
        value = self.values[name]
        if self.op.roles[name] == "array":
            return f"_leading(_xp, {value}, {own}, {layered})"
        return f"_tuple([_leading(_xp, _x, _o, {layered}) for _x, _o in _zip({value}, {own})])"
