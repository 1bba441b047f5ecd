"""NumPy's protocols: `numpy.sin(t)`, `numpy.add.reduce(t)` or `numpy.concatenate([t, u])`.

They define the results of NumPy's functions on array objects of multigrad. If a ufunc or function
of NumPy has a counterpart among the operations, the operation runs: on every backend, at any level,
differentiably, and also for constants. A function without a counterpart takes the values of
constants, and raises for Tensors that require grad. The tables are made at the first call, since
they contain NumPy's own objects: a function is identified by its object, not by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import MethodType
from typing import Any

from ..core.level import Layer
from ..core.surface import Surface
from ..dispatch import functions as dispatched
from ..plugins.discovery import is_known
from ..provided import provide
from ..registry import OPS, Op, keeping, on_declaration
from ..tracebacks import blamed

calls: dict[Any, Callable[..., Any]] = {}
"""For each ufunc, the function of its counterpart, in the form in which operators call it."""


def array_ufunc(self: Any, ufunc: Any, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
    """Run a ufunc on operands that include array objects of multigrad (NEP 13).

    `raw * tensor` calls it as well.
    """
    try:
        if method == "__call__" and not kwargs:
            function = calls.get(ufunc)
            if function is not None:
                result = function(*inputs)
                if result is not NotImplemented:
                    return result
        return import_module(".ufuncs", __name__).run(self, ufunc, method, inputs, kwargs)
    except Exception as error:
        error = blamed(error, ufunc, inputs, kwargs)
        raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside


def array_function(
    self: Any, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a function of NumPy on arguments that include array objects of multigrad (NEP 18)."""
    try:
        nothing, numpys, counterparts = _tables()
        for kind in types:
            # NumPy's own function belongs to its arrays, whose subclasses the operations look at
            if (
                not issubclass(kind, Layer)
                and not is_known(kind)
                and kind.__array_function__ is not numpys
            ):
                return NotImplemented
        if kwargs:  # wrappers of NumPy's functions pass its default on, which means no argument
            kwargs = {name: value for name, value in kwargs.items() if value is not nothing}
        counterpart = counterparts.get(function)
        if counterpart is not None and "out" not in kwargs and (len(args) < 2 or args[0] is self):
            return counterpart(*args, **kwargs)
        return import_module(".functions", __name__).run(self, function, counterpart, args, kwargs)
    except Exception as error:
        error = blamed(error, function, args, kwargs)
        raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside


@cache
def _tables() -> tuple[Any, Any, dict[Any, Callable[..., Any]]]:
    """NumPy's "no value", its own function of the protocol, and the counterparts of functions."""
    np, functions = import_module("numpy"), import_module(".functions", __name__)
    return np._NoValue, np.ndarray.__array_function__, functions.TABLE


def as_numpy(op: Op, arguments: dict[str, Any], more: dict[str, Any]) -> Any:
    """Carry out NumPy's function with the name of an operation."""
    return import_module(".functions", __name__).by_name(op, arguments, more)


def keep(ufunc: Any, op: Op, function: Callable[..., Any]) -> None:
    """Call this function of an operation directly from now on.

    It is dropped when another declaration replaces the operation.
    """
    with keeping:
        if op.name in OPS and OPS[op.name] is op:
            calls[ufunc] = function


def _bound(t: Any) -> Any:
    """The method of an instance.

    It is None if the library is not NumPy, because the operators of CuPy and Dask defer to None.
    NumPy looks at the class.
    """
    import numpy as np

    return MethodType(array_ufunc, t) if np.ndarray in t._elem.library.backend.array_types else None


class _ByClass(property):
    """An attribute that is the function of the protocol on the class, where NumPy looks for it.

    On an instance it depends on the library.
    """

    __call__ = staticmethod(array_ufunc)


def _forget(op: Op) -> None:
    """Drop the functions of an earlier declaration."""
    with keeping:
        calls.clear()


Surface._define("__array_ufunc__", _ByClass(_bound))
Surface._define("__array_function__", array_function)
on_declaration(_forget)
provide(dispatched, as_numpy=as_numpy)
