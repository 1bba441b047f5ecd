"""Samples of the incomplete gamma functions, their inverses and their distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from multigrad_conformance import Draw, Kink, Sample

INF = math.inf
COUNTS = np.asarray([0.0, 1.0, 2.0, 5.0])


def gammainc(draw: Draw) -> Iterator[Sample]:
    yield Sample("about the mean", draw.positive(4), draw.positive(4))
    yield Sample("large", draw.real(4, low=20.0, high=30.0), draw.real(4, low=20.0, high=30.0))
    yield Kink(
        "at nothing",
        [0.5, 1.0, 2.0],
        [0.0, 0.0, 0.0],
        gradients={"a": [0.0, 0.0, 0.0], "x": [INF, 1.0, 0.0]},
        short=False,
    )


def gammaincc(draw: Draw) -> Iterator[Sample]:
    yield Sample("about the mean", draw.positive(4), draw.positive(4))
    yield Sample("large", draw.real(4, low=20.0, high=30.0), draw.real(4, low=20.0, high=30.0))


def gammaincinv(draw: Draw) -> Iterator[Sample]:
    yield Sample("probable", draw.positive(4), draw.real(4, low=0.2, high=0.8))
    yield Kink(
        "at the ends",
        [0.5, 1.0, 2.0, 1.0],
        [0.0, 0.0, 0.0, 1.0],
        short=False,
        gradients={"a": [0.0, 0.0, 0.0, INF], "y": [0.0, 1.0, INF, INF]},
    )


def gammainccinv(draw: Draw) -> Iterator[Sample]:
    yield Sample("probable", draw.positive(4), draw.real(4, low=0.2, high=0.8))


def gdtr(draw: Draw) -> Iterator[Sample]:
    yield Sample("about the mean", draw.positive(4), draw.positive(4), draw.positive(4))


def gdtrc(draw: Draw) -> Iterator[Sample]:
    yield from gdtr(draw)


def chdtr(draw: Draw) -> Iterator[Sample]:
    yield Sample("about the mean", draw.positive(4), draw.positive(4))


def chdtrc(draw: Draw) -> Iterator[Sample]:
    yield from chdtr(draw)


def chdtri(draw: Draw) -> Iterator[Sample]:
    yield from gammainccinv(draw)


def pdtr(draw: Draw) -> Iterator[Sample]:
    yield Sample("counts", COUNTS, draw.positive(4))


def pdtrc(draw: Draw) -> Iterator[Sample]:
    yield from pdtr(draw)


def pdtri(draw: Draw) -> Iterator[Sample]:
    yield Sample("counts", COUNTS, draw.real(4, low=0.2, high=0.8))
