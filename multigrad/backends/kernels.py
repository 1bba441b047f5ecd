"""Functions that the engine needs beyond the standard, with defaults that use only the standard.

A backend overrides those that its library does better. A backend without kernels is complete, only
slower. Kernels that *rules* call, such as scatter_add, are operations: see `ops/kernels.py`.
"""

from __future__ import annotations

import math
import sys
import sysconfig
from collections.abc import Callable
from inspect import isfunction
from types import SimpleNamespace
from typing import Any

from ..errors import BackendError


def take_ownership(xp: Any, g: Any, like: Any) -> Any:
    """Return an array equal to `g` that has no other owner, dense, laid out and placed as `like`.

    Layout and placement follow `like` as far as the library can. The engine calls it for arrays
    that become a leaf's `.grad`, since later gradients are added to them in place. Where arrays are
    immutable, `g` itself is enough. `like` is None if the leaf no longer exists.

    A backend may return `g` itself if there is no other reference to it (see SOLE_OWNER). So the
    caller passes its only reference, a temporary such as `box.pop()`. If it keeps another
    reference, even in a local variable, it gets a copy.
    """
    return xp.asarray(g, copy=True)


def unshared(xp: Any, arrays: list[Any]) -> bool:
    """Return whether nothing but the caller's objects provably uses the memory of these arrays.

    The last array is a whole memory, those before it are views of it. Each of them is an attribute
    of one object, besides being in this list. If one of them is a layer, the result must be False.
    A write inside of a transformation goes to the memory if the result is True, else to a copy.
    """
    return False


def admit(xp: Any, x: Any) -> None:
    """Raise if operations must not use the raw array `x`.

    Examples are a tensor that its own library differentiates, one with a sparse layout, and an
    array with masked elements, of which derivative rules would count every one. A backend with this
    kernel is called for each raw array that is passed to an operation or becomes a Tensor.
    (`Backend.refused_types` refuses all arrays of a class, at no cost.)
    """


def place_like(xp: Any, g: Any, like: Any) -> Any:
    """Return `g` with the device and sharding of `like`, for results of `grad`."""
    return g


def constant(xp: Any, value: Any, dtype: Any, device: Any) -> Any:
    """Return the Python scalar `value` as a 0-d array, which may be cached: it is never written.

    `device` is None beside an array whose device is unknown; then the constant must be compatible
    with arrays on every device.
    """
    return xp.asarray(value, dtype=dtype, device=device)


def device(xp: Any, x: Any) -> Any:
    """Return the device of `x`, or None if it is unknown (under a trace)."""
    return getattr(x, "device", None)


def order(xp: Any, x: Any) -> str | None:
    """Return the memory order of the last two axes of `x`: "C", "F" or None.

    None means neither or unknown. Rules read it as `<array>_order`, to make a gradient in the
    memory order of its argument.
    """
    return None


def is_c_contiguous(xp: Any, x: Any) -> bool:
    """Return whether `x` certainly lies in memory in row-major order without gaps.

    Any reshape of such an array is a view. The engine calls it where arrays are mutable. If the
    answer is False, it tries the standard's reshape(copy=False), which takes longer.
    """
    return False


def eagerly(xp: Any, x: Any, compute: Callable[[], Any]) -> Any:
    """Return `compute()`, a value computed from `x`, as a concrete array.

    The result is stored by objects that outlive a trace. So if the values of `x` are known, the
    result must not become part of a trace.
    """
    return compute()


def fresh(xp: Any, x: Any) -> Any:
    """Return `x` in a form that a compiler does not identify with `x`.

    The compiler then recomputes values instead of keeping those computed from `x`.
    """
    return x


def shares_memory(xp: Any, x: Any, y: Any) -> bool:
    """Return whether `x` certainly shares memory with `y`, from which it was computed.

    The operations in between may return views. The engine calls this where arrays are mutable,
    before it writes to a view. If the answer is False, it writes to `y` instead, which takes
    longer.
    """
    return False


def write(xp: Any, x: Any, value: Any) -> Any:
    """Write the values of `value` into `x`, and return the array that now holds them.

    Both have the same shape and dtype. Where arrays are immutable, the default returns `value`,
    which replaces `x`.
    """
    x[...] = value
    return x


