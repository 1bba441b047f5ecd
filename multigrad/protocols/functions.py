"""NumPy's functions on array objects: a table of counterparts, keyed by the function objects.

It also has the treatment of functions without a counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from inspect import Parameter, signature
from typing import Any

import numpy as np

from ..core.element import common_library, library_named
from ..core.level import Layer, innermost
from ..dispatch.general import general
from ..errors import nearest
from ..registry import Op
from . import algebra, arranging, creating, reductions  # noqa: F401  which fill the table
from .table import COUNTERPARTS, function_named, operations
from .values import by_operation, converted, filled, is_only

SAME = {
    name: (function, operation)
    for name, function, operation in operations()
    if not isinstance(function, np.ufunc) and name not in COUNTERPARTS
}
"""The functions whose operation has the same signature, by name, with that operation.

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
    place = _place_of_out(function)
    positional = args[place : place + 1] if place >= 0 else ()
    if (kwargs.get("out") is self or any(x is self for x in positional)) and is_only(
        self, (args, kwargs)
    ):
        return filled(f"{function.__module__}.{function.__name__}", function, self, args, kwargs)
    if counterpart is None:
        return _without(self, function, args, kwargs)
    return counterpart(*args, **kwargs)


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
    if out is None or out.kind is Parameter.KEYWORD_ONLY:
        return -1
    return list(parameters).index("out")


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
    args, kwargs = converted((args, kwargs), refusal)
    return function(*args, **kwargs)


def by_name(op: Op, arguments: dict[str, Any], more: dict[str, Any]) -> Any:
    """Run the counterpart of NumPy's function with the name of an operation.

    It is called if the arguments are not those of the standard. A `strict` backend has only the
    functions of the standard, and raises TypeError as Python does.
    """
    parameters = op.signature.parameters
    options = {
        n: x
        for n, x in arguments.items()
        if x is not (None if parameters[n].default is Parameter.empty else parameters[n].default)
    }
    operands = [options.pop(n) for n in op.arrays if n in options]
    options |= more
    library = common_library(op.name, [innermost(x) for x in operands])
    counterpart = COUNTERPARTS[op.name]
    strict = library is not None and library.backend.capabilities.strict
    takes = op.signature if strict else signature(counterpart)
    try:
        takes.bind(*operands, **options)
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
    return counterpart(*operands, **options)


TABLE: dict[Any, Callable[..., Any]] = {
    function: partial(by_operation, operation) for function, operation in SAME.values()
} | {
    function: counterpart
    for name, counterpart in COUNTERPARTS.items()
    if (function := function_named(name)) is not None  # this release of NumPy has it
}
"""The counterpart of each function of NumPy."""
