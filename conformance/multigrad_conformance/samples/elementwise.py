"""Samples of the elementwise functions: domains of random arguments, and kinks with numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..sample import Draw, Kink, Sample

INF, NAN = np.inf, np.nan

# How to draw real arguments. The ranges avoid kinks and singular points.
UNARY: dict[str, Any] = {
    "abs": "nonzero",
    "acos": (-0.9, 0.9),
    "acosh": (1.2, 3.0),
    "asin": (-0.9, 0.9),
    "asinh": "real",
    "atan": "real",
    "atanh": (-0.9, 0.9),
    "ceil": "fractions",
    "conj": "real",
    "cos": "real",
    "cosh": "real",
    "exp": "real",
    "expm1": "real",
    "floor": "fractions",
    "isfinite": "real",
    "isinf": "real",
    "isnan": "real",
    "log": "positive",
    "log10": "positive",
    "log1p": (-0.7, 2.0),
    "log2": "positive",
    "negative": "real",
    "positive": "real",
    "real": "real",
    "reciprocal": "nonzero",
    "round": "fractions",
    "sign": "nonzero",
    "signbit": "nonzero",
    "sin": "real",
    "sinh": "real",
    "sqrt": "positive",
    "square": "real",
    "tan": (-1.2, 1.2),
    "tanh": "real",
    "trunc": "fractions",
    "cbrt": "nonzero",
    "deg2rad": "real",
    "exp2": "real",
    "rad2deg": "real",
    "sinc": (-0.8, 0.8),
}
COMPLEX_UNARY = (
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "negative",
    "positive",
    "real",
    "reciprocal",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
)
BINARY: dict[str, tuple[Any, Any]] = {
    "add": ("real", "real"),
    "subtract": ("real", "real"),
    "multiply": ("real", "real"),
    "divide": ("real", "nonzero"),
    "pow": ("positive", "real"),
    "remainder": ((2.1, 2.8), (0.95, 1.0)),
    "atan2": ("nonzero", "nonzero"),
    "hypot": ("nonzero", "nonzero"),
    "copysign": ("nonzero", "nonzero"),
    "logaddexp": ("real", "real"),
    "floor_divide": ("real", "nonzero"),
    "nextafter": ("real", "real"),
    "equal": ("real", "real"),
    "not_equal": ("real", "real"),
    "less": ("real", "real"),
    "less_equal": ("real", "real"),
    "greater": ("real", "real"),
    "greater_equal": ("real", "real"),
    "maximum": ("apart", "apart"),
    "minimum": ("apart", "apart"),
    "fmax": ("apart", "apart"),
    "fmin": ("apart", "apart"),
    "fmod": ((2.1, 2.8), (0.95, 1.0)),
    "heaviside": ("nonzero", "real"),
    "logaddexp2": ("real", "real"),
}
COMPLEX_BINARY = ("add", "subtract", "multiply", "divide", "pow", "equal", "not_equal")
INTEGER_BINARY = (
    "add",
    "subtract",
    "multiply",
    "remainder",
    "floor_divide",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "maximum",
    "minimum",
)
INTEGER_UNARY = (
    "abs",
    "negative",
    "positive",
    "square",
    "sign",
    "ceil",
    "floor",
    "round",
    "trunc",
    "isfinite",
    "isinf",
    "isnan",
)
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
LOGICAL = ("logical_and", "logical_or", "logical_xor")


def drawn(draw: Draw, how: Any, *shape: int) -> Any:
    if how == "fractions":  # never near an integer, nor near a half
        return draw.integers(*shape) + np.where(draw.booleans(*shape), 0.25, 0.7)
    return (
        draw.real(*shape, low=how[0], high=how[1])
        if isinstance(how, tuple)
        else getattr(draw, how)(*shape)
    )


def unary(name: str, draw: Draw) -> Iterator[Sample]:
    if name in UNARY and name != "imag":
        yield Sample("real", drawn(draw, UNARY[name], 2, 3))
    if name in COMPLEX_UNARY:
        yield Sample("complex", draw.complex(2, 3))
    if name in INTEGER_UNARY:
        yield Sample("integers", draw.integers(2, 3))
    if name in UNARY:
        yield Sample("vector", drawn(draw, UNARY[name], 5))
    if name == "sinc":  # no shapes are derived for composites
        yield Sample("0-d", np.asarray(0.3))
        yield Sample("empty", np.zeros((2, 0)))


def binary(name: str, draw: Draw) -> Iterator[Sample]:
    first, second = BINARY[name]
    if first == "apart":  # drawn together, so that no pair is near a tie
        both = draw.apart(2, 2, 3)
        yield Sample("real", both[0], both[1])
    else:
        yield Sample("real", drawn(draw, first, 2, 3), drawn(draw, second, 2, 3))
    if name in COMPLEX_BINARY:
        yield Sample("complex", draw.complex(2, 3), draw.complex(2, 3))
        yield Sample("complex,real", draw.complex(2, 3), drawn(draw, second, 2, 3))
        yield Sample("real,complex", drawn(draw, first, 2, 3), draw.complex(2, 3))
    if name in INTEGER_BINARY:
        yield Sample("integers", draw.integers(2, 3), draw.integers(2, 3, low=1))
    if name in ("equal", "not_equal", "less_equal", "greater_equal"):
        same = draw.real(2, 3)
        yield Sample("equal", same, same.copy())
    if name == "pow":
        yield Sample(
            "integer exponents",
            draw.nonzero(2, 3),
            draw.integers(2, 3, low=-2, high=4).astype(np.float64),
            differentiable=("x1",),
        )
        yield Sample("integer scalar", draw.nonzero(2, 3), 3, differentiable=("x1",))


def clip(draw: Draw) -> Iterator[Sample]:
    x = draw.apart(2, 3)
    low, high = np.full((2, 3), -0.2), np.full((2, 3), 0.4)
    yield Sample("both bounds", x, low, high)
    yield Sample("lower bound", x, low)
    yield Sample("upper bound", x, None, high)
    yield Sample("numbers", x, -0.2, 0.4)
    yield Sample("integers", draw.integers(2, 3), -2, 2)


def bitwise(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("integers", draw.integers(2, 3), draw.integers(2, 3))
    yield Sample("booleans", draw.booleans(2, 3), draw.booleans(2, 3))


def logical(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample("booleans", draw.booleans(2, 3), draw.booleans(2, 3))


def shift(name: str, draw: Draw) -> Iterator[Sample]:
    yield Sample(
        "integers", draw.integers(2, 3, low=0, high=50), draw.integers(2, 3, low=0, high=4)
    )


def inverse(name: str, draw: Draw) -> Iterator[Sample]:
    if name == "bitwise_invert":
        yield Sample("integers", draw.integers(2, 3))
    yield Sample("booleans", draw.booleans(2, 3))


def special(name: str, draw: Draw) -> Iterator[Sample]:
    """Yield samples with infinities and nans, for functions that test for them."""
    yield Sample("special values", np.asarray([0.0, -0.0, 1.5, INF, -INF, NAN]))


# ----- kinks and singular points: the numbers of PyTorch 2.13, with reasons for deviations -----

KINKS: dict[str, list[Kink]] = {
    "abs": [
        Kink("at 0 and nan", [0.0, -0.0, NAN, -2.0], gradients={"x": [0, 0, 0, -1]}),
        Kink("complex at 0", [0j, 3 + 4j], gradients={"x": [0, 0.6 + 0.8j]}),
    ],
    "sign": [
        Kink("everywhere", [-2.0, 0.0, 3.0], gradients={"x": [0, 0, 0]}),
        Kink("complex at 0", [0j], gradients={"x": [0]}),
    ],
    "floor": [Kink("at integers", [-1.0, 0.0, 0.5], gradients={"x": [0, 0, 0]})],
    "ceil": [Kink("at integers", [-1.0, 0.0, 0.5], gradients={"x": [0, 0, 0]})],
    "trunc": [Kink("at integers", [-1.0, 0.0, 0.5], gradients={"x": [0, 0, 0]})],
    "round": [Kink("at halves", [-1.0, 0.5, 2.5], gradients={"x": [0, 0, 0]})],
    "maximum": [
        Kink(
            "ties and nan",
            [1.0, NAN, 2.0, 0.0],
            [1.0, 0.0, NAN, 3.0],
            gradients={"x1": [0.5, 1, 1, 0], "x2": [0.5, 1, 1, 1]},
        )
    ],
    "minimum": [
        Kink(
            "ties and nan",
            [1.0, NAN, 2.0, 0.0],
            [1.0, 0.0, NAN, 3.0],
            gradients={"x1": [0.5, 1, 1, 1], "x2": [0.5, 1, 1, 0]},
        )
    ],
    "clip": [
        Kink(
            "at and outside the bounds",
            [-2.0, -1.0, 0.0, 1.0, 2.0],
            np.full(5, -1.0),
            np.full(5, 1.0),
            gradients={"x": [0, 1, 1, 1, 0], "min": [1, 0, 0, 0, 0], "max": [0, 0, 0, 0, 1]},
        ),
        Kink(
            "at the lower bound",
            [-2.0, -1.0, 0.0],
            np.full(3, -1.0),
            gradients={"x": [0, 1, 1], "min": [1, 0, 0]},
        ),
        Kink(
            "at the upper bound",
            [0.0, 1.0, 2.0],
            None,
            np.full(3, 1.0),
            gradients={"x": [1, 1, 0], "max": [0, 0, 1]},
        ),
        Kink("nan", [NAN], -1.0, 1.0, gradients={"x": [0]}),
        Kink(
            "bounds equal",
            [0.0, 1.0, 2.0],
            np.full(3, 1.0),
            np.full(3, 1.0),
            gradients={"x": [0, 1, 0], "min": [0, 0, 0], "max": [0, 0, 1]},
        ),
        Kink(
            "bounds crossed",
            [0.0, 3.0],
            np.full(2, 1.0),
            np.full(2, -1.0),
            gradients={"x": [0, 0], "min": [0, 0], "max": [1, 1]},
        ),
    ],
    "pow": [
        Kink("exponent 0", [0.0, 2.0, NAN, INF], 0.0, gradients={"x1": [0, 0, 0, 0]}),
        Kink("exponent 1", [0.0], 1.0, gradients={"x1": [1]}),
        Kink("exponent 2", [0.0, 1.5], 2.0, gradients={"x1": [0, 3]}, second={"x1": [2, 2]}),
        Kink("exponent 1.5", [0.0], 1.5, gradients={"x1": [0]}),
        Kink("exponent 0.5", [0.0], 0.5, gradients={"x1": [INF]}),
        Kink("exponent -1", [0.0], -1.0, gradients={"x1": [-INF]}),
        Kink(
            "base 0",
            [0.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 2.0, -1.0],
            gradients={"x1": [0, 1, 0, -INF], "x2": [0, 0, 0, -INF]},
        ),
        Kink("base below 0", [-2.0], [2.0], gradients={"x1": [-4], "x2": [NAN]}),
    ],
    "sqrt": [Kink("at 0", [0.0], gradients={"x": [INF]})],
    "log": [Kink("at 0 and below", [0.0, -1.0], gradients={"x": [INF, -1]})],
    "reciprocal": [Kink("at 0", [0.0], gradients={"x": [-INF]})],
    "asin": [Kink("at 1", [1.0, -1.0], gradients={"x": [INF, INF]})],
    "acos": [Kink("at 1", [1.0], gradients={"x": [-INF]})],
    "acosh": [Kink("at 1", [1.0], gradients={"x": [INF]})],
    "atanh": [Kink("at 1", [1.0], gradients={"x": [INF]})],
    "atan2": [Kink("origin", [0.0], [0.0], gradients={"x1": [0], "x2": [0]})],
    "hypot": [
        Kink("origin", [0.0], [0.0], gradients={"x1": [0], "x2": [0]}, reason="PyTorch gives nan")
    ],
    "asinh": [
        Kink(
            "far",
            [2e10 + 2e10j, -2e10 + 2e10j],
            gradients={"x": [2.5e-11 + 2.5e-11j, 2.5e-11 - 2.5e-11j]},
        )
    ],
    "copysign": [Kink("at 0", [0.0, -2.0], [1.0, 1.0], gradients={"x1": [0, -1], "x2": [0, 0]})],
    "remainder": [Kink("signs", [5.0, -5.0], [2.0, 2.0], gradients={"x1": [1, 1], "x2": [-2, 3]})],
    "logaddexp": [
        Kink(
            "infinite",
            [-INF, INF, 0.0],
            [-INF, 1.0, 0.0],
            gradients={"x1": [0.5, 1, 0.5], "x2": [0.5, 0, 0.5]},
            reason="PyTorch gives nan at (-inf, -inf)",
        )
    ],
    "logaddexp2": [
        Kink(
            "infinite",
            [-INF, INF, INF],
            [-INF, 1.0, INF],
            gradients={"x1": [0.5, 1, 0.5], "x2": [0.5, 0, 0.5]},
        )
    ],
    "divide": [
        Kink("by 0", [1.0, 0.0], [0.0, 0.0], gradients={"x1": [INF, INF], "x2": [-INF, NAN]})
    ],
    "square": [Kink("at 0", [0.0], gradients={"x": [0]}, second={"x": [2]})],
    "cbrt": [Kink("at 0", [0.0, -8.0], gradients={"x": [INF, 1 / 12]})],
    "fmax": [
        Kink(
            "ties and nan",
            [1.0, NAN, 2.0, 0.0],
            [1.0, 0.0, NAN, 3.0],
            gradients={"x1": [0.5, 0, 1, 0], "x2": [0.5, 1, 0, 1]},
        )
    ],
    "fmin": [
        Kink(
            "ties and nan",
            [1.0, NAN, 2.0, 0.0],
            [1.0, 0.0, NAN, 3.0],
            gradients={"x1": [0.5, 0, 1, 1], "x2": [0.5, 1, 0, 0]},
        )
    ],
    "fmod": [Kink("signs", [5.0, -5.0], [2.0, 2.0], gradients={"x1": [1, 1], "x2": [-2, 2]})],
    "heaviside": [
        Kink(
            "at 0", [-1.0, 0.0, 2.0], [0.5, 0.5, 0.5], gradients={"x1": [0, 0, 0], "x2": [0, 1, 0]}
        )
    ],
    "sinc": [Kink("at 0", [0.0], gradients={"x": [0]}, second={"x": [-(np.pi**2) / 3]})],
}


def samples() -> dict[str, Any]:
    """Return the generators of this chapter, by operation."""
    makers: dict[str, list[Any]] = {}
    for names, maker in (
        ({*UNARY, *COMPLEX_UNARY}, unary),
        (BINARY, binary),
        (BITWISE, bitwise),
        (LOGICAL, logical),
        (("bitwise_left_shift", "bitwise_right_shift"), shift),
        (("bitwise_invert", "logical_not"), inverse),
        (("isfinite", "isinf", "isnan", "signbit"), special),
    ):
        for name in names:
            makers.setdefault(name, []).append(maker)
    table = {name: _generator(name, group) for name, group in makers.items()}
    table["clip"] = lambda draw: [*clip(draw), *KINKS["clip"]]
    return table


def _generator(name: str, makers: list[Any]) -> Any:
    return lambda draw: [*(s for make in makers for s in make(name, draw)), *KINKS.get(name, ())]
