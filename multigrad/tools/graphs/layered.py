"""Layered layout of boxes, frames and arrows, for a few hundred boxes.

The row of a box is the length of the longest path to it. A frame has its rows for itself, so that
nothing else can stand in it. The order within a row follows from the mean position of the
neighbours, in a few sweeps down and up. Then each box moves as near to its neighbours as the order
allows. An arrow over a few rows takes a place in each of them; an arrow over many rows is drawn
past them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from .folding import Arrow
from .grouping import LabelGroup

SPAN = 12
"""An arrow over more rows than this takes no place in them."""
GAP_X, GAP_Y = 22.0, 38.0
PAD, HEAD = 12.0, 26.0
"""The space in a frame around its boxes, and above them for its name."""

Near = defaultdict[int, list[int]]
"""The neighbours of each box."""


@dataclass(slots=True)
class Cell:
    """A box, or the place where an arrow passes a row. `x` and `y` are its centre."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    row: int = 0


@dataclass(slots=True)
class Layout:
    """The cells of the boxes, the points of each arrow, and the total size."""

    cells: list[Cell]
    ways: list[list[tuple[float, float]]]
    width: float
    height: float


def lay_out(
    top: LabelGroup, sizes: Sequence[tuple[float, float]], arrows: Sequence[Arrow], leaves: Set[int]
) -> Layout:
    """Place boxes of the given sizes, and the frames of `top`.

    Arrows lead to boxes with higher numbers, except for arrows marked as leading back.

    leaves  the boxes that should be directly above the boxes that they lead to
    """
    cells = [Cell(*size) for size in sizes]
    chains = {(a.start, a.end): [a.start, a.end] for a in arrows if not a.back}
    _rank(top, cells, _neighbours(chains)[0], leaves, 0)
    _add_passages(cells, chains)
    above, below = _neighbours(
        (i, j)
        for chain in chains.values()
        for i, j in pairwise(chain)
        if cells[j].row - cells[i].row == 1
    )
    rows: list[list[int]] = [[] for _ in range(1 + max(cell.row for cell in cells))]
    for i, cell in enumerate(cells):
        rows[cell.row].append(i)
    _order(rows, above, below)
    _set_y(cells, rows, top)
    _set_x(cells, rows, above, below, leaves)
    frames = [*top.groups()]
    for frame in reversed(frames):
        _surround(frame, cells)
    things: list[Cell | LabelGroup] = [*cells, *frames]
    left, _, right, bottom = _extent(things)
    for thing in things:
        thing.x -= left
    width = right - left
    ways = [
        _around(cells[a.start], cells[a.end], width + 30)
        if a.back
        else _way([cells[i] for i in chains[a.start, a.end]])
        for a in arrows
    ]
    width += 50 * any(a.back for a in arrows)
    return Layout(cells[: len(sizes)], ways, width, bottom)


def _neighbours(pairs: Iterable[tuple[int, int]]) -> tuple[Near, Near]:
    """Return the neighbours above and below each box, from pairs (upper, lower)."""
    above: Near = defaultdict(list)
    below: Near = defaultdict(list)
    for upper, lower in pairs:
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _rank(group: LabelGroup, cells: list[Cell], above: Near, leaves: Set[int], first: int) -> int:
    """Give the boxes of a frame rows from `first` on, and return the row after its last one."""
    sources = {item for item in group.items if isinstance(item, int) and item in leaves}
    unplaced = len(cells)
    for leaf in sources:
        cells[leaf].row = unplaced
    end = first
    for item in group.items:
        if isinstance(item, LabelGroup):
            near = sources.intersection(leaf for i in item.inside() for leaf in above[i])
            feeding = {leaf for leaf in near if cells[leaf].row == unplaced}
            row = end + bool(feeding)
            first = end = _rank(item, cells, above, leaves, row)
        elif item in sources:
            continue
        else:
            # a leaf above the last frame is above this box, too
            near = sources.intersection(above[item])
            feeding = {leaf for leaf in near if cells[leaf].row >= first}
            before = [cells[i].row for i in above[item] if i not in leaves]
            row = cells[item].row = max([first + bool(feeding), *(r + 1 for r in before)])
            end = max(end, row + 1)
        for leaf in feeding:
            cells[leaf].row = min(cells[leaf].row, row - 1)
    return end


