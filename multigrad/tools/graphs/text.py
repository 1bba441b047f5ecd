"""Graphs as text for the terminal: `print_graph`."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any, TextIO

from ...tracebacks import entry
from ..tables import counted, size
from .drawing import GraphPicture, draw, readable, titled
from .folding import Box, described
from .model import bytes_kept, tensors_of


@entry
def print_graph(
    tensor: Any,
    params: Any = None,
    *,
    depth: int | None = None,
    fold: bool | None = None,
    max_nodes: int = 100,
    file: TextIO | None = None,
    rich: bool = False,
) -> None:
    """Print the graph of a Tensor, or of several Tensors, as a tree of operations.

    Below each operation are the operations that made its operands.

    depth   maximum depth, counted from the output; default: unlimited
    params, fold, max_nodes  as for `draw`: the names of leaves, and whether repetitions are shown
    once
    file    where to print; default: standard output
    rich    print in colours by the package `rich` (pip install rich), without wrapping lines

    A line shows the operation, the shape and dtype of its output, the bytes that it keeps for the
    backward pass, and its source line if that was recorded. The operands after an arrow are leaves
    or were printed already; the latter have a number (#3).
    """
    if depth is not None and (not isinstance(depth, int) or depth < 1):
        raise ValueError(f"print_graph: depth must be a positive number or None, not {depth!r}")
    tensors_of(tensor, "print_graph")
    lines = [
        readable(line).replace("\n", "\\n")
        for line in _lines(draw(tensor, params, fold=fold, max_nodes=max_nodes), depth)
    ]
    if rich:
        _print_rich(lines, file)
        return
    print("\n".join(lines), file=file or sys.stdout)


def _lines(picture: GraphPicture, depth: int | None) -> list[str]:
    made_of: dict[int, list[int]] = defaultdict(list)
    again: set[int] = set()
    users: dict[int, int] = defaultdict(int)
    for a in picture.arrows:
        if a.back:
            again.add(a.end)
        else:
            made_of[a.end].append(a.start)
            users[a.start] += 1
    boxes = picture.boxes
    numbers: dict[int, int] = {}
    lines = [picture.summary]
    hidden = 0
    stack = [(b.number, "", "", 0) for b in reversed(boxes) if b.kind == "output"]
    while stack:
        i, lead, indent, level = stack.pop()
        box = boxes[i]
        if i in numbers:
            lines.append(f"{lead}{box.title} #{numbers[i]}")
            continue
        operands = made_of[i]
        inline = [
            _named(boxes[n], numbers) for n in operands if boxes[n].kind == "leaf" or n in numbers
        ]
        below = [n for n in operands if boxes[n].kind != "leaf" and n not in numbers]
        if users[i] > 1 or i in again:
            numbers[i] = len(numbers) + 1
        lines.append(lead + _line(box, numbers.get(i), inline, i in again))
        if depth is not None and level >= depth and below:
            hidden += 1
            lines.append(f"{indent}└─ …")
            continue
        leads = (
            [("", "")]
            if len(below) == 1
            else [("├─ ", "│  ")] * (len(below) - 1) + [("└─ ", "   ")]
        )
        for n, (lead, more) in reversed(list(zip(below, leads, strict=False))):
            stack.append((n, indent + lead, indent + more, level + 1))
    if hidden:
        lines.append(f"({counted(hidden, 'place')} where the depth of {depth} ends)")
    return lines


def _line(box: Box, number: int | None, inline: list[str], again: bool) -> str:
    text = titled(box) + (f" #{number}" if number else "")
    if box.kind == "output":
        return f"{text}: {'; '.join(box.rows)}"
    v = box.members[0]
    parts = ["; ".join(map(described, v.outputs))]
    if box.kind == "group":
        parts = [counted(len(box.members), "operation")]
    if total := bytes_kept(box.members):
        parts.append(f"keeps {size(total)}")
    if v.site:
        parts.append(v.site.short)
    if again:
        parts.append("a pattern that ends here and begins again")
    if box.changed:
        parts.append("MODIFIED since it was saved")
    return f"{text}: {', '.join(parts)}" + (f" <- {', '.join(inline)}" if inline else "")


def _named(box: Box, numbers: dict[int, int]) -> str:
    if box.kind == "leaf":
        return f"{titled(box)} {described(box.members[0].outputs[0])}"
    return f"#{numbers[box.number]}"


def _print_rich(lines: list[str], file: TextIO | None) -> None:
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        raise RuntimeError(
            "print_graph(rich=True) needs the package rich: pip install rich. Without it, leave "
            "rich=True out"
        ) from None
    console = Console(file=file, soft_wrap=True)
    for i, line in enumerate(lines):
        text = Text(line, style="dim" if i == 0 else "")
        text.highlight_regex(r"\w+Backward", "bold cyan")
        text.highlight_regex(r"#\d+", "magenta")
        text.highlight_regex(r"keeps [\d.,]+ \w+", "yellow")
        text.highlight_regex(r"MODIFIED.*", "bold red")
        console.print(text)
