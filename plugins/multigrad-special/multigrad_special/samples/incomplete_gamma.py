"""Samples of the incomplete gamma functions and their distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator

from multigrad_conformance import Draw, Kink, Sample

INF = math.inf


def gammainc(draw: Draw) -> Iterator[Sample]:
    yield Sample("about the mean", draw.positive(2, 3), draw.positive(2, 3), differentiable=("x",))
    yield Sample("large", draw.real(6, low=20.0, high=30.0), draw.real(6, low=20.0, high=30.0), differentiable=("x",))
    yield Kink("at nothing", [0.5, 1.0, 2.0], [0.0, 0.0, 0.0], gradients={"x": [INF, 1.0, 0.0]}, short=False)


def gammaincc(draw: Draw) -> Iterator[Sample]:
    yield Sample("about the mean", draw.positive(2, 3), draw.positive(2, 3), differentiable=("x",))
    yield Sample("large", draw.real(6, low=20.0, high=30.0), draw.real(6, low=20.0, high=30.0), differentiable=("x",))
