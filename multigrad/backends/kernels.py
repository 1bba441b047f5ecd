"""What the engine needs beyond the standard, each with a default that uses only the standard.

A backend overrides what its library does better; one without any kernel is complete, only slower.
(Kernels that *rules* call, such as scatter_add, are operations: see `ops/kernels.py`.)
"""

from __future__ import annotations

import math
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

from ..errors import BackendError


def take_ownership(xp: Any, g: Any, like: Any) -> Any:
    """Return an array equal to `g` that nobody else holds, dense, laid out and placed as `like`
    where the library can.

    What becomes a leaf's `.grad` passes through here, since later gradients are added to it in
    place. Where arrays are immutable, `g` itself will do. `like` is None when the leaf is gone.

    A backend may return `g` itself if nobody else refers to it (see SOLE_OWNER). So the caller
    hands over its only reference, a temporary such as `box.pop()`; with any other left, in a local
    variable too, it gets a copy.
    """
    return xp.asarray(g, copy=True)


def admit(xp: Any, x: Any) -> None:
    """Raise where the raw array `x` must not be computed with: a tensor that its own library
    differentiates, say, or one of a sparse layout.

    A backend that writes it is asked of each raw array that is given to an operation, and of each
    that becomes a Tensor. (`Backend.refused_types` refuses all arrays of a class, and costs
    nothing.)
    """


def place_like(xp: Any, g: Any, like: Any) -> Any:
    """Return `g` placed (device, sharding) as `like` is. Applied to what `grad` returns."""
    return g


def constant(xp: Any, value: Any, dtype: Any, device: Any) -> Any:
    """Return the Python scalar `value` as a 0-d array. It may be cached: nobody writes to it.

    `device` is None beside an array whose device was not asked for: then the constant must be one
    that meets arrays of every device.
    """
    return xp.asarray(value, dtype=dtype, device=device)


def device(xp: Any, x: Any) -> Any:
    """Return the device of `x`, None where it is not known (under a trace)."""
    return getattr(x, "device", None)


def order(xp: Any, x: Any) -> str | None:
    """Say how the last two axes of `x` lie in memory: "C" by rows, "F" by columns, None if unknown
    or neither.

    Rules read it as `<array>_order`, to make a gradient in the memory order of its argument.
    """
    return None


def is_c_contiguous(xp: Any, x: Any) -> bool:
    """Say whether it is certain that `x` lies in memory in row-major order without gaps, so that
    any reshape of it is a view.

    Asked where arrays are mutable; where it is not certain, the standard's reshape(copy=False)
    answers, which takes longer.
    """
    return False


def eagerly(xp: Any, x: Any, compute: Callable[[], Any]) -> Any:
    """Return `compute()`, made of `x`.

    It is kept by what outlives a trace, so where the values of `x` are known it must not become
    part of one.
    """
    return compute()


def fresh(xp: Any, x: Any) -> Any:
    """Return `x` so that a compiler cannot know it for `x`: what is computed of it again is
    computed again, and not kept instead.
    """
    return x


def shares_memory(xp: Any, x: Any, y: Any) -> bool:
    """Say whether it is certain that `x`, made of `y` by operations that may return views, lies in
    the memory of `y`.

    Asked where arrays are mutable, before a view is written to. Where it is not certain, `y` is
    written to instead, which takes longer.
    """
    return False


def write(xp: Any, x: Any, value: Any) -> Any:
    """Give `x` the values of `value`, of the same shape and dtype, and return the array that now
    holds them.

    Where arrays are immutable, the default returns `value`, which takes the place of `x`.
    """
    x[...] = value
    return x


def _exchange(xp: Any, x: Any, value: Any) -> Any:
    """`write` where arrays are immutable."""
    return value


def assign(xp: Any, x: Any, key: Any, value: Any) -> None:
    """Write `value` into the memory of `x` at `key`, as `x[key] = value`.

    After an IndexError, TypeError or ValueError the engine finds another way.

    Asked where arrays are mutable. A library whose keys differ from the standard's has a `getitem`
    among its functions, and writes alike here.
    """
    x[key] = value


def devices(xp: Any) -> tuple[Any, ...]:
    """List the devices that there are, for `python -m multigrad backends --probe`."""
    return tuple(xp.__array_namespace_info__().devices())


def compile(xp: Any, program: Any, *, arena: int) -> Callable[..., Any]:
    """Return a function that runs a Program of `func.compile` on raw arrays: see multigrad.program.

    The default calls its operations one by one.

    `arena`: how many bytes it may keep between calls.
    """
    from .straight import compiled  # which needs the raw namespace, and that needs this module

    return compiled(xp, program)


def modes(xp: Any) -> Any:
    """Return what decides, besides arguments, what operations do, as `numpy.geterr()` does:
    something to compare by `==`, None for nothing.

    A function that changes it while `func.compile` records it is not compiled.
    """


