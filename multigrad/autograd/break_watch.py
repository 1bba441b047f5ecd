"""What watches for breaks of the tape: methods that take the place of others while `detect_breaks` is entered, and give way to them after.

Each does what the method does whose place it has taken, and looks at the operands before or the result after. Only calls from the program
itself count: not those of multigrad's own code, nor what happens in a rule, in a composite operation, or in a backward pass.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from ..engine import gradients, inplace, instruments
from ..engine.dispatch import recording_at
from ..engine.graph import AccumulateGrad, Node
from ..engine.leaving import Leaving
from ..engine.level import Layer
from ..engine.tensor import Tensor
from ..registry import Op
from .breaks import BreakReport, Leaf
from .noting import OWN, UNKNOWN, Site, dtype_name, site, skipped

_lock = threading.RLock()
_reports: tuple[BreakReport, ...] = ()
_restore: list[tuple[Any, str, Any]] = []
_inside = threading.local()
"""`depth`: how many operations are running within each other on this thread; `writing`: how many in-place operations."""

INNER = (f"{OWN}ops{os.sep}", f"{OWN}engine{os.sep}backward.py")
OWN_RULES = tuple(f"{OWN}{name}" for name in (os.path.join("engine", "backward.py"), os.path.join("autograd", "function.py"),
                                                  os.path.join("func", "custom.py"), os.path.join("layers", "custom.py")))
"""Who calls the program in a mode of its own: hooks, and functions whose derivative is written by hand."""
CONVERT = f"{OWN}engine{os.sep}convert.py"
MAKERS = (CONVERT, f"{OWN}engine{os.sep}tensor.py", f"{OWN}namespace.py")
"""Where leaves are made for the program. Transformations and gradcheck make some of their own."""


def enter(report: BreakReport) -> None:
    """Have breaks noted in this report."""
    global _reports
    with _lock:
        _reports = (*_reports, report)
        if len(_reports) == 1:
            instruments.install(_nothing)  # so that every operation takes the general path
            _exchange()


def leave(report: BreakReport) -> None:
    """Undo `enter`."""
    global _reports
    with _lock:
        _reports = tuple(r for r in _reports if r is not report)
        if not _reports:
            while _restore:
                owner, name, original = _restore.pop()
                setattr(owner, name, original)
            instruments.remove(_nothing)
            _compared.clear()


def _nothing(*_: Any) -> None:
    """An instrument that is there for its own sake."""


def _put(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original = owner.__dict__[name]
    _restore.append((owner, name, original))
    setattr(owner, name, make(original))


def _exchange() -> None:
    kinds = list(_kinds(Layer))
    for kind in kinds:
        own = kind.__dict__
        if "_apply" in own and kind is not Layer:
            _put(kind, "_apply", _applying)
        for name, (what, broken) in METHODS.items():
            if name in own and issubclass(kind, Leaving):
                _put(kind, name, _looking(what, broken))
        for name in ("array", "data"):
            if isinstance(own.get(name), property):
                _put(kind, name, _looking_property(name))
    for scalar in (float, int, complex):
        _put(Leaving, f"__{scalar.__name__}__", _casting(scalar))
    _put(Tensor, "requires_grad_", _requiring)
    for name in ("in_place", "set_item"):
        _put(inplace, name, _writing)
    _put(gradients, "run_pass", _passing)


def _kinds(kind: type) -> Iterator[type]:
    yield kind
    sub: type
    for sub in kind.__subclasses__():
        yield from _kinds(sub)


# What has a gradient to lose


def nodes_of(x: Any) -> list[Node | None]:
    """The histories of a value, on all levels; None for a tangent, which has none."""
    found: list[Node | None] = []
    while isinstance(x, Layer):
        node = getattr(x, "_node", None)
        if node is not None:
            found.append(node)
        if getattr(x, "_tangent", None) is not None:
            found.append(None)
        x = x._array
    return found


def _report(kind: str, what: str, where: Site, nodes: Sequence[Node | None]) -> None:
    for report, leaves in _behind(nodes):
        report.add(kind, what, where, leaves)


def _behind(nodes: Sequence[Node | None]) -> list[tuple[BreakReport, frozenset[Leaf]]]:
    """For each report, the leaves that values of these histories were made of."""
    known = [n for n in nodes if n is not None]
    return [(report, frozenset(leaf for n in known for leaf in report.behind(n))) for report in _reports]


def _place(frame: FrameType | None) -> Site | None:
    """The line of the program that these frames were called from. None where a rule, a composite operation or a backward pass lies between."""
    skip = skipped()
    while frame is not None and frame.f_code.co_filename.startswith(skip):
        if frame.f_code.co_filename.startswith(INNER):
            return None
        frame = frame.f_back
    return site(frame, skip) or UNKNOWN


def _called_back(frame: FrameType | None) -> bool:
    """Whether a hook is running, or a function whose derivative is written by hand."""
    while frame is not None:
        if frame.f_code.co_filename in OWN_RULES:
            return True
        frame = frame.f_back
    return False


# Conversions

METHODS = {
    "__array__": ("np.asarray()", "refused"), "numpy": (".numpy()", "refused"), "__dlpack__": ("from_dlpack()", "refused"),
    "item": (".item()", "number"), "tolist": (".tolist()", "number"), "detach": (".detach()", "detached"), "detach_": (".detach_()", "detached"),
}


def _called(frame: FrameType) -> Site | None:
    """The line of a method call in the program; None if it is a call of multigrad's own."""
    return None if frame.f_code.co_filename.startswith(OWN) or _called_back(frame) else _place(frame)


