"""Samples of the gamma and beta functions."""

from __future__ import annotations

from collections.abc import Iterator

from multigrad_conformance import Draw, Sample


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


def beta(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))


def betaln(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))
    yield Sample("large", draw.positive(6), draw.real(6, low=10.0, high=40.0))
