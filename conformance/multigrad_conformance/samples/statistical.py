"""Samples of reductions, scans, products of arrays, sorting and utilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..sample import Draw, DType, Kink, Sample

NAN = np.nan


def reduction(name: str, draw: Draw) -> Iterator[Sample]:
    make = draw.apart if name in ("max", "min") else draw.nonzero
    yield Sample("all", make(2, 3))
    if name in ("sum", "mean", "prod"):
        yield Sample("complex", draw.complex(2, 3), axis=1)
    yield Sample("axis", make(2, 3), axis=0)
    yield Sample("keepdims", make(2, 3), axis=-1, keepdims=True)
    yield Sample("axes", make(2, 3, 2), axis=(0, 2))
    yield Sample("no axes", make(2, 3), axis=())
    yield Sample("0-d", make())
    if name in ("sum", "prod"):
        yield Sample("dtype", make(2, 3), axis=1, dtype=DType("float32"))
        yield Sample("integers", draw.integers(2, 3), axis=0)
        yield Sample("empty", np.zeros((0, 3)), axis=0)
    if name in ("max", "min"):
        yield Sample("integers", draw.integers(2, 3), axis=0)
    if name in ("max", "min", "mean"):
        yield Sample("empty along", np.zeros((2, 0)), axis=0)
    if name in ("var", "std"):
        yield Sample("correction", make(2, 3), axis=1, correction=1.0)
        yield Sample("complex", draw.complex(2, 3), axis=1, short=False)
        yield Sample("correction 0.5", make(4), correction=0.5, keepdims=True)
        yield Sample("empty", make(0, 3), axis=1)


def scan(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("vector", draw.nonzero(4))
    yield Sample("complex", draw.complex(2, 3), axis=1)
    yield Sample("axis", draw.nonzero(2, 3), axis=0)
    yield Sample("initial", draw.nonzero(2, 3, 2), axis=1, include_initial=True)
    yield Sample("dtype", draw.nonzero(4), dtype=DType("float32"))
    yield Sample("integers", draw.integers(4))
    yield Sample("empty", np.zeros((0,)))


def diff(draw: Draw) -> Iterator[Sample]:
    yield Sample("vector", draw.real(4))
    yield Sample("complex", draw.complex(2, 3))
    yield Sample("axis", draw.real(3, 2), axis=0)
    yield Sample("twice", draw.real(2, 4), n=2)
    yield Sample("ends", draw.real(2, 3), prepend=draw.real(2, 1), append=draw.real(2, 2))
    yield Sample("empty", draw.real(0, 3))
    yield Sample("one", draw.real(1))
    yield Sample("none", draw.real(2, 3), n=0, prepend=draw.real(2, 1), differentiable=("x",))


def truth(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("booleans", draw.booleans(2, 3))
    yield Sample("real", draw.real(2, 3), axis=0)
    yield Sample("keepdims", draw.integers(2, 3, low=0, high=2), axis=(0, 1), keepdims=True)


def index_of(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("all", draw.apart(2, 3))
    yield Sample("axis", draw.apart(2, 3), axis=1)
    yield Sample("keepdims", draw.apart(2, 3), axis=0, keepdims=True)
    yield Sample("ties", np.asarray([0.5, 2.0, -1.0, 2.0, -1.0]), short=True)


def count_nonzero(draw: Draw) -> Iterator[Sample]:
    yield Sample("all", draw.booleans(2, 3))
    yield Sample("axis", draw.integers(2, 3, low=0, high=2), axis=1)
    yield Sample("keepdims", draw.nonzero(2, 3), axis=0, keepdims=True)


def ordering(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("last axis", draw.apart(2, 3))
    yield Sample("first axis", draw.apart(3, 2), axis=0)
    yield Sample("descending", draw.apart(4), descending=True)
    yield Sample("stable", np.asarray([1.0, 0.5, 1.0, 0.5]), stable=True, checks=("forward",))
    yield Sample("in any order", draw.apart(4), stable=False, checks=("forward",))
    yield Sample("integers", draw.integers(5))
    yield Sample("empty", np.zeros((0,)))


def matmul(draw: Draw) -> Iterator[Sample]:
    yield Sample("matrices", draw.real(2, 3), draw.real(3, 2))
    yield Sample("complex", draw.complex(2, 3), draw.complex(3, 2))
    yield Sample("vectors", draw.real(3), draw.real(3))
    yield Sample("matrix,vector", draw.real(2, 3), draw.real(3))
    yield Sample("vector,matrix", draw.real(3), draw.real(3, 2))
    yield Sample("batch", draw.real(2, 2, 3), draw.real(2, 3, 2))
    yield Sample("matrix,batch", draw.real(2, 3), draw.real(2, 3, 2))
    yield Sample("batch,vector", draw.real(2, 2, 3), draw.real(3))
    yield Sample("vector,batch", draw.real(3), draw.real(2, 3, 2))
    yield Sample("broadcast batches", draw.real(2, 1, 2, 3), draw.real(3, 3, 2))
    yield Sample("real,complex", draw.real(2, 3), draw.complex(3))
    yield Sample("complex,real", draw.complex(2, 3), draw.real(3, 2))
    yield Sample("integers", draw.integers(2, 3), draw.integers(3, 2))
    yield Sample("empty", draw.real(0, 3), draw.real(3, 2))
    yield Sample("nothing summed", draw.real(2, 0), draw.real(0, 3))


def tensordot(draw: Draw) -> Iterator[Sample]:
    yield Sample("number", draw.real(2, 3), draw.real(3, 2), axes=1)
    yield Sample("complex", draw.complex(2, 3), draw.complex(3, 2), axes=1)
    yield Sample("default", draw.real(2, 3, 2), draw.real(3, 2, 2))
    yield Sample("outer", draw.real(2), draw.real(3), axes=0)
    yield Sample("pairs", draw.real(2, 3, 4), draw.real(4, 2, 3), axes=((0, 2), (1, 0)))
    yield Sample("cycled", draw.real(2, 3, 4), draw.real(4, 2, 3), axes=((0, 2, 1), (1, 0, 2)))
    yield Sample("real,complex", draw.real(2, 3), draw.complex(3, 2, 2), axes=1)
    yield Sample("0-d", draw.real(), draw.real(2), axes=0)
    yield Sample("empty", draw.real(0, 3), draw.real(3, 2), axes=1)
    yield Sample("nothing summed", draw.real(2, 0), draw.real(0, 3), axes=1)


def vecdot(draw: Draw) -> Iterator[Sample]:
    yield Sample("vectors", draw.real(3), draw.real(3))
    yield Sample("complex", draw.complex(2, 3), draw.complex(2, 3))
    yield Sample("axis", draw.real(3, 2), draw.real(3, 2), axis=-2)
    yield Sample("broadcast both", draw.complex(2, 1, 3), draw.complex(4, 3), axis=-1)
    yield Sample("real,complex", draw.real(3), draw.complex(3))
    yield Sample("complex,real", draw.complex(3), draw.real(3))
    yield Sample("empty", draw.real(0, 3), draw.real(0, 3))
    yield Sample("nothing summed", draw.real(2, 0), draw.real(0))


def matrix_transpose(draw: Draw) -> Iterator[Sample]:
    yield Sample("matrix", draw.real(2, 3))
    yield Sample("complex", draw.complex(2, 3))
    yield Sample("batch", draw.real(2, 3, 2))
    yield Sample("empty", draw.real(0, 3))


CONSTANTS = [
    Kink("constants", [3.0, 3.0, 3.0], gradients={"x": [0, 0, 0]}),
    Kink("one element", [3.0], gradients={"x": [0]}),
    Kink("no degrees of freedom", [3.0], correction=1.0, gradients={"x": [NAN]}),
]
KINKS: dict[str, list[Kink]] = {
    "max": [
        Kink("ties", [1.0, 3.0, 3.0, 3.0], gradients={"x": [0, 1 / 3, 1 / 3, 1 / 3]}),
        Kink(
            "ties along an axis",
            np.asarray([[2.0, 2.0], [0.0, 1.0]]),
            axis=1,
            gradients={"x": [[0.5, 0.5], [0, 1]]},
            reason="PyTorch's max along an axis picks one, its amax splits",
        ),
    ],
    "min": [
        Kink("ties", [1.0, 1.0, 3.0], gradients={"x": [0.5, 0.5, 0]}),
        Kink(
            "ties along an axis",
            np.asarray([[2.0, 2.0], [0.0, 1.0]]),
            axis=1,
            gradients={"x": [[0.5, 0.5], [1, 0]]},
        ),
    ],
    "prod": [
        Kink("one zero", [2.0, 0.0, 4.0], gradients={"x": [0, 8, 0]}, second={"x": [4, 6, 2]}),
        Kink("two zeros", [0.0, 0.0, 4.0], gradients={"x": [0, 0, 0]}, second={"x": [4, 4, 0]}),
        Kink("three zeros", [0.0, 0.0, 0.0], gradients={"x": [0, 0, 0]}, second={"x": [0, 0, 0]}),
    ],
    "cumulative_prod": [
        Kink("one zero", [2.0, 0.0, 4.0, 5.0], gradients={"x": [1, 50, 0, 0]}),
        Kink("two zeros", [2.0, 0.0, 0.0, 5.0], gradients={"x": [1, 2, 0, 0]}),
    ],
    "std": CONSTANTS,
    "var": CONSTANTS,
    "sort": [Kink("ties", [1.0, 0.0, 1.0], gradients={"x": [1, 1, 1]})],
}

MAKERS: dict[str, Any] = {
    **dict.fromkeys(("sum", "mean", "prod", "max", "min", "var", "std"), reduction),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), scan),
    **dict.fromkeys(("all", "any"), truth),
    **dict.fromkeys(("argmax", "argmin"), index_of),
    **dict.fromkeys(("sort", "argsort"), ordering),
}


def samples() -> dict[str, Any]:
    """Return the generators of these chapters, by operation."""
    table: dict[str, Any] = {
        f.__name__: f for f in (diff, count_nonzero, matmul, tensordot, vecdot, matrix_transpose)
    }
    for name, make in MAKERS.items():
        table[name] = lambda draw, name=name, make=make: [*make(name, draw), *KINKS.get(name, ())]
    return table
