"""Which backends there are, and to which of them an array belongs.

Nothing is read at import. The first question reads the entry points (`hooks.py`); a library is imported only when its
backend is asked for by name, or looked at when an unknown array turns up while the library is in `sys.modules` already.
On the hot path `backend_of` is one lookup in a dict keyed by the type of the array.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BackendError, NoDeviceError, RegistrationError
from .raw import resolve
from .spec import Backend, BackendSpec

if TYPE_CHECKING:
    from .hooks import Plugin


@dataclass
class Known:
    """A backend that is known: its spec, who brought it, and what became of it."""

    spec: BackendSpec
    plugin: Plugin | None  # None: registered by a call
    backend: Backend | None = None
    error: BackendError | None = None  # why it could not be loaded; kept, and raised again whenever it is asked for
    traceback: str = ""

    @property
    def origin(self) -> str:
        return self.plugin.origin if self.plugin else "a call of register()"

    @property
    def blocked(self) -> bool:
        from . import hooks

        blocked = hooks.manager().is_blocked
        return blocked(self.spec.name) or (self.plugin is not None and blocked(self.plugin.name))


@dataclass(frozen=True)
class BackendInfo:
    """One line of the listing. `devices` and `dtypes` are filled in by a probe only."""

    name: str
    distribution: str
    version: str
    state: str  # "loaded", "available", "not installed", "no device", "broken" or "blocked"
    error: str = ""
    module: str = ""
    library_version: str = ""
    devices: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    traceback: str = field(default="", repr=False)


_DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
           "complex128")

_known: dict[str, Known] = {}
_lock = threading.RLock()
_discovered = False
_adding = False

# What is exactly of these types is no array, whoever asks; other misses are not kept, since the library may come later.
_by_type: dict[type, Backend | None] = dict.fromkeys((bool, int, float, complex, str, type(None), list, tuple, dict, slice))
_refused: dict[type, str] = {}


def backend_of(x: Any) -> Backend | None:
    """Return the backend of the array `x`, None where it is an array of no known library (Python scalars, for instance).

    Raises BackendError if `x` belongs to a library whose backend is broken or has no device, or is of a type that its
    library's backend refuses (numpy.matrix).
    """
    try:
        return _by_type[type(x)]
    except KeyError:
        return _look_up(x)


def get(name: str) -> Backend:
    """Return the backend of that name, its library imported.

    Raises BackendError that says what to do where it is unknown, blocked, not installed or broken, and NoDeviceError
    where the library finds no device.
    """
    known = _all()
    entry = known.get(name)
    if entry is None:
        raise BackendError(_unknown(name))
    if entry.backend is not None:
        return entry.backend
    if entry.blocked:
        raise BackendError(f"backend {name!r} is blocked: remove it from the environment variable MULTIGRAD_BLOCK, or do not block it.")
    return _load(entry)


def register(item: BackendSpec | Backend) -> None:
    """Make a backend known by a call instead of a plugin. Raises RegistrationError where its name is taken."""
    if not isinstance(item, (Backend, BackendSpec)):
        raise RegistrationError(f"register() takes a Backend or a BackendSpec, not {item!r}.")
    _all()
    with _lock:
        if item.name in _known:
            raise RegistrationError(f"the backend {item.name!r} of a call of register() is already that of {_known[item.name].origin}. "
                                    "Choose another name.")
        if isinstance(item, BackendSpec):
            _known[item.name] = Known(item, None)
            return
        root = item.array_types[0].__module__.partition(".")[0]
        entry = Known(BackendSpec(item.name, root, f"{root}:none"), None)
        _known[item.name] = entry
        try:
            _accept(entry, item)
        except BackendError as error:
            del _known[item.name]
            raise RegistrationError(str(error)) from error


def loaded() -> list[Backend]:
    """The backends in use so far."""
    return [entry.backend for entry in list(_known.values()) if entry.backend is not None]


def names() -> list[str]:
    """The names of all known backends, blocked and broken ones included."""
    return sorted(_all())


def load_operations() -> None:
    """Let every plugin declare its operations, once. The engine calls it before the table is first used."""
    from . import hooks

    hooks.load_operations()


def listing(probe: bool = False) -> list[BackendInfo]:
    """What is known about each backend, and each broken plugin. Imports no array library, unless `probe` is true."""
    from . import hooks

    known = _all()
    if probe:
        for entry in list(known.values()):
            with contextlib.suppress(BackendError):  # it is kept with the entry, or found again below
                get(entry.spec.name)
    lines = [_line(entry, probe) for entry in known.values()]
    brought = {id(entry.plugin) for entry in known.values()}
    for plugin in hooks.plugins():
        if id(plugin) not in brought and (plugin.error or plugin.blocked):
            state = "broken" if plugin.error else "blocked"
            lines.append(BackendInfo(plugin.name, plugin.distribution, plugin.version, state, plugin.error, traceback=plugin.traceback))
    return lines


def foreign_distribution() -> str | None:
    """Say so if the unrelated package `multigrad` of PyPI is installed, or has overwritten files of this one."""
    from importlib import metadata

    from .hooks import DISTRIBUTION

    advice = f"Run: pip uninstall multigrad {DISTRIBUTION}; pip install {DISTRIBUTION}"
    try:
        foreign = metadata.distribution("multigrad")
    except metadata.PackageNotFoundError:
        foreign = None
    if foreign is not None:
        return (f"the unrelated PyPI package 'multigrad' {foreign.version} is installed in {foreign.locate_file('')}: it and "
                f"{DISTRIBUTION} import under one name and overwrite each other's files. {advice}")
    changed = _overwritten(DISTRIBUTION)
    if changed:
        return f"{changed} is not the file that {DISTRIBUTION} installed: another package has overwritten it. {advice}"
    return None


def _overwritten(distribution: str) -> str | None:
    import base64
    import hashlib
    from importlib import metadata

    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if str(file) != "multigrad/__init__.py" or file.hash is None:
            continue
        path = file.locate()
        try:
            digest = hashlib.new(file.hash.mode, Path(str(path)).read_bytes()).digest()
        except (OSError, ValueError):
            return str(path)
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value:
            return str(path)
    return None


def _all() -> dict[str, Known]:
    global _adding, _discovered
    if not _discovered:
        from . import hooks

        plugins = hooks.plugins()
        with _lock:
            if not _discovered and not _adding:  # a plugin's hook may ask again; other threads wait until all are there
                _adding = True
                try:
                    for plugin in plugins:
                        _add(plugin)
                    _discovered = True
                finally:
                    _adding = False
    return _known


def _add(plugin: Plugin) -> None:
    from . import hooks

    for spec in hooks.items_of(plugin, "multigrad_backends", BackendSpec):
        other = _known.get(spec.name)
        if other is None:
            _known[spec.name] = Known(spec, plugin)
        else:
            plugin.fail(f"the backend {spec.name!r} of {plugin.origin} is already that of {other.origin}. Choose another name.")


def _unknown(name: object) -> str:
    from . import hooks

    for plugin in hooks.plugins():
        if plugin.name == name and plugin.error:
            return f"backend {name!r} is broken: {plugin.error}"
        if plugin.name == name and plugin.blocked:
            return f"backend {name!r} is blocked: remove it from the environment variable MULTIGRAD_BLOCK, or do not block it."
    if not isinstance(name, str):
        return f"a backend is asked for by its name, a string, not {name!r}."
    return (f"unknown backend {name!r}. Known: {', '.join(sorted(_known))}. Other libraries come with a plugin: "
            f"pip install multigrad-{name}, if there is one.")


def _load(entry: Known) -> Backend:
    """Import the library and make the backend, once; a failure is kept, unless the library is only not installed."""
    spec = entry.spec
    with _lock:
        if entry.backend is not None:
            return entry.backend
        if entry.error is not None:
            raise entry.error.with_traceback(None)
        if not _installed(spec.module):
            raise BackendError(f"backend {spec.name!r} is known but its library {spec.module!r} is not installed: {_how_to_install(spec)}")
        try:
            return _accept(entry, resolve(spec.load)())
        except NoDeviceError as error:
            entry.error, entry.traceback = error, traceback.format_exc()
            raise
        except Exception as error:
            told = str(error) if isinstance(error, BackendError) else f"{type(error).__name__}: {error}"
            entry.error = BackendError(f"backend {spec.name!r} of {entry.origin} is broken: {told}")
            entry.traceback = traceback.format_exc()
            raise entry.error from error


def _how_to_install(spec: BackendSpec) -> str:
    return spec.install or f"pip install {spec.module}"


def _installed(module: str) -> bool:
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _accept(entry: Known, backend: Any) -> Backend:
    """Take a backend into use: check that it is one, and that its arrays are nobody else's."""
    spec = entry.spec
    if not isinstance(backend, Backend):
        raise BackendError(f"{spec.load} returned {backend!r}: return a multigrad.Backend")
    if backend.name != spec.name:
        raise BackendError(f"{spec.load} returned a Backend named {backend.name!r}: name it as the BackendSpec does, {spec.name!r}")
    for t in backend.array_types:
        owner = _owner(t, entry)
        if owner is not None:
            raise BackendError(f"the array type {t.__module__}.{t.__qualname__} is {owner}: a backend may not claim it as well")
    for t in backend.refused_types:
        _refused[t] = backend.name
    entry.backend = backend
    for t in backend.array_types:
        _by_type[t] = backend
    return backend


