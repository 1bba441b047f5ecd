"""NumPy's protocols: what `numpy.sin(t)`, `numpy.add.reduce(t)` and `numpy.concatenate([t, u])` do
with array objects of multigrad.

A ufunc, or a function of NumPy, that has a counterpart among the operations runs that: on every
backend, at any level, differentiably, of constants too. What has none takes the values of
constants, and raises for what requires grad. The tables are made at the first call, since they name
NumPy's own objects: a function is told by its identity, not by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import MethodType
from typing import Any

from ..core.element import by_type
from ..core.level import Layer
from ..core.surface import Surface
from ..dispatch import wider
from ..provided import provide
from ..registry import OPS, Op, keeping, on_declaration
from ..tracebacks import fold

_calls: dict[Any, Callable[..., Any]] = {}
"""The function of an operation, as operators call it, by the ufunc that it is the counterpart
of.
"""


def array_ufunc(self: Any, ufunc: Any, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
    """Run a ufunc on operands some of which are array objects of multigrad (NEP 13).

    `raw * tensor` comes here as well.
    """
    try:
        if method == "__call__" and not kwargs:
            function = _calls.get(ufunc)
            if function is not None:
                result = function(*inputs)
                if result is not NotImplemented:
                    return result
        return import_module(".ufuncs", __name__).run(self, ufunc, method, inputs, kwargs)
    except Exception as error:
        fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
        raise


def array_function(
    self: Any, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a function of NumPy on arguments some of which are, or hold, array objects of multigrad
    (NEP 18).
    """
    try:
        for kind in types:
            if not issubclass(kind, Layer) and kind not in by_type and kind.__module__ != "numpy":
                return NotImplemented
        counterpart = _counterparts().get(function)
        if counterpart is not None and "out" not in kwargs and (len(args) < 2 or args[0] is self):
            return counterpart(*args, **kwargs)
        return import_module(".functions", __name__).run(self, function, counterpart, args, kwargs)
    except Exception as error:
        fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
        raise


@cache
def _counterparts() -> dict[Any, Callable[..., Any]]:
    """The counterpart of each function of NumPy."""
    table: dict[Any, Callable[..., Any]] = import_module(".functions", __name__).TABLE
    return table


def as_numpy(op: Op, arguments: dict[str, Any], more: dict[str, Any]) -> Any:
    """Carry out NumPy's function of the name of an operation."""
    return import_module(".functions", __name__).by_name(op, arguments, more)


def keep(ufunc: Any, op: Op, function: Callable[..., Any]) -> None:
    """Call this function of an operation at once from now on, until another declaration takes its
    place.
    """
    with keeping:
        if OPS.get(op.name) is op:
            _calls[ufunc] = function


def _bound(t: Any) -> Any:
    """The method of an instance.

    Beside other arrays than NumPy's it is None, to which CuPy's and Dask's operators defer; NumPy
    asks the class.
    """
    import numpy as np

    return MethodType(array_ufunc, t) if np.ndarray in t._elem.library.backend.array_types else None


class _ByClass(property):
    """What is the protocol's function as an attribute of the class, where NumPy looks, and depends
    on the library as one of an instance.
    """

    __call__ = staticmethod(array_ufunc)


def _forget(op: Op) -> None:
    """Drop what was made of a former declaration."""
    with keeping:
        _calls.clear()


Surface._define("__array_ufunc__", _ByClass(_bound))
Surface._define("__array_function__", array_function)
on_declaration(_forget)
provide(wider, as_numpy=as_numpy)
