"""Frames around the boxes of each label: the tree of frames, and its layout.

A frame contains only its own boxes. Each frame is laid out by itself, the innermost frames first,
and is a box for the frame around it. An arrow between two frames is drawn in parts. A frame that
the arrow leaves has a port at its lower edge, where the part inside ends. A frame that the arrow
enters has a port at its upper edge, where the part inside begins. So each part goes around the
boxes of its own frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from . import layered
from .folding import Arrow, Box

PAD, HEAD = 12.0, 26.0
"""The space in a frame around its boxes, and above them for its name."""
PORT = (8.0, 0.0)

Label = tuple[str, int]
Point = tuple[float, float]


@dataclass(slots=True)
class LabelGroup:
    """A frame: its boxes (by number), its inner frames, and after layout its position and size.

    The position is that of the upper left corner.
    """

    name: str
    number: int = 0
    items: list[int | LabelGroup] = field(default_factory=list)
    parent: LabelGroup | None = None
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0

    def inside(self) -> Iterator[int]:
        """Yield the boxes inside, at any depth."""
        for item in self.items:
            if isinstance(item, LabelGroup):
                yield from item.inside()
            else:
                yield item

    def groups(self) -> Iterator[LabelGroup]:
        """Yield the frames inside, outer frames before inner ones."""
        for item in self.items:
            if isinstance(item, LabelGroup):
                yield item
                yield from item.groups()


def grouped(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> LabelGroup:
    """Return the outermost frame, with a frame for each stretch of operations of one label.

    A single box gets no frame.
    """
    top = LabelGroup("")
    path: list[tuple[Label, LabelGroup]] = []
    home: dict[int, LabelGroup] = {}
    for box in boxes:
        if box.kind in ("leaf", "output"):
            continue
        labels = _labels(box)
        kept = next(
            (i for i, (label, _) in enumerate(path) if i >= len(labels) or labels[i] != label),
            len(path),
        )
        del path[kept:]
        for label in labels[kept:]:
            around = path[-1][1] if path else top
            path.append((label, LabelGroup(label[0], parent=around)))
            around.items.append(path[-1][1])
        home[box.number] = path[-1][1] if path else top
        home[box.number].items.append(box.number)
    _unwrap(top, home)
    for box in boxes:
        if box.kind == "leaf":
            users = [home[a.end] for a in arrows if a.start == box.number and a.end in home]
            home[box.number] = _around_all(users, top)
            home[box.number].items.append(box.number)
        elif box.kind == "output":
            top.items.append(box.number)
    for group in (top, *top.groups()):
        group.items.sort(key=_first)
    for number, group in enumerate(top.groups()):
        group.number = number
    return top


def _labels(box: Box) -> tuple[Label, ...]:
    """Return the labels shared by all members of a box, without the one the box represents."""
    shared = box.members[0].labels
    for v in box.members[1:]:
        n = next(
            (i for i, (a, b) in enumerate(zip(shared, v.labels, strict=False)) if a != b),
            min(len(shared), len(v.labels)),
        )
        shared = shared[:n]
    return (
        shared[:-1]
        if box.kind == "group" and box.title == "/".join(name for name, _ in shared)
        else shared
    )


def _unwrap(group: LabelGroup, home: dict[int, LabelGroup]) -> None:
    """Replace frames with a single box by that box."""
    items: list[int | LabelGroup] = []
    for item in group.items:
        if isinstance(item, LabelGroup):
            _unwrap(item, home)
            if len(item.items) == 1 and isinstance(item.items[0], int):
                home[item.items[0]] = group
                item = item.items[0]
        items.append(item)
    group.items = items


def _around_all(groups: Sequence[LabelGroup], top: LabelGroup) -> LabelGroup:
    """Return the innermost frame around all of these."""
    if not groups:
        return top
    shared = _path(groups[0])
    for group in groups[1:]:
        shared = [a for a, b in zip(shared, _path(group), strict=False) if a is b]
    return shared[-1]


def _path(group: LabelGroup | None) -> list[LabelGroup]:
    """Return the frames from the outermost one to this one."""
    frames = []
    while group is not None:
        frames.append(group)
        group = group.parent
    return frames[::-1]


def _first(item: int | LabelGroup) -> int:
    return min(item.inside()) if isinstance(item, LabelGroup) else item


# ----- Layout -----


@dataclass(slots=True)
class _Level:
    """The layout of one frame: numbers of its items and ports, and the origin of its inside."""

    layout: layered.Layout
    items: dict[int, int]  # for each box inside at any depth: the item that is it or contains it
    exits: dict[int, int]  # for each box whose arrows leave the frame: the port
    entries: dict[int, int]  # for each box outside whose arrows enter: the port
    ways: dict[tuple[int, int], int]
    x: float = 0.0
    y: float = 0.0

    def way(self, start: int, end: int) -> list[Point]:
        return [(x + self.x, y + self.y) for x, y in self.layout.ways[self.ways[start, end]]]


def lay_out(
    top: LabelGroup,
    sizes: Sequence[tuple[float, float]],
    arrows: Sequence[Arrow],
    sources: Sequence[bool],
) -> layered.Layout:
    """Place boxes of the given sizes, and the frames of `top`."""
    if not any(top.groups()):
        return layered.lay_out(sizes, [(a.start, a.end, a.back) for a in arrows], sources)
    levels: dict[int, _Level] = {}
    forward = [(a.start, a.end) for a in arrows if not a.back]
    _measure(top, sizes, forward, sources, levels)
    cells = [layered.Cell(w, h) for w, h in sizes]
    _put(top, 0.0, 0.0, levels, cells)
    width, height = levels[id(top)].layout.width, levels[id(top)].layout.height
    home = {
        item: group
        for group in (top, *top.groups())
        for item in group.items
        if isinstance(item, int)
    }
    ways = [
        layered.around(cells[a.start], cells[a.end], width + 30)
        if a.back
        else _joined(a, home, levels)
        for a in arrows
    ]
    return layered.Layout(cells, ways, width + 50 * any(a.back for a in arrows), height)


def _measure(
    group: LabelGroup,
    sizes: Sequence[tuple[float, float]],
    arrows: Sequence[tuple[int, int]],
    sources: Sequence[bool],
    levels: dict[int, _Level],
) -> None:
    """Lay out a frame, after its inner frames."""
    own: list[tuple[float, float]] = []
    flags: list[bool] = []
    items: dict[int, int] = {}
    for number, item in enumerate(group.items):
        if isinstance(item, LabelGroup):
            _measure(item, sizes, arrows, sources, levels)
            own.append((item.width, item.height))
            items |= dict.fromkeys(item.inside(), number)
        else:
            own.append(sizes[item])
            items[item] = number
        flags.append(isinstance(item, int) and sources[item])
    exits: dict[int, int] = {}
    entries: dict[int, int] = {}
    edges: dict[int, int] = {}
    ways: dict[tuple[int, int], int] = {}
    for a, b in arrows:
        if a not in items and b not in items:
            continue
        if a not in items:
            port = entries.setdefault(a, len(own))
        elif b not in items:
            port = exits.setdefault(a, len(own))
        else:
            port = -1
        if port == len(own):
            own.append(PORT)
            flags.append(False)
            edges[port] = -1 if a not in items else 1
        start, end = items.get(a, port), items.get(b, port)
        if start != end:
            ways.setdefault((start, end), len(ways))
    layout = layered.lay_out(own, [(*way, False) for way in ways], flags, edges)
    levels[id(group)] = _Level(layout, items, exits, entries, ways)
    group.width = max(layout.width, 7.0 * len(group.name) + 34) + 2 * PAD
    group.height = layout.height + HEAD + PAD


def _put(
    group: LabelGroup, x: float, y: float, levels: dict[int, _Level], cells: list[layered.Cell]
) -> None:
    """Set the positions of the boxes and frames in a frame whose inside begins at this point."""
    level = levels[id(group)]
    level.x, level.y = x, y
    for item, cell in zip(group.items, level.layout.cells, strict=False):
        if isinstance(item, LabelGroup):
            item.x, item.y = x + cell.x - cell.width / 2, y + cell.y - cell.height / 2
            slack = (item.width - 2 * PAD - levels[id(item)].layout.width) / 2
            _put(item, item.x + PAD + slack, item.y + HEAD, levels, cells)
        else:
            cells[item].x, cells[item].y = x + cell.x, y + cell.y


def _joined(arrow: Arrow, home: dict[int, LabelGroup], levels: dict[int, _Level]) -> list[Point]:
    """Return the points of an arrow, through all frames that it leaves and then enters."""
    a, b = arrow.start, arrow.end
    left, entered = _path(home[a]), _path(home[b])
    depth = max(i for i, (p, q) in enumerate(zip(left, entered, strict=False)) if p is q)
    points: list[Point] = []
    for group in left[:depth:-1]:
        level = levels[id(group)]
        points += level.way(level.items[a], level.exits[a])[bool(points) :]
    level = levels[id(left[depth])]
    points += level.way(level.items[a], level.items[b])[bool(points) :]
    for group in entered[depth + 1 :]:
        level = levels[id(group)]
        points[-1:] = level.way(level.entries[a], level.items[b])
    return points
