"""The report of a profiled run as one HTML page, for `python -m multigrad profile script.py`."""

from __future__ import annotations

import linecache
import os
import platform
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

from ... import observe
from ...pages import page, source
from ..graphs import provenance
from ..graphs.memory import ENABLE, MemoryReport, Share
from ..profiler import BACKWARD, FORWARD
from ..profiler.events import EventList
from ..profiler.memory import Held, Memory
from ..profiler.profile import profile
from ..profiler.recorder import MEMORY_EVENT_NAME
from ..profiler.trace import _rows
from ..tables import counted, size
from .times import annotated, by_line, flame, split, totals
from .watch import GraphRecord, Made, RunObserver

POINTS = 20_000
ROWS = 40


class Run:
    """A run of a script, or of a block of a program, under the profiler.

    The command for a script uses it in this way:

        run = Run("script", "script.py", ("command", "script.py --epochs 3"))
        run.begin()
        status = ...  # run the script
        run.end(("exit status", status))  # while its arrays are still alive
        run.write("report.html")

    subject  the noun for the profiled code in texts of the page
    title    its name
    origin   the first row of the summary: what it is called there, and its value
    """

    def __init__(self, subject: str, title: str, origin: tuple[str, object]) -> None:
        self.subject, self.title = subject, title
        self.origin = [origin]
        self.stopped = ""
        self.folder = os.path.join(os.getcwd(), "")
        self.when = datetime.now().astimezone()
        self.profile = profile(record_shapes=True, profile_memory=True, with_stack=True)
        self.observer = RunObserver()

    def begin(self) -> None:
        self.profile.entered, self.profile._recorder = True, self.observer
        observe.enter(self.observer)

    def end(self, outcome: tuple[str, object], stopped: str = "") -> None:
        """Stop recording.

        outcome  the row of the summary that says how it ended
        stopped  how a run ended that did not reach its end
        """
        self.origin.append(outcome)
        self.stopped = stopped
        self.observer.close()

    @property
    def html(self) -> str:
        seen = self.observer.graph
        drawing = "" if seen is None else seen.drawing
        former = provenance.shown_from(self.folder)
        try:
            data = self.data()
        finally:
            provenance.shown_from(former)
        return page(
            f"{self.title}: profile",
            "report",
            source("report.html", TITLE=escape(self.title), DRAWING=drawing),
            source("page.js") + source("graph.js") + source("report.js"),
            data,
        )

    def write(self, path: Any) -> str:
        """Write the page to a file, and return it."""
        html = self.html
        Path(path).write_text(html, encoding="utf-8", errors="backslashreplace")
        return html

    def data(self) -> dict[str, Any]:
        """Return the embedded content of the page. Times are nanoseconds."""
        events = self.profile.function_events
        observer, start = self.observer, self.observer.start
        calls = [e for e in events if e.name != MEMORY_EVENT_NAME]
        end = max([observer.stopped - start, *(round(1000 * e.time_range.end) for e in events)])
        memory = _memory(observer, start)
        parts = totals(calls, observer, end)
        lines = by_line(calls)
        seen, graph = observer.graph, ""
        if seen is not None:
            which = _which(seen, observer.passes, self.subject)
            graph = f"{which}: {seen.summary or seen.error}"
        return {
            "subject": self.subject,
            "summary": self._summary(calls, memory, end, parts),
            "notes": self._notes(events),
            "end": end,
            "totals": parts,
            "averages": _averages(events),
            "lines": [[f"{provenance.shown(file)}:{n}", *entry] for file, n, entry in lines],
            "source": annotated(lines),
            "flame": flame(calls),
            "trace": _trace(events, observer, start),
            "memory": memory,
            "saved": _saved(observer.largest, observer.passes, self.subject),
            "picture": {} if seen is None else seen.picture,
            "graph": graph,
        }

    def _summary(
        self, calls: Sequence[Any], memory: dict[str, Any], end: int, parts: dict[str, int]
    ) -> list[list[str]]:
        of = Counter(e.scope for e in calls)
        looked = sum(e - s for s, e, _ in self.observer.looks)
        return [
            *([what, str(value)] for what, value in self.origin),
            ["run", _time(end)],
            ["without recording, about", _time(end - parts["recording"])],
            ["forward", f"{_time(parts['forward'])} in {counted(of[FORWARD], 'operation')}"],
            [
                "backward",
                f"{_time(parts['backward'])} in {counted(of[BACKWARD], 'node')}, "
                f"{counted(self.observer.passes, 'pass', 'passes')}",
            ],
            ["peak of memory", size(memory["peak"][1])],
            ["looking at graphs", _time(looked)],
            ["when", self.when.strftime("%Y-%m-%d %H:%M:%S %z")],
            ["Python", f"{platform.python_version()} on {platform.system()}"],
        ]

    def _notes(self, events: EventList) -> list[str]:
        notes = []
        if self.stopped:
            notes.append(f"The {self.subject} {self.stopped}; the page tells what ran until then.")
        if not len(events):
            notes.append(
                f"The {self.subject} ran no operation of multigrad: there is nothing to show. "
                "Operations on raw arrays are not recorded, nor are those on threads that do "
                "not run in a copy of this context (contextvars.copy_context().run)."
            )
        if self.observer.compiled:
            notes.append(
                "Functions of func.compile run their operations one by one while they are "
                "profiled, so that these can be told apart: times are those of the functions "
                "themselves, and of the run without their programs."
            )
        if self.observer.later:
            notes.append(
                f"Times are those on the library: {', '.join(sorted(self.observer.later))} may "
                "compute after the call has returned."
            )
        return notes