def _owner(t: type, entry: Known) -> str | None:
    """Whose the array type is already: another backend's that is loaded, or whose library it comes from."""
    if t in _by_type:
        taken = _by_type[t]
        return f"that of the backend {taken.name!r}" if taken else "one of Python's own"
    root = t.__module__.partition(".")[0]
    if root == entry.spec.module:
        return None
    return next((f"that of the backend {k.spec.name!r}" for k in _known.values() if k is not entry and k.spec.module == root), None)


def _look_up(x: Any) -> Backend | None:
    """Find the backend of an array of a type not seen before, and remember it by that type."""
    cls = type(x)
    for t, name in list(_refused.items()):
        if isinstance(x, t):
            raise BackendError(f"arrays of type {cls.__module__}.{cls.__qualname__} do not follow the Array API standard "
                               f"and are refused by the backend {name!r}: convert it to a plain array first.")
    for backend in loaded():
        if isinstance(x, backend.array_types):
            return _remember(cls, backend)
    root = cls.__module__.partition(".")[0]
    waiting = [e for e in list(_all().values()) if e.backend is None and e.spec.module in sys.modules and not e.blocked]
    for entry in sorted(waiting, key=lambda e: e.spec.module != root):
        own = entry.spec.module == root
        if entry.error is not None:
            if own:
                raise entry.error.with_traceback(None)
            continue
        try:
            backend = _load(entry)
        except BackendError:
            if own:
                raise
            continue
        if isinstance(x, backend.array_types):
            return _look_up(x)
    # Another thread may have taken a backend into use since this one looked.
    return next((_remember(cls, b) for b in loaded() if isinstance(x, b.array_types)), None)


