"""The elementwise operations, point by point: how their arguments are drawn, where each is defined,
its singular places, and the gradients that are stated at kinks.

This is the only table of them, with one record for each. The samples of the suite are made of it,
and the project's own tests of rules and of precision read it. docs/subgradients.md is written from
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from .sample import Draw, Kink

INF, NAN = math.inf, math.nan
NOT_FINITE = complex(NAN, NAN)
PI = math.pi
Complex: TypeAlias = complex

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


# ----- the table -----


@dataclass(frozen=True)
class Points:
    """Where an operation is tried.

    first, second    how each real argument is drawn, away from kinks and singular points: the name
                     of a method of `Draw`, an interval, or "fractions"
    complex          whether it is tried with complex numbers
    integers         whether it is tried with integers
    inside           where a function of real variables is defined and smooth: f(*arguments)
    places           places close to which a formula may lose digits: singular points, zeros and
                     extrema
    complex_places   the same in the complex plane
    kinks            points at which its gradient is stated
    """

    first: Any = None
    second: Any = None
    complex: bool = False
    integers: bool = False
    inside: Callable[..., bool] = lambda *_: True
    places: tuple[float, ...] = ()
    complex_places: tuple[Complex, ...] = ()
    kinks: list[At] = field(default_factory=list)


# The numbers are PyTorch 2.13's where no reason is given. Kinks with `page=False` add points to
# those before them.
# fmt: off
POINTS: dict[str, Points] = {
    "abs": Points("nonzero", complex=True, integers=True, inside=lambda x: x != 0, kinks=[
        _one("0, -0, nan", [0.0, -0.0, NAN], [0, 0, 0], [0, 0, 0], label="at 0 and nan"),
        _one("inf, -inf", [INF, -INF], [1, -1]),
        _one("complex 0", [0j, 3 + 4j], [0j, 0.6 + 0.8j], label="complex at 0"),
        _one("of either sign", [2.0, -2.0], [1, -1], page=False, label="of either sign"),
    ]),
    "acos": Points((-0.9, 0.9), complex=True, inside=lambda x: abs(x) < 1, places=(1, -1),
        complex_places=(1, -1), kinks=[_one("1, -1", [1.0, -1.0], [-INF, -INF], label="at 1")]),
    "acosh": Points((1.2, 3.0), complex=True, inside=lambda x: x > 1, places=(1,),
        complex_places=(1, -1), kinks=[_one("1", [1.0], [INF])]),
    "add": Points("real", "real", complex=True, integers=True),
    "asin": Points((-0.9, 0.9), complex=True, inside=lambda x: abs(x) < 1, places=(1, -1),
        complex_places=(1, -1), kinks=[_one("1, -1", [1.0, -1.0], [INF, INF], label="at 1")]),
    "asinh": Points("real", complex=True, complex_places=(1j, -1j), kinks=[
        _one("far", [2e10 + 2e10j, -2e10 + 2e10j],
             [2.5e-11 + 2.5e-11j, 2.5e-11 - 2.5e-11j], page=False, label="far"),
    ]),
    "atan": Points("real", complex=True, complex_places=(1j, -1j)),
    "atan2": Points("nonzero", "nonzero", kinks=[
        _two("(0, 0), (0, -0), (-0, 0), (-0, -0)", [0.0, 0.0, -0.0, -0.0], [0.0, -0.0, 0.0, -0.0],
             [0] * 4, [0] * 4, second=([0] * 4, [0] * 4), label="origin"),
        _two("(0, -1), (-0, -1)", [0.0, -0.0], [-1.0, -1.0], [-1, -1], [0, 0]),
        _two("tiny", [0.0, 1.0, 1e-200], [0.0, 1.0, 1e-200], [0.0, 0.5, 5e199],
             [-0.0, -0.5, -5e199], page=False, suite=False),
    ]),
    "atanh": Points((-0.9, 0.9), complex=True, inside=lambda x: abs(x) < 1, places=(1, -1),
        complex_places=(1, -1), kinks=[_one("1, -1", [1.0, -1.0], [INF, INF], label="at 1")]),
    "cbrt": Points("nonzero", inside=lambda x: x != 0,
        kinks=[_one("0", [0.0, -8.0], [INF, 1 / 12], page=False)]),
    "ceil": Points("fractions", integers=True, inside=lambda x: 0.01 < abs(x) % 1 < 0.99,
        kinks=[_one("integers", [-1.0, 0.0, 0.5, 1.5, 2.0], [0, 0, 0, 0, 0])]),
    "clip": Points(kinks=[
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
    ]),
    "conj": Points("real", complex=True),
    "copysign": Points("nonzero", "nonzero", kinks=[
        _two("x1 = 0, -0", [0.0, -0.0], [1.0, 1.0], [0, 0], [0, 0], second=([0, 0], [0, 0]),
             label="at 0"),
        _two("x2 = 0, -0", [2.0, 2.0, -2.0, -2.0], [0.0, -0.0, 0.0, -0.0],
             [1, -1, -1, 1], [0, 0, 0, 0], suite=False),
        _two("x1 = 0, x2 = -0", [0.0], [-0.0], [0], [0]),
        _two("of either sign", [-2.0, 1.0, 2.0], [1.0, -1.0, 3.0], [-1, -1, 1], [0, 0, 0],
             page=False, label="of either sign"),
        _two("-1 to 0, -0", [-1.0, -1.0], [-0.0, 0.0], [1, -1], [0, 0], page=False, suite=False),
    ]),
    "cos": Points("real", complex=True, places=(PI, PI / 2), complex_places=(PI / 2,)),
    "cosh": Points("real", complex=True, complex_places=(1j * PI / 2,)),
    "deg2rad": Points("real"),
    "divide": Points("real", "nonzero", complex=True, kinks=[
        _two("1/0, 1/-0", [1.0, 1.0], [0.0, -0.0], [INF, -INF], [-INF, -INF], suite=False),
        _two("0/0", [0.0], [0.0], [INF], [NAN]),
        _two("1/0", [1.0, 0.0], [0.0, 0.0], [INF, INF], [-INF, NAN], page=False, label="by 0"),
    ]),
    "equal": Points("real", "real", complex=True, integers=True),
    "exp": Points("real", complex=True, complex_places=(1j * PI,),
        kinks=[_one("-inf, inf", [-INF, INF], [0, INF])]),
    "exp2": Points("real"),
    "expm1": Points("real", complex=True),
    "floor": Points("fractions", integers=True, inside=lambda x: 0.01 < abs(x) % 1 < 0.99,
        kinks=[_one("integers", [-1.0, 0.0, 0.5, 1.5, 2.0], [0, 0, 0, 0, 0])]),
    "floor_divide": Points("real", "nonzero", integers=True),
    "fmax": Points("apart", "apart", inside=lambda x, y: x != y, kinks=[
        _two("ties and nan", [1.0, NAN, 2.0, 0.0], [1.0, 0.0, NAN, 3.0],
             [0.5, 0, 1, 0], [0.5, 1, 0, 1], page=False, label="ties and nan"),
    ]),
    "fmin": Points("apart", "apart", inside=lambda x, y: x != y, kinks=[
        _two("ties and nan", [1.0, NAN, 2.0, 0.0], [1.0, 0.0, NAN, 3.0],
             [0.5, 0, 1, 1], [0.5, 1, 0, 0], page=False, label="ties and nan"),
    ]),
    "fmod": Points((2.1, 2.8), (0.95, 1.0),
        inside=lambda x, y: abs(x / y) < 1e15 and 1e-6 < (x / y) % 1 < 1 - 1e-6,
        kinks=[_two("signs", [5.0, -5.0], [2.0, 2.0], [1, 1], [-2, 2], page=False, label="signs")]),
    "greater": Points("real", "real", integers=True),
    "greater_equal": Points("real", "real", integers=True),
    "heaviside": Points("nonzero", "real",
        kinks=[_two("0", [-1.0, 0.0, 2.0], [0.5, 0.5, 0.5], [0, 0, 0], [0, 1, 0], page=False)]),
    "hypot": Points("nonzero", "nonzero", kinks=[
        _two("(0, 0), (-0, 0)", [0.0, -0.0], [0.0, 0.0], [0, 0], [0, 0], second=([0, 0], [0, 0]),
             reason="PyTorch gives nan", label="origin"),
        _two("(0, 2), (-0, -2)", [0.0, -0.0], [2.0, -2.0], [0, 0], [1, -1]),
        _two("(3, 4)", [3.0], [4.0], [0.6], [0.8], page=False, suite=False),
    ]),
    "imag": Points(complex=True),
    "isfinite": Points("real", complex=True, integers=True),
    "isinf": Points("real", complex=True, integers=True),
    "isnan": Points("real", complex=True, integers=True),
    "less": Points("real", "real", integers=True),
    "less_equal": Points("real", "real", integers=True),
    "log": Points("positive", complex=True, inside=lambda x: x > 0, places=(1,),
        complex_places=(1, -1), kinks=[
        _one("0, -0, -1", [0.0, -0.0, -1.0], [INF, -INF, -1], suite=False),
        _one("0, -1", [0.0, -1.0], [INF, -1], page=False, label="at 0 and below"),
        _one("complex 0", [0j], [NOT_FINITE], suite=False),
    ]),
    "log10": Points("positive", complex=True, inside=lambda x: x > 0, places=(1,),
        complex_places=(1, -1), kinks=[_one("0", [0.0], [INF])]),
    "log1p": Points((-0.8, 2.0), complex=True, inside=lambda x: x > -1, places=(-1,),
        complex_places=(-1,), kinks=[_one("-1", [-1.0], [INF])]),
    "log2": Points("positive", complex=True, inside=lambda x: x > 0, places=(1,),
        complex_places=(1, -1), kinks=[_one("0", [0.0], [INF])]),
    "logaddexp": Points("real", "real", kinks=[
        _two("(-inf, -inf), (inf, inf)", [-INF, INF], [-INF, INF], [0.5, 0.5], [0.5, 0.5],
             reason="PyTorch gives nan", label="infinite"),
        _two("(inf, 1), (-inf, 1), (0, 0)", [INF, -INF, 0.0], [1.0, 1.0, 0.0],
             [1, 0, 0.5], [0, 1, 0.5], second=([0, 0, 0], [0, 0, 0])),
        _two("far apart", [-INF, 1000.0], [INF, -1000.0], [0, 1], [1, 0], page=False,
             label="far apart"),
    ]),
    "logaddexp2": Points("real", "real", kinks=[
        _two("infinite", [-INF, INF, INF], [-INF, 1.0, INF],
             [0.5, 1, 0.5], [0.5, 0, 0.5], page=False, label="infinite"),
    ]),
    "logistic": Points(kinks=[
        _one("0, -1000, 1000, -inf, inf", [0.0, -1000.0, 1000.0, -INF, INF],
             [0.25, 0, 0, 0, 0], page=False, label="far"),
    ]),
    "maximum": Points("apart", "apart", integers=True, inside=lambda x, y: x != y, kinks=[
        _two("ties", [1.0, INF, 0.0], [1.0, INF, -0.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
        _two("nan", [NAN, 2.0, NAN], [0.0, NAN, NAN], [1, 1, 1], [1, 1, 1]),
        _two("beside ties", [1.0, 2.0, 0.0, NAN, 1.0], [2.0, 1.0, 3.0, 1.0, NAN],
             [0, 1, 0, 1, 1], [1, 0, 1, 1, 1], page=False, label="beside ties"),
    ]),
    "minimum": Points("apart", "apart", integers=True, inside=lambda x, y: x != y, kinks=[
        _two("ties", [1.0, -INF, 0.0], [1.0, -INF, -0.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
        _two("nan", [NAN, 2.0, NAN], [0.0, NAN, NAN], [1, 1, 1], [1, 1, 1]),
        _two("beside ties", [1.0, 2.0, 0.0, NAN, 1.0], [2.0, 1.0, 3.0, 1.0, NAN],
             [1, 0, 1, 1, 1], [0, 1, 0, 1, 1], page=False, label="beside ties"),
    ]),
    "multiply": Points("real", "real", complex=True, integers=True,
        kinks=[_two("0 * inf", [0.0], [INF], [INF], [0])]),
    "nan_to_num": Points(kinks=[
        _one("nan, inf, -inf, 1", [NAN, INF, -INF, 1.0], [0, 0, 0, 1],
             label="replaced", values=False),
    ]),
    "negative": Points("real", complex=True, integers=True),
    "nextafter": Points("real", "real"),
    "not_equal": Points("real", "real", complex=True, integers=True),
    "positive": Points("real", complex=True, integers=True),
    "pow": Points("positive", "real", complex=True, inside=lambda x, y: x > 0, kinks=[
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
    ]),
    "rad2deg": Points("real"),
    "real": Points("real", complex=True),
    "reciprocal": Points("nonzero", complex=True, kinks=[
        _one("0, -0", [0.0, -0.0], [-INF, -INF], label="at 0"),
        _one("complex 0", [0j], [NOT_FINITE], suite=False),
    ]),
    "relu": Points(inside=lambda x: x != 0, kinks=[
        _one("0, -0, nan", [0.0, -0.0, NAN], [0, 0, 1], label="at 0 and nan"),
        _one("of either sign", [-1.0, 2.0], [0, 1], page=False, label="of either sign"),
    ]),
    "remainder": Points((2.1, 2.8), (0.95, 1.0), integers=True,
        inside=lambda x, y: abs(x / y) < 1e15 and 1e-6 < (x / y) % 1 < 1 - 1e-6, kinks=[
        _two("of either sign", [5.0, -5.0, 5.0, -5.0], [2.0, 2.0, -2.0, -2.0],
             [1, 1, 1, 1], [-2, 3, 3, -2], label="signs"),
        _two("multiples", [4.0, 0.0], [2.0, 2.0], [1, 1], [-2, 0]),
    ]),
    "round": Points("fractions", integers=True,
        inside=lambda x: 0.01 < abs(x) % 1 < 0.49 or 0.51 < abs(x) % 1 < 0.99,
        kinks=[_one("halves", [-0.5, 0.5, 1.5, 2.5, -1.0, 2.0], [0, 0, 0, 0, 0, 0])]),
    "sigmoid": Points(kinks=[
        _one("0, -1000, 1000, -inf, inf", [0.0, -1000.0, 1000.0, -INF, INF],
             [0.25, 0, 0, 0, 0], label="far"),
    ]),
    "sign": Points("nonzero", complex=True, integers=True, inside=lambda x: x != 0, kinks=[
        _one("everywhere", [-2.0, 0.0, 3.0, -3.0], [0, 0, 0, 0], label="everywhere"),
        _one("complex 0", [0j], [0j], [0j], label="complex at 0"),
        _one("3+4i", [3 + 4j], [0.128 - 0.096j]),
    ]),
    "signbit": Points("nonzero"),
    "silu": Points(kinks=[
        _one("0, -1000, 1000", [0.0, -1000.0, 1000.0], [0.5, 0, 1], label="far"),
        _one("-inf, inf", [-INF, INF], [0, 1], reason="PyTorch gives nan", label="infinite"),
    ]),
    "sin": Points("real", complex=True, places=(PI, PI / 2), complex_places=(PI,)),
    "sinc": Points((-0.8, 0.8), kinks=[_one("0", [0.0], [0], [-(PI**2) / 3], page=False)]),
    "sinh": Points("real", complex=True, complex_places=(1j * PI,)),
    "softplus": Points(kinks=[
        _one("0, -1000, 1000, -inf, inf", [0.0, -1000.0, 1000.0, -INF, INF],
             [0.5, 0, 1, 0, 1], label="far"),
    ]),
    "sqrt": Points("positive", complex=True, inside=lambda x: x > 0, kinks=[
        _one("0, -0", [0.0, -0.0], [INF, -INF], suite=False),
        _one("0", [0.0], [INF], page=False),
        _one("-1", [-1.0], [NAN]),
        _one("complex 0", [0j], [NOT_FINITE], suite=False),
    ]),
    "square": Points("real", complex=True, integers=True, kinks=[
        _one("0", [0.0], [0], [2]),
        _one("complex 0", [0j], [0j], [2 + 0j]),
    ]),
    "subtract": Points("real", "real", complex=True, integers=True),
    "tan": Points((-1.2, 1.2), complex=True, places=(PI / 2, PI, -3 * PI / 2),
        complex_places=(PI / 2,)),
    "tanh": Points("real", complex=True, complex_places=(1j * PI / 2,),
        kinks=[_one("-inf, inf", [-INF, INF], [0, 0])]),
    "trunc": Points("fractions", integers=True, inside=lambda x: 0.01 < abs(x) % 1 < 0.99,
        kinks=[_one("integers", [-1.0, 0.0, 0.5, 1.5, 2.0], [0, 0, 0, 0, 0])]),
}
# fmt: on

UNARY = {name: at.first for name, at in POINTS.items() if at.first and not at.second}
BINARY = {name: (at.first, at.second) for name, at in POINTS.items() if at.second}


def points(name: str) -> Points:
    """Where an operation is tried; everywhere, if the table does not have it."""
    return POINTS.get(name) or Points()


def drawn(draw: Draw, how: Any, *shape: int) -> Any:
    """An array as `Points` says."""
    if how == "fractions":  # never near an integer, nor near a half
        return draw.integers(*shape) + np.where(draw.booleans(*shape), 0.25, 0.7)
    return (
        draw.real(*shape, low=how[0], high=how[1])
        if isinstance(how, tuple)
        else getattr(draw, how)(*shape)
    )


_PARAMETERS: dict[str, tuple[str, ...]] = {"clip": ("x", "min", "max")}


def kinks(name: str) -> Iterator[Kink]:
    """The samples of the suite at the kinks of an operation."""
    for at in points(name).kinks:
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
