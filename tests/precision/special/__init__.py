"""The functions of the plugin multigrad-special in mpmath, and the points at which they are tried,
further out than their samples.

A module for each family of functions has FUNCTIONS, by name, and POINTS. `python -m precision
special.gamma` measures the rules on NumPy as it does those of any operation; `python -m
precision.special gamma` measures values and gradients on every backend, and SciPy's values beside
them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from . import (
    bessel,
    elementary,
    elliptic,
    entropy,
    error,
    everywhere,
    gamma,
    incomplete_beta,
    incomplete_gamma,
    integrals,
)
from .grids import Points

FAMILIES = (
    error,
    gamma,
    entropy,
    incomplete_gamma,
    incomplete_beta,
    bessel,
    elementary,
    integrals,
    elliptic,
)

ALL: dict[str, tuple[Any, Points]] = {
    f"special.{name}": (family.FUNCTIONS[name], where)
    for family in FAMILIES
    for name, where in family.POINTS.items()
}


@cache
def limit(name: str) -> float:
    """The largest error of a derivative that is no bug, in units of epsilon: 1e-12, or four times
    the error of SciPy's function at these points.
    """
    return max(1e-12, 4 * everywhere.of_scipy(name, np.float64)) / float(np.finfo(np.float64).eps)
