"""numpy.fft for boxes as well as for raw arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.fft as raw

import multigrad as mg

from .table import wrap_namespace


def _of_one_axis(name: str) -> Callable[..., Any]:
    op = getattr(mg.fft, name)

    def transformed(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
        return op(_made_for(name, a), n=n, axis=axis, norm=norm or "backward")

    return transformed


def _of_axes(name: str, fixed: Any) -> Callable[..., Any]:
    op = getattr(mg.fft, name)

    def transformed(a: Any, s: Any = None, axes: Any = fixed, norm: str | None = None, out: Any = None) -> Any:
        if s is not None and axes is None:
            axes = tuple(range(a.ndim))[-len(s) :]
        axes = None if axes is None else tuple(axes)
        if axes is not None and len({i % a.ndim for i in axes}) < len(axes):
            raise NotImplementedError(f"multigrad_autograd.numpy.fft: axes {axes} repeat an axis, which has no derivative here")
        return op(_made_for(name, a), s=None if s is None else tuple(s), axes=axes, norm=norm or "backward")

    return transformed


def _made_for(name: str, x: Any) -> Any:
    """`x` in the dtype that the transform takes."""
    if name.startswith(("rfft", "ihfft")):
        return x
    kind = np.dtype(x.dtype)
    return x if kind.kind == "c" else mg.astype(x, np.result_type(kind, np.complex64))


def _shifted(name: str) -> Callable[..., Any]:
    op = getattr(mg.fft, name)
    return lambda x, axes=None: op(x, axes=tuple(axes) if isinstance(axes, list) else axes)


_BOXED: dict[str, Any] = {name: _of_one_axis(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")}
_BOXED |= {name: _of_axes(name, None) for name in ("fftn", "ifftn", "rfftn", "irfftn")}
_BOXED |= {name: _of_axes(name[:-1] + "n", (-2, -1)) for name in ("fft2", "ifft2", "rfft2", "irfft2")}
_BOXED |= {name: _shifted(name) for name in ("fftshift", "ifftshift")}
globals().update(wrap_namespace(raw.__dict__, _BOXED))


def __getattr__(name: str) -> Any:
    return getattr(raw, name)
