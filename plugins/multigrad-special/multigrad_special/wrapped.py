"""SciPy's functions where they need a little help to be a forward."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from .standard import order


def polygamma_numpy(n: int, x: Any, /) -> Any:
    """SciPy's polygamma, which turns float32 into float64, takes any n, and fails on complex arrays deep inside."""
    if x.dtype.kind == "c":
        raise TypeError(f"special.polygamma on the backend 'numpy' takes real floating-point arrays, not {x.dtype}.")
    value = scipy.special.polygamma(order(n), x)
    return value.astype(x.dtype, copy=False) if x.dtype.kind == "f" else np.asarray(value)
