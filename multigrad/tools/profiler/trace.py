"""Exports of the profiler: traces for chrome://tracing and Perfetto, stacks for flame graphs.

The format: "Trace Event Format",
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Google, 2016). A
call is a complete event ("X"). A flow ("s" and "f") links an operation and its node. Memory is a
counter ("C"), and the name of a thread is metadata ("M").
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import BACKWARD, FORWARD

FLOW = "fwdbwd"


def trace_events(events: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a trace: every call, and arrows from operations to their nodes.

    Times are microseconds.
    """
    pid = os.getpid()
    rows = _rows(events)
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "multigrad"}}
    for number, name in rows.values():
        thread = {"ph": "M", "pid": pid, "tid": number}
        yield {**thread, "name": "thread_name", "args": {"name": name}}
        yield {**thread, "name": "thread_sort_index", "args": {"sort_index": number}}
    made = {  # the innermost event begins last and overwrites the others
        event.sequence_nr: event
        for event in events
        if event.scope == FORWARD and event.sequence_nr >= 0
    }
    arrows = 0
    for event in events:
        times = event.time_range
        place = {"pid": pid, "tid": rows[event.thread, event.lane][0]}
        yield {
            "ph": "X",
            "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
            "name": event.trace_name,
            **place,
            "ts": times.start,
            "dur": max(times.elapsed_us(), 0),
            "args": _arguments(event),
        }
        origin = made.get(event.sequence_nr) if event.scope == BACKWARD else None
        if origin is not None:
            arrows += 1
            arrow = {"cat": FLOW, "name": FLOW, "id": arrows, "pid": pid}
            row = rows[origin.thread, origin.lane][0]
            yield {"ph": "s", **arrow, "tid": row, "ts": origin.time_range.start}
            yield {"ph": "f", "bp": "e", **arrow, **place, "ts": times.start}
    for us, library, device in getattr(events, "_counters", ()):
        yield {
            "ph": "C",
            "name": "memory",
            "pid": pid,
            "tid": 0,
            "ts": us,
            "args": {"library bytes": library, "device bytes": device},
        }


def _rows(events: Iterable[Any]) -> dict[tuple[int, int], tuple[int, str]]:
    """Return a row of the trace, as a small number and a name, per thread and lane.

    Tasks whose labels overlap with other labels, and other events that overlap, get rows of their
    own.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    rows: dict[tuple[int, int], tuple[int, str]] = {}
    for event in events:
        key = event.thread, event.lane
        if key not in rows:
            name = names.get(event.thread, f"thread {len(rows) + 1}")
            if event.lane:
                name += f", task {event.lane}" if event.lane > 0 else f", overlap {-event.lane}"
            rows[key] = len(rows) + 1, name
    return rows


def _arguments(event: Any) -> dict[str, Any]:
    arguments = {
        "Event": event.id,
        "Sequence number": event.sequence_nr if event.sequence_nr >= 0 else None,
        "Fwd thread id": event.fwd_thread if event.scope == BACKWARD else None,
        "Input Dims": _lengths(event.structured_input_shapes or event.input_shapes) or None,
        "Input type": event.input_dtypes or None,
        "Call stack": ";".join(reversed(event.stack)) or None,
        "Flops": event.flops or None,
        "Bytes": event.cpu_memory_usage + event.device_memory_usage or None,
    }
    if event.kernels:
        arguments["Device time (us)"] = sum(kernel.duration for kernel in event.kernels)
    return {name: value for name, value in arguments.items() if value is not None}


def _lengths(shapes: Any) -> Any:
    """Replace lengths that a lazy library does not know yet by null, which JSON can hold."""
    if isinstance(shapes, (list, tuple)):
        return [_lengths(n) for n in shapes]
    return int(shapes) if shapes is not None and shapes == shapes else None


def write(path: Any, events: Iterable[dict[str, Any]], head: dict[str, Any] | None = None) -> None:
    """Write a JSON array of events, or an object with `head` and the events in "traceEvents".

    The text is complete before the file is opened.
    """
    text = "[\n" + ",\n".join(map(json.dumps, events)) + "\n]"
    if head is not None:
        try:
            begin = json.dumps(head, allow_nan=False)[:-1]
        except (RecursionError, TypeError, ValueError) as error:
            raise TypeError(
                f"export_chrome_trace: metadata must be what JSON can hold: {error}"
            ) from None
        text = f'{begin}, "traceEvents": {text}}}'
    Path(path).write_text(text + "\n", encoding="utf-8")


def write_stacks(path: Any, events: Iterable[Any], metric: str) -> None:
    """Write `outermost;...;innermost microseconds` for each event that has a stack.

    flamegraph.pl and speedscope read this format.
    """
    table = str.maketrans(" ;\t\n", "____")
    with Path(path).open("w", encoding="utf-8") as file:
        for event in events:
            value = int(getattr(event, metric))
            if event.stack and value > 0:
                file.write(
                    ";".join(entry.translate(table) for entry in reversed(event.stack))
                    + f" {value}\n"
                )
