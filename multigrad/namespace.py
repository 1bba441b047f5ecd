"""The differentiable Array API namespace of each backend, generated from the table."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from . import inspection, locks, methods, observe, registry
from .backends.raw import arrives
from .core import element
from .core.aliasing import is_contiguous
from .core.array_protocols import ArrayProtocols
from .core.element import Library
from .core.foreign_names import FUNCTIONS, hint
from .core.level import Layer, innermost, running
from .core.tensor import Tensor, wrap_new
from .dispatch import codegen, creation, functions, generated, runners, settings
from .dispatch import general as dispatch
from .dispatch.explaining import failed
from .dispatch.functions import function_of
from .errors import nearest
from .observe import gate
from .plugins import loading
from .plugins.plugin import lock
from .provided import provide
from .registry import OPS, Op, keeping
from .tracebacks import chosen, fold

CONSTANTS = {"e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi}
VERSION = "2025.12"


class Namespace:
    """The Array API standard over the arrays of one backend, differentiable.

    Functions take Tensors, raw arrays of the backend and Python scalars, and return Tensors.
    Functions that create an array also take `requires_grad`, and accept dtypes by name. `linalg`,
    `fft` and the prefixes of plugins are namespaces too.
    """

    def __init__(self, library: Library, prefix: str = "") -> None:
        self._library = library
        self._prefix = prefix
        self.__name__ = f"multigrad.{library.name}" + (f".{prefix[:-1]}" if prefix else "")
        if not prefix:
            self.__array_api_version__ = VERSION
            self.__array_namespace_info__ = partial(inspection.Info, library)

    def __getattr__(self, name: str) -> Any:
        try:
            if name.startswith("__"):
                raise AttributeError(
                    f"the namespace {self.__name__!r} has no {name!r}", name=name, obj=self
                )
            full = self._prefix + name
            op = OPS.get(full)
            value = self._find(name)
            with keeping:
                # another thread may have replaced the function meanwhile
                if (OPS[full] if full in OPS else None) is op:  # noqa: SIM401 - see `keeping`
                    setattr(self, name, value)
            return value
        except Exception as error:
            fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
            raise

    def _find(self, name: str) -> Any:
        full = self._prefix + name
        op = OPS.get(full)
        if op is not None and not self._hides(op):
            return self._bind(op)
        if not self._prefix:
            if registry.is_prefix(name):
                return Namespace(self._library, f"{name}.")
            if name in CONSTANTS:
                return CONSTANTS[name]
            # where NumPy keeps it, and xarray looks for it
            if name == "lib" and not self._library.backend.capabilities.strict:
                return SimpleNamespace(
                    stride_tricks=SimpleNamespace(sliding_window_view=self.sliding_window_view)
                )
            if name in element.DTYPES or (
                name in element.MORE_DTYPES and hasattr(self._library.backend.namespace, name)
            ):
                return getattr(self._library.backend.namespace, name)
        if op is not None:
            raise AttributeError(
                f"the namespace {self.__name__!r} has the names of the standard only, and "
                f"{full!r} is beyond it: call multigrad.{full}",
                name=name,
                obj=self,
            )
        if arrives(full):
            return self._find(name)
        text = (
            hint(FUNCTIONS, full)
            or f": no operation {full!r} is declared (see `python -m multigrad ops`)"
        )
        raise AttributeError(
            f"the namespace {self.__name__!r} has no {name!r}{text}", name=name, obj=self
        )

    def _hides(self, op: Op) -> bool:
        """Whether the namespace of this backend hides an operation that is beyond the standard."""
        return op.beyond and self._library.backend.capabilities.strict

    def _bind(self, op: Op) -> Callable[..., Any]:
        if op.name in ("asarray", "from_dlpack"):
            return getattr(self, f"_{op.name}")  # type: ignore[no-any-return]
        if op.chapter == "data_type" and op.kind == "nondifferentiable":
            return _about_dtypes(op, self._library)
        if op.chapter == "creation" and op.arrays:
            return _anchored(op, self._library)
        if not op.arrays:
            return _creation(op, self._library)
        return function_of(op)

    def _asarray(
        self,
        obj: Any,
        /,
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """Make a Tensor of this backend from an object, or from an array of any known library.

        See multigrad.asarray.
        """
        try:
            return creation.asarray(
                obj,
                dtype=dtype,
                device=device,
                copy=copy,
                backend=self._library.name,
                requires_grad=requires_grad,
            )
        except Exception as error:
            fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
            raise

    def device_of(self, x: Any) -> Any:
        """The device on which a rule makes a constant that is combined with `x`.

        None if the library places constants by itself.
        """
        return self._library.device(self._library.xp, innermost(x))

    def is_contiguous(self, x: Any) -> bool:
        """Whether the elements of `x` lie in memory one after the other, row by row."""
        return is_contiguous(x) if isinstance(x, Layer) else self._library.xp.is_contiguous(x)

    def _from_dlpack(
        self,
        x: Any,
        /,
        *,
        device: Any = None,
        copy: bool | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """Make a Tensor that shares the memory of an array of any library with DLPack.

        For a Tensor of this backend it shares memory as its detach() does.
        """
        try:
            if requires_grad is not False:
                requires_grad = settings.flag("from_dlpack", "requires_grad", requires_grad)
            if copy is not None:
                settings.check_one("from_dlpack", "copy", copy, settings.OPTIONAL_FLAG)
            # a backend may convert arrays of its library that lack the method, as Dask's do
            if not hasattr(x, "__dlpack__") and not element.is_array(x):
                raise TypeError(
                    "from_dlpack: expected an array with __dlpack__, not "
                    f"{type(x).__name__}: {x!r:.60}"
                )
            if not isinstance(x, Tensor):
                t = wrap_new(self._library.xp.from_dlpack(x, device=device, copy=copy))
            elif x.requires_grad:
                raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
            elif x._elem.library is self._library and (device is None or device == x.device):
                x._refuse("from_dlpack()", "tensor.detach()")
                t = self._asarray(x, copy=True) if copy else x.detach()
            else:
                x._refuse("from_dlpack()", "tensor.detach()")
                t = wrap_new(self._library.xp.from_dlpack(x._array, device=device, copy=copy))
            return t.requires_grad_() if requires_grad else t
        except Exception as error:
            # MULTIGRAD_TRACEBACK=full shows the frames inside
            failed(error, OPS["from_dlpack"], (x, device, copy))
            raise

    def _forget(self) -> None:
        """Drop the functions of an earlier declaration, and prefixes without operations."""
        with keeping:
            for name, value in list(vars(self).items()):
                if isinstance(value, Namespace) and registry.is_prefix(value._prefix[:-1]):
                    value._forget()
                elif not name.startswith("_"):
                    vars(self).pop(name, None)

    def __dir__(self) -> list[str]:
        names = {
            n.removeprefix(self._prefix).partition(".")[0]
            for n, op in list(OPS.items())
            if n.startswith(self._prefix) and op.public and not self._hides(op)
        }
        more = {
            name for name in element.MORE_DTYPES if hasattr(self._library.backend.namespace, name)
        }
        if self._prefix:
            return sorted(names)
        versions = "__array_api_version__", "__array_namespace_info__"
        return sorted({*names, *CONSTANTS, *element.DTYPES, *more, *versions})

    def __repr__(self) -> str:
        return f"<namespace {self.__name__!r}>"

    def __reduce__(self) -> Any:
        return _bound_named, (self._library.name, self._prefix)


for _method in (Namespace._asarray, Namespace._from_dlpack):
    _method.__name__ = _method.__qualname__ = _method.__name__.removeprefix("_")


def _bound_named(name: str, prefix: str) -> Any:
    bound = element.library_named(name).bound
    return getattr(bound, prefix[:-1]) if prefix else bound


def _creation(op: Op, library: Library) -> Callable[..., Any]:
    """Make a function that takes no array: a creation function or one about dtypes."""
    raw = codegen.raw_function(library, op.name)
    signature = op.signature
    makes = "dtype" in signature.parameters and "device" in signature.parameters
    if makes:
        flag = inspect.Parameter("requires_grad", inspect.Parameter.KEYWORD_ONLY, default=False)
        signature = signature.replace(parameters=[*signature.parameters.values(), flag])

    kinds = {name: p.kind for name, p in signature.parameters.items()}
    most = sum(kind is not inspect.Parameter.KEYWORD_ONLY for kind in kinds.values())
    by_name = {
        name for name, kind in kinds.items() if kind is not inspect.Parameter.POSITIONAL_ONLY
    }

    order = tuple(op.roles)
    checked = settings.kinds(op)

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) > most or not by_name.issuperset(kwargs):
                try:
                    signature.bind(*args, **kwargs)
                except TypeError as error:  # the library's error does not name the function
                    raise TypeError(
                        f"{op.name}() {error}{_called_instead(op, args, kwargs, by_name)}"
                    ) from None
            requires_grad = kwargs.pop("requires_grad", False) if makes else False
            if requires_grad is not False:
                requires_grad = settings.flag(op.name, "requires_grad", requires_grad)
            for name, value in (*zip(order, args, strict=False), *kwargs.items()):
                if name in checked:
                    settings.check_one(op.name, name, value, checked[name])
            if "dtype" in kwargs:
                kwargs["dtype"] = element.named_dtype(library, kwargs["dtype"])
            args = tuple(_unwrapped(a) for a in args)
            kwargs = {k: _unwrapped(v) for k, v in kwargs.items()}
            mode = gate.get()
            if mode is True or not mode.operations:
                result = raw(*args, **kwargs)
            else:
                result = observe.operation(mode, op, order, raw, args, kwargs)
            if not element.is_array(result):
                return result
            t = wrap_new(result)
            return t.requires_grad_() if requires_grad else t
        except Exception as error:
            error = _explained(error, op, args, kwargs)
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside

    return _named(function, op, signature)


def _explained(
    error: Exception, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception:
    """What to raise for an error of a function that is not in the table's form; see `failed`."""
    try:
        bound = op.signature.bind(*args, **kwargs)
    except TypeError as unbound:  # the error is that of the call
        fold(error)
        of_call = isinstance(error, TypeError)
        return chosen(error, None if of_call else TypeError(f"{op.name}() {unbound}"))
    bound.apply_defaults()
    return chosen(error, failed(error, op, tuple(bound.arguments.values())))


