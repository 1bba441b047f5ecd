"""SciPy's functions that need a small correction to be a forward."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.special

from . import standard
from .standard.common import Namespace, refuse

NUMPY = Namespace("numpy", np)
HALF = np.dtype(np.float16)


def polygamma(n: Any, x: Any, /) -> Any:
    """polygamma with the right dtype, also for complex arrays.

    SciPy's function converts float32 to float64 and raises for complex arrays; for those the
    standard form takes a single order. An integer array promotes as always in NumPy: float64 beside
    float32.
    """
    kinds = [a.dtype for a in (n, x) if hasattr(a, "dtype")]
    if any(dtype.kind == "c" for dtype in kinds):
        return standard.polygamma(NUMPY, n, x)
    # Orders in float64, as SciPy takes them of a Python int: the value of a call does not depend on
    # whether the int has become an array beside `x`.
    value = scipy.special.polygamma(np.asarray(n, np.float64), x)
    return value.astype(np.result_type(*kinds, 1.0), copy=False)


def ive(v: Any, z: Any, /) -> Any:
    """ive of real arrays. SciPy's ive also takes complex arrays, where it is not holomorphic."""
    if np.iscomplexobj(z):
        raise refuse("ive", "numpy", z.dtype)
    return __getattr__("ive")(v, z)


def hyp1f1(a: Any, b: Any, x: Any, /) -> Any:
    """hyp1f1 with real parameters; a scalar parameter may arrive as a complex number.

    That happens if `x` is complex.

    SciPy's hyp1f1 (1.17) has no correct digit for polynomials below b = 0: -1.9e16 instead of 3.4
    at (-93, -26.4551, 0.339). For these the form in `standard` runs.
    """
    a, b = (v.real if np.ndim(v) == 0 and np.imag(v) == 0 else v for v in (a, b))
    value = __getattr__("hyp1f1")(a, b, x)
    c = a if np.iscomplexobj(x) else np.where(np.less(x, 0), np.subtract(b, a, dtype=np.float64), a)
    wrong = (
        np.less(b, 0)
        & np.less_equal(c, 0)
        & (c == np.floor(c))
        & (b != np.floor(b))
        & np.isfinite(value)
    )
    if np.iscomplexobj(x) or not np.any(wrong):
        return value
    given = [np.asarray(v, dtype=np.float64)[wrong] for v in np.broadcast_arrays(a, b, x)]
    with np.errstate(all="ignore"):
        ours = standard.hyp1f1(NUMPY, *given)
    value = np.array(value)
    value[wrong] = np.where(np.isnan(ours), value[wrong], ours)
    return value


def stdtrit(df: Any, p: Any, /) -> Any:
    """stdtrit computed in float64: SciPy's (1.17) is off by a third in float32 where p is 1e-10."""
    narrow = (np.dtype(np.float16), np.dtype(np.float32))
    value = __getattr__("stdtrit")(
        *(x.astype(np.float64) if getattr(x, "dtype", None) in narrow else x for x in (df, p))
    )
    return value.astype(np.result_type(df, p, 1.0), copy=False)


def _of_trials(name: str) -> Callable[..., Any]:
    """bdtr, bdtrc or bdtri: SciPy deprecates a number of trials `n` that is or becomes a float.

    It becomes one beside float32 unless it is an array of int64. It is truncated as in SciPy. The
    result is nan where SciPy's integer cannot hold it.
    """

    def call(k: Any, n: Any, p: Any, /) -> Any:
        function = __getattr__(name)
        if np.asarray(n).dtype.kind == "c":
            return function(k, n, p)
        known = np.abs(np.asarray(n, np.float64)) < 2.0**31
        value = function(k, np.where(known, n, 0).astype(np.int64), p)
        return np.where(known, value, np.nan)[()].astype(np.result_type(k, n, p, 1.0), copy=False)

    call.__name__ = name
    return call


bdtr, bdtrc, bdtri = map(_of_trials, ("bdtr", "bdtrc", "bdtri"))


def _zeta(name: str) -> Callable[..., Any]:
    """SciPy's zeta under this name, of real arrays; with one argument it takes complex ones."""

    def call(*given: Any) -> Any:
        for x in given:
            if np.iscomplexobj(x):
                raise refuse(name, "numpy", np.asarray(x).dtype)
        return __getattr__("zeta")(*given)

    call.__name__ = name
    return call


hurwitz_zeta, riemann_zeta = map(_zeta, ("hurwitz_zeta", "riemann_zeta"))


def zeta_derivative(m: int, x: Any, q: Any, /) -> Any:
    """The form in `standard`, of arrays that NumPy has promoted."""
    dtype = np.result_type(x, q, 1.0)
    return standard.zeta_derivative(
        NUMPY,
        m,
        *(v.astype(dtype) if getattr(v, "dtype", dtype).kind in "iub" else v for v in (x, q)),
    )


@cache
def __getattr__(name: str) -> Callable[..., Any]:
    """`scipy.special.<name>` with a result in the dtype that NumPy promotes its arguments to.

    float16 is computed in float32. A complex array that SciPy's function does not take raises
    TypeError.
    """
    function = getattr(scipy.special, name, None)
    if name.startswith("_") or not callable(function):
        raise AttributeError(name)

    def call(*given: Any) -> Any:
        arrays = [x for x in given if hasattr(x, "dtype")]
        if any(x.dtype is HALF for x in arrays):
            wide = [x.astype(np.float32) if getattr(x, "dtype", None) is HALF else x for x in given]
            return call(*wide).astype(np.result_type(*arrays, 1.0), copy=False)
        try:
            out = function(*given)
        except TypeError:
            for x in arrays:
                if x.dtype.kind not in "iuf":
                    raise refuse(name, "numpy", x.dtype) from None
            raise
        for x in given:
            if getattr(x, "dtype", None) is not out.dtype:
                break
        else:
            return out
        dtype = np.result_type(*given, 1.0)
        if out.dtype.itemsize < dtype.itemsize:  # small integers, which SciPy takes as float32
            out = function(
                *(x.astype(dtype) if getattr(x, "dtype", dtype).kind in "iub" else x for x in given)
            )
        return out.astype(dtype, copy=False)

    call.__name__ = name
    return call
