"""Layered layout of boxes and arrows, for a few hundred boxes.

The row of a box is the length of the longest path from the top. The order within a row follows from
the mean position of the neighbours, in a few sweeps down and up. Then each box moves as near to its
neighbours as the order allows. An arrow over a few rows takes a place in each of them; an arrow
over many rows is drawn past them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SPAN = 12
"""An arrow over more rows than this takes no place in them."""
GAP_X, GAP_Y = 22.0, 38.0


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
    sizes: Sequence[tuple[float, float]],
    arrows: Sequence[tuple[int, int, bool]],
    sources: Sequence[bool],
    edges: Mapping[int, int] | None = None,
) -> Layout:
    """Place boxes of the given sizes.

    Arrows lead to boxes with higher numbers, except for arrows marked as leading back.

    sources  for each box: whether it should be directly above the boxes that it leads to
    edges    boxes with a row of their own: -1 above all others, 1 below
    """
    cells = [Cell(w, h) for w, h in sizes]
    forward = [(a, b) for a, b, back in arrows if not back]
    _rank(cells, forward, sources)
    rows_between = [cell.row for i, cell in enumerate(cells) if i not in (edges or {})]
    for i, side in (edges or {}).items():
        cells[i].row = min(rows_between) - 1 if side < 0 else max(rows_between) + 1
    chains, rows = _with_passages(cells, forward)
    above: dict[int, list[int]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    for chain in chains.values():
        for a, b in pairwise(chain):
            if cells[b].row - cells[a].row == 1:
                above[b].append(a)
                below[a].append(b)
    _order(rows, above, below)
    _place(cells, rows, above, below, sources)
    width = max((c.x + c.width / 2 for c in cells), default=0.0)
    ways = []
    for a, b, back in arrows:
        ways.append(
            around(cells[a], cells[b], width + 30)
            if back
            else _way([cells[i] for i in chains[a, b]])
        )
    if any(back for *_, back in arrows):
        width += 50
    height = max((c.y + c.height / 2 for c in cells), default=0.0)
    return Layout(cells[: len(sizes)], ways, width, height)


def _rank(cells: list[Cell], forward: Sequence[tuple[int, int]], sources: Sequence[bool]) -> None:
    into: dict[int, list[int]] = defaultdict(list)
    out: dict[int, list[int]] = defaultdict(list)
    for a, b in forward:
        into[b].append(a)
        out[a].append(b)
    for i, cell in enumerate(cells):
        if not sources[i]:
            cell.row = max((cells[a].row + 1 for a in into[i] if not sources[a]), default=1)
    for i, cell in enumerate(cells):
        if sources[i]:
            cell.row = min((cells[b].row for b in out[i]), default=1) - 1


def _with_passages(
    cells: list[Cell], forward: Sequence[tuple[int, int]]
) -> tuple[dict[tuple[int, int], list[int]], list[list[int]]]:
    rows: dict[int, list[int]] = defaultdict(list)
    for i, cell in enumerate(cells):
        rows[cell.row].append(i)
    chains = {}
    for a, b in forward:
        chain = [a]
        if cells[b].row - cells[a].row <= SPAN:
            for row in range(cells[a].row + 1, cells[b].row):
                cells.append(Cell(8.0, 0.0, row=row))
                rows[row].append(len(cells) - 1)
                chain.append(len(cells) - 1)
        chains[a, b] = [*chain, b]
    return chains, [rows[r] for r in sorted(rows)]


def _order(rows: list[list[int]], above: dict[int, list[int]], below: dict[int, list[int]]) -> None:
    position: dict[int, float] = {}
    for row in rows:
        position |= {i: float(k) for k, i in enumerate(row)}
    for sweep in range(8):
        neighbours = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wish = {
                i: sum(position[n] for n in neighbours[i]) / len(neighbours[i])
                if neighbours[i]
                else position[i]
                for i in row
            }
            row.sort(key=lambda i: wish[i])
            position |= {i: float(k) for k, i in enumerate(row)}


def _place(
    cells: list[Cell],
    rows: list[list[int]],
    above: dict[int, list[int]],
    below: dict[int, list[int]],
    sources: Sequence[bool],
) -> None:
    def boxes(near: list[int]) -> list[int]:  # sources are placed where there is space
        return [n for n in near if n >= len(sources) or not sources[n]] or near

    y = 0.0
    for row in rows:
        tall = max(cells[i].height for i in row)
        for i in row:
            cells[i].y = y + tall / 2
            cells[i].height = cells[i].height or tall  # an arrow crosses a row vertically
        y += tall + (GAP_Y if tall else GAP_Y / 2)
        x = 0.0
        for i in row:
            cells[i].x = x + cells[i].width / 2
            x += cells[i].width + GAP_X
    for sweep in range(12):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            near = [
                boxes(
                    (above[i] if sweep % 2 == 0 else below[i])
                    or (below[i] if sweep % 2 == 0 else above[i])
                )
                for i in row
            ]
            wish = [
                sum(cells[n].x for n in ns) / len(ns) if ns else cells[i].x
                for i, ns in zip(row, near, strict=True)
            ]
            light = [0.01 if i < len(sources) and sources[i] else 1.0 for i in row]
            for i, x in zip(row, _apart(wish, [cells[i].width for i in row], light), strict=True):
                cells[i].x = x
    left = min((c.x - c.width / 2 for c in cells), default=0.0)
    for c in cells:
        c.x -= left


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


def _way(cells: Sequence[Cell]) -> list[tuple[float, float]]:
    first, last = cells[0], cells[-1]
    passed = ((c.x, c.y + side * c.height / 2) for c in cells[1:-1] for side in (-1, 1))
    return [(first.x, first.y + first.height / 2), *passed, (last.x, last.y - last.height / 2)]


def around(start: Cell, end: Cell, x: float) -> list[tuple[float, float]]:
    """Return the points of an arrow from the right side of a box to that of an earlier one.

    They leave space for boxes that are drawn as a stack.
    """
    return [
        (start.x + start.width / 2 + 6, start.y),
        (x, (start.y + end.y) / 2),
        (end.x + end.width / 2 + 6, end.y),
    ]
