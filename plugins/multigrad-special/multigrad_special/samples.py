"""What the conformance suite tries these operations on: a generator of samples for each.

Real arrays away from the poles. The suite does the rest: from each it makes arrays of float32, without elements, without
axes and not contiguous, and compares values, gradients and second derivatives with NumPy and with finite differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from multigrad_conformance import Draw, Kink, Sample

SLOPE = 2 / math.sqrt(math.pi)
NAN, INF = math.nan, math.inf

# ----- the error function and the normal distribution -----


def erf(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=2.0, high=5.0))
    yield Kink("flat at infinity", [0.0, INF, -INF], gradients={"x": [SLOPE, 0.0, 0.0]})


def erfc(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=2.0, high=5.0))
    yield Kink("flat at infinity", [0.0, INF, -INF], gradients={"x": [-SLOPE, 0.0, 0.0]})


def erfcx(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=3.0, high=40.0))


def erfinv(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", draw.real(2, 3, low=-0.9, high=0.9))
    yield Sample("near one", draw.real(6, low=0.8, high=0.9))
    yield Kink("steep at the ends", [0.0, 1.0, -1.0], gradients={"x": [1 / SLOPE, INF, INF]}, short=False)


def ndtr(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far below", draw.real(6, low=-6.0, high=-3.0))


def log_ndtr(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far below", draw.real(6, low=-40.0, high=-10.0))


def ndtri(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", draw.real(2, 3, low=0.05, high=0.95))
    yield Kink("steep at the ends", [0.5, 0.0, 1.0], gradients={"x": [math.sqrt(2 * math.pi), INF, INF]}, short=False)


# ----- gamma and beta -----


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


# ----- the logistic function, x log y and entropies -----


def expit(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Sample("far", draw.real(6, low=-6.0, high=6.0))
    yield Kink("flat at infinity", [0.0, INF, -INF], gradients={"x": [0.25, 0.0, 0.0]})


def log_expit(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3))
    yield Kink("at infinity", [0.0, INF, -INF], gradients={"x": [0.5, 0.0, 1.0]}, short=False)


def logit(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", draw.real(2, 3, low=0.1, high=0.9))
    yield Kink("ends and outside", [0.5, 0.0, 1.0, 2.0], gradients={"x": [4.0, INF, INF, NAN]}, short=False)


def xlogy(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))
    yield Kink("nothing", [0.0, 0.0, 0.0], [0.0, 1.0, -1.0], gradients={"x": [0.0, 0.0, 0.0], "y": [0.0, 0.0, 0.0]},
               reason="PyTorch gives nan for y at (0, 0)")


def xlog1py(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))
    yield Kink("nothing", [0.0, 0.0, 0.0], [-1.0, 0.0, -2.0], gradients={"x": [0.0, 0.0, 0.0], "y": [0.0, 0.0, 0.0]},
               reason="PyTorch gives nan for y at (0, -1)")


def entr(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3))
    yield Kink("steep at nothing", [0.0, 1.0], gradients={"x": [INF, -1.0]}, short=False)


def rel_entr(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))
    yield Kink("equal, and nothing", [1.0, 0.0], [1.0, 2.0], gradients={"x": [1.0, -INF], "y": [-1.0, 0.0]})


def kl_div(draw: Draw) -> Iterator[Sample]:
    yield Sample("positive", draw.positive(2, 3), draw.positive(2, 3))
    yield Kink("equal, and nothing", [1.0, 0.0], [1.0, 2.0], gradients={"x": [0.0, -INF], "y": [0.0, 1.0]})


# ----- distributions -----


def gammainc(draw: Draw) -> Iterator[Sample]:
    yield Sample("about the mean", draw.positive(2, 3), draw.positive(2, 3), differentiable=("x",))
    yield Sample("large", draw.real(6, low=20.0, high=30.0), draw.real(6, low=20.0, high=30.0), differentiable=("x",))
    yield Kink("at nothing", [0.5, 1.0, 2.0], [0.0, 0.0, 0.0], gradients={"x": [INF, 1.0, 0.0]}, short=False)


def gammaincc(draw: Draw) -> Iterator[Sample]:
    yield Sample("about the mean", draw.positive(2, 3), draw.positive(2, 3), differentiable=("x",))
    yield Sample("large", draw.real(6, low=20.0, high=30.0), draw.real(6, low=20.0, high=30.0), differentiable=("x",))


def betainc(draw: Draw) -> Iterator[Sample]:
    yield Sample("inside", draw.positive(2, 3), draw.positive(2, 3), draw.real(2, 3, low=0.1, high=0.9), differentiable=("x",))


def stdtr(draw: Draw) -> Iterator[Sample]:
    yield Sample("both signs", draw.real(2, 3, low=2.0, high=9.0), draw.nonzero(2, 3), differentiable=("x",))
    yield Kink("at the median", [4.0], [0.0], gradients={"x": [0.375]}, short=False)


# ----- modified Bessel functions -----


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
    for v in (0, 2, 3):
        yield Sample(f"order {v}", v, draw.nonzero(2, 3), short=v == 2)


def ive(draw: Draw) -> Iterator[Sample]:
    yield from iv(draw)
    yield Sample("far", 2, np.concatenate([draw.real(3, low=10.0, high=60.0), draw.real(3, low=-60.0, high=-10.0)]))
