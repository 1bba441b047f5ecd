"""The recorder, which an active profiler enters, and the events built from its records."""

from __future__ import annotations

import contextlib
import sys
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from threading import get_ident
from time import perf_counter_ns, time_ns
from typing import Any

from ...core import graph
from ...core.element import Library, library_of
from ...core.graph import AccumulateGrad, Node, OutputNode
from ...core.level import Layer
from ...core.tensor import Tensor
from ...errors import OWN, BackendError
from ...observe import FUNCTION, LABEL, OPERATION, STEP, TANGENT, WRITE, Call, Label, Observer, here
from ...plugins import discovery
from ..graphs.provenance import frames
from . import BACKWARD, FORWARD, USER
from .counts import (
    PLAIN,
    arguments_of,
    count_once,
    flops,
    gradients_of_product,
    is_array,
    over_layers,
)
from .event import FunctionEvent
from .events import EventList
from .memory import Memory, arrays
from .nesting import start_of
from .table import format_memory

MEMORY_EVENT_NAME = "[memory]"


def times_devices(use_device: str) -> bool:
    """Return whether `use_device` names a known source of device time.

    It is a kind of device ("cuda") of a library in use, or a library with device clocks ("jax").
    """
    if use_device in discovery.names():
        with contextlib.suppress(BackendError):  # it is not a usable backend
            discovery.get(use_device)
    return any(
        "mark" in b.kernels and use_device in (b.name, b.kernel("accelerator")(b.namespace, None))
        for b in discovery.loaded()
    )


@dataclass(slots=True)
class Detail:
    """Optional records of a call besides its times.

    flops   of a node: a multiple of those of the operation that made it
    alone   of a node: its rule runs without hooks
    around  when recording the call began and ended, if that was measured
    """

    arguments: list[tuple[list[Any], list[Any], Any]] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    marks: list[Any] = field(default_factory=list)
    flops: Any = 0
    alone: bool = False
    library: Library | None = None
    around: tuple[int, int] | None = None


def sequence(result: Any) -> int:
    """Return the number of the node that recorded a result, -1 without a node."""
    if isinstance(result, (tuple, list)):
        return next((n for n in map(sequence, result) if n >= 0), -1)
    # a Dual is identified by its primal, a Batched by its array of all examples
    while isinstance(result, Layer) and not isinstance(result, Tensor):
        result = result._array
    node = getattr(result, "_node", None)
    return -1 if node is None else node_sequence(node)


def node_sequence(node: Node) -> int:
    """Return the number of a node, -1 for AccumulateGrad."""
    if type(node) is OutputNode:
        node = node.next
    return -1 if type(node) is AccumulateGrad else node.seq