def rule(xp: Any, name: str, vjp: Callable[..., Any]) -> Callable[..., Any]:
    """Return the derivative rule of the operation `name` as it is to run on arrays of this library,
    called as `vjp(xp, g, *saved)`. Asked once.

    For a library whose arrays may be something that rules do not expect, sizes that are not known
    yet for instance, so that it can refuse them.
    """
    return vjp


def function(xp: Any, name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that carries out the operation `name` on raw arrays of this library,
    which would be `forward`. Asked once, as `rule` is.
    """
    return forward


def concrete_bool(xp: Any, x: Any) -> bool | None:
    """Return the value of the 0-d boolean array `x`, None where it is not known (under a trace, or
    not computed yet).
    """
    return bool(x)


def _unknown(xp: Any, x: Any) -> bool | None:
    """`concrete_bool` where arrays are plans of what is to be computed: to look at a value would
    compute it.
    """
    return None


def control(xp: Any, arrays: Any) -> Any:
    """Return the library's own loops and branches where values are not known yet (under a trace, of
    `arrays` or of all), None where they are.

    What is returned has `scan(step, carry, xs, length, reverse)`, where `step(carry, x)` returns
    (carry, y) and the result is (carry, ys); `while_loop(condition, step, carry)`; and
    `switch(index, branches, args)`, where `index` is a 0-d integer array that is in bounds and each
    branch is called as `branch(args)`. Carries, arguments and results are nested lists and tuples
    of arrays.
    """
    return None


def synchronize(xp: Any, x: Any) -> None:
    """Wait until `x` has been computed. A no-op where computation is synchronous."""


def accelerator(xp: Any, x: Any) -> str | None:
    """Return the kind of device that `x` is on, "cuda" for instance, None for the host's own
    memory. Without `x`: that of new arrays.

    The profiler asks it for what memory to count where, and whether there is a device to measure at
    all.
    """
    return None


def mark(xp: Any, x: Any) -> Any:
    """Note the moment at which `x` is computed on its device, for `elapsed`.

    None where there is no telling.

    A library that computes at once needs none: the time on the host is all there is. One that only
    plans what is to be computed has none.
    """
    return None


def elapsed(xp: Any, start: Any, end: Any) -> float:
    """Return the microseconds between two moments that `mark` noted, once both are past."""
    raise NotImplementedError(
        "a backend whose `mark` notes anything says how long it was between two of them"
    )


def annotation(xp: Any, name: str) -> Any:
    """Return a context manager that shows its block under that name in the library's own profiler,
    None where there is none.
    """
    return None


def storage(xp: Any, x: Any) -> tuple[Any, int]:
    """Return the object that holds the memory of `x`, for all arrays on that memory the same one,
    and the bytes of it.
    """
    try:
        return x, _bytes(xp, x)
    except (AttributeError, TypeError, ValueError):  # a dtype from outside of the standard
        return x, 0


def _bytes(xp: Any, x: Any) -> int:
    bits = (
        8
        if xp.isdtype(x.dtype, "bool")
        else (xp.iinfo if xp.isdtype(x.dtype, "integral") else xp.finfo)(x.dtype).bits
    )
    if xp.isdtype(x.dtype, "complex floating"):
        bits *= 2  # finfo speaks of one of the two parts
    n: int = math.prod(x.shape)
    return n * int(bits) // 8


def to_numpy(xp: Any, x: Any, copy: bool | None = None) -> Any:
    """Return the values of `x` as a NumPy array of the same dtype, on the memory of `x` where the
    library can share it.

    The default tries DLPack, then `__array__`, then takes up to 10,000 elements one by one. A
    result of dtype object is the library's array in a box, so it does not count. `copy=False`
    raises ValueError where the memory cannot be shared.
    """
    import numpy as np

    def by_dlpack(x: Any) -> Any:
        return np.from_dlpack(x, copy=copy) if copy is False else np.from_dlpack(x)

    def by_array(x: Any) -> Any:
        if not hasattr(x, "__array__"):
            raise TypeError("no __array__")
        return np.asarray(x, copy=copy)

    ways: tuple[Callable[[Any], Any], ...] = (by_dlpack, by_array, lambda x: _one_by_one(xp, x))
    reasons = []
    for way in ways[:2] if copy is False else ways:
        try:
            found = way(x)
        except Exception as error:
            # what a library raises here is its own affair (dtype, device): the next way may do
            reasons.append(f"{type(error).__name__}: {error}")
            continue
        if found.dtype.kind != "O":
            return found
        reasons.append("it gave an array of dtype object")
    if copy is False:
        raise ValueError(
            f"to_numpy(copy=False): an array of {type(x).__module__} cannot become one of NumPy "
            f"without a copy ({'; '.join(reasons)}). Leave out copy=False."
        )
    raise BackendError(
        _unconverted("to_numpy", f"an array of {type(x).__module__} to NumPy", reasons)
    )


def from_numpy(xp: Any, x: Any) -> Any:
    """Return the NumPy array `x` as an array of the library on its default device, of the same
    dtype. It may lie on the memory of `x`.

    The default tries DLPack, then `asarray`, then a list of up to 10,000 elements.
    """
    reasons = []
    # it may lack some
    ways: tuple[Callable[[Any], Any], ...] = (
        lambda x: xp.from_dlpack(x),
        lambda x: xp.asarray(x),
        lambda x: _from_list(xp, x),
    )
    for way in ways:
        try:
            found = way(x)
            if tuple(found.shape) == x.shape:
                return found
            reasons.append(f"it gave an array of shape {tuple(found.shape)}")
        except Exception as error:  # as above
            reasons.append(f"{type(error).__name__}: {error}")
    raise BackendError(
        _unconverted(
            "from_numpy",
            f"an array of NumPy of dtype {x.dtype} to {xp.__name__.rpartition('.')[2]}",
            reasons,
        )
    )


ONE_BY_ONE = 10_000
"""How many elements the defaults convert one by one.

