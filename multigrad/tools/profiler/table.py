"""The table of the profiler, in the format of torch.autograd.profiler's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

UNITS = {"s": 1e-6, "ms": 1e-3, "us": 1.0}
FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
BASIC = 12  # the width of a column of numbers


def format_time(us: float, unit: str | None = None) -> str:
    """Format as `12.300us`, `1.234ms` or `1.235s`; in `unit` if that is given."""
    if unit not in UNITS:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return f"{us * UNITS[unit]:.3f}{unit}"


def format_share(us: float, total: float) -> str:
    """Format as `33.33%`, or `NaN` if the total is 0."""
    return "NaN" if total == 0 else f"{us * 100.0 / total:.2f}%"


def format_memory(n: int) -> str:
    """Format as `24 B`, `2.00 KB` or `-3.00 MB`."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} B"


class Widths(NamedTuple):
    """Maximum widths of the text columns, None for no limit."""

    name: int | None
    source: int | None
    shapes: int | None


@dataclass
class Column:
    """One column: title, width, the function from event to text, and left alignment."""

    title: str
    width: int
    text: Callable[[Any], str]
    left: bool = False

    def cell(self, text: str) -> str:
        return f"{text:<{self.width}}" if self.left else f"{text:>{self.width}}"


def build(
    events: Any,
    sort_by: str | None,
    row_limit: int,
    widths: Widths,
    header: str | None,
    top_level_only: bool,
    unit: str | None,
) -> str:
    """Format a list of events or averages as a table; an empty list gives an empty text."""
    if not events:
        return ""
    shown: list[Any] = list(events)
    if sort_by is not None:
        key = (
            sort_by.replace("cuda", "device")
            .replace("xpu", "device")
            .replace("privateuse1", "device")
        )
        if not hasattr(shown[0], key):
            raise AttributeError(f"table: an event has no attribute {sort_by!r} to sort by")
        shown.sort(key=lambda event: getattr(event, key), reverse=True)
    total = sum(event.self_cpu_time_total for event in shown)
    device_total = sum(event.self_device_time_total for event in shown)
    columns = _columns(events, shown, widths, total, device_total, unit)
    rule = "".join("-" * column.width + "  " for column in columns)
    lines: list[str] = []
    for text in (
        header,
        *events._notes,
        "This report only display top-level ops statistics" if top_level_only else None,
    ):
        if text is not None:
            lines += ["=" * (len(rule) - 2), text]
    lines += [rule, _line(columns, [column.title for column in columns]), rule]
    rows = [e for e in shown if not (top_level_only and e.cpu_parent is not None)]
    for event in rows if row_limit < 0 else rows[:row_limit]:
        lines += _row(columns, event, widths.source)
    lines += [rule, f"Self CPU time total: {format_time(total, unit)}"]
    if device_total > 0:
        lines.append(f"Self {_device(events)} time total: {format_time(device_total, unit)}")
    return "\n".join([*lines, *events._footer, ""])


def _line(columns: Sequence[Column], texts: Sequence[str]) -> str:
    return "".join(column.cell(text) + "  " for column, text in zip(columns, texts, strict=True))


def _row(columns: Sequence[Column], event: Any, width: int | None) -> list[str]:
    """Return the lines of an event: several if it shows several lines of the program."""
    lines = [_line(columns, [column.text(event) for column in columns])]
    source = next((column for column in columns if column.title == "Source Location"), None)
    if source is not None:
        lines += [
            _line(
                columns,
                [_end_of(entry, source.width) if column is source else "" for column in columns],
            )
            for entry in [*event.stack[1:], ""]
        ]
    return lines


def _device(events: Any) -> str:
    return str(events._use_device or events[0].use_device or "device").upper()


def _columns(
    events: Any,
    shown: Sequence[Any],
    widths: Widths,
    total: float,
    device_total: float,
    unit: str | None,
) -> list[Column]:
    def time(title: str, name: str) -> Column:
        return Column(title, BASIC, lambda event: format_time(getattr(event, name), unit))

    def memory(title: str, name: str) -> Column:
        return Column(title, BASIC, lambda event: format_memory(getattr(event, name)))

    def share(title: str, name: str, whole: float) -> Column:
        return Column(
            title,
            BASIC,
            lambda event: "0" if event.is_async else format_share(getattr(event, name), whole),
        )

    name_width = _at_most(max(len(event.key) for event in shown) + 4, widths.name)
    columns = [Column("Name", name_width, lambda event: _beginning_of(event.key, widths.name))]
    columns += [
        share("Self CPU %", "self_cpu_time_total", total),
        time("Self CPU", "self_cpu_time_total"),
        share("CPU total %", "cpu_time_total", total),
        time("CPU total", "cpu_time_total"),
        time("CPU time avg", "cpu_time"),
    ]
    device = _device(events)
    if device_total > 0:
        columns += [
            time(f"Self {device}", "self_device_time_total"),
            share(f"Self {device} %", "self_device_time_total", device_total),
            time(f"{device} total", "device_time_total"),
            time(f"{device} time avg", "device_time"),
        ]
    if events._profile_memory:
        columns += [
            memory("CPU Mem", "cpu_memory_usage"),
            memory("Self CPU Mem", "self_cpu_memory_usage"),
        ]
        if any(event.device_memory_usage for event in shown):
            columns += [
                memory(f"{device} Mem", "device_memory_usage"),
                memory(f"Self {device} Mem", "self_device_memory_usage"),
            ]
    columns.append(Column("# of Calls", BASIC, lambda event: str(event.count)))
    if any(event.node_id != -1 for event in shown):
        columns.append(Column("Node ID", BASIC, lambda event: str(event.node_id)))
    if any(event.input_shapes for event in shown):
        width = _at_most(max(len(str(event.input_shapes)) for event in shown) + 4, widths.shapes)
        columns.append(Column("Input Shapes", width, lambda event: str(event.input_shapes)[:width]))
    if any(event.stack for event in shown):
        source = _at_most(
            max(len(entry) for event in shown for entry in event.stack) + 4, widths.source
        )
        columns.append(
            Column(
                "Source Location",
                source,
                lambda event: _end_of(event.stack[0], source) if event.stack else "",
                left=True,
            )
        )
    counted = [event.flops for event in shown if event.flops > 0]
    if events._with_flops and counted:
        power = min(int(math.log10(min(counted)) // 3), len(FLOPS) - 1)
        columns.append(
            Column(
                f"Total {FLOPS[power]}",
                BASIC,
                lambda event: f"{event.flops / 1000**power:.3f}" if event.flops > 0 else "--",
            )
        )
    return columns


def _at_most(width: int, limit: int | None) -> int:
    return width if limit is None else min(width, limit)


def _beginning_of(name: str, limit: int | None) -> str:
    return name if limit is None or len(name) < limit - 3 else name[: limit - 3] + "..."


def _end_of(path: str, width: int) -> str:
    return path if len(path) <= width else "..." + path[len(path) - width + 3 :]
