"""Nesting of events, where some overlap, and merging of an operation's duplicate events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from .event import FunctionEvent


def nest(
    events: Sequence[FunctionEvent],
    parents: Callable[[FunctionEvent], FunctionEvent | None] | None = None,
) -> set[int]:
    """Set the parent and the children of each event.

    Events of one thread are nested or disjoint, except for labels: labels of asyncio tasks may
    overlap.

    Returns the threads with events that overlap without being nested.
    """
    stacks: dict[Any, list[FunctionEvent]] = defaultdict(list)
    open_: dict[Any, list[FunctionEvent]] = defaultdict(list)
    rows = _Rows()
    overlapping: set[int] = set()
    for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
        times = event.time_range
        stack = stacks[event.thread, event.node_id]
        while stack and stack[-1].time_range.end <= times.start:
            stack.pop()
        around = next((e for e in reversed(stack) if e.time_range.end >= times.end), None)
        label = None if parents is None else parents(event)
        while label is not None and not (
            parents is not None
            and label.time_range.start <= times.start
            and times.end <= label.time_range.end
        ):
            label = parents(label) if parents is not None else None
        if label is not None and (
            around is None or around.time_range.start <= label.time_range.start
        ):
            around = label
        if around is not None:
            around.append_cpu_child(event)
            event.set_cpu_parent(around)
        rows.place(event)
        if parents is None or not event.is_user_annotation:
            stack.append(event)
        if not _fits(open_[event.thread, event.node_id], event):
            overlapping.add(event.thread)
    return overlapping


def _fits(row: list[FunctionEvent], event: FunctionEvent) -> bool:
    """Append an event to the row if it is nested in the row's open events or starts after them."""
    while row and row[-1].time_range.end <= event.time_range.start:
        row.pop()
    fits = not row or event.time_range.end <= row[-1].time_range.end
    if fits:
        row.append(event)
    return fits


class _Rows:
    """Assigns lanes, in each of which events are nested or disjoint.

    An event gets the lane of the event around it, or of its task, or a new lane. Without lanes,
    labels of generators that take turns would overlap.
    """

    def __init__(self) -> None:
        self.rows: dict[Any, list[FunctionEvent]] = defaultdict(list)
        # new lanes have negative numbers; the value is the lane that had no room
        self.origin: dict[int, int] = {}
        self.made: dict[Any, list[int]] = defaultdict(list)

    def place(self, event: FunctionEvent) -> None:
        around, lane = event.cpu_parent, event.lane
        if around is not None and (
            not event.is_user_annotation or self.origin.get(around.lane) == lane
        ):
            lane = around.lane
        thread = event.thread, event.node_id
        home = self.origin.get(lane, lane)
        for candidate in (lane, *self.made[thread, home]):
            if _fits(self.rows[thread, candidate], event):
                event.lane = candidate
                return
        event.lane = -1 - len(self.origin)
        self.origin[event.lane] = home
        self.made[thread, home].append(event.lane)
        self.rows[thread, event.lane].append(event)


def share_time(events: Sequence[FunctionEvent], thread: int) -> None:
    """Compute self times on a thread whose events overlap.

    Each moment counts for the event that began last, so no moment counts twice.
    """
    mine = [
        e
        for e in events
        if (e.thread == thread or (e.cpu_parent is not None and e.cpu_parent.thread == thread))
        and not e.is_async
    ]
    mine.sort(key=lambda e: (e.time_range.start, -e.time_range.end))
    marks = [
        (time, begins, i)
        for i, e in enumerate(mine)
        if e.time_range.end > e.time_range.start
        for time, begins in ((e.time_range.start, True), (e.time_range.end, False))
    ]
    own, ended = [0.0] * len(mine), [False] * len(mine)
    running: list[int] = []  # a heap of -i
    before = 0.0
    for time, begins, i in sorted(marks):
        while running and ended[-running[0]]:
            heappop(running)
        if running:
            own[-running[0]] += time - before
        before = time
        if begins:
            heappush(running, -i)
        else:
            ended[i] = True
    for event, us in zip(mine, own, strict=True):
        if event.thread == thread:
            event._own_time = (
                us - event._hidden - sum(sum(child._cost) for child in event.cpu_children)
            )


def merge_twins(events: Sequence[FunctionEvent]) -> set[int]:
    """Merge each operation's event with the event inside it that carries out the same operation.

    Returns the ids of the removed events.
    """
    gone: set[int] = set()
    for event in reversed(events):
        op = event._op
        if op is None or not any(
            e._op is op and e._rule is event._rule for e in event.cpu_children
        ):
            continue
        children = []
        for child in event.cpu_children:
            if child._op is not op or child._rule is not event._rule:
                children.append(child)
                continue
            gone.add(id(child))
            event._hidden += child._hidden + sum(child._cost)
            children += child.cpu_children
            event.flops += child.flops
            if child.sequence_nr >= 0:
                event.sequence_nr = child.sequence_nr
            if not event.kernels:
                event.kernels = child.kernels
        event.cpu_children = children
        for child in children:
            child.cpu_parent = event
    return gone
