"""Samples of the elementwise functions: random arguments, then kinks with stated numbers; see
`multigrad_conformance.elementwise`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..elementwise import BINARY, POINTS, drawn, kinks
from ..sample import Draw, Sample

INF, NAN = np.inf, np.nan

BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
LOGICAL = ("logical_and", "logical_or", "logical_xor")


def unary(name: str, draw: Draw) -> Iterator[Sample]:
    at = POINTS[name]
    if at.first:
        yield Sample("real", drawn(draw, at.first, 2, 3))
    if at.complex:
        yield Sample("complex", draw.complex(2, 3))
    if at.integers:
        yield Sample("integers", draw.integers(2, 3))
    if at.first:
        yield Sample("vector", drawn(draw, at.first, 5))
    if name == "sinc":  # no shapes are derived for composites
        yield Sample("0-d", np.asarray(0.3))
        yield Sample("empty", np.zeros((2, 0)))


def binary(name: str, draw: Draw) -> Iterator[Sample]:
    at = POINTS[name]
    first, second = at.first, at.second
    if first == "apart":  # drawn together, so that no pair is near a tie
        both = draw.apart(2, 2, 3)
        yield Sample("real", both[0], both[1])
    else:
        yield Sample("real", drawn(draw, first, 2, 3), drawn(draw, second, 2, 3))
    if at.complex:
        yield Sample("complex", draw.complex(2, 3), draw.complex(2, 3))
        yield Sample("complex,real", draw.complex(2, 3), drawn(draw, second, 2, 3))
        yield Sample("real,complex", drawn(draw, first, 2, 3), draw.complex(2, 3))
    if at.integers:
        yield Sample("integers", draw.integers(2, 3), draw.integers(2, 3, low=1))
    if name in ("equal", "not_equal", "less_equal", "greater_equal"):
        same = draw.real(2, 3)
        yield Sample("equal", same, same.copy())
    if name == "pow":
        yield Sample(
            "integer exponents",
            draw.nonzero(2, 3),
            draw.integers(2, 3, low=-2, high=4).astype(np.float64),
            differentiable=("x1",),
        )
        yield Sample("integer scalar", draw.nonzero(2, 3), 3, differentiable=("x1",))


def clip(draw: Draw) -> Iterator[Sample]:
    x = draw.apart(2, 3)
    low, high = np.full((2, 3), -0.2), np.full((2, 3), 0.4)
    yield Sample("both bounds", x, low, high)
    yield Sample("lower bound", x, low)
    yield Sample("upper bound", x, None, high)
    yield Sample("numbers", x, -0.2, 0.4)
    yield Sample("integers", draw.integers(2, 3), -2, 2)


def bitwise(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("integers", draw.integers(2, 3), draw.integers(2, 3))
    yield Sample("booleans", draw.booleans(2, 3), draw.booleans(2, 3))


def logical(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("booleans", draw.booleans(2, 3), draw.booleans(2, 3))


def shift(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample(
        "integers", draw.integers(2, 3, low=0, high=50), draw.integers(2, 3, low=0, high=4)
    )


def inverse(name: str, draw: Draw) -> Iterator[Sample]:
    if name == "bitwise_invert":
        yield Sample("integers", draw.integers(2, 3))
    yield Sample("booleans", draw.booleans(2, 3))


def special(name: str, draw: Draw) -> Iterator[Sample]:
    """Yield samples with infinities and nans, for functions that test for them."""
    yield Sample("special values", np.asarray([0.0, -0.0, 1.5, INF, -INF, NAN]))


def samples() -> dict[str, Any]:
    """Return the generators of this chapter, by operation."""
    makers: dict[str, list[Any]] = {}
    for names, maker in (
        (
            [name for name, at in POINTS.items() if not at.second and (at.first or at.complex)],
            unary,
        ),
        (BINARY, binary),
        (BITWISE, bitwise),
        (LOGICAL, logical),
        (("bitwise_left_shift", "bitwise_right_shift"), shift),
        (("bitwise_invert", "logical_not"), inverse),
        (("isfinite", "isinf", "isnan", "signbit"), special),
    ):
        for name in names:
            makers.setdefault(name, []).append(maker)
    table = {name: _generator(name, found) for name, found in makers.items()}
    table["clip"] = lambda draw: [*clip(draw), *kinks("clip")]
    return table


def _generator(name: str, makers: list[Any]) -> Any:
    return lambda draw: [*(s for make in makers for s in make(name, draw)), *kinks(name)]
