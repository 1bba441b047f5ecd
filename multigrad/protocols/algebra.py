"""NumPy's products, linear algebra, Fourier transforms and other formulas.

They use the functions of the standard.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import index
from typing import Any

import numpy as np

from ..backends.raw import arrives
from ..core.level import Layer
from ..ops.keys import along, place
from ..registry import OPS
from .reductions import cast, floats
from .table import counterpart, counterparts
from .values import (
    NOTHING,
    arrayed,
    converted,
    finish,
    is_given,
    library_of_all,
    of,
    operands,
    refuse,
)

# ----- products -----


@counterpart("tensordot", "linalg.tensordot")
def tensordot(a: Any, b: Any, /, axes: Any = 2) -> Any:
    a, b = operands("numpy.tensordot", a, b)
    if np.ndim(axes) == 0:
        return of.tensordot(a, b, axes=index(axes))
    first, second = ([int(i) for i in (pair if np.ndim(pair) else (pair,))] for pair in axes)
    return of.tensordot(a, b, axes=(first, second))


@counterpart("vdot")
def vdot(a: Any, b: Any, /) -> Any:
    a, b = operands("numpy.vdot", a, b)
    return of.vecdot(of.reshape(a, (-1,)), of.reshape(b, (-1,)))


@counterpart("linalg.multi_dot")
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product from the left. The order is not optimized."""
    parts = operands("numpy.linalg.multi_dot", *arrays)
    for i, x in enumerate(parts):
        if len(x.shape) not in ((1, 2) if i in (0, len(parts) - 1) else (2,)):
            raise ValueError(
                f"numpy.linalg.multi_dot: operand {i} has {len(x.shape)} axes; it takes "
                "matrices, and vectors at the ends."
            )
    return finish("linalg.multi_dot", reduce(of.matmul, parts), out)


# ----- linear algebra -----


def _direct(name: str) -> Callable[..., Any]:
    """The function of the standard, which has NumPy's arguments."""

    def function(a: Any, /, *args: Any, **kwargs: Any) -> Any:
        arranges = name in ("diagonal", "trace", "matrix_transpose")
        return getattr(of.linalg, name)(a if arranges else floats(a), *args, **kwargs)

    return function


DIRECT = (
    "det",
    "diagonal",
    "eig",
    "eigvals",
    "inv",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "slogdet",
    "svdvals",
    "trace",
    "vector_norm",
)
counterparts(**{f"linalg.{name}": _direct(name) for name in DIRECT})
counterpart("linalg.cholesky")(
    lambda a, /, *, upper=False: of.linalg.cholesky(
        _triangle(a, "U" if upper else "L"), upper=upper
    )
)
counterpart("linalg.eigh")(lambda a, UPLO="L": of.linalg.eigh(_triangle(a, UPLO)))
counterpart("linalg.eigvalsh")(lambda a, UPLO="L": of.linalg.eigvalsh(_triangle(a, UPLO)))
counterpart("linalg.svd")(
    lambda a, full_matrices=True, compute_uv=True, hermitian=False: (
        of.linalg.svd(floats(a), full_matrices=full_matrices)
        if compute_uv
        else of.linalg.svdvals(floats(a))
    )
)


@counterpart("linalg.solve")
def solve(a: Any, b: Any) -> Any:
    parts = operands("numpy.linalg.solve", a, b)
    return of.linalg.solve(*(floats(x) if isinstance(x, Layer) else x for x in parts))


def _triangle(a: Any, UPLO: str) -> Any:
    """The array with the triangle that NumPy reads below the diagonal.

    The operations read that one, and are differentiated as functions of the Hermitian part.
    """
    a = floats(a)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    if UPLO.upper() == "L":
        return a
    other = of.matrix_transpose(a)
    return of.conj(other) if a._elem.complex else other


@counterpart("linalg.qr")
def qr(a: Any, mode: str = "reduced") -> Any:
    a = floats(a)
    if mode == "r":
        return of.linalg.qr(a, mode="reduced")[1]
    refuse("numpy.linalg.qr", mode=None if mode in ("reduced", "complete") else mode)
    return of.linalg.qr(a, mode=mode)


