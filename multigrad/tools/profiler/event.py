"""One event of the profiler: a call, its times, its memory, and the events inside it."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, cast

from . import FORWARD, table

__all__ = ["FormattedTimesMixin", "FunctionEvent", "Interval", "Kernel"]


class Interval:
    """The times `start` and `end` of an event."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Length in microseconds."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Work on a device."""

    name: Any
    device: int
    duration: float


def _formatted(name: str) -> Any:
    return property(lambda self: table.format_time(getattr(self, name)))


def _renamed(old: str, new: str) -> Any:
    def get(self: Any) -> Any:
        warnings.warn(
            f"`{old}` is deprecated, please use `{new}` instead.", FutureWarning, stacklevel=2
        )
        return getattr(self, new)

    return property(get, doc=f"The former name of `{new}`.")


class FormattedTimesMixin:
    """Times per call, and their texts, for classes with `count` and `..._time_total`."""

    cpu_time_str = _formatted("cpu_time")
    device_time_str = _formatted("device_time")
    cpu_time_total_str = _formatted("cpu_time_total")
    device_time_total_str = _formatted("device_time_total")
    self_cpu_time_total_str = _formatted("self_cpu_time_total")
    self_device_time_total_str = _formatted("self_device_time_total")
    cuda_time = _renamed("cuda_time", "device_time")
    cuda_time_total = _renamed("cuda_time_total", "device_time_total")
    self_cuda_time_total = _renamed("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = _renamed("self_cuda_memory_usage", "self_device_memory_usage")
    count: int

    @property
    def cpu_time(self) -> float:
        """Host time per call."""
        return 0.0 if self.count == 0 else cast(Any, self).cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """Device time per call."""
        return 0.0 if self.count == 0 else cast(Any, self).device_time_total / self.count


class FunctionEvent(FormattedTimesMixin):
    """One call: of an operation, of a node in a backward pass, or of a labelled block.

    sequence_nr   the number of the node; an operation and its node have the same number, other
                  events have -1
    scope         0 for an operation, 1 for a node, 7 for a label
    thread        the thread of the call; fwd_thread: the thread of the operation that made the node
    lane          the asyncio task of the event's label, 0 for none
    cpu_children  the events directly inside; cpu_parent: the event directly around
    kernels       work on a device, if device time was measured
    """

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str = "",
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: list[str] | None = None,
        scope: int = FORWARD,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: str = "cpu",
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: Any = None,
        kwinputs: Any = None,
        is_user_annotation: bool = False,
        structured_input_shapes: Any = None,
        input_dtypes: Any = None,
        lane: int = 0,
    ) -> None:
        self.id = id
        self.node_id = node_id
        self.name = name
        self.overload_name = overload_name
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.fwd_thread = fwd_thread
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes = input_shapes if input_shapes is not None else []
        self.structured_input_shapes = structured_input_shapes
        self.input_dtypes = input_dtypes
        self.concrete_inputs = concrete_inputs
        self.kwinputs = kwinputs
        self.stack = stack if stack is not None else []
        self.scope = scope
        self.use_device = use_device
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async = is_async
        self.is_remote = is_remote
        self.sequence_nr = sequence_nr
        self.device_type = device_type
        self.device_index = device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy = is_legacy
        self.flops = 0 if flops is None else flops
        self.is_user_annotation = is_user_annotation
        self.lane = lane
        self._op: Any = None  # the declaration of an operation
        self._rule: object = None  # the run of the rule that called it, see observe.Place
        self._label: Any = None  # the label around it
        self._detail: Any = None  # further records, see recorder.Detail
        self._own_time: float | None = None  # set where events are nested, see nesting.py
        # microseconds of recording before and after the call, to be subtracted from the event
        # around it
        self._cost = 0.0, 0.0
        self._hidden = 0.0  # recording time of merged events inside it

    def append_kernel(self, name: Any, device: int, duration: float) -> None:
        """Add work on a device."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add an event directly inside this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Set the event directly around this one."""
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """The name, by which averages are grouped."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Host time, including nested events."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """Host time, excluding nested events.

        Where labels overlap, each moment counts for the event that began last.
        """
        if self.is_async:
            return 0.0
        if self._own_time is not None:
            return self._own_time
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        """Device time, including nested events."""
        if self.is_async or not self.use_device:
            return 0.0
        if self.kernels:  # they were measured around the whole event
            return sum(k.duration for k in self.kernels)
        return sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        """Device time, excluding nested events."""
        if self.is_async or not self.use_device:
            return 0.0
        inside = sum(child.device_time_total for child in self.cpu_children)
        return max(self.device_time_total - inside, 0.0)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes allocated minus bytes freed on the host, excluding nested events."""
        if self.is_async:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """Bytes allocated minus bytes freed on the device, excluding nested events."""
        if self.is_async:
            return 0
        inside = sum(child.device_memory_usage for child in self.cpu_children)
        return self.device_memory_usage - inside

    def __repr__(self) -> str:
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} "
            f"cpu_time={self.cpu_time_str} start_us={self.time_range.start} "
            f"end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} "
            f"{device}_time={self.device_time_str} name={self.name} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage} is_async={self.is_async} "
            f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )
