"""The tree of frames around the boxes of each label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import takewhile

from .folding import Arrow, Box

Labels = tuple[tuple[str, int], ...]


@dataclass(slots=True, eq=False)
class LabelGroup:
    """A frame: its boxes (by number), its inner frames, and after layout its position and size.

    The position is that of the upper left corner.
    """

    name: str
    parent: LabelGroup | None = None
    number: int = 0
    items: list[int | LabelGroup] = field(default_factory=list)
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

    A single box gets no frame. A leaf is in the innermost frame around all boxes that use it.
    """
    top = LabelGroup("")
    path: Labels = ()
    frames = [top]
    for box in boxes:
        if box.kind in ("leaf", "output"):
            continue
        before, path = path, _labels(box)
        shared = len(_common(before, path))
        del frames[shared + 1 :]
        for name, _ in path[shared:]:
            frames.append(LabelGroup(name, frames[-1]))
            frames[-2].items.append(frames[-1])
        frames[-1].items.append(box.number)
    _unwrap(top)
    home = {i: g for g in (top, *top.groups()) for i in g.items if isinstance(i, int)}
    for box in boxes:
        if box.kind not in ("leaf", "output"):
            continue
        users = {a.end for a in arrows if a.start == box.number and a.end in home}
        group = home[min(users)] if users else top
        while group.parent is not None and not users <= set(group.inside()):
            group = group.parent
        group.items.append(box.number)
    for group in (top, *top.groups()):
        group.items.sort(
            key=lambda item: min(item.inside()) if isinstance(item, LabelGroup) else item
        )
    for number, group in enumerate(top.groups()):
        group.number = number
    return top


def _common(a: Labels, b: Labels) -> Labels:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))
    return tuple(label for label, _ in pairs)


def _labels(box: Box) -> Labels:
    """Return the labels shared by all members of a box, without the one the box represents."""
    shared = reduce(_common, (v.labels for v in box.members))
    stands_for_label = box.kind == "group" and box.title == "/".join(name for name, _ in shared)
    return shared[:-1] if stands_for_label else shared


def _unwrap(group: LabelGroup) -> None:
    """Replace frames with a single box by that box."""
    for i, item in enumerate(group.items):
        if isinstance(item, LabelGroup):
            _unwrap(item)
            if len(item.items) == 1 and isinstance(item.items[0], int):
                group.items[i] = item.items[0]
