"""The elementwise operations, point by point: how their arguments are drawn, where each is defined,
its singular places, and the gradients that are stated at kinks.

This is the only table of them. It is read by the samples of the suite, and by the project's own
tests of rules, of precision, and of the table in docs/subgradients.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .sample import Draw, Kink

INF, NAN = math.inf, math.nan
NOT_FINITE = complex(NAN, NAN)
PI = math.pi

# ----- how arguments are drawn, away from kinks and singular points -----

# For real arguments: the name of a method of `Draw`, or an interval.
# fmt: off
UNARY: dict[str, Any] = {
    **dict.fromkeys((
        "asinh", "atan", "conj", "cos", "cosh", "exp", "expm1", "isfinite", "isinf", "isnan",
        "negative", "positive", "real", "sin", "sinh", "square", "tanh", "deg2rad", "exp2",
        "rad2deg",
    ), "real"),
    **dict.fromkeys(("abs", "reciprocal", "sign", "signbit", "cbrt"), "nonzero"),
    **dict.fromkeys(("log", "log10", "log2", "sqrt"), "positive"),
    **dict.fromkeys(("ceil", "floor", "round", "trunc"), "fractions"),
    **dict.fromkeys(("acos", "asin", "atanh"), (-0.9, 0.9)),
    "acosh": (1.2, 3.0),
    "log1p": (-0.8, 2.0),
    "sinc": (-0.8, 0.8),
    "tan": (-1.2, 1.2),
}
# fmt: on
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
# fmt: off
COMPLEX_UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cos", "cosh", "exp", "expm1",
    "imag", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "negative", "positive",
    "real", "reciprocal", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh",
)
COMPLEX_BINARY = ("add", "subtract", "multiply", "divide", "pow", "equal", "not_equal")
INTEGER_UNARY = (
    "abs", "negative", "positive", "square", "sign", "ceil", "floor", "round", "trunc", "isfinite",
    "isinf", "isnan",
)
INTEGER_BINARY = (
    "add", "subtract", "multiply", "remainder", "floor_divide", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "maximum", "minimum",
)
# fmt: on


def drawn(draw: Draw, how: Any, *shape: int) -> Any:
    """An array as UNARY or BINARY says."""
    if how == "fractions":  # never near an integer, nor near a half
        return draw.integers(*shape) + np.where(draw.booleans(*shape), 0.25, 0.7)
    return (
        draw.real(*shape, low=how[0], high=how[1])
        if isinstance(how, tuple)
        else getattr(draw, how)(*shape)
    )


# ----- domains and singular places -----

# Where a function of a real variable is defined and smooth; others are everywhere.
DOMAIN: dict[str, Callable[[float], bool]] = {
    "acos": lambda x: abs(x) < 1,
    "acosh": lambda x: x > 1,
    "asin": lambda x: abs(x) < 1,
    "atanh": lambda x: abs(x) < 1,
    "log": lambda x: x > 0,
    "log10": lambda x: x > 0,
    "log1p": lambda x: x > -1,
    "log2": lambda x: x > 0,
    "sqrt": lambda x: x > 0,
    "abs": lambda x: x != 0,
    "cbrt": lambda x: x != 0,
    "relu": lambda x: x != 0,
    "sign": lambda x: x != 0,
    **dict.fromkeys(("ceil", "floor", "trunc"), lambda x: 0.01 < abs(x) % 1 < 0.99),
    "round": lambda x: 0.01 < abs(x) % 1 < 0.49 or 0.51 < abs(x) % 1 < 0.99,
}
PAIR_DOMAIN: dict[str, Callable[[float, float], bool]] = {
    "pow": lambda x, y: x > 0,
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), lambda x, y: x != y),
    **dict.fromkeys(
        ("remainder", "fmod"), lambda x, y: abs(x / y) < 1e15 and 1e-6 < (x / y) % 1 < 1 - 1e-6
    ),
}

# Places close to which a formula may lose digits: singular points, zeros and extrema.
PLACES: dict[str, tuple[float, ...]] = {
    "acos": (1, -1),
    "acosh": (1,),
    "asin": (1, -1),
    "atanh": (1, -1),
    "log1p": (-1,),
    "cos": (PI, PI / 2),
    "sin": (PI, PI / 2),
    "tan": (PI / 2, PI, -3 * PI / 2),
    "log": (1,),
    "log2": (1,),
    "log10": (1,),
}
COMPLEX_PLACES: dict[str, tuple[complex, ...]] = {
    **dict.fromkeys(("acos", "asin", "acosh", "atanh"), (1, -1)),
    **dict.fromkeys(("asinh", "atan"), (1j, -1j)),
    **dict.fromkeys(("log", "log2", "log10"), (1, -1)),
    "log1p": (-1,),
    "tan": (PI / 2,),
    "tanh": (1j * PI / 2,),
    "cosh": (1j * PI / 2,),
    "cos": (PI / 2,),
    "sin": (PI,),
    "sinh": (1j * PI,),
    "exp": (1j * PI,),
}


# ----- kinks and singular points -----


@dataclass(frozen=True)
class At:
    """Points at which the gradients of an operation are stated: those of the sum of the result.

    where     names the points, in the ids of tests and in docs/subgradients.md
    args      a list of numbers for an array, a number for a scalar of Python
    gradient  of each array argument
    second    of each array argument, the gradient of the sum of these gradients, where it is stated
    page      whether docs/subgradients.md has a row for it
    suite     whether the conformance suite tries it. It does not where libraries may differ: some
              have no negative zero, or give a complex number that is not finite other parts, and
              narrow dtypes overflow early
    reason    why it deviates from PyTorch, if it does
    label     names the points in the ids of the suite, by which a backend exempts them; where it is
              not given: "at " and the points
    values    whether the suite compares values there: the largest number depends on the dtype
    """

    where: str
    args: tuple[Any, ...]
    gradient: tuple[Any, ...]
    second: tuple[Any, ...] | None = None
    page: bool = True
    suite: bool = True
    reason: str = ""
    label: str = ""
    values: bool = True

    def arrays(self) -> tuple[Any, ...]:
        """The arguments as the operation takes them."""
        return tuple(_array(a) if isinstance(a, list) else a for a in self.args)


def _array(values: list[Any]) -> Any:
    kind = np.complex128 if any(isinstance(v, complex) for v in values) else np.float64
    return np.asarray(values, dtype=kind)


def _one(where: str, x: list[Any], gradient: list[Any], second: Any = None, **more: Any) -> At:
    return At(where, (x,), (gradient,), None if second is None else (second,), **more)


def _two(where: str, x1: Any, x2: Any, g1: Any, g2: Any, **more: Any) -> At:
    return At(where, (x1, x2), (g1, g2), **more)


def _power(
    exponent: float, x: list[Any], gradient: list[Any], second: Any = None, **more: Any
) -> At:
    where = f"exponent {exponent}" + (", complex" if isinstance(x[0], complex) else "")
    twice = None if second is None else (second,)
    return At(where, (x, exponent), (gradient,), twice, label=where, **more)


# The numbers are PyTorch 2.13's where no reason is given. Rows with `page=False` add points to
# those of the rows before them.
# fmt: off
KINKS: dict[str, list[At]] = {
    "abs": [
        _one("0, -0, nan", [0.0, -0.0, NAN], [0, 0, 0], [0, 0, 0], label="at 0 and nan"),
        _one("inf, -inf", [INF, -INF], [1, -1]),
        _one("complex 0", [0j, 3 + 4j], [0j, 0.6 + 0.8j], label="complex at 0"),
        _one("of either sign", [2.0, -2.0], [1, -1], page=False, label="of either sign"),
    ],
    "sign": [
        _one("everywhere", [-2.0, 0.0, 3.0, -3.0], [0, 0, 0, 0], label="everywhere"),
        _one("complex 0", [0j], [0j], [0j], label="complex at 0"),
        _one("3+4i", [3 + 4j], [0.128 - 0.096j]),
    ],
    **{
        name: [_one("integers", [-1.0, 0.0, 0.5, 1.5, 2.0], [0, 0, 0, 0, 0])]
        for name in ("floor", "ceil", "trunc")
    },
    "round": [_one("halves", [-0.5, 0.5, 1.5, 2.5, -1.0, 2.0], [0, 0, 0, 0, 0, 0])],
    "copysign": [
        _two("x1 = 0, -0", [0.0, -0.0], [1.0, 1.0], [0, 0], [0, 0], second=([0, 0], [0, 0]),
             label="at 0"),
        _two("x2 = 0, -0", [2.0, 2.0, -2.0, -2.0], [0.0, -0.0, 0.0, -0.0],
             [1, -1, -1, 1], [0, 0, 0, 0], suite=False),
        _two("x1 = 0, x2 = -0", [0.0], [-0.0], [0], [0]),
        _two("of either sign", [-2.0, 1.0, 2.0], [1.0, -1.0, 3.0], [-1, -1, 1], [0, 0, 0],
             page=False, label="of either sign"),
        _two("-1 to 0, -0", [-1.0, -1.0], [-0.0, 0.0], [1, -1], [0, 0], page=False, suite=False),
    ],
    "remainder": [
        _two("of either sign", [5.0, -5.0, 5.0, -5.0], [2.0, 2.0, -2.0, -2.0],
             [1, 1, 1, 1], [-2, 3, 3, -2], label="signs"),
        _two("multiples", [4.0, 0.0], [2.0, 2.0], [1, 1], [-2, 0]),
    ],
    "fmod": [_two("signs", [5.0, -5.0], [2.0, 2.0], [1, 1], [-2, 2], page=False, label="signs")],
    "maximum": [
        _two("ties", [1.0, INF, 0.0], [1.0, INF, -0.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
        _two("nan", [NAN, 2.0, NAN], [0.0, NAN, NAN], [1, 1, 1], [1, 1, 1]),
        _two("beside ties", [1.0, 2.0, 0.0, NAN, 1.0], [2.0, 1.0, 3.0, 1.0, NAN],
             [0, 1, 0, 1, 1], [1, 0, 1, 1, 1], page=False, label="beside ties"),
    ],
    "minimum": [
        _two("ties", [1.0, -INF, 0.0], [1.0, -INF, -0.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
        _two("nan", [NAN, 2.0, NAN], [0.0, NAN, NAN], [1, 1, 1], [1, 1, 1]),
        _two("beside ties", [1.0, 2.0, 0.0, NAN, 1.0], [2.0, 1.0, 3.0, 1.0, NAN],
             [1, 0, 1, 1, 1], [0, 1, 0, 1, 1], page=False, label="beside ties"),
    ],
    "fmax": [_two("ties and nan", [1.0, NAN, 2.0, 0.0], [1.0, 0.0, NAN, 3.0],
                  [0.5, 0, 1, 0], [0.5, 1, 0, 1], page=False, label="ties and nan")],
    "fmin": [_two("ties and nan", [1.0, NAN, 2.0, 0.0], [1.0, 0.0, NAN, 3.0],
                  [0.5, 0, 1, 1], [0.5, 1, 0, 0], page=False, label="ties and nan")],
    "clip": [
        At("x = -2, -1, 0, 1, 2; min = -1, max = 1",
           ([-2.0, -1.0, 0.0, 1.0, 2.0], [-1.0] * 5, [1.0] * 5),
           ([0, 1, 1, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]), label="at and outside the bounds"),
        At("min = 1 > max = -1; x = 0, 3, -3", ([0.0, 3.0, -3.0], [1.0] * 3, [-1.0] * 3),
           ([0, 0, 0], [0, 0, 0], [1, 1, 1]), label="bounds crossed"),
        At("bounds equal", ([0.0, 1.0, 2.0], [1.0] * 3, [1.0] * 3),
           ([0, 1, 0], [0, 0, 0], [0, 0, 1]), page=False, label="bounds equal"),
        At("bounds that broadcast", ([0.0, 1.0, 1.5, 2.0, 3.0, NAN], [1.0], [2.0]),
           ([0, 1, 1, 1, 0, 0], [1], [1]), page=False, label="bounds that broadcast"),
        At("bounds that are numbers", ([NAN], -1.0, 1.0), ([0],), page=False, label="nan"),
        At("min = -1", ([-2.0, -1.0, 0.0], [-1.0] * 3), ([0, 1, 1], [1, 0, 0]), page=False,
           label="at the lower bound"),
        At("min = 1", ([0.0, 1.0, 2.0, NAN], [1.0] * 4), ([0, 1, 1, 0], [1, 0, 0, 0]), page=False,
           label="lower bound and nan"),
        At("max = 1", ([0.0, 1.0, 2.0, NAN], None, [1.0] * 4), ([1, 1, 0, 0], [0, 0, 1, 0]),
           page=False, label="at the upper bound"),
    ],
    "pow": [
        _power(0, [0.0, 2.0, NAN, INF], [0] * 4, [0] * 4),
        _power(0.0, [0.0, 2.0, NAN, INF], [0] * 4, [0] * 4),
        _power(1, [0.0, 2.0, INF], [1, 1, 1], [0, 0, 0]),
        _power(1.0, [0.0, 2.0, NAN, INF], [1, 1, 1, 1], page=False),
        _power(2, [0.0, -1.5], [0, -3], [2, 2]),
        _power(2.0, [0.0, 1.5], [0, 3], [2, 2], page=False),
        At("exponent 2.0, not finite", ([0.0, 2.0, NAN, INF], 2.0), ([0, 4, NAN, INF],),
           page=False, label="exponent 2.0, not finite"),
        _power(3, [0.0, -2.0], [0, 12], [0, -12]),
        _power(1.5, [0.0], [0], [INF]),
        _power(0.5, [0.0], [INF]),
        _power(-1, [0.0, -0.0], [-INF, -INF]),
        _power(2, [0j], [0j], [2 + 0j]),
        _two("(0, 0), (0, 1), (0, 2), (0, -1)", [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, -1.0],
             [0, 1, 0, -INF], [0, 0, 0, -INF], label="base 0"),
        _two("x1 < 0", [-2.0, -2.0], [2.0, 3.0], [-4, 12], [NAN, NAN], label="base below 0"),
        _two("(2, 0)", [2.0], [0.0], [0], [math.log(2)],
             second=([0.5], [0.5 + math.log(2) ** 2])),
        _two("(nan, 0)", [NAN], [0.0], [0], [NAN]),
        _two("(0, 0)", [0.0], [0.0], [0], [0], second=([0], [0])),
        _two("to the power of 0", [0.0, 2.0, NAN, INF], [0.0] * 4,
             [0] * 4, [0, math.log(2), NAN, INF], page=False, label="to the power of 0"),
        _two("to the power of 1", [0.0, 2.0, NAN, INF], [1.0] * 4,
             [1] * 4, [0, 2 * math.log(2), NAN, INF], page=False, label="to the power of 1"),
        _two("powers of 0", [0.0] * 4, [2.0, 1.5, 0.5, -1.0], [0, 0, INF, -INF], [0, 0, 0, -INF],
             page=False, label="powers of 0"),
        _two("powers of complex 0", [0j, 0j, 0j], [0j, 1 + 0j, 2 + 0j], [0, 1, 0], [0, 0, 0],
             page=False, label="powers of complex 0"),
    ],
    "square": [
        _one("0", [0.0], [0], [2]),
        _one("complex 0", [0j], [0j], [2 + 0j]),
    ],
    "sqrt": [
        _one("0, -0", [0.0, -0.0], [INF, -INF], suite=False),
        _one("0", [0.0], [INF], page=False),
        _one("-1", [-1.0], [NAN]),
        _one("complex 0", [0j], [NOT_FINITE], suite=False),
    ],
    "reciprocal": [
        _one("0, -0", [0.0, -0.0], [-INF, -INF], label="at 0"),
        _one("complex 0", [0j], [NOT_FINITE], suite=False),
    ],
    "cbrt": [_one("0", [0.0, -8.0], [INF, 1 / 12], page=False)],
    "multiply": [_two("0 * inf", [0.0], [INF], [INF], [0])],
    "divide": [
        _two("1/0, 1/-0", [1.0, 1.0], [0.0, -0.0], [INF, -INF], [-INF, -INF], suite=False),
        _two("0/0", [0.0], [0.0], [INF], [NAN]),
        _two("1/0", [1.0, 0.0], [0.0, 0.0], [INF, INF], [-INF, NAN], page=False, label="by 0"),
    ],
    "hypot": [
        _two("(0, 0), (-0, 0)", [0.0, -0.0], [0.0, 0.0], [0, 0], [0, 0], second=([0, 0], [0, 0]),
             reason="PyTorch gives nan", label="origin"),
        _two("(0, 2), (-0, -2)", [0.0, -0.0], [2.0, -2.0], [0, 0], [1, -1]),
        _two("(3, 4)", [3.0], [4.0], [0.6], [0.8], page=False, suite=False),
    ],
    "exp": [_one("-inf, inf", [-INF, INF], [0, INF])],
    "tanh": [_one("-inf, inf", [-INF, INF], [0, 0])],
    "log": [
        _one("0, -0, -1", [0.0, -0.0, -1.0], [INF, -INF, -1], suite=False),
        _one("0, -1", [0.0, -1.0], [INF, -1], page=False, label="at 0 and below"),
        _one("complex 0", [0j], [NOT_FINITE], suite=False),
    ],
    "log2": [_one("0", [0.0], [INF])],
    "log10": [_one("0", [0.0], [INF])],
    "log1p": [_one("-1", [-1.0], [INF])],
    "logaddexp": [
        _two("(-inf, -inf), (inf, inf)", [-INF, INF], [-INF, INF], [0.5, 0.5], [0.5, 0.5],
             reason="PyTorch gives nan", label="infinite"),
        _two("(inf, 1), (-inf, 1), (0, 0)", [INF, -INF, 0.0], [1.0, 1.0, 0.0],
             [1, 0, 0.5], [0, 1, 0.5], second=([0, 0, 0], [0, 0, 0])),
        _two("far apart", [-INF, 1000.0], [INF, -1000.0], [0, 1], [1, 0], page=False,
             label="far apart"),
    ],
    "logaddexp2": [_two("infinite", [-INF, INF, INF], [-INF, 1.0, INF],
                        [0.5, 1, 0.5], [0.5, 0, 0.5], page=False, label="infinite")],
    "asin": [_one("1, -1", [1.0, -1.0], [INF, INF], label="at 1")],
    "acos": [_one("1, -1", [1.0, -1.0], [-INF, -INF], label="at 1")],
    "acosh": [_one("1", [1.0], [INF])],
    "atanh": [_one("1, -1", [1.0, -1.0], [INF, INF], label="at 1")],
    "asinh": [_one("far", [2e10 + 2e10j, -2e10 + 2e10j],
                   [2.5e-11 + 2.5e-11j, 2.5e-11 - 2.5e-11j], page=False, label="far")],
    "atan2": [
        _two("(0, 0), (0, -0), (-0, 0), (-0, -0)", [0.0, 0.0, -0.0, -0.0], [0.0, -0.0, 0.0, -0.0],
             [0] * 4, [0] * 4, second=([0] * 4, [0] * 4), label="origin"),
        _two("(0, -1), (-0, -1)", [0.0, -0.0], [-1.0, -1.0], [-1, -1], [0, 0]),
        _two("tiny", [0.0, 1.0, 1e-200], [0.0, 1.0, 1e-200], [0.0, 0.5, 5e199],
             [-0.0, -0.5, -5e199], page=False, suite=False),
    ],
    "heaviside": [_two("0", [-1.0, 0.0, 2.0], [0.5, 0.5, 0.5], [0, 0, 0], [0, 1, 0], page=False)],
    "sinc": [_one("0", [0.0], [0], [-(PI**2) / 3], page=False)],
    # names beyond the standard
    "relu": [
        _one("0, -0, nan", [0.0, -0.0, NAN], [0, 0, 1], label="at 0 and nan"),
        _one("of either sign", [-1.0, 2.0], [0, 1], page=False, label="of either sign"),
    ],
    "sigmoid": [_one("0, -1000, 1000, -inf, inf", [0.0, -1000.0, 1000.0, -INF, INF],
                     [0.25, 0, 0, 0, 0], label="far")],
    "logistic": [_one("0, -1000, 1000, -inf, inf", [0.0, -1000.0, 1000.0, -INF, INF],
                      [0.25, 0, 0, 0, 0], page=False, label="far")],
    "silu": [
        _one("0, -1000, 1000", [0.0, -1000.0, 1000.0], [0.5, 0, 1], label="far"),
        _one("-inf, inf", [-INF, INF], [0, 1], reason="PyTorch gives nan", label="infinite"),
    ],
    "softplus": [_one("0, -1000, 1000, -inf, inf", [0.0, -1000.0, 1000.0, -INF, INF],
                      [0.5, 0, 1, 0, 1], label="far")],
    "nan_to_num": [_one("nan, inf, -inf, 1", [NAN, INF, -INF, 1.0], [0, 0, 0, 1],
                        label="replaced", values=False)],
}
# fmt: on

_PARAMETERS: dict[str, tuple[str, ...]] = {"clip": ("x", "min", "max")}


def kinks(name: str) -> Iterator[Kink]:
    """The samples of the suite at the kinks of an operation."""
    for at in KINKS.get(name, ()):
        names = _PARAMETERS.get(name, ("x1", "x2") if len(at.args) == 2 else ("x",))
        named = [n for n, a in zip(names, at.args, strict=False) if isinstance(a, list)]
        if at.suite:
            yield Kink(
                at.label or "at " + at.where.replace("/", " over "),
                *at.arrays(),
                gradients=dict(zip(named, at.gradient, strict=True)),
                second=dict(zip(named, at.second or (), strict=bool(at.second))),
                reason=at.reason,
                values=at.values,
            )
