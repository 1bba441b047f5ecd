"""The known backends, and the lookup of an array's backend.

Nothing is read at import. The first question reads the entry points (`plugins.py`). A library is
imported only when its backend is requested by name; a library that is already in `sys.modules` is
also used when an unknown array appears. On the hot path, `backend_of` is one dictionary lookup by
the type of the array.

For an array of a new type, the classes in its method resolution order decide: the first class that
a backend has claimed, or whose module belongs to a backend. Only if there is none, multigrad asks
all backends with `isinstance`. So a plugin's claim never takes the arrays of another plugin, and a
fault of a backend raises only when a user requests it by name.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import traceback
import warnings
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from .. import locks, registry, tracebacks
from ..errors import ArrayTypeError, BackendError, NoDeviceError, RegistrationError, nearest
from ..provided import provide
from . import claims, hooks, installed
from .plugins import (
    Plugin,
    deferred,
    imported,
    interrupted,
    lock,
    manager,
    plugins,
    told,
    wake,
    warn_of_failed,
    watched,
)
from .raw import resolve
from .spec import Backend, BackendSpec


@dataclass(eq=False)
class Known:
    """The state of a known backend: its spec, its origin, and the result of loading it."""

    spec: BackendSpec
    plugin: Plugin | None  # None: registered by a call
    backend: Backend | None = None
    # the reason why it could not be loaded; raised at each request
    error: BackendError | None = None
    traceback: str = ""
    # False if its module belongs to another backend, or it was made by hand
    has_module: bool = True
    loading: int = 0  # the thread that is loading it
    # it is skipped for arrays: a KeyboardInterrupt ended its loading, or its error was reported
    set_aside: bool = False
    interrupted: str = ""  # what a listing says of the KeyboardInterrupt

    @property
    def origin(self) -> str:
        return self.plugin.origin if self.plugin else "a call of register()"

    @property
    def built_in(self) -> bool:
        return self.plugin is not None and self.plugin.built_in

    @property
    def rank(self) -> tuple[bool, bool, str, str]:
        """The precedence of backends for a module.

        The built-in ones come first, then plugins by name, then those registered by calls.
        """
        plugin = self.plugin
        return (
            (plugin is None, True, "", "")
            if plugin is None
            else (False, not plugin.built_in, plugin.name, plugin.distribution)
        )

    @property
    def blocked(self) -> bool:
        blocked = manager().is_blocked
        return blocked(self.spec.name) or (self.plugin is not None and blocked(self.plugin.name))


@dataclass(frozen=True)
class BackendInfo:
    """One line of the listing. A probe fills in `devices` and `dtypes`."""

    name: str
    distribution: str
    version: str
    # "loaded", "available", "deferred" (see plugins.py), "not installed", "no device", "broken",
    # "blocked", or "operations": no backend
    state: str
    error: str = ""
    module: str = ""
    library_version: str = ""
    devices: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()  # the operations of the standard that its plugin has replaced
    traceback: str = field(default="", repr=False)


_DTYPES = (
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

_known: dict[str, Known] = {}
_by_root: dict[str, list[Known]] = {}  # by the top-level module of their libraries
_discovered = False
_adding = False

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
    entry = _all().get(name) if isinstance(name, str) else None
    if entry is None and isinstance(name, str):
        want(name)
        if name not in _known:
            load_plugins()
        entry = _known.get(name)
    if entry is None:
        raise BackendError(_unknown(name))
    if entry.backend is not None:
        return entry.backend
    if entry.blocked:
        raise BackendError(
            f"backend {name!r} is blocked: remove it from the environment variable "
            "MULTIGRAD_BLOCK, or do not block it."
        )
    return _load(entry)


def want(name: str) -> bool:
    """Load the deferred plugin of that name, and return whether there was one."""
    return wake(_bring, name)


def load_plugins() -> None:
    """Load the deferred plugins too, for listings and tests of everything."""
    _all()
    wake(_bring, everything=True)


def register(item: BackendSpec | Backend) -> None:
    """Register a backend by a call instead of a plugin.

    Raises RegistrationError if its name, module or array types are taken.
    """
    if not isinstance(item, (Backend, BackendSpec)):
        raise RegistrationError(f"register() takes a Backend or a BackendSpec, not {item!r}.")
    _all()
    with lock:
        if item.name in _known:
            raise RegistrationError(
                f"the backend {item.name!r} of a call of register() is already that of "
                f"{_known[item.name].origin}. Choose another name."
            )
        if isinstance(item, BackendSpec):
            entry = Known(item, None)
            _know(entry)
            if entry.error is not None:
                del _known[item.name]
                raise RegistrationError(str(entry.error))
            return
        root = claims.module_of(item.array_types[0]).partition(".")[0] or "__main__"
        entry = Known(BackendSpec(item.name, root, f"{root}:none"), None, has_module=False)
        try:
            _accept(entry, item)
        except BackendError as error:
            raise RegistrationError(str(error)) from error
        _known[item.name] = entry


def loaded() -> list[Backend]:
    """The backends in use so far."""
    return [entry.backend for entry in list(_known.values()) if entry.backend is not None]


def names() -> list[str]:
    """The names of all known backends, including blocked and broken ones and deferred plugins.

    A deferred plugin has not named its backends yet, so its own name is listed.
    """
    return sorted({*_all(), *(plugin.name for plugin in deferred())})


def load_operations() -> None:
    """Let every plugin declare its operations, once.

    The engine calls this before it first uses the table.
    """
    hooks.load_operations()


def listing(probe: bool = False) -> list[BackendInfo]:
    """The state of each backend and each broken plugin.

    This imports no array library, unless `probe` is true.
    """
    registry.fill()  # plugins may replace operations
    known = _all()
    if probe:
        load_plugins()
        for entry in list(known.values()):
            # the error is kept with the entry, or occurs again below
            with contextlib.suppress(BackendError):
                if not entry.interrupted:
                    get(entry.spec.name)
    lines = [_line(entry, probe) for entry in list(known.values())]
    brought = {entry.plugin for entry in known.values()}
    for plugin in plugins():
        state = (
            "broken"
            if plugin.error
            else "blocked"
            if plugin.blocked
            else "deferred"
            if plugin.deferred
            else "operations"
        )
        if plugin not in brought and (state != "operations" or plugin.overrides):
            module = plugin.name if plugin.deferred else ""
            lines.append(
                BackendInfo(
                    plugin.name,
                    plugin.distribution,
                    plugin.version,
                    state,
                    plugin.error,
                    module,
                    overrides=plugin.overrides,
                    traceback=plugin.traceback,
                )
            )
    return lines


def whole_listing(probe: bool = False) -> list[BackendInfo]:
    """As `listing`, with a line for a plugin or a backend that raises KeyboardInterrupt.

    Each raises it once, and is left out from then on. One that comes from elsewhere is raised.
    """
    while True:
        before = _interrupts()
        try:
            return listing(probe)
        except KeyboardInterrupt:
            if _interrupts() == before:
                raise


def _interrupts() -> int:
    """The number of plugins and backends that have ended in a KeyboardInterrupt."""
    return interrupted() + sum(bool(entry.interrupted) for entry in list(_known.values()))


def _all() -> dict[str, Known]:
    global _adding, _discovered
    if not _discovered:
        loaded = plugins()
        with lock:
            # a plugin's hook may call this again; other threads wait until all are loaded
            if not _discovered and not _adding:
                _adding = True
                try:
                    for plugin in loaded:
                        _add(plugin)
                    _discovered = True
                finally:
                    _adding = False
    wake(_bring)
    return _known


def _bring(plugin: Plugin) -> None:
    """Load a plugin that was deferred."""
    _add(plugin)
    hooks.declare(plugin)


def _add(plugin: Plugin) -> None:
    with lock:
        if plugin.added or plugin.deferred:
            return
        plugin.added = True  # also if the rest is interrupted
        try:
            for spec in hooks.items_of(plugin, "multigrad_backends", BackendSpec):
                other = _known.get(spec.name)
                if other is None:
                    _know(Known(spec, plugin))
                else:
                    plugin.fail(
                        f"the backend {spec.name!r} of {plugin.origin} is already that of "
                        f"{other.origin}. Choose another name."
                    )
        except BaseException as error:
            plugin.interrupted(error)
            raise


def _know(entry: Known) -> None:
    """Store a new backend, and decide who owns its module.

    Among backends that are not in use yet, the first by rank owns it.
    """
    global _by_root
    _known[entry.spec.name] = entry
    for other in list(_known.values()):
        if (
            other is entry
            or not other.has_module
            or other.blocked
            or entry.blocked
            or (entry.plugin and other.plugin is entry.plugin)
        ):
            continue
        first, second = (
            (other, entry)
            if other.backend is not None or other.rank <= entry.rank
            else (entry, other)
        )
        if claims.covers(first.spec.module, second.spec.module):
            second.has_module = False
            second.error = _taken(first, second)
            if second is entry:
                break
    # replaced in one step, since other threads look up arrays meanwhile
    by_root: dict[str, list[Known]] = {}
    for known in _known.values():
        if known.has_module:
            by_root.setdefault(known.spec.module.partition(".")[0], []).append(known)
    _by_root = by_root


def _taken(first: Known, second: Known) -> BackendError:
    """The error of a backend whose module belongs to another one."""
    blocking = " or ".join(
        f"MULTIGRAD_BLOCK={known.plugin.name}"
        for known in (first, second)
        if known.plugin is not None and not known.built_in
    )
    return BackendError(
        f"backend {second.spec.name!r} of {second.origin} is refused: its module "
        f"{second.spec.module!r} is that of the backend {first.spec.name!r} of {first.origin}. "
        + (f"Keep one out by the environment variable {blocking}, or name" if blocking else "Name")
        + " the module of a library in BackendSpec that no other backend is for."
    )


def _unknown(name: object) -> str:
    for plugin in plugins():
        if plugin.name == name and plugin.error:
            return f"backend {name!r} is broken: {plugin.error}"
        if plugin.name == name and plugin.blocked:
            return (
                f"backend {name!r} is blocked: remove it from the environment variable "
                "MULTIGRAD_BLOCK, or do not block it."
            )
    if not isinstance(name, str):
        return f"a backend is requested by its name, a string, not {name!r}."
    known = ", ".join(
        f"{p.name} of "
        f"{p.distribution}{' (broken)' if p.error else ' (blocked)' if p.blocked else ''}"
        for p in plugins()
    )
    return (
        f"unknown backend {name!r}.{nearest(name, _known)} Known backends: "
        f"{', '.join(sorted(_known))}. Installed plugins: {known}. A backend for another "
        "library comes with a plugin."
    )


def _load(entry: Known) -> Backend:
    """Import the library and make the backend, once.

    A failure is stored, unless the library is just not installed.
    """
    spec = entry.spec
    if not entry.built_in:
        # The backend may have functions for any operation. Operations are loaded without the lock,
        # which plugins need for theirs.
        registry.fill()
    _await_imports(spec)
    with lock:
        if entry.backend is not None:
            return entry.backend
        if entry.error is not None:
            raise entry.error.with_traceback(None)
        if not installed.is_installed(spec.module):
            raise BackendError(
                f"backend {spec.name!r} is known but its library {spec.module!r} is not "
                f"installed: {_how_to_install(spec)}"
            )
        if entry.loading:
            raise BackendError(
                f"backend {spec.name!r} of {entry.origin} was requested by the function that makes "
                f"it, {spec.load!r}. Do not request it there."
            )
        entry.loading = threading.get_ident()
        try:
            return _accept(entry, resolve(spec.load)())
        except NoDeviceError as error:
            entry.error, entry.traceback = error, traceback.format_exc()
            raise
        except KeyboardInterrupt:
            entry.set_aside = not entry.built_in
            entry.interrupted = (
                f"backend {spec.name!r} of {entry.origin} could not be made: KeyboardInterrupt"
            )
            entry.traceback = traceback.format_exc()
            raise
        except BaseException as error:
            # SystemExit too: the array that led here may belong to another library
            entry.error = BackendError(
                f"backend {spec.name!r} of {entry.origin} is broken: "
                f"{error if isinstance(error, BackendError) else told(error)}"
            )
            entry.traceback = traceback.format_exc()
            raise entry.error from error
        finally:
            entry.loading = 0


def _await_imports(spec: BackendSpec) -> None:
    """Wait for a thread that imports the library, or the module of the backend.

    With the lock held, both threads would wait for each other if that thread asks for a backend.
    """
    for module in (spec.module, spec.load.partition(":")[0]):
        if sys.modules.get(module) is not None:
            with contextlib.suppress(Exception), locks.new_lock():  # see plugins._import
                importlib.import_module(module)


def _how_to_install(spec: BackendSpec) -> str:
    return spec.install or "install it according to its documentation"


def _accept(entry: Known, backend: Any) -> Backend:
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
    entry.backend, entry.interrupted = backend, ""
    for t in (*backend.array_types, *backend.plain_types):
        _lasting.add(t)
        _by_type[t] = backend
    return backend


def _owner(t: type, entry: Known) -> str | None:
    """The owner of an array type: a library with its own backend, or a loaded backend."""
    taken = _by_type.get(t)
    if taken is not None:
        return f"that of the backend {taken.name!r}"
    other = next(
        (
            k
            for k in _of_module(claims.module_of(t))
            if k is not entry and not (k.plugin and k.plugin is entry.plugin)
        ),
        None,
    )
    if other is not None:
        return f"that of the backend {other.spec.name!r}"
    if entry.built_in:
        return None
    # any library may own it, so all current ones are asked
    if claims.may_be_virtual(t, entry.spec.module):
        _load_imported()
    return claims.whose(t, entry.spec.module, loaded())


def _of_module(module: str) -> list[Known]:
    """The backends whose libraries contain that module, backends for a submodule first."""
    known = _by_root.get(module.partition(".")[0])
    if known is None:
        return []
    return sorted(
        (k for k in known if claims.covers(k.spec.module, module) and not k.blocked),
        key=lambda k: -len(k.spec.module),
    )


def _look_up(x: Any) -> Backend | None:
    """Find the backend of an array of a new type, and cache it by the type."""
    cls = type(x)
    _all()
    backend = _inherited(x, cls)
    if backend is None and _load_imported():
        backend = _inherited(x, cls)
    if backend is None:
        # A class may override `isinstance`. Another thread may also have loaded a backend
        # meanwhile.
        backend = next((b for b in loaded() if claims.is_instance(x, b.array_types)), None)
    if backend is None:
        if any(plugin.error for plugin in plugins()):
            warn_of_failed(
                {claims.module_of(c).partition(".")[0] for c in cls.__mro__},
                {entry.plugin for entry in _known.values()},
            )
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


def register_plain_type(cls: type) -> type:
    """Let arrays of a class count as plain arrays of the library that the class inherits from.

    Returns the class, so this also works as a decorator. Raises RegistrationError if it is not a
    subclass of an array type, or of one that its backend refuses.
    """
    if not isinstance(cls, type):
        raise RegistrationError(f"register_plain_type() takes a class, not {cls!r}.")
    _all()
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
        for entry in _of_module(claims.module_of(c)):
            backend = _usable(entry)
            if backend is not None and claims.is_instance(x, backend.array_types):
                return _by_type.get(c) or backend
            if entry.error is not None and not entry.set_aside and entry.spec.module in sys.modules:
                entry.set_aside = True
                warnings.warn(
                    f"{str(entry.error).rstrip('.')}. Its arrays count as those of an unknown "
                    "library.",
                    UserWarning,
                    stacklevel=2,
                )
    return None


def _usable(entry: Known) -> Backend | None:
    """The backend of an imported library, or None if it does not work.

    Its error is raised only when a user requests the backend by name.
    """
    if entry.backend is not None:
        return entry.backend
    if (
        entry.error is not None
        or entry.set_aside
        or entry.blocked
        or sys.modules.get(entry.spec.module) is None
    ):
        return None
    # It is being loaded. Its own functions may ask for it, and so may the library while this thread
    # imports it; all other threads wait.
    if entry.loading and (
        entry.loading == threading.get_ident() or not imported(entry.spec.module)
    ):
        return None
    with (
        contextlib.suppress(BackendError),
        watched(entry.plugin) if entry.plugin else contextlib.nullcontext(),
    ):
        return _load(entry)
    return None


def _load_imported() -> bool:
    """Load the backends of all imported libraries, and return whether there were any left."""
    waiting = [
        k
        for k in list(_known.values())
        if k.backend is None and k.error is None and k.spec.module in sys.modules
    ]
    usable = [_usable(entry) for entry in waiting]
    return any(usable)


def _line(entry: Known, probe: bool) -> BackendInfo:
    spec, plugin = entry.spec, entry.plugin
    error = str(entry.error) if entry.error else entry.interrupted
    error = error or (plugin.error if plugin else "")
    devices: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    if entry.backend is not None:
        state = "loaded"
        if probe:
            devices, dtypes, failed = _probe(entry.backend)
            error = failed or error
    elif entry.blocked:
        state = "blocked"
    elif entry.interrupted:
        state = "broken"
    elif entry.error is not None:
        state = "no device" if isinstance(entry.error, NoDeviceError) else "broken"
    else:
        state = "available" if installed.is_installed(spec.module) else "not installed"
        if state == "not installed":
            error = error or _how_to_install(spec)
    return BackendInfo(
        spec.name,
        plugin.distribution if plugin else "",
        plugin.version if plugin else "",
        state,
        error,
        spec.module,
        "" if state == "not installed" else installed.version_of(spec.module),
        devices,
        dtypes,
        plugin.overrides if plugin else (),
        traceback=entry.traceback or (plugin.traceback if plugin else ""),
    )


def _probe(backend: Backend) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The devices of a backend, and the dtypes on its default device, or the failure."""
    try:
        devices = tuple(str(d) for d in backend.kernel("devices")(backend.namespace))
        known = backend.namespace.__array_namespace_info__().dtypes()
        dtypes = tuple(name for name in _DTYPES if name in known)
    except Exception as error:
        return (), (), f"the probe failed: {type(error).__name__}: {error}"
    return devices, dtypes, ""


def _library_roots() -> frozenset[str]:
    """The modules of the libraries, of their plugins, and of the adapters between them."""
    names = list(_by_root)
    for known in list(_known.values()):
        names += [known.spec.load] if not known.built_in else []
        names += [] if known.backend is None else [getattr(known.backend.namespace, "__name__", "")]
    return frozenset(name.partition(".")[0] for name in names)


provide(tracebacks, library_roots=_library_roots)
