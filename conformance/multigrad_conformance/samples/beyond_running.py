"""Samples beyond the standard: cumsum, cumprod, windows and the cross product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..sample import Draw, DType, Sample


def scans(draw: Draw) -> Iterator[Sample]:
    yield Sample("axis", draw.real(2, 3), 1)
    yield Sample("all", draw.real(2, 3))
    yield Sample("complex", draw.complex(2, 3), axis=-1)
    yield Sample("integers", draw.integers(4))
    yield Sample("dtype", draw.real(3), dtype=DType("complex128"))
    yield Sample("empty", draw.real(2, 0), axis=1)
    yield Sample("0-d", draw.real())


def sliding_window_view(draw: Draw) -> Iterator[Sample]:
    yield Sample("vector", draw.real(5), 3)
    yield Sample("axis", draw.real(2, 5), 2, axis=-1)
    yield Sample("all", draw.real(3, 4), (2, 3))
    yield Sample("twice", draw.real(5), (2, 2), axis=(0, 0))
    yield Sample("complex", draw.complex(4), 2)
    yield Sample("integers", draw.integers(4), 2)
    yield Sample("empty", draw.real(0, 3), 2, axis=1)
    yield Sample("0-d", draw.real(), ())


def running_places(draw: Draw) -> Iterator[Sample]:
    ties = np.asarray([[1.0, 3.0, 3.0, 2.0], [4.0, 4.0, 0.0, 4.0]])
    for label, x, axis, largest in (
        ("largest", draw.real(2, 5), 1, True),
        ("smallest", draw.real(3, 2), 0, False),
        ("ties", ties, -1, True),
        ("nan", np.asarray([1.0, np.nan, 3.0, np.nan, 2.0]), 0, False),
        ("integers", draw.integers(5), 0, True),
        ("booleans", np.asarray([False, True, False]), 0, True),
        ("one", draw.real(2, 1), 1, True),
        ("empty", draw.real(2, 0), 1, True),
    ):
        yield Sample(
            label,
            x,
            axis,
            largest,
            reference=_running_places,
            short=label in ("largest", "smallest", "ties"),
        )


def _running_places(x: Any, axis: int, largest: bool) -> Any:
    def along(row: Any) -> Any:
        places = np.zeros(len(row), np.int64)
        last = 0
        for i, v in enumerate(row):
            best = row[last]
            if v != v or (best == best and (v >= best if largest else v <= best)):
                last = i
            places[i] = last
        return places

    return np.apply_along_axis(along, axis, x)


def cross(draw: Draw) -> Iterator[Sample]:
    yield Sample("vectors", draw.real(3), draw.real(3))
    yield Sample("broadcast", draw.real(2, 3), draw.real(3))
    yield Sample("axis", draw.real(3, 2), draw.real(3, 2), axis=0)
    yield Sample("axes", draw.real(3, 2), draw.real(3, 2), axisa=0, axisb=0, axisc=0)
    yield Sample("complex", draw.complex(3), draw.complex(3))
    yield Sample("empty", draw.real(0, 3), draw.real(0, 3))


def samples() -> dict[str, Any]:
    """Return the generators of this chapter, by operation."""
    return {
        "cumsum": scans,
        "cumprod": scans,
        "sliding_window_view": sliding_window_view,
        "running_places": running_places,
        "cross": cross,
    }
