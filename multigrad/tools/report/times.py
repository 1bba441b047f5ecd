"""Times of a run: in total, by line of the program, and by call stack."""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..graphs import provenance
from ..profiler import BACKWARD, FORWARD, USER
from ..profiler.nesting import node_around
from .watch import RunObserver

RECORDING, PYTHON = "recording", "python"
CONTEXT, WHOLE = 6, 300
"""Number of source lines shown around a line with time.

Files up to this length are shown whole.
"""
SHARES = 2_000
"""A stack with less than this fraction of the total time gets no box in the flame graph."""


def totals(events: Iterable[Any], observer: RunObserver, end: int) -> dict[str, int]:
    """Return the nanoseconds of forward, backward, python and recording on the run's thread.

    They add up to `end`. Each moment counts for the innermost call around it; calls inside a pass
    are backward. `elsewhere` is the additional time of calls on other threads.
    """
    spent = {"forward": 0.0, "backward": 0.0, RECORDING: 0.0}
    elsewhere = 0.0
    spans: list[tuple[float, float, str, float]] = []
    for kind, times in (("backward", observer.pass_times), (RECORDING, observer.looks)):
        spans += [
            (begin - observer.start, finish - observer.start, kind, 0.0)
            for begin, finish, thread in times
            if thread == observer.thread
        ]
    for event in events:
        if event.scope not in (FORWARD, BACKWARD):
            continue
        if event.thread == observer.thread:
            before, behind = event._cost
            begin, finish = event.time_range.start - before, event.time_range.end + behind
            kind = "backward" if event.scope == BACKWARD else "forward"
            cost = before + behind + event._hidden
            spans.append((1000 * begin, 1000 * finish, kind, 1000 * cost))
        elif event.cpu_parent is None or event.cpu_parent.scope == USER:
            elsewhere += 1000 * event.cpu_time_total
    # the calls around: where each ends, and the part for which its moments count
    stack: list[tuple[float, str]] = []
    outside = float(end)
    for s, e, kind, cost in sorted(spans, key=lambda span: (span[0], -span[1])):
        while stack and stack[-1][0] <= s:
            stack.pop()
        if stack:
            around = stack[-1][1]
            spent[around] -= e - s
            kind = around if around != "forward" and kind != RECORDING else kind
        else:
            outside -= e - s
        spent[kind] += e - s - cost
        spent[RECORDING] += cost
        stack.append((e, kind))
    rounded = {kind: round(ns) for kind, ns in spent.items()}
    return {**rounded, PYTHON: end - sum(rounded.values()), "elsewhere": round(elsewhere)}


def by_line(events: Iterable[Any]) -> list[tuple[str, int, list[int]]]:
    """Return file, line and [forward, backward, calls] of each line, the slowest line first.

    `forward` and `backward` are nanoseconds of self time, and `calls` is the number of operations.
    The time of an operation is attributed to the innermost line of the program that called it, and
    the time of a node to the line of the operation that made the node.
    """
    lines: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for event in events:
        places = (p for p in map(split, event.stack) if not p[0].startswith(provenance.skipped()))
        place = next(places, None)
        if place is not None and event.scope in (FORWARD, BACKWARD):
            backward = node_around(event) is not None
            entry = lines[place[:2]]
            entry[backward] += round(1000 * event.self_cpu_time_total)
            entry[2] += not backward
    return sorted(
        ((file, number, entry) for (file, number), entry in lines.items()),
        key=lambda r: (-r[2][0] - r[2][1], r[:2]),
    )


def annotated(lines: Sequence[tuple[str, int, list[int]]]) -> list[dict[str, Any]]:
    """Return the source of each file with timed lines, as [number, text, forward, backward, calls].

    An omitted part is [].
    """
    files: dict[str, dict[int, list[int]]] = {}
    for file, number, entry in lines:
        files.setdefault(file, {})[number] = entry
    sources = []
    for file, timed in files.items():
        text = [line.rstrip("\n")[:300] for line in linecache.getlines(file)]
        numbers = set(timed)
        if len(text) <= WHOLE:
            numbers.update(range(1, len(text) + 1))
        for n in timed:
            numbers.update(range(max(n - CONTEXT, 1), min(n + CONTEXT, len(text)) + 1))
        rows: list[list[Any]] = []
        before = 0
        for number in sorted(numbers):
            if number != before + 1:
                rows.append([])
            source = text[number - 1] if number <= len(text) else ""
            rows.append([number, source, *timed.get(number, (0, 0, 0))])
            before = number
        if before < len(text):
            rows.append([])
        sources.append({"file": provenance.shown(file), "rows": rows})
    return sources


def split(entry: str) -> tuple[str, int, str]:
    """Split `file(3): function` into file, number and function."""
    file, _, rest = entry.rpartition("(")
    number, _, function = rest.partition("): ")
    return file, int(number) if number.isdigit() else 0, function


# ----- The flame graph -----


@dataclass(slots=True, eq=False)
class Flame:
    """A box of the flame graph: the calls with one call stack.

    `self_time` and `total` are nanoseconds.
    """

    name: str
    kind: int
    self_time: int = 0
    total: int = 0
    children: dict[tuple[str, int], Flame] = field(default_factory=dict)

    def child(self, name: str, kind: int) -> Flame:
        return self.children.setdefault((name, kind), Flame(name, kind))


def flame(events: Iterable[Any]) -> list[Any]:
    """Return the aggregated flame graph, as [depth, start, total, self time, kind, name].

    A box stands on the lines that led to a call and the calls around it. A node stands on the lines
    of the operation that made it. The kinds are those of events, and USER for a line of the
    program.
    """
    root = Flame("all calls", USER)
    at: dict[int, tuple[list[Flame], list[str]]] = {}
    for event in events:  # a parent precedes its children
        if event.scope not in (FORWARD, BACKWARD):
            continue
        frames = event.stack[::-1]
        path, frames_around = at.get(id(event.cpu_parent), ([root], []))
        if frames[: len(frames_around)] != frames_around:  # the stack of a node inside an operation
            path, frames_around = [root], []
        path = [*path]
        for entry in frames[len(frames_around) :]:
            file, number, function = split(entry)
            path.append(path[-1].child(f"{function} ({provenance.shown(file)}:{number})", USER))
        path.append(path[-1].child(event.name, BACKWARD if node_around(event) else FORWARD))
        at[id(event)] = path, frames
        ns = max(0, round(1000 * event.self_cpu_time_total))
        path[-1].self_time += ns
        for box in path:
            box.total += ns
    lines = [box for box in root.children.values() if box.kind == USER]
    # lines that led to every call carry no information
    while len(lines) == 1 and all(box.kind == USER for box in lines[0].children.values()):
        root.children = {
            key: box for key, box in root.children.items() if box.kind != USER
        } | lines[0].children
        lines = [*lines[0].children.values()]
    return _drawn(root, root.total / SHARES)


def _drawn(root: Flame, least: float) -> list[Any]:
    """Return the boxes from left to right, outer before inner, without those below `least`."""
    boxes = []
    stack = [(root, 0, 0)]
    while stack:
        box, depth, start = stack.pop()
        boxes.append([depth, start, box.total, box.self_time, box.kind, box.name])
        inside = []
        for child in sorted(box.children.values(), key=lambda c: -c.total):
            if child.total >= least and child.total:
                inside.append((child, depth + 1, start))
                start += child.total
        stack += reversed(inside)
    return boxes
