"""A backend of scipy.fft for Tensors, differentiable on every library.

    with scipy.fft.set_backend(multigrad.clients.scipy_fft):
        y = scipy.fft.dct(x, norm="ortho")

Sine and cosine transforms of the types 1 to 4 are Fourier transforms of the array, extended by
zeros or by its mirror image. Arguments and values are those of SciPy. Functions without a transform
in the standard (hfft2, ihfftn, fht, ...), and arguments that are not Tensors, are left to the next
backend, which is SciPy itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from inspect import signature
from typing import Any

from ..core.level import Layer

__ua_domain__ = "numpy.scipy.fft"


_signature = cache(signature)  # a look at the function takes longer than some transforms


def __ua_function__(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Carry out a function of scipy.fft, by the protocol of uarray."""
    function = _FUNCTIONS.get(method.__name__)
    x = args[0] if args else kwargs.get("x")
    if function is None or not isinstance(x, Layer):
        return NotImplemented
    try:
        call = _signature(method).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{method.__name__}() {error}") from None
    call.apply_defaults()
    if call.arguments.get("plan") is not None:
        raise NotImplementedError(f"{method.__name__}: multigrad takes no plan")
    without_meaning = "overwrite_x", "plan", "workers"
    return function(**{k: v for k, v in call.arguments.items() if k not in without_meaning})


# ----- Fourier transforms -----


def _floating(x: Any, complex_: bool = False) -> tuple[Any, Any]:
    """The namespace, and the array in a floating dtype.

    Integers become float64, as in SciPy. With `complex_` the dtype is complex.
    """
    xp = x.__array_namespace__()
    if not xp.isdtype(x.dtype, ("real floating", "complex floating")):
        x = xp.astype(x, xp.float64)
    if complex_ and not xp.isdtype(x.dtype, "complex floating"):
        x = xp.astype(x, xp.complex64 if x.dtype == xp.float32 else xp.complex128)
    return xp, x


def _transformed(name: str, complex_: bool, /, x: Any, norm: str | None, **along: Any) -> Any:
    xp, x = _floating(x, complex_)
    return getattr(xp.fft, name)(x, **along, norm=norm or "backward")


def _transformed_several(name: str, complex_: bool, /, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    s, axes = _several(s), _several(axes)
    if s is not None and axes is None:
        axes = tuple(range(-len(s), 0))
    return _transformed(name, complex_, x, norm, s=s, axes=axes)


def _several(x: Sequence[int] | int | None) -> tuple[int, ...] | None:
    return None if x is None else (x,) if isinstance(x, int) else tuple(x)


# ----- Transforms of cosines and sines -----


def _phases(xp: Any, like: Any, start: float, step: float, n: int) -> Any:
    """exp(-i (start + step k)) for k < n, in the complex dtype and on the device of `like`."""
    angles = xp.arange(n, dtype=xp.float64, device=like.device) * step + start
    return xp.astype(xp.cos(angles) - 1j * xp.sin(angles), like.dtype)


def _zeros(xp: Any, x: Any, n: int) -> Any:
    return xp.zeros((*x.shape[:-1], n), dtype=x.dtype, device=x.device)


def _fourier(xp: Any, parts: Sequence[Any]) -> Any:
    return xp.fft.fft(xp.concat(parts, axis=-1))


def _scaled_end(xp: Any, x: Any, first: float, last: float) -> Any:
    """The last axis with its first and its last element multiplied by numbers.

    If there is one element, one of the numbers is 1.
    """
    n = x.shape[-1]
    if first == last == 1.0:
        return x
    place = xp.arange(n, device=x.device)
    return x * (
        1.0
        + xp.astype(place == 0, x.dtype) * (first - 1.0)
        + xp.astype(place == n - 1, x.dtype) * (last - 1.0)
    )


def _cosines(xp: Any, x: Any, kind: int) -> Any:
    n = x.shape[-1]
    z = _floating(x, True)[1]
    step = math.pi / (2 * n)
    if kind == 1:
        out = _fourier(xp, [z, xp.flip(z[..., 1:-1], axis=-1)])[..., :n]
    elif kind == 2:
        out = _fourier(xp, [z, xp.flip(z, axis=-1)])[..., :n] * _phases(xp, z, 0.0, step, n)
    else:  # frequencies between those of the Fourier transform of twice the length
        z = 2 * z * _phases(xp, z, 0.0, step, n)
        if kind == 3:  # the element that is its own mirror image counts once
            z = _scaled_end(xp, z, 0.5, 1.0)
        out = _fourier(xp, [z, _zeros(xp, z, n)])[..., :n]
        if kind == 4:
            out = out * _phases(xp, z, step / 2, step, n)
    return xp.real(out)


def _sines(xp: Any, x: Any, kind: int) -> Any:
    """Types 2 to 4 are cosine transforms with alternating signs and in the opposite order."""
    n = x.shape[-1]
    if kind == 1:
        z = _floating(x, True)[1]
        zero = _zeros(xp, z, 1)
        return -xp.imag(_fourier(xp, [zero, z, zero, -xp.flip(z, axis=-1)])[..., 1 : n + 1])
    signs = xp.astype(1 - 2 * (xp.arange(n, device=x.device) % 2), x.dtype)
    if kind == 2:
        return xp.flip(_cosines(xp, x * signs, kind), axis=-1)
    return _cosines(xp, xp.flip(x, axis=-1), kind) * signs


INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
ROOT = math.sqrt(2.0)


def _trigonometric(
    name: str,
    cosine: bool,
    inverse: bool,
    /,
    x: Any,
    type: int,
    n: int | None,
    axis: int,
    norm: str | None,
    orthogonalize: bool | None,
) -> Any:
    """One transform along one axis."""
    xp, x = _floating(x)
    if type not in INVERSE:
        raise ValueError(f"{name}: type must be 1, 2, 3 or 4, not {type!r}")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'{name}: norm must be "backward", "ortho" or "forward", not {norm!r}')
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"{name}: axis {axis} is out of bounds for an array of {x.ndim} dimensions"
        )
    x = _of_length(xp, xp.moveaxis(x, axis, -1), x.shape[axis] if n is None else n, name)
    size = x.shape[-1]
    if cosine and type == 1 and size < 2:
        raise ValueError(f"{name}: type 1 is defined for two elements or more")
    kind = INVERSE[type] if inverse else type
    ends = orthogonalize if orthogonalize is not None else norm == "ortho"
    out = (_with_ends if ends else _both)(xp, x, cosine, kind)
    length = 2 * (size - 1 if cosine and type == 1 else size + 1 if type == 1 else size)
    divided = norm == "ortho" or (norm == "forward") is not inverse
    if divided:
        out = out * (1 / math.sqrt(length) if norm == "ortho" else 1 / length)
    return xp.moveaxis(out, -1, axis)


