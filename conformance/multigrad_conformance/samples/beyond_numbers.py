"""Samples beyond the standard: statistics, nan functions, quantiles, softmax and activations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..elementwise import kinks
from ..sample import Draw, DType, Kink, Sample

INF, NAN = np.inf, np.nan

# ----- activations -----


def activation(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("real", draw.nonzero(2, 3))
    if name in ("logistic", "sigmoid", "silu", "silu_slope"):
        yield Sample("complex", draw.complex(2, 3))
    yield Sample("vector", np.asarray([-1.7, -0.6, 0.4, 0.8, 1.9]))
    yield Sample("steep", np.asarray([-40.0, -15.0, 15.0]), short=False)
    if name == "softplus":
        yield Sample("beta", draw.nonzero(2, 3), 2.0)
        yield Sample("threshold", draw.nonzero(5), 1.5, 0.1)


def softmax(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("all", draw.real(2, 3))
    yield Sample("complex", draw.complex(2, 3), 1)
    yield Sample("axis", draw.real(2, 3), 0)
    yield Sample(
        "spread", np.asarray([[-800.0, 0.5, 700.0], [0.0, -INF, 1.0]]), -1, checks=("forward",)
    )
    yield Sample("0-d", draw.real())
    yield Sample("empty", np.zeros((0, 3)), 0)
    yield Sample("no rows", np.zeros((0, 3)), 1)


def log_sum_exp(draw: Draw) -> Iterator[Sample]:
    yield Sample("all", draw.apart(2, 3))
    yield Sample("complex", draw.complex(2, 3), axis=1)
    yield Sample("axis", draw.apart(2, 3), axis=0)
    yield Sample("keepdims", draw.apart(2, 3), axis=-1, keepdims=True)
    yield Sample("near 0", np.asarray([0.0, -40.0, -45.0]))
    yield Sample(
        "large", np.asarray([[800.0, 799.0, 3.0], [0.0, -np.log(2.0), -np.log(2.0)]]), axis=1
    )
    yield Sample("0-d", draw.real())
    yield Sample("no rows", np.zeros((0, 3)), axis=1)


def kernel_of_sums(draw: Draw) -> Iterator[Sample]:
    yield from log_sum_exp(draw)
    yield Sample("ties", np.asarray([[1.0, 1.0, 0.5], [0.0, 2.0, 2.0]]), axis=1)
    yield Sample("of one", np.asarray([[800.0], [1.0]]), axis=1)
    for label, x, shares in (
        ("nothing but -inf", [[-INF, -INF], [0.5, -INF]], [[0.5, 0.5], [1.0, 0.0]]),
        ("infinite", [[INF, 1.0], [INF, INF]], [[1.0, 0.0], [0.5, 0.5]]),
    ):
        yield Sample(
            label,
            np.asarray(x),
            axis=1,
            checks=("forward",),
            short=True,
            reference=lambda x, axis, keepdims, shares=shares: (x[:, 0], np.asarray(shares)),
        )


def logsumexp(draw: Draw) -> Iterator[Sample]:
    yield from log_sum_exp(draw)
    yield Sample("weights", draw.apart(2, 3), 1, draw.positive(2, 3))
    yield Sample("weights in a row", draw.apart(2, 3), 0, draw.positive(3), keepdims=True)
    yield Sample("sign", draw.apart(2, 3), None, np.asarray([-3.0, 0.4, -2.0]), return_sign=True)
    yield Sample("complex sign", draw.complex(2, 3), 1, draw.complex(2, 3), return_sign=True)
    yield Sample(
        "a weight of 0",
        np.asarray([1.0, 700.0, -1.0]),
        b=np.asarray([1.0, 0.0, 2.0]),
        checks=("forward",),
    )


def finite_peak(draw: Draw) -> Iterator[Sample]:
    for label, x, axis in (
        ("all", draw.apart(2, 3), None),
        ("complex", draw.complex(2, 3), 1),
        ("of one", draw.apart(3, 1), 1),
        ("infinite", np.asarray([[1.0, INF], [-INF, -INF], [2.0, -INF]]), 1),
        ("empty", np.zeros((0, 3)), 0),
    ):
        yield Sample(label, x, axis=axis, reference=_peak, short=True)


def _peak(x: Any, axis: Any) -> Any:
    peak = np.max(np.real(x), axis=axis, keepdims=True, initial=-INF)
    return np.where(np.isfinite(peak), peak, np.zeros_like(peak))


# ----- statistics -----


def ptp(draw: Draw) -> Iterator[Sample]:
    yield Sample("all", draw.apart(2, 3))
    yield Sample("axis", draw.apart(2, 3), 0)
    yield Sample("keepdims", draw.apart(2, 3, 2), (0, 2), keepdims=True)
    yield Sample("0-d", draw.real())
    yield Sample("no rows", np.zeros((0, 3)), 1)
    yield Sample("integers", draw.integers(2, 3), 1)


def average(draw: Draw) -> Iterator[Sample]:
    yield Sample("all", draw.real(2, 3))
    yield Sample("complex", draw.complex(2, 3), 1, draw.complex(3) + 3.0)
    yield Sample("weights", draw.real(2, 3), None, draw.positive(2, 3))
    yield Sample("weights of an axis", draw.real(2, 3), 1, draw.positive(3), keepdims=True)
    yield Sample("weights of axes", draw.real(2, 3, 4), (2, 0), draw.positive(4, 2))
    yield Sample("returned", draw.real(2, 3), 0, draw.positive(2, 3), returned=True)
    yield Sample("integers", draw.integers(2, 3), 1, checks=("forward",))
    yield Sample("0-d", draw.real())
    yield Sample("nothing", np.zeros((0, 3)), 0, checks=("forward",))


def cov(draw: Draw) -> Iterator[Sample]:
    yield Sample("rows", draw.real(2, 4))
    yield Sample("complex", draw.complex(2, 4))
    yield Sample("columns", draw.real(4, 2), rowvar=False)
    yield Sample("two", draw.real(2, 4), draw.real(4))
    yield Sample("vector", draw.real(4), bias=True)
    yield Sample("ddof", draw.real(2, 4), ddof=2)
    yield Sample("fweights", draw.real(2, 4), fweights=np.asarray([1, 2, 1, 3]))
    yield Sample("aweights", draw.real(2, 4), aweights=draw.positive(4))
    both = {"fweights": np.asarray([1, 2, 1, 3]), "aweights": draw.positive(4)}
    yield Sample("both weights", draw.real(2, 4), ddof=0, **both)
    yield Sample("dtype", draw.real(2, 4), dtype=DType("float32"), checks=("forward",))
    yield Sample("integers", draw.integers(2, 4), checks=("forward",))
    yield Sample("0-d", draw.real(), ddof=0)
    yield Sample("empty", np.zeros((0, 3)))


def corrcoef(draw: Draw) -> Iterator[Sample]:
    yield Sample("rows", draw.real(3, 5))
    yield Sample("complex", draw.complex(3, 5))
    yield Sample("columns", draw.real(5, 3), rowvar=False)
    yield Sample("two", draw.real(2, 5), draw.real(5))
    yield Sample("dtype", draw.real(2, 5), dtype=DType("float32"), checks=("forward",))
    yield Sample("empty", np.zeros((0, 3)))
    yield Sample("0-d", draw.real(), checks=("forward",))


# ----- nan -----


def holed(x: Any) -> Any:
    """Return `x` with nan at every fourth element."""
    x.reshape(-1)[1::4] = NAN
    return x


def _holed(draw: Draw, how: str, *shape: int) -> Any:
    return holed(getattr(draw, how)(*shape))


def nan_reduction(name: str, draw: Draw) -> Iterator[Sample]:
    make = "apart" if name in ("nanmin", "nanmax", "nanmedian") else "nonzero"
    yield Sample("all", getattr(draw, make)(2, 3))
    if make == "nonzero":
        yield Sample("complex", draw.complex(2, 3), axis=1)
    checks = ("forward", "vmap")
    yield Sample("nan", _holed(draw, make, 3, 5), axis=0, checks=checks)
    yield Sample("nothing but nan", np.asarray([[NAN, NAN], [1.0, NAN]]), axis=1, checks=checks)
    yield Sample("keepdims", getattr(draw, make)(2, 3, 2), axis=(0, -1), keepdims=True)
    yield Sample("axis", getattr(draw, make)(2, 3), axis=0)
    yield Sample("0-d", getattr(draw, make)())
    yield Sample("no rows", np.zeros((0, 3)), axis=1)
    yield Sample("integers", draw.integers(2, 3), axis=1, checks=("forward",))
    if name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd"):
        yield Sample(
            "dtype", draw.nonzero(2, 3), axis=1, dtype=DType("float32"), checks=("forward",)
        )
    if name in ("nanvar", "nanstd"):
        yield Sample("ddof", draw.nonzero(2, 3), axis=1, ddof=1)
        yield Sample("correction", draw.nonzero(2, 3), axis=1, correction=1)


def nan_index(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("all", _holed(draw, "apart", 3, 5))
    yield Sample("axis", _holed(draw, "apart", 3, 5), axis=0)
    yield Sample("keepdims", _holed(draw, "apart", 3, 5), axis=-1, keepdims=True)
    yield Sample("infinite", np.asarray([[NAN, INF, 1.0], [NAN, -INF, 1.0]]), axis=1)
    yield Sample("integers", draw.integers(2, 3), axis=1)


def nan_scan(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("vector", draw.nonzero(4))
    yield Sample("complex", draw.complex(2, 3), axis=1)
    yield Sample("all in a row", draw.nonzero(2, 3))
    yield Sample("nan", _holed(draw, "nonzero", 3, 4), axis=0, checks=("forward", "vmap"))
    yield Sample("dtype", draw.nonzero(4), dtype=DType("float32"), checks=("forward",))
    yield Sample("0-d", draw.nonzero())
    yield Sample("empty", np.zeros((0,)))


def nan_to_num(draw: Draw) -> Iterator[Sample]:
    yield Sample("real", draw.real(2, 3))
    yield Sample("complex", draw.complex(2, 3))
    special = np.asarray([NAN, INF, -INF, 1.5, -0.0])
    yield Sample("special", special, checks=("forward", "vmap"))
    yield Sample("numbers", special, nan=3.0, posinf=7.0, neginf=-7.0, checks=("forward",))
    yield Sample(
        "complex special", np.asarray([complex(NAN, INF), complex(1.0, -INF)]), checks=("forward",)
    )
    yield Sample("0-d", draw.real())
    yield Sample("empty", np.zeros((0, 3)))
    yield Sample("integers", draw.integers(2, 3), checks=("forward",))


def known_index(draw: Draw) -> Iterator[Sample]:
    yield Sample("known", draw.integers(2, 3), np.zeros((2, 3), bool), "never")


# ----- quantiles -----


def median(draw: Draw) -> Iterator[Sample]:
    yield Sample("even", draw.apart(2, 3))
    yield Sample("axis", draw.apart(2, 3), 0)
    yield Sample("keepdims", draw.apart(2, 3, 2), (0, -1), keepdims=True)
    yield Sample(
        "nan", np.asarray([[1.0, NAN, 3.0], [2.0, 0.5, 1.0]]), 1, checks=("forward", "vmap")
    )
    yield Sample("0-d", draw.real())
    yield Sample("no rows", np.zeros((0, 3)), 1)
    yield Sample("integers", draw.integers(2, 3), 1, checks=("forward",))


def order_statistics(draw: Draw) -> Iterator[Sample]:
    yield Sample("vector", draw.apart(5), (1, 3))
    yield Sample("rows", draw.apart(2, 4), (0, 2, 3))
    yield Sample("one", draw.apart(3, 2, 3), (1,))
    yield Sample(
        "ties",
        np.asarray([[1.0, 0.5, 1.0, 0.5], [2.0, 2.0, NAN, 1.0]]),
        (1, 3),
        checks=("forward", "vmap"),
    )
    yield Sample("no rows", np.zeros((0, 3)), (1,))


def places_of(draw: Draw) -> Iterator[Sample]:
    x = draw.apart(3, 5)
    yield Sample("rows", x, np.sort(x)[:, 1:3], (1, 2))
    yield Sample("deep", x[:, None, 2:], np.sort(x[:, None, 2:])[..., 1:], (1, 2))
    ties = np.asarray([[1.0, 0.5, 1.0, 0.5], [2.0, 2.0, NAN, 1.0]])
    yield Sample("ties", ties, np.sort(ties)[:, [1, 3]], (1, 3))


def quantile(name: str, draw: Draw) -> Iterator[Sample]:
    one = 100 if "percentile" in name else 1
    yield Sample("all", draw.apart(2, 3), 0.3 * one)
    yield Sample("axis", draw.apart(3, 2), 0.7 * one, 0)
    yield Sample("keepdims", draw.apart(2, 3, 2), 0.4 * one, (0, 2), keepdims=True)
    yield Sample(
        "several", draw.apart(2, 4), [0.1 * one, 0.75 * one, one], 1, differentiable=("a",)
    )
    yield Sample("an array", draw.apart(2, 4), np.asarray([[0.15, 0.45], [0.5, 0.9]]) * one, 1)
    yield Sample("a 0-d array", draw.apart(5), np.asarray(0.35) * one)
    for method in (
        *("lower", "higher", "midpoint", "nearest", "hazen", "weibull"),
        *("inverted_cdf", "averaged_inverted_cdf", "interpolated_inverted_cdf"),
        *("closest_observation", "median_unbiased", "normal_unbiased"),
    ):
        yield Sample(
            method,
            draw.apart(2, 5),
            [0.15 * one, 0.6 * one],
            1,
            method=method,
            differentiable=("a",),
            short=False,
        )
    weighted: dict[str, Any] = {"method": "inverted_cdf", "differentiable": ("a",)}
    x = draw.apart(2, 5)
    heavy = draw.real(2, 5, low=0.5, high=1.5) + 3.0 * (x > np.median(x))
    yield Sample("weights", x, 0.4 * one, weights=heavy, **weighted)
    if not name.startswith("nan"):  # where NumPy, the reference, raises IndexError
        yield Sample(
            "weights of an axis",
            draw.apart(3, 4),
            [0.0, 0.3 * one, one],
            0,
            weights=np.asarray([0.0, 2.0, 1.5]),
            **weighted,
        )
    yield Sample("nan", _holed(draw, "apart", 3, 5), 0.3 * one, 0, checks=("forward", "vmap"))
    yield Sample(
        "nothing but nan", np.asarray([[NAN, NAN], [1.0, NAN]]), 0.3 * one, 1, checks=("forward",)
    )
    yield Sample("0-d", draw.real(), 0.3 * one)
    yield Sample("no rows", np.zeros((0, 3)), 0.3 * one, 1)
    yield Sample("integers", draw.integers(2, 3), 0.3 * one, 1, checks=("forward",))


KINKS: dict[str, list[Kink]] = {
    "softmax": [Kink("one -inf", [0.0, 0.0, -INF], gradients={"x": [0, 0, 0]})],
    "log_softmax": [Kink("one -inf", [0.0, 0.0], gradients={"x": [0, 0]})],
    "logsumexp": [
        Kink("far kink", [1000.0, 1000.0, -1000.0], gradients={"a": [0.5, 0.5, 0]}),
        Kink("all -inf", [-INF, -INF], gradients={"a": [0.5, 0.5]}, reason="PyTorch gives nan"),
        Kink("inf", [INF, INF, 1.0], gradients={"a": [0.5, 0.5, 0]}, reason="PyTorch gives nan"),
    ],
    "median": [
        Kink("ties", [1.0, 1.0, 1.0], gradients={"a": [0, 1, 0]}),
        Kink("a nan", [1.0, NAN, 3.0], gradients={"a": [0, 1, 0]}),
    ],
    "order_statistics": [
        Kink("equal", [1.0, 0.5, 1.0, 0.5, 1.0], (1, 2), gradients={"x": [1, 0, 0, 1, 0]})
    ],
    "quantile": [Kink("ties", [1.0, 1.0, 1.0], 0.5, gradients={"a": [0, 1, 0]})],
    "nanmedian": [
        Kink("a nan", [1.0, NAN, 3.0], gradients={"a": [0.5, 0, 0.5]}),
        Kink("only nan", [NAN, NAN], gradients={"a": [0, 0]}),
    ],
    "nanquantile": [Kink("a nan", [1.0, NAN, 3.0], 0.25, gradients={"a": [0.75, 0, 0.25]})],
    "nansum": [
        Kink("a nan", [1.0, NAN, 3.0], gradients={"a": [1, 0, 1]}),
        Kink("only nan", [NAN, NAN], gradients={"a": [0, 0]}),
    ],
    "nanprod": [Kink("a nan", [2.0, NAN, 3.0], gradients={"a": [3, 0, 2]})],
    "nanmean": [
        Kink("a nan", [1.0, NAN, 3.0], gradients={"a": [0.5, 0, 0.5]}),
        Kink("only nan", [NAN, NAN], gradients={"a": [0, 0]}),
    ],
    "nanvar": [
        Kink("a nan", [1.0, NAN, 3.0], gradients={"a": [-1, 0, 1]}),
        Kink("only nan", [NAN, NAN], gradients={"a": [0, 0]}),
    ],
    "nanstd": [
        Kink("a nan", [1.0, NAN, 3.0], gradients={"a": [-0.5, 0, 0.5]}),
        Kink("constants", [3.0, NAN, 3.0], gradients={"a": [0, 0, 0]}),
    ],
    "nanmin": [
        Kink("ties and nan", [1.0, NAN, 1.0, 3.0], gradients={"a": [0.5, 0, 0.5, 0]}),
        Kink("inf and nan", [NAN, INF], gradients={"a": [0, 1]}),
        Kink("only nan", [NAN, NAN], gradients={"a": [0, 0]}),
    ],
    "nanmax": [Kink("ties and nan", [3.0, NAN, 3.0, 1.0], gradients={"a": [0.5, 0, 0.5, 0]})],
    "nancumsum": [Kink("a nan", [1.0, NAN, 3.0], gradients={"a": [3, 0, 1]})],
    "nancumprod": [Kink("a nan", [2.0, NAN, 3.0], gradients={"a": [5, 0, 2]})],
}

MAKERS: dict[str, Any] = {
    **dict.fromkeys(("logistic", "sigmoid", "relu", "silu", "silu_slope", "softplus"), activation),
    **dict.fromkeys(("softmax", "log_softmax"), softmax),
    "log_sum_exp": lambda name, draw: kernel_of_sums(draw),
    **dict.fromkeys(
        ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax", "nanmedian"),
        nan_reduction,
    ),
    **dict.fromkeys(("nanargmin", "nanargmax"), nan_index),
    **dict.fromkeys(("nancumsum", "nancumprod"), nan_scan),
    **dict.fromkeys(("quantile", "percentile", "nanquantile", "nanpercentile"), quantile),
}


def samples() -> dict[str, Any]:
    """Return the generators of these names, by operation."""
    plain = (
        logsumexp,
        finite_peak,
        ptp,
        average,
        cov,
        corrcoef,
        nan_to_num,
        known_index,
        median,
        order_statistics,
        places_of,
    )
    makers = {f.__name__: (lambda name, draw, f=f: f(draw)) for f in plain} | MAKERS
    return {
        name: lambda draw, name=name, make=make: [
            *make(name, draw),
            *kinks(name),
            *KINKS.get(name, ()),
        ]
        for name, make in makers.items()
    }
