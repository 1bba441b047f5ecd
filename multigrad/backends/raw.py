"""The raw rule namespace of a backend: the standard plus the kernels, on the library's own arrays,
at full speed.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from .. import registry
from ..errors import BackendError
from .spec import Backend

WIDENED = frozenset(
    ("cumulative_prod", "cumulative_sum", "linalg.matrix_norm", "linalg.vector_norm", "std", "var")
)
"""Reductions and scans that libraries compute in float16 or bfloat16 as they are, where the sum of
ten squares of 200 is infinite: they are computed in float32 here. Plain sums, means and products
are widened by the libraries themselves. A backend that gives a function of its own widens there."""


class RawNamespace:
    """What rules receive as `xp` in an ordinary backward pass.

    A name is looked for in the backend's own `functions`, among the forwards declared with the
    operation for this backend, in the library's namespace, and last in the declaration's
    standard-only form; what is found is kept as an attribute. `linalg`, `fft` and the prefixes of
    third parties (`special`) are namespaces of the same kind.
    """

    def __init__(
        self, backend: Backend, prefix: str = "", root: RawNamespace | None = None
    ) -> None:
        self.__name__ = f"multigrad.raw.{backend.name}"
        self._backend = backend
        self._prefix = prefix
        self._root = root or self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = self._prefix + name
        op = registry.OPS.get(full)
        found = self._find(name)
        if full in WIDENED and full not in self._backend.functions:
            found = _widened(found, self._root)
        if op is not None and callable(found):
            found = self._backend.kernel("function")(self._root, full, found)
        with registry.keeping:
            if registry.OPS.get(full) is op:  # another thread may have replaced it meanwhile
                setattr(self, name, found)
        return found

    def _forget(self) -> None:
        """Drop what was found, after an operation was replaced.

        Whoever holds this namespace gets the new one from here.
        """
        with registry.keeping:
            for name in [n for n in vars(self) if not n.startswith("_")]:
                delattr(self, name)

    def device_of(self, x: Any) -> Any:
        """The device on which to make a constant that is to meet `x`, None where the library places
        it by itself.
        """
        return self._backend.kernel("device")(self, x)

    def truth(self, x: Any) -> bool | None:
        """The value of the 0-d boolean array `x`, None where it is not known."""
        found: bool | None = self._backend.kernel("concrete_bool")(self, x)
        return found

    def _find(self, name: str) -> Any:
        full = self._prefix + name
        found = self._backend.functions.get(full)
        if found is not None:
            return found
        op = registry.OPS.get(full)
        if op is not None and isinstance(op.forward, dict):
            forward = op.forward.get(self._backend.name)
            if forward is not None:
                return resolve(forward)
        if not self._prefix and registry.is_prefix(name):
            return RawNamespace(self._backend, f"{name}.", self._root)
        if op is None and arrives(full):
            return self._find(name)
        # A forward declared as a function is the meaning of the operation, and the names of kernels
        # are multigrad's own (torch has another scatter_add, and another convolution); one under
        # "*" is for libraries that have no function of that name.
        generic = op and (op.forward.get("*") if isinstance(op.forward, dict) else op.forward)
        ours = (
            op is not None
            and generic is not None
            and (op.chapter == "kernels" or not isinstance(op.forward, dict))
        )
        found = None if ours else _lookup(self._backend.namespace, full)
        if found is not None:
            return found
        if op is None or generic is None:
            known = "" if op is None else " function for the operation"
            advice = (
                ""
                if op is None
                else ": give one in Backend.functions, or declare the operation with forward=."
            )
            raise AttributeError(f"backend {self._backend.name!r} has no{known} {full!r}{advice}")
        return _bound_forward(op, resolve(generic), self._root)


def _is_narrow(xp: RawNamespace, dtype: Any) -> bool:
    """Whether `dtype` is float16, bfloat16 or the like."""
    try:
        return bool(xp.isdtype(dtype, "real floating")) and bool(xp.finfo(dtype).bits < 32)
    except (TypeError, ValueError, AttributeError):  # a dtype from outside the standard
        return False


def _widened(function: Callable[..., Any], xp: RawNamespace) -> Callable[..., Any]:
    """A function of one array that computes with narrow dtypes in float32, and returns the dtype
    that it would have returned.
    """
    # the dtype that was seen last, if it was no narrow one: most programs have one
    wide: Any = None

    def widened(x: Any, /, **kwargs: Any) -> Any:
        nonlocal wide
        if x.dtype is wide:
            return function(x, **kwargs)
        if not _is_narrow(xp, x.dtype):
            wide = x.dtype
            return function(x, **kwargs)
        dtype = kwargs.get("dtype")
        if dtype is None:
            dtype = x.dtype
        elif not _is_narrow(xp, dtype):
            return function(x, **kwargs)
        if "dtype" in kwargs:
            kwargs["dtype"] = xp.float32
        return xp.astype(function(xp.astype(x, xp.float32), **kwargs), dtype)

    return widened


def arrives(name: str) -> bool:
    """Whether an operation, or a prefix, is there after all: of a plugin that has been deferred, or
    that another thread is loading.
    """
    from . import discovery  # which needs this module

    discovery.want(name.partition(".")[0])
    return registry.is_declared(name)


def _lookup(namespace: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        namespace = getattr(namespace, part, None)
        if namespace is None:
            return None
    return namespace


def _bound_forward(
    op: registry.Op, forward: Callable[..., Any], xp: RawNamespace
) -> Callable[..., Any]:
    """Give `forward(xp, *arguments)` the calling convention of the operation itself."""
    signature = op.signature
    kinds = {p.kind for p in signature.parameters.values()}
    # which takes them as one argument, a tuple
    variadic = inspect.Parameter.VAR_POSITIONAL in kinds and op.kind != "composite"
    complete = (
        -1
        if kinds & {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL}
        else len(signature.parameters)
    )

    def function(*args: Any, **kwargs: Any) -> Any:
        # binding costs more than most of these functions
        if variadic or (len(args) == complete and not kwargs):
            return forward(xp, *args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return forward(xp, *bound.arguments.values())

    function.__name__ = op.name
    return function


def resolve(target: Any) -> Any:
    """Return the object that "package.module:name" names, or the object itself."""
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise BackendError(f"cannot load {target!r}: {error}") from error
    return found
