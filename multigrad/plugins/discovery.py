"""The known backends, and the lookup of an array's backend.

A library is imported only when its backend is requested by name; a library that is already in
`sys.modules` is also used when an unknown array appears. On the hot path, `backend_of` is one
dictionary lookup by the type of the array.

For an array of a new type, the classes in its method resolution order decide: the first class that
a backend has claimed, or whose module belongs to a backend. Only if there is none, multigrad asks
all backends with `isinstance`. So a plugin's claim never takes the arrays of another plugin, and a
fault of a backend raises only when a user requests it by name.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Container
from typing import Any

from .. import locks, tracebacks
from ..backends.raw import resolve
from ..backends.spec import Backend, BackendSpec
from ..errors import ArrayTypeError, BackendError, NoDeviceError, RegistrationError, nearest
from ..provided import provide
from . import claims
from .installed import imported, is_installed, plugins
from .loading import backends, load, owners_of
from .plugin import Known, Part, lock, step, warn_if_slow, warn_once

# Objects of exactly these types are never arrays. Other misses are not cached, since the library
# may be imported later.
_by_type: dict[type, Backend | None] = dict.fromkeys(
    (bool, int, float, complex, str, type(None), list, tuple, dict, slice)
)
_lasting = set(_by_type)  # and the types that a backend or a call has claimed
SUBCLASSES = 256
"""How many other classes of arrays a table has. A program may make such classes in a loop."""


def lasts(cls: type) -> bool:
    """Whether a class is certain to be used as long as the program runs.

    These are the classes that a backend or a call has claimed, and those that C code defines.
    """
    return cls in _lasting or not cls.__flags__ & HEAP_TYPE


HEAP_TYPE = 1 << 9
"""CPython's flag of classes that are not static in C code."""


def drop_oldest(table: dict[type, Any], lasting: Container[type]) -> None:
    """Drop the classes that were noted first, if a table has too many besides those in `lasting`.

    They are looked up again at their next use.
    """
    others = [cls for cls in list(table) if cls not in lasting]
    for cls in others[:-SUBCLASSES]:
        table.pop(cls, None)


def backend_of(x: Any) -> Backend | None:
    """Return the backend of the array `x`, or None if it is not an array of a known library.

    Python scalars, for instance, have no backend. Raises ArrayTypeError if the library's backend
    refuses the type of `x`: numpy.matrix, an array with units. If a library's backend is broken or
    has no device, its arrays count as those of an unknown library, and a warning says so once.
    """
    try:
        return _by_type[type(x)]
    except KeyError:
        return _look_up(x)


def is_known(cls: type) -> bool:
    """Whether a backend has claimed the class, or arrays of exactly this class have been seen."""
    return _by_type.get(cls) is not None


def get(name: str) -> Backend:
    """Return the backend of that name, and import its library.

    Raises BackendError with advice if the backend is unknown, blocked, not installed or broken, and
    NoDeviceError if the library finds no device.
    """
    if not isinstance(name, str):
        raise BackendError(f"a backend is requested by its name, a string, not {name!r}.")
    load()
    if name not in backends:
        load(name)
    if name not in backends:
        load(everything=True)
    entry = backends.get(name)
    if entry is None:
        raise BackendError(_unknown(name))
    if entry.backend is None and entry.blocked:
        raise BackendError(_BLOCKED.format(name))
    return entry.backend or _load(entry)


_BLOCKED = (
    "backend {!r} is blocked: remove it from the environment variable MULTIGRAD_BLOCK, or do not "
    "block it."
)


def _unknown(name: str) -> str:
    unused = {p: p.state for p in plugins() if p.error or p.blocked}
    for plugin, state in unused.items():
        if plugin.name == name:
            broken = f"backend {name!r} is broken: {plugin.error}"
            return broken if state == "broken" else _BLOCKED.format(name)
    found = ", ".join(
        f"{p.name} of {p.distribution}{f' ({unused[p]})' if p in unused else ''}" for p in plugins()
    )
    return (
        f"unknown backend {name!r}.{nearest(name, backends)} Known backends: "
        f"{', '.join(sorted(backends))}. Installed plugins: {found}. A backend for another "
        "library comes with a plugin."
    )


