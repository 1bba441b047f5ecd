"""Folding of large graphs: repetitions, labels and functions each become one box.

The operations form a row, oldest first, so parents precede children. A box contains either a
stretch of that row, or the occurrences of one position in a pattern that repeats. Cycles between
boxes arise only from the arrows that lead back within a pattern.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
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
    times   its repetitions, if it is part of a pattern that is drawn once
    """

    kind: str
    title: str
    members: list[Vertex]
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


@dataclass(slots=True)
class Folded:
    """The boxes, ordered with parents before children, and the arrows between them."""

    boxes: list[Box]
    arrows: list[Arrow]
    folded: bool


@dataclass(slots=True)
class Unit:
    """A stretch of operations that is drawn as one box."""

    members: list[Vertex]
    title: str
    key: Hashable


def _by_labels(operations: list[Vertex], depth: int) -> list[Unit]:
    return _stretches(operations, lambda v: v.labels[:depth], _label)


def fold(graph: Graph, most: int, fold: bool | None) -> Folded:
    """Return boxes and arrows; a folded graph has about `most` boxes at most.

    `fold`: True folds, False does not, None folds a graph with more than `most` vertices.
    """
    operations = graph.operations
    if fold is False or (fold is None and len(graph.vertices) <= most):
        units = [Unit([v], v.name, v.number) for v in operations]
        return _drawn(graph, units, list(range(len(units))), [1] * len(units), False)
    depth = max((len(v.labels) for v in operations), default=0)
    singles = [
        Unit([v], v.name, (v.name, tuple(label for label, _ in v.labels), v.site, tuple(v.outputs)))
        for v in operations
    ]
    attempts: list[Callable[[], list[Unit]]] = []
    attempts += [partial(_by_labels, operations, d) for d in range(depth, 0, -1)]
    attempts.append(lambda: singles)
    if any(v.site for v in operations):
        attempts.append(
            lambda: _stretches(
                operations, lambda v: v.site and (v.site.file, v.site.function), _function
            )
        )
    for attempt in attempts:
        units = attempt()
        places, times = _patterns(units, graph)
        if len(set(places)) <= most:
            return _drawn(graph, units, places, times, True)
    size = -(-len(operations) // most)
    blocks = [operations[i : i + size] for i in range(0, len(operations), size)]
    units = [
        Unit(
            block,
            f"{len(block):,} operations",
            tuple(sorted(Counter(v.name for v in block).items())),
        )
        for block in blocks
    ]
    return _drawn(graph, units, *_patterns(units, graph), True)


def _stretches(
    operations: Sequence[Vertex], part: Callable[[Vertex], Any], name: Callable[[Any, int], str]
) -> list[Unit]:
    """Group consecutive operations that belong to the same part.

    Operations that belong to no part become units of their own.
    """
    units: list[Unit] = []
    last: Any = None
    for v in operations:
        own = part(v)
        if own and own == last:
            units[-1].members.append(v)
        else:
            units.append(Unit([v], v.name, None))
        last = own
    for u in units:
        if part(u.members[0]):
            u.title = name(part(u.members[0]), len(u.members))
            u.key = (
                re.sub(r"\d+", "#", u.title),
                tuple(v.name for v in u.members[:50]),
                len(u.members),
            )
        else:
            v = u.members[0]
            u.key = (v.name, v.site, tuple(v.outputs))
    return units


def _label(labels: Any, size: int) -> str:
    return "/".join(name for name, _ in labels)


def _function(where: Any, size: int) -> str:
    file, function = where
    return f"{function} ({Path(file).name})" if function != "<module>" else Path(file).name


# Patterns


def _patterns(units: list[Unit], graph: Graph) -> tuple[list[int], list[int]]:
    """Find repetitions in the row of units.

    Returns for each unit the number of the unit that it is drawn as, and for each of those the
    number of repetitions.
    """
    keys = _numbered(units, graph)
    places = list(range(len(units)))
    times = [1] * len(units)
    ahead = _next_same(keys)
    i = 0
    while i < len(keys):
        period, repeats = _pattern_at(keys, ahead, i)
        if repeats < 2:
            i += 1
            continue
        for j in range(i, i + period * repeats):
            places[j] = i + (j - i) % period
        times[i : i + period] = [repeats] * period
        i += period * repeats
    return places, times


def _numbered(units: list[Unit], graph: Graph) -> list[int]:
    """Number the units, with equal numbers for units that are alike.

    Units are alike if their keys are equal and their operands come from units at equal distances.
    """
    owner = {v.number: i for i, u in enumerate(units) for v in u.members}
    known: dict[Hashable, int] = {}
    numbers = []
    for i, u in enumerate(units):
        before = {owner[p] for v in u.members for p, _ in v.parents if p in owner} - {i}
        key = (u.key, tuple(sorted(min(i - p, FAR) for p in before)))
        numbers.append(known.setdefault(key, len(known)))
    return numbers


def _next_same(keys: list[int]) -> list[int]:
    """Return for each position the next position with the same key, or itself without one."""
    following = list(range(len(keys)))
    last: dict[int, int] = {}
    for i in range(len(keys) - 1, -1, -1):
        following[i] = last.get(keys[i], i)
        last[keys[i]] = i
    return following


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
    graph: Graph, units: list[Unit], places: list[int], times: list[int], folded: bool
) -> Folded:
    boxes: dict[int, Box] = {}  # by place
    at: dict[int, int] = {}  # vertex -> position of its box
    for i, u in enumerate(units):
        p = places[i]
        if p not in boxes:
            boxes[p] = Box("operation" if len(u.members) == 1 else "group", u.title, [], times[p])
        box = boxes[p]
        box.members += u.members
        at |= {v.number: p for v in u.members}
    for p, box in boxes.items():
        last = units[p + (times[p] - 1) * _period(p, places, times)] if times[p] > 1 else units[p]
        if last.title != box.title:
            box.title = f"{box.title} … {last.title}"
    leaves = _leaf_boxes(graph, at, boxes, folded)
    first = {
        id(b): (
            min(
                (at[c] for v in b.members for c in graph.children[v.number] if c in at),
                default=len(units),
            ),
            0,
        )
        for b in leaves
    }
    order = sorted(
        [*leaves, *boxes.values()], key=lambda b: first.get(id(b)) or (at[b.members[0].number], 1)
    )
    number = {v.number: i for i, b in enumerate(order) for v in b.members}
    for i, b in enumerate(order):
        b.number = i
    arrows: dict[tuple[int, int], Arrow] = {}
    for v in graph.vertices:
        end = number[v.number]
        for parent, _ in v.parents:
            start = number[parent]
            if start == end:
                continue
            arrow = arrows.setdefault((start, end), Arrow(start, end, start > end, 0))
            arrow.count += 1
    for i, (root, _, like) in enumerate(graph.roots):
        out = Box(
            "output",
            "output" if len(graph.roots) == 1 else f"output {i}",
            [],
            number=len(order),
            rows=[described(like)],
        )
        order.append(out)
        if root is not None:
            arrows[number[root], out.number] = Arrow(number[root], out.number)
    return Folded(order, list(arrows.values()), folded)


