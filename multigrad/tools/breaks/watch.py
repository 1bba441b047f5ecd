"""What watches for breaks of the tape: methods that take the place of others while `detect_breaks` is entered, and give way to them after.

Each does what the method does whose place it has taken, and looks at the operands before or the result after. Here are those of conversions,
leaves and passes; follow.py has those of operations.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ...custom import applying as custom_applying
from ...custom.node import BackwardCFunction
from ...engine import gradients, inplace, instruments, profiling
from ...engine.graph import AccumulateGrad
from ...engine.leaving import Leaving
from ...engine.level import Layer
from ...engine.tensor import Tensor
from ...layers import batched, dual, transforming  # noqa: F401  so that their methods are exchanged, too
from ..graphs.noting import OWN, Site, site, skipped
from .detect import BreakReport
from .follow import applying, applying_function, follow, forget, sources_of, writing_directly, writing_in_place, writing_items
from .sites import behind, nodes_of, note, place, reports

Make = Callable[[Any], Any]

_lock = threading.RLock()
_exchanged: list[tuple[Any, str, Make]] = []

CONVERT = f"{OWN}engine{os.sep}convert.py"
MAKERS = (CONVERT, f"{OWN}engine{os.sep}copying.py", f"{OWN}engine{os.sep}tensor.py", f"{OWN}namespace.py")
"""Where leaves are made for the program. Transformations and gradcheck make some of their own."""


def enter(report: BreakReport) -> None:
    """Have breaks noted in this report."""
    with _lock:
        reports[0] = (*reports[0], report)
        if len(reports[0]) == 1:
            instruments.install(_nothing)  # so that every operation takes the general path
            for owner, name, make in _exchanges():
                profiling.exchange(owner, name, make)
                _exchanged.append((owner, name, make))


def leave(report: BreakReport) -> None:
    """Undo `enter`."""
    with _lock:
        reports[0] = tuple(r for r in reports[0] if r is not report)
        if not reports[0]:
            while _exchanged:
                profiling.restore(*_exchanged.pop())
            instruments.remove(_nothing)
            forget()


def _nothing(*_: Any) -> None:
    """An instrument that is there for its own sake."""


def _exchanges() -> Iterator[tuple[Any, str, Make]]:
    for kind in list(_kinds(Layer)):
        own = kind.__dict__
        if "_apply" in own and kind is not Layer:
            yield kind, "_apply", applying
        for name, (what, broken) in METHODS.items():
            if name in own and issubclass(kind, Leaving):
                yield kind, name, _looking(what, broken)
        for name in ("array", "data"):
            if isinstance(own.get(name), property):
                yield kind, name, _looking_property(name)
    for scalar in (float, int, complex):
        yield Leaving, f"__{scalar.__name__}__", _casting(scalar)
    for name, what in TOLD.items():
        yield next(kind for kind in Tensor.__mro__ if name in vars(kind)), name, _telling(what)
    yield Tensor, "requires_grad_", _requiring
    yield vars(inplace), "in_place", writing_in_place
    yield vars(inplace), "directly", writing_directly
    yield vars(inplace), "set_item", writing_items
    yield vars(custom_applying), "apply_function", applying_function
    yield BackwardCFunction, "_propagate", _propagating
    for module, counts in ((gradients, True), (transforming, False)):  # each has the name of its own
        yield vars(module), "run_pass", _passing(counts)


def _kinds(kind: type) -> Iterator[type]:
    yield kind
    sub: type
    for sub in kind.__subclasses__():
        yield from _kinds(sub)


# Conversions

METHODS = {
    "__array__": ("np.asarray()", "refused"), "numpy": (".numpy()", "refused"), "__dlpack__": ("from_dlpack()", "refused"),
    "item": (".item()", "number"), "tolist": (".tolist()", "number"), "detach": (".detach()", "detached"), "detach_": (".detach_()", "detached"),
}

TOLD = {
    "__copy__": "copied by copy.copy()", "__deepcopy__": "copied by copy.deepcopy()", "__reduce_ex__": "pickled", "__bool__": "compared by bool()",
}


def _called(frame: FrameType) -> Site | None:
    """The line of a method call in the program; None if it is a call of multigrad's own."""
    return None if frame.f_code.co_filename.startswith(OWN) else place(frame)


