"""NumPy's namespace with functions that take boxes as well: `wrap_namespace` makes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as _np

from ..boxes import has_box, is_box, leaves, value
from ..rules import primitive
from .arrays import ARRAYS, SEQUENCES, make_diagonal
from .arrays import where as _where
from .elementwise import BINARY, UNARY, angle
from .products import PRODUCTS
from .reductions import REDUCTIONS
from .wrapping import array, binary, constant, general, unary

Function = Callable[..., Any]

NONDIFFERENTIABLE = frozenset({
    "floor", "ceil", "round", "rint", "around", "fix", "trunc", "all", "any", "argmax", "argmin", "argpartition", "argsort", "argwhere", "nonzero",
    "flatnonzero", "count_nonzero", "searchsorted", "sign", "ndim", "shape", "floor_divide", "logical_and", "logical_or", "logical_not",
    "logical_xor", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "allclose", "isclose", "array_equal", "array_equiv", "greater",
    "greater_equal", "less", "less_equal", "equal", "not_equal", "iscomplexobj", "isrealobj", "iscomplex", "size", "isscalar", "isreal",
    "zeros_like", "ones_like", "empty_like", "result_type", "signbit", "digitize", "histogram", "bincount", "unique", "isin", "lexsort", "nanargmax",
    "nanargmin", "can_cast", "common_type", "broadcast_shapes", "array_repr", "array_str", "array2string",
})  # fmt: skip
"""Functions whose results have no derivative: they are those of the values."""



def _wrapped(name: str, raw: Any, boxed: Mapping[str, Function]) -> Any:
    if name in boxed:
        return general(raw, boxed[name])
    if name in UNARY:
        return unary(raw, UNARY[name])
    if name in BINARY:
        return binary(raw, BINARY[name])
    if name in SEQUENCES:
        return general(raw, SEQUENCES[name], sequences=True)
    if name in NONDIFFERENTIABLE:
        return constant(raw)
    return None


def wrap_namespace(old: Mapping[str, Any], boxed: Mapping[str, Function]) -> dict[str, Any]:
    """The names of a namespace of NumPy, with functions in the place of its functions; `boxed` are those on boxes.

    What has no counterpart, a class or a number, is what it was. A function without a derivative is a primitive, for which `defvjp` can define one.
    """
    found: dict[str, Any] = {}
    made: dict[int, Any] = {}
    for name, raw in old.items():
        if name.startswith("__") or inspect.ismodule(raw):
            continue
        if not callable(raw) or inspect.isclass(raw):
            found[name] = raw
            continue
        if id(raw) not in made:
            made[id(raw)] = _wrapped(name, raw, boxed) or primitive(raw, otherwise=raw)
        found[name] = made[id(raw)]
    return found


def constants_of(old: Mapping[str, Any]) -> dict[str, Any]:
    """The names of a namespace, with functions of the values of boxes in the place of functions."""
    return {name: constant(raw) if callable(raw) and not inspect.isclass(raw) else raw
            for name, raw in old.items() if not name.startswith("__") and not inspect.ismodule(raw)}  # fmt: skip


def where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """As numpy.where; of Python's numbers and lists alone it gives Python's, as HIPS autograd does."""
    if not args and not kwargs:
        return _np.where(value(condition))
    if len(args) + len(kwargs) != 2:
        raise ValueError("either both or neither of x and y should be given")
    x = args[0] if args else kwargs["x"]
    y = args[1] if len(args) > 1 else kwargs["y"]
    if has_box(x) or has_box(y):
        return _where(condition, x, y)
    raw = _np.where(value(condition), x, y)
    return raw if any(isinstance(leaf, (_np.ndarray, _np.generic)) or is_box(leaf) for leaf in leaves([condition, x, y])) else raw.tolist()


def full_like(a: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
    """As numpy.full_like; the gradient of a box that fills the array is carried."""
    if is_box(fill_value):
        return ARRAYS["full"](_np.shape(value(a)), fill_value, *args, **kwargs)
    return _np.full_like(value(a), fill_value, *args, **kwargs)


class _Joined:
    """`r_` and `c_`: numpy's of raw arrays, and of boxes along the last axis or the first."""

    def __init__(self, raw: Any, join: Function) -> None:
        self._raw = raw
        self._join = join

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(map(has_box, parts)):
            return self._raw[key]
        if any(isinstance(p, (str, slice)) for p in parts):
            raise NotImplementedError("multigrad_autograd.numpy: r_ and c_ take boxes beside arrays and numbers only, no slices and no directives")
        return self._join(parts)


r_ = _Joined(_np.r_, SEQUENCES["hstack"])
c_ = _Joined(_np.c_, SEQUENCES["column_stack"])
newaxis = None
_OWN = {name: globals()[name] for name in ("array", "where", "full_like", "r_", "c_", "newaxis")}
_OWN["angle"] = general(_np.angle, angle)
globals().update(wrap_namespace(_np.__dict__, ARRAYS | PRODUCTS | REDUCTIONS) | _OWN)
numpy_version = _np.__version__
make_diagonal = general(make_diagonal, make_diagonal)


def __getattr__(name: str) -> Any:
    """What NumPy imports when it is asked for."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_np, name)
