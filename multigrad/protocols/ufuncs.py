"""NumPy's ufuncs on array objects: for each ufunc the operation, its methods and keywords.

The tables are keyed by the ufunc objects, since another library may have a ufunc of the same name.
The ufuncs of SciPy are looked up in `scipy.special`, once it is imported. They run `special.<name>`
if a plugin declares that operation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.raw import arrives
from ..core.element import Library, by_type
from ..core.level import Layer
from ..dispatch.functions import function_of, make_function
from ..registry import OPS
from . import calls, keep
from .reductions import REDUCTIONS, SCANS, cast, floats
from .table import operations
from .values import arrayed, converted, filled, is_only, library_of_all, listed, native, of, written

LOGICAL = ("logical_and", "logical_not", "logical_or", "logical_xor")

SYMBOLS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "matmul": "@",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "left_shift": "<<",
    "right_shift": ">>",
}

SPECIAL = {"cbrt": "cbrt", "exp2": "exp2", "expit": "sigmoid"}
"""Ufuncs of SciPy that are operations of multigrad itself."""


def _logical(name: str) -> Callable[..., Any]:
    """The array as booleans: whether each element differs from 0."""

    def function(*xs: Any) -> Any:
        return getattr(of, name)(*(x if _dtype(x) == "bool" else x != 0 for x in xs))

    return function


def _dtype(x: Any) -> str:
    return str(getattr(x, "dtype", type(x).__name__)).rpartition(".")[2]


def _matrix(name: str, which: str, x: Any) -> Any:
    if len(x.shape) < 2:
        raise ValueError(
            f"numpy.{name}: the {which} operand must have two axes at least; its shape is "
            f"{tuple(x.shape)}."
        )
    return x


def _fabs(x: Any) -> Any:
    if x._elem.complex:
        raise TypeError("numpy.fabs takes no complex numbers; use numpy.abs.")
    return of.abs(floats(x))


def _modf(x: Any) -> Any:
    x = floats(x)
    whole = of.trunc(x)
    return of.where(of.isinf(x), 0.0 * of.sign(of.where(of.isinf(x), 1.0, x)), x - whole), whole


def _float_power(x: Any, y: Any) -> Any:
    """The power, in double precision at least."""

    def wide(x: Any) -> Any:
        if not isinstance(x, Layer) or _dtype(x) in ("float64", "complex128"):
            return x
        return of.astype(x, "complex128" if x._elem.complex else "float64")

    return of.pow(wide(x), wide(y))


COMPOSED: dict[str, Callable[..., Any]] = {
    **{name: _logical(name) for name in LOGICAL},
    "divmod": lambda x, y: (x // y, x % y),
    "fabs": _fabs,
    "float_power": _float_power,
    "matvec": lambda x, y: of.matmul(_matrix("matvec", "first", x), y[..., None])[..., 0],
    "modf": _modf,
    "rint": lambda x: of.round(floats(x)),
    "vecmat": lambda x, y: of.matmul(of.conj(x)[..., None, :], _matrix("vecmat", "second", y))[
        ..., 0, :
    ],
}
"""The ufuncs that consist of several operations."""

NAMES = {
    name: operation
    for name, function, operation in operations()
    if isinstance(function, np.ufunc) and name not in LOGICAL
}
"""The operation of each of NumPy's ufuncs."""

TRUTHS = {
    *LOGICAL,
    *(name for name, operation in NAMES.items() if OPS[operation].about.returns == "booleans"),
}
"""The ufuncs that return booleans for all arguments."""

BY_UFUNC = {getattr(np, name): name for name in (*NAMES, *COMPOSED)}


