"""The logistic function, x log(y) and entropies."""

from __future__ import annotations

import math
from typing import Any

import multigrad as mg

from ..standard.forms import floats
from .declare import OF_JAX, declare


def _logit_slope(xp: Any, x: Any) -> Any:
    return 1 / xp.where((x < 0) | (x > 1), math.nan, x * (1 - x))


def _held(xp: Any, x: Any, y: Any, least: float) -> Any:
    """Where x log(y) is 0 because x is 0, though log(y) does not exist.

    As in PyTorch the gradient is 0 there too.
    """
    return (x == 0) & ((y == least) if xp.isdtype(y.dtype, "complex floating") else (y <= least))


def _xlogy_by_x(xp: Any, x: Any, y: Any) -> Any:
    x, y = floats(xp, x, y)
    held = _held(xp, x, y, 0.0)
    return xp.where(held, 0.0, xp.log(xp.where(held, 1.0, y)))


def _xlogy_by_y(xp: Any, x: Any, y: Any) -> Any:
    x, y = floats(xp, x, y)
    return x / xp.where((x == 0) & (y == 0), 1.0, y)


def _xlog1py_by_x(xp: Any, x: Any, y: Any) -> Any:
    x, y = floats(xp, x, y)
    held = _held(xp, x, y, -1.0)
    return xp.where(held, 0.0, xp.log1p(xp.where(held, 0.0, y)))


def _xlog1py_by_y(xp: Any, x: Any, y: Any) -> Any:
    x, y = floats(xp, x, y)
    return x / xp.where((x == 0) & (y == -1), 1.0, 1 + y)


def _log_ratio(xp: Any, x: Any, y: Any) -> Any:
    """log(x / y). For x near y it is log1p of their difference, which is exact."""
    x, y = floats(xp, x, y)
    near = xp.abs(x - y) < 0.5 * xp.abs(y)
    return xp.where(
        near, xp.log1p(xp.where(near, x - y, 0.0) / y), xp.log(xp.where(near, 1.0, x / y))
    )


def _kl_div_by_y(xp: Any, x: Any, y: Any) -> Any:
    x, y = floats(xp, x, y)
    return (y - x) / xp.where((x == 0) & (y == 0), 1.0, y)


def declarations() -> list[mg.registry.Op]:
    return [
        declare(
            "expit(x, /)",
            "The logistic function 1 / (1 + exp(-x)) of each element.",
            jax=OF_JAX,
            x=lambda xp, x: xp.special.expit(x) * xp.special.expit(-x),
        ),
        declare(
            "log_expit(x, /)",
            "log(expit(x)), accurate where expit(x) is tiny.",
            jax=OF_JAX,
            x=lambda xp, x: xp.special.expit(-x),
        ),
        declare(
            "logit(x, /)",
            "log(x / (1 - x)), the inverse of expit; nan outside [0, 1].",
            jax=OF_JAX,
            x=_logit_slope,
        ),
        declare(
            "xlogy(x, y, /)", "x log(y), 0 where x is 0.", jax=OF_JAX, x=_xlogy_by_x, y=_xlogy_by_y
        ),
        declare(
            "xlog1py(x, y, /)",
            "x log(1 + y), 0 where x is 0.",
            jax=OF_JAX,
            x=_xlog1py_by_x,
            y=_xlog1py_by_y,
        ),
        declare(
            "entr(x, /)",
            "-x log(x), which is 0 at 0 and -inf for negative x. The gradient at 0 is inf.",
            jax=OF_JAX,
            x=lambda xp, x: -1 - xp.log(x),
        ),
        # JAX's functions have 3 digits, and none where x is near y.
        declare(
            "rel_entr(x, y, /)",
            "x log(x / y), which is 0 where x is 0 and y is not negative, and inf where either is "
            "negative.",
            x=lambda xp, x, y: _log_ratio(xp, x, y) + 1,
            y=lambda xp, x, y: -_xlogy_by_y(xp, x, y),
        ),
        declare(
            "kl_div(x, y, /)",
            "x log(x / y) - x + y, with the special values of rel_entr.",
            x=_log_ratio,
            y=_kl_div_by_y,
        ),
    ]
