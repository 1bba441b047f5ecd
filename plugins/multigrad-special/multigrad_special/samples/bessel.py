"""Samples of the Bessel functions."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from multigrad_conformance import Draw, Kink, Sample

WHOLE, REAL = (
    np.asarray([[0.0, 1.0, 2.0], [3.0, 5.0, 1.0]]),
    np.asarray([[0.3, 1.0, 2.5], [3.7, 0.5, 1.2]]),
)


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
    yield Sample("orders and an argument of both signs", WHOLE, draw.nonzero(2, 3))
    yield Sample("real orders", REAL, draw.real(2, 3, low=0.5, high=5.0), short=False)


def ive(draw: Draw) -> Iterator[Sample]:
    yield from iv(draw)
    yield Sample(
        "far",
        2,
        np.concatenate([draw.real(3, low=10.0, high=60.0), draw.real(3, low=-60.0, high=-10.0)]),
        short=False,
    )


def j0(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.nonzero(2, 3))
    yield Kink("at nothing", [0.0], gradients={"x": [0.0]}, second={"x": [-0.5]}, short=False)


def j1(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.nonzero(2, 3))
    yield Kink("at nothing", [0.0], gradients={"x": [0.5]}, second={"x": [0.0]}, short=False)


def jv(draw: Draw) -> Iterator[Sample]:
    yield from iv(draw)
    yield Kink(
        "at nothing",
        [2, 1],
        [0.0, 0.0],
        gradients={"z": [0.0, 0.5]},
        second={"z": [0.25, 0.0]},
        short=False,
    )


def y0(draw: Draw) -> Iterator[Sample]:
    yield Sample("near and farther", draw.real(2, 3, low=0.5, high=9.0))
    yield Kink("at the pole", [0.0], gradients={"x": [inf]}, short=False)


def yn(draw: Draw) -> Iterator[Sample]:
    yield Sample("orders and an argument", WHOLE, draw.real(2, 3, low=0.7, high=9.0))


def yv(draw: Draw) -> Iterator[Sample]:
    yield Sample("real orders", REAL, draw.real(2, 3, low=0.7, high=9.0))


def k0(draw: Draw) -> Iterator[Sample]:
    yield Sample("near and farther", draw.real(2, 3, low=0.5, high=5.0))
    yield Kink("at the pole", [0.0], gradients={"x": [-inf]}, short=False)


def kv(draw: Draw) -> Iterator[Sample]:
    yield Sample("real orders", REAL, draw.real(2, 3, low=0.7, high=5.0))


def kve(draw: Draw) -> Iterator[Sample]:
    yield from kv(draw)
    yield Sample(
        "far",
        draw.real(6, low=0.0, high=3.0),
        draw.real(6, low=20.0, high=60.0),
        differentiable=("z",),
        short=False,
    )


y1, k1, k0e, k1e = y0, k0, k0, k0
