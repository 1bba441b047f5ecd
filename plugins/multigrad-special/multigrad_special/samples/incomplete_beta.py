"""Samples of the incomplete beta functions and their distributions."""

from __future__ import annotations

from collections.abc import Iterator

from multigrad_conformance import Draw, Kink, Sample


def betainc(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", draw.positive(2, 3), draw.positive(2, 3), draw.real(2, 3, low=0.1, high=0.9), differentiable=("x",))


def stdtr(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3, low=2.0, high=9.0), draw.nonzero(2, 3), differentiable=("x",))
    yield Kink("at the median", [4.0], [0.0], gradients={"x": [0.375]}, short=False)