def _called_instead(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], names: set[str]) -> str:
    """The advice in the error message if a creation function gets arguments it does not take."""
    if "backend" in kwargs:
        return (
            ". Call that of the backend's namespace, "
            f"multigrad.namespace({kwargs['backend']!r}).{op.name}(...), or "
            "multigrad.use_backend() before"
        )
    near = nearest(next((name for name in kwargs if name not in names), ""), names)
    if (
        not near
        and len(args) > 1
        and next(iter(op.roles), "") == "shape"
        and all(isinstance(n, int) for n in args)
    ):
        return f". The shape is one argument: {op.name}({args})"
    return f".{near or f' It takes {op.name}{op.signature}'}"


def _named(
    function: Callable[..., Any], op: Op, signature: inspect.Signature
) -> Callable[..., Any]:
    """Give `function` the name, the docstring and the signature of an operation."""
    function.__name__ = function.__qualname__ = op.name.rpartition(".")[2]
    function.__doc__ = documentation(op)
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__module__ = "multigrad"
    return function


def documentation(op: Op) -> str:
    """The docstring of an operation, from a module that is imported for the first one."""
    text: str = import_module("multigrad.ops.words").text(op)
    return text


def _about_dtypes(op: Op, library: Library) -> Callable[..., Any]:
    """Make a function about dtypes.

    It accepts dtypes by name, and arrays of any backend. Without an array, names are dtypes of this
    backend.
    """
    limits = {"finfo": inspection.finfo, "iinfo": inspection.iinfo}.get(op.name)

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                arguments = [innermost(a) for a in op.signature.bind(*args, **kwargs).args]
            except TypeError as error:  # which does not name the function
                raise TypeError(f"{op.name}() {error}") from None
            home = element.common_library(op.name, arguments) or library
            values = [
                dispatch.plain_scalars(a, home) if element.is_array(a) else _dtype_named(home, a)
                for a in arguments
            ]
            if limits is not None:
                return limits(home, values[0].dtype if element.is_array(values[0]) else values[0])
            return codegen.raw_function(home, op.name)(*values)
        except Exception as error:
            error = _explained(error, op, args, kwargs)
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside

    if op.name != "isdtype":
        return _named(function, op, op.signature)
    answers: dict[Any, bool] = {}

    def isdtype(dtype: Any, kind: Any) -> bool:
        try:
            return answers[dtype, kind]
        except (KeyError, TypeError):  # an argument that cannot be hashed
            answer: bool = function(dtype, kind)
        if not element.is_array(dtype) and type(kind) in (str, tuple):
            answers[dtype, kind] = answer
        return answer

    return _named(isdtype, op, op.signature)