def _remember(cls: type, backend: Backend) -> Backend:
    _by_type[cls] = backend
    return backend


def _line(entry: Known, probe: bool) -> BackendInfo:
    spec, plugin = entry.spec, entry.plugin
    error = str(entry.error) if entry.error else plugin.error if plugin else ""
    devices: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    if entry.backend is not None:
        state = "loaded"
        if probe:
            devices, dtypes, failed = _probe(entry.backend)
            error = failed or error
    elif entry.blocked:
        state = "blocked"
    elif entry.error is not None:
        state = "no device" if isinstance(entry.error, NoDeviceError) else "broken"
    else:
        state = "available" if _installed(spec.module) else "not installed"
        if state == "not installed":
            error = error or _how_to_install(spec)
    return BackendInfo(spec.name, plugin.distribution if plugin else "", plugin.version if plugin else "", state, error, spec.module,
                       "" if state == "not installed" else _library_version(spec.module), devices, dtypes,
                       traceback=entry.traceback or (plugin.traceback if plugin else ""))


def _probe(backend: Backend) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The devices of a backend and the dtypes on its default device; a failure is told and harms nothing."""
    try:
        devices = tuple(str(d) for d in backend.kernel("devices")(backend.namespace))
        found = backend.namespace.__array_namespace_info__().dtypes()
        dtypes = tuple(name for name in _DTYPES if name in found)
    except Exception as error:
        return (), (), f"the probe failed: {type(error).__name__}: {error}"
    return devices, dtypes, ""


def _library_version(module: str) -> str:
    """The version of a library, found without importing it, or an empty string."""
    from importlib import metadata

    version = getattr(sys.modules.get(module), "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        pass
    # The distribution may have another name than the module (cupy-cuda12x): a slower search, by the files of each.
    for distribution in metadata.packages_distributions().get(module, ()):
        return metadata.version(distribution)
    return ""
