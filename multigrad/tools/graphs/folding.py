"""Making a large graph readable: what repeats is drawn once, what belongs to one label or function
is one box.

The operations stand in a row, oldest first, so parents come before children. What is folded
together is always a stretch of that row, or the places of a pattern that follows itself; so boxes
have no cycles but the arrows that lead back in a pattern.
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
"""Patterns longer than this are not looked for."""


@dataclass(slots=True)
class Box:
    """What is drawn as one.

    kind    "leaf", "operation", "group" (several operations, of a label or function or a mere
            stretch), "output"
    title   its name; `times`: how often it follows itself, in a pattern that is drawn once
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
    """From one box to another.

    `back`: to the next repetition of a pattern, which is drawn as the same box.
    """

    start: int
    end: int
    back: bool = False
    count: int = 1


@dataclass(slots=True)
class Folded:
    """The boxes, in an order that has parents before children, and the arrows between them."""

    boxes: list[Box]
    arrows: list[Arrow]
    folded: bool


@dataclass(slots=True)
class Unit:
    """A stretch of operations."""

    members: list[Vertex]
    title: str
    key: Hashable


def _by_labels(operations: list[Vertex], depth: int) -> list[Unit]:
    return _stretches(operations, lambda v: v.labels[:depth], _label)


def fold(graph: Graph, most: int, fold: bool | None) -> Folded:
    """Boxes and arrows, not many more than `most` if the graph is to be folded: None says that this
    is for its size to decide.
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
    """Operations that follow each other and belong together; those that belong to nothing stay
    alone.
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
    """For each unit its place, the number of the unit that it is drawn as; for each place how often
    it is repeated.
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
    """A number for each unit; equal ones are alike, and take what units equally far before them
    have made.
    """
    owner = {v.number: i for i, u in enumerate(units) for v in u.members}
    known: dict[Hashable, int] = {}
    found = []
    for i, u in enumerate(units):
        before = {owner[p] for v in u.members for p, _ in v.parents if p in owner} - {i}
        key = (u.key, tuple(sorted(min(i - p, FAR) for p in before)))
        found.append(known.setdefault(key, len(known)))
    return found


def _next_same(keys: list[int]) -> list[int]:
    """For each place the next of the same key; itself, if there is none."""
    found = list(range(len(keys)))
    last: dict[int, int] = {}
    for i in range(len(keys) - 1, -1, -1):
        found[i] = last.get(keys[i], i)
        last[keys[i]] = i
    return found


def _pattern_at(keys: list[int], ahead: list[int], i: int) -> tuple[int, int]:
    """The length of the pattern that begins here and how often it follows itself: of several the
    one that covers most, the shortest of these.

    Two of a pattern are left alone unless they are long.
    """
    best = (1, 1)
    j = i
    for _ in range(8):
        if ahead[j] == j or ahead[j] - i > FAR:
            break
        j = ahead[j]
        period = j - i
        if period % best[0] == 0 and best[1] > 1 and best[0] * best[1] >= 3 * period:
            continue  # a multiple of a pattern that goes on
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
    at: dict[int, int] = {}  # vertex -> place
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
    """The length of the pattern that the place `p` belongs to."""
    return next(j for j in range(p + 1, len(places)) if places[j] == p) - p


def _leaf_boxes(graph: Graph, at: dict[int, int], boxes: dict[int, Box], folded: bool) -> list[Box]:
    """A box for each leaf; where the graph is folded, one for those alike that go into the same
    repeated box, or in great number into any.
    """
    alike: dict[Hashable, list[Vertex]] = {}
    for v in graph.leaves:
        places = frozenset(at[c] for c in graph.children[v.number] if c in at)
        alike.setdefault((places, v.outputs[0]) if folded else v.number, []).append(v)
    found = []
    for members in alike.values():
        users = [boxes[at[c]] for c in graph.children[members[0].number] if c in at]
        together = len(members) > 12 or any(box.times > 1 or box.kind == "group" for box in users)
        for part in [members] if together else [[v] for v in members]:
            first, last = (part[i].param or "leaf" for i in (0, -1))
            found.append(
                Box("leaf", first if first == last else f"{first} … {last}", part, len(part))
            )
    return found


def described(like: Any) -> str:
    """`(3, 4) float64`, with a question mark for what is not known."""
    if like is None:
        return "?"
    if like.shape is None:
        return f"? {like.dtype or '?'}"
    comma = "," if len(like.shape) == 1 else ""
    return (
        f"({', '.join('?' if n is None else str(n) for n in like.shape)}{comma}) "
        f"{like.dtype or '?'}"
    )
