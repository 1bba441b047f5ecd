"""What operations lose: each is judged after it was called, and results without a history are followed until numbers are made of them.

What happens inside of an operation, in a function with a derivative of its own, in a hook or in a backward pass is not looked at. A composite
operation is what it consists of.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from ...engine.dispatch import recording_at
from ...engine.graph import AccumulateGrad, Node
from ...engine.inplace import DIRECT
from ...engine.layout import memory
from ...engine.level import Layer
from ...engine.tensor import Tensor
from ...registry import OPS, Op
from ..graphs.noting import OWN, UNKNOWN, Site, dtype_name, site, skipped
from .detect import BreakReport, Leaf
from .sites import behind, levels_of, nodes_of, note, place, reports

_inside = threading.local()
"""`depth`: how many operations are running within each other on this thread."""


# Values without a history


class Source(NamedTuple):
    """What a value without a history was made by: a break as soon as it is used as a value.

    kind       "comparison", or "no_grad" for what is a part of something, and may be there to be written to
    parameter  whether it is part of a leaf that requires grad
    """

    kind: str
    what: str
    where: Site
    leaves: list[tuple[BreakReport, frozenset[Leaf]]]
    parameter: bool = False

    def used(self) -> None:
        """Have the reports tell of it."""
        for report, leaves in self.leaves:
            if report in reports[0]:
                report.add(self.kind, self.what, self.where, leaves)


_sources: dict[int, tuple[weakref.ref[Any], tuple[Source, ...]]] = {}
"""By the id of the value, which is known weakly."""


def sources_of(x: Any) -> tuple[Source, ...]:
    """What a value was made by that has not been told yet."""
    found = _sources.get(id(x))
    return found[1] if found is not None and found[0]() is x else ()


def follow(values: Iterable[Any], sources: Sequence[Source]) -> None:
    """Remember what these values were made by, beside what is known already."""
    for x in values if sources else ():
        key = id(x)
        together = tuple({id(s): s for s in (*sources_of(x), *sources)}.values())
        _sources[key] = weakref.ref(x, lambda _, key=key: _sources.pop(key, None)), together  # type: ignore[misc]


def forget() -> None:
    """Nobody watches any more."""
    _sources.clear()


def _shows(op: Op, outs: Sequence[Any]) -> bool:
    """Whether the results are parts of an operand, which may be there to be written to, as in `w[:2] -= 0.1`."""
    return op.name == "getitem" or all(getattr(x, "_born", None) is not None for x in outs)


# Operations


class _Operands:
    """The operands of an operation, as they were before it: pairs of a parameter and its argument. `smooth`: the parameters with a derivative.

    tracked  the histories of those that have any, and the parameters of these
    levels   at which any has one
    sources  of those that have none
    """

    def __init__(self, named: Iterable[tuple[str, Any]], smooth: Collection[str] | None = None) -> None:
        given = [(name, v) for name, value in named for v in (value if isinstance(value, (list, tuple)) else (value,)) if isinstance(v, Layer)]
        self.tracked = [(name, nodes) for name, v in given if (nodes := nodes_of(v))]
        self.levels = {k for _, v in given for k in levels_of(v)}
        self.sources = [s for name, v in given if smooth is None or name in smooth for s in sources_of(v)]

    @property
    def nodes(self) -> list[Node | None]:
        """All histories."""
        return [n for _, nodes in self.tracked for n in nodes]

    def mark(self, frame: FrameType | None) -> None:
        """Note which leaves were used, and which a transformation takes the derivative by, forward."""
        for _, nodes in self.tracked:
            moves = False
            for n in nodes:
                moves = moves or n is None
                if type(n) is AccumulateGrad:
                    for report in reports[0]:
                        leaf = report.leaf(n)
                        leaf.reached = leaf.reached or moves
                        if leaf.used is None:
                            leaf.used = site(frame, skipped()) or UNKNOWN


def _smooth(op: Op) -> Collection[str] | None:
    return None if op.kind == "nondifferentiable" else op.differentiable


def applying(original: Any) -> Any:
    """For `_apply` of a layer."""
    apply = original.__func__ if isinstance(original, (staticmethod, classmethod)) else original

    def watched(op: Op, values: tuple[Any, ...], top: Any) -> Any:
        result = _deeper(apply, op, values, top)
        if not _depth():
            pairs = [(name, value) for (name, role), value in zip(op.roles.items(), values, strict=True) if role != "plain"]
            _look(op, _Operands(pairs, _smooth(op)), top, result, sys._getframe(1))
        return result

    return staticmethod(watched)


def _depth() -> int:
    return getattr(_inside, "depth", 0)


def _deeper(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call what is not to be looked into."""
    depth = _depth()
    _inside.depth = depth + 1
    try:
        return function(*args, **kwargs)
    finally:
        _inside.depth = depth


def _look(op: Op, operands: _Operands, top: Any, result: Any, frame: FrameType, written: bool = False) -> None:
    if not operands.tracked and not operands.sources:
        return
    operands.mark(frame)
    outs = [x for x in (result if isinstance(result, (tuple, list)) else (result,)) if isinstance(x, Layer)]
    if not outs or (op.chapter in ("creation", "data_type") and op.kind == "nondifferentiable"):  # these ask for shapes and dtypes
        return
    floating = any(x._elem.floating for x in outs)
    part = not written and _shows(op, outs)
    if operands.sources and place(frame) is not None:
        for s in operands.sources:
            if part if s.kind == "no_grad" else not floating:
                follow(outs, [s])
            else:
                s.used()
    if operands.tracked:
        kept = {k for x in outs for k in levels_of(x)}
        if written:
            kept.discard(top._level)  # its own history, to which nothing is added where nothing is recorded
        _judge(op, top, operands, outs, kept, part, frame)


