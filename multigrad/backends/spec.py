"""What a backend is: a frozen record. Everything in it but the name, the namespace and the array types is optional."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from ..errors import RegistrationError
from . import claims
from . import kernels as _kernels


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the arrays of a library can do, where libraries differ.

    mutable         `x[key] = v` changes the buffer of x, and so does `x += y`
    defers          the operators return NotImplemented for a foreign right operand that has reflected operators,
                    so that `raw * tensor` is a Tensor
    data_dependent  boolean masks, nonzero and unique_* work (shapes may depend on values)
    complex         complex dtypes exist
    strict          its namespace has the names of the standard alone, so that of multigrad hides those beyond it (`Op.beyond`)
    """

    mutable: bool = True
    defers: bool = True
    data_dependent: bool = True
    complex: bool = True
    strict: bool = False


@dataclass(frozen=True, eq=False)
class Backend:
    """One array library, ready to be used.

    name           unique, lower case
    namespace      its raw Array API namespace, as far as it conforms
    array_types    the types of its arrays (their subclasses, too). They may be no other backend's, nor superclasses of those
    scalar_types   those of array_types that are immutable scalars, and Python scalars to every other library (np.generic)
    refused_types  subclasses of those that do not follow the standard, refused by name rather than computed with wrongly
    capabilities   see Capabilities
    functions      faster or mended forwards by operation name, kernels of `ops/kernels.py` included: {"scatter_add": f}.
                   Each is called exactly like the operation: f(x, /, *, axis=...). Unknown names are refused
    kernels        overrides of what the engine needs beyond the standard, by name: see `backends/kernels.py`
    rules          faster derivative rules for this library: {operation: {argument: rule}}. Unknown names are refused
    attributes     attributes that its Tensors have and those of other backends have not: {name: f}, where f(t) is the value of the attribute
                   for the Tensor `t`, or for another layer (f raises AttributeError where such has none). What Tensors of all backends have
                   is refused
    variants       other devices, flags or precisions for the conformance suite to run on: {label: f}, where `with f() as
                   device:` enters the variant and gives the device to make arrays on (None: the default one), or a
                   transformation of functions on raw arrays that must not change their results (a compiler)
    exemptions     conformance tests this backend cannot pass: {test id: reason}
    """

    name: str
    namespace: Any
    array_types: tuple[type, ...]
    scalar_types: tuple[type, ...] = ()
    refused_types: tuple[type, ...] = ()
    capabilities: Capabilities = field(default_factory=Capabilities)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    kernels: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    rules: Mapping[str, Mapping[str, Callable[..., Any]]] = field(default_factory=dict)
    attributes: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    variants: Mapping[str, Callable[[], AbstractContextManager[Any]]] = field(default_factory=dict)
    exemptions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise RegistrationError(f"Backend.name must be a non-empty string, not {self.name!r}.")
        unknown = sorted(set(self.kernels) - set(_kernels.DEFAULTS))
        if unknown:
            raise RegistrationError(f"backend {self.name!r} overrides unknown kernels: {', '.join(unknown)}. "
                                    f"Known: {', '.join(sorted(_kernels.DEFAULTS))}.")
        types = self.array_types
        if not isinstance(types, tuple) or not types or not all(isinstance(t, type) for t in types):
            raise RegistrationError(f"backend {self.name!r} needs array_types, a tuple of the types of its arrays.")
        for label in ("functions", "kernels", "attributes", "variants"):
            for key, value in getattr(self, label).items():
                if not callable(value):
                    raise RegistrationError(f"backend {self.name!r}: {label}[{key!r}] must be callable, not {value!r}.")
        for label in ("scalar_types", "refused_types"):
            for t in getattr(self, label):
                if not isinstance(t, type) or not issubclass(t, types):
                    raise RegistrationError(f"backend {self.name!r}: {label} must be classes of its arrays, those of array_types or subclasses "
                                            f"of theirs, unlike {t!r}.")
        claims.check_operations(self)
        claims.check_attributes(self)

    def kernel(self, name: str) -> Callable[..., Any]:
        """The kernel of that name: this backend's own, or the default that uses only the standard."""
        if name in self.kernels:
            return self.kernels[name]
        return _kernels.DEFAULTS[name] if self.capabilities.mutable or name not in _kernels.IMMUTABLE else _kernels.IMMUTABLE[name]


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """What a plugin says about a backend before its library is imported.

    name     the backend's name
    module   the module of the array library, its top-level one or a part of it; the backend is looked at only once this
             module is imported, or when it is asked for by name. No two plugins may have one module: it belongs to the
             built-in backend, else to the first plugin by name
    load     "package.module:function" that returns the Backend (called at most once)
    install  how to install the library, for the error message: what the library's own documentation says
    """

    name: str
    module: str
    load: str
    install: str = ""

    def __post_init__(self) -> None:
        for label in ("name", "module", "load"):
            value = getattr(self, label)
            if not isinstance(value, str) or not value:
                raise RegistrationError(f"BackendSpec.{label} must be a non-empty string, not {value!r}.")
        if ":" not in self.load:
            raise RegistrationError(f"BackendSpec.load must read 'package.module:function', not {self.load!r}.")
