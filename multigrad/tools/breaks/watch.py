"""The context manager that finds lines on which gradients are lost, and its observer.

The observer handles conversions, leaves and passes; follow.py judges operations.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any
from weakref import ref

from ... import observe
from ...core import tensor
from ...core.graph import AccumulateGrad, CustomNode, notes
from ...dispatch import creation
from ...errors import PACKAGE
from ...memory import copying, fingerprints
from ...observe import CONVERSION, FUNCTION, NODE, OPERATION, PASS, STEP, WRITE, Call, Observer
from ..graphs.provenance import Site, site, skipped
from .follow import Losses
from .report import BreakReport
from .sites import caller, line, nodes_of, place

LOSES = {
    "__array__": ("np.asarray()", "refused"),
    "numpy": (".numpy()", "refused"),
    "__dlpack__": ("from_dlpack()", "refused"),
    "item": (".item()", "number"),
    "tolist": (".tolist()", "number"),
    "array": (".array", "raw"),
    "data": (".data", "detached"),
    "detach": (".detach()", "detached"),
    "detach_": (".detach_()", "detached"),
    "__float__": ("float()", "number"),
    "__int__": ("int()", "number"),
    "__complex__": ("complex()", "number"),
}
"""Conversions that lose a gradient: their spelling in a program, and the kind of break."""

REPORTED = {
    "__copy__": "copied by copy.copy()",
    "deepcopy": "copied by copy.deepcopy()",
    "__reduce_ex__": "pickled",
    "__bool__": "compared by bool()",
}
"""Other calls, which are reported for a leaf that reached no loss."""

MAKERS = (creation.__file__, copying.__file__, tensor.__file__, f"{PACKAGE}namespace.py")
"""Modules that make leaves for the program; transformations and gradcheck make their own."""

SETTERS = tuple(f.__code__ for f in (tensor.Tensor._become_leaf, tensor.Tensor.requires_grad_))
"""The setters that make a Tensor a leaf. Their caller is the maker of the leaf."""

USED = "used_at"
"""The key of the note of the line on which the operation of a node was called."""

_inside: ContextVar[ref[Call] | None] = ContextVar("multigrad.breaks", default=None)
"""The outermost write or Function that is running.