def _looking(what: str, kind: str) -> Callable[[Any], Any]:
    def exchanged(original: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            nodes = nodes_of(self)
            if nodes:
                frame = sys._getframe(1)
                where = _called(frame)
                if where is not None:
                    _report(kind, what, where, nodes)
                elif frame.f_code.co_filename == CONVERT and frame.f_code.co_name == "tensor" and (where := _place(frame)) is not None:
                    _report("detached", "multigrad.tensor()", where, nodes)
            return original(self, *args, **kwargs)

        method.__name__, method.__qualname__, method.__doc__ = original.__name__, original.__qualname__, original.__doc__
        return method

    return exchanged


def _looking_property(name: str) -> Callable[[Any], Any]:
    def exchanged(original: property) -> property:
        get: Any = original.fget

        def getter(self: Any) -> Any:
            nodes = nodes_of(self)
            if nodes and (where := _called(sys._getframe(1))) is not None:
                _report("raw" if name == "array" else "detached", f".{name}", where, nodes)
            return get(self)

        return property(getter, original.fset, original.fdel, original.__doc__)

    return exchanged


def _casting(scalar: type) -> Callable[[Any], Any]:
    """As the methods of Leaving: the warning that `_cast` gives must name the line of the program, so nothing may stand between."""

    def exchanged(original: Any) -> Any:
        def method(self: Any) -> Any:
            nodes = nodes_of(self)
            if nodes and (where := _called(sys._getframe(1))) is not None:
                _report("number", f"{scalar.__name__}()", where, nodes)
            return scalar(self._cast(scalar))

        method.__name__, method.__qualname__ = original.__name__, original.__qualname__
        return method

    return exchanged


# Operations


class _Compared(NamedTuple):
    """Where a result without a derivative came from."""

    ref: weakref.ref[Any]
    what: str
    where: Site
    leaves: list[tuple[BreakReport, frozenset[Leaf]]]


_compared: dict[int, _Compared] = {}
"""The results of comparisons of what has a gradient, by their id."""


def _applying(original: Any) -> Any:
    apply = original.__func__ if isinstance(original, (staticmethod, classmethod)) else original

    def watched(op: Any, values: tuple[Any, ...], top: Any) -> Any:
        depth = getattr(_inside, "depth", 0)
        _inside.depth = depth + 1
        try:
            result = apply(op, values, top)
        finally:
            _inside.depth = depth
        if depth == 0:
            _look(op, values, top, result, sys._getframe(1))
        return result

    return staticmethod(watched)


def _look(op: Op, values: tuple[Any, ...], top: Any, result: Any, frame: FrameType) -> None:
    operands = [(name, v) for (name, role), value in zip(op.roles.items(), values, strict=True) if role != "plain"
                for v in (value if role == "arrays" else (value,)) if isinstance(v, Layer)]
    tracked = {name: nodes for name, v in operands if (nodes := nodes_of(v))}
    compared = [_compared[id(v)] for name, v in operands if _knows(v) and (op.kind == "nondifferentiable" or name in op.differentiable)]
    if not tracked and not compared:
        return
    nodes = [n for ns in tracked.values() for n in ns]
    for n in nodes:
        if type(n) is AccumulateGrad:
            _used(n, frame)
    outs = [x for x in (result if isinstance(result, (tuple, list)) else (result,)) if isinstance(x, Layer)]
    if not outs:
        return
    floating = any(x._elem.floating for x in outs)
    for c in compared:
        _follow(c, op, outs, floating, frame)
    if tracked:
        _judge(op, top, tracked, nodes, outs, floating, frame)


def _judge(op: Op, top: Any, tracked: Mapping[str, Any], nodes: Sequence[Node | None], outs: Sequence[Any], floating: bool, frame: FrameType) -> None:
    """Report what an operation on operands with gradients loses."""
    if op.chapter in ("creation", "data_type") and op.kind == "nondifferentiable":  # these ask for shapes and dtypes
        return
    if op.kind == "nondifferentiable":
        where = _place(frame)
        if where is None:
            return
        if all(x._elem.bool for x in outs):
            _note_compared(outs, op.name, where, _behind(nodes))
        else:
            _report("index", op.name, where, nodes)
    elif isinstance(top, Tensor) and not recording_at(top):
        if floating and not getattr(_inside, "writing", 0) and not _called_back(frame) and (where := _place(frame)) is not None:
            _report("no_grad", op.name, where, nodes)
    elif not floating:
        if (where := _place(frame)) is not None:
            kind = f"{op.name} to {dtype_name(outs[0].dtype)}" if op.name in ("astype", "asarray") else f"{op.name} (of {dtype_name(outs[0].dtype)})"
            _report("cast", kind, where, nodes)
    elif all(_is_zero(op, name, outs[0]) for name in tracked) and (where := _place(frame)) is not None:
        _report("zero", op.name, where, nodes)


def _is_zero(op: Op, argument: str, out: Any) -> bool:
    """Whether the derivative by this argument is 0 wherever it is defined."""
    if op.name == "sign":
        return not out._elem.complex
    rule = op.vjp.get(argument) if isinstance(op.vjp, Mapping) else None
    return op.kind == "elementwise" and rule is not None and not callable(rule.fn) and rule.fn == 0


def _used(node: AccumulateGrad, frame: FrameType) -> None:
    for report in _reports:
        leaf = report.leaf(node)
        if leaf.used is None:
            leaf.used = _place(frame)


def _knows(x: Any) -> bool:
    found = _compared.get(id(x))
    return found is not None and found.ref() is x


def _note_compared(outs: Sequence[Any], what: str, where: Site, leaves: list[tuple[BreakReport, frozenset[Leaf]]]) -> None:
    for x in outs:
        key = id(x)
        _compared[key] = _Compared(weakref.ref(x, lambda _, key=key: _compared.pop(key, None)), what, where, leaves)  # type: ignore[misc]


def _follow(c: _Compared, op: Op, outs: Sequence[Any], floating: bool, frame: FrameType) -> None:
    """A comparison's result goes into an operation: it is used as a value if numbers come out; else what comes out is followed."""
    if not floating:
        _note_compared(outs, c.what, c.where, c.leaves)
    elif _place(frame) is not None:
        for report, leaves in c.leaves:
            if report in _reports:
                report.add("comparison", c.what, c.where, leaves)


# Leaves, in-place operations, passes


def _requiring(original: Any) -> Any:
    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        t = original(self, requires_grad)
        frame = sys._getframe(1)
        own = frame.f_code.co_filename
        if type(self._node) is AccumulateGrad and self._level == 1 and (own in MAKERS or not own.startswith(OWN)):
            where = site(frame, skipped())
            for report in _reports:
                report.made(self._node, where)
        return t

    requires_grad_.__doc__ = original.__doc__
    return requires_grad_


def _writing(original: Any) -> Any:
    """An update of a parameter in no_grad is no break."""

    def writing(*args: Any, **kwargs: Any) -> Any:
        before = getattr(_inside, "writing", 0)
        _inside.writing = before + 1
        try:
            return original(*args, **kwargs)
        finally:
            _inside.writing = before

    return writing


def _passing(original: Any) -> Any:
    def run_pass(roots: Any, p: Any) -> Any:
        for report in _reports:
            report.passed([node for node, _ in roots])
        return original(roots, p)

    return run_pass
