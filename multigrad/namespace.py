"""The differentiable Array API namespace of each backend, and Tensor's operators and methods: all generated from the table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Integral
from operator import index
from typing import Any

from . import registry
from .engine import convert, dispatch, element, fast, grad_mode, inplace
from .engine.element import Host
from .engine.level import Layer
from .engine.tensor import Tensor, wrap_new
from .registry import OPS, Op

CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")
VERSION = "2025.12"

_functions: dict[str, Callable[..., Any]] = {}


def function_of(op: Op) -> Callable[..., Any]:
    """The differentiable function of an operation, one for all backends."""
    found = _functions.get(op.name)
    if found is None:
        found = _functions[op.name] = fast.make_function(op)
    return found


class Namespace:
    """The Array API standard over the arrays of one backend, differentiable.

    Functions take Tensors, raw arrays of the backend and Python scalars and return Tensors; those that make an array
    take `requires_grad` as well, and dtypes also by name. `linalg`, `fft` and the prefixes of plugins are namespaces too.
    """

    def __init__(self, host: Host, prefix: str = "") -> None:
        self._host = host
        self._prefix = prefix
        self.__name__ = f"multigrad.{host.name}" + (f".{prefix[:-1]}" if prefix else "")
        if not prefix:
            self.__array_api_version__ = VERSION

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__array_namespace_info__":
            raise AttributeError(name)
        found = self._find(name)
        setattr(self, name, found)
        return found

    def _find(self, name: str) -> Any:
        full = self._prefix + name
        op = OPS.get(full)
        if op is not None:
            return self._bind(op)
        if not self._prefix:
            if any(known.startswith(f"{name}.") for known in OPS):
                return Namespace(self._host, f"{name}.")
            if name in CONSTANTS or name in element.DTYPES or name == "__array_namespace_info__":
                return getattr(self._host.backend.namespace, name)
        raise AttributeError(f"the namespace {self.__name__!r} has no {name!r}: no operation {full!r} is declared (see `python -m multigrad ops`)")

    def _bind(self, op: Op) -> Callable[..., Any]:
        if op.name == "asarray":
            return self._asarray
        if op.chapter == "data_type" or (op.chapter == "creation" and op.arrays):
            return _anchored(op, self._host)
        if not op.arrays:
            return _creation(op, self._host)
        return function_of(op)

    def _asarray(self, obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False) -> Tensor:
        """Make a Tensor of this backend, from arrays of any known library too. See multigrad.asarray."""
        return convert.asarray(obj, dtype=dtype, device=device, copy=copy, backend=self._host.name, requires_grad=requires_grad)

    def device_of(self, x: Any) -> Any:
        """The device on which to make a constant that is to meet `x`, None where the library places it by itself. For rules."""
        return self._host.device(self._host.xp, dispatch.innermost(x))

    def _forget(self) -> None:
        """Drop the functions of a former declaration, also in the namespaces below."""
        for name, value in list(vars(self).items()):
            if isinstance(value, Namespace):
                value._forget()
            elif not name.startswith("_"):
                delattr(self, name)

    def __dir__(self) -> list[str]:
        names = {n.removeprefix(self._prefix).partition(".")[0] for n in OPS if n.startswith(self._prefix)}
        return sorted(names | ({*CONSTANTS, *element.DTYPES} if not self._prefix else set()))

    def __repr__(self) -> str:
        return f"<namespace {self.__name__!r}>"

    def __reduce__(self) -> Any:
        return _bound_named, (self._host.name, self._prefix)


def _bound_named(name: str, prefix: str) -> Any:
    bound = element.host_named(name).bound
    return getattr(bound, prefix[:-1]) if prefix else bound


def _creation(op: Op, host: Host) -> Callable[..., Any]:
    """A function that takes no array: it makes one of this backend, or tells about dtypes."""
    raw = dispatch.raw_function(host, op.name)
    signature = op.signature
    makes = ("dtype" in signature.parameters and "device" in signature.parameters) or op.name == "from_dlpack"
    if makes:
        flag = inspect.Parameter("requires_grad", inspect.Parameter.KEYWORD_ONLY, default=False)
        signature = signature.replace(parameters=[*signature.parameters.values(), flag])

    def function(*args: Any, **kwargs: Any) -> Any:
        requires_grad = kwargs.pop("requires_grad", False) if makes else False
        if "dtype" in kwargs:
            kwargs["dtype"] = element.named_dtype(host, kwargs["dtype"])
        args = tuple(_unwrapped(a) for a in args)
        result = raw(*args, **{k: _unwrapped(v) for k, v in kwargs.items()})
        if not dispatch.is_array(result):
            return result
        t = wrap_new(result)
        return t.requires_grad_() if requires_grad else t

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.doc
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__module__ = "multigrad"
    return function


def _anchored(op: Op, host: Host) -> Callable[..., Any]:
    """A function that may get no array at all (full, linspace, finfo): then it is this backend's, else its arguments decide."""
    made = _creation(op, host)
    derived = function_of(op)

    def function(*args: Any, **kwargs: Any) -> Any:
        if not any(dispatch.is_array(a) for a in (*args, *kwargs.values())):
            return made(*args, **kwargs)
        requires_grad = kwargs.pop("requires_grad", False)
        if "dtype" in kwargs and op.chapter == "creation":
            kwargs["dtype"] = element.named_dtype(host, kwargs["dtype"])
        result = derived(*args, **kwargs)
        return result.requires_grad_() if requires_grad else result

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.doc
    function.__signature__ = made.__signature__  # type: ignore[attr-defined]
    function.__module__ = "multigrad"
    return function