class Recorder(Observer):
    """Records every call as a tuple, with a Detail if more than times is wanted.

    The tuple is (declaration or name, start, end, place, thread, sequence number, scope, detail).
    """

    events = frozenset({OPERATION, WRITE, FUNCTION, STEP, TANGENT, LABEL})

    def __init__(
        self, shapes: bool, flops: bool, memory: bool, stack: bool, use_device: str | None
    ) -> None:
        self.shapes, self.flops, self.stack, self.use_device = shapes, flops, stack, use_device
        self.memory = Memory() if memory else None
        self.calls: list[tuple[Any, ...]] = []
        self.labels: list[Label] = []
        self.untimed: set[str] = set()
        self.began_with = graph.tick()
        self.start = perf_counter_ns()
        self.began = time_ns()
        self.end_time: int | None = None
        self.plain = not (shapes or flops or memory or stack or use_device)

    def lift(self, rule: Any, *args: Any) -> Any:
        return over_layers(rule, *args) if self.flops else rule(*args)

    def close(self) -> None:
        """Stop recording, in all threads and tasks that still run."""
        self.end_time = perf_counter_ns()
        self.ended = True
        self.calls, self.labels = list(self.calls), list(self.labels)
        if self.memory is not None:
            self.memory.close()

    def _timed(self, what: Any, start: int, end: int, result: Any) -> None:
        """Record a call of which only the times are wanted: `timed` of a TimeRecorder."""
        scope = FORWARD
        if isinstance(what, Node):
            number, scope = node_sequence(what), BACKWARD
            what = what.rule.op if type(what) is Node else what.name()
        elif type(result) is Tensor:
            node = result._node
            number = -1 if node is None else node.seq if type(node) is Node else sequence(result)
        elif result is NotImplemented:
            return
        else:
            number = sequence(result)
        if not self.ended:  # the profiler is still running
            self.calls.append((what, start, end, here(), get_ident(), number, scope, None))

    def begin(self, call: Call) -> Any:
        if self.plain:
            return perf_counter_ns(), None
        detail = Detail()
        if self.memory is not None:
            self.memory.ignore((call.args, call.kwargs))
        if self.shapes:
            detail.arguments = describe(call)
        if self.stack:
            detail.stack = source()
        if self.use_device is not None:
            self._mark(detail, (call.args, call.kwargs))
        return perf_counter_ns(), detail

    def end(self, token: Any, call: Call) -> None:
        end = perf_counter_ns()
        result = call.result
        # the recorder was closed, but this thread or task has not been notified
        if result is NotImplemented or self.end_time is not None:
            return
        start, detail = token
        node = call.node
        failed = isinstance(result, BaseException)
        written = result if call.of is None else call.of
        if detail is not None and not failed:
            if detail.library is not None:
                self._mark(detail, written)
                end = perf_counter_ns()
            if self.memory is not None:
                self.follow(self.memory, call, end)
            if self.flops:
                detail.flops = flops(call, result) if node is None else gradients_of_product(node)
                detail.alone = type(node) is Node
        what = call.op if call.op is not None and call.op.name == call.name else call.name
        number, scope = -1 if failed else sequence(written), FORWARD
        if node is not None:
            number, scope = node_sequence(node), BACKWARD
        self.calls.append((what, start, end, here(), get_ident(), number, scope, detail))

    def follow(self, memory: Memory, call: Call, time: int) -> None:
        """Follow the memory of the arrays that a call made."""
        memory.see(made_by(call), time)

    def us(self, time: int) -> float:
        """Return the microseconds from the start until a time."""
        return (time - self.start) / 1000

    def memory_timeline(self) -> list[tuple[float, int, int]]:
        """Return (us since the start, bytes on the host, bytes on devices) after each change."""
        changes = () if self.memory is None else self.memory.timeline()
        return [(self.us(time), library, device) for time, library, device in changes]

    def opened(self, label: Label) -> None:
        self.labels.append(label)

    def _mark(self, detail: Detail, value: Any) -> None:
        """Record a device event for an array.

        Arrays of libraries that compute immediately, and lazy arrays, have none.
        """
        x = next(iter(arrays(value)), None)
        library = None if x is None else library_of(x)
        if library is None:
            return
        kernel = library.backend.kernel
        if "mark" not in library.backend.kernels:
            self.untimed.add(library.name)
            return
        if self.use_device not in (library.name, kernel("accelerator")(library.xp, x)):
            return
        moment = kernel("mark")(library.xp, x)
        if moment is not None:
            detail.marks.append(moment)
            detail.library = library


def made_by(call: Call) -> Any:
    """Return the result of a call, or the gradient that it accumulated."""
    return call.node.cell.grad if type(call.node) is AccumulateGrad else call.result


class TimeRecorder(Recorder):
    """A Recorder of which only times are wanted."""

    timed = Recorder._timed


def source() -> list[str]:
    """Return the lines of the program that lead here, innermost first, without multigrad's."""
    return [
        f"{f.f_code.co_filename}({f.f_lineno}): {f.f_code.co_name}"
        for f in frames(sys._getframe(2))
        if not f.f_code.co_filename.startswith(OWN)
    ]


def describe(call: Call) -> list[tuple[list[Any], list[Any], Any]]:
    """Return (shape, shape, dtype) of each argument, [] and "" for one that is no array.

    The second shape of a sequence of arrays has their shapes, the first one is [].
    """
    values: tuple[Any, ...] = (*call.args, *call.kwargs.values())
    if call.op is not None:
        values = tuple(arguments_of(call).values())
    described: list[tuple[list[Any], list[Any], Any]] = []
    for x in values:
        if isinstance(x, (tuple, list)):
            described.append(([], [list(v.shape) for v in x if is_array(v)], ""))
        elif is_array(x):
            described.append((list(x.shape), list(x.shape), x.dtype))
        else:
            scalar = type(x) in PLAIN and isinstance(x, (int, float, complex))
            described.append(([], [], "Scalar" if scalar else ""))
    return described


# ----- Events -----


def events_of(recorder: Recorder, timeout_s: float | None = None) -> EventList:
    """Build the events from the records, in order of start, nested by time."""
    labels = {label: _labelled(recorder, label) for label in recorder.labels}
    deadline = inf if timeout_s is None else perf_counter_ns() + timeout_s * 1e9
    events: list[FunctionEvent] = list(labels.values())
    for call in recorder.calls:
        if perf_counter_ns() >= deadline:
            break
        events.append(_called(recorder, call))
    events.sort(key=start_of)
    for number, event in enumerate(events):
        event.id = number
    _link(events, recorder.began_with)
    _measure_devices(events)
    notes, footer = [], []
    counters: list[tuple[float, int, int]] = []
    if recorder.untimed:
        notes.append(
            f"Device time: not measured for {', '.join(sorted(recorder.untimed))}, which has no "
            "clock of its own: what is computed at once took the time of the CPU, what is "
            "computed later is not in this table"
        )
    if recorder.memory is not None:
        events += _remember(recorder, recorder.memory, events)
        events.sort(key=start_of)
        counters = recorder.memory_timeline()
        line = counters or [(0.0, 0, 0)]
        _, *peak = map(max, zip(*line, strict=True))
        at_end, at_peak = (
            format_memory(host) + (f" and {format_memory(device)} on devices" if peak[1] else "")
            for host, device in (line[-1][1:], peak)
        )
        footer.append(f"Memory: {at_end} at the end, {at_peak} at the peak")
    listed = EventList(
        events,
        use_device=recorder.use_device,
        profile_memory=recorder.memory is not None,
        with_flops=recorder.flops,
        notes=notes,
        footer=footer,
        counters=counters,
    )
    listed._build_tree(lambda event: labels.get(event._label), lambda: count_once(listed))
    return listed


