"""Samples of functions composed of elementary functions."""

from __future__ import annotations

import math
from collections.abc import Iterator

from multigrad_conformance import Draw, Kink, Sample

INF, NAN = math.inf, math.nan
DEGREE = math.pi / 180


def cbrt(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.nonzero(2, 3))


def exp2(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))


def exp10(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))


def sinc(draw: Draw) -> Iterator[Sample]:
    yield Sample("near 0", draw.real(2, 3, low=-0.8, high=0.8))


def cosm1(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))


def exprel(draw: Draw) -> Iterator[Sample]:
    yield Sample("near 0", draw.real(2, 3))
    yield Sample("far", draw.nonzero(6) * 3, short=False)
    yield Kink(
        "at 0 and far below", [0.0, -INF], gradients={"x": [0.5, 0.0]}, second={"x": [1 / 3, 0.0]}
    )


def sindg(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3, low=-200.0, high=200.0))
    yield Kink(
        "right angles", [0.0, 90.0, -180.0], gradients={"x": [DEGREE, 0.0, -DEGREE]}, short=False
    )


def cosdg(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3, low=-200.0, high=200.0))


def tandg(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3, low=-60.0, high=60.0))
    yield Kink("poles", [0.0, 90.0], gradients={"x": [DEGREE, INF]}, short=False)


def cotdg(draw: Draw) -> Iterator[Sample]:
    yield Sample("between poles", draw.real(2, 3, low=-130.0, high=-50.0))
    yield Kink("poles", [90.0, 0.0], gradients={"x": [-DEGREE, -INF]}, short=False)


def radian(draw: Draw) -> Iterator[Sample]:
    yield Sample("angles", draw.real(2, 3), draw.real(2, 3), draw.real(2, 3))


def boxcox(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.real(2, 3))
    yield Kink(
        "logarithm, ends",
        [2.0, 0.0, -1.0],
        [0.0, 2.0, 2.0],
        gradients={"x": [0.5, 0.0, NAN], "lmbda": [math.log(2) ** 2 / 2, 0.25, NAN]},
        short=False,
    )


def boxcox1p(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3, low=-0.6, high=2.0), draw.real(2, 3))
    yield Kink(
        "logarithm, ends",
        [1.0, -1.0, -2.0],
        [0.0, 2.0, 2.0],
        gradients={"x": [0.5, 0.0, NAN], "lmbda": [math.log(2) ** 2 / 2, 0.25, NAN]},
        short=False,
    )


def inv_boxcox(draw: Draw) -> Iterator[Sample]:
    yield Sample(
        "both signs", draw.real(2, 3, low=-0.5, high=0.8), draw.real(2, 3, low=-1.0, high=1.0)
    )
    yield Kink(
        "exponential, ends",
        [1.0, -2.0, -3.0],
        [0.0, 0.5, 0.5],
        gradients={"y": [math.e, 0.0, NAN], "lmbda": [-math.e / 2, 0.0, NAN]},
        short=False,
    )


def inv_boxcox1p(draw: Draw) -> Iterator[Sample]:
    yield from inv_boxcox(draw)


def huber(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside and outside", draw.positive(2, 3), draw.apart(2, 3) * 3)
    yield Kink(
        "where both meet, and no loss",
        [1.0, 1.0, -1.0],
        [1.0, -1.0, 1.0],
        gradients={"delta": [0.0, 0.0, NAN], "r": [1.0, -1.0, NAN]},
        short=False,
    )


def pseudo_huber(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside and outside", draw.positive(2, 3), draw.real(2, 3) * 3)
    yield Kink(
        "at 0, and no loss",
        [1.0, 0.0, -1.0],
        [0.0, 2.0, 1.0],
        gradients={"delta": [0.0, 2.0, NAN], "r": [0.0, 0.0, NAN]},
        short=False,
    )