@counterpart("linalg.pinv")
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NOTHING) -> Any:
    tolerance = rtol if rtol is not NOTHING else 1e-15 if rcond is None else rcond
    return of.linalg.pinv(floats(a), rtol=tolerance)


@counterpart("linalg.matrix_rank")
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    A = floats(A)
    if tol is None:
        return of.linalg.matrix_rank(A, rtol=rtol)
    xp = A._elem.library.bound
    limit = arrayed(tol, A._elem.library)[..., None] if np.ndim(tol) else tol
    return of.sum(of.astype(of.linalg.svdvals(A.detach()) > limit, xp.int64), axis=-1)


@counterpart("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = floats(x)
    options = {"keepdims": bool(keepdims)}
    length = 2 if ord is None else ord
    if axis is None and (ord is None or len(x.shape) == 1):
        flat = x if len(x.shape) == 1 else of.reshape(x, (-1,))
        result = of.linalg.vector_norm(flat, ord=length)
        return of.reshape(result, (1,) * len(x.shape)) if keepdims else result
    if axis is None:
        if len(x.shape) != 2:
            raise ValueError("Improper number of dimensions to norm.")
        return of.linalg.matrix_norm(x, ord=ord, **options)
    if np.ndim(axis) == 0:
        return of.linalg.vector_norm(x, axis=int(axis), ord=length, **options)
    places = [place("numpy.linalg.norm", "axis", i, len(x.shape)) for i in axis]
    if len(places) == 1:
        return of.linalg.vector_norm(x, axis=places[0], ord=length, **options)
    if len(places) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if places[0] == places[1]:
        raise ValueError("Duplicate axes given.")
    if ord is None:
        return of.linalg.vector_norm(x, axis=tuple(places), **options)
    result = of.linalg.matrix_norm(of.moveaxis(x, tuple(places), (-2, -1)), ord=ord)
    return of.expand_dims(result, axis=tuple(sorted(places))) if keepdims else result


@counterpart("linalg.cond")
def cond(x: Any, p: Any = None) -> Any:
    x = floats(x)
    if p is None or p in (2, -2):
        s = of.linalg.svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return of.linalg.matrix_norm(x, ord=p) * of.linalg.matrix_norm(of.linalg.inv(x), ord=p)


# ----- Fourier transforms -----


def _transformed(name: str, a: Any, norm: Any, out: Any, **options: Any) -> Any:
    """The transform of an array.

    Integers become floats. Real arrays become complex ones for transforms of complex arrays.
    """
    a = floats(a)
    if not a._elem.complex and name not in ("rfft", "ihfft", "rfftn"):
        xp = a._elem.library.bound
        a = of.astype(a, xp.complex64 if str(a.dtype).endswith("float32") else xp.complex128)
    result = getattr(of.fft, name)(a, norm=norm or "backward", **options)
    return finish(f"fft.{name}", result, out)


def _transform(name: str) -> Callable[..., Any]:
    def function(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        return _transformed(name, a, norm, out, n=n, axis=axis)

    return function


def _several(name: str, axes_: tuple[int, int] | None) -> Callable[..., Any]:
    def function(
        a: Any, s: Any = None, axes: Any = axes_, norm: Any = None, out: Any = None
    ) -> Any:
        return _transformed(name, a, norm, out, s=s, axes=axes)

    return function


for _name in ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft"):
    counterpart(f"fft.{_name}")(_transform(_name))
for _name in ("fft", "ifft", "irfft", "rfft"):
    counterpart(f"fft.{_name}n")(_several(f"{_name}n", None))
    counterpart(f"fft.{_name}2")(_several(f"{_name}n", (-2, -1)))
counterpart("fft.fftshift")(lambda x, axes=None: of.fft.fftshift(x, axes=axes))
counterpart("fft.ifftshift")(lambda x, axes=None: of.fft.ifftshift(x, axes=axes))


# ----- formulas -----


@counterpart("round", "around")
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    scale = 10.0 ** abs(decimals)
    if not a._elem.floating and decimals > 0:
        return finish("round", a.clone(), out)
    if decimals > 0:
        result = of.round(a * scale) / scale
    else:
        result = of.round(a / scale) * scale if decimals else of.round(a)
    return finish("round", result if a._elem.floating else cast(result, a.dtype), out)


counterpart("fix")(lambda x, out=None: finish("fix", of.trunc(x), out))


@counterpart("trapezoid", "trapz")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    library = library_of_all("numpy.trapezoid", y, x, dx)
    y = arrayed(y, library)
    axis = place("numpy.trapezoid", "axis", axis, len(y.shape))
    step = dx
    if x is not None:
        x = arrayed(x, library)
        step = of.diff(x, axis=axis if len(x.shape) > 1 else 0)
        if len(x.shape) == 1:
            step = of.reshape(step, (-1, *(1,) * (len(y.shape) - axis - 1)))
    pairs = y[along(axis, 1, None)] + y[along(axis, None, -1)]
    return of.sum(step * pairs / 2.0, axis=axis)


@counterpart("diff")
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOTHING, append: Any = NOTHING) -> Any:
    library = library_of_all("numpy.diff", a, prepend, append)
    a = arrayed(a, library)
    axis = place("numpy.diff", "axis", axis, len(a.shape))
    shape = tuple(1 if i == axis else m for i, m in enumerate(a.shape))
    ends = (arrayed(x, library) if is_given(x) else None for x in (prepend, append))
    before, after = (x if x is None or x.shape else of.broadcast_to(x, shape) for x in ends)
    return of.diff(a, n=n, axis=axis, prepend=before, append=after)


@counterpart("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    library = library_of_all("numpy.ediff1d", ary, to_end, to_begin)
    flat = of.reshape(arrayed(ary, library), (-1,))
    ends = [
        None if x is None else of.reshape(arrayed(x, library), (-1,)) for x in (to_begin, to_end)
    ]
    parts = [x for x in (ends[0], flat[1:] - flat[:-1], ends[1]) if x is not None]
    return parts[0] if len(parts) == 1 else of.concat(parts)


@counterpart("correlate")
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = operands("numpy.correlate", a, v)
    # The shorter array slides along the longer one, which decides where 'same' begins. The lags
    # come in reverse order.
    if v.shape > a.shape:
        return of.flip(of.convolve(of.conj(v), of.flip(a), mode))
    return of.convolve(a, of.conj(of.flip(v)), mode)


@counterpart("polyval")
def polyval(p: Any, x: Any) -> Any:
    p, x = operands("numpy.polyval", p, x)
    value = x * 0
    for i in range(p.shape[0]):
        value = value * x + p[i]
    return value


@counterpart("vander")
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    if len(x.shape) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    n = x.shape[0] if N is None else N
    if n <= 0:
        return of.reshape(x[:0], (x.shape[0], 0))
    powers = range(n) if increasing else range(n - 1, -1, -1)
    return of.stack([x**k for k in powers], axis=-1)


@counterpart("unwrap")
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    """NumPy's unwrap. It adds whole periods, which are constant almost everywhere."""
    whole = isinstance(period, int) and not p._elem.floating
    p = p if whole else floats(p)
    axis = place("numpy.unwrap", "axis", axis, len(p.shape))
    step = of.diff(p.detach(), axis=axis)
    half = period // 2 if whole else period / 2
    low = -half
    near = (step - low) % period + low
    if not whole or period % 2 == 0:  # a step of half a period keeps its sign
        near = of.where((near == low) & (step > 0), half, near)
    jumps = of.where(
        of.abs(step) < (half if discont is None else max(discont, half)), 0, near - step
    )
    later = p[along(axis, 1, None)] + of.cumulative_sum(jumps, axis=axis)
    return of.concat([p[along(axis, 0, 1)], later], axis=axis)


@counterpart("i0")
def i0(x: Any) -> Any:
    """It is the operation of the plugin multigrad-special. Without that it takes values."""
    if "special.i0" in OPS or arrives("special.i0"):
        return of.special.i0(x)
    refusal = (
        "Can't call numpy.i0() on Tensor that requires grad: its derivative comes with the plugin "
        "multigrad-special. Install that, or use tensor.detach() instead."
    )
    return np.i0(converted(x, refusal))
