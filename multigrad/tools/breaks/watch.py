"""The observer of break detection.

Here is what it does about conversions, leaves and passes; follow.py judges operations.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any
from weakref import ref

from ...core import tensor
from ...core.graph import AccumulateGrad, CustomNode
from ...dispatch import creation
from ...memory import copying
from ...observe import CONVERSION, FUNCTION, NODE, OPERATION, PASS, STEP, WRITE, Call, Observer
from ..graphs.provenance import OWN, Site, site, skipped
from .detect import BreakReport
from .follow import Losses
from .sites import caller, nodes_of, place

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
"""Conversions by which a gradient is lost: how the program writes them, and the kind of break."""

TOLD = {
    "__copy__": "copied by copy.copy()",
    "deepcopy": "copied by copy.deepcopy()",
    "__reduce_ex__": "pickled",
    "__bool__": "compared by bool()",
}
"""Others, which are told of a leaf that reached no loss."""

MAKERS = (creation.__file__, copying.__file__, tensor.__file__, f"{OWN}namespace.py")
"""Where leaves are made for the program. Transformations and gradcheck make some of their own."""

SETTERS = tuple(f.__code__ for f in (tensor.Tensor._become_leaf, tensor.Tensor.requires_grad_))
"""What makes a leaf of a Tensor. Who calls them is its maker."""

_inside: ContextVar[ref[Call] | None] = ContextVar("multigrad.breaks", default=None)
"""The outermost write or Function that is running.

It is known weakly: one that was interrupted is gone, whether or not its end was told.
"""


def _outermost() -> Call | None:
    inside = _inside.get()
    return None if inside is None else inside()


class BreakObserver(Observer):
    """Notes in a report what loses a gradient in the contexts that it was entered in."""

    events = frozenset({OPERATION, WRITE, FUNCTION, STEP, PASS, CONVERSION, NODE})
    whole = True

    def __init__(self, report: BreakReport) -> None:
        self.report = report
        self.losses = Losses(report)

    def begin(self, call: Call) -> Any:
        kind = call.kind
        if kind is WRITE or kind is FUNCTION:
            outer = _outermost()
            if outer is None:
                _inside.set(ref(call))
            elif outer is not call:  # which it is where several reports are told
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
        elif kind is PASS:  # by its end it is known what Functions gave no gradient to
            self.report.passed([node for node, _ in call.args[0]], bool(call.name))
        elif isinstance(call.result, BaseException):
            pass
        elif kind is CONVERSION:
            self._converted(token, call)
        elif token is not None and kind is FUNCTION:
            self.losses.function(call)
        elif token is not None and (call.result is not NotImplemented or call.of is not None):
            self.losses.written(call, *token)

    def close(self) -> None:
        """Note nothing any more, in whatever context it is still in force."""
        self.ended = True
        self.losses.forget()

    # ----- Conversions -----

    def _converting(self, call: Call) -> Site | None:
        """Note that a value with a history leaves.

        Of one without, that is known to be made of such, return the line.
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
        elif name.startswith(OWN):
            return None
        where = place(frame)
        if where is None or not nodes:
            return where
        self.losses.note(kind, what, where, nodes)
        return None

    def _converted(self, where: Site | None, call: Call) -> None:
        """What has no history is followed, or used as a value.

        Truth values may be there to decide by, as numbers do not.
        """
        if call.name in TOLD:
            self._tell(call)
        if where is None:
            return
        x = call.args[0]
        sources = self.losses.followed.sources(x)
        kind = LOSES[call.name][1]
        if kind == "detached":
            self.losses.followed.add([call.result], sources)
            return
        # float() makes a number of True
        read = kind == "number" and (not x._elem.bool or call.name.startswith("__"))
        for s in sources:
            if read or s.kind == "no_grad":
                self.losses.use(s)

    def _tell(self, call: Call) -> None:
        nodes = nodes_of(call.args[0])
        frame = caller() if nodes and _outermost() is None else None
        where = None if frame is None or frame.f_code.co_filename.startswith(OWN) else place(frame)
        if where is None:
            return
        if call.name == "deepcopy" and not nodes_of(call.result):
            self.losses.note("no_grad", "copy.deepcopy()", where, nodes)
        else:
            self.report.tell(self.report.leaves(nodes), f"{TOLD[call.name]} at {where}")

    # ----- Leaves -----

    def recorded(self, node: Any, operands: tuple[Any, ...], result: Any) -> None:
        if type(node) is not AccumulateGrad:
            return
        frame = caller()  # what sets the flag
        assert frame is not None
        while frame is not None and frame.f_code in SETTERS:
            frame = frame.f_back
        maker = "" if frame is None else frame.f_code.co_filename
        # a transformation takes the derivative by it for what it was made of
        if maker not in MAKERS and maker.startswith(OWN):
            base = None if result._view is None else result._view[0]
            self.report.stands_for(node, [*nodes_of(result._array), *nodes_of(base)])
        elif result._level == 1:
            self.report.made(node, site(frame, skipped()))
