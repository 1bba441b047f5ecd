"""Those of NumPy's elementwise functions that multigrad has, by name.

The most used ones bypass NumPy's protocols.
"""

from __future__ import annotations

from typing import Any

import multigrad as mg

__all__ = ["BINARY", "UNARY"]

_UNARY = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "conjugate": "conj",
}
_UNARY |= {
    name: name
    for name in (
        "cos",
        "cosh",
        "exp",
        "expm1",
        "log",
        "log10",
        "log1p",
        "log2",
        "negative",
        "reciprocal",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
    )
}
_BINARY = {"power": "pow", "arctan2": "atan2"}
_BINARY |= {
    name: name
    for name in (
        "add",
        "divide",
        "hypot",
        "logaddexp",
        "maximum",
        "minimum",
        "multiply",
        "remainder",
        "subtract",
    )
}

UNARY: dict[str, Any] = {name: getattr(mg, op) for name, op in _UNARY.items()}
BINARY: dict[str, Any] = {name: getattr(mg, op) for name, op in _BINARY.items()}
