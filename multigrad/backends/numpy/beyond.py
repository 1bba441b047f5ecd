"""NumPy: functions beyond the standard.

Each step overwrites the array of the last step, since a new array of a megabyte costs as much as
the computation. This is for real floats of 32 bits and more. Other dtypes, and calls for which a
function returns None, use the form of all backends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ..raw import RawNamespace, form
from ..spec import Backend


def functions(backend: Callable[[], Backend]) -> dict[str, Callable[..., Any]]:
    """The functions by operation; `backend` returns their backend, once it exists."""

    def of_floats(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(x: Any, /, *args: Any, **kwargs: Any) -> Any:
            if (
                type(x) is np.ndarray
                and x.dtype.kind == "f"
                and x.size
                and x.ndim
                and x.itemsize > 2
            ):
                out = function(x, *args, **kwargs)
                if out is not None:
                    return out
            return form(name, RawNamespace(backend()))(x, *args, **kwargs)

        chosen.__name__ = name
        return chosen

    activations = logistic, silu, silu_slope, softplus
    over_lines = softmax, log_softmax, log_sum_exp, order_statistics, places_of
    functions = {f.__name__: f for f in (*activations, *over_lines)} | {"sigmoid": logistic}
    return {name: of_floats(name, f) for name, f in functions.items()} | {"relu": relu}


def relu(x: Any, /) -> Any:
    return np.maximum(x, 0)


def logistic(x: Any, /) -> Any:
    """1 / (1 + exp(-x)); an infinite exponential gives 0."""
    result = np.negative(x)
    with np.errstate(over="ignore"):
        np.exp(result, out=result)
    result += 1
    return np.reciprocal(result, out=result)


def silu(x: Any, /) -> Any:
    result = logistic(x)
    result *= np.maximum(x, -2e4)  # at -inf it is 0
    return result


def silu_slope(x: Any, /) -> Any:
    """s (1 + x (1 - s))."""
    x = np.minimum(x, 1e3)
    np.maximum(x, -1e3, out=x)
    s = logistic(x)
    result = np.subtract(1, s)
    result *= x
    result += 1
    result *= s
    return result


def softplus(x: Any, /, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """The maximum of z and 0, plus log1p of the exponential of -|z|."""
    z = x if beta == 1 else x * beta
    result = np.abs(z)
    np.negative(result, out=result)
    np.exp(result, out=result)
    np.log1p(result, out=result)
    result += np.maximum(z, 0)
    if beta != 1:
        result /= beta
    np.copyto(result, x, where=z > threshold)
    return result


def softmax(x: Any, axis: Any = None) -> Any:
    result = x - np.maximum.reduce(x, axis, keepdims=True)
    np.exp(result, out=result)
    result /= np.add.reduce(result, axis, keepdims=True)
    return result


def log_softmax(x: Any, axis: Any = None) -> Any:
    peak = np.maximum.reduce(x, axis, keepdims=True)
    result = x - np.where(np.isfinite(peak), peak, 0)
    result -= np.log(np.add.reduce(np.exp(result), axis, keepdims=True))
    return result


def log_sum_exp(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest element of each line, plus log1p of the sum over the others."""
    # of a 0-d array NumPy's reductions accept the axes 0 and -1
    ndim = x.ndim or (type(axis) is int)
    axis = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, ndim)[: x.ndim]
    shape = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
    rest = tuple(i for i in range(x.ndim) if i not in axis)
    rows = x.transpose(rest + axis).reshape(-1, int(np.prod([x.shape[a] for a in axis])))
    number, place = np.arange(len(rows)), rows.argmax(1)
    peak = rows[number, place]
    if not np.isfinite(peak).all():
        return None
    powers = rows - peak[:, None]
    np.exp(powers, out=powers)
    powers[number, place] = 0
    others = powers.sum(1)
    powers[number, place] = 1
    powers /= (1 + others)[:, None]
    value = (np.log1p(others) + peak).reshape(
        shape if keepdims else tuple(x.shape[i] for i in rest)
    )
    order = rest + axis
    back = tuple(order.index(i) for i in range(x.ndim))
    return value, powers.reshape([x.shape[i] for i in order]).transpose(back)


def order_statistics(x: Any, /, places: Any) -> Any:
    """Select by partition, which takes linear time."""
    places = list(places)
    return np.partition(x, places, axis=-1)[..., places]


def places_of(x: Any, values: Any, /, places: Any) -> Any:
    """The position of each value if it is unique; else sort, as on all backends."""
    positions = []
    for i in range(len(places)):
        here = x == values[..., i, None]
        if not (np.count_nonzero(here, axis=-1) == 1).all():
            return np.argsort(x, axis=-1, stable=True)[..., list(places)]
        positions.append(here.argmax(-1))
    return np.stack(positions, axis=-1)
