"""NumPy's namespaces with functions that also take boxes (boxes.py), the traced values of autograd.

`wrap_namespace` makes such a namespace, and `NUMPY` is the one made from numpy itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from multigrad.extend import entry

from ..boxes import has_box, is_box, leaves, mapped, plain, value
from ..rules import primitive
from .arrays import ARRAYS, SEQUENCES, cast, make_diagonal
from .arrays import where as _where
from .elementwise import BINARY, UNARY
from .wrapping import array, binary, constant, direct, general, unary

Function = Callable[..., Any]
LARGE = 4096  # the number of elements above which planning a product pays off

NONDIFFERENTIABLE = frozenset(
    {
        "floor",
        "ceil",
        "round",
        "rint",
        "around",
        "fix",
        "trunc",
        "all",
        "any",
        "argmax",
        "argmin",
        "argpartition",
        "argsort",
        "argwhere",
        "nonzero",
        "flatnonzero",
        "count_nonzero",
        "searchsorted",
        "sign",
        "ndim",
        "shape",
        "floor_divide",
        "logical_and",
        "logical_or",
        "logical_not",
        "logical_xor",
        "isfinite",
        "isinf",
        "isnan",
        "isneginf",
        "isposinf",
        "allclose",
        "isclose",
        "array_equal",
        "array_equiv",
        "greater",
        "greater_equal",
        "less",
        "less_equal",
        "equal",
        "not_equal",
        "iscomplexobj",
        "isrealobj",
        "iscomplex",
        "size",
        "isscalar",
        "isreal",
        "zeros_like",
        "ones_like",
        "empty_like",
        "result_type",
        "signbit",
        "digitize",
        "isin",
        "lexsort",
        "nanargmax",
        "nanargmin",
        "can_cast",
        "common_type",
        "broadcast_shapes",
        "array_repr",
        "array_str",
        "array2string",
    }
)
"""Functions without a derivative: they are called on the values."""


OF_SEQUENCES = frozenset(
    {
        "block",
        "broadcast_arrays",
        "choose",
        "column_stack",
        "concat",
        "dstack",
        "meshgrid",
        "multi_dot",
        "piecewise",
        "select",
    }
)
"""Functions that take lists of arrays.

For other functions, a list with boxes is converted to an array.
"""


def _wrapped(name: str, raw: Any, boxed: Mapping[str, Function]) -> Function:
    for key in (name, getattr(raw, "__name__", name)):
        if key in boxed:
            return general(raw, boxed[key])
        if key in UNARY:
            return unary(raw, UNARY[key])
        if key in BINARY:
            return binary(raw, BINARY[key])
        if key in SEQUENCES:
            return general(raw, SEQUENCES[key], sequences=True)
        if key in NONDIFFERENTIABLE:
            return constant(raw)
    return primitive(raw, otherwise=general(raw, raw, sequences=name in OF_SEQUENCES))


def wrap_namespace(old: Mapping[str, Any], boxed: Mapping[str, Function]) -> dict[str, Any]:
    """Return the names of a NumPy namespace, with its functions replaced.

    `boxed` are the versions for boxes. A function without a derivative becomes a primitive, for
    which `defvjp` can define one. Classes, numbers and functions without a counterpart are
    unchanged.
    """
    names: dict[str, Any] = {}
    made: dict[int, Any] = {}
    for name, raw in old.items():
        if name.startswith("__") or inspect.ismodule(raw):
            continue
        if not callable(raw) or inspect.isclass(raw):
            names[name] = raw
            continue
        if id(raw) not in made:
            made[id(raw)] = _wrapped(name, raw, boxed)
        names[name] = made[id(raw)]
    return names


def drawing(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of numpy.random, with functions that refuse arguments with a derivative."""
    return {
        name: _drawn(raw) if callable(raw) and not inspect.isclass(raw) else raw
        for name, raw in old.items()
        if not name.startswith("__") and not inspect.ismodule(raw)
    }


def _drawn(raw: Any) -> Function:
    def refused(*args: Any, **kwargs: Any) -> Any:
        given, named = mapped(plain, args), mapped(plain, kwargs)
        if has_box(given) or has_box(named):
            raise NotImplementedError(
                f"VJP of {raw.__name__} not defined: draw standard numbers, and shift and scale "
                "them"
            )
        return raw(*given, **named)

    return primitive(raw, otherwise=refused)


