"""Readers of the traces of NVIDIA's profilers.

`load_nvprof` is torch.autograd.profiler.load_nvprof. It reads nvprof's SQLite file, and the SQLite
export of Nsight Systems. Both keep nanoseconds; events have microseconds. A kernel belongs to every
range during which the runtime call that launched it ran, in the same thread if threads are known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import closing
from operator import itemgetter
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import MultigradError
from ...tracebacks import entry
from . import BACKWARD, FORWARD
from .event import FunctionEvent
from .events import EventList, StringTable

if TYPE_CHECKING:
    import sqlite3

Columns = dict[str, tuple[str, ...]]
"""Of each table that is read: the columns that it must have."""


class Format(NamedTuple):
    """A format of traces: its tables, and the queries that read them.

    strings   number, text
    ranges    id, text or None, number of the text, thread, start, end
    launches  thread, start, end, number of the kernel's name, device, start and end of the kernel
    """

    tables: Columns
    kernels: Columns
    strings: str
    ranges: str
    launches: str


NVPROF = Format(
    {"StringTable": ("_id_", "value"), "CUPTI_ACTIVITY_KIND_MARKER": ("id", "name", "timestamp")},
    {
        "CUPTI_ACTIVITY_KIND_RUNTIME": ("_id_", "start", "end", "correlationId"),
        "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL": ("start", "end", "name", "correlationId"),
    },
    "SELECT _id_, value FROM StringTable",
    "SELECT s.id, NULL, s.name, 0, s.timestamp, e.timestamp FROM CUPTI_ACTIVITY_KIND_MARKER AS s "
    "JOIN CUPTI_ACTIVITY_KIND_MARKER AS e ON s.id = e.id WHERE s.name != 0 AND e.name = 0",
    "SELECT 0, r.start, r.end, k.name, 0, k.start, k.end FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r "
    "JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS k ON k.correlationId = r.correlationId",
)
# eventType 59: push/pop ranges, 60: start/end ranges. Correlation ids are unique in one process.
NSIGHT = Format(
    {
        "StringIds": ("id", "value"),
        "NVTX_EVENTS": ("start", "end", "eventType", "text", "textId", "globalTid"),
    },
    {
        "CUPTI_ACTIVITY_KIND_RUNTIME": ("start", "end", "globalTid", "correlationId"),
        "CUPTI_ACTIVITY_KIND_KERNEL": ("start", "end", "deviceId", "correlationId"),
    },
    "SELECT id, value FROM StringIds",
    "SELECT rowid, text, textId, globalTid, start, end FROM NVTX_EVENTS "
    "WHERE eventType IN (59, 60) AND end IS NOT NULL",
    "SELECT r.globalTid, r.start, r.end, {name}, k.deviceId, k.start, k.end "
    "FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN CUPTI_ACTIVITY_KIND_KERNEL AS k "
    "ON k.correlationId = r.correlationId{process}",
)
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"  # the rows of a view may have no end
SEQUENCE = re.compile(r", (stashed )?seq ?= ?(\d+)")


class TraceError(MultigradError, ValueError):
    """A file is not a profiler trace, or is damaged."""


class EnforceUnique:
    """Raises an error if a key is seen more than once."""

    def __init__(self) -> None:
        self.seen: set[tuple[Any, ...]] = set()

    @entry
    def see(self, *key: Any) -> None:
        """Register a key. Raises RuntimeError if it was registered before."""
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


@entry
def load_nvprof(path: Any) -> EventList:
    """Load the ranges of a trace, with their kernels.

    The file is a trace of nvprof (`nvprof -o trace.prof`) or of Nsight Systems (`nsys export --type
    sqlite`).

    Raises FileNotFoundError if the file is missing, and ValueError if it is another kind of file or
    damaged.
    """
    events = EventList(parse_nvprof_trace(path), use_device="cuda")
    events._build_tree()
    return events


@entry
def parse_nvprof_trace(path: Any) -> list[FunctionEvent]:
    """Return the ranges of a trace as events, in order of their start."""
    import sqlite3  # imported late: some Python builds lack it

    path = Path(fspath(path))
    if not path.is_file():
        raise FileNotFoundError(f"load_nvprof: there is no file {str(path)!r}")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            tables = {
                name: {row[1] for row in db.execute("SELECT * FROM pragma_table_info(?)", (name,))}
                for (name,) in db.execute(TABLES).fetchall()
            }
            for trace in (NVPROF, NSIGHT):
                if _has(tables, trace.tables):
                    return _read(db, tables, trace)
    except sqlite3.Error as error:
        raise TraceError(
            f"load_nvprof: {str(path)!r} cannot be read as SQLite ({error}). It is damaged, or "
            "no trace of nvprof or Nsight Systems; of the latter, make one by `nsys export "
            "--type sqlite`."
        ) from None
    except (OverflowError, RuntimeError, TypeError, ValueError) as error:
        # a column of the trace has values of the wrong type
        raise TraceError(f"load_nvprof: {str(path)!r} is a damaged trace: {error}") from None
    raise TraceError(
        f"load_nvprof: {str(path)!r} is SQLite, but no trace of nvprof or Nsight Systems with "
        f"ranges: it has neither the tables {', '.join(NVPROF.tables)} nor "
        f"{', '.join(NSIGHT.tables)} with the columns wanted."
    )


def _has(tables: dict[str, set[str]], required: Columns) -> bool:
    return all(set(columns) <= tables.get(name, set()) for name, columns in required.items())


def _read(
    db: sqlite3.Connection, tables: dict[str, set[str]], trace: Format
) -> list[FunctionEvent]:
    demangled = StringTable()
    strings = {i: demangled[str(text)] for i, text in db.execute(trace.strings)}
    unique = EnforceUnique()
    events: list[FunctionEvent] = []
    # of each range and launch: thread, start, whether it is a range, end, the event or the kernel
    spans: list[tuple[int, int, bool, int, Any]] = []
    for i, text, number, thread, start, end in db.execute(trace.ranges):
        unique.see(i)
        name = _named(strings, number) if text is None else str(text)
        begin, stop = _times(start, end)
        event = _event(i, name, int(thread or 0), begin, stop)
        events.append(event)
        spans.append((event.thread, begin, True, stop, event))
    columns = tables.get("CUPTI_ACTIVITY_KIND_KERNEL", set())
    names = [c for c in ("demangledName", "shortName", "mangledName") if c in columns]
    launches = trace.launches.format(
        name=f"k.{names[0]}" if names else "NULL",
        # a thread's id names its process in the upper bits
        process=" AND (k.globalPid >> 24) = (r.globalTid >> 24)" if "globalPid" in columns else "",
    )
    for thread, start, end, number, device, *times in (
        db.execute(launches) if _has(tables, trace.kernels) else ()
    ):
        begin, stop = _times(*times)
        kernel = _named(strings, number), int(device or 0), (stop - begin) / 1000
        begin, stop = _times(start, end)
        spans.append((int(thread or 0), begin, False, stop, kernel))
    around: dict[int, list[tuple[int, FunctionEvent]]] = defaultdict(list)
    for thread, start, is_range, end, thing in sorted(spans, key=itemgetter(0, 1, 2)):
        around[thread] = [(stop, event) for stop, event in around[thread] if stop > start]
        if is_range:
            around[thread].append((end, thing))
            continue
        for stop, event in around[thread]:
            if stop > end:
                event.append_kernel(*thing)
    return sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end))


def _event(id: int, name: str, thread: int, start: int, end: int) -> FunctionEvent:
    match = SEQUENCE.search(name)
    return FunctionEvent(
        id,
        name,
        thread,
        start / 1000,
        end / 1000,
        node_id=0,
        use_device="cuda",
        sequence_nr=-1 if match is None else int(match[2]),
        scope=BACKWARD if match and match[1] else FORWARD,
    )


def _named(strings: dict[Any, str], number: Any) -> str:
    if number not in strings:
        raise ValueError(f"it has no string {number}")
    return strings[number]


def _times(start: Any, end: Any) -> tuple[int, int]:
    if not isinstance(start, (int, float)) or not isinstance(end, (int, float)):
        raise ValueError(f"{start!r} to {end!r} are no times")
    return int(start), int(end)
