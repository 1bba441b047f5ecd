"""Creation of Tensors: from arrays, scalars, nested lists, and Tensors of another backend."""

from __future__ import annotations

import os
import warnings
from contextvars import ContextVar
from functools import partial
from itertools import chain
from typing import Any

from .. import errors, observe, registry
from ..backends import own
from ..backends.kernels import is_narrower
from ..core.array_protocols import ArrayProtocols
from ..core.computed import mark
from ..core.element import SCALARS, Library, is_array, library_named, library_of, named_dtype
from ..core.level import Layer
from ..core.surface import OfArrays
from ..core.tensor import Data, Tensor, View, wrap, wrap_new
from ..errors import BackendError, GradientError, program
from ..observe import OPERATION
from ..provided import provide
from ..registry import OPS, Op, linear
from ..tracebacks import entry
from .explaining import failed
from .functions import function_of
from .general import recording_at
from .settings import OPTIONAL_FLAG, check_one, flag

_default: ContextVar[str | None] = ContextVar("multigrad.backend", default=None)


def default_library() -> Library:
    """The backend of creation functions: `use_backend`, else MULTIGRAD_BACKEND, else NumPy."""
    return library_named(_default.get() or os.environ.get("MULTIGRAD_BACKEND") or "numpy")


class use_backend:
    """Set the default backend to `name`, at once; as a context manager, until the end of the block.

    It applies to the current thread or asyncio task. Raises BackendError if the backend cannot be
    used here.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"use_backend takes the name of a backend, not {type(name).__name__}")
        library_named(name)
        self._before = _default.get()
        try:
            _default.set(name)
        except BaseException:  # an interrupt, after which `__exit__` is not called
            _default.set(self._before)
            raise

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        observe.put_back(_default, self._before)


def asarray(
    obj: Any,
    /,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    backend: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Wrap an array of any known library as a Tensor, without copying; convert scalars and lists.

    obj            a raw array, a Tensor (returned unchanged if possible), a Python scalar, or
                   nested lists of these; lists of Tensors are stacked, differentiably
    dtype          a dtype of the backend, or its name in the standard; the default is the array's
                   own
    device, copy   as in the standard
    backend        name of the backend of the result; default: that of `obj`, for scalars and lists
                   the default backend (see `use_backend`)
    requires_grad  whether operations on the result are recorded from here on

    Raises BackendError for an unknown or unusable backend and TypeError if `obj` is not an array.
    """
    try:
        if requires_grad is not False:
            requires_grad = flag("asarray", "requires_grad", requires_grad)
        if copy is not None:
            check_one("asarray", "copy", copy, OPTIONAL_FLAG)
        library = None if backend is None else library_named(backend)
        t: Any = _as_tensor(obj, dtype, device, copy, library)
        if requires_grad:
            if not isinstance(t, Tensor):  # another layer: a leaf of a graph around it
                t = wrap_new(t)
            if t is obj and not t.is_leaf:
                raise RuntimeError(
                    "asarray(t, requires_grad=True) of a Tensor with a history: it requires "
                    "grad already; detach() it to start anew"
                )
            t.requires_grad_()
        result: Tensor = t
        return result
    except Exception as error:
        # MULTIGRAD_TRACEBACK=full shows the frames inside
        failed(error, _asarray_op(), (obj, dtype, device, copy))
        raise


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    backend: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a new leaf Tensor with a copy of `data`.

    Arguments as for `asarray`. Same as torch.tensor: the result has no history. It warns if the
    data, or a Tensor in a list, requires grad; `asarray(data, copy=True)` is differentiable.

    Raises GradientError for data of a running transformation that is being differentiated.
    """
    try:
        if requires_grad is not False:
            requires_grad = flag("tensor", "requires_grad", requires_grad)
        library = None if backend is None else library_named(backend)
        t: Any = _as_tensor(data, dtype, device, True, library)
        _warn_of_loss(t)
        while not isinstance(t, Tensor):
            if not t._differentiates:  # a batch
                t = wrap_new(t.detach())
            else:  # a Dual without a tangent
                t = t._array if isinstance(t._array, Layer) else wrap_new(t._array)
        if t._node is not None or t._view is not None:
            constant = wrap_new(t.detach()._array)
            t = constant if t._node is None else mark(constant)
        result: Tensor = t.requires_grad_() if requires_grad else t
        return result
    except Exception as error:
        # MULTIGRAD_TRACEBACK=full shows the frames inside
        failed(error, _asarray_op(), (data, dtype, device, None), "tensor")
        raise


def _warn_of_loss(x: Any) -> None:
    """Warn that a copy without history drops a gradient, as torch.tensor does.

    Raises inside of a transformation, which would return a wrong derivative.
    """
    while isinstance(x, ArrayProtocols):
        x._check()
        run = x._elem.run
        if x._moves():
            break
        if run is not None and run.pure and not x._differentiates:
            # a compiled function learns later whether it is differentiated
            x._refuse("multigrad.tensor()", "multigrad.asarray(x, copy=True)")
        x = x._array
    else:
        return
    if run is not None:
        raise GradientError(
            f"tensor: the data is being differentiated by {run.name!r}, and a new leaf would drop "
            "its derivative. multigrad.asarray(x, copy=True) makes a copy with its derivative, "
            "also of a list; multigrad.tensor(x.detach()) makes a constant."
        )
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use t.detach().clone() or "
        "t.detach().clone().requires_grad_(True), rather than multigrad.tensor(t), which drops "
        "the gradient of a Tensor that requires grad, also in a list. "
        "multigrad.asarray(t, copy=True) makes a differentiable copy.",
        UserWarning,
        stacklevel=program(),
    )


def _asarray_op() -> Op:
    registry.fill()
    return OPS["asarray"]


def _as_tensor(
    obj: Any, dtype: Any, device: Any, copy: bool | None, library: Library | None
) -> Tensor:
    if isinstance(obj, Layer):
        return _convert_tensor(obj, dtype, device, copy, library)
    own = None if type(obj) in SCALARS else library_of(obj)
    if own is not None and library in (None, own) and dtype is None and device is None and not copy:
        return wrap_new(obj)
    if own is None and library is None:
        library = default_library()  # the first call fills the table of operations
    made = obj, own, dtype, device, copy, library
    if observe.gate.get() is True:
        return _made(*made)
    op = OPS["asarray"]
    shown = () if isinstance(obj, (tuple, list)) else obj  # a long list is not searched
    operands = shown, dtype, device, copy
    t: Tensor = observe.call(
        OPERATION, op, op.name, tuple(op.roles), operands, partial(_made, *made)
    )
    return t


def _made(
    obj: Any, own: Library | None, dtype: Any, device: Any, copy: bool | None, library: Any
) -> Tensor:
    """A Tensor of an object that is not a Tensor. `own` is the library of a raw array, or None."""
    if own is None:
        return _from_python(obj, dtype, device, copy, library)
    target = library or own
    to = named_dtype(target, dtype)
    return wrap_new(
        own.xp.asarray(obj, dtype=to, device=device, copy=copy)
        if target is own
        else _transfer(obj, own, target, to, device, copy)
    )


def _convert_tensor(
    t: Any, dtype: Any, device: Any, copy: bool | None, library: Library | None
) -> Tensor:
    own: Library = t._elem.library
    if library is not None and library is not own:
        if copy is False:
            raise ValueError(
                f"asarray(copy=False): a Tensor of {own.name!r} cannot become one of "
                f"{library.name!r} without a copy"
            )
        t = to_backend(t, library.name)
        own = library
        copy = None
    dtype = named_dtype(own, dtype)
    if device is not None or copy or (dtype is not None and dtype != t.dtype):
        t = function_of(OPS["asarray"])(t, dtype=dtype, device=device, copy=copy)
    out: Tensor = t._whole()
    return out


def _from_python(obj: Any, dtype: Any, device: Any, copy: bool | None, library: Library) -> Tensor:
    if copy is False:
        raise ValueError(
            "asarray(copy=False): a Python scalar or list cannot become an array without a copy"
        )
    dtype = named_dtype(library, dtype)
    arrays = _arrays_in(obj) if isinstance(obj, (list, tuple)) else []
    if arrays:
        own = None if isinstance(arrays[0], Layer) else library_of(arrays[0])
        # np.float64: its library accepts them as Python scalars
        if own is not None and all(isinstance(x, own.scalars) for x in arrays):
            return _as_tensor(own.xp.asarray(obj), dtype, device, None, library)
        stacked: Tensor = library.bound.stack(
            [_as_tensor(x, dtype, device, None, library) for x in obj]
        )
        return stacked
    if not isinstance(
        obj, (bool, int, float, complex, list, tuple, memoryview, bytearray)
    ) and not any(hasattr(obj, name) for name in ("__array__", "__dlpack__", "__buffer__")):
        raise TypeError(
            f"asarray: cannot make an array of {type(obj).__module__}.{type(obj).__qualname__}; "
            "it is not an array of a known library (see `python -m multigrad backends --probe`), "
            "a scalar or a nested list"
        )
    x = library.xp.asarray(obj, dtype=dtype, device=device)
    if not is_array(x):
        raise TypeError(
            f"asarray: {type(obj).__name__} did not become an array of {library.name!r}"
        )
    return wrap_new(x)


def _arrays_in(obj: Any) -> list[Any]:
    """One array of each type that occurs in nested lists.

    The lists are searched level by level: one call per element would take as long as NumPy's
    conversion.
    """
    arrays: list[Any] = []
    rows = [obj]
    for _ in range(DEEPEST):
        kinds = set(map(type, chain.from_iterable(rows)))
        nested = [kind for kind in kinds if issubclass(kind, (list, tuple))]
        for kind in kinds.difference(SCALARS, nested):
            x = next(x for x in chain.from_iterable(rows) if type(x) is kind)
            if is_array(x):
                arrays.append(x)
        if not nested:
            break
        rows = [x for x in chain.from_iterable(rows) if isinstance(x, (list, tuple))]
    return arrays


DEEPEST = 65
"""More levels of lists than any library has axes.