def assign(xp: Any, x: Any, key: Any, value: Any) -> None:
    """Write `value` into the memory of `x` at `key`, as `x[key] = value`.

    If it raises IndexError, TypeError or ValueError, the engine uses another method. The engine
    calls it where arrays are mutable. If a library's keys differ from the standard's, the backend
    has a `getitem` among its functions, and this kernel gives keys the same meaning.
    """
    x[key] = value


def devices(xp: Any) -> tuple[Any, ...]:
    """Return the available devices, for `python -m multigrad backends --probe`."""
    return tuple(xp.__array_namespace_info__().devices())


def compile(xp: Any, program: Any, *, arena: int) -> Callable[..., Any]:
    """Return a function that runs a Program of `func.compile` on raw arrays: see multigrad.program.

    The default calls its operations one by one. `arena` is the number of bytes that it may keep
    between calls.
    """
    from .straight import compiled  # few programs need it

    return compiled(xp, program)


def modes(xp: Any) -> Any:
    """Return the state, other than arguments, that operations depend on, as `numpy.geterr()` does.

    It is a value to compare by `==`, or None for no state. If a function changes it while
    `func.compile` records, the function is not compiled.
    """


def rule(xp: Any, name: str, vjp: Callable[..., Any]) -> Callable[..., Any]:
    """Return the derivative rule of the operation `name` for arrays of this library.

    The result is called as `vjp(xp, g, *saved)`. The engine calls this kernel once per rule. It
    lets a backend refuse arrays that rules do not expect, for instance with unknown sizes.
    """
    return vjp


