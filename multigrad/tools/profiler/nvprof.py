"""Readers of the traces of NVIDIA's profilers.

`load_nvprof` is torch.autograd.profiler.load_nvprof. It reads nvprof's SQLite file, and the SQLite
export of Nsight Systems. Both keep nanoseconds; events have microseconds. A kernel belongs to every
range during which the runtime call that launched it ran, in the same thread if threads are known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
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


class _Launch(NamedTuple):
    """A runtime call and the kernel that it launched.

    `place`: the thread, in the form that ranges have.
    """

    place: int
    start: int
    end: int
    name: str
    device: int
    duration: float


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
                # the rows of a view may have no end
                for (name,) in db.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                ).fetchall()
            }
            for trace in (NVPROF, NSIGHT):
                if _has(tables, trace.tables):
                    return _events(*_read(db, tables, trace))
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


def _has(tables: dict[str, set[str]], wanted: Mapping[str, tuple[str, ...]]) -> bool:
    return all(set(columns) <= tables.get(name, set()) for name, columns in wanted.items())


Range = tuple[Any, str, int, int, int]
"""An id, the name, the thread, and the times."""


def _read(
    db: sqlite3.Connection, tables: dict[str, set[str]], trace: Format
) -> tuple[list[Range], list[_Launch]]:
    demangled = StringTable()
    strings = {i: demangled[str(text)] for i, text in db.execute(trace.strings)}
    unique = EnforceUnique()
    ranges: list[Range] = []
    for i, text, number, thread, start, end in db.execute(trace.ranges):
        unique.see(i)
        name = _named(strings, number) if text is None else str(text)
        ranges.append((i, name, int(thread or 0), *_times(start, end)))
    if not _has(tables, trace.kernels):
        return ranges, []
    launches = [
        _Launch(
            int(thread or 0),
            *_times(start, end),
            _named(strings, number),
            int(device or 0),
            _duration(begin, stop),
        )
        for thread, start, end, number, device, begin, stop in db.execute(
            trace.launches.format(**_kernels(tables))
        )
    ]
    return ranges, launches


def _kernels(tables: dict[str, set[str]]) -> dict[str, str]:
    """Return the parts of a query that depend on the version of Nsight Systems."""
    columns = tables.get("CUPTI_ACTIVITY_KIND_KERNEL", set())
    names = [c for c in ("demangledName", "shortName", "mangledName") if c in columns]
    # a thread's id names its process in the upper bits
    same = " AND (k.globalPid >> 24) = (r.globalTid >> 24)" if "globalPid" in columns else ""
    return {"name": f"k.{names[0]}" if names else "NULL", "process": same}


def _named(strings: dict[Any, str], number: Any) -> str:
    if number not in strings:
        raise ValueError(f"it has no string {number}")
    return strings[number]


def _times(start: Any, end: Any) -> tuple[int, int]:
    if not isinstance(start, (int, float)) or not isinstance(end, (int, float)):
        raise ValueError(f"{start!r} to {end!r} are no times")
    return int(start), int(end)


def _duration(start: Any, end: Any) -> float:
    begin, stop = _times(start, end)
    return (stop - begin) / 1000


def _events(ranges: Iterable[Range], launches: Sequence[_Launch]) -> list[FunctionEvent]:
    ranges_of: dict[int, list[tuple[int, int, FunctionEvent]]] = defaultdict(list)
    for i, name, thread, start, end in ranges:
        match = SEQUENCE.search(name)
        event = FunctionEvent(
            i,
            name,
            thread,
            start / 1000,
            end / 1000,
            node_id=0,
            use_device="cuda",
            sequence_nr=-1 if match is None else int(match[2]),
            scope=BACKWARD if match and match[1] else FORWARD,
        )
        ranges_of[thread].append((start, end, event))
    for some in ranges_of.values():
        some.sort(key=lambda entry: (entry[0], -entry[1]))
    for thread, some in ranges_of.items():
        for launch, around in _around(
            some, sorted((x for x in launches if x.place == thread), key=lambda x: x.start)
        ):
            for event in around:
                event.append_kernel(launch.name, launch.device, launch.duration)
    events = [event for some in ranges_of.values() for _, _, event in some]
    return sorted(events, key=lambda e: e.time_range.start)


def _around(
    ranges: Sequence[tuple[int, int, FunctionEvent]], launches: Iterable[_Launch]
) -> Iterator[tuple[_Launch, list[FunctionEvent]]]:
    """Yield each launch with the ranges that contain it; both must be in order of their start."""
    open_: list[tuple[int, FunctionEvent]] = []
    i = 0
    for launch in launches:
        while i < len(ranges) and ranges[i][0] < launch.start:
            open_.append((ranges[i][1], ranges[i][2]))
            i += 1
        open_ = [entry for entry in open_ if entry[0] > launch.start]
        yield launch, [event for end, event in open_ if end > launch.end]
