"""Pictures of graphs: `draw`, with output as DOT, SVG, PNG or a web page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from html import escape as _escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...pages import page, source
from ...tracebacks import entry
from ..tables import counted, size
from . import grouping, layered
from .folding import Box, described, fold
from .model import Graph, SavedArray, bytes_kept, collect, kind_of, tensors_of

FORMATS = ("dot", "svg", "png", "html")
KINDS = (
    "leaf",
    "elementwise",
    "linear algebra",
    "reduction",
    "shape and indexing",
    "own derivative",
    "other",
    "group",
    "output",
)
"""The kinds of boxes, in the order of the legend; `page.css` has their colours."""
FILL = {"leaf": "#dbeafe", "operation": "#f3f4f6", "group": "#ede9fe", "output": "#dcfce7"}
STROKE = {"leaf": "#3b82f6", "operation": "#9ca3af", "group": "#8b5cf6", "output": "#22c55e"}
CHANGED = "#dc2626"
OPENED = 400
"""The page of a folded graph with at most this many operations contains the whole graph.

Its labels can then be opened in the page.
"""


@entry
def draw(
    tensor: Any,
    params: Any = None,
    *,
    format: str | None = None,
    path: Any = None,
    fold: bool | None = None,
    max_nodes: int = 100,
) -> GraphPicture:
    """Draw the graph of a Tensor, or of several Tensors, and return the picture.

    params     names of leaves: a dictionary of Tensors, nested or not, or a sequence of them
    path       save the picture to this file; `format` ("dot", "svg", "png" or "html") defaults to
               the suffix
    fold       draw repetitions once, and the operations of one label or function as one box; the
               default folds if there are more than `max_nodes` nodes
    max_nodes  approximate maximum number of boxes of a folded picture

    The picture has its text as `.dot`, `save` writes it, and a notebook displays it.

    A box shows the operation, the shape and dtype of its output, the bytes that it keeps for the
    backward pass, and the number of writes to the saved memory. It also shows the source line if
    the graph was recorded within `record_lines` or `detect_anomaly`. Operations whose saved arrays
    were modified are red. Drawing runs no hook and changes nothing.

    Raises TypeError or ValueError for an argument of the wrong kind.
    """
    if fold is not None and not isinstance(fold, bool):
        raise TypeError(f"draw: fold must be True, False or None, not {fold!r}")
    if not isinstance(max_nodes, int) or max_nodes < 1:
        raise ValueError(f"draw: max_nodes must be a positive number, not {max_nodes!r}")
    if format is not None:
        _check_format(format)
    picture = GraphPicture(collect(tensors_of(tensor, "draw"), params), fold, max_nodes)
    if path is not None:
        picture.save(path, format)
    return picture


class GraphPicture:
    """The picture of a graph. `boxes` and `arrows` are what is drawn; `graph` has every vertex."""

    @entry
    def __init__(self, graph: Graph, fold_: bool | None, most: int) -> None:
        self.graph, self.most = graph, most
        self.boxes, self.arrows, self.folded = fold(graph, most, fold_)
        for box in self.boxes:
            _describe(box)
        self.groups = grouping.grouped(self.boxes, self.arrows)

    @property
    def summary(self) -> str:
        """Numbers of operations, leaves and boxes, and the saved bytes, as a line of text."""
        g = self.graph
        parts = [
            counted(len(g.operations), "operation"),
            counted(len(g.leaves), "leaf", "leaves"),
            f"{size(bytes_kept(g.vertices))} in saved arrays",
        ]
        if self.folded:
            parts.append(f"folded to {counted(len(self.boxes), 'box', 'boxes')}")
        changed = sum(v.changed for v in g.vertices)
        if changed:
            parts.append(
                f"{counted(changed, 'operation')} whose saved arrays were modified: backward raises"
            )
        return ", ".join(parts)

    @cached_property
    def dot(self) -> str:
        """The picture in Graphviz's DOT language."""
        lines = [
            "digraph autograd {",
            f'  graph [label="{_quoted(self.summary)}", labelloc=t, fontname="Helvetica", '
            "fontsize=11];",
            '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10, '
            'margin="0.12,0.06"];',
            '  edge [color="#6b7280", arrowsize=0.7];',
        ]
        for box in self.boxes:
            text = _quoted("\n".join((titled(box), *box.rows)))
            stroke = CHANGED if box.changed else STROKE[box.kind]
            tip = _quoted("\n".join(box.tip))
            lines.append(
                f'  n{box.number} [label="{text}", fillcolor="{FILL[box.kind]}", color="{stroke}", '
                f'tooltip="{tip}"];'
            )
        lines += _clusters(self.groups, "  ")
        for a in self.arrows:
            style = f' [label="× {a.count}"]' if a.count > 1 and self.folded else ""
            if a.back:
                style = " [style=dashed, constraint=false]"
            lines.append(f"  n{a.start} -> n{a.end}{style};")
        return "\n".join([*lines, "}"]) + "\n"

    @cached_property
    def layout(self) -> layered.Layout:
        """Positions of all boxes and arrows, computed without Graphviz."""
        sizes = [
            (
                max(len(titled(b)) * 7.7, *(len(r) * 6.2 for r in b.rows), 40.0) + 20,
                24.0 + 13 * len(b.rows),
            )
            for b in self.boxes
        ]
        leaves = {b.number for b in self.boxes if b.kind == "leaf"}
        return layered.lay_out(self.groups, sizes, self.arrows, leaves)

    @cached_property
    def drawing(self) -> str:
        """The picture as SVG elements, laid out without Graphviz."""
        lay = self.layout
        parts = [_frame(group) for group in self.groups.groups()]
        for arrow, way in zip(self.arrows, lay.ways, strict=True):
            dashed = ' stroke-dasharray="5 3"' if arrow.back else ""
            parts.append(
                f'<path d="{_curve(way)}" fill="none" stroke="#9ca3af" stroke-width="1.2" '
                f'marker-end="url(#tip)"{dashed} data-from="{arrow.start}" '
                f'data-to="{arrow.end}"/>'
            )
        parts += map(_drawn, self.boxes, lay.cells)
        return "\n".join(parts)

    @property
    def svg(self) -> str:
        """The picture as SVG, laid out without Graphviz."""
        lay = self.layout
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{lay.width + 24:.0f}" '
            f'height="{lay.height + 24:.0f}" viewBox="-12 -12 {lay.width + 24:.0f} '
            f'{lay.height + 24:.0f}">\n'
            f"{source('picture.svg')}{self.drawing}\n"
            "</svg>\n"
        )

    @property
    def html(self) -> str:
        """A self-contained page: the picture, which can be moved and zoomed, with box details."""
        picture = self.opened
        return page(
            "Autograd graph",
            "graph-page",
            source("graph.html", SUMMARY=escape(self.summary), DRAWING=picture.elements),
            source("page.js") + source("graph.js") + source("graph_page.js"),
            picture.data(self is not picture),
        )

    @property
    def elements(self) -> str:
        """The content of the `<svg>` element of a page; see `showGraph` in `graph.js`."""
        return f'{source("picture.svg")}<g id="graph-all">\n{self.drawing}\n</g>'

    @property
    def opened(self) -> GraphPicture:
        """The picture that pages show.

        It is this picture, or one in which the folded labels are groups that start closed.
        """
        operations = self.graph.operations
        labelled = any(v.labels for v in operations)
        if not self.folded or len(operations) > OPENED or not labelled:
            return self
        whole = GraphPicture(self.graph, False, self.most)
        return whole if len(whole.groups.items) <= self.most else self

    @entry
    def data(self, closed: bool = False) -> dict[str, Any]:
        """Return what `showGraph` in `graph.js` needs besides the SVG elements.

        `closed`: whether groups start closed.
        """
        lay = self.layout
        boxes = [
            {
                **_place(c),
                "kind": kind_of(b.members[0]) if b.kind == "operation" else b.kind,
                "tip": b.tip,
                "bytes": bytes_kept(b.members),
            }
            for b, c in zip(self.boxes, lay.cells, strict=True)
        ]
        ways = [
            [a.start, a.end, [[round(x, 1), round(y, 1)] for x, y in way], a.back]
            for a, way in zip(self.arrows, lay.ways, strict=True)
        ]
        groups = []
        for g in self.groups.groups():
            members = [v for number in g.inside() for v in self.boxes[number].members]
            group = {
                "name": readable(g.name),
                "operations": sum(not v.leaf for v in members),
                "bytes": bytes_kept(members),
                "parent": -1 if g.parent is None or g.parent is self.groups else g.parent.number,
                "boxes": [item for item in g.items if isinstance(item, int)],
            }
            groups.append(group | _place(g))
        present = {b["kind"] for b in boxes} | ({"group"} if groups else set())
        return {
            "width": round(lay.width),
            "height": round(lay.height),
            "boxes": boxes,
            "ways": ways,
            "groups": groups,
            "closed": closed,
            "kinds": [kind for kind in KINDS if kind in present],
        }

    @entry
    def save(self, path: Any, format: str | None = None) -> Path:
        """Write the picture to a file and return the path.

        The format is that of the suffix unless `format` is given. "dot" and "html" need no other
        program. "svg" is laid out by Graphviz if its program is installed, otherwise by multigrad.
        "png" needs Graphviz.
        """
        target = Path(path)
        kind = format or target.suffix.removeprefix(".").lower()
        _check_format(kind)
        image = rendered(self.dot, kind) if kind in ("svg", "png") else None
        if image is None:
            if kind == "png":
                raise RuntimeError(
                    "a PNG needs Graphviz: the package (pip install 'multigrad-array[viz]') and "
                    "its program `dot` (for example apt-get install graphviz). Without it, save "
                    "a .svg or a .html page."
                )
            image = str(getattr(self, kind)).encode()
        target.write_bytes(image)
        return target

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return (
            '<div style="overflow:auto;max-height:640px;background:#fff">'
            '<div style="font:12px sans-serif;color:#333">'
            f"{escape(self.summary)}</div>{self.svg}</div>"
        )

    def __repr__(self) -> str:
        return f"<GraphPicture: {self.summary}>"


