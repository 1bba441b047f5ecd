"""The record of a backend.

Everything in it is optional except the name, the namespace and the array types.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from .. import registry
from ..errors import RegistrationError, nearest
from . import kernels as _kernels
from . import own


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a library's arrays, where libraries differ.

    The conformance suite checks them in both directions.

    Where a field may be None, the answer comes from the library's `__array_namespace_info__`, and
    is True if the library gives none. A declared value takes precedence: JAX reports what holds
    under `jax.jit`, and its eager arrays can do more.

    mutable         `x[key] = v` changes the buffer of x, and so does `x += y`. False if the arrays
                    are never written, or if the views of an array do not see a write. Then an
                    in-place operation gives the Tensor a new array, views of it are recomputed, and
                    the kernel `write` only has to return an array with the new values (by default,
                    the new value itself)
    defers          the operators return NotImplemented for an unknown right operand that has
                    reflected operators, so that `raw * tensor` is a Tensor
    data_dependent  nonzero, unique_* and repeat by an array work (shapes may depend on values)
    complex         complex dtypes exist
    strict          its namespace has only the names of the standard, so multigrad's namespace hides
                    the names beyond it (`Op.beyond`)
    boolean_indexing  `x[mask]` and `x[mask] = v` work. None: as `data_dependent` if that is
                      declared, else as the library says
    negative_steps  `x[::-1]` works; PyTorch has only `flip`
    lazy            an array is a plan that is computed on demand. Then the default kernel
                    `concrete_bool` always returns None, so that multigrad makes no decision based
                    on values. An argument that is invalid because of its values gives nan instead
                    of an error
    missing         other gaps of the library, with reasons: {"linalg.svd*": "no svd"}. A key is the
                    name of an operation or the id of a conformance test, where `*` matches
                    anything. The only effect is that the suite expects an error there

    Raises RegistrationError if `missing` is not a mapping of names to reasons.
    """

    mutable: bool = True
    defers: bool = True
    data_dependent: bool | None = None
    complex: bool | None = None
    strict: bool = False
    boolean_indexing: bool | None = None
    negative_steps: bool = True
    lazy: bool = False
    missing: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.missing, Mapping):
            raise RegistrationError(
                f"Capabilities.missing must be a mapping of names to reasons, not {self.missing!r}."
            )
        for name, reason in self.missing.items():
            if not isinstance(name, str) or not isinstance(reason, str) or not reason:
                raise RegistrationError(
                    "Capabilities.missing must give a reason for each name, {'linalg.svd': "
                    f"'no svd'}}, not {{{name!r}: {reason!r}}}."
                )


LACKS = {
    "complex": "no complex",
    "data_dependent": "no data-dependent shapes",
    "boolean_indexing": "no boolean indexing",
    "negative_steps": "no negative steps",
    "truth": "lazy",
}
"""The requirements that a test or a sample may have, with the message for a library without them.
"""


@dataclass(frozen=True, eq=False)
class Backend:
    """One array library, ready to be used.

    name           unique, lower case
    namespace      its raw Array API namespace, as far as it conforms
    array_types    the types of its arrays; subclasses are included. They cannot be another
                   backend's array types, or superclasses of those
    scalar_types   array_types that are immutable scalars; other libraries treat them as Python
                   scalars (np.generic)
    refused_types  subclasses that do not follow the standard; using one raises instead of
                   computing a wrong result
    plain_types    subclasses that mean plain arrays although they override __array_ufunc__,
                   __array_function__, __array_wrap__, an operator, `x[key]`, or a method that is an
                   operation (np.memmap). Other subclasses that do are refused, because their values
                   may have units or a mask, which gradients would lose.
                   `extend.register_plain_type` adds a class of another library
    capabilities   see Capabilities
    functions      faster or corrected forwards by operation name, including kernels of
                   `ops/kernels.py`: {"scatter_add": f}. Each is called exactly like the
                   operation: f(x, /, *, axis=...). Unknown names raise
    kernels        overrides of functions that the engine needs beyond the standard, by name: see
                   `backends/kernels.py`
    rules          faster derivative rules for this library: {operation: {argument: rule}}. Unknown
                   names raise
    attributes     attributes that only Tensors of this backend have: {name: f}, where f(t) is the
                   value of the attribute for the Tensor `t` or for another array object; f raises
                   AttributeError if that has no such attribute. Attributes that Tensors of all
                   backends have raise
    variants       other devices, flags or precisions for the conformance suite to run on: {label:
                   f}. `with f() as device:` enters the variant and gives the device to make
                   arrays on (None: the default one), or a transformation of functions on raw
                   arrays that must not change their results (a compiler)
    exemptions     conformance tests that this backend cannot pass: {test id: reason}

    Raises RegistrationError if a field is invalid.
    """

    name: str
    namespace: Any
    array_types: tuple[type, ...]
    scalar_types: tuple[type, ...] = ()
    refused_types: tuple[type, ...] = ()
    plain_types: tuple[type, ...] = ()
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
            raise RegistrationError(
                f"backend {self.name!r} overrides unknown kernels: {', '.join(unknown)}. "
                f"Known: {', '.join(sorted(_kernels.DEFAULTS))}."
            )
        types = self.array_types
        if not isinstance(types, tuple) or not types or not all(isinstance(t, type) for t in types):
            raise RegistrationError(
                f"backend {self.name!r} needs array_types, a tuple of the types of its arrays."
            )
        for label in ("functions", "kernels", "attributes", "variants"):
            for key, value in getattr(self, label).items():
                if not callable(value):
                    raise RegistrationError(
                        f"backend {self.name!r}: {label}[{key!r}] must be callable, not {value!r}."
                    )
        for label in ("scalar_types", "refused_types", "plain_types"):
            for t in getattr(self, label):
                if not isinstance(t, type) or not issubclass(t, types):
                    raise RegistrationError(
                        f"backend {self.name!r}: {label} must be classes of its arrays, from "
                        f"array_types or subclasses of those; {t!r} is neither."
                    )
        _check_operations(self)
        _check_attributes(self)

    def kernel(self, name: str) -> Callable[..., Any]:
        """The backend's own kernel of that name, or the default that uses only the standard."""
        default = _kernels.DEFAULTS[name]
        if not self.capabilities.mutable:
            default = _kernels.IMMUTABLE.get(name, default)
        if self.capabilities.lazy:
            default = _kernels.LAZY.get(name, default)
        return self.kernels.get(name, default)

    def lacks(self) -> dict[str, str]:
        """The requirements of `LACKS` that the library does not meet, with reason and source.

        The source is the backend's declaration, or the library's `__array_namespace_info__`. Each
        call asks the library anew, since the answer may change with the library's settings.
        `Capabilities.missing` lists the other gaps.
        """
        c, reported = self.capabilities, self._reported()
        declared = {
            "complex": c.complex,
            "data_dependent": c.data_dependent,
            "boolean_indexing": (
                c.data_dependent if c.boolean_indexing is None else c.boolean_indexing
            ),
            "negative_steps": c.negative_steps,
            "truth": not c.lazy,
        }
        reasons = {}
        for name, text in LACKS.items():
            if declared[name] is False:
                reasons[name] = f"{text} (declared)"
            elif declared[name] is None and reported.get(name) is False:
                reasons[name] = f"{text} (the library tells)"
        return reasons

    def _reported(self) -> dict[str, Any]:
        """The capabilities that the library reports, as far as it does."""
        try:
            info = self.namespace.__array_namespace_info__()
            capabilities = info.capabilities()
            return {
                "data_dependent": capabilities.get("data-dependent shapes"),
                "boolean_indexing": capabilities.get("boolean indexing"),
                "complex": bool(info.dtypes(kind="complex floating")),
            }
        except Exception:
            # a library without an inspection, or with half of one, may raise anything: it reports
            # nothing
            return {}