def _period(p: int, places: list[int], times: list[int]) -> int:
    """Return the length of the pattern to which the position `p` belongs."""
    return next(j for j in range(p + 1, len(places)) if places[j] == p) - p


def _leaf_boxes(graph: Graph, at: dict[int, int], boxes: dict[int, Box], folded: bool) -> list[Box]:
    """Return the boxes of the leaves.

    In a folded graph, leaves of equal shape and dtype that go into the same boxes share a box, if
    one of these boxes repeats or is a group, or if there are more than 12 such leaves.
    """
    alike: dict[Hashable, list[Vertex]] = {}
    for v in graph.leaves:
        places = frozenset(at[c] for c in graph.children[v.number] if c in at)
        alike.setdefault((places, v.outputs[0]) if folded else v.number, []).append(v)
    leaf_boxes = []
    for members in alike.values():
        users = [boxes[at[c]] for c in graph.children[members[0].number] if c in at]
        together = len(members) > 12 or any(box.times > 1 or box.kind == "group" for box in users)
        for part in [members] if together else [[v] for v in members]:
            first, last = (part[i].param or "leaf" for i in (0, -1))
            leaf_boxes.append(
                Box("leaf", first if first == last else f"{first} … {last}", part, len(part))
            )
    return leaf_boxes


def described(like: Any) -> str:
    """Format shape and dtype as `(3, 4) float64`, with question marks for unknown parts."""
    if like is None:
        return "?"
    if like.shape is None:
        return f"? {like.dtype or '?'}"
    comma = "," if len(like.shape) == 1 else ""
    return (
        f"({', '.join('?' if n is None else str(n) for n in like.shape)}{comma}) "
        f"{like.dtype or '?'}"
    )