def _place(thing: layered.Cell | grouping.LabelGroup) -> dict[str, float]:
    """Return position and size for a page."""
    values = zip("xywh", (thing.x, thing.y, thing.width, thing.height), strict=True)
    return {name: round(value, 1) for name, value in values}


def _drawn(box: Box, cell: layered.Cell) -> str:
    """Return a box as SVG."""
    x, y = cell.x - cell.width / 2, cell.y - cell.height / 2
    stroke = CHANGED if box.changed else STROKE[box.kind]
    width = 2 if box.changed or box.kind == "group" else 1
    rects = [
        f'<rect x="{x + shift:.1f}" y="{y + shift:.1f}" width="{cell.width:.1f}" '
        f'height="{cell.height:.1f}" rx="6" fill="{FILL[box.kind]}" stroke="{stroke}" '
        f'stroke-width="{width}"/>'
        for shift in ((5, 0) if box.times > 1 else (0,))
    ]
    rows = [
        f'<text x="{cell.x:.1f}" y="{y + 30 + 13 * i:.1f}" class="row">{escape(row)}</text>'
        for i, row in enumerate(box.rows)
    ]
    lines = [
        f'<g class="box{" changed" * box.changed}" data-box="{box.number}">'
        f"<title>{escape(chr(10).join(box.tip))}</title>",
        *rects,
        f'<text x="{cell.x:.1f}" y="{y + 16:.1f}" class="title">{escape(titled(box))}</text>',
        *rows,
        "</g>",
    ]
    return "\n".join(lines)


