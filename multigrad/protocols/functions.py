"""NumPy's functions on array objects: a table of counterparts, keyed by the function objects.

It also has the treatment of functions without a counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from inspect import Parameter, signature
from typing import Any

import numpy as np

from ..core.element import Library, common_library, library_named
from ..core.level import Layer, innermost
from ..dispatch.functions import function_of
from ..dispatch.general import general
from ..errors import nearest
from ..registry import OPS, Op
from . import algebra, arranging, creating, reductions, sets  # noqa: F401  which fill the table
from .table import COUNTERPARTS
from .values import (
    arrayed,
    converted,
    filled,
    is_only,
    library_of_all,
    listed,
    native,
    refuse,
    written,
)

SAME = (
    "atleast_1d",
    "atleast_2d",
    "average",
    "convolve",
    "corrcoef",
    "cov",
    "cross",
    "cumprod",
    "cumsum",
    "diag",
    "diagonal",
    "dot",
    "einsum",
    "gradient",
    "hstack",
    "inner",
    "interp",
    "kron",
    "median",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "outer",
    "pad",
    "percentile",
    "ptp",
    "quantile",
    "ravel",
    "sinc",
    "split",
    "swapaxes",
    "trace",
    "transpose",
    "vstack",
    "matrix_transpose",
    "nonzero",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "linalg.cross",
    "linalg.matmul",
    "linalg.outer",
    "linalg.vecdot",
)
"""The functions whose operation has the same name and signature.

They are beyond the standard, or NumPy took them from the standard.
"""

INSTEAD = {
    "apply_along_axis": "multigrad.func.vmap",
    "apply_over_axes": "multigrad.func.vmap",
    "array2string": "repr()",
    "array_repr": "repr()",
    "array_str": "repr()",
    "block": "multigrad.concat",
    "choose": "multigrad.where",
    "delete": "indexing and multigrad.concat",
    "insert": "multigrad.concat",
    "piecewise": "multigrad.where",
    "put": "t[key] = value",
    "place": "t[mask] = value",
    "putmask": "t[mask] = multigrad.where(...)",
    "put_along_axis": "t[key] = value",
    "fill_diagonal": "t[key] = value",
    "resize": "multigrad.tile",
    "vectorize": "multigrad.func.vmap",
    "linalg.lstsq": "multigrad.linalg.pinv(a) @ b",
    "polyfit": "multigrad.linalg.solve of the normal equations",
    "linalg.tensorinv": "multigrad.linalg.inv",
    "linalg.tensorsolve": "multigrad.linalg.solve",
}
"""The replacement to suggest for functions without a counterpart."""

WRITING = ("fill_diagonal", "place", "put", "put_along_axis", "putmask")
"""The functions that write into their first argument."""


def run(
    self: Layer,
    function: Any,
    counterpart: Callable[..., Any] | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run a function of NumPy in the cases that its counterpart does not handle alone.

    These are: there is no counterpart, there is an `out`, or the first argument is not an array
    object of multigrad.
    """
    out = _only_out(self, function, args, kwargs)
    if out is not None:
        return filled(f"{function.__module__}.{function.__name__}", function, out, args, kwargs)
    return (
        _without(self, function, args, kwargs)
        if counterpart is None
        else counterpart(*args, **kwargs)
    )


