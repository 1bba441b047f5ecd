"""Reading and writing the part of an array that a view shows; what a write through a view records.

A part is a tuple of steps from the array to the view: (name of the operation, its arguments but the first, the number of its output or
None). Any operation that only moves elements can be a step, and `real` and `imag`.
"""

from __future__ import annotations

from math import inf, nan, prod
from typing import Any

from ..registry import OPS, linear

Part = tuple[tuple[str, tuple[Any, ...], int | None], ...]


def read_slices(xp: Any, x: Any, part: Part) -> Any:
    """Take the steps one after the other."""
    for name, arguments, number in part:
        if name == "getitem":
            x = x[arguments[0]]
            continue
        function = xp
        for word in name.split("."):
            function = getattr(function, word)
        parameters = list(OPS[name].signature.parameters.values())[1:]
        given = list(zip(parameters, arguments, strict=True))
        x = function(x, *(a for p, a in given if p.kind is not p.KEYWORD_ONLY), **{p.name: a for p, a in given if p.kind is p.KEYWORD_ONLY})
        if number is not None:
            x = x[number]
    return x


def copy_slices(xp: Any, x: Any, value: Any, part: Part) -> Any:
    """Go down to the part as far as each step can be undone: indexing by setitem, real and imag by the other one, any others at once."""
    if not part:
        return value
    name, arguments, _ = part[0]
    if name in ("real", "imag"):
        inner = copy_slices(xp, getattr(xp, name)(x), value, part[1:])
        return _complex(xp, inner, xp.imag(x)) if name == "real" else _complex(xp, xp.real(x), inner)
    if name == "getitem":
        inner = copy_slices(xp, x[arguments[0]], value, part[1:]) if len(part) > 1 else value
        return xp.setitem(x, arguments[0], inner)
    n = next((i for i, step in enumerate(part) if step[0] in ("real", "imag")), len(part))
    numbers = xp.reshape(xp.arange(prod(x.shape), device=xp.device_of(x)), x.shape)
    places = xp.reshape(read_slices(xp, numbers, part[:n]), (-1,))
    flat = xp.reshape(x, (-1,))
    inner = copy_slices(xp, read_slices(xp, x, part[:n]), value, part[n:]) if n < len(part) else value
    return xp.reshape(xp.setitem(flat, places, xp.reshape(inner, (-1,))), x.shape)


def _complex(xp: Any, re: Any, im: Any) -> Any:
    """re + i im. Not `re + 1j * im`, where an infinity would make the other part nan."""
    i = 1j * xp.where(xp.isfinite(im), im, 0.0)
    for part in (inf, -inf):
        i = xp.where(im == part, complex(0.0, part), i)
    return re + xp.where(xp.isnan(im), complex(0.0, nan), i)


linear("read_slices(x, /, part)", forward=read_slices, doc="Return the part of `x` that a view shows, given by the steps to it.", chapter="kernels",
       x=lambda xp, g, part, x_shape, x_dtype: xp.copy_slices(xp.zeros(x_shape, dtype=x_dtype, device=xp.device_of(g)), g, part))


def copy_slices_x_vjp(xp: Any, g: Any, value_shape: tuple[int, ...], value_dtype: Any, part: Part) -> Any:
    """Of what was written over, nothing is left."""
    return xp.copy_slices(g, xp.zeros(value_shape, dtype=value_dtype, device=xp.device_of(g)), part)


linear("copy_slices(x, value, /, part)", forward=copy_slices, chapter="kernels",
       doc="Return a copy of `x` in which `value`, of its shape and dtype, takes the place of the part that a view shows.",
       x=copy_slices_x_vjp, value=lambda xp, g, part: xp.read_slices(g, part))
