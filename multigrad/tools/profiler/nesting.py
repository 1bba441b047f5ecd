"""Nesting of events, where some overlap, and merging of an operation's duplicate events."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from . import BACKWARD
from .event import FunctionEvent

Around = Callable[[FunctionEvent], FunctionEvent | None]


def nest(events: Sequence[FunctionEvent], label_around: Around) -> None:
    """Set the parent and the children of each event.

    Events of one thread are nested or disjoint, except for labels: labels of asyncio tasks may
    overlap. `label_around` returns the label that an event or a label was begun in.
    """
    stacks: dict[Any, list[FunctionEvent]] = defaultdict(list)
    ordered = sorted(events, key=start_of)
    for event in ordered:
        start, end = event.time_range.start, event.time_range.end
        stack = stacks[event.thread, event.node_id]
        while stack and stack[-1].time_range.end <= start:
            stack.pop()
        around = next((e for e in reversed(stack) if e.time_range.end >= end), None)
        label = label_around(event)
        while (
            label is not None and not label.time_range.start <= start <= end <= label.time_range.end
        ):
            label = label_around(label)
        if label is not None and (
            around is None or around.time_range.start <= label.time_range.start
        ):
            around = label
        if around is not None:
            around.append_cpu_child(event)
            event.set_cpu_parent(around)
        if not event.is_user_annotation:
            stack.append(event)
    _set_lanes(ordered)


def start_of(event: FunctionEvent) -> tuple[float, float]:
    """Return the key by which events are in order of their start, outer ones first."""
    return event.time_range.start, -event.time_range.end


def node_around(event: FunctionEvent | None) -> FunctionEvent | None:
    """Return the event of the node that a call is, or runs inside of."""
    while event is not None and event.scope != BACKWARD:
        event = event.cpu_parent
    return event


def _fits(row: list[FunctionEvent], event: FunctionEvent) -> bool:
    """Append an event to the row if it is nested in the row's open events or starts after them."""
    while row and row[-1].time_range.end <= event.time_range.start:
        row.pop()
    fits = not row or event.time_range.end <= row[-1].time_range.end
    if fits:
        row.append(event)
    return fits


def _set_lanes(events: Sequence[FunctionEvent]) -> None:
    """Give each event a lane, in each of which events are nested or disjoint.

    It is the lane of the event around it, or of its task, or a new one. Without lanes, labels of
    generators that take turns would overlap.
    """
    rows: dict[Any, list[FunctionEvent]] = defaultdict(list)
    # new lanes have negative numbers; the value is the lane that had no room
    origin: dict[int, int] = {}
    made: dict[Any, list[int]] = defaultdict(list)
    for event in events:
        around, lane = event.cpu_parent, event.lane
        if around is not None and (not event.is_user_annotation or origin.get(around.lane) == lane):
            lane = around.lane
        thread = event.thread, event.node_id
        home = origin.get(lane, lane)
        lanes = (lane, *made[thread, home])
        free = next((one for one in lanes if _fits(rows[thread, one], event)), None)
        if free is None:
            free = -1 - len(origin)
            origin[free] = home
            made[thread, home].append(free)
            rows[thread, free].append(event)
        event.lane = free


def share_time(events: Sequence[FunctionEvent]) -> None:
    """Compute self times: each moment counts for the event of a thread that began last.

    So no moment counts twice, even if events overlap without being nested. While an event runs on
    another thread than the event around it, that one's time stands still.
    """
    by_thread: dict[int, list[FunctionEvent]] = defaultdict(list)
    for event in sorted(events, key=start_of):
        around = event.cpu_parent
        threads = {event.thread} if around is None else {event.thread, around.thread}
        for thread in threads if not event.is_async else ():
            by_thread[thread].append(event)
    for thread, mine in by_thread.items():
        marks = [
            (time, begins, i)
            for i, e in enumerate(mine)
            if e.time_range.end > e.time_range.start
            for time, begins in ((e.time_range.start, True), (e.time_range.end, False))
        ]
        own = [0.0] * len(mine)
        running: list[int] = []  # in order of their start
        before = 0.0
        for time, begins, i in sorted(marks):
            if running:
                own[running[-1]] += time - before
            before = time
            if begins:
                insort(running, i)
            else:
                del running[bisect_left(running, i)]
        for event, us in zip(mine, own, strict=True):
            if event.thread == thread:
                costs = sum(sum(child._cost) for child in event.cpu_children)
                event._own_time = us - event._hidden - costs


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
