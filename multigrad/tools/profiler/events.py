"""Results of the profiler, as in torch.autograd.profiler_util: lists of events, averages.

All times are microseconds and all memory is bytes. PyTorch's `cuda_...` is `device_...` here; the
old names work and warn.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any

from ...tracebacks import entry
from . import FORWARD, table, trace
from .event import FormattedTimesMixin, FunctionEvent
from .nesting import Around, merge_twins, nest, node_around, share_time

__all__ = ["EventList", "FunctionEventAvg", "StringTable"]


SUMMED = (
    "cpu_time_total",
    "device_time_total",
    "self_cpu_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "count",
    "flops",
)
"""What averages sum up; the rest is that of the first event."""


class FunctionEventAvg(FormattedTimesMixin):
    """All events with one key: their number, and the sums of their times, memory and flops."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total = 0.0
        self.device_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.self_device_time_total = 0.0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self.cpu_children: Any = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = "cpu"
        self.is_legacy = False
        self.is_user_annotation = False
        self.flops = 0

    @entry
    def add(self, other: Any) -> FunctionEventAvg:
        """Add another event, or an average, with the same key."""
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if self.key is None:
            self.key = other.key
            for name in vars(self).keys() - {"key", *SUMMED}:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def __iadd__(self, other: Any) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        device = "cuda" if not self.use_device else self.use_device
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  "
            f"self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage}>"
        )


class EventList(list[Any]):
    """Events in order of their start, or averages.

    `table` prints `notes` above its rows and `footer` below them.
    """

    @entry
    def __init__(
        self,
        *args: Any,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
        notes: Sequence[str] = (),
        footer: Sequence[str] = (),
        counters: Sequence[Any] = (),
    ) -> None:
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False
        self._notes = tuple(notes)
        self._footer = tuple(footer)
        self._counters = counters

    def __str__(self) -> str:
        return self.table()

    def _like(self, events: Iterable[Any]) -> EventList:
        new = EventList(events)
        vars(new).update(vars(self), _counters=(), _tree_built=False)
        return new

    def _build_tree(
        self, label_around: Around = lambda _: None, count: Callable[[], None] = lambda: None
    ) -> None:
        """Nest the events: each becomes a child of the innermost event around it.

        `label_around` gives the parent where times do not determine it, as for labels of asyncio
        tasks. `count` is called before the events that carry out an operation are merged into it.
        """
        nest(self, label_around)
        count()
        merged = merge_twins(self)
        self[:] = [e for e in self if id(e) not in merged]
        share_time(self)
        _take_stacks(self)
        self._tree_built = True

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all self times on the host."""
        return float(sum(event.self_cpu_time_total for event in self))

    @entry
    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Format the events as a table.

        sort_by                an attribute to sort by, descending: cpu_time, cuda_time,
                               cpu_time_total, cuda_time_total, cpu_memory_usage, cuda_memory_usage,
                               self_cpu_time_total, self_cpu_memory_usage, count, ...; the default
                               is the order of the first calls
        row_limit              the maximum number of rows
        header                 a line above the table
        top_level_events_only  leave out events inside other events
        time_unit              "s", "ms" or "us" for all times
        """
        if not self:
            return ""
        ordered = list(self)
        if sort_by is not None:
            key = re.sub("cuda|xpu|privateuse1", "device", sort_by)
            if not hasattr(ordered[0], key):
                raise AttributeError(f"table: an event has no attribute {sort_by!r} to sort by")
            ordered.sort(key=lambda event: getattr(event, key), reverse=True)
        device = str(self._use_device or self[0].use_device or "device").upper()
        total = sum(event.self_cpu_time_total for event in ordered)
        device_total = sum(event.self_device_time_total for event in ordered)
        widths = table.Widths(max_name_column_width, max_src_column_width, max_shapes_column_width)
        columns = table.columns_of(self, widths, device, total, device_total, time_unit)
        rule = table.line(columns, ["-" * column.width for column in columns])
        heads = [header, *self._notes]
        if top_level_events_only:
            heads.append("This report only display top-level ops statistics")
        lines = [x for text in heads if text is not None for x in ("=" * (len(rule) - 2), text)]
        lines += [rule, table.line(columns, [column.title for column in columns]), rule]
        rows = [e for e in ordered if not (top_level_events_only and e.cpu_parent is not None)]
        for event in rows if row_limit < 0 else rows[:row_limit]:
            cells = (column.lines(event) for column in columns)
            lines += [table.line(columns, texts) for texts in zip_longest(*cells, fillvalue="")]
        lines += [rule, f"Self CPU time total: {table.format_time(total, time_unit)}"]
        if device_total > 0:
            text = table.format_time(device_total, time_unit)
            lines.append(f"Self {device} time total: {text}")
        return "\n".join([*lines, *self._footer, ""])

    @entry
    def export_chrome_trace(self, path: Any) -> None:
        """Write the events as JSON in the trace event format of chrome://tracing and Perfetto."""
        trace.write(path, trace.trace_events(self))

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that `export_stacks` accepts."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_device_time_total"]

    @entry
    def export_stacks(self, path: Any, metric: str) -> None:
        """Write each stack with its time, in the format of flame graph tools."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        trace.write_stacks(path, self, metric.replace("cuda", "device"))

    @entry
    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Return one FunctionEventAvg per name.

        group_by_input_shapes, group_by_stack_n: per name and shapes of the arguments, or per name
        and that many innermost lines of the program.
        """
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        averages: dict[tuple[Any, ...], FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            key = [event.key, event.node_id, event.is_user_annotation]
            key += [event.overload_name] * group_by_overload_name + [
                str(event.input_shapes)
            ] * group_by_input_shapes
            averages[(*key, *event.stack[: max(group_by_stack_n, 0)])].add(event)
        for average in averages.values():
            average.stack = average.stack[: max(group_by_stack_n, 0)]
            average.input_shapes = average.input_shapes if group_by_input_shapes else ""
        return self._like(averages.values())

    def total_average(self) -> FunctionEventAvg:
        """Return the sums over all events, as one FunctionEventAvg with the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total += event
            total.key = None
        total.key = "Total"
        return total


def _take_stacks(events: Iterable[FunctionEvent]) -> None:
    """Give each node, and the events inside it, the stack of the operation that made the node.

    That stack tells more than the stack of the backward pass.
    """
    made = {
        e.sequence_nr: e.stack
        for e in events
        if e.scope == FORWARD and e.sequence_nr >= 0 and e.stack
    }
    for event in events:
        node = node_around(event)
        if node is not None and event.stack:
            event.stack = made.get(node.sequence_nr, event.stack if event is not node else [])


class StringTable(defaultdict[str, str]):
    """Demangled C++ names by their mangled form; any other name maps to itself."""

    def __missing__(self, key: str) -> str:
        self[key] = name = demangle(key)
        return name


@cache
def _demangler() -> Any:
    import ctypes
    from ctypes.util import find_library

    try:
        function = ctypes.CDLL(find_library("stdc++") or "libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    return function


def demangle(name: str) -> str:
    """Return a demangled C++ name; any other name is returned unchanged.

    Without the C++ runtime library, every name is returned unchanged.
    """
    function = _demangler() if name.startswith("_Z") else None
    if function is None:
        return name
    import ctypes

    buffer = function(name.encode(), None, None, None)
    if not buffer:
        return name
    text = ctypes.string_at(buffer).decode()
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(buffer)
    return text
