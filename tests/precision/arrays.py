"""The functions of whole arrays in mpmath, on object arrays of numbers: those of mparray, and
others written out.

A function takes the values of all parameters of its operation in order, then the outputs in
float64, which say what has no definite value (an order, a sign), and returns the outputs that carry
gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mparray
import numpy as np
from mpmath import mp

from multigrad import registry
from multigrad.dispatch import codegen

from . import fourier, linalg
from .scalars import FUNCTIONS as SCALARS


def forward(name: str) -> Callable[..., Any]:
    """The function of an operation."""
    own = OWN.get(name) or linalg.FUNCTIONS.get(name) or fourier.FUNCTIONS.get(name)
    if own is None and name in SCALARS:
        own = _elementwise(SCALARS[name])
    return own or _mparrays(name)


def to_mparray(x: Any) -> Any:
    """An object or integer array, or a list of them, as mparray's; anything else as it is."""
    if isinstance(x, (list, tuple)) and any(isinstance(v, np.ndarray) for v in x):
        return type(x)(to_mparray(v) for v in x)
    if not isinstance(x, np.ndarray):
        return x
    if x.dtype != object:
        return mparray.asarray(x)
    return mparray.asarray(
        x, dtype=np.complex128 if any(isinstance(v, mp.mpc) for v in x.flat) else np.float64
    )


def from_mparray(x: Any) -> Any:
    """An object array; mparray has no other way to hand out its numbers."""
    if isinstance(x, (list, tuple)):
        return tuple(from_mparray(v) for v in x)
    return x._data if isinstance(x, mparray.MPArray) else x


def _mparrays(name: str) -> Callable[..., Any]:
    found: Any = mparray
    for part in name.removeprefix("linalg.").split("."):
        found = getattr(found, part)
    op = registry.OPS[name]

    def function(*values: Any) -> Any:
        *values, _ = values
        return from_mparray(codegen.call(op, found, [to_mparray(x) for x in values]))

    return function


