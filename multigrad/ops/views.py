"""Read and write the part of an array that a view shows, and record writes through views.

A part is a tuple of steps from the array to the view. A step is (name of the operation, its
arguments except the first, the number of its output or None). A step may be any operation that only
moves elements, or `real` or `imag`.
"""

from __future__ import annotations

from math import inf, nan, prod
from typing import Any

from ..registry import OPS, linear
from .kernels import alike

Part = tuple[tuple[str, tuple[Any, ...], int | None], ...]


def read_slices(xp: Any, x: Any, part: Part) -> Any:
    for name, arguments, number in part:
        if name == "getitem":
            x = xp.getitem(x, arguments[0])
            continue
        function = xp
        for word in name.split("."):
            function = getattr(function, word)
        parameters = list(OPS[name].signature.parameters.values())[1:]
        pairs = list(zip(parameters, arguments, strict=True))
        x = function(
            x,
            *(a for p, a in pairs if p.kind is not p.KEYWORD_ONLY),
            **{p.name: a for p, a in pairs if p.kind is p.KEYWORD_ONLY},
        )
        if number is not None:
            x = x[number]
    return x


def copy_slices(xp: Any, x: Any, value: Any, part: Part) -> Any:
    """Read the part, write to it, and undo the steps.

    setitem undoes indexing; `real` and `imag` need the other component; several other steps are
    undone at once.
    """
    passed = []
    while part:
        until = 1
        if part[0][0] not in ("getitem", "real", "imag"):
            until = next((i for i, s in enumerate(part) if s[0] in ("real", "imag")), len(part))
        steps, part = part[:until], part[until:]
        passed.append((x, steps))
        if part:
            x = read_slices(xp, x, steps)
    for x, steps in reversed(passed):
        name, arguments, _ = steps[0]
        if name == "getitem":
            value = xp.setitem(x, arguments[0], value)
        elif name == "real":
            value = _complex(xp, value, xp.imag(x))
        elif name == "imag":
            value = _complex(xp, xp.real(x), value)
        else:
            numbers = xp.reshape(xp.arange(prod(x.shape), device=xp.device_of(x)), x.shape)
            places = xp.reshape(read_slices(xp, numbers, steps), (-1,))
            value = xp.reshape(
                xp.setitem(xp.reshape(x, (-1,)), places, xp.reshape(value, (-1,))), x.shape
            )
    return value


def _complex(xp: Any, re: Any, im: Any) -> Any:
    """re + i im, also for infinities, nans and signed zeros, which `re + 1j * im` would change."""
    size = xp.abs(im)
    i = complex(-0.0, 1.0) * xp.where(xp.isfinite(im), size, 0.0)
    i = xp.where(xp.isnan(im), complex(-0.0, nan), xp.where(size == inf, complex(-0.0, inf), i))
    z = alike(xp, re, i) + i
    return xp.where(xp.signbit(im), xp.conj(z), z)


linear(
    "read_slices(x, /, part)",
    forward=read_slices,
    batching="form",
    doc="Return the part of `x` that a view shows; `part` holds the steps to it.",
    chapter="kernels",
    x=lambda xp, g, part, x_shape, x_dtype: xp.copy_slices(
        xp.zeros(x_shape, dtype=x_dtype, device=xp.device_of(g)), g, part
    ),
)


def copy_slices_x_vjp(
    xp: Any, g: Any, value_shape: tuple[int, ...], value_dtype: Any, part: Part
) -> Any:
    """The gradient of `x` is 0 where it was overwritten."""
    return xp.copy_slices(g, xp.zeros(value_shape, dtype=value_dtype, device=xp.device_of(g)), part)


linear(
    "copy_slices(x, value, /, part)",
    forward=copy_slices,
    batching="form",
    chapter="kernels",
    doc="Return a copy of `x` with the part that a view shows replaced by `value`, which has the "
    "shape and dtype of the part.",
    x=copy_slices_x_vjp,
    value=lambda xp, g, part: xp.read_slices(g, part),
)
