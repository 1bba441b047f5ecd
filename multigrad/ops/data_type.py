"""Data type functions of the standard: conversion, and questions about dtypes."""

from __future__ import annotations

from ..registry import About, linear, nondifferentiable

# The engine converts the gradient to the dtype of the argument, and takes the real part if that is
# real. It also moves the gradient to the device of x.
# fmt: off
linear("astype(x, dtype: plain, /, *, copy=True, device=None)", batching="elementwise",
       doc="Convert an array to another dtype.",
       view=lambda x, dtype, copy, device: not copy and dtype == x.dtype and "same",
       x=lambda xp, g, device, x_device: g if device is None else xp.asarray(g, device=x_device),
       about=About(gradient="g in the dtype of x, or its real part if x is real",
                   example="mg.asarray([1.5, 2.5]), 'int64'"))

nondifferentiable("can_cast(from_: plain, to: plain, /)",
                  doc="Whether a dtype, or the dtype of an array, can be cast to another dtype "
                      "without changing to a lower kind.",
                  about=About(example="mg.int32, mg.float64"))
nondifferentiable("finfo(type: plain, /)", doc="The limits of a floating-point dtype.")
nondifferentiable("iinfo(type: plain, /)", doc="The limits of an integer dtype.")
nondifferentiable("isdtype(dtype, kind)", doc="Whether a dtype belongs to a kind.",
                  about=About(example="mg.float32, 'real floating'"))
nondifferentiable("result_type(*arrays_and_dtypes)", doc="The dtype that results from type "
                                                         "promotion of the arguments.",
                  about=About(any_operands=True))