def _left(x: Any, kind: str, found: Any, frame: FrameType) -> None:
    """A value without a history, of which it is known what it was made by, was converted: it is followed, or used as a value.

    Truth values may be there to decide by, as numbers do not.
    """
    if _called(frame) is None:
        return
    if kind == "detached":
        follow([found], sources_of(x))
        return
    for s in sources_of(x):
        if s.kind == "no_grad" or (kind == "number" and not x._elem.bool):
            s.used()


def _looking(what: str, kind: str) -> Callable[[Any], Any]:
    def exchanged(original: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            nodes, sources = nodes_of(self), sources_of(self)
            frame = sys._getframe(1)
            if nodes and (where := _called(frame)) is not None:
                note(kind, what, where, nodes)
            elif nodes and frame.f_code.co_filename == CONVERT and frame.f_code.co_name == "tensor" and (where := place(frame)) is not None:
                note("detached", "multigrad.tensor()", where, nodes)
            found = original(self, *args, **kwargs)
            if sources and not nodes:
                _left(self, kind, found, frame)
            return found

        method.__name__, method.__qualname__, method.__doc__ = original.__name__, original.__qualname__, original.__doc__
        return method

    return exchanged


def _looking_property(name: str) -> Callable[[Any], Any]:
    def exchanged(original: property) -> property:
        get: Any = original.fget

        def getter(self: Any) -> Any:
            nodes, kind = nodes_of(self), "raw" if name == "array" else "detached"
            frame = sys._getframe(1)
            if nodes and (where := _called(frame)) is not None:
                note(kind, f".{name}", where, nodes)
            found = get(self)
            if not nodes and sources_of(self):
                _left(self, kind, found, frame)
            return found

        return property(getter, original.fset, original.fdel, original.__doc__)

    return exchanged


def _casting(scalar: type) -> Callable[[Any], Any]:
    """As the methods of Leaving: the warning that `_cast` gives must name the line of the program, so nothing may stand between."""

    def exchanged(original: Any) -> Any:
        def method(self: Any) -> Any:
            nodes = nodes_of(self)
            where = _called(sys._getframe(1)) if nodes or sources_of(self) else None
            if where is not None and nodes:
                note("number", f"{scalar.__name__}()", where, nodes)
            elif where is not None:
                for s in sources_of(self):
                    s.used()
            return scalar(self._cast(scalar))

        method.__name__, method.__qualname__ = original.__name__, original.__qualname__
        return method

    return exchanged


def _telling(what: str) -> Make:
    """What happens to the leaves behind a value that is no break."""

    def exchanged(original: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            found = original(self, *args, **kwargs)
            nodes = nodes_of(self)
            where = _called(sys._getframe(1)) if nodes else None
            if where is not None:
                for report, leaves in behind(nodes):
                    report.tell(leaves, f"{what} at {where}")
            return found

        method.__name__, method.__qualname__, method.__doc__ = original.__name__, original.__qualname__, original.__doc__
        return method

    return exchanged


# Leaves and passes


def _requiring(original: Any) -> Any:
    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        t = original(self, requires_grad)
        frame = sys._getframe(1)
        own = frame.f_code.co_filename
        if type(self._node) is not AccumulateGrad:
            return t
        if own not in MAKERS and own.startswith(OWN):  # a transformation takes the derivative by it for what it was made of
            base = None if self._born is None else self._base
            for report in reports[0]:
                report.stands_for(self._node, [*nodes_of(self._array), *nodes_of(base)])
        elif self._level == 1:
            where = site(frame, skipped())
            for report in reports[0]:
                report.made(self._node, where)
        return t

    requires_grad_.__doc__ = original.__doc__
    return requires_grad_


def _passing(counts: bool) -> Make:
    """`counts`: whether it is a pass of the program's own."""

    def exchanged(original: Any) -> Any:
        def run_pass(roots: Any, p: Any) -> Any:
            try:
                return original(roots, p)
            finally:  # by then it is known what Functions gave no gradient to
                for report in reports[0]:
                    report.passed([node for node, _ in roots], counts)

        return run_pass

    return exchanged


def _propagating(original: Any) -> Any:
    def _propagate(self: Any, g: Any, p: Any) -> Any:
        found = original(self, g, p)
        for report in reports[0]:
            report.given(self, [x is not None for x in found])
        return found

    return _propagate