def _add_passages(cells: list[Cell], chains: dict[tuple[int, int], list[int]]) -> None:
    """Add a cell for each row that an arrow passes, and insert these cells into its chain."""
    for (start, end), chain in chains.items():
        rows = range(cells[start].row + 1, cells[end].row)
        if len(rows) < SPAN:
            chain[1:1] = range(len(cells), len(cells) + len(rows))
            cells += [Cell(8.0, 0.0, row=row) for row in rows]


def _order(rows: list[list[int]], above: Near, below: Near) -> None:
    position: dict[int, float] = {}
    for row in rows:
        position |= {i: float(k) for k, i in enumerate(row)}
    for sweep in range(8):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wish = {i: _mean([position[n] for n in near[i]], position[i]) for i in row}
            row.sort(key=lambda i: wish[i])
            position |= {i: float(k) for k, i in enumerate(row)}


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _set_y(cells: list[Cell], rows: list[list[int]], top: LabelGroup) -> None:
    spans = [[cells[i].row for i in group.inside()] for group in top.groups()]
    heads, feet = Counter(map(min, spans)), Counter(map(max, spans))
    y = 0.0
    for number, row in enumerate(rows):
        tall = max(cells[i].height for i in row)
        y += HEAD * heads[number]
        for i in row:
            cells[i].y = y + tall / 2
            cells[i].height = cells[i].height or tall  # an arrow crosses a row vertically
        y += tall + GAP_Y + PAD * feet[number]


def _set_x(
    cells: list[Cell], rows: list[list[int]], above: Near, below: Near, leaves: Set[int]
) -> None:
    for row in rows:
        x = 0.0
        for i in row:
            cells[i].x = x + cells[i].width / 2
            x += cells[i].width + GAP_X
    for sweep in range(12):
        first, second = (above, below) if sweep % 2 == 0 else (below, above)
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wish = []
            for i in row:
                near = first[i] or second[i]
                boxes = [n for n in near if n not in leaves]  # leaves go where there is space
                wish.append(_mean([cells[n].x for n in boxes or near], cells[i].x))
            weights = [0.01 if i in leaves else 1.0 for i in row]
            for i, x in zip(row, _apart(wish, [cells[i].width for i in row], weights), strict=True):
                cells[i].x = x


def _apart(wish: Sequence[float], widths: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the positions nearest to `wish` that keep the order and do not overlap.

    Distances are weighted least squares.
    """
    offsets = [0.0]
    for a, b in pairwise(widths):
        offsets.append(offsets[-1] + (a + b) / 2 + GAP_X)
    # of each block of positions: its mean wish, its weight, its length
    blocks: list[tuple[float, float, int]] = []
    for w, o, weight in zip(wish, offsets, weights, strict=True):
        mean, n = w - o, 1
        while blocks and blocks[-1][0] > mean:
            other, more, m = blocks.pop()
            mean, weight, n = (mean * weight + other * more) / (weight + more), weight + more, n + m
        blocks.append((mean, weight, n))
    means = [mean for mean, _, n in blocks for _ in range(n)]
    return [x + o for x, o in zip(means, offsets, strict=True)]


def _surround(frame: LabelGroup, cells: Sequence[Cell]) -> None:
    """Set position and size of a frame whose inner frames have theirs."""
    left, top, right, bottom = _extent(
        item if isinstance(item, LabelGroup) else cells[item] for item in frame.items
    )
    frame.width = max(right - left, 7.0 * len(frame.name) + 34) + 2 * PAD
    frame.height = bottom - top + HEAD + PAD
    frame.x, frame.y = (left + right - frame.width) / 2, top - HEAD


def _extent(things: Iterable[Cell | LabelGroup]) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of cells and frames together."""
    corners = []
    for thing in things:
        x, y = thing.x, thing.y
        if isinstance(thing, Cell):
            x, y = x - thing.width / 2, y - thing.height / 2
        corners.append((x, y, x + thing.width, y + thing.height))
    lefts, tops, rights, bottoms = zip(*corners, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _way(cells: Sequence[Cell]) -> list[tuple[float, float]]:
    first, last = cells[0], cells[-1]
    passed = ((c.x, c.y + side * c.height / 2) for c in cells[1:-1] for side in (-1, 1))
    return [(first.x, first.y + first.height / 2), *passed, (last.x, last.y - last.height / 2)]


def _around(start: Cell, end: Cell, x: float) -> list[tuple[float, float]]:
    """Return the points of an arrow from the right side of a box to that of an earlier one.

    They leave space for boxes that are drawn as a stack.
    """
    return [
        (start.x + start.width / 2 + 6, start.y),
        (x, (start.y + end.y) / 2),
        (end.x + end.width / 2 + 6, end.y),
    ]
