"""The operators and methods of Tensor and the other array objects, generated from the table.

It also holds the function of each operation. All array objects share these members by their common
base class, Surface. Only in-place operators differ. Tensor has its own. For array objects that are
never written, the result of an in-place operator replaces the value.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from operator import index
from types import FunctionType
from typing import Any

from .core import element
from .core.element import Library
from .core.level import Layer, Standing
from .core.surface import Surface
from .core.tensor import Tensor
from .dispatch import creation, functions
from .dispatch import general as dispatch
from .dispatch.functions import function_of
from .dispatch.general import BOUNDS, is_fixed
from .memory import copying, inplace, views
from .observe import NOTHING, gate, internally
from .registry import OPS, Op, keeping
from .tracebacks import entry, fold

_function: Callable[[Op], Callable[..., Tensor]] = function_of  # of an operation with one output
_installed: set[str] = set()
_NO_METHOD = ("creation", "kernels", "conversion", "indexing")


class _Lazy:
    """A method that is generated at its first lookup and then replaces this object."""

    def __init__(self, name: str, make: Callable[[], Callable[..., Any]]) -> None:
        self.name = name
        self.make = make

    def __get__(self, obj: Any, cls: Any) -> Any:
        function = self.make()
        function.__name__ = function.__qualname__ = self.name
        with keeping:
            for owner in (Tensor, Surface):
                if owner.__dict__.get(self.name) is self:
                    owner._define(self.name, function)
        return function if obj is None else function.__get__(obj, cls)


def install(op: Op) -> None:
    """Give all array objects the operators and the method of an operation.

    They replace those of an earlier declaration.
    """
    global _fast_getitem
    if op.name == "getitem":
        _fast_getitem = functions.make_function(op, key_is_plain=True)
    if op.operator:
        _install_operator(op)
    with keeping:
        _install_methods(op)


def _install_methods(op: Op) -> None:
    name = op.name
    twin = name + "_"
    installed = name in _installed
    method = (
        OPS.get(name) is op
        and "." not in name
        and op.chapter not in _NO_METHOD
        and next(iter(op.roles.values()), "") == "array"
        and (not op.beyond or op.about.method)
    )
    if not method or hasattr(Layer, name) or (not installed and hasattr(Tensor, name)):
        gone = {name, twin}
    else:
        gone = {twin}
        _installed.add(name)
        Surface._define(name, _Lazy(name, lambda: _plain_method(op)))
        if op.kind == "elementwise" or op.chapter == "elementwise":
            gone = set()
            _installed.add(twin)
            Tensor._define(twin, _Lazy(twin, lambda: _twin(op, twin)))
            Surface._define(twin, _Lazy(twin, lambda: _replacing(function_of(op), twin)))
    for former in gone & _installed:  # an object of another kind
        for owner in (Tensor, Surface):
            if former in owner.__dict__:
                owner._remove(former)


def _plain_method(op: Op) -> Callable[..., Any]:
    function = functions.make_function(op, op.name, method=True)
    if op.name != "conj":
        return function

    def conj(self: Any) -> Any:
        return function(self) if self._elem.complex else self

    conj.__doc__ = f"{function.__doc__}\n\nFor a real array it is the array itself."
    return conj


def _twin(op: Op, name: str) -> Callable[..., Any]:
    function = function_of(op)

    def method(self: Tensor, *others: Any, **options: Any) -> Tensor:
        try:
            result: Tensor = inplace.in_place(op, function, None, self, *others, **options)
            if result is NotImplemented:
                raise TypeError(
                    f"{name}: expected arrays or Python scalars, got "
                    f"{', '.join(type(x).__name__ for x in others)}"
                )
            return result
        except Exception as error:
            fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
            raise

    method.__doc__ = f"In place: {function.__doc__}"
    return method


def _replacing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Make the in-place form of a function for array objects whose value it replaces."""

    def method(self: Any, *others: Any, **options: Any) -> Any:
        try:
            result = function(self, *others, **options)
            return result if result is NotImplemented else internally(self._become, result, name)
        except Exception as error:
            fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
            raise

    return method


