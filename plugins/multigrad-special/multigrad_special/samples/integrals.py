"""Samples of the exponential integrals and the dilogarithm."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from multigrad_conformance import Draw, Kink, Sample

INF, NAN = math.inf, math.nan


def exp1(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3))
    yield Kink("ends", [0.0, INF, -1.0], gradients={"x": [-INF, 0.0, NAN]}, short=False)


def expi(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.nonzero(2, 3))


def expn(draw: Draw) -> Iterator[Sample]:
    yield Sample("orders", np.asarray([[0.0, 1.0, 2.0], [3.0, 7.0, 30.0]]), draw.positive(2, 3))
    yield Kink(
        "ends",
        np.asarray([2.0, 3.0, 1.0]),
        [0.0, 0.0, -1.0],
        gradients={"x": [-INF, -1.0, NAN]},
        short=False,
    )


def spence(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.real(2, 3, low=0.2, high=3.0))
    yield Kink(
        "at 1 and the end", [1.0, 0.0, -1.0], gradients={"z": [-1.0, -INF, NAN]}, short=False
    )


def hyp1f1(draw: Draw) -> Iterator[Sample]:
    # Layouts and shapes are left out: a library that compiles takes long over each.
    yield Sample(
        "both signs",
        draw.real(2, 3),
        draw.positive(2, 3),
        draw.real(2, 3),
        checks=("forward", "vjp", "jvp", "dual", "second", "vmap"),
    )
