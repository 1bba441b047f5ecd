"""Samples of manipulation, indexing, searching and set functions, and of the rules' kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..sample import Draw, Kink, Sample

NAN = np.nan


def arranged(
    draw: Draw, *cases: tuple[str, tuple[int, ...], tuple[Any, ...], dict[str, Any]]
) -> Iterator[Sample]:
    """Yield samples of an operation on one array.

    Each case is a label, a shape, and further arguments. The first case is repeated with complex
    values.
    """
    for i, (label, shape, args, kwargs) in enumerate(cases):
        yield Sample(label, draw.real(*shape), *args, **kwargs)
        if i == 0:
            yield Sample("complex", draw.complex(*shape), *args, **kwargs)
            yield Sample("integers", draw.integers(*shape), *args, **kwargs)


ARRANGEMENTS: dict[str, list[tuple[str, tuple[int, ...], tuple[Any, ...], dict[str, Any]]]] = {
    "broadcast_to": [
        ("rows", (3,), ((2, 3),), {}),
        ("columns", (2, 1), ((2, 3),), {}),
        ("0-d", (), ((2, 2),), {}),
        ("empty", (1, 3), ((0, 3),), {}),
        ("of nothing", (0, 1), ((2, 0, 3),), {}),
    ],
    "reshape": [
        ("matrix", (2, 3), ((3, 2),), {}),
        ("flat", (2, 3), ((-1,),), {}),
        ("to 0-d", (1,), ((),), {}),
        ("0-d", (), ((1, 1),), {}),
        ("copy", (4,), ((2, 2),), {"copy": True}),
        ("empty", (0, 3), ((3, 0),), {}),
    ],
    "expand_dims": [
        ("first", (2, 3), (), {"axis": 0}),
        ("last", (3,), (), {"axis": -1}),
        ("0-d", (), (), {"axis": 0}),
        ("empty", (0,), (), {"axis": 1}),
    ],
    "squeeze": [
        ("one", (2, 1, 3), (1,), {}),
        ("several", (1, 2, 1), ((0, -1),), {}),
        ("empty", (0, 1), (1,), {}),
    ],
    "permute_dims": [
        ("reversed", (2, 3), ((1, 0),), {}),
        ("cycle", (2, 3, 4), ((2, 0, 1),), {}),
        ("negative", (2, 3, 4), ((-1, 0, 1),), {}),
        ("0-d", (), ((),), {}),
        ("empty", (0, 2), ((1, 0),), {}),
    ],
    "moveaxis": [
        ("one", (2, 3, 4), (0, -1), {}),
        ("several", (2, 3, 4), ((0, 1), (2, 0)), {}),
        ("empty", (2, 0), (0, 1), {}),
    ],
    "flip": [
        ("all", (2, 3), (), {}),
        ("axis", (2, 3, 2), (), {"axis": 1}),
        ("axes", (2, 3, 2), (), {"axis": (0, -1)}),
        ("empty", (0,), (), {}),
    ],
    "roll": [
        ("flat", (2, 3), (2,), {}),
        ("axis", (2, 3, 2), (1,), {"axis": 1}),
        ("axes", (2, 3), ((1, -1),), {"axis": (0, 1)}),
        ("empty", (0,), (1,), {}),
    ],
    "tril": [
        ("matrix", (3, 3), (), {}),
        ("below", (3, 2), (), {"k": -1}),
        ("batch", (2, 2, 3), (), {"k": 1}),
        ("empty", (0, 2), (), {}),
    ],
    "triu": [
        ("matrix", (3, 3), (), {}),
        ("above", (3, 2), (), {"k": 1}),
        ("batch", (2, 2, 3), (), {"k": -1}),
        ("empty", (2, 0), (), {}),
    ],
    "unstack": [
        ("first", (2, 3), (), {}),
        ("last", (2, 3), (), {"axis": -1}),
        ("empty", (2, 0), (), {}),
    ],
    "tile": [
        ("vector", (3,), ((2,),), {}),
        ("matrix", (2, 3), ((2, 2),), {}),
        ("more axes", (3,), ((2, 1, 2),), {}),
        ("fewer", (2, 3), ((2,),), {}),
        ("none", (2,), ((0,),), {}),
        ("0-d", (), ((2,),), {}),
        ("empty", (0,), ((2,),), {}),
    ],
}


def repeat(draw: Draw) -> Iterator[Sample]:
    yield Sample("flat", draw.real(2, 3), 2)
    yield Sample("complex", draw.complex(2, 3), 2, axis=1)
    yield Sample("axis", draw.real(2, 3), 3, axis=0)
    yield Sample(
        "each its own", draw.real(2, 3), np.asarray([2, 0, 1]), axis=1, needs="data_dependent"
    )
    yield Sample("empty", draw.real(0, 2), 2, axis=0)


def joined(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("two", [draw.real(2, 3), draw.real(2, 3)])
    yield Sample("complex", [draw.complex(2, 3), draw.complex(2, 3)], axis=1)
    yield Sample("real,complex", [draw.real(2), draw.complex(2)])
    yield Sample("one of them", (draw.real(2), draw.integers(2).astype(np.float64)))
    if name == "stack":
        yield Sample("0-d", [draw.real(), draw.real()])
        yield Sample("empty", [draw.real(0, 2), draw.real(0, 2)], axis=1)
    if name == "concat":
        yield Sample("lengths", [draw.real(2, 1), draw.real(2, 3)], axis=1)
        yield Sample("flat", [draw.real(2, 2), draw.real(3)], axis=None)
        yield Sample("empty", [draw.real(0, 2), draw.real(2, 2)])


def broadcast_arrays(draw: Draw) -> Iterator[Sample]:
    yield Sample("two", draw.real(2, 1), draw.real(3))
    yield Sample("complex", draw.complex(2, 1), draw.complex(3))
    yield Sample("three", draw.real(), draw.real(2, 1), draw.real(1, 3))
    yield Sample("empty", draw.real(0, 1), draw.real(3))


def broadcast_shapes(draw: Draw) -> Iterator[Sample]:
    yield Sample("two", (2, 1), (3,))
    yield Sample("three", (), (4, 1, 1), (2, 3))


def meshgrid(draw: Draw) -> Iterator[Sample]:
    yield Sample("xy", draw.real(2), draw.real(3))
    yield Sample("ij", draw.real(2), draw.real(3), indexing="ij")
    yield Sample("three", draw.real(2), draw.real(3), draw.real(2))
    yield Sample("one", draw.complex(3))
    yield Sample("empty", draw.real(0), draw.real(2))


# ----- indexing -----

# The keys of NumPy that the standard defines.
MASK = np.asarray([[False, True, False], [True, False, False]])
ROWS = np.asarray([1, 0, 1])
KEYS: dict[str, tuple[tuple[int, ...], Any]] = {
    "integer": ((4,), 1),
    "integer arrays": ((2, 3), (np.asarray([0, 1, 0]), np.asarray([2, -1, 2]))),
    "mask": ((2, 3), MASK),
    "slice": ((5,), slice(1, 4)),
    "step": ((5,), slice(None, None, 2)),
    "backwards": ((5,), slice(None, None, -2)),
    "mixed": ((2, 3, 4), (1, slice(None), slice(1, 3))),
    "ellipsis": ((2, 3, 2), (Ellipsis, 1)),
    "new axis": ((2, 3), (slice(None), None, 0)),
    "all integers": ((2, 3), (1, -1)),
    "row": ((2, 3), (1, Ellipsis)),
    "integer array": ((4,), ROWS),
    "array of arrays": ((4,), np.asarray([[1, 0], [3, -1]])),
    "nothing": ((3,), slice(2, 2)),
    "mask of rows": ((2, 3), np.asarray([True, False])),
    "no element": ((2, 3), np.zeros((2, 3), bool)),
    "0-d": ((), ()),
}


def _needs(key: Any) -> str:
    return "boolean_indexing" if isinstance(key, np.ndarray) and key.dtype == bool else ""


def getitem(draw: Draw) -> Iterator[Sample]:
    for label, (shape, key) in KEYS.items():
        yield Sample(
            label,
            draw.real(*shape),
            key,
            needs=_needs(key),
            short=label in ("integer", "integer arrays", "mask"),
        )
    yield Sample("complex", draw.complex(2, 3), (slice(None), 1))
    yield Sample("empty", draw.real(0, 3), (slice(None), 1))


def unindex(draw: Draw) -> Iterator[Sample]:
    for label, (shape, key) in KEYS.items():
        values = draw.real(*np.zeros(shape)[key].shape)
        yield Sample(
            label,
            values,
            key,
            shape,
            needs=_needs(key),
            short=label in ("integer", "integer arrays", "mask"),
        )
    yield Sample("complex", draw.complex(2), (slice(None), 1), (2, 3))
    yield Sample("two places", draw.real(2), (slice(None, None, 3),), (5,))
    yield Sample(
        "step of a middle axis",
        draw.real(2, 3, 2),
        (slice(None), slice(None, None, 2), slice(None)),
        (2, 5, 2),
    )


def setitem(draw: Draw) -> Iterator[Sample]:
    for label, (shape, key) in KEYS.items():
        # at a repeated index, the last value counts
        if label in ("integer arrays", "array of arrays", "integer array"):
            continue
        yield Sample(
            label,
            draw.real(*shape),
            key,
            draw.real(*np.zeros(shape)[key].shape),
            needs=_needs(key),
            short=label in ("integer", "mask"),
        )
    yield Sample(
        "integer arrays",
        draw.real(2, 3),
        (np.asarray([0, 1]), np.asarray([2, -1])),
        draw.real(2),
        short=True,
    )
    yield Sample("repeated places", draw.real(4), np.asarray([1, 2, 1]), draw.real(3))
    yield Sample("broadcast row", draw.real(2, 3), (Ellipsis,), draw.real(3))
    yield Sample("leading axes of 1", draw.real(2, 3), (0, Ellipsis), draw.real(1, 1, 3))
    yield Sample("number", draw.real(2, 3), (0, slice(1, 3)), 2.5)
    yield Sample("masked number", draw.real(2, 3), MASK, draw.real(), needs="boolean_indexing")
    yield Sample("complex", draw.complex(2, 3), (slice(None), 1), draw.complex(2))
    yield Sample("real into complex", draw.complex(2, 3), (0, Ellipsis), draw.real(3))


def take(draw: Draw) -> Iterator[Sample]:
    yield Sample("axis", draw.real(2, 3), np.asarray([2, 0, 2]), axis=1)
    yield Sample("complex", draw.complex(2, 3), np.asarray([1, 0]), axis=0)
    yield Sample("vector", draw.real(4), np.asarray([3, 1, 1, -1]))
    yield Sample("middle axis", draw.real(2, 3, 2), np.asarray([-1, 0]), axis=-2)
    yield Sample(
        "indices of two axes", draw.real(2, 3, 2), np.asarray([[0, 2, 0], [1, 1, -1]]), axis=1
    )
    yield Sample("none", draw.real(3), np.zeros((0,), np.int64))


def take_along_axis(draw: Draw) -> Iterator[Sample]:
    yield Sample("last", draw.real(2, 3), np.asarray([[0, 0], [2, 1]]))
    yield Sample("complex", draw.complex(2, 3), np.asarray([[0, 0], [2, 1]]))
    yield Sample("first", draw.real(3, 2), np.asarray([[2, 1], [0, 1]]), axis=0)
    yield Sample("broadcast", draw.real(2, 3), np.asarray([[2, 0]]), axis=-1)
    yield Sample("negative", draw.real(2, 3), np.asarray([[-1], [-3]]))
    yield Sample("none", draw.real(2, 3), np.zeros((2, 0), np.int64))
    yield Sample("empty", draw.real(0, 3), np.zeros((0, 2), np.int64))


def scatter_add(draw: Draw) -> Iterator[Sample]:
    yield Sample("vector", draw.real(4), np.asarray([2, 0, 2, -1]), 3)
    yield Sample("complex", draw.complex(3), np.asarray([1, 1, 0]), 2)
    yield Sample("rows", draw.real(4, 2), np.asarray([2, 0, 2, 2]), 4)
    yield Sample("none", draw.real(0, 2), np.zeros((0,), np.int64), 3)
    yield Sample(
        "wide rows",
        draw.real(2, 300),
        np.asarray([1, 1]),
        2,
        short=False,
        checks=("forward", "override"),
    )


def refuse(draw: Draw) -> Iterator[Sample]:
    yield Sample("nothing", draw.real(2, 3), np.zeros((2, 3), bool), "never shown")
    yield Sample("complex", draw.complex(2, 3), np.asarray(False), "never shown")
    yield Sample("0-d", draw.real(), np.asarray(False), "never shown")
    yield Sample("empty", draw.real(0), np.zeros((0,), bool), "never shown")


def difference_of_squares(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", draw.real(2, 3), draw.real(2, 3))
    yield Sample("complex", draw.complex(2, 3), draw.complex(2, 3))
    yield Sample("number", 1.0, draw.real(2, 3))
    yield Sample("broadcast", draw.real(2, 1), draw.real(3))


@dataclass(frozen=True, eq=False)
class Number:
    """A number as `scaled` takes it: the nearest float, and its exact construction from a 1."""

    value: float
    recipe: Any


LN2 = Number(math.log(2), lambda xp, one: xp.log(one + one))
PI = Number(math.pi, lambda xp, one: xp.acos(-one))


def scaled(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", draw.real(2, 3), LN2)
    yield Sample("complex", draw.complex(2, 3), PI)
    yield Sample("0-d", draw.real(), PI)
    yield Sample("empty", draw.real(0), LN2)


# ----- searching and sets -----


def where(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", draw.booleans(2, 3), draw.real(2, 3), draw.real(2, 3))
    yield Sample("complex", draw.booleans(2, 3), draw.complex(2, 3), draw.complex(2, 3))
    yield Sample("real,complex", draw.booleans(2, 3), draw.real(2, 3), draw.complex(2, 3))
    yield Sample("integers", draw.booleans(2, 3), draw.integers(2, 3), draw.integers(2, 3))
    yield Kink(
        "nan in the branch not taken",
        np.asarray([True, False]),
        [1.0, NAN],
        [NAN, 2.0],
        gradients={"x1": [1, 0], "x2": [0, 1]},
    )


def nonzero(draw: Draw) -> Iterator[Sample]:
    yield Sample("integers", draw.integers(2, 3, low=0, high=2), needs="data_dependent")
    yield Sample("real", np.asarray([0.0, 1.5, -0.0, 2.0]), needs="data_dependent")


def searchsorted(draw: Draw) -> Iterator[Sample]:
    x1 = np.sort(draw.apart(5))
    x2 = draw.real(2, 3)
    x2[0, 0] = x1[2]  # a tie, which the side decides
    yield Sample("left", x1, x2)
    yield Sample("right", x1, x1[[0, 2]].copy(), side="right")
    yield Sample("sorter", x1[::-1].copy(), x1[1:4] + 0.05, sorter=np.arange(5)[::-1].copy())


def unique(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("real", np.asarray([[0.5, -1.0, 2.0], [1.5, 3.0, -2.5]]), needs="data_dependent")
    yield Sample("complex", draw.complex(3), needs="data_dependent", differentiable=())
    yield Sample(
        "repeated", np.asarray([2.0, 1.0, 2.0, 1.0]), needs="data_dependent", checks=("forward",)
    )
    yield Sample("integers", np.asarray([3, 1, 3, 2]), needs="data_dependent")
    yield Sample("0-d", draw.real(), needs="data_dependent")
    yield Sample("empty", np.zeros((0,)), needs="data_dependent")


def isin(draw: Draw) -> Iterator[Sample]:
    yield Sample("integers", draw.integers(2, 3), draw.integers(3))
    yield Sample("inverted", draw.integers(4), draw.integers(2), invert=True)


def samples() -> dict[str, Any]:
    """Return the generators of these chapters, by operation."""
    table: dict[str, Any] = {
        f.__name__: f
        for f in (
            repeat,
            broadcast_arrays,
            broadcast_shapes,
            meshgrid,
            getitem,
            unindex,
            setitem,
            take,
            take_along_axis,
            scatter_add,
            refuse,
            difference_of_squares,
            scaled,
            where,
            nonzero,
            searchsorted,
            isin,
        )
    }
    for name, cases in ARRANGEMENTS.items():
        table[name] = lambda draw, cases=cases: arranged(draw, *cases)
    for name in ("concat", "stack"):
        table[name] = lambda draw, name=name: joined(name, draw)
    for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
        table[name] = lambda draw, name=name: unique(name, draw)
    return table
