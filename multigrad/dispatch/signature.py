"""The signature of a call: what decides which runner carries it out (see runners.py).

The key of a call has a part for each parameter. That of an array object is the Kind of its Element,
that of any other operand is its type. The part of a setting is its type. If the value of a setting
decides the dtype of the result, or whether the result is a view, the value is in the key, too.

A runner begins with guards, which test what the key leaves open: the order of levels, the dtype of
raw arrays, whether a constant of the base level has a history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..core.element import Kind
from ..core.level import Layer
from ..core.tensor import Data, Tensor, View
from ..registry import Op
from .generated import BUILTINS, tuple_text
from .settings import kinds

LONG = 8
"""The length of a list of arrays above which runners handle its elements in a loop."""


def _kind_of_tensor(x: Any) -> Kind:
    x._check()
    kind: Kind = x._elem.kind
    return kind


fresh: dict[type, Callable[[Any], Any]] = dict.fromkeys((Tensor, View, Data), _kind_of_tensor)
"""By class of array objects, the function that brings one up to date and returns its Kind."""


def _kind_of_layer(x: Any) -> Any:
    """The part of a key for a layer besides Tensors, which is brought up to date.

    After the end of its transformation this is its class, which the general path handles.
    """
    if x._elem.run.finished:
        return type(x)
    if x._view is not None:
        x._check()
    return x._elem.kind


def key_by_kind(cls: type) -> None:
    """Let keys have the Kinds of the layers of a class."""
    fresh[cls] = _kind_of_layer


class Operand(NamedTuple):
    """An operand in the text of a runner.

    x       the text of the operand itself
    value   the text of its value
    status  what kind of operand it is, a name of the list below
    layer   whether its value is an array object
    elem    its Element, or that of raw arrays of its dtype
    parts   the Operands of the elements of a list; of a long list, one that stands for all

    own     an array object of the level of the operation
    const   a Tensor of the base level without a history, if the operation has a higher level
    layer   another array object of a lower level
    raw     a raw array
    scalar  a Python scalar
    none    None, or an entry of an indexing key that is no array
    list    a short list of arrays
    many    a list of more than LONG arrays
    """

    x: str
    value: str
    status: str
    layer: bool = False
    elem: Any = None
    parts: tuple[Operand, ...] = ()

    @property
    def array(self) -> bool:
        """Whether it is an array, or an array object."""
        return self.status not in ("scalar", "none")

    @property
    def cell(self) -> str:
        """The text of its version cell, or of a tuple with those of the elements of a list."""
        if self.status == "list":
            return tuple_text(p.cell for p in self.parts)
        if self.status == "many":
            return f"_tuple([_each._cell for _each in {self.x}])"
        return f"{self.x}._cell" if self.status in ("own", "const", "layer") else "None"


def is_keyed(op: Op) -> bool:
    """Whether runners carry out an operation."""
    return op.kind != "composite" and bool(op.arrays)


def key_lines(op: Op, key_is_plain: bool) -> Iterator[str]:
    """The text that computes the key of a call, as `_key`."""
    parts, checked = [], kinds(op)
    for i, (name, p) in enumerate(op.signature.parameters.items()):
        role, k = op.roles[name], f"_kind{i}"
        if role == "array":
            yield f"    {k} = _type({name})"
            # the memory of a view was not written since it was last used
            seen = f"({name}._cell[-1] if {name}._cell else 0) == {name}._seen"
            yield f"    if {k} is _Tensor or {k} is _View and {seen}:"
            yield f"        {k} = {name}._elem.kind"
            yield f"    elif {k} in _fresh:"
            yield f"        if {name}._view is None and not {name}._elem.run.finished:"
            yield f"            {k} = {name}._elem.kind"
            yield "        else:"
            yield f"            {k} = _fresh[{k}]({name})"
        elif role == "arrays":
            one = "_each._elem.kind if _type(_each) is _Tensor else _kind(_each)"
            short = f"_tuple([{one} for _each in {name}]) if _len({name}) <= {LONG}"
            yield f"    {k} = None if {name} is None else {short} else _kinds_of({name})"
        elif name == "key":
            if key_is_plain:
                continue
            yield f"    {k} = _tuple(_map(_kind, key)) if _type(key) is _tuple else _kind(key)"
        elif name == "dtype":
            k = "(None if dtype is None else _by_value(dtype))"
        elif name == "copy":
            k = "(copy if copy is True or copy is False else _type(copy))"
        else:
            yield f"    {k} = _type({name})"
            if type(p.default) is not bool and name not in checked:
                yield f"    if {k} is _tuple or {k} is _list:"
                yield f"        for _each in {name}:"
                yield "            if _type(_each) is not _int:"
                yield f"                {k} = ({k}, *_map(_type, {name}))"
                yield "                break"
        parts.append(k)
    yield f"    _key = {parts[0] if len(parts) == 1 else '(' + ', '.join(parts) + ')'}"


def kind_of(x: Any) -> Any:
    """The part of a key for an operand."""
    renew = fresh.get(type(x))
    return type(x) if renew is None else renew(x)


def kinds_of(xs: Sequence[Any]) -> Any:
    """The part of a key for a long list: the one part for all of its elements, or several."""
    found = {x._elem.kind if type(x) is Tensor else kind_of(x) for x in xs}
    return found.pop() if len(found) == 1 else frozenset(found)


def classes(key: Any) -> Iterator[type]:
    """The classes in a key."""
    if isinstance(key, tuple | frozenset):
        for part in key:
            yield from classes(part)
    elif isinstance(key, type):
        yield key


def by_value(x: Any) -> Any:
    """The part of a key for a setting whose value matters."""
    if x is None or isinstance(x, Layer):
        return type(x)
    try:
        hash(x)
    except TypeError:
        return type(x)
    return type(x), x  # the dtypes of two libraries may be equal, or warn when they are compared


names: dict[str, Any] = BUILTINS | {
    "_by_value": by_value,
    "_fresh": fresh,
    "_kind": kind_of,
    "_kinds_of": kinds_of,
}
"""The objects that the text of a key refers to."""