def _dtype_named(library: Library, x: Any) -> Any:
    return (
        element.named_dtype(library, x)
        if type(x) is str and x in (*element.DTYPES, *element.MORE_DTYPES)
        else x
    )


def _anchored(op: Op, library: Library) -> Callable[..., Any]:
    """Make a function whose array arguments are optional (full, linspace).

    Without an array argument the result belongs to this backend; otherwise the arguments decide. An
    argument that only gives its form (zeros_like) does not decide the level: the result belongs to
    the running transformation, like that of `zeros`.
    """
    without_arrays = _creation(op, library)
    derived = function_of(op)

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            args = tuple(_plain(a, library) for a in args)
            kwargs = {name: _plain(a, library) for name, a in kwargs.items()}
            if not any(element.is_array(a) for a in (*args, *kwargs.values())):
                return without_arrays(*args, **kwargs)
            requires_grad = kwargs.pop("requires_grad", False)
            if requires_grad is not False:
                requires_grad = settings.flag(op.name, "requires_grad", requires_grad)
            if "dtype" in kwargs:
                kwargs["dtype"] = element.named_dtype(library, kwargs["dtype"])
            result = derived(*args, **kwargs)
            if (
                op.kind == "nondifferentiable"
                and (run := running()) is not None
                and result._level < run.tensor_level
            ):
                while isinstance(result, Tensor):
                    result = result._array
                result = wrap_new(result)
            return result.requires_grad_() if requires_grad else result
        except Exception as error:
            error = _explained(error, op, args, kwargs)
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside

    return _named(function, op, inspect.signature(without_arrays))


