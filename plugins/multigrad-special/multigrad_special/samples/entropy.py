"""Samples of the logistic function, x log(y) and entropies."""

from __future__ import annotations

import math
from collections.abc import Iterator

from multigrad_conformance import Draw, Kink, Sample

NAN, INF = math.nan, math.inf


def expit(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=-6.0, high=6.0))
    yield Kink("flat at infinity", [0.0, INF, -INF], gradients={"x": [0.25, 0.0, 0.0]})


def log_expit(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Kink("at infinity", [0.0, INF, -INF], gradients={"x": [0.5, 0.0, 1.0]}, short=False)


def logit(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", draw.real(2, 3, low=0.1, high=0.9))
    yield Kink(
        "ends and outside", [0.5, 0.0, 1.0, 2.0], gradients={"x": [4.0, INF, INF, NAN]}, short=False
    )


def xlogy(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))
    yield Kink(
        "nothing",
        [0.0, 0.0, 0.0],
        [0.0, 1.0, -1.0],
        gradients={"x": [0.0, 0.0, 0.0], "y": [0.0, 0.0, 0.0]},
        reason="PyTorch gives nan for y at (0, 0)",
    )


def xlog1py(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))
    yield Kink(
        "nothing",
        [0.0, 0.0, 0.0],
        [-1.0, 0.0, -2.0],
        gradients={"x": [0.0, 0.0, 0.0], "y": [0.0, 0.0, 0.0]},
        reason="PyTorch gives nan for y at (0, -1)",
    )


def entr(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3))
    yield Kink("steep at nothing", [0.0, 1.0], gradients={"x": [INF, -1.0]}, short=False)


def rel_entr(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))
    yield Kink(
        "equal, and nothing", [1.0, 0.0], [1.0, 2.0], gradients={"x": [1.0, -INF], "y": [-1.0, 0.0]}
    )


def kl_div(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))
    yield Kink(
        "equal, and nothing", [1.0, 0.0], [1.0, 2.0], gradients={"x": [0.0, -INF], "y": [0.0, 1.0]}
    )
