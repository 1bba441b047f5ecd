"""Folding of large graphs: repetitions, labels and functions each become one box.

The operations form a row, oldest first, so parents precede children. A box contains either a
stretch of that row, or the occurrences of one position in a pattern that repeats. Cycles between
boxes arise only from the arrows that lead back within a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from .model import Graph, Vertex

FAR = 200
"""The greatest length of a pattern."""


@dataclass(slots=True)
class Box:
    """One box of the picture.

    kind    "leaf", "operation", "group" (several operations: of a label, of a function, or a
            stretch of the row), "output"
    title   its name
    key     what boxes of a pattern that repeats have in common
    times   its repetitions, if it is part of a pattern that is drawn once
    """

    kind: str
    title: str
    members: list[Vertex]
    key: Hashable = None
    times: int = 1
    number: int = 0
    rows: list[str] = field(default_factory=list)
    tip: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        return any(v.changed for v in self.members)


@dataclass(slots=True)
class Arrow:
    """An arrow between two boxes.

    `back`: it leads to the next repetition of a pattern, which is drawn as the same box.
    """

    start: int
    end: int
    back: bool = False
    count: int = 1


def fold(graph: Graph, most: int, fold: bool | None) -> tuple[list[Box], list[Arrow], bool]:
    """Return boxes, parents before children, their arrows, and whether the graph is folded.

    A folded graph has about `most` boxes at most.

    `fold`: True folds, False does not, None folds a graph with more than `most` vertices.
    """
    operations = graph.operations
    if fold is False or (fold is None and len(graph.vertices) <= most):
        units = [Box("operation", v.name, [v]) for v in operations]
        return _drawn(graph, units, list(range(len(units))), [1] * len(units), False)
    for units in _attempts(operations, most):
        places, times = _patterns(units, graph)
        if len(set(places)) <= most:
            break
    return _drawn(graph, units, places, times, True)


def _attempts(operations: list[Vertex], most: int) -> Iterator[list[Box]]:
    """Yield boxes by label, innermost labels first, single operations, by function, by number."""
    for depth in range(max((len(v.labels) for v in operations), default=0), 0, -1):
        yield _stretches(operations, [v.labels[:depth] or None for v in operations], _label)
    yield _stretches(operations, [None] * len(operations), _label)
    if any(v.site for v in operations):
        places = [v.site and (v.site.file, v.site.function) for v in operations]
        yield _stretches(operations, places, _function)
    size = -(-len(operations) // most)
    blocks = [i // size for i in range(len(operations))]
    yield _stretches(operations, blocks, lambda _, size: f"{size:,} operations")


def _stretches(
    operations: Sequence[Vertex], parts: Sequence[Any], name: Callable[[Any, int], str]
) -> list[Box]:
    """Group consecutive operations that belong to the same part.

    Operations whose part is None get boxes of their own.
    """
    units: list[Box] = []
    for _, stretch in groupby(zip(parts, operations, strict=True), itemgetter(0)):
        (part, *_), members = map(list, zip(*stretch, strict=True))
        if part is None:
            units += [Box("operation", v.name, [v], _key(v)) for v in members]
        else:
            title = name(part, len(members))
            alike = re.sub(r"\d+", "#", title), tuple(v.name for v in members[:50]), len(members)
            kind = "group" if len(members) > 1 else "operation"
            units.append(Box(kind, title, members, alike))
    return units


def _key(v: Vertex) -> Hashable:
    return v.name, tuple(label for label, _ in v.labels), v.site, tuple(v.outputs)


def _label(labels: Any, size: int) -> str:
    return "/".join(name for name, _ in labels)


def _function(where: Any, size: int) -> str:
    file, function = where
    return f"{function} ({Path(file).name})" if function != "<module>" else Path(file).name


# Patterns


def _patterns(units: list[Box], graph: Graph) -> tuple[list[int], list[int]]:
    """Find repetitions in the row of units.

    Returns for each unit the number of the unit that it is drawn as, and for each of those the
    number of repetitions.
    """
    keys = _numbered(units, graph)
    places = list(range(len(units)))
    times = [1] * len(units)
    # of each position the next one with the same key, or itself without one
    ahead = list(places)
    last: dict[int, int] = {}
    for i in reversed(places):
        ahead[i] = last.get(keys[i], i)
        last[keys[i]] = i
    i = 0
    while i < len(keys):
        period, repeats = _pattern_at(keys, ahead, i)
        length = period * repeats
        if repeats > 1:
            places[i : i + length] = list(range(i, i + period)) * repeats
            times[i : i + period] = [repeats] * period
        i += length
    return places, times


def _numbered(units: list[Box], graph: Graph) -> list[int]:
    """Number the units, with equal numbers for units that are alike.

    Units are alike if their keys are equal and their operands come from units at equal distances.
    """
    owner = {v.number: i for i, u in enumerate(units) for v in u.members}
    number_of: dict[Hashable, int] = {}
    numbers = []
    for i, u in enumerate(units):
        before = {owner[p] for v in u.members for p, _ in v.parents if p in owner} - {i}
        key = (u.key, tuple(sorted(min(i - p, FAR) for p in before)))
        numbers.append(number_of.setdefault(key, len(number_of)))
    return numbers


def _pattern_at(keys: list[int], ahead: list[int], i: int) -> tuple[int, int]:
    """Return the length and the repetitions of the pattern that starts at position `i`.

    Of several patterns, the one that covers most units is taken, and of these the shortest. A short
    pattern needs three repetitions, a long one two.
    """
    best = (1, 1)
    j = i
    for _ in range(8):
        if ahead[j] == j or ahead[j] - i > FAR:
            break
        j = ahead[j]
        period = j - i
        if period % best[0] == 0 and best[1] > 1 and best[0] * best[1] >= 3 * period:
            continue  # a multiple of a pattern that continues
        k = j
        while k < len(keys) and keys[k] == keys[k - period]:
            k += 1
        repeats = (k - i) // period
        if repeats >= (3 if period < 10 else 2) and period * repeats > best[0] * best[1]:
            best = (period, repeats)
    return best


# What is drawn


def _drawn(
    graph: Graph, units: list[Box], places: list[int], times: list[int], folded: bool
) -> tuple[list[Box], list[Arrow], bool]:
    boxes: dict[int, Box] = {}  # by place
    last: dict[int, str] = {}  # by place: the title of the last unit
    at: dict[int, int] = {}  # vertex -> place
    for place, unit in zip(places, units, strict=True):
        last[place] = unit.title
        at |= {v.number: place for v in unit.members}
        box = boxes.setdefault(place, unit)
        if box is not unit:
            box.members += unit.members
        box.times = times[place]
    for place, box in boxes.items():
        if last[place] != box.title:
            box.title = f"{box.title} … {last[place]}"
    placed: list[tuple[int, bool, Box]] = []
    for users, members in _leaves(graph, at, boxes, folded):
        first, final = (members[i].param or "leaf" for i in (0, -1))
        title = first if first == final else f"{first} … {final}"
        box = Box("leaf", title, members, times=len(members))
        placed.append((min(users, default=len(units)), False, box))
    placed += [(place, True, box) for place, box in boxes.items()]
    order = [box for *_, box in sorted(placed, key=itemgetter(0, 1))]
    number = {v.number: i for i, b in enumerate(order) for v in b.members}
    arrows: dict[tuple[int, int], Arrow] = {}
    for v in graph.vertices:
        end = number[v.number]
        for parent, _ in v.parents:
            start = number[parent]
            if start != end:
                arrow = arrows.setdefault((start, end), Arrow(start, end, start > end, 0))
                arrow.count += 1
    for i, (root, _, like) in enumerate(graph.roots):
        title = "output" if len(graph.roots) == 1 else f"output {i}"
        if root is not None:
            arrows[number[root], len(order)] = Arrow(number[root], len(order))
        order.append(Box("output", title, [], rows=[described(like)]))
    for i, b in enumerate(order):
        b.number = i
    return order, list(arrows.values()), folded


def _leaves(
    graph: Graph, at: dict[int, int], boxes: dict[int, Box], folded: bool
) -> Iterator[tuple[frozenset[int], list[Vertex]]]:
    """Yield the leaves of each box, with the places of the boxes that they go into.

    In a folded graph, leaves of equal shape and dtype that go into the same boxes share a box, if
    one of these boxes repeats or is a group, or if there are more than 12 such leaves.
    """
    alike: dict[Hashable, list[Vertex]] = {}
    users = {v.number: frozenset(at[c] for c in graph.children[v.number]) for v in graph.leaves}
    for v in graph.leaves:
        key = (users[v.number], v.outputs[0]) if folded else v.number
        alike.setdefault(key, []).append(v)
    for members in alike.values():
        places = users[members[0].number]
        together = len(members) > 12 or any(
            boxes[p].times > 1 or boxes[p].kind == "group" for p in places
        )
        for part in [members] if together else [[v] for v in members]:
            yield places, part


def described(like: Any) -> str:
    """Format shape and dtype as `(3, 4) float64`, with question marks for unknown parts."""
    if like is None:
        return "?"
    shape = "?"
    if like.shape is not None:
        lengths = ", ".join("?" if n is None else str(n) for n in like.shape)
        shape = f"({lengths}{',' * (len(like.shape) == 1)})"
    return f"{shape} {like.dtype or '?'}"