def _both(xp: Any, x: Any, cosine: bool, kind: int) -> Any:
    """The transform; for complex arrays, of the real and the imaginary part separately."""
    transform = _cosines if cosine else _sines
    if not xp.isdtype(x.dtype, "complex floating"):
        return transform(xp, x, kind)
    return transform(xp, xp.real(x), kind) + 1j * transform(xp, xp.imag(x), kind)


def _with_ends(xp: Any, x: Any, cosine: bool, kind: int) -> Any:
    """The transform in the form of an orthogonal matrix, up to a factor.

    Elements that are their own mirror images are scaled.
    """
    if kind == 3 or (kind == 1 and cosine):
        x = _scaled_end(xp, x, ROOT if cosine else 1.0, 1.0 if cosine and kind == 3 else ROOT)
    out = _both(xp, x, cosine, kind)
    if kind == 2 or (kind == 1 and cosine):
        out = _scaled_end(
            xp, out, 1 / ROOT if cosine else 1.0, 1.0 if cosine and kind == 2 else 1 / ROOT
        )
    return out


def _of_length(xp: Any, x: Any, n: int, name: str) -> Any:
    """The last axis, cut or padded with zeros to this length."""
    if n < 1:
        raise ValueError(f"{name}: invalid number of data points ({n}) specified")
    size = x.shape[-1]
    if size == n:
        return x
    return x[..., :n] if size > n else xp.concat([x, _zeros(xp, x, n - size)], axis=-1)


def _trigonometric_several(
    name: str, cosine: bool, inverse: bool, /, x: Any, s: Any, axes: Any, **options: Any
) -> Any:
    lengths, along = _several(s), _several(axes)
    if along is None:
        along = tuple(range(x.ndim) if lengths is None else range(-len(lengths), 0))
    if lengths is not None and len(lengths) != len(along):
        raise ValueError(
            f"{name}: when given, axes and shape arguments have to be of the same length"
        )
    if len({axis % x.ndim for axis in along}) < len(along):
        raise ValueError(f"{name}: all axes must be unique")
    if not along:
        return _floating(x)[1]
    for i, axis in enumerate(along):
        n = None if lengths is None or lengths[i] in (None, -1) else lengths[i]
        x = _trigonometric(name, cosine, inverse, x, n=n, axis=axis, **options)
    return x


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: partial(_transformed, name, name not in ("rfft", "ihfft"))
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    **{
        f"{name}{end}": partial(_transformed_several, f"{name}n", name != "rfft")
        for name in ("fft", "ifft", "rfft", "irfft")
        for end in ("2", "n")
    },
    **{
        f"{i}{name}{end}": partial(function, f"{i}{name}{end}", name == "dct", i == "i")
        for name in ("dct", "dst")
        for i in ("", "i")
        for end, function in (("", _trigonometric), ("n", _trigonometric_several))
    },
}
