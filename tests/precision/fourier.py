"""The discrete Fourier transforms by their definition, on object arrays: sums, not fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp

Scale = dict[Any, Callable[[int], Any]]

FORWARD: Scale = {
    None: lambda n: mp.one,
    "backward": lambda n: mp.one,
    "ortho": lambda n: 1 / mp.sqrt(n),
    "forward": lambda n: mp.one / n,
}
INVERSE: Scale = {
    None: FORWARD["forward"],
    "backward": FORWARD["forward"],
    "ortho": FORWARD["ortho"],
    "forward": FORWARD["backward"],
}


def _resized(x: Any, n: int, axis: int) -> Any:
    """Cut off or filled up with zeros."""
    x = np.moveaxis(x, axis, -1)[..., :n]
    zeros = np.empty((*x.shape[:-1], n - x.shape[-1]), dtype=object)
    zeros.fill(mp.zero)
    return np.moveaxis(np.concatenate([x, zeros], axis=-1), -1, axis)


def _transform(x: Any, n: int, axis: int, sign: int, scale: Any) -> Any:
    """The sums over j of exp(sign 2 pi i j k / n) x_j."""
    x = np.moveaxis(_resized(x, n, axis), axis, -1)
    waves = np.asarray(
        [[mp.expjpi(sign * mp.mpf(2 * (j * k % n)) / n) for k in range(n)] for j in range(n)],
        dtype=object,
    )
    return np.moveaxis(np.asarray(x @ waves, dtype=object) * scale, -1, axis)


def _half(x: Any, n: int, axis: int) -> Any:
    return np.moveaxis(np.moveaxis(x, axis, -1)[..., : n // 2 + 1], -1, axis)


def _whole(x: Any, n: int, axis: int) -> Any:
    """All n values of a spectrum that has conjugate halves, from the first half; the imaginary
    parts of its ends do not count.
    """
    x = np.moveaxis(_resized(x, n // 2 + 1, axis), axis, -1).copy()
    conj = np.frompyfunc(mp.conj, 1, 1)
    for k in {0, *([n // 2] if n % 2 == 0 else [])}:
        x[..., k] = (x[..., k] + conj(x[..., k])) / 2
    return np.moveaxis(
        np.concatenate([x, conj(x[..., 1 : (n + 1) // 2][..., ::-1])], axis=-1), -1, axis
    )


def _real(x: Any) -> Any:
    return np.asarray(np.frompyfunc(mp.re, 1, 1)(x), dtype=object)


def _along(sign: int, scale: Scale, of_half: bool = False, to_half: bool = False) -> Any:
    """A transform along one axis; of half a spectrum to real values, or to half a spectrum."""

    def function(x: Any, n: Any, axis: int, norm: Any, _: Any = None) -> Any:
        if n is None:
            n = 2 * (x.shape[axis] - 1) if of_half else x.shape[axis]
        x = _whole(x, n, axis) if of_half else x
        found = _transform(x, n, axis, sign, scale[norm](n))
        return _half(found, n, axis) if to_half else _real(found) if of_half else found

    return function


fft, ifft = _along(-1, FORWARD), _along(1, INVERSE)
rfft, ihfft = _along(-1, FORWARD, to_half=True), _along(1, INVERSE, to_half=True)
irfft, hfft = _along(1, INVERSE, of_half=True), _along(-1, FORWARD, of_half=True)


def _several(one: Any, last: Any = None) -> Any:
    """A transform over several axes: `last` over the last of them, first or at the end as its kind
    demands, `one` over the others.
    """

    def function(x: Any, s: Any, axes: Any, norm: Any, _: Any) -> Any:
        axes = tuple(range(x.ndim))[x.ndim - len(s or x.shape) :] if axes is None else tuple(axes)
        lengths = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
        # as it was, where an axis is repeated
        steps = [
            (one, x.shape[a] if n is None else n, a) for n, a in zip(lengths, axes, strict=True)
        ]
        if last is not None:
            steps[-1] = (last, lengths[-1], axes[-1])
            steps = steps[::-1] if last is rfft else steps
        for f, n, axis in steps:
            x = f(x, n, axis, norm)
        return x

    return function


def _shift(x: Any, axes: Any, sign: int) -> Any:
    axes = (
        tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    )
    return np.roll(x, [sign * (x.shape[a] // 2) for a in axes], axes)


FUNCTIONS: dict[str, Any] = {
    "fft.fft": fft,
    "fft.ifft": ifft,
    "fft.rfft": rfft,
    "fft.irfft": irfft,
    "fft.hfft": hfft,
    "fft.ihfft": ihfft,
    "fft.fftn": _several(fft),
    "fft.ifftn": _several(ifft),
    "fft.rfftn": _several(fft, rfft),
    "fft.irfftn": _several(ifft, irfft),
    "fft.fftshift": lambda x, axes, _: _shift(x, axes, 1),
    "fft.ifftshift": lambda x, axes, _: _shift(x, axes, -1),
}
