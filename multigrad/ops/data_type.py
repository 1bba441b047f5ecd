"""Data types: conversion, and questions about types."""

from __future__ import annotations

from ..registry import linear, nondifferentiable

# The engine gives the gradient the dtype of the argument, and the real part for a real one. It goes
# back where x is.
# fmt: off
linear("astype(x, dtype: plain, /, *, copy=True, device=None)", batching="elementwise",
       doc="Convert to another dtype.",
       view=lambda x, dtype, copy, device: not copy and dtype == x.dtype and "same",
       x=lambda xp, g, device, x_device: g if device is None else xp.asarray(g, device=x_device))

nondifferentiable("can_cast(from_: plain, to: plain, /)",
                  doc="Whether a dtype, or that of an array, can be cast to another without "
                      "loss of kind.")
nondifferentiable("finfo(type: plain, /)", doc="The limits of a floating-point dtype.")
nondifferentiable("iinfo(type: plain, /)", doc="The limits of an integer dtype.")
nondifferentiable("isdtype(dtype, kind)", doc="Whether a dtype is of a kind.")
nondifferentiable("result_type(*arrays_and_dtypes)", doc="The dtype that the arguments promote to.")
# fmt: on