def _labelled(recorder: Recorder, label: Label) -> FunctionEvent:
    end = label.end if label.end is not None else recorder.end_time or perf_counter_ns()
    event = FunctionEvent(
        0,
        label.name,
        label.thread,
        recorder.us(label.start),
        recorder.us(end),
        scope=USER,
        is_user_annotation=True,
        use_device=recorder.use_device,
        is_async=label.end_thread != label.thread,
        lane=label.task,
        concrete_inputs=None if label.args is None else [label.args],
    )
    event._label = label.outer
    return event


def _called(recorder: Recorder, call: tuple[Any, ...]) -> FunctionEvent:
    what, start, end, place, thread, seq, scope, detail = call
    name = what
    if not isinstance(what, str):
        name = what.name if scope == FORWARD else graph.backward_name(what.name)
    event = FunctionEvent(
        0,
        name,
        thread,
        recorder.us(start),
        recorder.us(end),
        sequence_nr=seq,
        scope=scope,
        use_device=recorder.use_device,
    )
    event._rule, event._label, event._detail = place.rule, place.label, detail
    event._op = what if scope == FORWARD and not isinstance(what, str) else None
    if detail is not None:
        if detail.arguments:
            shapes, structured, dtypes = zip(*detail.arguments, strict=True)
            event.input_shapes, event.structured_input_shapes = list(shapes), list(structured)
            event.input_dtypes = list(map(str, dtypes))
        event.stack, event.flops = detail.stack, detail.flops
        if detail.around is not None:
            event._cost = (start - detail.around[0]) / 1000, (detail.around[1] - end) / 1000
    return event


def _link(events: Sequence[FunctionEvent], first: int) -> None:
    """Remove a node's number from events that neither made the node nor contain its operation.

    An operation that returned its argument is an example.
    """
    made: dict[int, FunctionEvent] = {}
    for event in events:
        if event.scope == FORWARD and event.sequence_nr >= 0:
            if event.sequence_nr < first:
                event.sequence_nr = -1
                continue
            maker = made.get(event.sequence_nr)
            if maker is None or event.time_range.end <= maker.time_range.end:
                made[event.sequence_nr] = event
    for event in events:
        maker = made.get(event.sequence_nr)
        if event.scope == BACKWARD:
            event.fwd_thread = None if maker is None else maker.thread
            event.flops *= 0 if maker is None else maker.flops
        elif maker is not None and event.time_range.start > maker.time_range.end:
            event.sequence_nr = -1


def _measure_devices(events: Sequence[FunctionEvent]) -> None:
    for event in events:
        detail = event._detail
        if detail is not None and detail.library is not None and len(detail.marks) == 2:
            us = detail.library.backend.kernel("elapsed")(detail.library.xp, *detail.marks)
            if us > 0:
                event.append_kernel(event.name, 0, us)


def _remember(
    recorder: Recorder, memory: Memory, events: Sequence[FunctionEvent]
) -> list[FunctionEvent]:
    """Count memory changes in the events during which they happened.

    Changes outside of all events become events of their own, which are returned.
    """
    waiting: dict[int, deque[FunctionEvent]] = defaultdict(deque)
    for event in events:
        waiting[event.thread].append(event)
    running: dict[int, list[FunctionEvent]] = defaultdict(list)
    outside = []
    for change in memory.changes():  # one sweep over both
        us, thread = recorder.us(change.time), change.thread
        ahead = waiting[thread]
        while ahead and ahead[0].time_range.start < us:
            running[thread].append(ahead.popleft())
        around = running[thread] = [e for e in running[thread] if e.time_range.end >= us]
        if not around:
            around = [
                FunctionEvent(0, MEMORY_EVENT_NAME, thread, us, us, use_device=recorder.use_device)
            ]
            outside += around
        field = "cpu_memory_usage" if change.device is None else "device_memory_usage"
        for event in around:
            setattr(event, field, getattr(event, field) + change.nbytes)
    return outside