def _only_out(self: Layer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The array object that is `out`, if it is the only array object of multigrad; else None.

    `out` may be a keyword or a positional argument.
    """
    if kwargs.get("out") is not self and not any(
        x is self and i == _place_of_out(function) for i, x in enumerate(args)
    ):
        return None
    return self if is_only(self, (args, kwargs)) else None


@cache
def _place_of_out(function: Any) -> int:
    """The position of `out` among the arguments of a function.

    It is -1 if `out` is a keyword only, or if the signature is unknown.
    """
    try:
        parameters = signature(function).parameters
    except ValueError:
        return -1
    out = parameters.get("out")
    return (
        list(parameters).index("out")
        if out is not None and out.kind is not Parameter.KEYWORD_ONLY
        else -1
    )


def _without(self: Layer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function of NumPy that has no counterpart.

    With `like=self` it makes an array like `self`. Otherwise it takes the values of constants.
    """
    maker = creating.BESIDE.get(function.__name__)
    if maker is not None and getattr(np, function.__name__, None) is function:
        return maker(self._elem.library, *args, **kwargs)
    name = f"{function.__module__}.{function.__name__}"
    short = name.removeprefix("numpy.")
    target = kwargs.get("out", args[0] if short in WRITING and args else None)
    if isinstance(target, Layer):  # no version counter would see the write
        raise TypeError(
            f"{name} cannot write into a Tensor. Use "
            f"{INSTEAD.get(short, 't[...] = the result')} instead."
        )
    instead = f"{INSTEAD[short]}, or tensor.detach()" if short in INSTEAD else "tensor.detach()"
    refusal = (
        f"Can't call {name}() on Tensor that requires grad: multigrad has no counterpart "
        f"of it. Use {instead} instead."
    )
    given = converted((args, kwargs), refusal)
    return function(*given[0], **given[1])


def by_name(op: Op, arguments: dict[str, Any], more: dict[str, Any]) -> Any:
    """Run the counterpart of NumPy's function with the name of an operation.

    It is called if the arguments are not those of the standard. A `strict` backend has only the
    functions of the standard, and raises TypeError as Python does.
    """
    parameters = op.signature.parameters
    given = {
        n: x
        for n, x in arguments.items()
        if x is not (None if parameters[n].default is Parameter.empty else parameters[n].default)
    }
    operands = [given.pop(n) for n in op.arrays if n in given]
    library = common_library(op.name, [innermost(x) for x in operands])
    counterpart = COUNTERPARTS[op.name]
    strict = library is not None and library.backend.capabilities.strict
    takes = op.signature if strict else signature(counterpart)
    try:
        takes.bind(*operands, **given, **more)
    except TypeError as error:
        near = nearest(
            next((name for name in more if name not in takes.parameters), ""), takes.parameters
        )
        plain = takes.replace(
            parameters=[p.replace(annotation=p.empty) for p in takes.parameters.values()],
            return_annotation=takes.empty,
        )
        raise TypeError(f"{op.name}() {error}.{near or f' It takes {op.name}{plain}'}") from None
    if strict:  # raises for a list or a number in place of an array
        return general(op, tuple(arguments.values()))
    if not isinstance(operands[0], Layer):
        operands[0] = (library or library_named("numpy")).bound.asarray(operands[0])
    return counterpart(*operands, **given, **more)


def _by_operation(name: str, *args: Any, **kwargs: Any) -> Any:
    """Run the operation that has NumPy's name and signature."""
    op = OPS[name]
    out = kwargs.pop("out", None)
    if kwargs.get("casting") == "same_kind":  # NumPy's default
        del kwargs["casting"]
    library = library_of_all(f"numpy.{name}", args, kwargs, out)
    roles = tuple(op.roles.values())
    given = [_argument(roles[min(i, len(roles) - 1)], x, library) for i, x in enumerate(args)]
    refuse(
        f"numpy.{name}",
        **{key: x for key, x in kwargs.items() if key not in op.roles and x is not False},
    )
    named = {
        key: _argument(op.roles[key], x, library) for key, x in kwargs.items() if key in op.roles
    }
    if named.get("dtype") is not None:
        named["dtype"] = native(library, named["dtype"])
    result = function_of(op)(*given, **named)
    return result if out is None else written(f"numpy.{name}", out, result)


def _argument(role: str, x: Any, library: Library) -> Any:
    """An argument, with lists as arrays if the parameter is an array."""
    if role == "arrays" and isinstance(x, (list, tuple)):
        return [arrayed(part, library) for part in x]
    return listed(x, library) if role != "plain" else x


def _table() -> dict[Any, Callable[..., Any]]:
    named: dict[str, Callable[..., Any]] = {name: partial(_by_operation, name) for name in SAME}
    named |= COUNTERPARTS | {
        "lib.stride_tricks.sliding_window_view": partial(_by_operation, "sliding_window_view")
    }
    table: dict[Any, Callable[..., Any]] = {}
    for name, counterpart in named.items():
        function: Any = np
        for part in name.split("."):
            function = getattr(function, part, None)
        if function is not None:  # this release of NumPy has it
            table[function] = counterpart
    return table


TABLE = _table()
"""The counterpart of each function of NumPy."""
