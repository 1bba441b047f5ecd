"""Generated code for operands that straight code does not handle.

These are operands of any level and dtype, lists, keys and layers. `way(*values)` of an operation
finds the operand of the highest level, and calls the ending for its class (see endings.py). Ways
and endings are generated when they are first needed. They leave rare cases and errors to
`dispatch.general`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..core import element
from ..core.element import SCALARS
from ..core.level import Layer, Standing
from ..provided import wanted
from ..registry import OPS, Op, per_operation
from . import generated, plans
from .settings import FLAG, OPTIONAL_FLAG, Kind, kinds

declined: Any = object()
"""The result of a way that leaves the operation to the general path."""

Ending = Callable[..., Any]

makers: dict[type, Callable[[Op], Ending | None]] = {}
"""By the class of the highest operand, the function that writes the ending of an operation.

It returns None if the general path is as good.
"""


def ends_by(maker: Callable[[Op], Ending | None], *classes: type) -> None:
    """Use `maker` to write the endings for operands of these classes."""
    makers.update(dict.fromkeys(classes, maker))


@wanted
def inner_function(op: Op) -> Callable[..., Any]:
    """The function of an operation for the next inner values.

    Provided by dispatch/fast.py.
    """
    raise NotImplementedError


class Way:
    """The way of an operation, written when it is first needed.

    It is the key of the endings among the plans of an Element.
    """

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
    """The ending for operands of which `top` is the highest.

    It is added to the plans of the Element of `top`.
    """
    op = way.op
    maker = makers.get(type(top))
    if maker is None or OPS.get(op.name) is not op or plans.interpreting():
        return _decline
    written = maker(op) or _decline
    plans.note(op, top._elem, way, written)
    return written


# ----- Classify -----


def _written(op: Op, way: Way) -> Callable[..., Any]:
    scope = {
        "_kinds": element.operands,
        "_admitted": element.admitted,
        "_known": makers,
        "_Layer": Layer,
        "_declined": declined,
        "_key": way,
        "_ending": _ending,
        "_scalars": SCALARS,
        "_settings": kinds(op),
        "_wrong": _is_wrong,
    }
    generated.run("\n".join(_way_lines(op)), f"multigrad way of {op.name}", scope)
    function: Callable[..., Any] = scope["way"]
    return function


def _way_lines(op: Op) -> Iterator[str]:
    names = ", ".join(op.roles)
    yield f"def way({names}):"
    yield "    _l = -1"
    for name, role in op.roles.items():
        if role == "array":
            # the operator @ takes no numbers
            yield from _seen(name, "    ", numbers=op.kind != "multilinear")
        elif role == "arrays":
            yield f"    for _x in {name} or ():"
            yield from _seen("_x", "        ")
        else:
            yield from _plain_lines(name, kinds(op).get(name))
    yield "    if _l < 0:"
    yield "        return _declined"
    yield "    _f = _top._elem.plans.get(_key)"
    yield "    if _f is None:"
    yield "        _f = _ending(_key, _top)"
    yield f"    return _f(_top, {names})"


def _seen(x: str, pad: str, numbers: bool = True) -> Iterator[str]:
    """Compare the level of an operand with the highest so far.

    `numbers`: it may be a Python scalar.
    """
    yield f"{pad}_k = type({x})"
    yield from _compared(x, pad, "if", numbers)


def _compared(x: str, pad: str, word: str, numbers: bool = True) -> Iterator[str]:
    """Compare the level of an operand of type `_k`."""
    yield f"{pad}{word} _k in _known:"
    yield f"{pad}    if {x}._elem.level > _l:"
    yield f"{pad}        _top = {x}"
    yield f"{pad}        _l = {x}._elem.level"
    yield (
        f"{pad}elif _k not in _kinds and not "
        f"_admitted({x}){'' if numbers else ' or _k in _scalars'}:"
    )
    yield f"{pad}    return _declined"


def _is_wrong(kind: Kind, x: Any) -> bool:
    """Whether the general path must replace a setting of an unusual type, or explain the error."""
    return isinstance(x, (list, Layer, Standing)) or not kind.accepts(x)


def _plain_lines(name: str, kind: Kind | None) -> Iterator[str]:
    """The text for a parameter that is not an array.

    An indexing key may contain arrays; for other parameters the general path explains the error.
    """
    pad = "    "
    other = (
        f"isinstance({name}, (list, _Layer))"
        if kind is None
        else f"not {kind.usual.format(n=name)} and _wrong(_settings[{name!r}], {name})"
    )
    if kind is FLAG or kind is OPTIONAL_FLAG:
        yield f"{pad}if {other}:"
        yield f"{pad}    return _declined"
        return
    yield f"{pad}_k = type({name})"
    yield f"{pad}if _k is tuple or _k is list:"
    yield f"{pad}    for _x in {name}:"
    if name == "key":
        yield from _seen("_x", pad + "        ")
        yield f"{pad}        if _k is tuple or _k is list:"
        yield f"{pad}            return _declined"
        yield from _compared(name, pad, "elif")
    else:
        yield f"{pad}        if isinstance(_x, _Layer):"
        yield f"{pad}            return _declined"
        yield f"{pad}elif {other}:"
        yield f"{pad}    return _declined"
