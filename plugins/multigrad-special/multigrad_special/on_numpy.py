"""SciPy's functions where they need a little help to be a forward."""

from __future__ import annotations

from typing import Any

import scipy.special

from .standard import order, refuse
from .standard.bessel import MAX_BESSEL


def polygamma(n: int, x: Any, /) -> Any:
    """SciPy's polygamma turns float32 into float64, gives nan for an n that makes no sense, and fails on complex arrays deep inside."""
    if x.dtype.kind == "c":
        raise refuse("polygamma", "numpy", x.dtype)
    value = scipy.special.polygamma(order(n), x)
    return value.astype(x.dtype) if x.dtype.kind == "f" else value


def iv(v: int, z: Any, /) -> Any:
    """SciPy's iv is for any order; the derivative by recurrence is for integers."""
    return scipy.special.iv(order(v, "iv", MAX_BESSEL), z)


def ive(v: int, z: Any, /) -> Any:
    """As iv."""
    return scipy.special.ive(order(v, "ive", MAX_BESSEL), z)
