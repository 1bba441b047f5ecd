"""Creation functions of the standard.

Of these, asarray, full, full_like and linspace are differentiable with respect to an array
argument.
"""

from __future__ import annotations

from typing import Any

from ..registry import About, composite, linear, nondifferentiable
from . import batching
from .keys import trimmed
from .manipulation import broadcast_to_vjp


def full(xp: Any, shape: Any, fill_value: Any, dtype: Any, device: Any, name: str = "full") -> Any:
    """Copy a broadcast of the value.

    The standard's own `full` takes Python scalars only, but a 0-d array may have a gradient. As in
    NumPy, the value may have additional leading axes of length 1.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    value = trimmed(xp, xp.asarray(fill_value, dtype=dtype, device=device), len(shape), name)
    return xp.asarray(xp.broadcast_to(value, shape), copy=True)


def full_like(xp: Any, x: Any, fill_value: Any, dtype: Any, device: Any) -> Any:
    """The result takes only shape, dtype and device from `x`, so `x` has no gradient."""
    whole = ("bool", "integral")
    if (
        dtype is None
        and hasattr(fill_value, "dtype")
        and xp.isdtype(x.dtype, whole)
        and not xp.isdtype(fill_value.dtype, whole)
    ):
        raise TypeError(
            f"full_like: converting a fill_value of dtype {fill_value.dtype} to the dtype of x, "
            f"{x.dtype}, would lose information; choose the dtype of the result with dtype=."
        )
    dtype = x.dtype if dtype is None else dtype
    device = getattr(x, "device", None) if device is None else device
    return full(xp, x.shape, fill_value, dtype, device, "full_like")


def linspace_vjp(
    xp: Any, g: Any, num: int, endpoint: bool, start: Any, device: Any, shape: tuple[int, ...]
) -> Any:
    """Split the gradient between `start` and `stop`.

    Element i is start * (1 - w_i) + stop * w_i, with w from 0 to 1. The weights of `start` are
    those of `stop` in reverse order. NumPy and other libraries accept arrays of any shapes for
    both, broadcast against each other.
    """
    weights = xp.linspace(*start, num, dtype=g.dtype, device=device, endpoint=endpoint)
    weights = xp.reshape(weights, (num,) + (1,) * (len(g.shape) - 1))
    return broadcast_to_vjp(xp, xp.sum(g * weights, axis=0, dtype=g.dtype), shape)


# ----- the operations -----

# fmt: off
nondifferentiable("arange(start: plain, /, stop=None, step=1, *, dtype=None, device=None)",
                  doc="Evenly spaced numbers with a given step.",
                  about=About(example="3"))
nondifferentiable("eye(n_rows: plain, n_cols: plain = None, /, *, k=0, dtype=None, device=None)",
                  doc="Ones on the k-th diagonal, zeros elsewhere.",
                  about=About(example="2"))
nondifferentiable("from_dlpack(x: plain, /, *, device=None, copy=None)",
                  doc="An array that shares the memory of an array of any library.")
for _name, _what, _shape, _like in (
    ("empty", "An uninitialized array", "", ""),
    ("ones", "An array of ones", "(1, 2)", "P"),
    ("zeros", "An array of zeros", "2", "P"),
):
    nondifferentiable(f"{_name}(shape, *, dtype=None, device=None)", doc=f"{_what}.",
                      about=About(example=_shape))
    nondifferentiable(f"{_name}_like(x, /, *, dtype=None, device=None)", batching="elementwise",
                      doc=f"{_what} with the shape and dtype of `x`.", about=About(example=_like))
# Only an array has a gradient; asarray accepts other objects too.
linear("asarray(obj, /, *, dtype=None, device=None, copy=None)", batching="elementwise",
       doc="Convert an object to an array.",
       view=lambda obj, dtype, device, copy: (
           not copy
           and (dtype is None or dtype == obj.dtype)
           and (device is None or device == obj.device)
           and "same"
       ),
       obj=lambda xp, g, device, obj_device: (
           g if device is None else xp.asarray(g, device=obj_device)
       ),
       about=About(gradient="g", example="[1.0, 2.0], requires_grad=True", any_operands=True))
composite("full(shape, fill_value: array, *, dtype=None, device=None)", full,
          doc="An array filled with one value.",
          about=About(example="2, 7.0"))
composite("full_like(x, /, fill_value: array, *, dtype=None, device=None)", full_like,
          doc="An array with the shape and dtype of `x`, filled with one value.",
          about=About(example="P, 7.0"))
linear("linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
       batching=batching.linspace, doc="Evenly spaced numbers over an interval.",
       start=lambda xp, g, num, endpoint, start_device, start_shape: linspace_vjp(
           xp, g, num, endpoint, (1.0, 0.0), start_device, start_shape
       ),
       stop=lambda xp, g, num, endpoint, stop_device, stop_shape: linspace_vjp(
           xp, g, num, endpoint, (0.0, 1.0), stop_device, stop_shape
       ),
       about=About(gradient="sums of g, weighted by the distance from the other end of the "
                            "interval",
                   example="0.0, 1.0, 3"))
