"""The raw namespace of a backend: the standard plus kernels, on the library's own arrays."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .. import registry
from ..errors import BackendError
from ..provided import wanted
from .spec import Backend

WIDENED = frozenset(
    ("cumulative_prod", "cumulative_sum", "linalg.matrix_norm", "linalg.vector_norm", "std", "var")
)
"""Reductions and scans that are computed in float32 for float16 and bfloat16.

Libraries compute them in the narrow dtype, where the sum of ten squares of 200 is infinite. They
already widen plain sums, means and products themselves. If a backend has its own function, that
function widens.
"""


class RawNamespace:
    """The `xp` that rules receive in an ordinary backward pass.

    A name is looked up in the backend's own `functions`, then among the forwards that the operation
    declares for this backend, then in the library's namespace, and last in the declaration's
    standard-only form. The result is cached as an attribute. `linalg`, `fft` and the prefixes of
    plugins (`special`) are namespaces of the same kind.
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
        function = self._find(name)
        if full in WIDENED and full not in self._backend.functions:
            function = _widened(function, self._root)
        if op is not None and callable(function):
            function = self._backend.kernel("function")(self._root, full, function)
        with registry.keeping:
            # another thread may have replaced the operation meanwhile
            now = registry.OPS[full] if full in registry.OPS else None  # noqa: SIM401 - see `keeping`
            if now is op:
                setattr(self, name, function)
        return function

    def _forget(self) -> None:
        """Drop cached functions after an operation was replaced.

        Holders of this namespace then get the new function.
        """
        with registry.keeping:
            for name in [n for n in list(vars(self)) if not n.startswith("_")]:
                vars(self).pop(name, None)

    def device_of(self, x: Any) -> Any:
        """The device on which a rule makes a constant that is combined with `x`.

        None if the library places constants by itself.
        """
        return self._backend.kernel("device")(self, x)

    def is_contiguous(self, x: Any) -> bool:
        """Whether the elements of `x` lie in memory one after the other, row by row.

        True for libraries that do not say.
        """
        kernel = self._backend.kernels.get("is_c_contiguous")
        return kernel is None or isinstance(x, self._backend.scalar_types) or bool(kernel(self, x))

    def truth(self, x: Any) -> bool | None:
        """The value of the 0-d boolean array `x`, or None if it is unknown."""
        value: bool | None = self._backend.kernel("concrete_bool")(self, x)
        return value

    def _find(self, name: str) -> Any:
        full = self._prefix + name
        out = self._backend.functions.get(full)
        if out is not None:
            return out
        op = registry.OPS.get(full)
        forwards = _forwards(op)
        if self._backend.name in forwards:
            return resolve(forwards[self._backend.name])
        if not self._prefix and registry.is_prefix(name):
            return RawNamespace(self._backend, f"{name}.", self._root)
        if op is None and arrives(full):
            return self._find(name)
        # If forward is a function, it defines the operation on every backend. The names of kernels
        # are multigrad's own (torch has another scatter_add, and another convolution). A forward
        # under "*" is for libraries without a function of that name.
        generic = forwards.get("*")
        ours = op is not None and (op.chapter == "kernels" or not isinstance(op.forward, dict))
        out = None if ours and generic is not None else _lookup(self._backend.namespace, full)
        if out is not None:
            return out
        if op is None:
            raise AttributeError(f"backend {self._backend.name!r} has no {full!r}")
        if generic is None:
            raise AttributeError(
                f"backend {self._backend.name!r} has no function for the operation {full!r}: give "
                "one in Backend.functions, or declare the operation with forward=."
            )
        return _bound_forward(op, resolve(generic), self._root)


def _forwards(op: registry.Op | None) -> Mapping[str, Any]:
    """The forwards that an operation declares by backend; "*" is for all others."""
    forward = None if op is None else op.forward
    return forward if isinstance(forward, dict) else {} if forward is None else {"*": forward}


def _is_narrow(xp: RawNamespace, dtype: Any) -> bool:
    """Whether `dtype` is float16, bfloat16 or the like."""
    try:
        return bool(xp.isdtype(dtype, "real floating")) and bool(xp.finfo(dtype).bits < 32)
    except (TypeError, ValueError, AttributeError):  # a dtype outside the standard
        return False


def _widened(function: Callable[..., Any], xp: RawNamespace) -> Callable[..., Any]:
    """Wrap a function of one array to compute narrow dtypes in float32.

    The wrapper returns the dtype that the function would have returned.
    """
    # caches the last wide dtype: most programs use one
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


@wanted
def want(name: str) -> bool:
    """Load the deferred plugin of that name, and return whether there was one.

    Provided by plugins/loading.py.
    """
    raise NotImplementedError


def arrives(name: str) -> bool:
    """Whether an operation or a prefix exists after all deferred plugins are loaded.

    Another thread may be loading one meanwhile.
    """
    want(name.partition(".")[0])
    return registry.is_declared(name)


def _lookup(namespace: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        namespace = getattr(namespace, part, None)
        if namespace is None:
            return None
    return namespace


def form(name: str, xp: Any) -> Callable[..., Any]:
    """The standard-only form of an operation, over a library's namespace.

    A backend gives it where the library's own function accepts what the standard leaves open, and
    calls it for arguments that its own function leaves out.
    """

    def function(*args: Any, **kwargs: Any) -> Any:
        op = registry.OPS[name]
        return _bound_forward(op, resolve(_forwards(op)["*"]), xp)(*args, **kwargs)

    return function


def _bound_forward(
    op: registry.Op, forward: Callable[..., Any], xp: RawNamespace
) -> Callable[..., Any]:
    """Give `forward(xp, *arguments)` the calling convention of the operation."""
    signature = op.signature
    kinds = {p.kind for p in signature.parameters.values()}
    # forward takes them as one argument, a tuple
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
    """The object that "package.module:name" names, or the argument itself if it is not a string."""
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    try:
        out: Any = importlib.import_module(module)
        for part in name.split("."):
            out = getattr(out, part)
    except (ImportError, AttributeError) as error:
        raise BackendError(f"cannot load {target!r}: {error}") from error
    return out
