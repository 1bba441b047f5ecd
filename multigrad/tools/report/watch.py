"""The observer of a profiled run: live arrays by operation and line, and graphs before passes."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, NamedTuple

from ... import observe
from ...core.element import Library
from ...core.graph import AccumulateGrad, Node, notes
from ...core.passes import current
from ...core.tensor import Tensor, wrap_at
from ...observe import PASS, Call
from ..graphs import provenance
from ..graphs.drawing import GraphPicture
from ..graphs.memory import MemoryReport
from ..graphs.model import collect, owner_of
from ..graphs.provenance import Site, dtype_name, site, skipped
from ..profiler.memory import Memory
from ..profiler.recorder import Recorder, made_by

SHARE, GRACE = 0.1, 200_000_000
"""Examining graphs may take this share of the elapsed time, plus these nanoseconds."""
BOXES = 60


class Made(NamedTuple):
    """The array that was the first on a memory, and the operation and line that made it."""

    what: str
    site: Site | None
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class GraphRecord:
    """A graph, as it was before a pass or at the end of the program.

    `number`: the number of the pass, 0 at the end; `drawing` and `picture`: its content for the
    page; `error`: the reason if there is no picture.
    """

    number: int
    site: Site | None
    report: MemoryReport | None = None
    summary: str = ""
    drawing: str = ""
    picture: dict[str, Any] = field(default_factory=dict)
    error: str = ""


class RunObserver(Recorder):
    """Observes a running script, and measures its own cost.

    `close` is called after the script has ended, while its arrays are alive.
    """

    events = Recorder.events | {PASS}

    def __init__(self) -> None:
        super().__init__(shapes=True, flops=False, memory=True, stack=True, use_device=None)
        self.thread = threading.get_ident()
        self.pass_times: list[tuple[int, int, int]] = []
        """(start, end, thread) of each pass."""
        self.passes = 0
        self.graph: GraphRecord | None = None
        self.largest: GraphRecord | None = None
        self.looks: list[tuple[int, int, int]] = []
        """(start, end, thread) of each examination of a graph."""
        self.later: set[str] = set()
        """The libraries in use that may compute after their functions have returned."""
        self.compiled = False
        """Whether a function of func.compile was called; under the observer it runs uncompiled."""
        self.stopped = self.start
        self._spent = 0
        self._nodes: defaultdict[int, list[tuple[str, Site | None]]] = defaultdict(list)
        self._last: weakref.ref[Tensor] | None = None

    def close(self) -> None:
        observe.leave(self)
        super().close()
        self.stopped = perf_counter_ns()
        last = None if self._last is None else self._last()
        if not self.passes and last is not None:
            self._look([last], 0, self._site_of(last._node))

    # ----- Calls -----

    def begin(self, call: Call) -> Any:
        start = perf_counter_ns()
        if call.kind is PASS:
            self._passing(*call.args)
            return start, None
        self.compiled = self.compiled or _in_compiled()
        if call.node is not None:
            self._nodes[threading.get_ident()].append((call.node.name(), self._site_of(call.node)))
        return start, super().begin(call)

    def end(self, token: Any, call: Call) -> None:
        start, noted_ = token
        if call.kind is PASS:
            self.pass_times.append((start, perf_counter_ns(), threading.get_ident()))
            return
        super().end(noted_, call)
        inside = self._nodes[threading.get_ident()]
        if call.node is not None and inside:
            inside.pop()
        noted_[1].around = start, perf_counter_ns()

    def follow(self, memory: Memory, call: Call, time: int) -> None:
        """Note the operation and the line that made arrays; inside a node they are its own."""
        inside = self._nodes[threading.get_ident()]
        what, where = inside[-1] if inside else (call.name, site(sys._getframe(1), skipped()))
        self._note(call.result if call.of is None else call.of, where, not inside)

        def about(x: Any, library: Library) -> Made:
            if "mark" in library.backend.kernels:
                self.later.add(library.name)
            return Made(what, where, tuple(x.shape), dtype_name(x.dtype))

        memory.see(made_by(call), time, about)

    def _note(self, result: Any, where: Site | None, outside: bool) -> None:
        """Record the line and the labels on the node for `draw`, as `record_lines` does."""
        values = result if isinstance(result, (tuple, list)) else (result,)
        tensors = (t for t in values if isinstance(t, Tensor) and t._node is not None)
        t = next(tensors, None)
        if t is None or t._node is None or type(t._node) is AccumulateGrad:
            return
        if outside:
            self._last = weakref.ref(t)
        noted = notes(owner_of(t._node))
        if noted.get(provenance.SITE) is not None:
            return  # the operation returned its argument, or is around the maker of the node
        noted[provenance.SITE] = where
        noted.setdefault(provenance.OUTPUTS, provenance.elements(result))
        labels, label = [], observe.here().label
        while label is not None:
            labels.append((label.name, id(label)))
            label = label.outer
        noted.setdefault(provenance.LABELS, tuple(reversed(labels)))

    @staticmethod
    def _site_of(node: Any) -> Site | None:
        note = None if node is None else provenance.note_of(owner_of(node))
        return None if note is None else note.site

    # ----- Graphs -----

    def _passing(self, roots: Any, p: Any) -> None:
        if current.get() is None:
            self.passes += 1
            if self._spent <= GRACE + SHARE * (perf_counter_ns() - self.start):
                where = site(sys._getframe(1), skipped())
                self._look([_root(node, g, p.like) for node, g in roots], self.passes, where)

    def _look(self, tensors: Sequence[Tensor], number: int, where: Site | None) -> None:
        start = perf_counter_ns()
        try:
            graph = collect(tensors, _names())
            report = MemoryReport(graph)
            picture = GraphPicture(graph, None, BOXES)
            opened = picture.opened
            drawing, data = opened.elements, opened.data(opened is not picture)
            record = GraphRecord(number, where, report, picture.summary, drawing, data)
        except Exception as error:  # the script must not fail because of the report
            record = GraphRecord(number, where, error=f"{type(error).__name__}: {error}")
        self.graph = record
        largest = None if self.largest is None else self.largest.report
        if largest is None or (record.report and record.report.total > largest.total):
            self.largest = record
        end = perf_counter_ns()
        self._spent += end - start
        self.looks.append((start, end, threading.get_ident()))


def _in_compiled() -> bool:
    """Return whether a function of func.compile is running."""
    module = sys.modules.get("multigrad.compiling.compiled")
    if module is None:  # nothing has been compiled
        return False
    code = module.Compiled.__call__.__code__
    return any(f.f_code is code for f in provenance.frames(sys._getframe(1)))


def _root(node: Node, g: Any, like: Tensor) -> Tensor:
    """Return the Tensor from which a pass starts, or an equivalent one."""
    if like._node is node:
        return like
    t = wrap_at(like, g._array if isinstance(g, Tensor) else g)
    t._node = node
    return t


def _names() -> dict[str, Tensor]:
    """Return the Tensors that the script has names for, to name them in its graph."""
    names: dict[str, Tensor] = {}
    for name, x in list(vars(sys.modules["__main__"]).items()):
        if not name.startswith("_"):
            _add(names, name, x, 2)
    return names


def _add(names: dict[str, Tensor], name: str, x: Any, depth: int) -> None:
    if isinstance(x, Tensor):
        names[name] = x
    elif depth and type(x) in (dict, list, tuple) and len(x) <= 200:
        for key, value in x.items() if type(x) is dict else enumerate(x):
            _add(names, f"{name}.{key}" if type(x) is dict else f"{name}[{key}]", value, depth - 1)