def _frame(group: grouping.LabelGroup) -> str:
    return (
        f'<g class="frame" data-group="{group.number}"><rect x="{group.x:.1f}" '
        f'y="{group.y:.1f}" width="{group.width:.1f}" height="{group.height:.1f}" rx="8" '
        'fill="#8b5cf6" fill-opacity=".06" stroke="#8b5cf6" stroke-opacity=".5"/><text '
        f'x="{group.x + layered.PAD:.1f}" y="{group.y + 17:.1f}" class="title" '
        f'style="text-anchor:start">{escape(group.name)}</text></g>'
    )


def _clusters(group: grouping.LabelGroup, indent: str) -> list[str]:
    """Return the groups inside a group, in Graphviz's DOT language."""
    lines = []
    for item in group.items:
        if isinstance(item, grouping.LabelGroup):
            lines += [
                f'{indent}subgraph cluster_{item.number} {{ label="{_quoted(item.name)}"; '
                'style=rounded; color="#8b5cf6";',
                f"{indent}  {' '.join(f'n{n};' for n in item.items if isinstance(n, int))}",
                *_clusters(item, indent + "  "),
                indent + "}",
            ]
    return lines


def rendered(dot: str, kind: str) -> bytes | None:
    """Render a DOT text by Graphviz; None if its Python package or its program is missing."""
    try:
        import graphviz
    except ImportError:
        return None
    import subprocess

    try:
        image: bytes = graphviz.Source(dot).pipe(format=kind)
    except graphviz.ExecutableNotFound:
        return None
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"Graphviz could not draw the graph: {error}") from error
    return image


