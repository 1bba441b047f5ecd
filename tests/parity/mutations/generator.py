"""Random programs: new arrays, views of views, writes of every sort, detached aliases, no_grad.

A program is a list of steps over numbered arrays, drawn once and carried out by any library. While
drawing, each array is a NumPy array of positions in its memory: its views are NumPy's views of
that, so shapes, overlaps, and which reshape copies, are known without any values. What multigrad
does differently on purpose is not drawn: an operand that overlaps what is written, a repeated index
with several values.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import corpus
from .sides import Library

LEAVES = ("x", "a", "t")
CONSTANTS = ("c", "d")
SHAPES = ((6,), (2, 3), (3, 2), (3,), (2,), ())
BINARY = {"add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "divide": "__truediv__"}
AUGMENTED = {
    "add": "__iadd__",
    "subtract": "__isub__",
    "multiply": "__imul__",
    "divide": "__itruediv__",
}
UNARY = ("sin", "cos", "tanh", "negative", "exp", "abs")
KEYS: tuple[Any, ...] = (
    slice(0, 3),
    slice(1, 4),
    slice(3, 6),
    slice(0, 6, 2),
    slice(1, 6, 2),
    slice(0, 2),
    slice(1, 3),
    slice(2, 6, 3),
    slice(None),
    Ellipsis,
    0,
    -1,
    1,
    (slice(None), 1),
    (slice(None), -1),
    (1, slice(None)),
    (slice(None), slice(0, 2)),
    (Ellipsis, 0),
    (1, 1),
    None,
)
INTEGERS = ([2, 0], [1, 5, 3], [-1, 0], [1], [0, 2, 4])
PAIRS = (([0, 1], [2, 1]), ([1, 0], [0, 0]))
MASKS = (
    [1, 0, 1, 0, 0, 1],
    [0, 1, 0, 0, 1, 0],
    [1, 0, 1],
    [0, 1],
    [[1, 0, 1], [0, 1, 0]],
    [1, 1, 0],
)


@dataclass(frozen=True)
class Step:
    """kind: what is done, with `how` (a name or a key), on the array `i`, with the array `j` or the
    number `value`.
    """

    kind: str
    how: Any
    i: int
    j: int | None = None
    value: float | None = None
    recorded: bool = True

    def __str__(self) -> str:
        operand = (
            ""
            if self.j is None and self.value is None
            else f" with {self.value}"
            if self.j is None
            else f" with #{self.j}"
        )
        return (
            f"{self.kind} {'' if self.how is None else self.how} of "
            f"#{self.i}{operand}{'' if self.recorded else ' under no_grad'}"
        )


@dataclass
class Place:
    """Where an array is: its memory, the positions in it, and whether its strides are known (those
    of a result of transposes are not).
    """

    memory: int
    positions: Any
    dense: bool = True
    alias: int = 0


@dataclass
class Draft:
    """A program while it is drawn, or carried out on positions: the place of each array."""

    places: list[Place] = field(default_factory=list)
    memories: int = 0

    def new(self, shape: tuple[int, ...], dense: bool = True) -> Place:
        self.memories += 1
        return Place(
            self.memories, np.arange(int(np.prod(shape))).reshape(shape), dense, self.memories
        )

    def after(self, step: Step) -> Place | None:
        """The place of the array that a step makes, None for one that only writes."""
        p = self.places[step.i]
        if step.kind in ("binary", "number", "unary"):
            operands = [p] if step.j is None else [p, self.places[step.j]]
            dense = all(q.dense and q.positions.flags.c_contiguous for q in operands)
            return self.new(np.broadcast_shapes(*(q.positions.shape for q in operands)), dense)
        if step.kind == "view":
            seen = view(np, step.how, p.positions)
            return (
                replace(p, positions=seen)
                if np.shares_memory(seen, p.positions)
                else self.new(seen.shape)
            )
        if step.kind == "copy":
            return self.new(selected(np.asarray, step.how, p.positions).shape)
        if step.kind == "detach":
            self.memories += 1
            return replace(p, alias=self.memories)
        return None


def draw(seed: int) -> list[Step]:
    r = random.Random(seed)
    length = r.randrange(8, 18)
    draft = Draft([])
    draft.places = [draft.new(corpus.ARRAYS[n].shape) for n in LEAVES + CONSTANTS]
    steps: list[Step] = []
    for i in (0, 1, 0):
        _append(draft, steps, Step("number", "multiply", i, value=1.5))
    while len(steps) < length:
        step = _step(r, draft)
        if step is not None:
            _append(draft, steps, step)
    return steps


def _append(draft: Draft, steps: list[Step], step: Step) -> None:
    place = draft.after(step)
    if place is not None:
        draft.places.append(place)
    steps.append(step)


def _step(r: random.Random, draft: Draft) -> Step | None:
    """A step that is possible, or None."""
    kind = r.choices(
        (
            "view",
            "augmented",
            "set",
            "twin",
            "binary",
            "unary",
            "copy",
            "detach",
            "zero",
            "copy_from",
        ),
        (8, 6, 6, 3, 3, 2, 1, 1, 1, 1),
    )[0]
    # leaves seldom: most writes to them are refused
    i = (
        r.choice(range(len(draft.places)))
        if r.random() < 0.06
        else r.choice(range(len(LEAVES), len(draft.places)))
    )
    p = draft.places[i].positions
    recorded = kind in ("view", "copy", "detach") or r.random() < 0.85
    value = r.choice((0.5, -1.5, 2.0)) if r.random() < 0.4 else None
    if kind == "unary" or kind == "twin":
        return Step(kind, r.choice(UNARY), i, recorded=recorded)
    if kind == "zero":
        return Step(kind, None, i, recorded=recorded)
    if kind == "detach":
        return Step(kind, None, i)
    if kind == "view":
        return _view(r, draft, i)
    if kind == "copy":
        keys = [
            k
            for k in (*INTEGERS, *PAIRS, *MASKS)
            if _fits(k, p) and selected(np.asarray, k, p).shape in SHAPES
        ]
        return Step(kind, r.choice(keys), i) if keys else None
    if kind == "set":
        keys = [k for k in (*KEYS, *INTEGERS, *PAIRS, *MASKS, "greater") if _fits(k, p)]
        key = r.choice(keys)
        if key == "greater":
            return Step(kind, key, i, value=0.75, recorded=recorded)
        target = selected(np.asarray, key, p)
        if np.unique(target).size != target.size:
            return None
        j = None if value is not None else _operand(r, draft, i, target.shape)
        return None if value is None and j is None else Step(kind, key, i, j, value, recorded)
    if kind == "binary":
        j = r.choice(range(len(draft.places)))
        shapes = (p.shape, draft.places[j].positions.shape)
        return (
            Step(kind, r.choice(tuple(BINARY)), i, j, recorded=recorded)
            if _broadcast(*shapes) in SHAPES
            else None
        )
    j = None if value is not None and kind == "augmented" else _operand(r, draft, i, p.shape)
    if kind == "copy_from":
        return None if j is None else Step(kind, None, i, j, recorded=recorded)
    how = r.choice(tuple(AUGMENTED))
    if (
        j is not None
        and how in ("multiply", "divide")
        and draft.places[j].memory == draft.places[i].memory
    ):
        return None  # what is kept of it counts as changed in PyTorch, wherever the two are
    return None if value is None and j is None else Step(kind, how, i, j, value, recorded)


def _view(r: random.Random, draft: Draft, i: int) -> Step | None:
    place = draft.places[i]
    ways: list[Any] = [k for k in KEYS if _fits(k, place.positions)]
    if place.positions.ndim == 2:
        ways += ["T", "T", "T"]
    if place.dense and place.positions.size == 6:
        ways += [("reshape", s) for s in SHAPES[:3]] * 2
    seen = [(way, view(np, way, place.positions)) for way in ways]
    ways = [way for way, positions in seen if positions.shape in SHAPES]
    return Step("view", r.choice(ways), i) if ways else None


def _operand(r: random.Random, draft: Draft, i: int, shape: tuple[int, ...]) -> int | None:
    """An array that can be written to `shape` in the array `i` and does not overlap it."""
    found = [
        j
        for j, q in enumerate(draft.places)
        if _broadcast(q.positions.shape, shape) == shape and not _overlap(draft.places[i], q)
    ]
    return r.choice(found) if found else None


def _overlap(p: Place, q: Place) -> bool:
    return p.memory == q.memory and bool(np.intersect1d(p.positions, q.positions).size)


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _fits(key: Any, positions: Any) -> bool:
    if key == "greater":
        return True
    # for rows, the standard wants integers for the columns as well
    if key in INTEGERS and positions.ndim != 1:
        return False
    if key in MASKS and np.shape(key) != positions.shape[: np.ndim(key)]:
        return False
    for k, n in zip(key if isinstance(key, tuple) else (key,), positions.shape, strict=False):
        if isinstance(k, slice) and (k.stop or 0) > n:  # the standard has no slices beyond the end
            return False
    try:
        return bool(selected(np.asarray, key, positions).size)
    except IndexError:
        return False


def view(xp: Any, how: Any, t: Any) -> Any:
    if isinstance(how, str):
        return t.T
    if isinstance(how, tuple) and how[0] == "reshape":
        return xp.reshape(t, how[1])
    return t[key_of(None, how, t)]


def selected(asarray: Any, key: Any, t: Any) -> Any:
    return t[key_of(asarray, key, t)]


def key_of(asarray: Any, key: Any, t: Any) -> Any:
    if isinstance(key, str):
        return t > 0.75
    if key in PAIRS:
        return tuple(asarray(np.asarray(k)) for k in key)
    if isinstance(key, list):
        return asarray(np.asarray(key, dtype=bool if key in MASKS else np.int64))
    key = key if isinstance(key, tuple) else (key,)
    # the standard wants it, and NumPy for a view of one element
    return key if Ellipsis in key else (*key, ...)


def execute(
    xp: Library, steps: list[Step], data: dict[str, Any]
) -> tuple[list[Any], tuple[int, Exception] | None]:
    """The arrays, and the number of the step that was refused with its error, or None."""
    t = [data[n] for n in LEAVES + CONSTANTS]
    for number, step in enumerate(steps):
        try:
            with (xp.enable_grad if step.recorded else xp.no_grad)():
                made = carry_out(xp, step, t)
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            return t, (number, error)
        if made is not None:
            t.append(made)
    return t, None


def carry_out(xp: Library, step: Step, t: list[Any]) -> Any:
    target = t[step.i]
    xp.look(target)
    operand = step.value if step.j is None else t[step.j]
    if step.kind in ("binary", "number"):
        return getattr(target, BINARY[step.how])(operand)
    if step.kind == "unary":
        return getattr(xp, step.how)(target)
    if step.kind == "view":
        return view(xp, step.how, target)
    if step.kind == "copy":
        return selected(xp.array, step.how, target)
    if step.kind == "detach":
        return target.detach()
    if step.kind == "augmented":
        getattr(target, AUGMENTED[step.how])(operand)
    elif step.kind == "twin":
        getattr(target, f"{step.how}_")()
    elif step.kind == "set":
        target[key_of(xp.array, step.how, target)] = operand
    elif step.kind == "zero":
        target.zero_()
    else:
        target.copy_(operand)
    return None