Libraries take from microseconds to milliseconds for each; for more of them a backend writes the
kernel."""


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
    """A NumPy array of the elements of `x`, by indexing and Python's own conversions, which every
    library of the standard has.
    """
    import numpy as np

    kind = next((k for k in _KINDS if xp.isdtype(x.dtype, k)), None)
    if kind is None:
        raise TypeError(f"{x.dtype} is no dtype of the standard")
    _few(x.shape)
    scalar, stem = _KINDS[kind]
    bits = (
        0
        if scalar is bool
        else (xp.iinfo if scalar is int else xp.finfo)(x.dtype).bits * (1 + (scalar is complex))
    )
    if scalar is float and bits < 32:
        raise TypeError(f"{x.dtype} is no dtype of the standard")  # which of the narrow ones?
    found = np.empty(tuple(x.shape), f"{stem}{bits or ''}")
    for index in np.ndindex(*found.shape):
        found[index] = scalar(x[index] if index else x)
    return found


def _from_list(xp: Any, x: Any) -> Any:
    """An array of the elements of `x`, by way of Python's scalars."""
    _few(x.shape)
    return xp.reshape(xp.asarray(x.reshape(-1).tolist(), dtype=getattr(xp, x.dtype.name)), x.shape)


def exportable(xp: Any, x: Any) -> bool:
    """Say whether every library can take the memory of `x` by DLPack as it is.

    PyTorch ends the process at a negative stride.
    """
    strides = getattr(x, "strides", None)
    if strides is None:
        import numpy as np

        try:
            strides = np.from_dlpack(x).strides
        except Exception:
            # what cannot be looked at from here says itself what is wrong with it, when it is
            # exported
            return True
    return all(s >= 0 for s in strides)


def without_leading(value: Any, ndim: int) -> Any:
    """`value` without the leading axes of length 1 that it has beyond `ndim`, which the standard
    lets a written value have.

    None if there are none, or they are longer.
    """
    extra = getattr(value, "ndim", 0) - ndim
    return (
        value.reshape(value.shape[extra:])
        if extra > 0 and value.shape[:extra] == (1,) * extra
        else None
    )


DEFAULTS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        take_ownership,
        place_like,
        accelerator,
        admit,
        fresh,
        annotation,
        assign,
        eagerly,
        compile,
        constant,
        control,
        is_c_contiguous,
        device,
        devices,
        elapsed,
        exportable,
        from_numpy,
        function,
        mark,
        modes,
        order,
        rule,
        shares_memory,
        storage,
        to_numpy,
        concrete_bool,
        write,
        synchronize,
    )
}
IMMUTABLE: dict[str, Callable[..., Any]] = {"write": _exchange}
"""The defaults that are others where arrays are immutable."""
LAZY: dict[str, Callable[..., Any]] = {"concrete_bool": _unknown}
"""The defaults that are others where arrays are lazy."""


def _count_references(xp: Any, g: Any, like: Any) -> int:
    return sys.getrefcount(g)


def _calibrate() -> int:
    if not hasattr(sys, "getrefcount") or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return -1  # a count proves nothing there
    return _count_references(None, [object()].pop(), None)


SOLE_OWNER = _calibrate()
"""What `sys.getrefcount(g)` says inside `take_ownership` where nothing but its argument refers to
`g`, by this interpreter's way of counting. No count is as low where an interpreter does not count
references, or counts by thread."""


def base_references(view: Any) -> int:
    """The reference count of the array that `view` shows a part of, as seen from here."""
    base = view.base
    return sys.getrefcount(base)


class _View:
    base: Any


def _calibrate_view() -> int:
    if SOLE_OWNER < 0:
        return -1
    view = _View()
    view.base = object()
    return base_references(view)


SOLE_VIEW = _calibrate_view()
"""`base_references(view)` where the view alone holds its base: a transposed result, say. -1 where
nothing can be proven.
"""
