"""Times of a run: in total, by line of the program, and by call stack."""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ..graphs import provenance
from ..profiler import BACKWARD, FORWARD, USER
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
    for kind, times_ in (("backward", observer.pass_times), (RECORDING, observer.looks)):
        spans += [
            (begin - observer.start, finish - observer.start, kind, 0.0)
            for begin, finish, thread in times_
            if thread == observer.thread
        ]
    for event in events:
        if event.scope not in (FORWARD, BACKWARD):
            continue
        before, behind = event._cost
        if event.thread == observer.thread:
            times = event.time_range
            spans.append(
                (
                    1000 * (times.start - before),
                    1000 * (times.end + behind),
                    "backward" if event.scope == BACKWARD else "forward",
                    1000 * (before + behind + event._hidden),
                )
            )
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
        place = next(
            (p for p in map(split, event.stack) if not p[0].startswith(provenance.skipped())), None
        )
        if place is None or event.scope not in (FORWARD, BACKWARD):
            continue
        entry = lines[place[:2]]
        entry[in_backward(event)] += round(1000 * event.self_cpu_time_total)
        entry[2] += event.scope == FORWARD and not in_backward(event)
    return sorted(
        ((file, number, entry) for (file, number), entry in lines.items()),
        key=lambda r: (-r[2][0] - r[2][1], r[:2]),
    )


def in_backward(event: Any) -> bool:
    """Return whether a call is a node, or runs inside one."""
    while event is not None and event.scope != BACKWARD:
        event = event.cpu_parent
    return event is not None


def annotated(lines: Sequence[tuple[str, int, list[int]]]) -> list[dict[str, Any]]:
    """Return the source of each file with timed lines, as [number, text, forward, backward, calls].

    An omitted part is [].
    """
    files: dict[str, dict[int, list[int]]] = {}
    for file, number, entry in lines:
        files.setdefault(file, {})[number] = entry
    sources = []
    for file, timed in files.items():
        text = linecache.getlines(file)
        wanted = (
            set(range(1, len(text) + 1))
            if len(text) <= WHOLE
            else {
                k for n in timed for k in range(n - CONTEXT, n + CONTEXT + 1) if 1 <= k <= len(text)
            }
        )
        rows: list[list[Any]] = []
        before = 0
        for number in sorted(wanted | set(timed)):
            if number != before + 1:
                rows.append([])
            source = text[number - 1].rstrip("\n")[:300] if number <= len(text) else ""
            rows.append([number, source, *timed.get(number, (0, 0, 0))])
            before = number
        if wanted and before < len(text):
            rows.append([])
        sources.append({"file": provenance.shown(file), "rows": rows})
    return sources


def split(entry: str) -> tuple[str, int, str]:
    """Split `file(3): function` into file, number and function."""
    file, _, rest = entry.rpartition("(")
    number, _, function = rest.partition("): ")
    return file, int(number) if number.isdigit() else 0, function


# ----- The flame graph -----


class Flame:
    """A box of the flame graph: the calls with one call stack.

    `self_time` and `total` are nanoseconds.
    """

    __slots__ = ("children", "kind", "name", "self_time", "total")

    def __init__(self, name: str, kind: int) -> None:
        self.name, self.kind = name, kind
        self.self_time = self.total = 0
        self.children: dict[tuple[str, int], Flame] = {}

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
        path.append(path[-1].child(event.name, BACKWARD if in_backward(event) else FORWARD))
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