def function(xp: Any, name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that runs the operation `name` on raw arrays; the default is `forward`.

    Like `rule`, it is called once per operation.
    """
    return forward


def concrete_bool(xp: Any, x: Any) -> bool | None:
    """Return the value of the 0-d boolean array `x`, or None if it is unknown.

    A value is unknown under a trace, or before it is computed.
    """
    return bool(x)


def control(xp: Any, arrays: Any) -> Any:
    """Return the library's loops and branches if values are unknown, else None.

    Values are unknown if the library traces `arrays`, or all arrays. The returned object has three
    functions: `scan(step, carry, xs, length, reverse)`, where `step(carry, x)` returns (carry, y)
    and the scan returns (carry, ys); `while_loop(condition, step, carry)`; and `switch(index,
    branches, args)`, where `index` is a 0-d integer array within bounds and each branch is called
    as `branch(args)`. Carries, arguments and results are nested lists and tuples of arrays.
    """
    return None


def synchronize(xp: Any, x: Any) -> None:
    """Wait until `x` has been computed; a synchronous library does nothing."""


def accelerator(xp: Any, x: Any) -> str | None:
    """Return the kind of device of `x`, such as "cuda", or None for host memory.

    Without `x` it is the kind for new arrays. The profiler calls it to attribute memory to devices,
    and to decide whether there is a device to measure.
    """
    return None


def mark(xp: Any, x: Any) -> Any:
    """Record the moment at which `x` is computed on its device, for `elapsed`.

    Return None if it cannot be recorded. A synchronous library does not need it, since the host's
    clock is enough; a lazy library has no such moment.
    """
    return None


def elapsed(xp: Any, start: Any, end: Any) -> float:
    """Return the microseconds between two moments from `mark`, once both have passed."""
    raise NotImplementedError(
        "a backend with the kernel `mark` also needs the kernel `elapsed`: the time between two "
        "marks"
    )


def annotation(xp: Any, name: str) -> Any:
    """Return a context manager that labels its block in the library's own profiler, or None."""
    return None


def storage(xp: Any, x: Any) -> tuple[Any, int]:
    """Return the object that owns the memory of `x`, and its number of bytes.

    All arrays on the same memory have the same object.
    """
    try:
        return x, math.prod(x.shape) * _bits(xp, x.dtype) // 8
    except (AttributeError, TypeError, ValueError):  # a dtype outside the standard
        return x, 0


def _bits(xp: Any, dtype: Any) -> int:
    if xp.isdtype(dtype, "bool"):
        return 8
    if xp.isdtype(dtype, "integral"):
        return int(xp.iinfo(dtype).bits)
    # finfo describes one of the two parts
    return int(xp.finfo(dtype).bits) * (2 if xp.isdtype(dtype, "complex floating") else 1)


def to_numpy(xp: Any, x: Any, copy: bool | None = None) -> Any:
    """Return `x` as a NumPy array of the same dtype, on shared memory if possible.

    The default tries DLPack, then `__array__`, then converts up to 10,000 elements one by one. A
    result of dtype object is the library's array in a box, so the default rejects it. `copy=False`
    raises ValueError if the memory cannot be shared.
    """
    import numpy as np

    def by_array() -> Any:
        if not hasattr(x, "__array__"):
            raise TypeError("no __array__")
        return np.asarray(x, copy=copy)

    ways: list[Callable[[], Any]] = [
        lambda: np.from_dlpack(x, copy=copy) if copy is False else np.from_dlpack(x),
        by_array,
    ]
    if copy is not False:
        ways.append(lambda: _one_by_one(xp, x))
    reasons = []
    for way in ways:
        try:
            out = way()
        except Exception as error:
            # the library may raise any exception here (dtype, device); the next method may work
            reasons.append(f"{type(error).__name__}: {error}")
            continue
        if out.dtype.kind != "O":
            return out
        reasons.append("it returned an array of dtype object")
    if copy is False:
        raise ValueError(
            f"to_numpy(copy=False): an array of {type(x).__module__} cannot become one of NumPy "
            f"without a copy ({'; '.join(reasons)}). Leave out copy=False."
        )
    raise BackendError(
        _unconverted("to_numpy", f"an array of {type(x).__module__} to NumPy", reasons)
    )


def from_numpy(xp: Any, x: Any) -> Any:
    """Return the NumPy array `x` as an array of the library, on its default device.

    It has the same dtype and may share the memory of `x`. The default tries DLPack, then `asarray`,
    then a list of up to 10,000 elements. A narrower dtype is returned only if each of them makes
    one.
    """
    reasons = []
    narrow = None
    # the library may lack some dtypes
    ways: tuple[Callable[[], Any], ...] = (
        lambda: xp.from_dlpack(x),
        lambda: xp.asarray(x),
        lambda: _from_list(xp, x),
    )
    for way in ways:
        try:
            out = way()
            if tuple(out.shape) != x.shape:
                reasons.append(f"it returned an array of shape {tuple(out.shape)}")
            elif not is_narrower(out.dtype, x.dtype):
                return out
            elif narrow is None:
                narrow = out
        except Exception as error:  # any exception, as above
            reasons.append(f"{type(error).__name__}: {error}")
    if narrow is not None:
        return narrow
    raise BackendError(
        _unconverted(
            "from_numpy",
            f"an array of NumPy of dtype {x.dtype} to {xp.__name__.rpartition('.')[2]}",
            reasons,
        )
    )


def is_narrower(dtype: Any, source: Any) -> bool:
    """Return whether a dtype has fewer bytes than another, as far as the libraries tell."""
    bytes_, of_source = getattr(dtype, "itemsize", None), getattr(source, "itemsize", None)
    return bytes_ is not None and of_source is not None and bool(bytes_ < of_source)


ONE_BY_ONE = 10_000
"""The number of elements that the defaults convert one by one.

Each element takes libraries from microseconds to milliseconds. A backend that needs more elements
overrides the kernel.
"""


def _unconverted(kernel: str, what: str, reasons: list[str]) -> str:
    ways = zip(
        ("DLPack", "__array__" if kernel == "to_numpy" else "asarray", "one by one"),
        reasons,
        strict=True,
    )
    tried = "; ".join(f"{way}: {reason}" for way, reason in ways)
    return (
        f"{kernel}: cannot bring {what} ({tried}). Give the backend a kernel that does: "
        f"Backend(kernels={{{kernel!r}: f}}), see multigrad/backends/kernels.py."
    )


def _few(shape: Any) -> None:
    n = math.prod(shape)
    if n > ONE_BY_ONE:
        raise ValueError(f"{n} elements are more than {ONE_BY_ONE}")


_KINDS: dict[str, tuple[type, str]] = {
    "bool": (bool, "bool"),
    "signed integer": (int, "int"),
    "unsigned integer": (int, "uint"),
    "real floating": (float, "float"),
    "complex floating": (complex, "complex"),
}


def _one_by_one(xp: Any, x: Any) -> Any:
    """Copy the elements of `x` to a NumPy array, by indexing and Python conversions.

    Every library of the standard supports these.
    """
    import numpy as np

    kind = next((k for k in _KINDS if xp.isdtype(x.dtype, k)), None)
    bits = 0 if kind is None else _bits(xp, x.dtype)
    if kind is None or (kind == "real floating" and bits < 32):  # which of the narrow ones?
        raise TypeError(f"{x.dtype} is not a dtype of the standard")
    _few(x.shape)
    scalar, stem = _KINDS[kind]
    out = np.empty(tuple(x.shape), stem if scalar is bool else f"{stem}{bits}")
    for index in np.ndindex(*out.shape):
        out[index] = scalar(x[index] if index else x)
    return out


def _from_list(xp: Any, x: Any) -> Any:
    """Make an array with the elements of `x` from a list of Python scalars."""
    _few(x.shape)
    return xp.reshape(xp.asarray(x.reshape(-1).tolist(), dtype=getattr(xp, x.dtype.name)), x.shape)


def exportable(xp: Any, x: Any) -> bool:
    """Return whether every library can import `x` by DLPack.

    PyTorch ends the process at a negative stride.
    """
    strides = getattr(x, "strides", None)
    if strides is None:
        import numpy as np

        try:
            strides = np.from_dlpack(x).strides
        except Exception:
            # if it cannot be inspected here, the export itself raises the right error
            return True
    return all(s >= 0 for s in strides)


def is_dense(x: Any) -> bool:
    """Whether the elements of `x`, in some order of its axes, are contiguous."""
    expected = x.dtype.itemsize
    for stride, n in sorted((s, n) for s, n in zip(x.strides, x.shape, strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= n
    return True


def without_leading(value: Any, ndim: int) -> Any:
    """`value` without the leading axes of length 1 beyond `ndim`, which a written value may have.

    It is None if there are none, or if they are longer than 1.
    """
    extra = getattr(value, "ndim", 0) - ndim
    return (
        value.reshape(value.shape[extra:])
        if extra > 0 and value.shape[:extra] == (1,) * extra
        else None
    )


SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
"""The Fourier transforms over several axes."""


def over_several(transform: Callable[..., Any]) -> Callable[..., Any]:
    """A library's Fourier transform over several axes, as the standard has it.

    These are the last axes if `s` has lengths and `axes` is None. A length of -1 is the one that
    the axis would have without `s`; for irfftn that is the length of the whole spectrum.
    """

    def function(x: Any, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
        if s is not None:
            axes = tuple(range(-len(s), 0)) if axes is None else axes
        if s is not None and -1 in s and len(s) == len(axes):  # else the library raises
            ndim = len(x.shape)
            whole = [x.shape[a] if -ndim <= a < ndim else -1 for a in axes]
            if transform.__name__ == "irfftn":
                whole[-1] = 2 * (whole[-1] - 1)
            s = tuple(n if n != -1 else length for n, length in zip(s, whole, strict=True))
        return transform(x, s=s, axes=axes, norm=norm)

    function.__name__ = transform.__name__
    return function


def kernels_of(module: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """The kernels that a module defines: its public functions that take a namespace first."""
    return {
        name: f
        for name, f in list(module.items())
        if isfunction(f)
        and f.__module__ == module["__name__"]
        and not name.startswith("_")
        and f.__code__.co_argcount > 0
        and f.__code__.co_varnames[0] == "xp"
    }


DEFAULTS = kernels_of(globals())
IMMUTABLE: dict[str, Callable[..., Any]] = {"write": lambda xp, x, value: value}
"""The defaults that differ where arrays are immutable."""
LAZY: dict[str, Callable[..., Any]] = {"concrete_bool": lambda xp, x: None}
"""The defaults that differ where arrays are lazy: a look at a value would compute it."""


_COUNTED = hasattr(sys, "getrefcount") and not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Whether a reference count is a proof; where threads count apart, it is none."""

SOLE_OWNER = (
    (lambda xp, g, like: sys.getrefcount(g))(None, [object()].pop(), None) if _COUNTED else -1
)
"""The value of `sys.getrefcount(g)` inside `take_ownership` if only its argument refers to `g`.

It is measured on this interpreter, and so are the next two. -1 is lower than any count.
"""


def base_references(view: Any) -> int:
    """The reference count of the base of `view`, measured from here."""
    base = view.base
    return sys.getrefcount(base)


SOLE_VIEW = base_references(SimpleNamespace(base=object())) if _COUNTED else -1
"""The value of `base_references(view)` if only the view holds its base.

An example is a transposed result.
"""


def references(arrays: list[Any], i: int) -> int:
    """The reference count of an array in a list, measured from here."""
    return sys.getrefcount(arrays[i])


SOLE_LISTED = references([object()], 0) if _COUNTED else -1
"""The value of `references` if only the list holds the array."""