It is a weak reference, so an interrupted call disappears even if its end was never reported.
"""


def _outermost() -> Call | None:
    inside = _inside.get()
    return None if inside is None else inside()


class BreakObserver(Observer):
    """Records gradient losses in a report, in the contexts in which it is active."""

    events = frozenset({OPERATION, WRITE, FUNCTION, STEP, PASS, CONVERSION, NODE})
    whole = True

    def __init__(self, report: BreakReport) -> None:
        self.report = report
        self.losses = Losses(report)

    def begin(self, call: Call) -> Any:
        kind = call.kind
        if kind is STEP:
            self._modified(call.node)
        if kind is WRITE or kind is FUNCTION:
            outer = _outermost()
            if outer is None:
                _inside.set(ref(call))
            elif outer is not call:  # with several reports, each gets the same call
                return None
            return self.losses.before_write(call) if kind is WRITE else ()
        if kind is CONVERSION and call.name in LOSES and _outermost() is None:
            return self._converting(call)
        return None

    def end(self, token: Any, call: Call) -> None:
        kind = call.kind
        if token is not None and (kind is WRITE or kind is FUNCTION):
            _inside.set(None)
        if self.ended:
            return
        if kind is OPERATION:
            if _outermost() is None:
                self.losses.operation(call)
        elif kind is STEP:
            if type(call.node) is CustomNode and type(call.result) is tuple:
                self.report.given(call.node.ctx, [g is not None for g in call.result])
        elif kind is PASS:
            # only after a pass is it known to which operands Functions gave no gradient
            self.report.passed([node for node, _ in call.args[0]], bool(call.name))
        elif isinstance(call.result, BaseException):
            pass
        elif kind is CONVERSION:
            self._converted(token, call)
        elif token is not None and kind is FUNCTION:
            self.losses.function(call)
        elif token is not None and (call.result is not NotImplemented or call.of is not None):
            self.losses.written(call, *token)

    # ----- Conversions -----

    def _converting(self, call: Call) -> Site | None:
        """Record the conversion of a value with a history.

        For a value without one that was computed from such values, return the line instead.
        """
        x = call.args[0]
        nodes = nodes_of(x)
        if not nodes and not self.losses.followed.sources(x):
            return None
        what, kind = LOSES[call.name]
        frame = caller()
        assert frame is not None
        name = frame.f_code.co_filename
        if nodes and name == creation.__file__ and frame.f_code.co_name == "tensor":
            what, kind = "multigrad.tensor()", "detached"
        elif name.startswith(PACKAGE):
            return None
        where = place(frame)
        if where is None or not nodes:
            return where
        self.losses.note(kind, what, where, nodes)
        return None

    def _converted(self, where: Site | None, call: Call) -> None:
        """Follow the result of a conversion of a value without a history, or report its use.

        Truth values may only control a branch; numbers are used as values.
        """
        if call.name in REPORTED:
            self._tell(call)
        if where is None:
            return
        x = call.args[0]
        sources = self.losses.followed.sources(x)
        kind = LOSES[call.name][1]
        if kind == "detached":
            self.losses.followed.add([call.result], sources)
            return
        # float() turns True into a number
        read = kind == "number" and (not x._elem.bool or call.name.startswith("__"))
        for s in sources:
            if read or s.kind == "no_grad":
                self.losses.use(s)

    def _tell(self, call: Call) -> None:
        nodes = nodes_of(call.args[0])
        frame = caller() if nodes and _outermost() is None else None
        where = (
            None if frame is None or frame.f_code.co_filename.startswith(PACKAGE) else place(frame)
        )
        if where is None:
            return
        if call.name == "deepcopy" and not nodes_of(call.result):
            self.losses.note("no_grad", "copy.deepcopy()", where, nodes)
        else:
            self.report.tell(self.report.leaves(nodes), f"{REPORTED[call.name]} at {where}")

    # ----- Saved arrays -----

    def _modified(self, node: Any) -> None:
        """Report the line of an operation whose saved array was modified past multigrad."""
        where = getattr(node, "noted", {}).get(USED)
        if where is not None and (array := fingerprints.modified(node)):
            self.losses.note("modified", f"{array} saved by {node.name()}", where, [node])

    # ----- Leaves -----

    def recorded(self, node: Any, operands: tuple[Any, ...], result: Any) -> None:
        if type(node) is not AccumulateGrad:
            if fingerprints.take(node, operands):
                notes(node)[USED] = place() or line()
            return
        frame = caller()  # the code that sets requires_grad
        assert frame is not None
        while frame is not None and frame.f_code in SETTERS:
            frame = frame.f_back
        maker = "" if frame is None else frame.f_code.co_filename
        # a leaf of a transformation replaces the values from which it was made
        if maker not in MAKERS and maker.startswith(PACKAGE):
            base = None if result._view is None else result._view[0]
            self.report.stands_for(node, [*nodes_of(result._array), *nodes_of(base)])
        elif result._level == 1:
            self.report.made(node, site(frame, skipped()))


class detect_breaks:
    """Record each line of the program on which a gradient is lost, while the context is active.

    Use `with detect_breaks() as report`.

    It observes the thread and the asyncio task that enter it, tasks started inside, and threads
    that run in a copy of the context (`contextvars.copy_context().run`). It records: conversions
    (np.asarray, which is refused, float, int, item, tolist, .array); detach and .data; casts to
    integers; operations without a derivative, or with a derivative of 0 by rule; Tensors that
    require grad used in no_grad; saved arrays that the program modified past multigrad, before the
    backward pass. It records them in transformations of multigrad.func as well. The
    results of the program do not change; its operations take about four times as long.
    """

    def __init__(self) -> None:
        self._observers: list[BreakObserver] = []

    def __enter__(self) -> BreakReport:
        observer = BreakObserver(BreakReport())
        self._observers.append(observer)
        observe.enter(observer)
        return observer.report

    def __exit__(self, *exc: object) -> None:
        observer = self._observers[-1]
        try:
            # also in other contexts in which it is still entered
            observer.ended = True
            observer.losses.forget()
        finally:
            observe.leave(observer)
        self._observers.pop()