def _plain(x: Any, library: Library) -> Any:
    """Convert a scalar of another library (np.float64) to Python's; return others unchanged."""
    return (
        dispatch.plain_scalars(x, library)
        if element.is_array(x) and not isinstance(x, Layer)
        else x
    )


def _unwrapped(x: Any) -> Any:
    """The raw array of a Tensor in a call of a function without gradient (arange, eye)."""
    while isinstance(x, Layer):
        x._check()
        if isinstance(x, Tensor):
            if x._history is not None:
                raise TypeError(
                    "a function that takes no gradient got a Tensor that requires grad; "
                    "detach() it first"
                )
        elif isinstance(x, ArrayProtocols) and (x._elem.floating or x._several):
            x._refuse("a function that takes no gradient", "a Python scalar")
        x = x._array
    return x


def import_standard() -> None:
    """Declare the operations of the standard, if they are not."""
    with locks.new_lock():  # see plugins/loading.py
        import_module("multigrad.ops")


def declare_standard() -> None:
    """Fill the table of operations with those of the standard, once."""
    import_standard()
    with lock:
        if _changed not in registry.listeners:
            creation.declare()
            for op in list(OPS.values()):
                methods.install(op)
            registry.on_declaration(_changed)


def _changed(op: Op) -> None:
    """When an operation is declared or replaced, drop what was generated from the former one."""
    element.forget()
    runners.forget()
    functions.forget(op)
    methods.install(op)


provide(element, make_bound=Namespace)
provide(generated, documentation=documentation)
provide(loading, declare_standard=declare_standard)
provide(registry, import_standard=import_standard)
