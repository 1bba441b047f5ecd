"""Associated Legendre functions of integer order and degree."""

from __future__ import annotations

import math
from typing import Any

from .forms import elementwise

__all__ = ["lpmv"]

MOST = 50
"""The largest degree."""


@elementwise
def lpmv(xp: Any, m: Any, v: Any, x: Any) -> Any:
    """The associated Legendre function of order m and degree v.

    It starts at the order and increases the degree (DLMF 14.10.3). Degrees are integers up to MOST
    (and from -MOST - 1). For other degrees, and for orders below the negative degree, the value is
    nan.
    """
    m, v, x = xp.broadcast_arrays(m, v, x)
    degree = xp.where(v < 0, -v - 1, v)
    order = xp.abs(m)
    known = (
        (degree <= MOST)
        & (degree == xp.floor(degree))
        & (m == xp.floor(m))
        & ((m >= 0) | (order <= degree))
        & ((m == 0) | (xp.abs(x) <= 1))
    )
    degree, order, x = (
        xp.where(known, degree, 0.0),
        xp.where(known & (order <= degree), order, 0.0),
        xp.where(known, x, 0.0),
    )
    square = (1 - x) * (1 + x)
    sine = xp.sqrt(xp.where(square > 0, square, 0.0))
    below, value = xp.zeros_like(x), xp.ones_like(x)
    for n in range(MOST):
        climbs = n >= order
        factor = xp.where(climbs, n - order + 1, 1.0)
        above = (
            (2 * n + 1) * xp.where(climbs, x * value, -sine * value)
            - xp.where(climbs, (n + order) * below, 0.0)
        ) / factor
        goes_on = n < degree
        below, value = xp.where(goes_on & climbs, value, below), xp.where(goes_on, above, value)
    ratio = xp.ones_like(x)
    for k in range(1, MOST + 1):
        ratio = xp.where(
            (m < 0) & (k <= order),
            -ratio / ((degree + k) * xp.where(k <= order, degree - k + 1, 1.0)),
            ratio,
        )
    empty = xp.abs(m) > degree  # here a positive order
    return xp.where(known, xp.where(empty, 0.0, value * ratio), math.nan)
