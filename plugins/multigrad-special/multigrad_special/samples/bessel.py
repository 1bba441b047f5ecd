"""Samples of the Bessel functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from multigrad_conformance import Draw, Kink, Sample


def i0(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.nonzero(2, 3))
    yield Kink("at nothing", [0.0], gradients={"x": [0.0]}, second={"x": [0.5]}, short=False)


def i1(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.nonzero(2, 3))
    yield Kink("at nothing", [0.0], gradients={"x": [0.5]}, second={"x": [0.0]}, short=False)


def i0e(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.nonzero(2, 3))
    yield Sample("far", draw.real(6, low=10.0, high=60.0))
    yield Kink("at nothing", [0.0], gradients={"x": [0.0]}, short=False)


def i1e(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.nonzero(2, 3))
    yield Sample("far", draw.real(6, low=10.0, high=60.0))
    yield Kink("at nothing", [0.0], gradients={"x": [0.5]}, short=False)


def iv(draw: Draw) -> Iterator[Sample]:
    for v in (0, 2, 3):
        yield Sample(f"order {v}", v, draw.nonzero(2, 3), short=v == 2)


def ive(draw: Draw) -> Iterator[Sample]:
    yield from iv(draw)
    yield Sample("far", 2, np.concatenate([draw.real(3, low=10.0, high=60.0), draw.real(3, low=-60.0, high=-10.0)]))
