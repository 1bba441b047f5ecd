"""Samples of Fourier transforms.

If the standard requires complex values, all samples are complex: some libraries accept nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..sample import OWN_DEVICE, Draw, DType, Sample

REAL = ("rfft", "ihfft", "rfftn")
"""The transforms of real values."""

HALF = ("irfft", "hfft")
"""The transforms of half a spectrum, or half a signal, to real values."""


def one_axis(name: str, draw: Draw) -> Iterator[Sample]:
    make = draw.real if name in REAL else draw.complex
    padded, trimmed = (9, 3) if name in HALF else (6, 3)  # lengths of the whole signal
    yield Sample("even", make(4))
    yield Sample("odd", make(5), n=9 if name in HALF else None)
    yield Sample("batch", make(2, 3))
    yield Sample("axis", make(4, 2), axis=0, norm="forward")
    yield Sample("middle axis", make(2, 3, 2), axis=-2, norm="ortho")
    yield Sample("padded", make(2, 4), n=padded, norm="ortho")
    yield Sample("trimmed", make(2, 5), n=trimmed)
    yield Sample("trimmed axis", make(5, 2), n=trimmed + 1, axis=-2, norm="ortho")
    yield Sample("one", make(3), n=1)
    yield Sample("of length 1", make(2, 1), n=1 if name in HALF else None)
    yield Sample("empty batch", make(0, 4))


def several_axes(name: str, draw: Draw) -> Iterator[Sample]:
    make = draw.real if name in REAL else draw.complex
    yield Sample("all", make(2, 3))
    yield Sample("axes", make(2, 3, 4), axes=(0, 2))
    yield Sample("negative axes", make(2, 3, 4), axes=(-1, -3), norm="ortho")
    yield Sample("forward", make(3, 2, 2), norm="forward")
    yield Sample("padded", make(2, 3), s=(3, 7), axes=(0, 1))
    yield Sample("trimmed", make(3, 4, 4), s=(2, 3), axes=(2, 1), norm="forward")
    yield Sample("as it is", make(2, 3), s=(4, -1) if name == "rfftn" else (-1, 5), axes=(0, 1))
    last = lambda x, s, axes, norm: getattr(np.fft, name)(x, s, (-2, -1), norm)
    # NumPy deprecates lengths without axes
    yield Sample("last axes", make(2, 3, 2), s=(2, 3), reference=last)
    yield Sample("lengths 1", make(2, 3), s=(1, 1), axes=(0, 1))
    yield Sample("empty batch", make(0, 2, 3), axes=(1, 2))
    yield Sample("repeated axis", make(4, 2), axes=(0, 0))


def shifted(draw: Draw) -> Iterator[Sample]:
    yield Sample("odd", draw.real(5))
    yield Sample("complex", draw.complex(4))
    yield Sample("all axes", draw.real(3, 4))
    yield Sample("axis", draw.complex(3, 2), axes=0)
    yield Sample("axes", draw.real(3, 2, 5), axes=(-1, 0))
    yield Sample("empty", draw.real(0, 3))


def frequencies(draw: Draw) -> Iterator[Sample]:
    yield Sample("even", 6)
    yield Sample("odd", 5, d=0.25)
    yield Sample("one", 1)
    yield Sample("dtype", 4, dtype=DType("float32"))
    yield Sample("device", 4, device=OWN_DEVICE)


def samples() -> dict[str, Any]:
    """Return the generators of this chapter, by operation."""
    table: dict[str, Any] = dict.fromkeys(("fft.fftshift", "fft.ifftshift"), shifted)
    table |= dict.fromkeys(("fft.fftfreq", "fft.rfftfreq"), frequencies)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        table[f"fft.{name}"] = lambda draw, name=name: one_axis(name, draw)
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        table[f"fft.{name}"] = lambda draw, name=name: several_axes(name, draw)
    return table