@entry
def where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """Return numpy.where; Python numbers and lists alone give Python's, as in HIPS autograd."""
    if not args and not kwargs:
        return np.where(value(condition))
    if len(args) + len(kwargs) != 2:
        raise ValueError("either both or neither of x and y should be given")
    x = args[0] if args else kwargs["x"]
    y = args[1] if len(args) > 1 else kwargs["y"]
    if has_box(x) or has_box(y):
        return _where(condition, x, y)
    raw = np.where(value(condition), x, y)
    return (
        raw
        if any(
            isinstance(leaf, (np.ndarray, np.generic)) or is_box(leaf)
            for leaf in leaves([condition, x, y])
        )
        else raw.tolist()
    )


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
) -> Any:
    """Return numpy.full_like; it carries the gradient of a box that fills the array."""
    if not is_box(fill_value):
        return np.full_like(value(a), fill_value, dtype, order, subok, shape)
    dtype = np.result_type(a.dtype if is_box(a) else a) if dtype is None else dtype
    return full(np.shape(value(a)) if shape is None else shape, fill_value, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **more: Any) -> Any:
    """Return numpy.full; it carries the gradient of a box that fills the array."""
    if not is_box(fill_value):
        return np.full(shape, fill_value, dtype, order, **more)
    filled = np.broadcast_to(fill_value, shape)
    return filled if dtype is None else cast(filled, np.dtype(dtype))


def einsum(*operands: Any, **kwargs: Any) -> Any:
    """Return numpy.einsum of raw arrays, by matrix products if the arrays are large."""
    if "optimize" not in kwargs and sum(x.size for x in operands if type(x) is np.ndarray) > LARGE:
        kwargs["optimize"] = True
    return np.einsum(*operands, **kwargs)


class _Joined:
    """`r_` and `c_`: NumPy's for raw arrays; they also join boxes, arrays, numbers and slices."""

    def __init__(self, raw: Any, join: Function) -> None:
        self._raw = raw
        self._join = join

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(map(has_box, parts)):
            return self._raw[key]
        if any(isinstance(p, str) for p in parts):
            raise NotImplementedError(
                "multigrad_autograd.numpy: r_ and c_ take no directives beside boxes; use "
                "concatenate"
            )
        return self._join(
            [
                self._raw[p]
                if isinstance(p, slice)
                else array(p)
                if isinstance(p, (list, tuple))
                else p
                for p in parts
            ]
        )


def _in_rows(parts: list[Any]) -> Any:
    return SEQUENCES["concatenate"]([ARRAYS["atleast_1d"](p) for p in parts], 0)


def _in_columns(parts: list[Any]) -> Any:
    columns = [ARRAYS["atleast_1d"](p) for p in parts]
    return SEQUENCES["concatenate"]([c if c.ndim > 1 else c[:, None] for c in columns], -1)


class _Integer(type):
    """The type of NumPy's integer types in this namespace.

    They convert the values of boxes to numbers and arrays, and otherwise behave like NumPy's.
    """

    kind: type

    def __call__(cls, x: Any = 0, *args: Any) -> Any:
        return cls.kind(value(x), *args)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.kind)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.kind)


def _of_values(kind: type) -> type:
    return _Integer(kind.__name__, (kind,), {"__module__": kind.__module__, "kind": kind})


@entry
def metadata(a: Any) -> tuple[Any, ...]:
    """Return the shape, number of axes and dtype of an array, and whether it is complex."""
    dtype = np.result_type(a.dtype if is_box(a) else a)
    return tuple(np.shape(a)), np.ndim(a), dtype, dtype.kind == "c"


_INTEGERS = ("int8", "int16", "int32", "int64")
_OWN: dict[str, Any] = {
    "array": array,
    "where": direct(where),
    "full": direct(full),
    "full_like": direct(full_like),
    "r_": _Joined(np.r_, _in_rows),
    "c_": _Joined(np.c_, _in_columns),
    "newaxis": None,
    "metadata": metadata,
    "make_diagonal": general(make_diagonal, make_diagonal),
    "__version__": np.__version__,
    **{name: _of_values(getattr(np, name)) for name in _INTEGERS},
}
NUMPY: dict[str, Any] = wrap_namespace({**np.__dict__, "einsum": einsum}, ARRAYS) | _OWN
