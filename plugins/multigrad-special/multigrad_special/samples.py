"""What the conformance suite tries these operations on: a generator of samples for each.

Real arrays away from the poles. The suite does the rest: from each it makes arrays of float32, without elements, without
axes and not contiguous, and compares values, gradients and second derivatives with NumPy and with finite differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from multigrad_conformance import Draw, Kink, Sample

SLOPE = 2 / math.sqrt(math.pi)


def erf(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=2.0, high=5.0))
    yield Kink("flat at infinity", [0.0, math.inf, -math.inf], gradients={"x": [SLOPE, 0.0, 0.0]})


def erfc(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=2.0, high=5.0))
    yield Kink("flat at infinity", [0.0, math.inf, -math.inf], gradients={"x": [-SLOPE, 0.0, 0.0]})


def gammaln(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3))
    yield Sample("large", draw.real(6, low=3.0, high=40.0))
    yield Sample("between poles", draw.real(6, low=-2.7, high=-2.3))


def digamma(draw: Draw) -> Iterator[Sample]:
    yield from gammaln(draw)


def polygamma(draw: Draw) -> Iterator[Sample]:
    for n in range(4):
        yield Sample(f"order {n}", n, draw.positive(2, 3), short=n in (0, 2))
    yield Sample("large", 1, draw.real(6, low=3.0, high=40.0))
    yield Sample("between poles", 2, draw.real(6, low=-2.7, high=-2.3), short=True)


def expit(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=-6.0, high=6.0))
    yield Kink("flat at infinity", [0.0, math.inf, -math.inf], gradients={"x": [0.25, 0.0, 0.0]})
