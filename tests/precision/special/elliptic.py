"""Elliptic integrals and Legendre functions in mpmath, and the points at which they are tried,
further out than their samples.
"""

from __future__ import annotations

from typing import Any

from mpmath import mp

from .grids import HUGE, SMALL, Points, each


def _legendre(m: Any, v: Any, x: Any) -> Any:
    """Of an integer degree; below 0, where mpmath takes long, by its parity."""
    if x < 0:
        return (-1) ** int(v + m) * _legendre(m, v, -x)
    return mp.legenp(v, int(m), x, type=2).real


BELOW_ONE = (*SMALL, 0.1, 0.3, 0.5, 0.9, 0.999, 1 - 1e-8, 1 - 1e-15)
PARAMETERS: Points = [
    (m,) for m in (*BELOW_ONE, *(-m for m in (*SMALL, 0.3, 0.999, 1.0, 7.0, *HUGE[:4])))
]

FUNCTIONS: dict[str, Any] = {
    "ellipk": mp.ellipk,
    "ellipkm1": lambda p: mp.pi / 2 / mp.agm(1, mp.sqrt(p)),
    "ellipe": mp.ellipe,
    "lpmv": _legendre,
}

POINTS: dict[str, Points] = {
    "ellipk": PARAMETERS,
    "ellipkm1": [(p,) for p in (*BELOW_ONE, 1.0, 1.001, 7.0, *HUGE[:4])],
    "ellipe": PARAMETERS,
    "lpmv": each((0, 1, 2, 5), (2, 5, 11), (-0.99, -0.3, 1e-3, 0.4, 0.9, 0.999)),
}