def loaded() -> list[Backend]:
    """The backends in use so far."""
    return [entry.backend for entry in list(backends.values()) if entry.backend is not None]


def names() -> list[str]:
    """The names of all known backends, including blocked and broken ones and deferred plugins.

    A deferred plugin has not named its backends yet, so its own name is listed.
    """
    load()
    return sorted({*backends, *(plugin.name for plugin in plugins() if plugin.deferred)})


# ----- Loading a backend -----


def _load(entry: Known) -> Backend:
    """Import the library and make the backend, once.

    A failure is stored, unless the library is just not installed.
    """
    spec = entry.spec
    _await_imports(spec)
    with lock:
        entry.try_again()
        if entry.backend is None and not entry.error:
            if not is_installed(spec.module):
                raise BackendError(
                    f"backend {spec.name!r} is known but its library {spec.module!r} is not "
                    f"installed: {how_to_install(spec)}"
                )
            if entry.loading:
                raise BackendError(
                    f"{entry.origin} was requested by the function that makes it, {spec.load!r}. "
                    "Do not request it there."
                )
            entry.loading = True
            try:
                with step(entry, "is broken"):
                    _accept(entry, resolve(spec.load)())
            finally:
                entry.loading = False
        if entry.backend is not None:
            return entry.backend
        if isinstance(entry.cause, NoDeviceError):
            raise entry.cause.with_traceback(None)
        raise BackendError(entry.error) from entry.cause


def _await_imports(spec: BackendSpec) -> None:
    """Wait for a thread that imports the library, or the module of the backend.

    With the lock held, both threads would wait for each other if that thread asks for a backend.
    """
    for module in (spec.module, spec.load.partition(":")[0]):
        if sys.modules.get(module) is not None:
            with contextlib.suppress(Exception), locks.new_lock():  # see loading.py
                importlib.import_module(module)


def how_to_install(spec: BackendSpec) -> str:
    return spec.install or "install it according to its documentation"


def _accept(entry: Known, backend: Any) -> None:
    """Check the result of a backend's loader, then take it into use."""
    spec = entry.spec
    if not isinstance(backend, Backend):
        raise BackendError(f"{spec.load} returned {backend!r}: return a multigrad.Backend")
    if backend.name != spec.name:
        raise BackendError(
            f"{spec.load} returned a Backend named {backend.name!r}: name it as the BackendSpec "
            f"does, {spec.name!r}"
        )
    for t in backend.array_types:
        owner = _owner(t, entry)
        if owner is not None:
            raise BackendError(
                f"the array type {claims.full_name(t)} is {owner}: a backend may not claim it "
                "as well"
            )
    entry.backend = backend
    for t in (*backend.array_types, *backend.plain_types):
        _lasting.add(t)
        _by_type[t] = backend


def _owner(t: type, entry: Known) -> str | None:
    """The owner of an array type: a library with its own backend, or a loaded backend."""
    owner, others = _by_type.get(t), owners_of(claims.module_of(t))
    names = [other.spec.name for other in others if other.plugin is not entry.plugin]
    if owner is not None or names:
        return f"that of the backend {names[0] if owner is None else owner.name!r}"
    if entry.plugin.built_in:
        return None
    # a class of another library, or with virtual subclasses: all current libraries are asked
    if type(t) is not type or not claims.is_from(t, entry.spec.module):
        _load_imported()
    return claims.whose(t, entry.spec.module, loaded())


# ----- Whose an array is -----


def _look_up(x: Any) -> Backend | None:
    """Find the backend of an array of a new type, and cache it by the type."""
    cls = type(x)
    load()
    backend = _inherited(x, cls) or (_inherited(x, cls) if _load_imported() else None)
    if backend is None:
        # A class may override `isinstance`. Another thread may also have loaded a backend
        # meanwhile.
        backend = next((b for b in loaded() if claims.is_instance(x, b.array_types)), None)
    if backend is None:
        _warn_of_failed(cls)
        return None
    if backend.refused_types and claims.is_instance(x, backend.refused_types):
        raise ArrayTypeError(
            f"arrays of type {claims.full_name(cls)} do not follow the Array API standard "
            f"and are refused by the backend {backend.name!r}: convert it to a plain array first."
        )
    plain = next((c for c in cls.__mro__[1:] if _by_type.get(c) is backend), cls)
    method = claims.overridden(cls, plain, backend)
    if method is not None:
        name = claims.full_name(plain)
        raise ArrayTypeError(
            f"arrays of type {claims.full_name(cls)} are refused by the backend {backend.name!r}: "
            f"the class has its own {method}, so its values may have units, a mask or the like, "
            f"which gradients would lose. Pass a plain array, x.view({name}). If the class means "
            f"the same as {name}, register it: multigrad.extend.register_plain_type("
            f"{cls.__qualname__})."
        )
    _by_type[cls] = backend
    drop_oldest(_by_type, _lasting)
    return backend


