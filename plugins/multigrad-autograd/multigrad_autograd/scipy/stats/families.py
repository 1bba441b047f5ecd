"""Common code of univariate distributions: location and scale, and the four functions.

The functions follow from a standard distribution. For y = (x - loc) / scale a density is f(y) /
scale, and a distribution function F(y). A scale or a shape that is not positive gives nan, as in
SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import multigrad as mg

from ..choosing import differentiable, operand, positive

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]

Function = Callable[..., Any]


def _standard(x: Any, loc: Any, scale: Any) -> Any:
    if type(loc) is not float or loc != 0:
        x = x - loc
    return x if type(scale) is float and scale == 1 else x / scale


def _parameters(
    shapes: int, given: tuple[Any, ...], named: dict[str, Any], names: tuple[str, ...]
) -> list[Any]:
    """Return the shapes, the location and the scale, from positional and named arguments."""
    values = dict(zip((*names, "loc", "scale"), given, strict=False))
    values |= {name: operand(x) for name, x in named.items()}
    unknown = [name for name in named if name not in (*names, "loc", "scale")]
    missing = [name for name in names if name not in values]
    if unknown or missing or len(given) > shapes + 2:
        raise TypeError(f"expected the arguments x, {', '.join((*names, 'loc', 'scale'))}")
    return [
        *[positive(values[name]) for name in names],
        values.get("loc", 0.0),
        positive(values.get("scale", 1.0)),
    ]


def logpdf(plain: Function, names: tuple[str, ...], standard: Function) -> Function:
    """Return the function `standard(y, *shapes)` - log(scale)."""

    def logpdf(x: Any, *given: Any, **named: Any) -> Any:
        *shapes, loc, scale = _parameters(len(names), given, named, names)
        out = standard(_standard(x, loc, scale), *shapes)
        return out if type(scale) is float and scale == 1 else out - mg.log(mg.asarray(scale))

    return differentiable(plain, logpdf)


def pdf(plain: Function, names: tuple[str, ...], standard: Function) -> Function:
    """Return exp(`standard(y, *shapes)`) / scale; `standard` is the logarithm of the density."""

    def pdf(x: Any, *given: Any, **named: Any) -> Any:
        *shapes, loc, scale = _parameters(len(names), given, named, names)
        return mg.exp(standard(_standard(x, loc, scale), *shapes)) / scale

    return differentiable(plain, pdf)


def cdf(plain: Function, names: tuple[str, ...], standard: Function, name: str = "cdf") -> Function:
    """Return the function `standard(y, *shapes)`."""

    def cdf(x: Any, *given: Any, **named: Any) -> Any:
        *shapes, loc, scale = _parameters(len(names), given, named, names)
        return standard(_standard(x, loc, scale), *shapes)

    cdf.__name__ = name
    return differentiable(plain, cdf)


def logcdf(plain: Function, names: tuple[str, ...], standard: Function) -> Function:
    """Return the function log(`standard(y, *shapes)`)."""
    return cdf(plain, names, lambda y, *shapes: mg.log(standard(y, *shapes)), "logcdf")
