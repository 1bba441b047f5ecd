"""What there is: each backend and each plugin with its state or its error."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from ..backends.spec import Backend
from ..errors import BackendError, NoDeviceError
from . import discovery
from .installed import is_installed, plugins, version_of
from .loading import backends, load
from .plugin import Known, Plugin


@dataclass(frozen=True)
class BackendInfo:
    """One line of the listing. A probe fills in `devices` and `dtypes`."""

    name: str
    distribution: str
    version: str
    # "loaded", "available", "deferred" (see installed.py), "not installed", "no device", "broken",
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
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float32", "float64", "complex64", "complex128"),
)


def listing(probe: bool = False) -> list[BackendInfo]:
    """The state of each backend and each broken plugin.

    This imports no array library, unless `probe` is true.
    """
    load(everything=probe)
    entries = list(backends.values())
    for entry in entries if probe else ():
        # the error is kept with the entry, or occurs again below
        with contextlib.suppress(BackendError):
            if not entry.error:
                discovery.get(entry.spec.name)
    brought = {entry.plugin for entry in entries}
    others = [_of_plugin(plugin) for plugin in plugins() if plugin not in brought]
    return [_of_backend(entry, probe) for entry in entries] + [
        line for line in others if line.state != "operations" or line.overrides
    ]


def whole_listing(probe: bool = False) -> list[BackendInfo]:
    """As `listing`, with a line for a plugin or a backend that raises KeyboardInterrupt.

    Each raises it once, with a note, and is left out from then on.
    """
    while True:
        try:
            return listing(probe)
        except KeyboardInterrupt as error:
            if not hasattr(error, "__notes__"):  # the user's
                raise


def _of_plugin(plugin: Plugin) -> BackendInfo:
    """The line of a plugin that has brought no backend."""
    return BackendInfo(
        plugin.name,
        plugin.distribution,
        plugin.version,
        plugin.state,
        plugin.error,
        plugin.name if plugin.deferred else "",
        overrides=plugin.overrides,
        traceback=plugin.traceback,
    )


def _of_backend(entry: Known, probe: bool) -> BackendInfo:
    spec, plugin, error = entry.spec, entry.plugin, entry.error or entry.plugin.error
    devices: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    if entry.backend is not None:
        state = "loaded"
        if probe:
            try:
                devices, dtypes = _probe(entry.backend)
            except Exception as failure:
                error = f"the probe failed: {type(failure).__name__}: {failure}"
    elif entry.blocked:
        state = "blocked"
    elif entry.error:
        state = "no device" if isinstance(entry.cause, NoDeviceError) else "broken"
    elif is_installed(spec.module):
        state = "available"
    else:
        state = "not installed"
        error = error or discovery.how_to_install(spec)
    return BackendInfo(
        spec.name,
        plugin.distribution,
        plugin.version,
        state,
        error,
        spec.module,
        "" if state == "not installed" else version_of(spec.module),
        devices,
        dtypes,
        plugin.overrides,
        traceback=entry.traceback or plugin.traceback,
    )


def _probe(backend: Backend) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The devices of a backend, and the dtypes on its default device."""
    devices = tuple(str(d) for d in backend.kernel("devices")(backend.namespace))
    dtypes = backend.namespace.__array_namespace_info__().dtypes()
    return devices, tuple(name for name in _DTYPES if name in dtypes)