The library explains the error if a list contains itself.
"""


def _transfer(
    x: Any, source: Library, target: Library, dtype: Any, device: Any, copy: bool | None
) -> Any:
    """Convert a raw array to another library, through DLPack if possible, else through NumPy."""
    if copy is False:
        raise ValueError(
            f"asarray(copy=False): an array of {source.name!r} cannot become one of "
            f"{target.name!r} without a copy"
        )
    # Copy, because the version counter of neither library would notice writes to a shared buffer.
    # If the source's arrays cannot change, `asarray` may copy later and read what was written in
    # the meantime. For others, `from_dlpack` may make a read-only copy.
    if not source.backend.kernel("exportable")(source.xp, x):
        x = source.xp.asarray(x, copy=True)
    try:
        y = (
            target.xp.asarray(target.xp.from_dlpack(x), copy=True)
            if target.mutable
            else target.xp.from_dlpack(x, copy=True)
        )
        if is_narrower(y.dtype, x.dtype):
            raise TypeError("from_dlpack has narrowed the dtype")
    except Exception:
        # Libraries raise various errors here (read-only, dtype, device), or narrow a dtype that
        # their conversion from NumPy keeps; then NumPy is used.
        y = target.xp.asarray(
            target.backend.kernel("from_numpy")(target.xp, to_numpy(x, source)), copy=True
        )
    return target.xp.asarray(y, dtype=dtype, device=device)


def to_numpy(x: Any, source: Library) -> Any:
    """A raw array as one of NumPy."""
    try:
        return source.backend.kernel("to_numpy")(source.xp, x)
    except Exception as error:
        raise BackendError(
            f"cannot bring an array of {source.name!r} to another backend, neither by DLPack "
            f"nor through NumPy: {error}"
        ) from error


@entry
def to_backend(t: Tensor, name: str) -> Tensor:
    """This Tensor as one of the backend `name`.

    It is differentiable: the gradient is converted to this Tensor's backend.
    """
    target = library_named(name)
    if target is t._elem.library:
        return t
    moved: Tensor = function_of(OPS["to_backend"])(t, name, t._elem.library.name)
    return moved


def _to_backend_forward(xp: Any, x: Any, backend: str, source: str) -> Any:
    target = library_named(backend)
    if isinstance(x, Layer):
        return to_backend(x, backend)  # type: ignore[arg-type]
    return _transfer(x, library_named(source), target, None, None, None)


def _to_backend_vjp(xp: Any, g: Any, x_dtype: Any, backend: str, source: str) -> Any:
    """The gradient, converted to the source's backend and cast there.

    The backend that it comes from may lack the dtype.
    """
    g = xp.to_backend(g, source, backend)
    library = library_named(source)
    return (
        g
        if g.dtype == x_dtype
        else (library.bound if isinstance(g, Layer) else library.xp).astype(g, x_dtype)
    )


def _to_device_forward(xp: Any, x: Any, device: Any, stream: Any) -> Any:
    from array_api_compat import to_device

    return to_device(x, device, stream=stream)


def declare() -> None:
    """Declare the operations that move a Tensor."""
    linear(
        "to_backend(x, /, backend, source)",
        forward=_to_backend_forward,
        doc="The array in another library.",
        x=_to_backend_vjp,
        chapter="conversion",
        batching="elementwise",
    )
    linear(
        "to_device(x, device: plain, /, *, stream=None)",
        forward=_to_device_forward,
        doc="The array on another device.",
        x=lambda xp, g, x_device, stream: xp.to_device(g, x_device, stream=stream),
        chapter="conversion",
        batching="elementwise",
        view=lambda x, device, stream: device == x.device,
    )


# ----- Tensors in the containers and transformations of libraries: what backends/own.py wants -----


CALL = "Call multigrad's functions instead of the library's, as mg.sin(x) for jnp.sin(x)"
TURN = ", and write jax.jit(func.grad(f)) for func.grad(jax.jit(f)); likewise with jvp and vmap."
CONSTANT = f"{TURN} Where a constant is wanted, pass t.detach()."


def opened(t: Any, transformation: str) -> Any:
    """The raw array of a Tensor that passes into or out of a library's own transformation.

    Raises if a gradient or a batch would be lost.
    """
    x = t
    where = f"cannot pass into or out of {transformation}, which would"
    while isinstance(x, Tensor):  # a Tensor of a transformation may hold another one
        if not x.is_leaf:
            loss = f"with a grad_fn {where} cut its graph"
            cure = "pass t.detach(), or take its gradient inside and return that."
        elif x.requires_grad and recording_at(x):
            loss = f"that requires grad {where} make a constant of it"
            cure = (
                "pass t.detach() and call requires_grad_() inside, or flatten it under "
                "`with mg.no_grad():`, where it is a constant."
            )
        else:
            x = x._array
            continue
        advice = f". Into {transformation}, {cure}" if x._elem.run is None else CONSTANT
        raise GradientError(f"a Tensor {loss}. {CALL}{advice}")
    if isinstance(x, Layer):
        x._check()
        what = (
            f"a Tensor that holds a {errors.kind(x)}"
            if isinstance(t, Tensor)
            else f"a {errors.kind(x)} of a running transformation"
        )
        raise GradientError(f"{what} {where} lose the derivative or the batch. {CALL}{TURN}")
    return x


def closed(x: Any, backend: str) -> Any:
    """A Tensor of a value that a library's own transformation returns in place of an array."""
    if isinstance(x, Tensor):  # a function mapped over the leaves has returned one
        return x
    try:
        return wrap(x)
    except (TypeError, AttributeError):  # libraries also pass placeholders that are not arrays
        blank: Any = object.__new__(Tensor)
        blank._array, blank._cell, blank._node = x, [], None
        blank._elem = library_named(backend).element(getattr(x, "dtype", None))
        return blank


def has_attribute(name: str) -> bool:
    """Whether Tensors of every backend have an attribute of that name."""
    return any(
        name in cls.__dict__ and type(cls.__dict__[name]) is not OfArrays for cls in Tensor.__mro__
    )


provide(
    own,
    array_classes=lambda: (Tensor, Layer),
    tensor_classes=lambda: (Tensor, View, Data),
    opened=opened,
    closed=closed,
    has_attribute=has_attribute,
)
