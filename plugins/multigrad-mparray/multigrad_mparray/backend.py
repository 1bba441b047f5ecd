"""The backend of mparray: its namespace, with corrections, and functions computed by mpmath.

An mparray holds mpmath numbers, with mpmath's current precision of `mpmath.mp.dps` digits. A dtype
is only a label for the kind.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mparray as xp
import mpmath

import multigrad as mg

from . import linear_algebra

LEFT = (
    "an operator of mparray takes any operand on its right for one of NumPy's: a Tensor that "
    "requires grad is refused, a constant one loses its digits. Write the Tensor on the left"
)
EXEMPTIONS = {
    **{
        f"{name}/raw/left": LEFT
        for name in (
            "add",
            "bitwise_and",
            "bitwise_left_shift",
            "bitwise_or",
            "bitwise_right_shift",
            "bitwise_xor",
            "divide",
            "equal",
            "floor_divide",
            "greater",
            "greater_equal",
            "less",
            "less_equal",
            "matmul",
            "multiply",
            "not_equal",
            "pow",
            "remainder",
            "subtract",
        )
    },
    **{
        f"nextafter/{check}": "mparray 0.2.2 takes the logarithm of its first argument, which "
        "is nan of a negative one"
        for check in ("broadcasting/*", "empty/0-d", "forward/*", "promotion/*")
    },
    **{
        f"unique_{name}/forward/complex": "mparray sorts what it compares, and complex numbers "
        "have no order"
        for name in ("all", "counts", "inverse", "values")
    },
    **dict.fromkeys(
        (
            "copy_slices/forward/complex-imag,-infinite",
            "signbit/forward/special-values",
            "reciprocal/kink/at-0",
            "pow/kink/exponent--1",
            "atan2/kink/origin",
            "atan2/kink/at-(0,--1),-(-0,--1)",
        ),
        "the zeros of mpmath have no sign",
    ),
    **{
        f"linalg.{name}/{check}/{label}": "mpmath finds eigenvalues in another order than NumPy"
        for name, labels, checks in (
            ("eig", "real* conjugate-pair", "dual each_output forward jvp nested second vjp"),
            ("eig", "transposed reversed sliced", "layout"),
            ("eigvals", "real* conjugate-pair", "dual forward nested second vjp"),
            ("eigvals", "transposed reversed sliced", "layout"),
        )
        for label in labels.split()
        for check in checks.split()
    },
    **dict.fromkeys(
        ("finfo/forward/float32", "finfo/forward/float64@float32"),
        "the precision is that of mpmath, whatever the dtype",
    ),
}


def make() -> mg.Backend:
    """Make the backend of MPArrays.

    A float has fewer digits than their elements, so `scaled` computes numbers such as log(2).
    """
    return mg.Backend(
        "mparray",
        xp,
        (xp.MPArray,),
        capabilities=mg.Capabilities(defers=False),
        functions={
            "scaled": scaled,
            "fft.fft": fft,
            "argsort": argsort,
            "clip": clip,
            "finfo": finfo,
            "from_dlpack": from_dlpack,
            "linspace": linspace,
            "logaddexp": logaddexp,
            "maximum": maximum,
            "minimum": minimum,
            "real": real,
            "sort": sort,
            "std": std,
            "var": var,
            "vecdot": vecdot,
            **linear_algebra.FUNCTIONS,
        },
        # nothing overflows, and 1 is significant beside numbers of any size
        rules={"asinh": {"x": lambda xp, g, x: g / xp.sqrt(1 + x * x)}},
        exemptions=EXEMPTIONS,
    )


def scaled(x: Any, by: Any, /) -> Any:
    """Multiply by a number that is computed with the current precision."""
    return x * by.recipe(xp, xp.ones((), dtype=x.dtype))


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Take nan for larger than every number, as NumPy does; mparray sorts it to any place."""
    if not xp.isdtype(x.dtype, "real floating"):
        return xp.argsort(x, axis=axis, descending=descending, stable=stable)
    nan = xp.isnan(x)
    order = xp.argsort(xp.where(nan, xp.zeros_like(x), x), axis=axis, descending=descending)
    at = xp.take_along_axis(xp.astype(nan, xp.int64), order, axis=axis)
    return xp.take_along_axis(order, xp.argsort(at, axis=axis, descending=descending), axis=axis)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Nan stays nan, of the array and of a bound; mparray takes it for a small number."""
    out = xp.clip(x, min, max)
    if xp.isdtype(out.dtype, "real floating"):
        for part in (x, min, max):
            if part is not None:
                out = xp.where(xp.isnan(xp.asarray(part)), xp.nan, out)
    return out


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return xp.take_along_axis(x, argsort(x, axis=axis, descending=descending), axis=axis)


def finfo(type: Any, /) -> Any:
    """NumPy's limits of the dtype, with the precision of mpmath."""
    limits = xp.finfo(type)
    return SimpleNamespace(
        bits=limits.bits,
        eps=float(mpmath.mp.eps),
        max=float(limits.max),
        min=float(limits.min),
        smallest_normal=float(limits.smallest_normal),
        dtype=limits.dtype,
    )


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    """The discrete Fourier transform by its definition, O(n**2)."""
    dtype = xp.result_type(x.dtype, 1j)
    x = xp.moveaxis(xp.astype(x, dtype), axis, -1)
    n, m = x.shape[-1] if n is None else n, x.shape[-1]
    x = (
        x[..., :n]
        if n < m
        else xp.concat([x, xp.zeros((*x.shape[:-1], n - m), dtype=dtype)], axis=-1)
        if n > m
        else x
    )
    places = xp.arange(n)
    turns = xp.astype((places[:, None] * places) % n, dtype) / n
    waves = xp.exp(turns * (xp.acos(-xp.ones((), dtype=dtype)) * -2j))
    scale = {"backward": 1, "forward": n, "ortho": xp.sqrt(xp.asarray(n, dtype=dtype))}[
        norm or "backward"
    ]
    return xp.moveaxis(xp.matmul(x, waves) / scale, -1, axis)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """Return an MPArray unchanged, since it has no DLPack export."""
    return xp.asarray(x, copy=copy) if isinstance(x, xp.MPArray) else xp.from_dlpack(x)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Any:
    """Compute with mpmath numbers; mparray's own function computes in doubles."""
    wide = xp.result_type(start, stop, 1.0)
    start, stop = (xp.asarray(x, dtype=wide) for x in (start, stop))
    steps = xp.astype(xp.arange(num), wide) / max(num - 1 if endpoint else num, 1)
    steps = xp.reshape(steps, (num,) + (1,) * max(start.ndim, stop.ndim))
    values = start * (1 - steps) + stop * steps
    return values if dtype is None else xp.astype(values, dtype)


