"""Fourier transforms.

All are linear; those with a half spectrum on one side are linear over the real numbers only.

The adjoint of a transform is the transform in the other direction with the other norm's scaling, so
no gradient needs a scaling pass. Where `n` trimmed the input, the adjoint pads, and vice versa. A
half spectrum represents a whole spectrum that is conjugate-symmetric. Each of its elements has a
twin in the other half, except the first, and the last of an even length. Those two are real, so the
result does not depend on their imaginary parts.

A library that has only `fft.fft` gets all other transforms from these forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ..registry import About, behind_batch, linear, nondifferentiable
from .kernels import alike
from .keys import along

Shape = tuple[int, ...]

DUAL = {"backward": "forward", "forward": "backward", "ortho": "ortho", None: "forward"}
"""The norm under which the transform in the other direction is the adjoint.

It is None for the default of some libraries.
"""

INVERSE = {"fft": "ifft", "ifft": "fft"}
OPPOSITE = {**INVERSE, "rfft": "irfft", "irfft": "rfft", "hfft": "ihfft", "ihfft": "hfft"}
"""The transform over one axis in the other direction."""

# ----- Lengths -----


def _fit(xp: Any, x: Any, n: int, axis: int) -> Any:
    """Trim `x`, or pad it with zeros, to length n."""
    shape = x.shape
    m, axis = shape[axis], axis % len(shape)
    if m == n:
        return x
    if m > n:
        return x[along(axis, 0, n)]
    return xp.unindex(x, along(axis, 0, m), (*shape[:axis], n, *shape[axis + 1 :]))


def _weighted(xp: Any, half: Any, n: int, axis: int, weight: float, dtype: Any) -> Any:
    """Multiply a half spectrum of length n by `weight`, except for the elements without a twin."""
    m, ndim = half.shape[axis], len(half.shape)
    place = xp.arange(m, device=xp.device_of(half))
    alone = xp.astype((place == 0) | (2 * place == n), dtype)
    return half * alike(
        xp, xp.reshape(weight + (1 - weight) * alone, (m,) + (1,) * (ndim - 1 - axis % ndim)), half
    )


def _passes(name: str, shape: Shape, s: Any, axes: Any) -> Iterator[tuple[str, int, int]]:
    """Split a transform over several axes into transforms over one axis each.

    Returns the name, the length and the axis of each, in NumPy's order. The order matters where an
    axis is repeated. A length of -1 means the length of the axis, as without `s`.
    """
    if axes is None:
        axes = range(len(shape)) if s is None else range(len(shape) - len(s), len(shape))
    axes = tuple(a % len(shape) for a in axes)
    lengths = [shape[a] if s is None or s[i] == -1 else s[i] for i, a in enumerate(axes)]
    each = list(zip(lengths, axes, strict=True))
    if name == "irfftn":
        yield from (("ifft", n, a) for n, a in each[:-1])
        yield "irfft", 2 * (shape[axes[-1]] - 1) if s is None or s[-1] == -1 else s[-1], axes[-1]
        return
    if name == "rfftn":
        yield "rfft", *each.pop()
    yield from (("ifft" if name == "ifftn" else "fft", n, a) for n, a in reversed(each))


# ----- Adjoints -----


def one_vjp(
    xp: Any, g: Any, name: str, n: int | None, x_shape: Shape, x_dtype: Any, axis: int, norm: Any
) -> Any:
    """The adjoint of a transform over one axis.

    Half of the gradient of an element of the spectrum that rfft or ihfft returns belongs to its
    twin. An element of the half spectrum that irfft or hfft takes also gets the gradient of its
    twin.
    """
    length, dtype = g.shape[axis], g.dtype
    to_half = name in ("rfft", "ihfft")
    n = None if not to_half else x_shape[axis] if n is None else n
    g = _weighted(xp, g, n, axis, 0.5, x_dtype) if n is not None else g
    g = getattr(xp.fft, OPPOSITE[name])(g, n=n, axis=axis, norm=DUAL[norm])
    if name in ("irfft", "hfft"):
        g = _weighted(xp, g, length, axis, 2.0, dtype)
    return _fit(xp, g, x_shape[axis], axis)


def several_vjp(
    xp: Any, g: Any, name: str, x_shape: Shape, x_dtype: Any, s: Any, axes: Any, norm: Any
) -> Any:
    """The adjoint of a transform over several axes: the adjoints of its passes, the last one first.

    Over distinct axes the passes commute, and one transform undoes those without a half spectrum.
    """
    passes, shapes, shape = list(_passes(name, x_shape, s, axes)), [], list(x_shape)
    for step, n, axis in passes:
        shapes.append(tuple(shape))
        shape[axis] = n // 2 + 1 if step == "rfft" else n
    own = [(step, axis) for step, _, axis in passes if step in INVERSE]
    joined = len(own) > 1 and len({axis for _, _, axis in passes}) == len(passes)
    for (step, n, axis), before in zip(reversed(passes), reversed(shapes), strict=True):
        if step not in INVERSE or not joined:
            g = one_vjp(xp, g, step, n, before, x_dtype, axis, norm)
        elif (step, axis) == own[-1]:
            g = getattr(xp.fft, INVERSE[step] + "n")(
                g, axes=tuple(a for _, a in own), norm=DUAL[norm]
            )
            for _, a in own:
                g = _fit(xp, g, x_shape[a], a)
    return g


# ----- standard-only forms, for libraries without the function -----


def ifft(xp: Any, x: Any, n: int | None, axis: int, norm: Any) -> Any:
    """The conjugate of the transform of the conjugate."""
    return xp.conj(xp.fft.fft(xp.conj(x), n=n, axis=axis, norm=DUAL[norm]))


def rfft(xp: Any, x: Any, n: int | None, axis: int, norm: Any) -> Any:
    """The first half of the whole spectrum."""
    n = x.shape[axis] if n is None else n
    whole = xp.fft.fft(xp.astype(x, xp.result_type(x.dtype, 1j)), n=n, axis=axis, norm=norm)
    return whole[along(axis % len(x.shape), 0, n // 2 + 1)]


def irfft(xp: Any, x: Any, n: int | None, axis: int, norm: Any) -> Any:
    """The real part of the transform of the whole spectrum: the half and its mirror image."""
    n, ndim = 2 * (x.shape[axis] - 1) if n is None else n, len(x.shape)
    if n < 1:
        raise ValueError(f"fft.irfft: the result would have length {n}; give n, at least 1.")
    half = _fit(xp, x, n // 2 + 1, axis)
    twins = xp.conj(xp.flip(half[along(axis % ndim, 1, (n + 1) // 2)], axis=axis))
    return xp.real(xp.fft.ifft(xp.concat([half, twins], axis=axis), axis=axis, norm=norm))


def hfft(xp: Any, x: Any, n: int | None, axis: int, norm: Any) -> Any:
    """irfft with the opposite sign of the exponent and the opposite norm."""
    return xp.fft.irfft(xp.conj(x), n=n, axis=axis, norm=DUAL[norm])


def ihfft(xp: Any, x: Any, n: int | None, axis: int, norm: Any) -> Any:
    """rfft with the opposite sign of the exponent and the opposite norm."""
    return xp.conj(xp.fft.rfft(x, n=n, axis=axis, norm=DUAL[norm]))


def several(name: str, xp: Any, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    """Transform one axis after the other."""
    for step, n, axis in _passes(name, x.shape, s, axes):
        x = getattr(xp.fft, step)(x, n=n, axis=axis, norm=norm)
    return x


def over_nothing(x: Any, s: Any, axes: Any, norm: Any) -> bool | str:
    """Whether there are no axes to transform, so that the result is the argument itself."""
    over = axes if axes is not None else s if s is not None else x.shape
    return len(over) == 0 and "same"


def shift(forth: bool, xp: Any, x: Any, axes: Any) -> Any:
    """Exchange the two halves of an axis; for an odd length, `forth` says which half is longer."""
    if axes is None:
        axes = range(len(x.shape))
    axes = (axes,) if hasattr(axes, "__index__") else tuple(axes)
    halves = (x.shape[a] // 2 for a in axes)
    return xp.roll(x, tuple(n if forth else -n for n in halves), axis=axes)


def frequencies(half: bool, xp: Any, n: int, d: float, dtype: Any, device: Any) -> Any:
    """The frequencies in cycles per unit of the sample spacing d.

    The nonnegative half comes first; a whole spectrum then has the negative frequencies.
    """
    place = xp.arange(n // 2 + 1 if half else n, device=device)
    if not half:
        place = xp.where(place < (n + 1) // 2, place, place - n)
    return xp.astype(place, xp.asarray(1.0, dtype=dtype, device=device).dtype) / n / d


# ----- Declarations -----

_OF_HALF = About(example="mg.asarray([3.0 + 0j, -1.0])")


def _over_one(name: str, form: Any, doc: str, about: About | None = None) -> None:
    """Declare a transform over one axis, with its form for libraries without it."""
    linear(
        f"fft.{name}(x, /, *, n=None, axis=-1, norm='backward')",
        batching="axis",
        forward=form and {"*": form},
        x=lambda xp, g, n, x_shape, x_dtype, axis, norm: one_vjp(
            xp, g, name, n, x_shape, x_dtype, axis, norm
        ),
        doc=doc,
        about=about,
    )


# fmt: off
_over_one("fft", None, "The discrete Fourier transform along an axis.",
          About(gradient="n ifft(g), for norm='backward'"))
_over_one("ifft", ifft, "The inverse of fft along an axis.",
          About(gradient="fft(g) / n, for norm='backward'"))
_over_one("rfft", rfft, "The first half of the spectrum of a real signal.")
_over_one("irfft", irfft,
          "The inverse of rfft: a real signal from half of its spectrum. The imaginary parts of "
          "elements without a twin are ignored.", _OF_HALF)
_over_one("hfft", hfft,
          "The real spectrum of a conjugate-symmetric signal, given as the first half of its "
          "values.", _OF_HALF)
_over_one("ihfft", ihfft, "The inverse of hfft: the first half of a conjugate-symmetric signal.")
# fmt: on


def _over_several(name: str, doc: str, about: About | None = None) -> None:
    """Declare a transform over several axes."""

    def batched(xp: Any, x: Any, s: Any, axes: Any, norm: Any) -> Any:
        # without `axes`: as many last axes as `s` has lengths, or all axes
        ndim = len(x.shape) - 1
        axes = range(-(ndim if s is None else len(s)), 0) if axes is None else axes
        return getattr(xp.fft, name)(x, s=s, axes=behind_batch(tuple(axes), ndim), norm=norm)

    linear(
        f"fft.{name}(x, /, *, s=None, axes=None, norm='backward')",
        batching=batched,
        doc=doc,
        view=over_nothing if name in ("fftn", "ifftn") else False,
        forward={"*": partial(several, name)},
        x=lambda xp, g, x_shape, x_dtype, s, axes, norm: several_vjp(
            xp, g, name, x_shape, x_dtype, s, axes, norm
        ),
        about=about,
    )


_over_several("fftn", "The discrete Fourier transform over several axes, or all.")
_over_several("ifftn", "The inverse of fftn.")
_over_several(
    "rfftn", "The spectrum of a real array over several axes, with half of the last axis."
)
_over_several("irfftn", "The inverse of rfftn: a real array from half of its spectrum.", _OF_HALF)

# fmt: off
linear("fft.fftshift(x, /, *, axes=None)", batching="axis",
       doc="Move the zero frequency to the middle.",
       forward={"*": partial(shift, True)},
       x=lambda xp, g, axes: xp.fft.ifftshift(g, axes=axes),
       about=About(gradient="ifftshift(g)"))
linear("fft.ifftshift(x, /, *, axes=None)", batching="axis", doc="The inverse of fftshift.",
       forward={"*": partial(shift, False)},
       x=lambda xp, g, axes: xp.fft.fftshift(g, axes=axes),
       about=About(gradient="fftshift(g)"))
# fmt: on

for _name, _what in (("fftfreq", "a spectrum"), ("rfftfreq", "half a spectrum")):
    nondifferentiable(
        f"fft.{_name}(n: plain, /, *, d=1.0, dtype=None, device=None)",
        doc=f"The frequencies of the elements of {_what}.",
        forward={"*": partial(frequencies, _name == "rfftfreq")},
        about=About(example="4"),
    )