def _check_operations(backend: Backend) -> None:
    """Raise for functions and rules of unknown operations, which would never run.

    A prefix that no operation has belongs to a plugin that is not installed; its entries are kept
    for that plugin.
    """
    for label, entries in (("functions", backend.functions), ("rules", backend.rules)):
        unknown = sorted(_unknown(entries))
        if unknown:
            raise RegistrationError(
                f"backend {backend.name!r} gives {label} for unknown operations: "
                f"{', '.join(unknown)}.{nearest(unknown[0], registry.OPS)} `python -m multigrad "
                "ops` lists them."
            )
    for name, rules in backend.rules.items():
        if name in registry.OPS:
            _check_rules(backend, registry.OPS[name], rules)


def _unknown(names: Collection[str]) -> set[str]:
    """The names that no operation of an installed plugin has.

    While a plugin is declaring operations, the result is empty.
    """
    if all(name in registry.OPS for name in names) or not registry.fill():
        return set()
    prefixes = {name.partition(".")[0] for name in list(registry.OPS) if "." in name}
    return {
        name
        for name in names
        if name not in registry.OPS and ("." not in name or name.partition(".")[0] in prefixes)
    }


def _check_rules(backend: Backend, op: registry.Op, rules: Mapping[str, Any]) -> None:
    takes = op.arrays if op.kind not in ("nondifferentiable", "composite") else ()
    for argument, rule in rules.items():
        if argument not in takes:
            has = (
                f"its rules are for {', '.join(takes)}"
                if takes
                else f"a {op.kind} operation has none"
            )
            raise RegistrationError(
                f"backend {backend.name!r} gives rules for {op.name!r} by the unknown argument "
                f"{argument!r}: {has}."
            )
        kind = "partial" if op.kind == "elementwise" else "vjp"
        registry.checked_rule(op.name, argument, rule, op.roles, op.outputs, kind=kind)


def _check_attributes(backend: Backend) -> None:
    """Raise for attributes that Tensors of all backends have.

    Their meaning does not depend on the library.
    """
    if backend.attributes:
        registry.fill()  # methods are attributes too
        names = [name for name in sorted(backend.attributes) if own.has_attribute(name)]
        if names:
            raise RegistrationError(
                f"backend {backend.name!r} gives attributes that Tensors of all backends have: "
                f"{', '.join(names)}."
            )


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A plugin's description of a backend, before its library is imported.

    name     the backend's name
    module   the module of the array library: its top-level module or a part of it. The backend is
             used only once this module is imported, or when a user names the backend. Two plugins
             cannot have the same module: it belongs to the built-in backend, else to the first
             plugin by name
    load     "package.module:function" that returns the Backend (called at most once)
    install  how to install the library, for the error message, according to the library's own
             documentation
    """

    name: str
    module: str
    load: str
    install: str = ""

    def __post_init__(self) -> None:
        for label in ("name", "module", "load"):
            value = getattr(self, label)
            if not isinstance(value, str) or not value:
                raise RegistrationError(
                    f"BackendSpec.{label} must be a non-empty string, not {value!r}."
                )
        if ":" not in self.load:
            raise RegistrationError(
                f"BackendSpec.load must read 'package.module:function', not {self.load!r}."
            )
