"""Straight code for operations on batches: the ending that `engine/ways.py` calls where a Batched is the operand of the highest level.

Per operation and way of batching a function is written. It takes the operands apart, calls the library on whole batches, or, where a value is
itself a layer, our own function one layer further in, and makes a Batched of the result. What is rare or wrong it declines, so that
`dispatch.general` and `Batched._apply` run the operation, or say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..engine import element, generated, ways
from ..engine.dispatch import _same_structure as same_structure
from ..engine.dispatch import is_array
from ..engine.element import SCALARS, Host, named_dtype
from ..engine.level import Layer, outside
from ..engine.rules import positions
from ..engine.tensor import strip, wrap
from ..registry import Op, behind_batch, per_operation

_BUILTINS = {f"_{b.__name__}": b for b in (all, bool, complex, float, int, len, list, map, max, range, tuple, type, zip)}
"""By other names, since parameters may have these: those of clip are min and max."""


@per_operation
def ending_of(op: Op, cls: Any) -> ways.Ending | None:
    """Write the ending of an operation for operands of which one of class `cls`, which is Batched, is the highest."""
    lines = _lines(op)
    if lines is None:
        return None
    scope = {
        "_Batched": cls, "_new": object.__new__, "_op": op, "_kinds": element.by_type,
        "_known": ways.makers, "_declined": ways.declined, "_scalars": SCALARS, "_named_dtype": named_dtype, "_behind": behind_batch,
        "_raised": raised, "_leading": leading, "_lifted": lifted, "_outside": outside, "_further_in": _further_in, "_strip": strip,
        "_stripped": _stripped, "_made": cls._made,
        "_inner": ways.inner_function(op), **_BUILTINS, "_rule": getattr(op.batching, "fn", None), "_view": op.view,
    }
    generated.run("\n".join(lines), f"multigrad batches in {op.name}", scope)
    found: ways.Ending = scope["ending"]
    return found


def _lines(op: Op) -> Iterator[str] | None:
    """The text of the ending, None where the general path is as good."""
    if op.batching == "elementwise":
        return _elementwise(op) if "arrays" not in op.roles.values() else None
    if op.batching == "axis" or op.batching == "leading":
        return _along(op) if _is_alone(op) else None
    return None if op.batching is None or op.batching == "form" else _by_rule(op)


# ----- What generated code calls where that is rare -----


def namespace(x: Any, host: Host) -> Any:
    """The namespace that computes with `x`."""
    return host.bound if isinstance(x, Layer) else host.xp


def raised(x: Any, host: Host, ndim: int) -> Any:
    """A batch with axes of length 1 behind its first, so that an example has `ndim` dimensions."""
    missing = ndim + 1 - len(x.shape)
    return namespace(x, host).reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:])) if missing else x


def lifted(x: Any) -> Any:
    """A raw array as a constant, so that a rule sees layers only."""
    return wrap(x) if is_array(x) and not isinstance(x, Layer) else x


def leading(xp: Any, x: Any, own: bool, layered: bool) -> Any:
    """An operand as a batching rule takes it: with the batch as its first axis, of length 1 if it has none."""
    if layered:
        x = lifted(x)
    return x if own or x is None or type(x) in SCALARS else xp.expand_dims(x, axis=0)


def _stripped(found: Any) -> Any:
    """Several outputs of a rule, constants among them as raw arrays."""
    return same_structure(found, [strip(x) for x in found])


def _further_in(x: Any, host: Host) -> Any:
    """The value of a layer of a lower level, which a constant of the base level is not to its array. Anything else is declined."""
    return strip(x) if type(x) in ways.makers and x._elem.host is host else ways.declined


# ----- Kinds of batching -----


def _head(op: Op) -> Iterator[str]:
    yield f"def ending(_top, {', '.join(op.roles)}):"
    yield "    _e = _top._elem"
    yield "    if _e.run.finished:"
    yield "        return _declined"
    yield "    _host = _e.host"


def _elementwise(op: Op) -> Iterator[str]:
    """The batch comes first, the axes of examples are aligned at the end."""
    arrays = [n for n, role in op.roles.items() if role == "array"]
    local = {n: f"_a{i}" for i, n in enumerate(arrays)}
    yield from _head(op)
    if _is_alone(op):
        yield from _alone(op)
    else:
        yield "    _l = _e.level"
        yield "    _deep = False"
        for i, n in enumerate(arrays):
            yield from _operand(n, local[n], f"_o{i}", f"_r{i}", _optional(op, n), "    ")
        yield from _aligned(len(arrays))
    if "dtype" in op.roles:
        local["dtype"] = "_d"
        yield "    _d = _named_dtype(_host, dtype) if _type(dtype) is str else dtype"
    yield f"    _y = {_call(op, '(_inner if _deep else _host.xp.' + op.name + ')', local)}"
    yield from _wrapped(op)


def _aligned(n: int) -> Iterator[str]:
    """Insert axes behind the batch, where the examples of another operand have more dimensions."""
    if n == 2:
        yield "    if _r0 != _r1:"
        yield "        if _r0 < _r1:"
        yield "            if _o0:"
        yield "                _a0 = _raised(_a0, _host, _r1)"
        yield "        elif _o1:"
        yield "            _a1 = _raised(_a1, _host, _r0)"
        return
    ranks = [f"_r{i}" for i in range(n)]
    yield f"    if not {' == '.join(ranks)}:"
    yield f"        _m = _max({', '.join(ranks)})"
    for i in range(n):
        yield f"        if _o{i} and _r{i} < _m:"
        yield f"            _a{i} = _raised(_a{i}, _host, _m)"


def _is_alone(op: Op) -> bool:
    """Whether there is one array, which is the batch then."""
    roles = list(op.roles.values())
    return roles[0] == "array" and roles.count("array") == 1 and "arrays" not in roles and "key" not in op.roles


def _alone(op: Op) -> Iterator[str]:
    """Take that array apart."""
    x = next(iter(op.roles))
    yield f"    if {x}._born is not None:"
    yield f"        {x}._check()"
    yield f"        _e = {x}._elem"
    yield "    _l = _e.level"
    yield "    _deep = _e.layered"
    yield f"    _a0 = {x}._array"


def _along(op: Op) -> Iterator[str]:
    """Arguments of an operation on one array along axes, or of a matrix function."""
    local = {next(iter(op.roles)): "_a0"}
    yield from _head(op)
    yield from _alone(op)
    yield "    _m = _a0.ndim - 1"
    if op.batching == "axis":
        axis = "axis" if "axis" in positions(op) else "axes"
        local[axis] = "_x"
        yield f"    if _type({axis}) is _int and -_m <= {axis} < _m:"
        yield f"        _x = {axis} % _m + 1"
        yield "    else:"
        yield f"        _x = _tuple(_range(1, _m + 1)) if {axis} is None else _behind({axis}, _m)"
    else:
        yield "    if _m < 2:"
        yield "        return _declined"
    if "dtype" in op.roles:
        local["dtype"] = "_d"
        yield "    _d = _named_dtype(_host, dtype) if _type(dtype) is str else dtype"
    yield f"    _y = {_call(op, '(_inner if _deep else _host.xp.' + op.name + ')', local)}"
    yield from _wrapped(op)


def _by_rule(op: Op) -> Iterator[str]:
    """The batching rule of the operation: on raw arrays, or, where a value is itself a layer, on layers only."""
    takes = op.batching.takes
    roles = {n: "key" if n == "key" and role == "plain" else role for n, role in op.roles.items()}
    local = {n: n if role == "plain" else f"_a{i}" for i, (n, role) in enumerate(roles.items())}
    own = {n: f"_o{i}" for i, n in enumerate(roles)}
    yield from _head(op)
    alone = _is_alone(op)
    if alone:
        yield from _alone(op)
    else:
        yield from _operands(op, roles, local, own)
    given = local | {"xp": "_xp", "size": "_top._array.shape[0]"}
    given["batched"] = "{" + ", ".join(f"{n!r}: {'True' if alone and n == next(iter(roles)) else _batched(op, n, own[n])}" for n in roles) + "}"
    arrays = [n for n, role in roles.items() if role != "plain" and n in takes and not (alone and role == "array")]
    layers = given | {n: f"_tuple(_map(_lifted, {n})) if _type({n}) is _tuple else _lifted({n})" for n, role in roles.items() if role == "plain"}
    yield "    if _deep:"
    yield "        _xp = _host.bound"
    for n in arrays:
        yield f"        {local[n]} = {_as_layer(roles[n], local[n], own[n])}"
    yield "        with _outside():"
    yield f"            _y = _rule({', '.join(layers[n] for n in takes)})"
    yield f"        _y = {'_strip(_y)' if op.outputs == () else '_stripped(_y)'}"
    yield "    else:"
    yield "        _xp = _host.xp"
    for n in arrays:
        if roles[n] == "array":
            none = f" and {local[n]} is not None" if _optional(op, n) else ""
            yield f"        if not {own[n]} and _type({local[n]}) not in _scalars{none}:"
            yield f"            {local[n]} = _xp.expand_dims({local[n]}, axis=0)"
        elif roles[n] == "arrays":
            yield f"        if not _all({own[n]}):"
            yield f"            {local[n]} = [_leading(_xp, _x, _o, False) for _x, _o in _zip({local[n]}, {own[n]})]"
            yield f"        {local[n]} = _tuple({local[n]})"
    yield f"        _y = _rule({', '.join(given[n] for n in takes)})"
    yield from _wrapped(op)


# ----- Operands -----


def _optional(op: Op, name: str) -> bool:
    return op.signature.parameters[name].default is None


def _operand(x: str, value: str, own: str, rank: str, optional: bool, pad: str) -> Iterator[str]:
    """Take an operand apart: its value one layer further in, whether that is a batch, the number of dimensions of an example."""
    def found(text: str, batch: bool, ndim: str) -> Iterator[str]:
        if value != text:
            yield f"{pad}    {value} = {text}"
        yield f"{pad}    {own} = {batch}"
        if rank:
            yield f"{pad}    {rank} = {ndim}"

    yield f"{pad}_k = _type({x})"
    yield f"{pad}if _k is _Batched and {x}._elem.level == _l:"
    yield f"{pad}    if {x}._born is not None:"
    yield f"{pad}        {x}._check()"
    yield f"{pad}    _q = {x}._elem"
    yield f"{pad}    if _q is not _e and _q.host is not _host:"
    yield f"{pad}        return _declined"
    yield f"{pad}    if _q.layered:"
    yield f"{pad}        _deep = True"
    yield from found(f"{x}._array", True, f"{value}.ndim - 1")
    yield f"{pad}elif _k in _scalars{f' or {x} is None' if optional else ''}:"
    yield from found(x, False, "0")
    yield f"{pad}else:"
    yield f"{pad}    {value} = {x} if _kinds.get(_k) is _host else _further_in({x}, _host)"
    yield f"{pad}    if {value} is not {x}:"
    yield f"{pad}        if {value} is _declined:"
    yield f"{pad}            return _declined"
    yield f"{pad}    elif _k in _known:"
    yield f"{pad}        _deep = True"
    yield from found(value, False, f"{value}.ndim")


def _operands(op: Op, roles: dict[str, str], local: dict[str, str], own: dict[str, str]) -> Iterator[str]:
    """Take all operands of a batching rule apart."""
    yield "    _l = _e.level"
    yield "    _deep = False"
    for n, role in roles.items():
        if role == "array":
            yield from _operand(n, local[n], own[n], "", _optional(op, n), "    ")
        elif role == "arrays":
            if _optional(op, n):
                yield f"    if {n} is None:"
                yield "        return _declined"
            yield f"    {local[n]}, {own[n]} = [], []"
            yield from _each(n, local[n], own[n], "    ")
        elif role == "key":
            yield from _key(n, local[n], own[n])


def _each(xs: str, value: str, own: str, pad: str) -> Iterator[str]:
    """The same of a list of arrays."""
    yield f"{pad}for _x in {xs}:"
    yield from _operand("_x", "_v", "_o", "", False, pad + "    ")
    yield f"{pad}    {value}.append(_v)"
    yield f"{pad}    {own}.append(_o)"


def _key(key: str, value: str, own: str) -> Iterator[str]:
    """An indexing key, which may hold batches."""
    yield f"    if _type({key}) is _tuple:"
    yield f"        {value}, {own} = [], []"
    yield f"        for _x in {key}:"
    yield from _entry("_x", "_v", "_o", "            ")
    yield f"            {value}.append(_v)"
    yield f"            {own}.append(_o)"
    yield f"        {value}, {own} = _tuple({value}), _tuple({own})"
    yield "    else:"
    yield from _entry(key, value, own, "        ")


def _entry(x: str, value: str, own: str, pad: str) -> Iterator[str]:
    yield f"{pad}_k = _type({x})"
    yield f"{pad}{value} = {x}"
    yield f"{pad}{own} = False"
    yield f"{pad}if _k not in _known:"
    yield f"{pad}    _h = _kinds.get(_k, _declined)"
    yield f"{pad}    if _k is _list or (_h is not None and _h is not _host):"
    yield f"{pad}        return _declined"
    yield f"{pad}elif {x}._elem.level != _l or _k is not _Batched:"
    yield f"{pad}    {value} = _further_in({x}, _host)"
    yield f"{pad}    if {value} is _declined:"
    yield f"{pad}        return _declined"
    yield f"{pad}    _deep = _deep or {value} is {x}"
    yield f"{pad}elif {x}._elem.host is not _host:"
    yield f"{pad}    return _declined"
    yield f"{pad}else:"
    yield f"{pad}    {x}._check()"
    yield f"{pad}    {value} = {x}._array"
    yield f"{pad}    {own} = True"
    yield f"{pad}    _deep = _deep or {x}._elem.layered"


def _batched(op: Op, name: str, own: str) -> str:
    """What a rule is told of a parameter: whether it is batched, or, of a tuple, each of its parts."""
    if op.roles[name] == "plain" and name != "key":
        return f"(False,) * _len({name}) if _type({name}) is _tuple else False"
    return f"_tuple({own})" if op.roles[name] == "arrays" else own


def _as_layer(role: str, value: str, own: str) -> str:
    """A value as a rule takes it where one of them is a layer."""
    if role == "array":
        return f"_leading(_xp, {value}, {own}, True)"
    if role == "arrays":
        return f"_tuple([_leading(_xp, _x, _o, True) for _x, _o in _zip({value}, {own})])"
    return f"_tuple(_map(_lifted, {value})) if _type({value}) is _tuple else _lifted({value})"


# ----- Call, wrap -----


def _call(op: Op, function: str, local: dict[str, str]) -> str:
    parts = []
    for p in op.signature.parameters.values():
        text = local.get(p.name, p.name)
        parts.append(f"{p.name}={text}" if p.kind is p.KEYWORD_ONLY else text)
    return f"{function}({', '.join(parts)})"


def _wrapped(op: Op) -> Iterator[str]:
    """Make a Batched of the result, a view where it is one."""
    names = list(op.roles)
    generally = f"return _made(_op, ({', '.join(names)},), _y, _top)"
    if op.outputs != ():
        yield f"    {generally}"
        return
    yield "    if _deep:"
    yield "        if _type(_y) not in _known:"
    yield f"            {generally}"
    yield "        if not _e.layered or _y._elem.base is not _e.base:"
    yield "            _e = _y._elem.base.at(_e.run, _l, True, _Batched)"
    yield "    else:"
    yield "        if _kinds.get(_type(_y)) is not _host:"
    yield f"            {generally}"
    yield "        if _e.layered or _y.dtype != _e.dtype:"
    yield "            _e = _host.element(_y.dtype).at(_e.run, _l, False, _Batched)"
    yield "    _t = _new(_Batched)"
    yield "    _t._array = _y"
    yield "    _t._elem = _e"
    if op.view is False:
        yield from _no_view("    ")
        return
    first = names[0]
    if not _is_alone(op):
        yield f"    if _type({first}) is not _Batched or {first}._elem.level != _l:"
        yield from _no_view("        ")
    if op.view == "layout":  # of an array of its own any reshape is one
        yield f"    _s = {'not copy' if 'copy' in op.roles else 'True'} and ({first}._born is None or 'layout')"
    elif op.view is not True:
        yield "    _s = " + (f"_view({', '.join(names)})" if callable(op.view) else repr(op.view))
    if op.view is not True:
        yield "    if _s is not True:"
        yield "        if _s:"
        yield f"            {generally}"
        yield from _no_view("        ")
    yield f"    _t._base = {first}"
    arguments = "".join(f"_tuple({n}) if _type({n}) is _list else {n}, " for n in names[1:])
    yield f"    _t._how = (_op, ({arguments}), None, None)"
    yield f"    _t._cell = _c = {first}._cell"
    yield "    _t._born = _len(_c)"
    yield "    return _t"


def _no_view(pad: str) -> Iterator[str]:
    yield f"{pad}_t._cell = []"
    yield f"{pad}_t._born = _t._how = None"
    yield f"{pad}return _t"
