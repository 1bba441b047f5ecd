"""Samples of the error functions and of the normal distribution."""

from __future__ import annotations

import math
from collections.abc import Iterator

from multigrad_conformance import Draw, Kink, Sample

SLOPE = 2 / math.sqrt(math.pi)
INF = math.inf


def erf(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=2.0, high=5.0))
    yield Kink("flat at infinity", [0.0, INF, -INF], gradients={"x": [SLOPE, 0.0, 0.0]})


def erfc(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=2.0, high=5.0))
    yield Kink("flat at infinity", [0.0, INF, -INF], gradients={"x": [-SLOPE, 0.0, 0.0]})


def erfcx(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=3.0, high=40.0))


def erfinv(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", draw.real(2, 3, low=-0.9, high=0.9))
    yield Sample("near one", draw.real(6, low=0.8, high=0.9))
    yield Kink(
        "steep at the ends", [0.0, 1.0, -1.0], gradients={"x": [1 / SLOPE, INF, INF]}, short=False
    )


def ndtr(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far below", draw.real(6, low=-6.0, high=-3.0))


def log_ndtr(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far below", draw.real(6, low=-40.0, high=-10.0))


def ndtri(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", draw.real(2, 3, low=0.05, high=0.95))
    yield Kink(
        "steep at the ends",
        [0.5, 0.0, 1.0],
        gradients={"x": [math.sqrt(2 * math.pi), INF, INF]},
        short=False,
    )


def gelu(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("by tanh", draw.real(2, 3), approximate="tanh")
    yield Kink("at infinity", [0.0, INF, -INF], gradients={"x": [0.5, 1.0, 0.0]}, short=False)