def _unwrapped(x: Any) -> Any:
    """The raw array of a Tensor among the arguments of a function without gradient (finfo, arange, from_dlpack)."""
    if isinstance(x, Layer):
        if isinstance(x, Tensor):
            x._check()
            if x._node is not None:
                raise TypeError("a function that takes no gradient got a Tensor that requires grad; detach() it first")
        return dispatch.innermost(x)
    return x


# Tensor's operators and methods

_REFLECTED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_installed: set[str] = set()
_NO_METHOD = ("creation", "kernels", "conversion", "indexing")


class _Lazy:
    """A method that is generated when it is first looked up, and then takes this object's place in the class."""

    def __init__(self, name: str, make: Callable[[], Callable[..., Any]]) -> None:
        self.name = name
        self.make = make

    def __get__(self, obj: Any, cls: Any) -> Any:
        function = self.make()
        function.__name__ = function.__qualname__ = self.name
        if Tensor.__dict__.get(self.name) is self:
            setattr(Tensor, self.name, function)
        return function if obj is None else function.__get__(obj, cls)


def _install(op: Op) -> None:
    """Give Tensor the operators and the method of an operation."""
    if op.operator:
        _install_operator(op)
    name = op.name
    if "." in name or op.chapter in _NO_METHOD or not op.roles or next(iter(op.roles.values())) != "array" or hasattr(Layer, name):
        return
    if name in Tensor.__dict__ and name not in _installed:
        return
    _installed.add(name)
    setattr(Tensor, name, _Lazy(name, lambda: fast.make_function(op, name, method=True)))
    if op.kind == "elementwise" or op.chapter == "elementwise":
        twin = name + "_"
        setattr(Tensor, twin, _Lazy(twin, lambda: _twin(op, twin)))


def _twin(op: Op, name: str) -> Callable[..., Any]:
    function = function_of(op)

    def method(self: Tensor, *others: Any, **options: Any) -> Tensor:
        result: Tensor = inplace.in_place(op, lambda t, *args: function(t, *args, **options), self, others)
        if result is NotImplemented:
            raise TypeError(f"{name}: expected arrays or Python scalars, got {', '.join(type(x).__name__ for x in others)}")
        return result

    method.__doc__ = f"In place: {op.doc}"
    return method


def _install_operator(op: Op) -> None:
    stem = op.operator
    setattr(Tensor, f"__{stem}__", _Lazy(f"__{stem}__", lambda: fast.make_function(op, operator=True)))
    if stem not in _REFLECTED:
        return
    setattr(Tensor, f"__r{stem}__", _Lazy(f"__r{stem}__", lambda: fast.make_function(op, reflected=True, operator=True)))
    direct = inplace.DIRECT[stem]
    function = fast.make_function(op, operator=True)

    def augmented(self: Tensor, other: Any, /) -> Any:
        if type(self) is Tensor and type(other) is Tensor and self._elem is other._elem and not grad_mode.recording():
            done = inplace.directly(self, other, direct)
            if done is not None:
                return done
        return inplace.in_place(op, function, self, (other,), direct)

    augmented.__name__ = augmented.__qualname__ = f"__i{stem}__"
    setattr(Tensor, augmented.__name__, augmented)


