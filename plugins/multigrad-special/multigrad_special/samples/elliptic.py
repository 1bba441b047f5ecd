"""Samples of the elliptic integrals and the Legendre functions."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from multigrad_conformance import Draw, Kink, Sample


def ellipk(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3, low=-3.0, high=0.9))
    yield Kink("at one", [1.0], gradients={"m": [inf]}, short=False)


def ellipkm1(draw: Draw) -> Iterator[Sample]:
    yield Sample("near and farther", draw.real(2, 3, low=0.1, high=3.0))
    yield Kink("at nothing", [0.0], gradients={"p": [-inf]}, short=False)


def ellipe(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3, low=-3.0, high=0.9))
    yield Kink("at one", [1.0], gradients={"m": [-inf]}, short=False)


def lpmv(draw: Draw) -> Iterator[Sample]:
    yield Sample(
        "orders, degrees and an argument",
        np.asarray([0.0, 1.0, 2.0]),
        np.asarray([[3.0, 1.0, 4.0], [5.0, 2.0, 2.0]]),
        draw.real(2, 3, low=-0.9, high=0.9),
    )
    yield Sample(
        "real degrees",
        np.asarray([0.0, -1.0, 1.0]),
        np.asarray([0.5, 1.3, 2.7]),
        draw.real(3, low=-0.5, high=0.9),
        short=False,
        differentiable=("x",),
    )
    yield Kink(
        "at the ends",
        [0, 0, 2, -2, 3],
        [2.0, 3.0, 4.0, 2.0, 4.0],
        [1.0, -1.0, 1.0, 1.0, -1.0],
        gradients={"x": [3.0, 6.0, -90.0, -0.25, 0.0]},
        short=False,
    )
