"""multigrad: torch.autograd for every Python array library.

    import multigrad as mg

    x = mg.asarray(array, requires_grad=True)   # an array of NumPy, JAX, CuPy, or of any registered library
    y = (x ** 2).sum()
    y.backward()
    x.grad

A Tensor follows the Python Array API standard, so array-agnostic code runs on it unchanged: `x.__array_namespace__()` is
the differentiable namespace of its backend. Importing multigrad imports no array library and reads no entry points.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import autograd, func, registry
from . import protocols as _protocols  # noqa: F401  which gives array objects NumPy's protocols
from .backends.hooks import hookimpl
from .backends.spec import Backend, BackendSpec, Capabilities
from .clients import register_clients
from .engine import element as _element
from .engine.convert import asarray, default_host, tensor, use_backend
from .engine.foreign import FUNCTIONS as _FUNCTIONS
from .engine.foreign import hint as _hint
from .engine.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .engine.tensor import Tensor
from .engine.tensor import element_of as _element_of
from .namespace import Namespace as _Namespace

if TYPE_CHECKING:
    from . import extend

__version__ = "0.1.0"

__all__ = [
    "Backend",
    "BackendSpec",
    "Capabilities",
    "Tensor",
    "asarray",
    "autograd",
    "backends",
    "enable_grad",
    "extend",
    "func",
    "hookimpl",
    "inference_mode",
    "is_grad_enabled",
    "namespace",
    "no_grad",
    "register_clients",
    "registry",
    "set_grad_enabled",
    "tensor",
    "use_backend",
]


def namespace(backend: Any) -> Any:
    """Return the differentiable Array API namespace of a backend, given its name, one of its arrays, or a Tensor.

    Raises BackendError for an unknown or unusable backend and TypeError for what is no array of a known library.
    """
    host = _element.host_named(backend) if isinstance(backend, str) else _element_of(backend).host
    return host.bound


def backends(probe: bool = False) -> list[Any]:
    """List the known backends, with their state or error, importing no array library.

    With `probe`, try each one and fill in its devices and dtypes. Each entry has name, distribution, version, state, error.
    """
    from .backends import discovery

    return discovery.listing(probe)


class _Dispatcher:
    """`multigrad.<prefix>`: the functions of an extension, dispatching on their arguments."""

    def __init__(self, prefix: str) -> None:
        self.__name__ = f"multigrad.{prefix}"
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _kept_in(vars(self), name, f"{self._prefix}.{name}")


def _kept_in(place: dict[str, Any], key: str, name: str) -> Any:
    """The function of that name. If it is the same for every default backend, it is kept in `place` from now on."""
    from .namespace import load

    load()
    op = registry.OPS.get(name)
    found, keep = _lookup(name)
    if keep:
        with registry.keeping:
            if registry.OPS.get(name) is op and key not in place:  # another thread may have replaced it meanwhile
                place[key] = found
                _kept.setdefault(name, []).append((place, key))
    return found


def _lookup(name: str) -> tuple[Any, bool]:
    """The function of that name, and whether it is the same for every default backend, so that it can be kept."""
    from .engine.fast import function_of

    op = registry.OPS.get(name)
    if op is not None and op.arrays and op.chapter not in ("creation", "data_type"):
        return function_of(op), True
    found: Any = default_host().bound
    for part in name.split("."):
        found = getattr(found, part)
    return (_Dispatcher(name), True) if isinstance(found, _Namespace) else (found, False)


_kept: dict[str, list[tuple[dict[str, Any], str]]] = {}
"""Where the function of an operation stands, or what the functions of a prefix are reached through: in this module, in dispatchers."""


def _forget(op: Any) -> None:
    """Take a function of a former declaration out of where it stands."""
    with registry.keeping:
        for place, key in _kept.pop(op.name, ()):
            place.pop(key, None)


registry.on_declaration(_forget)


def __getattr__(name: str) -> Any:
    """Every function of the standard: those of arrays dispatch on their arguments, creation uses the default backend.

    What it finds for good stands in the module from then on, so that `mg.sum` costs what `xp.sum` costs.
    """
    if name.startswith("_"):
        raise _missing(name)
    if name == "extend":  # imported when it is asked for
        return import_module("multigrad.extend")
    try:
        return _kept_in(globals(), name, name)
    except AttributeError:
        raise _missing(name) from None


def _missing(name: str) -> AttributeError:
    return AttributeError(f"module 'multigrad' has no attribute {name!r}{_hint(_FUNCTIONS, name)}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(default_host().bound)})
