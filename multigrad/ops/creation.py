"""Creation. What is made from an array that is differentiable keeps its gradient: asarray, full,
full_like, linspace.
"""

from __future__ import annotations

from typing import Any

from ..registry import composite, linear, nondifferentiable
from . import batching
from .manipulation import broadcast_to_vjp

# fmt: off
nondifferentiable("arange(start: plain, /, stop=None, step=1, *, dtype=None, device=None)",
                  doc="Evenly spaced numbers with a given step.")
nondifferentiable("empty(shape, *, dtype=None, device=None)", doc="An array that is not filled.")
nondifferentiable("empty_like(x, /, *, dtype=None, device=None)", batching="elementwise",
                  doc="An array like `x` that is not filled.")
nondifferentiable("eye(n_rows: plain, n_cols: plain = None, /, *, k=0, dtype=None, device=None)",
                  doc="Ones on the k-th diagonal, zeros elsewhere.")
nondifferentiable("from_dlpack(x: plain, /, *, device=None, copy=None)",
                  doc="An array on the memory of an array of any library.")
nondifferentiable("ones(shape, *, dtype=None, device=None)", doc="An array of ones.")
nondifferentiable("ones_like(x, /, *, dtype=None, device=None)", batching="elementwise",
                  doc="An array of ones like `x`.")
nondifferentiable("zeros(shape, *, dtype=None, device=None)", doc="An array of zeros.")
nondifferentiable("zeros_like(x, /, *, dtype=None, device=None)", batching="elementwise",
                  doc="An array of zeros like `x`.")
# fmt: on

# Of an array; anything else that it accepts has no gradient.
linear(
    "asarray(obj, /, *, dtype=None, device=None, copy=None)",
    batching="elementwise",
    doc="An array of the given object.",
    view=lambda obj, dtype, device, copy: (
        not copy
        and (dtype is None or dtype == obj.dtype)
        and (device is None or device == obj.device)
        and "same"
    ),
    obj=lambda xp, g, device, obj_device: g if device is None else xp.asarray(g, device=obj_device),
)


def full(xp: Any, shape: Any, fill_value: Any, dtype: Any, device: Any) -> Any:
    """A copy of a broadcast: the standard's own `full` takes Python scalars only, and a 0-d array
    may have a gradient.
    """
    value = xp.asarray(fill_value, dtype=dtype, device=device)
    return xp.asarray(
        xp.broadcast_to(value, (shape,) if isinstance(shape, int) else tuple(shape)), copy=True
    )


def full_like(xp: Any, x: Any, fill_value: Any, dtype: Any, device: Any) -> Any:
    """`x` lends its shape, dtype and device only, so no gradient belongs to it."""
    whole = ("bool", "integral")
    if (
        dtype is None
        and hasattr(fill_value, "dtype")
        and xp.isdtype(x.dtype, whole)
        and not xp.isdtype(fill_value.dtype, whole)
    ):
        raise TypeError(
            f"full_like: a fill_value of dtype {fill_value.dtype} would be cut to that of x, "
            f"{x.dtype}; say which it shall be with dtype=."
        )
    return full(
        xp,
        x.shape,
        fill_value,
        x.dtype if dtype is None else dtype,
        getattr(x, "device", None) if device is None else device,
    )


# fmt: off
composite("full(shape, fill_value: array, *, dtype=None, device=None)", full,
          doc="An array filled with a value.")
composite("full_like(x, /, fill_value: array, *, dtype=None, device=None)", full_like,
          doc="An array like `x`, filled with a value.")
# fmt: on


def linspace_vjp(
    xp: Any, g: Any, num: int, endpoint: bool, start: Any, device: Any, shape: tuple[int, ...]
) -> Any:
    """Element i is start * (1 - w_i) + stop * w_i, with w running from 0 to 1: the share of
    `start`, then, reversed, of `stop`.

    NumPy and others take arrays of any shapes for both, broadcast against each other.
    """
    weights = xp.linspace(*start, num, dtype=g.dtype, device=device, endpoint=endpoint)
    return broadcast_to_vjp(
        xp,
        xp.sum(g * xp.reshape(weights, (num,) + (1,) * (len(g.shape) - 1)), axis=0, dtype=g.dtype),
        shape,
    )


linear(
    "linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
    batching=batching.linspace,
    doc="Evenly spaced numbers over an interval.",
    start=lambda xp, g, num, endpoint, start_device, start_shape: linspace_vjp(
        xp, g, num, endpoint, (1.0, 0.0), start_device, start_shape
    ),
    stop=lambda xp, g, num, endpoint, stop_device, stop_shape: linspace_vjp(
        xp, g, num, endpoint, (0.0, 1.0), stop_device, stop_shape
    ),
)