def _warn_of_failed(cls: type) -> None:
    """Warn once if the library of a class has a plugin, by its name, that brought no backend."""
    for plugin in plugins():
        if plugin.error and plugin.loaded and not plugin.built_in:
            libraries = {claims.module_of(c).partition(".")[0] for c in cls.__mro__}
            brought = any(entry.plugin is plugin for entry in list(backends.values()))
            if plugin.name in libraries and not brought:
                _warn_of(plugin, f"Arrays of {plugin.name!r}")


def _warn_of(part: Part, arrays: str) -> None:
    warn_once(f"{part.error.rstrip('.')}. {arrays} count as those of an unknown library.")


def register_plain_type(cls: type) -> type:
    """Let arrays of a class count as plain arrays of the library that the class inherits from.

    Returns the class, so this also works as a decorator. Raises RegistrationError if it is not a
    subclass of an array type, or of one that its backend refuses.
    """
    if not isinstance(cls, type):
        raise RegistrationError(f"register_plain_type() takes a class, not {cls!r}.")
    load()
    _load_imported()
    backend = next((b for c in cls.__mro__ if (b := _by_type.get(c)) is not None), None)
    if backend is None:
        raise RegistrationError(
            f"register_plain_type: {claims.full_name(cls)} does not inherit from an array type of "
            "a backend. Register a backend for it: multigrad.Backend."
        )
    if issubclass(cls, backend.refused_types):
        raise RegistrationError(
            f"register_plain_type: the backend {backend.name!r} refuses {claims.full_name(cls)}, "
            "whose arrays do not follow the Array API standard: convert them to plain arrays."
        )
    _lasting.add(cls)
    _by_type[cls] = backend
    return cls


def _inherited(x: Any, cls: type) -> Backend | None:
    """The backend of the first base class of `cls` with a backend, by array type or by module."""
    for c in cls.__mro__:
        backend = _by_type.get(c)
        if backend is not None:
            return backend
        for entry in owners_of(claims.module_of(c)):
            backend = _usable(entry)
            if backend is not None and claims.is_instance(x, backend.array_types):
                return _by_type.get(c) or backend
            if entry.error and entry.spec.module in sys.modules:
                _warn_of(entry, "Its arrays")
    return None


def _usable(entry: Known) -> Backend | None:
    """The backend of an imported library, or None if it does not work.

    Its error is raised only when a user requests the backend by name.
    """
    module = entry.spec.module
    # while it is being loaded, this thread may be importing the library; all other threads wait
    there = imported(module) if entry.loading else sys.modules.get(module) is not None
    if there and entry.backend is None and not entry.error and not entry.blocked:
        with contextlib.suppress(BackendError):  # a function of its own may ask for it
            _load(entry)
        warn_if_slow(entry.plugin)
    return entry.backend


def _load_imported() -> bool:
    """Load the backends of all imported libraries, and return whether there were any left."""
    loaded = [_usable(entry) for entry in list(backends.values()) if entry.backend is None]
    return any(loaded)


def _library_roots() -> frozenset[str]:
    """The modules of the libraries, of their plugins, and of the adapters between them."""
    names: list[str] = []
    for entry in list(backends.values()):
        if entry.blocked:
            continue
        names += [entry.spec.module] + [entry.spec.load] * (not entry.plugin.built_in)
        names += [] if entry.backend is None else [getattr(entry.backend.namespace, "__name__", "")]
    return frozenset(name.partition(".")[0] for name in names)


provide(tracebacks, library_roots=_library_roots)
