"""The elementwise functions in mpmath, of scalars: the functions only, no derivatives."""

from __future__ import annotations

from typing import Any

from mpmath import mp

from multigrad_conformance import elementwise


def _sign(x: Any) -> Any:
    return x / abs(x)


def _logaddexp(x: Any, y: Any) -> Any:
    gap = abs(x - y)
    return max(x, y) + (mp.log1p(mp.exp(-gap)) if gap < 10000 else 0)


def _acosh(z: Any) -> Any:
    """mpmath's own forgets on which side of the cut a number very close to it lies."""
    return mp.log(z + mp.sqrt(z - 1) * mp.sqrt(z + 1))


def _clip(x: Any, low: Any, high: Any) -> Any:
    return min(max(x, low), high)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x)) if x > 0 else mp.exp(x) / (1 + mp.exp(x))


FUNCTIONS: dict[str, Any] = {
    **{
        name: getattr(mp, name)
        for name in (
            "acos",
            "asin",
            "asinh",
            "atan",
            "atan2",
            "atanh",
            "ceil",
            "conj",
            "cos",
            "cosh",
            "exp",
            "expm1",
            "floor",
            "hypot",
            "log10",
            "log1p",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
        )
    },
    "abs": abs,
    "acosh": _acosh,
    "add": lambda x, y: x + y,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "clip": _clip,
    "copysign": lambda x, y: abs(x) if y > 0 else -abs(x),
    "deg2rad": lambda x: x * mp.pi / 180,
    "divide": lambda x, y: x / y,
    "exp2": lambda x: mp.power(2, x),
    "fmax": max,
    "fmin": min,
    "fmod": lambda x, y: x - (mp.floor(x / y) if x / y > 0 else mp.ceil(x / y)) * y,
    "heaviside": lambda x, y: mp.mpf(x > 0),
    "imag": lambda x: x.imag,
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "logaddexp": _logaddexp,
    "logaddexp2": lambda x, y: _logaddexp(x * mp.log(2), y * mp.log(2)) / mp.log(2),
    "logistic": _sigmoid,
    "maximum": max,
    "minimum": min,
    "multiply": lambda x, y: x * y,
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "pow": mp.power,
    "real": lambda x: x.real,
    "rad2deg": lambda x: x * 180 / mp.pi,
    "reciprocal": lambda x: 1 / x,
    "remainder": lambda x, y: x - mp.floor(x / y) * y,
    "relu": lambda x: max(x, mp.mpf(0)),
    "round": mp.nint,
    "sigmoid": _sigmoid,
    "sign": _sign,
    "silu": lambda x: x * _sigmoid(x),
    "silu_slope": lambda x: _sigmoid(x) * (1 + x * _sigmoid(-x)),
    "square": lambda x: x * x,
    "subtract": lambda x, y: x - y,
    "trunc": lambda x: mp.floor(x) if x > 0 else mp.ceil(x),
}


PAIRS = [name for name in FUNCTIONS if name in elementwise.BINARY]
COMPLEX = [name for name in FUNCTIONS if elementwise.points(name).complex]
NOT_HOLOMORPHIC = ("abs", "conj", "imag", "real", "sign")
