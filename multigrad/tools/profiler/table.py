"""The table of the profiler, in the format of torch.autograd.profiler's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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


class Column(NamedTuple):
    """One column: title, width, the function from an event to lines of text, the alignment."""

    title: str
    width: int
    lines: Callable[[Any], list[str]]
    align: str = ">"


def line(columns: Sequence[Column], texts: Sequence[str]) -> str:
    return "".join(f"{text:{c.align}{c.width}}  " for c, text in zip(columns, texts, strict=True))


def columns_of(
    events: Any, widths: Widths, device: str, total: float, device_total: float, unit: str | None
) -> list[Column]:
    """Return the columns for a list of events or averages."""

    def column(title: str, text: Callable[[Any], str], width: int = BASIC) -> Column:
        return Column(title, width, lambda event: [text(event)])

    def time(title: str, name: str) -> Column:
        return column(title, lambda event: format_time(getattr(event, name), unit))

    def memory(title: str, name: str) -> Column:
        return column(title, lambda event: format_memory(getattr(event, name)))

    def share(title: str, name: str, whole: float) -> Column:
        def text(event: Any) -> str:
            return "0" if event.is_async else format_share(getattr(event, name), whole)

        return column(title, text)

    def width(limit: int | None, texts: Iterable[str]) -> int:
        least = max(map(len, texts)) + 4
        return least if limit is None else min(least, limit)

    columns = [
        column(
            "Name",
            lambda event: _beginning_of(event.key, widths.name),
            width(widths.name, (event.key for event in events)),
        ),
        share("Self CPU %", "self_cpu_time_total", total),
        time("Self CPU", "self_cpu_time_total"),
        share("CPU total %", "cpu_time_total", total),
        time("CPU total", "cpu_time_total"),
        time("CPU time avg", "cpu_time"),
    ]
    if device_total > 0:
        columns += [
            time(f"Self {device}", "self_device_time_total"),
            share(f"Self {device} %", "self_device_time_total", device_total),
            time(f"{device} total", "device_time_total"),
            time(f"{device} time avg", "device_time"),
        ]
    if events._profile_memory:
        columns.append(memory("CPU Mem", "cpu_memory_usage"))
        columns.append(memory("Self CPU Mem", "self_cpu_memory_usage"))
        if any(event.device_memory_usage for event in events):
            columns.append(memory(f"{device} Mem", "device_memory_usage"))
            columns.append(memory(f"Self {device} Mem", "self_device_memory_usage"))
    columns.append(column("# of Calls", lambda event: str(event.count)))
    if any(event.node_id != -1 for event in events):
        columns.append(column("Node ID", lambda event: str(event.node_id)))
    if any(event.input_shapes for event in events):
        shapes = width(widths.shapes, (str(event.input_shapes) for event in events))
        columns.append(
            column("Input Shapes", lambda event: str(event.input_shapes)[:shapes], shapes)
        )
    if any(event.stack for event in events):
        source = width(widths.source, (entry for event in events for entry in event.stack))
        columns.append(
            Column(
                "Source Location",
                source,
                lambda event: [_end_of(entry, source) for entry in [*(event.stack or [""]), ""]],
                "<",
            )
        )
    counts = [event.flops for event in events if event.flops > 0]
    if events._with_flops and counts:
        power = min(int(math.log10(min(counts)) // 3), len(FLOPS) - 1)
        columns.append(
            column(
                f"Total {FLOPS[power]}",
                lambda event: f"{event.flops / 1000**power:.3f}" if event.flops > 0 else "--",
            )
        )
    return columns


def _beginning_of(name: str, limit: int | None) -> str:
    return name if limit is None or len(name) < limit - 3 else name[: limit - 3] + "..."


def _end_of(path: str, width: int) -> str:
    return path if len(path) <= width else "..." + path[len(path) - width + 3 :]