def _install_operator(op: Op) -> None:
    stem = op.operator
    Surface._define(
        f"__{stem}__", _Lazy(f"__{stem}__", lambda: functions.make_function(op, operator=True))
    )
    if stem not in inplace.DIRECT:  # which has those that can be reflected
        return
    Surface._define(
        f"__r{stem}__",
        _Lazy(f"__r{stem}__", lambda: functions.make_function(op, reflected=True, operator=True)),
    )
    direct = inplace.DIRECT[stem]
    function = functions.make_function(op, operator=True)

    def augmented(self: Tensor, other: Any, /) -> Any:
        try:
            run = self._elem.run
            if run is not None:
                if run.rebinds:
                    return NotImplemented  # Python then tries `self = self + other`
            elif (
                type(self) is Tensor
                and type(other) is Tensor
                and self._elem is other._elem
                and (mode := gate.get()) is not True
                and mode.base is False
                and mode.watch is NOTHING
            ):
                done = inplace.directly(self, other, direct)
                if done is not None:
                    return done
            return inplace.in_place(op, function, direct, self, other)
        except Exception as error:
            fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
            raise

    def of_layers(self: Any, other: Any, /) -> Any:
        return NotImplemented if self._run.rebinds else replacing(self, other)

    name = f"__i{stem}__"
    replacing = _replacing(function, name)
    augmented.__name__ = augmented.__qualname__ = of_layers.__name__ = of_layers.__qualname__ = name
    Tensor._define(name, augmented)
    Surface._define(name, of_layers)


def _getitem(self: Tensor, key: Any, /) -> Tensor:
    """The part of the array that `key` selects.

    The key may have integers, slices, ..., None, a boolean mask, and integer arrays.
    """
    try:
        kind = type(key)
        # is_fixed, inlined
        if (
            kind is int
            or (
                kind is slice
                and type(key.start) in BOUNDS
                and type(key.stop) in BOUNDS
                and type(key.step) in BOUNDS
            )
            or (kind is tuple and dispatch.is_basic_key(key))
        ):
            return _fast_getitem(self, key)
        return _function(OPS["getitem"])(self, _key(key, self._elem.library))
    except Exception as error:
        fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
        raise


def _fast_getitem(self: Tensor, key: Any) -> Tensor:
    raise AssertionError("replaced when the table is filled")


def _key(key: Any, library: Library) -> Any:
    """Normalise a key: lists become integer arrays or masks, integers become Python's."""
    kind = type(key)
    if kind in library.backend.array_types or (kind is Tensor and key._elem.library is library):
        return key
    if isinstance(key, list):
        return creation.asarray(key, backend=library.name)
    if kind is not bool and issubclass(kind, Integral):
        return index(key)
    if isinstance(key, tuple):
        return tuple(_key(k, library) for k in key)
    if kind is slice and not is_fixed(key):
        return slice(*(None if k is None else index(k) for k in (key.start, key.stop, key.step)))
    if kind is not slice and key is not None and key is not Ellipsis:
        other = key._elem.library if isinstance(key, Layer) else element.library_of(key)
        if other is not None and other is not library:
            raise element.mixed("indexing", library, other)
    return key


def _with_item(x: Any, key: Any, value: Any) -> Any:
    """The values of `x` with `value` written at `key`."""
    return _function(OPS["setitem"])(x, key, value)


def _setitem(self: Tensor, key: Any, value: Any, /) -> None:
    try:
        if (
            isinstance(value, Tensor)
            and value._view is not None
            and views.same_place(value, self, key)
        ):
            inplace.touch(self, value)
            return
        op = OPS["setitem"]
        if isinstance(value, Standing):
            value = value._as_operand(op, [self])
        inplace.set_item(op, _with_item, self, _key(key, self._elem.library), value)
    except Exception as error:
        fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
        raise


def _setitem_replacing(self: Any, key: Any, value: Any, /) -> None:
    try:
        if (
            type(value) is type(self)
            and value._view is not None
            and views.same_place(value, self, key)
        ):
            return
        views.check_value(self, value, recording=False)
        value = _with_item(self, _key(key, self._elem.library), value)
        internally(self._become, value, "setitem")
    except Exception as error:
        fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
        raise


def _transposed(self: Tensor) -> Tensor:
    """The transpose of a matrix; the array must have two axes, as in the standard.

    For other numbers of axes use mT or permute_dims.
    """
    try:
        if self.ndim != 2:
            raise ValueError(
                f"T is for two dimensions; this Tensor has {self.ndim}. Use .mT or permute_dims"
            )
        return _function(OPS["matrix_transpose"])(self)
    except Exception as error:
        fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
        raise


def _matrix_transposed(self: Tensor) -> Tensor:
    """The transpose of each matrix in the last two axes."""
    try:
        return _function(OPS["matrix_transpose"])(self)
    except Exception as error:
        fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
        raise


def _real(self: Tensor) -> Tensor:
    """The real part, as numpy.ndarray.real: a view that can be written to and assigned.

    For a real array it is the array itself.
    """
    return _function(OPS["real"])(self) if self._elem.complex else self


def _imag(self: Tensor) -> Tensor:
    """The imaginary part, as numpy.ndarray.imag: a view that can be written to and assigned.

    For a real array it is an array of constant zeros.
    """
    return (
        _function(OPS["imag"])(self)
        if self._elem.complex
        else self.__array_namespace__().zeros_like(self)
    )


