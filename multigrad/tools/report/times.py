"""Where the time of a run went: in all, by line of the program, and by the calls that led there."""

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
"""Lines of source shown around one that took time, and the length up to which a file is shown
whole.
"""
SHARES = 2_000
"""What takes less than one of so many parts of the time of all calls is no box of its own in the
flame graph.
"""


def totals(events: Iterable[Any], observer: RunObserver, end: int) -> dict[str, int]:
    """The nanoseconds of forward, backward, python and recording on the thread of the run, which
    add up to `end`.

    Each moment counts for the innermost call that it lies in. What is inside of a pass is backward.
    `elsewhere` is what calls on other threads took, which is beside these.
    """
    found = {"forward": 0.0, "backward": 0.0, RECORDING: 0.0}
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
    # where each call around ends, and what its moments count for
    stack: list[tuple[float, str]] = []
    outside = float(end)
    for s, e, kind, cost in sorted(spans, key=lambda span: (span[0], -span[1])):
        while stack and stack[-1][0] <= s:
            stack.pop()
        if stack:
            around = stack[-1][1]
            found[around] -= e - s
            kind = around if around != "forward" and kind != RECORDING else kind
        else:
            outside -= e - s
        found[kind] += e - s - cost
        found[RECORDING] += cost
        stack.append((e, kind))
    rounded = {kind: round(ns) for kind, ns in found.items()}
    return {**rounded, PYTHON: end - sum(rounded.values()), "elsewhere": round(elsewhere)}


def by_line(events: Iterable[Any]) -> list[tuple[str, int, list[int]]]:
    """File, line, and its [forward, backward, calls]: nanoseconds of self time; calls of
    operations. What takes most stands first.

    A moment counts for the innermost line of the program; that of a node for the line of the
    operation that made it.
    """
    found: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for event in events:
        place = next(
            (p for p in map(split, event.stack) if not p[0].startswith(provenance.skipped())), None
        )
        if place is None or event.scope not in (FORWARD, BACKWARD):
            continue
        entry = found[place[:2]]
        entry[in_backward(event)] += round(1000 * event.self_cpu_time_total)
        entry[2] += event.scope == FORWARD and not in_backward(event)
    return sorted(
        ((file, number, entry) for (file, number), entry in found.items()),
        key=lambda r: (-r[2][0] - r[2][1], r[:2]),
    )


def in_backward(event: Any) -> bool:
    """Whether a call is a node, or runs inside of one."""
    while event is not None and event.scope != BACKWARD:
        event = event.cpu_parent
    return event is not None


def annotated(lines: Sequence[tuple[str, int, list[int]]]) -> list[dict[str, Any]]:
    """The source of each file with lines that took time: [number, text, forward, backward, calls],
    what is left out between as [].
    """
    files: dict[str, dict[int, list[int]]] = {}
    for file, number, entry in lines:
        files.setdefault(file, {})[number] = entry
    found = []
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
        found.append({"file": provenance.shown(file), "rows": rows})
    return found


def split(entry: str) -> tuple[str, int, str]:
    """File, number and function of `file(3): function`."""
    file, _, rest = entry.rpartition("(")
    number, _, function = rest.partition("): ")
    return file, int(number) if number.isdigit() else 0, function


# ----- The flame graph -----


class Flame:
    """A box of the flame graph: the calls that the same frames led to.

    `own` and `total` are nanoseconds.
    """

    __slots__ = ("children", "kind", "name", "own", "total")

    def __init__(self, name: str, kind: int) -> None:
        self.name, self.kind = name, kind
        self.own = self.total = 0
        self.children: dict[tuple[str, int], Flame] = {}

    def child(self, name: str, kind: int) -> Flame:
        return self.children.setdefault((name, kind), Flame(name, kind))


def flame(events: Iterable[Any]) -> list[Any]:
    """The aggregated flame graph, by the lines that led to a call and the calls around it, as
    [depth, start, total, own, kind, name].

    A node stands on the lines of the operation that made it. The kinds are those of events, and
    USER for a line of the program.
    """
    root = Flame("all calls", USER)
    at: dict[int, tuple[list[Flame], list[str]]] = {}
    for event in events:  # parents begin first
        if event.scope not in (FORWARD, BACKWARD):
            continue
        frames = event.stack[::-1]
        path, known = at.get(id(event.cpu_parent), ([root], []))
        if frames[: len(known)] != known:  # of a node within an operation
            path, known = [root], []
        path = [*path]
        for entry in frames[len(known) :]:
            file, number, function = split(entry)
            path.append(path[-1].child(f"{function} ({provenance.shown(file)}:{number})", USER))
        path.append(path[-1].child(event.name, BACKWARD if in_backward(event) else FORWARD))
        at[id(event)] = path, frames
        ns = max(0, round(1000 * event.self_cpu_time_total))
        path[-1].own += ns
        for box in path:
            box.total += ns
    lines = [box for box in root.children.values() if box.kind == USER]
    # what led to all calls tells nothing
    while len(lines) == 1 and all(box.kind == USER for box in lines[0].children.values()):
        root.children = {
            key: box for key, box in root.children.items() if box.kind != USER
        } | lines[0].children
        lines = [*lines[0].children.values()]
    return _told(root, root.total / SHARES)


def _told(root: Flame, least: float) -> list[Any]:
    """The boxes from the left to the right, each before those inside of it, without those that take
    less.
    """
    told = []
    stack = [(root, 0, 0)]
    while stack:
        box, depth, start = stack.pop()
        told.append([depth, start, box.total, box.own, box.kind, box.name])
        inside = []
        for child in sorted(box.children.values(), key=lambda c: -c.total):
            if child.total >= least and child.total:
                inside.append((child, depth + 1, start))
                start += child.total
        stack += reversed(inside)
    return told