def _getitem(self: Tensor, key: Any, /) -> Tensor:
    """The part of the array that `key` selects: integers, slices, ..., None, a mask, or integer arrays."""
    kind = type(key)
    if kind is int or kind is slice or (kind is tuple and dispatch.is_basic_key(key)):
        found: Tensor = _fast_getitem(self, key)
        return found
    found = dispatch.general(OPS["getitem"], (self, _key(key, self._elem.host)))
    return found


def _key(key: Any, host: Host) -> Any:
    """Lists in a key are integer arrays or masks, as in NumPy; integers of any kind are Python's."""
    if isinstance(key, list):
        return convert.asarray(key, backend=host.name)
    kind = type(key)
    if kind is not bool and issubclass(kind, Integral):
        return index(key)
    if kind is tuple:
        return tuple(_key(k, host) for k in key)
    if kind is not slice and key is not None and key is not Ellipsis:
        other = key._elem.host if isinstance(key, Layer) else element.host_of(key)
        if other is not None and other is not host:
            raise element.mixed("indexing", host, other)
    return key


def _setitem(self: Tensor, key: Any, value: Any, /) -> None:
    op = OPS["setitem"]
    inplace.set_item(op, function_of(op), self, _key(key, self._elem.host), value)


def _fast_getitem(self: Tensor, key: Any) -> Any:
    raise AssertionError("replaced when the table is filled")


def _transposed(self: Tensor) -> Tensor:
    """The transpose of a matrix; for other dimensions use mT or permute_dims, as in the standard."""
    if self.ndim != 2:
        raise ValueError(f"T is for two dimensions; this Tensor has {self.ndim}. Use .mT or permute_dims")
    found: Tensor = function_of(OPS["matrix_transpose"])(self)
    return found


def _matrix_transposed(self: Tensor) -> Tensor:
    """The transpose of each matrix in the last two axes."""
    found: Tensor = function_of(OPS["matrix_transpose"])(self)
    return found


def _zero(self: Tensor) -> Tensor:
    """Set every element to zero, in place."""
    _setitem(self, Ellipsis, 0)
    return self


def _copy(self: Tensor, other: Any) -> Tensor:
    """Copy the values of `other`, broadcast to this shape and cast to this dtype, into this Tensor, differentiably."""
    _setitem(self, Ellipsis, convert.asarray(other, backend=self._elem.host.name))
    return self


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """This Tensor on another device; differentiable."""
    moved: Tensor = dispatch.general(OPS["to_device"], (self, device, stream))
    return moved


_loaded = False


def load() -> None:
    """Fill the table of operations, once: the standard's, then those of plugins."""
    global _loaded, _fast_getitem
    if _loaded:
        return
    _loaded = True
    from . import ops
    from .backends import discovery

    assert ops
    convert.declare()
    for op in list(OPS.values()):
        _install(op)
    _fast_getitem = fast.make_function(OPS["getitem"], key_is_plain=True)
    registry.on_declaration(_changed)
    discovery.load_operations()


def _changed(op: Op) -> None:
    """An operation was declared or replaced: what was generated from the old one goes."""
    _functions.pop(op.name, None)
    fast.forget()
    element.forget()
    _install(op)


element.make_bound = Namespace
element.on_first_use = load
def _reshape(self: Tensor, *shape: Any, copy: bool | None = None) -> Tensor:
    """The same elements in another shape: t.reshape((2, 3)) or t.reshape(2, 3); -1 stands for what is left."""
    found: Tensor = function_of(OPS["reshape"])(self, _sizes(shape), copy=copy)
    return found


def _permute_dims(self: Tensor, *axes: Any) -> Tensor:
    """The axes in another order: t.permute_dims((1, 0)) or t.permute_dims(1, 0)."""
    found: Tensor = function_of(OPS["permute_dims"])(self, _sizes(axes))
    return found


def _sizes(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """One tuple or list, or the integers themselves."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


_METHODS = {
    "__getitem__": _getitem, "__setitem__": _setitem, "T": property(_transposed), "mT": property(_matrix_transposed),
    "reshape": _reshape, "permute_dims": _permute_dims, "zero_": _zero, "copy_": _copy, "to_device": _to_device, "to_backend": convert.to_backend,
}
for _name, _method in _METHODS.items():
    setattr(Tensor, _name, _method)
