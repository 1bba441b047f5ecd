"""Samples of the gamma and beta functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from multigrad_conformance import Draw, Kink, Sample


def gamma(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3))
    yield Sample("between poles", draw.real(6, low=-2.7, high=-2.3))


def gammaln(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3))
    yield Sample("large", draw.real(6, low=3.0, high=40.0))
    yield Sample("between poles", draw.real(6, low=-2.7, high=-2.3))


def digamma(draw: Draw) -> Iterator[Sample]:
    yield from gammaln(draw)


def psi(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3))


def polygamma(draw: Draw) -> Iterator[Sample]:
    for n in range(4):
        yield Sample(f"order {n}", n, draw.positive(2, 3), short=n in (0, 2))
    yield Sample("large", 1, draw.real(6, low=3.0, high=40.0))
    yield Sample("between poles", 2, draw.real(6, low=-2.7, high=-2.3), short=True)
    yield Sample(
        "orders",
        np.asarray([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]]),
        draw.positive(2, 3),
        differentiable=("x",),
        short=False,
    )
    yield Sample(
        "orders between poles",
        np.asarray([1.0, 2.0, 3.0]),
        draw.real(2, 3, low=-2.7, high=-2.3),
        differentiable=("x",),
        short=False,
    )


def beta(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))


def betaln(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))
    yield Sample("large", draw.positive(6), draw.real(6, low=10.0, high=40.0))


def loggamma(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3))
    yield Sample("complex", draw.real(2, 3) + 1j * draw.positive(2, 3), short=False)


def rgamma(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3))
    yield Sample("between poles", draw.real(6, low=-2.7, high=-2.3))
    yield Kink(
        "poles of gamma",
        [0.0, -1.0, -2.0, -3.0],
        gradients={"x": [1.0, -1.0, 2.0, -6.0]},
        short=False,
    )


def gammasgn(draw: Draw) -> Iterator[Sample]:
    yield Sample("between poles", draw.real(6, low=-2.7, high=-2.3))


def multigammaln(draw: Draw) -> Iterator[Sample]:
    yield Sample("of dimension 1", draw.positive(2, 3), 1)
    yield Sample("of dimension 3", draw.real(2, 3, low=2.0, high=5.0), 3)


def poch(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 2), draw.positive(2, 2))
    yield Sample(
        "down", draw.real(2, low=3.0, high=4.0), draw.real(2, low=-2.0, high=-1.0), short=False
    )
    yield Sample(
        "between poles",
        draw.real(2, low=-2.7, high=-2.6),
        draw.real(2, low=0.2, high=0.4),
        short=False,
    )
    yield Sample(
        "across 0", draw.real(2, low=-2.7, high=-2.3), draw.real(2, low=4.0, high=5.0), short=False
    )


def binom(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", draw.real(2, 2, low=3.0, high=6.0), draw.real(2, 2, low=0.5, high=2.5))
    yield Sample(
        "outside", draw.real(2, low=1.0, high=1.4), draw.real(2, low=3.7, high=3.9), short=False
    )
    yield Sample(
        "of negative numbers",
        draw.real(2, low=-2.7, high=-2.6),
        draw.real(2, low=0.5, high=0.7),
        short=False,
    )
