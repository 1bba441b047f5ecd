"""SciPy's functions where they need a little help to be a forward."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.special

from .standard import order, refuse

HALF = np.dtype(np.float16)


def polygamma(n: int, x: Any, /) -> Any:
    """SciPy's polygamma turns float32 into float64, gives nan for an n that makes no sense, and fails on complex arrays deep inside."""
    if x.dtype.kind == "c":
        raise refuse("polygamma", "numpy", x.dtype)
    value = scipy.special.polygamma(order(n), x)
    return value.astype(x.dtype) if x.dtype.kind == "f" else value


def ive(v: Any, z: Any, /) -> Any:
    """SciPy's ive takes complex arrays, too, where it is not holomorphic and so has no derivative."""
    if z.dtype.kind == "c":
        raise refuse("ive", "numpy", z.dtype)
    return __getattr__("ive")(v, z)


def hyp1f1(a: Any, b: Any, x: Any, /) -> Any:
    """SciPy's hyp1f1 takes real parameters only; a Python scalar beside a complex array comes as a complex one."""
    return __getattr__("hyp1f1")(*(v.real if np.ndim(v) == 0 and np.imag(v) == 0 else v for v in (a, b)), x)


@cache
def __getattr__(name: str) -> Callable[..., Any]:
    """`scipy.special.<name>` with the dtype of the floating arguments for its result, also where an array of integers meets one of float32.

    float16 is computed in float32. A complex array that SciPy's function does not take raises TypeError.
    """
    function = getattr(scipy.special, name, None)
    if name.startswith("_") or not callable(function):
        raise AttributeError(name)

    def call(*given: Any) -> Any:
        known = [x for x in given if hasattr(x, "dtype")]  # the others are Python scalars
        floating = [x.dtype for x in known if x.dtype.kind in "fc"]
        if HALF in floating:
            wide = call(*(x.astype(np.float32) if getattr(x, "dtype", None) == HALF else x for x in given))
            return wide.astype(np.result_type(*floating), copy=False)
        try:
            out = function(*given)
        except TypeError:
            for x in given:
                if np.asarray(x).dtype.kind not in "iuf":
                    raise refuse(name, "numpy", np.asarray(x).dtype) from None
            raise
        for x in known:
            if x.dtype is not out.dtype:
                break
        else:
            return out
        dtype = np.result_type(*floating) if floating else out.dtype
        return out.astype(dtype, copy=False)

    call.__name__ = name
    return call