def run(
    self: Layer, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a method of a ufunc, with any keywords.

    Returns NotImplemented if an operand of another library has to decide.
    """
    if any(_answers(x) for x in (*inputs, *(kwargs.get("out") or ()))):
        return NotImplemented
    name = _title(ufunc) + ("" if method == "__call__" else f".{method}")
    out = kwargs.pop("out", None)
    function = _counterpart(ufunc)
    if (
        method != "__call__"
        and any(x is self for x in out or ())
        and is_only(self, (inputs, out, kwargs))
    ):
        return filled(name, getattr(ufunc, method), self, inputs, {**kwargs, "out": out})
    if function is None:
        return _without(name, ufunc, method, inputs, kwargs, out)
    library = library_of_all(name, inputs, out)
    if method == "outer":
        x, y = (arrayed(x, library) for x in inputs)
        inputs = of.reshape(x, (*x.shape, *(1,) * len(y.shape))), y
    if method in ("__call__", "outer"):
        return _call(name, ufunc, function, library, inputs, kwargs, out)
    short = BY_UFUNC.get(ufunc, "")
    if method == "at":
        return _at(name, short, function, *inputs)
    table = {"reduce": REDUCTIONS, "accumulate": SCANS}.get(method, {})
    if short not in table:
        raise TypeError(
            f"{name} is not supported for Tensors; {method} is there for "
            f"{', '.join(table) or 'no ufunc'}."
        )
    options: dict[str, Any] = {"axis": 0, **kwargs}
    return table[short](*inputs, **options, **({} if out is None else {"out": out[0]}))


def _title(ufunc: Any) -> str:
    """The name of a ufunc in messages, with the library if that is NumPy or SciPy."""
    name: str = BY_UFUNC.get(ufunc, ufunc.__name__)
    for module in ("numpy", "scipy.special"):
        if getattr(sys.modules.get(module), name, None) is ufunc:
            return f"{module}.{name}"
    return name


def _answers(x: Any) -> bool:
    """Whether an operand of another library has the protocol itself (a DataArray, a Quantity).

    Such an operand decides.
    """
    ours = isinstance(x, (Layer, np.ndarray, np.generic)) or by_type.get(type(x)) is not None
    return not ours and hasattr(type(x), "__array_ufunc__")


def _counterpart(ufunc: Any) -> Callable[..., Any] | None:
    """The function that carries out `ufunc(*inputs)`, or None if multigrad has none."""
    name = BY_UFUNC.get(ufunc)
    if name in COMPOSED and name not in NAMES:
        return COMPOSED[name]
    function = calls.get(ufunc)
    if function is not None:
        return function
    op = OPS.get(_special(ufunc) if name is None else NAMES[name])
    if op is None:
        return None
    # If all parameters are operands, a list becomes an array, and an operand of an unknown class
    # decides about the call.
    function = (
        make_function(op, operator=True) if set(op.roles.values()) == {"array"} else function_of(op)
    )
    keep(ufunc, op, function)
    return function


def _special(ufunc: Any) -> str:
    """The operation of a ufunc of SciPy, if it is declared."""
    special, name = sys.modules.get("scipy.special"), ufunc.__name__
    ufuncs = sys.modules.get("scipy.special._ufuncs")
    if ufunc not in (getattr(special, name, None), getattr(ufuncs, name, None)):
        return ""
    full = f"special.{name}"
    if full not in OPS:
        arrives(full)
    return full if full in OPS else SPECIAL.get(name, "")


def _call(
    name: str,
    ufunc: Any,
    function: Callable[..., Any],
    library: Library,
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
) -> Any:
    where, dtype = kwargs.pop("where", True), kwargs.pop("dtype", None)
    _check_neutral(name, kwargs)
    if dtype is not None and BY_UFUNC.get(ufunc) in TRUTHS:
        if native(library, dtype) != library.bound.bool:
            raise TypeError(
                f"{name}: dtype={dtype!r} is not supported for Tensors; the result is one of "
                "booleans."
            )
        dtype = None
    inputs = tuple(listed(x, library) for x in inputs)
    if dtype is not None:
        inputs = tuple(
            cast(library.bound.asarray(x), dtype, name, kwargs.get("casting")) for x in inputs
        )
    if where is True:
        result = function(*inputs)
    elif out is None or out[0] is None:
        raise TypeError(
            f"{name}: where= leaves elements without a value; give out=, an array that has "
            "values there."
        )
    else:
        mask = arrayed(where, library)
        safe = 2.0 if ufunc is np.arccosh else 0.5
        # Elements that are not selected are not computed. Otherwise an infinite value or
        # derivative there would come back as 0 * inf.
        inputs = tuple(
            of.where(mask, x, safe if x._elem.floating else 1)
            if isinstance(x, Layer) and not x._elem.bool
            else x
            for x in inputs
        )
        result = of.where(mask, function(*inputs), arrayed(out[0], library))
    if result is NotImplemented or out is None:
        return result
    if len(out) == 1:
        symbol = SYMBOLS.get(BY_UFUNC.get(ufunc, ""))
        advice = f"Write a = a {symbol} t instead of a {symbol}= t, leave out out="
        return written(name, out, result, advice if symbol else "")
    return tuple(
        part if place is None else written(name, place, part)
        for place, part in zip(out, result, strict=True)
    )


def _check_neutral(name: str, kwargs: dict[str, Any]) -> None:
    """Raise TypeError for a keyword that would change the result."""
    neutral = {"casting": ("same_kind", "unsafe"), "order": ("K",), "subok": (True,)}
    for keyword, value in kwargs.items():
        if value not in neutral.get(keyword, (None,)):
            raise TypeError(f"{name}: {keyword}={value!r} is not supported for Tensors.")


def _at(
    name: str, short: str, function: Callable[..., Any], x: Any, indices: Any, *others: Any
) -> None:
    """`x[indices] op= other`, once for each time that an index occurs."""
    if not isinstance(x, Layer):
        if short not in ("add", "subtract"):
            raise TypeError(
                f"{name} writes into a NumPy array, which cannot keep the history of a Tensor."
            )
        refusal = (
            f"{name}: a NumPy array cannot keep the history of a Tensor that requires "
            "grad. Call it on a Tensor."
        )
        getattr(np, short).at(x, converted(indices, refusal), *converted(others, refusal))
        return
    if short not in ("add", "subtract"):
        raise TypeError(f"{name} is not supported for Tensors; at is there for add, subtract.")
    (value,) = others
    array: Any = x
    library = x._elem.library
    if isinstance(indices, tuple):
        indices = tuple(listed(key, library) for key in indices)
    else:
        indices = listed(indices, library)
    change = of.astype(of.broadcast_to(arrayed(value, library), array[indices].shape), array.dtype)
    if short == "add" and (array._elem.floating or array._elem.complex):
        # -0.0 stays what it is if 0.0 is subtracted, not if it is added
        function, change = of.subtract, of.negative(change)
    array[...] = function(array, of.unindex(change, indices, tuple(array.shape)))


def _without(
    name: str, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any], out: Any
) -> Any:
    """Run a ufunc that is not an operation on the values of constants, as NumPy arrays."""
    refusal = (
        f"Can't call {name}() on Tensor that requires grad: multigrad has no derivative "
        "of it. Use tensor.detach() instead."
    )
    if out is not None and any(isinstance(x, Layer) for x in out):
        raise TypeError(
            f"{name}: out= cannot be a Tensor, because multigrad does not know this function; "
            "write out[...] = the result."
        )
    inputs, kwargs = converted((inputs, kwargs), refusal)
    return getattr(ufunc, method)(*inputs, **kwargs, **({} if out is None else {"out": out}))