def _time(ns: int) -> str:
    """Format a time as the tables of the page do."""
    for size_, unit, digits in ((1e9, "s", 3), (1e6, "ms", 2), (1e3, "µs", 1)):
        if abs(ns) >= size_:
            return f"{ns / size_:.{digits}f} {unit}"
    return f"{ns} ns"


def _averages(events: EventList) -> list[list[Any]]:
    """Return name, scope, count, self time, total time and self memory of each operation."""
    rows = []
    for a in events.key_averages():
        if a.key != MEMORY_EVENT_NAME:
            times = [round(1000 * us) for us in (a.self_cpu_time_total, a.cpu_time_total)]
            memory = a.self_cpu_memory_usage + a.self_device_memory_usage
            rows.append([a.key, a.scope, a.count, *times, memory])
    return rows


# ----- The flame chart -----


def _trace(events: EventList, observer: RunObserver, start: int) -> dict[str, Any]:
    """Return the events as columns, in order of their start.

    `line` and `shapes` are -1 if unknown.
    """
    # each text is stored once and then referred to by number
    names, lines, shapes = (defaultdict[str, int](count().__next__) for _ in range(3))
    calls = [e for e in events if e.name != MEMORY_EVENT_NAME]
    rows = _rows(calls)
    depths: list[int] = []
    running: dict[int, list[float]] = defaultdict(list)  # the ends of the calls around, by row
    for e in calls:
        ends = running[rows[e.thread, e.lane][0]]
        while ends and ends[-1] <= e.time_range.start:
            ends.pop()
        depths.append(len(ends))
        ends.append(e.time_range.end)
    columns: dict[str, Callable[[Any], int]] = {
        "name": lambda e: names[e.name],
        "start": lambda e: round(1000 * e.time_range.start),
        "duration": lambda e: round(1000 * e.cpu_time_total),
        "row": lambda e: rows[e.thread, e.lane][0] - 1,
        "scope": lambda e: int(e.scope),
        "line": lambda e: lines[e.stack[0]] if e.stack else -1,
        "shapes": lambda e: (
            shapes[str(e.structured_input_shapes or e.input_shapes)] if e.input_shapes else -1
        ),
        "sequence": lambda e: int(e.sequence_nr),
        "self": lambda e: round(1000 * e.self_cpu_time_total),
        "bytes": lambda e: int(e.cpu_memory_usage + e.device_memory_usage),
    }
    values = {name: [value(e) for e in calls] for name, value in columns.items()}
    places = {thread: number - 1 for (thread, lane), (number, _) in rows.items() if not lane}
    return {
        **values,
        "depth": depths,
        "rows": [name for _, name in rows.values()],
        "names": list(names),
        "lines": [_line(x) for x in lines],
        "texts": list(shapes),
        "looks": [[s - start, e - s, places.get(thread, 0)] for s, e, thread in observer.looks],
    }


