"""NumPy's elementwise functions on boxes."""

from __future__ import annotations

import math
from typing import Any

import multigrad as mg

__all__ = ["BINARY", "UNARY"]


def _exp2(x: Any) -> Any:
    return mg.exp(x * math.log(2.0))


def _sinc(x: Any) -> Any:
    """sin(pi x) / (pi x), by its series near 0, where the quotient's derivatives are 0 / 0."""
    near = mg.abs(x) < 1e-2
    y = mg.multiply(mg.where(near, 1.0, x), math.pi)
    z = mg.square(mg.multiply(mg.where(near, x, 0.0), math.pi))
    series = 1.0 - z / 6.0 * (1.0 - z / 20.0 * (1.0 - z / 42.0 * (1.0 - z / 72.0)))
    return mg.where(near, series, mg.sin(y) / y)


def _logaddexp2(x: Any, y: Any) -> Any:
    two = math.log(2.0)
    return mg.logaddexp(mg.multiply(x, two), mg.multiply(y, two)) / two


def _fmax(x: Any, y: Any) -> Any:
    return mg.maximum(mg.where(mg.isnan(x), y, x), mg.where(mg.isnan(y), x, y))


def _fmin(x: Any, y: Any) -> Any:
    return mg.minimum(mg.where(mg.isnan(x), y, x), mg.where(mg.isnan(y), x, y))


def _degrees(x: Any) -> Any:
    return x * (180.0 / math.pi)


def _radians(x: Any) -> Any:
    return x * (math.pi / 180.0)


def _real(x: Any) -> Any:
    return x.real


def _imag(x: Any) -> Any:
    return x.imag


def angle(z: Any, deg: bool = False) -> Any:
    radians = mg.atan2(z.imag, z.real)
    return _degrees(radians) if deg else radians


def _cube_root(x: Any) -> Any:
    return mg.sign(x) * mg.pow(mg.abs(x), 1.0 / 3.0)


_SAME = ("abs", "conj", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2", "negative", "positive", "reciprocal", "sin", "sinh", "sqrt",
         "square", "tan", "tanh", "add", "divide", "hypot", "logaddexp", "maximum", "minimum", "multiply", "remainder", "subtract", "copysign")
_OTHER = {
    "absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh",
    "conjugate": "conj", "true_divide": "divide", "mod": "remainder", "power": "pow", "pow": "pow", "arctan2": "atan2", "acos": "acos",
    "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh", "atan2": "atan2",
}  # fmt: skip
_TWO = {"add", "divide", "hypot", "logaddexp", "maximum", "minimum", "multiply", "remainder", "subtract", "copysign", "true_divide", "mod", "power",
        "pow", "arctan2", "atan2"}  # fmt: skip
_NAMES = {name: name for name in _SAME} | _OTHER

UNARY: dict[str, Any] = {name: getattr(mg, op) for name, op in _NAMES.items() if name not in _TWO} | {
    "exp2": _exp2, "sinc": _sinc, "degrees": _degrees, "rad2deg": _degrees, "radians": _radians, "deg2rad": _radians, "real": _real, "imag": _imag,
    "cbrt": _cube_root,
}  # fmt: skip
BINARY: dict[str, Any] = {name: getattr(mg, _NAMES[name]) for name in _TWO} | {"logaddexp2": _logaddexp2, "fmax": _fmax, "fmin": _fmin}
