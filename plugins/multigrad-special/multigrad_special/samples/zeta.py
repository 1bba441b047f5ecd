"""Samples of the zeta functions."""

from __future__ import annotations

from collections.abc import Iterator

from multigrad_conformance import Draw, Sample


def zeta(draw: Draw) -> Iterator[Sample]:
    yield Sample("of Riemann", draw.real(2, low=1.5, high=4.0))
    yield Sample("of Hurwitz", draw.real(2, low=1.5, high=4.0), draw.positive(2))


def hurwitz_zeta(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.real(2, low=1.5, high=4.0), draw.positive(2))


def zeta_derivative(draw: Draw) -> Iterator[Sample]:
    yield Sample("first", 1, draw.real(2, low=1.5, high=4.0), draw.positive(2))
    yield Sample("second", 2, draw.real(2, low=1.5, high=4.0), draw.positive(2), short=False)


def riemann_zeta(draw: Draw) -> Iterator[Sample]:
    yield Sample("right of the pole", draw.real(2, low=1.5, high=4.0))
    yield Sample("left of it", draw.real(2, low=0.1, high=0.7))
    yield Sample("negative", draw.real(2, low=-6.0, high=-1.0))


def zetac(draw: Draw) -> Iterator[Sample]:
    yield from riemann_zeta(draw)