def _line(entry: str) -> str:
    """Format `file(3): function` with the text of the line, if the file can be read."""
    file, number, function = split(entry)
    text = linecache.getline(file, number).strip()[:160]
    return f"{provenance.shown(file)}:{number} {function}" + (f"\n    {text}" if text else "")


# ----- Memory -----


def _memory(observer: RunObserver, start: int) -> dict[str, Any]:
    """Return the memory over time, its peak, and the arrays alive at the peak and at the end."""
    assert isinstance(observer.memory, Memory)
    line = [(t, host + device, device) for t, host, device in observer.memory.timeline()]
    peak = max(line, key=lambda x: x[1], default=(start, 0, 0))
    return {
        "points": [[t - start, total, device] for t, total, device in _thinned(line)],
        "devices": any(x[2] for x in line),
        "peak": [peak[0] - start, peak[1]],
        "last": line[-1][1] if line else 0,
        "at_peak": _holders(observer.memory.alive(peak[0])),
        "at_end": _holders(observer.memory.alive(observer.stopped)),
    }


def _thinned(line: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Reduce a long line to the highest and the lowest point of each stretch."""
    if len(line) <= POINTS:
        return list(line)
    step = -(-len(line) // (POINTS // 3))
    places: set[int] = set()
    for i in range(0, len(line), step):
        stretch = range(i, min(i + step, len(line)))
        places |= {
            max(stretch, key=lambda j: line[j][1]),
            min(stretch, key=lambda j: line[j][1]),
            stretch[-1],
        }
    return [line[i] for i in sorted(places)]


def _holders(alive: Iterable[Held]) -> list[list[Any]]:
    """Return bytes, number, operation, array and line, the largest first, the rest as one."""
    holders: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    for h in alive:
        made: Made = h.about
        shape = f"{made.shape} {made.dtype}" + (f" on {h.device}" if h.device else "")
        entry = holders[made.what, shape, str(made.site or "line not known")]
        entry[0] += h.nbytes
        entry[1] += 1
    ranked = sorted(holders.items(), key=lambda entry: (-entry[1][0], entry[0]))
    rows: list[list[Any]] = [[*numbers, *key] for key, numbers in ranked]
    if len(rows) > ROWS:
        total, times = (sum(row[i] for row in rows[ROWS:]) for i in (0, 1))
        rows[ROWS:] = [[total, times, "others", "", ""]]
    return rows


def _which(seen: GraphRecord, passes: int, subject: str) -> str:
    if not seen.number:
        return (
            f"the last result with a history, at the end of the {subject} (it ran no backward pass)"
        )
    return f"before pass {seen.number:,} of {passes:,}" + (f", {seen.site}" if seen.site else "")


def _saved(seen: GraphRecord | None, passes: int, subject: str) -> dict[str, Any] | None:
    """Return what the largest examined graph keeps for its backward pass."""
    report: MemoryReport | None = None if seen is None else seen.report
    if seen is None or report is None:
        return None

    def rows_of(shares: Sequence[Share]) -> list[list[Any]]:
        return [
            [s.nbytes, s.arrays, "line not known" if s.where == ENABLE else s.where]
            for s in shares[:ROWS]
        ]

    alike = Counter(
        (
            m.nbytes,
            m.name,
            f"{m.shape} {m.dtype}",
            m.param or m.kind,
            ", ".join(dict.fromkeys(m.operations[:4])),
            str(m.site or "line not known"),
        )
        for m in report.memories  # the largest first
    )
    largest = [[n, times, *rest] for (n, *rest), times in list(alike.items())[:ROWS]]
    c = report.checkpointing
    numbers = ("total", "operations", "intermediates", "constants", "leaves", "packed")
    return {
        "which": _which(seen, passes, subject),
        **{name: getattr(report, name) for name in numbers},
        "by_operation": rows_of(report.by_operation),
        "by_line": rows_of(report.by_line),
        "largest": largest,
        "checkpoint": f"With checkpoint in {counted(c.segments, 'segment')}, about "
        f"{size(c.kept)} of {size(c.now)} in results would be kept.",
    }