def _set_real(self: Tensor, value: Any) -> None:
    _write_part(self, _real(self), value)


def _set_imag(self: Tensor, value: Any) -> None:
    if not self._elem.complex:
        raise TypeError(
            f"imag: a {'Tensor' if isinstance(self, Tensor) else type(self).__name__} of dtype "
            f"{self.dtype} has no imaginary part to write to; convert it to a complex dtype "
            "first, with astype()"
        )
    _write_part(self, _imag(self), value)


def _write_part(self: Tensor, part: Tensor, value: Any) -> None:
    if part is value:  # the last step of `x.real += other`, where x is real
        return
    if views.same_view(value, part):  # the last step of `x.real += other`, where x is complex
        if isinstance(self, Tensor):
            inplace.touch(self, value)
    else:
        part[...] = value


def _zero(self: Tensor) -> Tensor:
    """Set every element to zero, in place."""
    self[...] = False if self._elem.bool else 0
    return self


def _copy(self: Tensor, other: Any) -> Tensor:
    """Copy the values of `other` into this Tensor, differentiably.

    They are broadcast to this shape and cast to this dtype.
    """
    value = creation.asarray(other, backend=self._elem.library.name)
    if value._elem.base is not self._elem.base and (self._elem.complex or not value._elem.complex):
        # unlike `x[...] = value`, this also casts from a higher kind of dtype: 1.5 becomes 1
        value = self._elem.library.bound.astype(value, self.dtype)
    self[...] = value
    return self


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """A copy of this Tensor on another device; differentiable."""
    return _function(OPS["to_device"])(self, device, stream=stream)


def _reshape(self: Tensor, *shape: Any, copy: bool | None = None) -> Tensor:
    """The same elements in another shape: t.reshape((2, 3)) or t.reshape(2, 3).

    A length of -1 is inferred from the others.
    """
    try:
        return _function(OPS["reshape"])(self, _sizes(shape), copy=copy)
    except Exception as error:
        fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
        raise


def _permute_dims(self: Tensor, *axes: Any) -> Tensor:
    """The axes in another order: t.permute_dims((1, 0)) or t.permute_dims(1, 0)."""
    return _function(OPS["permute_dims"])(self, _sizes(axes))


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """The axes in reverse order, or in the given order. Corresponds to numpy.ndarray.transpose.

    Write t.transpose(), t.transpose((1, 0, 2)) or t.transpose(1, 0, 2).
    """
    return _function(OPS["transpose"])(self, None if axes in ((), (None,)) else _sizes(axes))


def _squeeze(self: Tensor, axis: Any = None) -> Tensor:
    """The array without its axes of length 1, or without the given ones.

    Corresponds to numpy.ndarray.squeeze.
    """
    axes = tuple(i for i, n in enumerate(self.shape) if n == 1) if axis is None else axis
    return _function(OPS["squeeze"])(self, axis=axes)


def _cumsum(self: Tensor, axis: Any = None, dtype: Any = None) -> Tensor:
    """The cumulative sums along an axis, or of the flattened array (None).

    Corresponds to numpy.ndarray.cumsum.
    """
    return _cumulated("cumulative_sum", self, axis, dtype)


def _cumprod(self: Tensor, axis: Any = None, dtype: Any = None) -> Tensor:
    """The cumulative products along an axis, or of the flattened array (None).

    Corresponds to numpy.ndarray.cumprod.
    """
    return _cumulated("cumulative_prod", self, axis, dtype)


def _cumulated(name: str, x: Tensor, axis: Any, dtype: Any) -> Tensor:
    x, axis = (_reshape(x, -1), 0) if axis is None else (x, axis)
    return _function(OPS[name])(x, axis=axis, dtype=dtype)


def _sizes(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The integers of a call `f(1, 2)` or `f((1, 2))`, as a tuple."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


_METHODS: dict[str, Any] = {
    "__getitem__": _getitem,
    "__setitem__": _setitem_replacing,
    "T": property(_transposed),
    "mT": property(_matrix_transposed),
    "real": property(_real, _set_real),
    "imag": property(_imag, _set_imag),
    "reshape": _reshape,
    "to_backend": creation.to_backend,
    "__deepcopy__": copying.deepcopy,
}
_ENTRIES: dict[str, Any] = {
    "permute_dims": _permute_dims,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "cumsum": _cumsum,
    "cumprod": _cumprod,
    "zero_": _zero,
    "copy_": _copy,
    "to_device": _to_device,
}
for _name, _method in (_METHODS | _ENTRIES).items():
    if isinstance(_method, FunctionType):
        # Python's errors about calls name the function like this
        _method.__name__, _method.__qualname__ = _name, f"Tensor.{_name}"
    Surface._define(_name, entry(_method) if _name in _ENTRIES else _method)
Tensor._define("__setitem__", _setitem)
