"""Samples of the incomplete beta functions and their distributions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from multigrad_conformance import Draw, Kink, Sample


def _shares(draw: Draw) -> tuple[Any, Any, Any]:
    return (
        draw.real(3, low=0.5, high=4.0),
        draw.real(3, low=0.5, high=4.0),
        draw.real(3, low=0.1, high=0.9),
    )


def betainc(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", *_shares(draw))
    yield Kink(
        "at the ends",
        [2.0, 1.0, 2.0],
        [1.0, 2.0, 2.0],
        [1.0, 0.0, 0.0],
        gradients={"x": [2.0, 2.0, 0.0], "a": [0.0] * 3},
        short=False,
    )


def betaincc(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", *_shares(draw))


def betaincinv(draw: Draw) -> Iterator[Sample]:
    # one number: in the standard alone an inverse takes its time
    yield Sample("inside", *(x[:1] for x in _shares(draw)))


def betainccinv(draw: Draw) -> Iterator[Sample]:
    yield from betaincinv(draw)


def fdtr(draw: Draw) -> Iterator[Sample]:
    yield Sample(
        "about the mean",
        draw.real(3, low=1.0, high=9.0),
        draw.real(3, low=2.0, high=9.0),
        draw.real(3, low=0.3, high=3.0),
    )


def fdtrc(draw: Draw) -> Iterator[Sample]:
    yield from fdtr(draw)


def fdtri(draw: Draw) -> Iterator[Sample]:
    yield Sample(
        "about the mean",
        draw.real(1, low=1.0, high=9.0),
        draw.real(1, low=2.0, high=9.0),
        draw.real(1, low=0.1, high=0.9),
    )


def stdtr(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(3, low=2.0, high=9.0), draw.nonzero(3))
    yield Kink("at the median", [4.0], [0.0], gradients={"x": [0.375], "df": [0.0]}, short=False)


def stdtrit(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, low=2.0, high=9.0), np.asarray([0.1, 0.8]))


def _counts(draw: Draw) -> Iterator[Sample]:
    yield Sample(
        "inside",
        np.asarray([0.0, 1.0, 3.0]),
        np.asarray([3.0, 4.0, 7.0]),
        draw.real(3, low=0.2, high=0.8),
    )


def _counts_of_quantiles(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", np.asarray([2.0]), np.asarray([4.0]), draw.real(1, low=0.2, high=0.8))


bdtr = bdtrc = nbdtr = nbdtrc = _counts
bdtri = nbdtri = _counts_of_quantiles
