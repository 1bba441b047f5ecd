"""Numbers of which the points of several families are made."""

from __future__ import annotations

import itertools
from typing import Any

Points = list[tuple[Any, ...]]


class Wide(tuple[Any, ...]):
    """A point at which float32 has too few digits: the function says so by nan."""

    __slots__ = ()


def each(*columns: Any) -> Points:
    """Every combination."""
    return list(itertools.product(*columns))


SMALL = (1e-300, 1e-20, 1e-8, 1e-3)
MIDDLE = (0.1, 0.3, 0.7, 0.9, 1.0, 1.3, 1.5, 2.5, 4.0)
LARGE = (6.5, 10.0, 18.0, 30.0)
HUGE = (100.0, 700.0, 1e4, 1e8, 1e20, 1e150)
PROBABLE = (1e-10, 1e-3, 0.1, 0.3, 0.45, 0.6, 0.9, 0.999, 1 - 1e-6)
POSITIVE = (*SMALL, *MIDDLE, *LARGE, *HUGE)
BY_HALF = (0.5, 1.0, 2.5, 10.0, 80.0)
REAL = [(s * v,) for v in (*SMALL, *MIDDLE, *LARGE) for s in (1, -1)]
TAILS = [*REAL, (26.0,), (-26.0,), (37.0,), (-37.0,)]