def logaddexp(x1: Any, x2: Any, /) -> Any:
    """Compute from the difference, so that a small sum keeps its digits."""
    dtype = xp.result_type(x1, x2)
    x1, x2 = xp.asarray(x1, dtype=dtype), xp.asarray(x2, dtype=dtype)
    larger = xp.maximum(x1, x2)
    known = xp.isfinite(larger)
    difference = xp.where(known, x1 - x2, 0.0)
    return xp.where(known, larger + xp.log1p(xp.exp(-xp.abs(difference))), larger)


def maximum(x1: Any, x2: Any, /) -> Any:
    """The maximum, also of integers, for which mparray's own function (0.2.2) fails on a nan."""
    if xp.isdtype(xp.result_type(x1, x2), "integral"):
        return xp.where(x1 > x2, x1, x2)
    return xp.maximum(x1, x2)


def minimum(x1: Any, x2: Any, /) -> Any:
    """The minimum, also of integers; see `maximum`."""
    if xp.isdtype(xp.result_type(x1, x2), "integral"):
        return xp.where(x1 < x2, x1, x2)
    return xp.minimum(x1, x2)


def real(x: Any, /) -> Any:
    """Return a real array unchanged; mparray labels it float32."""
    return xp.real(x) if xp.isdtype(x.dtype, "complex floating") else x


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The variance, also of complex numbers, which is real: mparray does not conjugate."""
    if not xp.isdtype(x.dtype, "complex floating"):
        return xp.var(x, axis=axis, correction=correction, keepdims=keepdims)
    return sum(
        xp.var(part, axis=axis, correction=correction, keepdims=keepdims)
        for part in (xp.real(x), xp.imag(x))
    )


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    return xp.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The sum of products; mparray's is None for vectors without elements."""
    return xp.sum(xp.conj(x1) * x2, axis=axis)
