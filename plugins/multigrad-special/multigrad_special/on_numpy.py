"""SciPy's functions where they need a little help to be a forward."""

from __future__ import annotations

from typing import Any

import scipy.special

from .standard import order, refuse


def polygamma(n: int, x: Any, /) -> Any:
    """SciPy's polygamma turns float32 into float64, gives nan for an n that makes no sense, and fails on complex arrays deep inside."""
    if x.dtype.kind == "c":
        raise refuse("polygamma", "numpy", x.dtype)
    value = scipy.special.polygamma(order(n), x)
    return value.astype(x.dtype) if x.dtype.kind == "f" else value
