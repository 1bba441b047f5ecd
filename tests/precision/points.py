"""Where the elementwise operations are tried: across their domains, at both ends of the range,
close to singular points.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from multigrad_conformance import elementwise

Points = list[tuple[Any, ...]]

SIZES = (
    1e-300,
    1e-160,
    1e-20,
    1e-8,
    1e-3,
    0.1,
    0.3,
    0.7,
    1.0,
    1.5,
    2.5,
    4.0,
    6.5,
    10.0,
    18.0,
    30.0,
    100.0,
    700.0,
    1e4,
    1e8,
    1e20,
    1e150,
    1e160,
    1e300,
)
REAL = [s * v for v in SIZES for s in (1.0, -1.0)]
MODERATE = (-2.3, -0.8, -0.3, 0.2, 0.45, 0.9, 1.7, 3.1)

NEAR = [10.0**-k for k in (1, 3, 5, 8, 11, 14)]  # distances from a singular point


def about(*places: float) -> list[float]:
    """Close to these places on both sides, the last but one unit of float64 included."""
    found = [p * (1 + s * d) for p in places for d in NEAR for s in (1, -1)]
    return found + [float(np.nextafter(p, s * math.inf)) for p in places for s in (1, -1)]


# What the common points leave out, and those close to stated places, by operation.
MORE: dict[str, list[float]] = {
    "cosh": [709.5, 710.4, -710.4],
    "sinh": [709.5, 710.4, -710.4],
    "exp": [709.7, -708.0, -740.0],
    "expm1": [709.7, -3.0, -36.0, -50.0, -700.0],
    "reciprocal": [1e-154, 1e154, 1e-153, 1e-307, 1e307],
    "sqrt": [1e-307, 1.7e308],
    "square": [1e154, 8e307],
    "tanh": [0.05, 3.0, 8.0, 19.0, 22.0, 300.0, 354.0, -19.0],
}

WHERE_PAIRS_MEET = (1e-300, 1e-8, 0.3, 1.0, 2.5, 30.0, 1e8, 1e300)


def real_points(name: str) -> Points:
    """The points at which a function of one real variable is tried."""
    stated = elementwise.points(name)
    return [
        (x,)
        for x in dict.fromkeys([*REAL, *MODERATE, *about(*stated.places), *MORE.get(name, ())])
        if stated.inside(x)
    ]


def pairs(name: str) -> Points:
    """The points at which a function of two real variables is tried."""
    grid = list(itertools.product([s * v for v in WHERE_PAIRS_MEET for s in (1, -1)], repeat=2))
    close = [
        (x, x * (1 + d)) for x in (0.3, -2.5, 1e8, -1e160, 1e-160) for d in (1e-3, 1e-9, -1e-14)
    ]
    return [p for p in [*grid, *close, *PAIRS.get(name, ())] if elementwise.points(name).inside(*p)]


PAIRS: dict[str, Points] = {
    "pow": [
        (1 + d, e)
        for d in (1e-3, -1e-3, 1e-9, -1e-9, 1e-14)
        for e in (0.5, 3.0, -7.5, 1e3, 1e5, 1e8, -1e8, 1e11)
    ]
    + [
        (b, e)
        for b in (1e-200, 1e-30, 0.2, 3.0, 1e30, 1e200)
        for e in (-1.5, -1.0, -0.5, 1e-300, 1e-20, 0.5, 1.0, 1.5, 2.0, 3.0)
    ],
    "logaddexp": [
        (x, x + d)
        for x in (0.0, 1.0, 1e6, -1e6)
        for d in (0.5, -0.5, 30.0, -30.0, 300.0, -300.0, 740.0, -740.0)
    ],
    "remainder": [
        (5.3, 2.0),
        (-5.3, 2.0),
        (5.3, -2.0),
        (1e8 + 0.3, 0.7),
        (1e300, 1e290),
        (0.5, 1e300),
    ],
    "divide": [(1e300, 1e-5), (1e-300, 1e5), (1e200, 1e250), (1e-200, 1e-250), (1e-200, 1e-160)],
    "hypot": [(1.0, 1e-8), (1.0, 1e-150), (1e150, 1e160), (3.0, 4.0), (1e308, 1e307)],
    "atan2": [(1e-8, -1.0), (-1e-8, -1.0), (1e150, 1e160), (1e-160, 1e-150), (1e308, 1e307)],
}

EXPONENTS = (2, 3, -1, 0.5, -1.5, 2.5, 1)


def bases(exponent: float) -> Points:
    """The points at which a power is tried: not below 0, unless the exponent is a whole number."""
    return [(x,) for x in REAL if x > 0 or exponent == int(exponent)]


PARTS = (1e-300, 1e-8, 0.4, 1.3, 3.0, 20.0, 1e8, 1e160, 1e300)
WAVES = (1e-300, 1e-8, 0.4, 1.3, 3.0, 20.0, 300.0)
EXPONENTIAL = ("cos", "cosh", "exp", "expm1", "sin", "sinh", "tan", "tanh")


def complex_points(name: str) -> Points:
    """The points at which a function of one complex variable is tried: close to the real axis and
    to the imaginary one, too.
    """
    axis = [s * v for v in (WAVES if name in EXPONENTIAL else PARTS) for s in (1, -1)]
    wide = [complex(x, y) for x in axis for y in axis]
    near = [
        c + d * u
        for c in elementwise.points(name).complex_places
        for d in NEAR[1:]
        for u in (1 + 1j, -1 + 0.5j, 0.3 - 1j, -1 - 2j)
    ]
    return [(z,) for z in [*wide, *near]]


def complex_pairs(name: str) -> Points:
    """The points at which a function of two complex variables is tried."""
    values = [complex(x, y) for x in (1e-160, 0.4, -1.3, 1e8) for y in (1e-160, -0.7, 2.0, -1e160)]
    if name == "pow":
        values = [complex(x, y) for x in (0.4, -1.3, 3.0) for y in (1e-8, -0.7, 2.0)]
    return list(itertools.product(values, repeat=2))
