"""A backend under test: converts NumPy arrays to its arrays and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import extend
from multigrad.registry import Op

from .sample import OWN_DEVICE, DType, mapped

NARROW = {"float64": "float32", "complex128": "complex64"}
NARROW_INTEGERS = {"int64": "int32", "uint64": "uint32"}
DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


class Target:
    """One backend, in one variant (a device, a set of flags) and one precision.

    `device` is None for the default device. `wrap` is the alternative to a device: a transformation
    of functions on raw arrays, such as a compiler. The backend promises that it does not change
    results.
    """

    def __init__(self, name: str, device: Any = None, single: bool = False) -> None:
        self.name = name
        self.backend = extend.backend(name)
        self.xp = extend.raw_namespace(name)
        self.bound = mg.namespace(name)
        self.wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None = (
            device if callable(device) else None
        )
        self.device = None if callable(device) else device
        self.capabilities = self.backend.capabilities
        self.has_double = self._makes("float64", np.float64)
        self.has_long = self._makes("int64", np.int64)
        self.single = single or not self.has_double

    def _makes(self, name: str, numpy_dtype: Any) -> bool:
        """Return whether the library really creates arrays of that dtype.

        JAX, for example, silently narrows it.
        """
        if not hasattr(self.xp, name):
            return False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                x = self.xp.asarray(1, dtype=getattr(self.xp, name), device=self.device)
        except Exception:  # a library without this dtype on the device may raise any error
            return False
        return bool(x.dtype == getattr(self.xp, name))

    # ----- inputs -----

    def narrowed(self, name: str) -> str:
        """Return the dtype that replaces this one in this precision."""
        if self.single:
            name = NARROW.get(name, name)
        return name if self.has_long else NARROW_INTEGERS.get(name, name)

    def cast(self, value: Any) -> Any:
        """Return an argument of a sample in this precision, still in NumPy."""
        if isinstance(value, DType):
            return DType(self.narrowed(value.name))
        return (
            value.astype(self.narrowed(value.dtype.name))
            if isinstance(value, (np.ndarray, np.generic))
            else value
        )

    def raw(self, value: Any) -> Any:
        """Return an argument with the library's own dtypes, devices and copies of arrays."""
        return mapped(self._raw, value)

    def _raw(self, value: Any) -> Any:
        if isinstance(value, DType):
            return getattr(self.xp, value.name)
        if value is OWN_DEVICE:
            return self.own_device()
        return mg.asarray(np.array(value), backend=self.name, device=self.device).array

    def own_device(self) -> Any:
        """Return the tested device by name, even if it is the default."""
        if self.device is not None:
            return self.device
        return self.kernel("device")(self.xp, self.xp.asarray(0.0))

    # ----- outputs -----

    def numpy(self, x: Any) -> Any:
        """Return a Tensor or raw array as a NumPy array, and other values unchanged."""
        if isinstance(x, mg.Tensor):
            x = x.detach().array
        if not self.is_raw(x):
            return x
        if self.device is not None:
            x = self._to_default(x)
        return np.asarray(mg.asarray(x, backend="numpy").array)

    def _to_default(self, x: Any) -> Any:
        """Move an array to the library's default device, from which it can be exported."""
        from array_api_compat import to_device

        return to_device(x, self.backend.namespace.__array_namespace_info__().default_device())

    def is_raw(self, x: Any) -> bool:
        return isinstance(x, self.backend.array_types)

    def dtype_name(self, dtype: Any) -> str:
        """Return the standard's name of one of the library's dtypes."""
        return next(
            (n for n in DTYPES if hasattr(self.xp, n) and getattr(self.xp, n) == dtype), str(dtype)
        )

    # ----- functions -----

    def kernel(self, name: str) -> Callable[..., Any]:
        """Return a kernel of the backend by name, or its default."""
        return self.backend.kernel(name)

    def function(self, op: Op) -> Callable[..., Any]:
        """Return the differentiable function of an operation.

        It comes from the bound namespace, or from multigrad if the namespace hides it.
        """
        hidden = op.beyond and self.capabilities.strict
        function: Callable[..., Any] = _attribute(mg if hidden else self.bound, op.name)
        return function

    def raw_function(self, op: Op) -> Callable[..., Any]:
        """Return the library's function for an operation, or the kernel that implements it."""
        function: Callable[..., Any] = _attribute(self.xp, op.name)
        return function

    def __repr__(self) -> str:
        return f"<Target {self.name}{' single' if self.single else ''}>"


def shape_of(target: Target, x: Any) -> tuple[Any, ...]:
    """Return the shape of a Tensor or a raw array.

    If a lazy library does not know the shape yet (None or nan), the values are computed.
    """
    shape = tuple(x.shape)
    return shape if all(isinstance(n, int) for n in shape) else np.shape(target.numpy(x))


def call(op: Op, function: Callable[..., Any], values: Any) -> Any:
    """Call a function of an operation with the values of all its parameters, in order."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter, value in zip(op.signature.parameters.values(), values, strict=True):
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = value
        else:
            args += value if parameter.kind is parameter.VAR_POSITIONAL else [value]
    return function(*args, **kwargs)


def _attribute(namespace: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        namespace = getattr(namespace, part)
    return namespace