_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _check_format(kind: str) -> None:
    if kind not in FORMATS:
        raise ValueError(
            f"a picture is saved as {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, not {kind!r}; "
            "give a path with one of these suffixes, or format="
        )


def _quoted(text: str) -> str:
    """Escape a text for use between quotes in DOT."""
    return readable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def readable(text: str) -> str:
    """Replace control characters and surrogates, which XML or UTF-8 cannot hold, by U+FFFD."""
    return _UNREADABLE.sub("\ufffd", text)


def escape(text: str) -> str:
    return _escape(readable(text))


def titled(box: Box) -> str:
    """Return the title of a box, with the number of its repetitions."""
    return box.title + (f" × {box.times:,}" if box.times > 1 else "")


def _describe(box: Box) -> None:
    """Set the rows of a box and the text of its tooltip."""
    if not box.members:
        box.tip = [box.title, *box.rows]
        return
    v = box.members[0]
    total = bytes_kept(box.members)
    if box.kind == "group" or len(v.outputs) > 4:
        names = Counter(m.name.removesuffix("Backward") for m in box.members)
        box.rows.append(counted(len(box.members), "operation"))
        if len(box.members) > 1:
            some = ", ".join(f"{n} {name}" for name, n in names.most_common(3))
            box.rows.append(some + " …" * (len(names) > 3))
    else:
        box.rows.append("; ".join(map(described, v.outputs)))
    version = max(m.version for m in box.members)
    if version:  # of a leaf
        box.rows.append(f"version {version}")
    if total:
        box.rows.append(f"keeps {size(total)}")
    where = list(dict.fromkeys(m.site.short for m in box.members if m.site))
    if where:
        box.rows.append(where[0] if len(where) == 1 else f"{where[0]} and {len(where) - 1} more")
    if box.kind == "operation" and v.labels:
        box.rows.append("/".join(name for name, _ in v.labels))
    if box.changed:
        box.rows.append("modified since it was saved")
    box.tip = [titled(box), *box.rows]
    if box.kind == "operation":
        if v.site:
            box.tip.append(f"{v.site}, in {v.site.function}")
        box.tip += map(_saved_line, v.saved[:12])
        if v.freed:
            box.tip.append("its saved arrays are freed")
    elif box.kind == "leaf" and box.times > 1:
        box.tip += [f"{m.param or 'leaf'} {described(m.outputs[0])}" for m in box.members[:12]]


def _saved_line(s: SavedArray) -> str:
    hidden = s.packed and s.shape is None
    line = f"saved {s.name} ({s.origin}): " + (
        "held by saved-tensor hooks" if hidden else f"{described(s)}, {size(s.nbytes)}"
    )
    if s.version or s.changed:
        line += f", version {s.version}"
    if s.changed:
        line += f", but {s.expected} when it was saved"
    return line


def _curve(way: Sequence[tuple[float, float]]) -> str:
    text = f"M{way[0][0]:.1f} {way[0][1]:.1f}"
    if len(way) == 3:  # the arrow leads around the side, back to an earlier box
        (_, y1), (side, _), (x2, y2) = way
        return text + f" C{side:.1f} {y1:.1f} {side:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    for (x1, y1), (x2, y2) in pairwise(way):
        half = (y1 + y2) / 2
        text += f" C{x1:.1f} {half:.1f} {x2:.1f} {half:.1f} {x2:.1f} {y2:.1f}"
    return text