def _elementwise(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: np.asarray(
        np.frompyfunc(f, len(values) - 1, 1)(*values[:-1]), dtype=object
    )


# ----- what mparray lacks or has otherwise (0.2.2) -----
#
# Its var squares complex numbers instead of their moduli, its linspace and full go through float64;
# linalg, fft and our kernels it has not.


def _same(x: Any, *_: Any) -> Any:
    return x


def _clip(x: Any, low: Any, high: Any, _: Any) -> Any:
    return x if low is high is None else np.clip(x, low, high)


def _var(x: Any, axis: Any, correction: Any, keepdims: Any, _: Any) -> Any:
    squares = linalg.each(lambda v: abs(v) ** 2, x - linalg.mean(x, axis, True))
    found = linalg.total(squares, axis, keepdims)
    return found / (mp.mpf(x.size) / found.size - mp.mpf(correction))


def _std(*values: Any) -> Any:
    return linalg.each(mp.sqrt, _var(*values))


def _linspace(
    start: Any, stop: Any, num: int, dtype: Any, device: Any, endpoint: bool, _: Any
) -> Any:
    steps = num - 1 if endpoint else num
    weights = [mp.mpf(i) / steps if i else mp.zero for i in range(num)]
    return np.asarray([start * (1 - w) + stop * w for w in weights], dtype=object)


def _full(shape: Any, value: Any, dtype: Any, device: Any, _: Any) -> Any:
    return np.broadcast_to(np.asarray(value, dtype=object), shape)


def _scatter_add(values: Any, indices: Any, n: int, _: Any) -> Any:
    found = linalg.zeros((n, *values.shape[1:]))
    np.add.at(found, indices, values)
    return found


def _unindex(values: Any, key: Any, shape: Any, _: Any) -> Any:
    found = linalg.zeros(shape)
    np.add.at(found, key, values)
    return found


def _setitem(x: Any, key: Any, value: Any, _: Any) -> Any:
    found = x.copy()
    found[key] = value
    return found


def _getitem(x: Any, key: Any, _: Any) -> Any:
    return np.asarray(x[key], dtype=object)


def _read_slices(x: Any, part: Any, _: Any) -> Any:
    """The steps of the conformance suite's samples."""
    for name, arguments, number in part:
        if name == "getitem":
            x = x[arguments[0]]
        elif name == "flip":
            x = x[::-1]
        elif name == "unstack":
            x = np.moveaxis(x, arguments[0], 0)[number]
        elif name in ("real", "imag"):
            x = linalg.each(lambda z, name=name: getattr(mp.mpmathify(z), name), x)
        else:
            x = {
                "matrix_transpose": np.transpose,
                "permute_dims": np.transpose,
                "reshape": lambda x, shape, copy: x.reshape(shape),
                "expand_dims": np.expand_dims,
            }[name](x, *arguments)
    return np.asarray(x, dtype=object)


def _copy_slices(x: Any, value: Any, part: Any, _: Any) -> Any:
    if part and part[-1][0] in ("real", "imag"):
        *before, (name, _, _) = part
        inner = _read_slices(x, before, None)
        other = _read_slices(inner, ((("imag" if name == "real" else "real"), (), None),), None)
        re, im = (value, other) if name == "real" else (other, value)
        value, part = re + im * mp.j, before
    if part and part[0][0] == "real":  # then an index
        inner = _copy_slices(_read_slices(x, part[:1], None), value, part[1:], None)
        return inner + _read_slices(x, (("imag", (), None),), None) * mp.j
    places = _read_slices(np.arange(x.size).reshape(x.shape), part, None)
    found = x.copy().reshape(-1)
    found[places.astype(int).reshape(-1)] = value.reshape(-1)
    return found.reshape(x.shape)


_exp: Any = np.frompyfunc(mp.exp, 1, 1)
_log: Any = np.frompyfunc(mp.log, 1, 1)


def _log_sum_exp(x: Any, axis: Any, keepdims: bool, _: Any) -> Any:
    total = np.sum(_exp(x), axis=axis, keepdims=True)
    return np.asarray(_log(total if keepdims else np.sum(_exp(x), axis=axis)), dtype=object), _exp(
        x
    ) / total


def _softmax(x: Any, axis: Any, _: Any) -> Any:
    return _log_sum_exp(x, axis, True, _)[1]


def _log_softmax(x: Any, axis: Any, _: Any) -> Any:
    return x - _log_sum_exp(x, axis, True, _)[0]


def _softplus(x: Any, beta: Any, threshold: Any, _: Any) -> Any:
    def of_one(v: Any) -> Any:
        return v if v * beta > threshold else mp.log1p(mp.exp(v * beta)) / beta

    return np.asarray(np.frompyfunc(of_one, 1, 1)(x), dtype=object)


def _convolution(x1: Any, x2: Any, mode: str, _: Any) -> Any:
    return np.convolve(x1, x2, mode)


def _order_statistics(x: Any, places: Any, _: Any) -> Any:
    return np.sort(x, axis=-1)[..., np.asarray(places)]


def _extremum(choose: Any) -> Callable[..., Any]:
    return lambda a, axis, keepdims, _: np.asarray(
        choose(a, axis=axis, keepdims=keepdims), dtype=object
    )


OWN: dict[str, Callable[..., Any]] = {
    "convolution": _convolution,
    "log_softmax": _log_softmax,
    "log_sum_exp": _log_sum_exp,
    "nanmax": _extremum(np.max),
    "nanmin": _extremum(np.min),
    "order_statistics": _order_statistics,
    "softmax": _softmax,
    "softplus": _softplus,
    **dict.fromkeys(("asarray", "astype", "refuse", "to_device"), _same),
    "clip": _clip,
    "var": _var,
    "std": _std,
    "linspace": _linspace,
    "full": _full,
    "full_like": lambda x, value, dtype, device, _: _full(x.shape, value, dtype, device, _),
    "scatter_add": _scatter_add,
    "unindex": _unindex,
    "getitem": _getitem,
    "setitem": _setitem,
    "read_slices": _read_slices,
    "copy_slices": _copy_slices,
    "difference_of_squares": lambda x1, x2, _: x1 * x1 - x2 * x2,
    "scaled": lambda x, by, _: x * by.recipe(mp, mp.mpf(1)),
}