def _judge(op: Op, top: Any, operands: _Operands, outs: Sequence[Any], kept: set[int], part: bool, frame: FrameType) -> None:
    """Report what an operation on operands with gradients loses. `kept`: the levels of its results; `part`: they are parts of an operand."""
    what = op.name
    floating = any(x._elem.floating for x in outs)
    if op.kind == "nondifferentiable":
        kind = "index"
    elif isinstance(top, Tensor) and not recording_at(top):
        kind = "no_grad" if floating and not operands.levels <= kept else ""
    elif not floating:
        kind, dtype = "cast", dtype_name(outs[0].dtype)
        what += f" to {dtype}" if op.name in ("astype", "asarray") else f" (of {dtype})"
    else:
        kind = "zero" if all(_is_zero(op, name, outs[0]) for name, _ in operands.tracked) else ""
    where = place(frame) if kind else None
    if where is None:
        return
    nodes = operands.nodes
    if kind == "index" and all(x._elem.bool for x in outs):
        _compared(what, where, nodes, outs)
    elif kind == "no_grad" and part:
        follow(outs, [Source(kind, what, where, behind(nodes), all(type(n) is AccumulateGrad for n in nodes))])
    else:
        note(kind, what, where, nodes)


def _compared(what: str, where: Site, nodes: Sequence[Node | None], outs: Sequence[Any]) -> None:
    leaves = behind(nodes)
    for report, found in leaves:
        report.tell(found, f"compared by {what} at {where}")
    follow(outs, [Source("comparison", what, where, leaves)])


def _is_zero(op: Op, argument: str, out: Any) -> bool:
    """Whether the derivative by this argument is 0 wherever it is defined."""
    if op.name == "sign":
        return not out._elem.complex
    rule = op.vjp.get(argument) if isinstance(op.vjp, Mapping) else None
    return op.kind == "elementwise" and rule is not None and not callable(rule.fn) and rule.fn == 0


# Writing


def writing_in_place(original: Any) -> Any:
    """For `in_place`."""

    def in_place(op: Op, function: Any, t: Tensor, others: tuple[Any, ...], direct: Any = None, named: Iterable[Any] = ()) -> Any:
        named = tuple(named)
        return _write(op, t, (*zip(list(op.roles)[1:], others, strict=False), ("", named)), sys._getframe(1),
                      lambda: original(op, function, t, others, direct, named))

    return in_place


def writing_directly(original: Any) -> Any:
    """For `directly`."""

    def directly(t: Tensor, other: Tensor, direct: Any) -> Any:
        op = next(op for op in list(OPS.values()) if DIRECT.get(op.operator) is direct)
        return _write(op, t, ((list(op.roles)[1], other),), sys._getframe(1), lambda: original(t, other, direct), None)

    return directly


def writing_items(original: Any) -> Any:
    """For `set_item`."""

    def set_item(op: Op, function: Any, t: Tensor, key: Any, value: Any) -> None:
        _write(op, t, (("value", value),), sys._getframe(1), lambda: original(op, function, t, key, value))

    return set_item


def _write(op: Op, t: Tensor, others: Sequence[tuple[str, Any]], frame: FrameType, write: Callable[[], Any], undone: Any = NotImplemented) -> Any:
    """Do it, and look at what is written. An update of a parameter in no_grad is no break. `undone`: what says that nothing was done."""
    if _depth():
        return write()
    recording = recording_at(t)
    updates = not recording and (type(memory(t)[0]._node) is AccumulateGrad or any(s.parameter for s in sources_of(t)))
    operands = _Operands(((next(iter(op.roles)), t), *others) if recording else others, _smooth(op))
    result = _deeper(write)
    if result is undone:
        return result
    if updates:
        operands.mark(frame)
    else:
        _look(op, operands, t, t, frame, written=True)
    return result


# Functions with derivatives of their own


def applying_function(original: Any) -> Any:
    """For `apply_function`: what is marked to have no gradient is lost; what happens inside is not looked at."""

    def apply_function(rule: Any, flat: Sequence[Any], names: tuple[str, ...]) -> Any:
        result = _deeper(original, rule, flat, names)
        if not _depth():
            _look_at_function(f"{rule.__name__}{'.apply()' if isinstance(rule, type) else '()'}", flat, result, sys._getframe(1))
        return result

    return apply_function


def _look_at_function(what: str, flat: Sequence[Any], result: Any, frame: FrameType | None) -> None:
    while frame is not None and frame.f_code.co_filename.startswith(OWN):  # `apply`, which is no callback yet
        frame = frame.f_back
    operands = _Operands(("", x) for x in flat if isinstance(x, Layer))
    operands.mark(frame)
    levels = {k for x in flat for k in levels_of(x, tangents=False)}
    where = place(frame) if levels or operands.sources else None
    if where is None:
        return
    for x in result if isinstance(result, (tuple, list)) else (result,):
        if not isinstance(x, Layer):
            continue
        if not x._elem.floating:
            follow([x], operands.sources)
        else:
            for s in operands.sources:
                s.used()
        lost = levels - levels_of(x)
        if lost and x._elem.bool:
            _compared(what, where, operands.nodes, [x])
        elif lost:
            recorded = any(_recorded(v, lost) for v in flat)
            note("index" if not x._elem.floating else "detached" if recorded else "no_grad", what, where, operands.nodes)


def _recorded(x: Any, levels: set[int]) -> bool:
    """Whether what is done to a value is recorded at one of these levels."""
    while isinstance(x, Layer):
        if isinstance(x, Tensor) and x._level in levels and recording_at(x):
            return True
        x = x._array
    return False
