"""Plugins are imported and taken into use one by one, separately.

multigrad stores an error with its plugin, so that it never affects others: `step` surrounds each
call of a plugin's code.

Imports run without the lock. A thread that imports a plugin itself, and asks for a backend there,
would hold that module's import lock and wait for ours while we wait for its lock.
"""

from __future__ import annotations

import sys
from typing import Any

from .. import locks, registry
from ..backends import raw
from ..backends.spec import BackendSpec
from ..provided import provide, wanted
from . import API, discovery, hooks
from .found import imported, is_partial, plugins
from .plugin import (
    DISTRIBUTION,
    GROUP,
    Plugin,
    Refused,
    lock,
    shown,
    step,
    told,
    warn_if_slow,
    warn_once,
)

_left: list[Plugin] | None = None  # the plugins that wait; None until all others are loaded


@wanted
def declare_standard() -> None:
    """Declare the operations of the standard, which come first.

    So in case of a conflict the plugin raises, not multigrad. Provided by namespace.py.
    """


def fill() -> bool:
    """Load all plugins that are not deferred; return whether their operations are all declared.

    That is False for a plugin that asks while it is loaded. Other threads wait.
    """
    if _left is None:
        load()
    return _left is not None


def load(name: str = "", everything: bool = False) -> bool:
    """Load the plugins that are due, and return whether there were any.

    At first, these are all but the deferred ones. Later, these are the deferred plugins whose
    library was imported meanwhile, the one of that name, or all of them.
    """
    global _left
    if _left is None:
        declare_standard()
    waiting = plugins() if _left is None else _left
    due = [p for p in waiting if not p.loaded and _is_due(p, name, everything)]
    if not due and _left is not None:
        return False
    for plugin in due:
        _import(plugin)
        with lock:  # another thread may be loading it
            if not (plugin.loading or plugin.loaded):
                _take(plugin)
        if plugin.loaded and plugin.overrides:
            warn_once(
                f"{plugin.origin} replaces operations of the standard, by override=True: "
                f"{', '.join(plugin.overrides)}. {plugin.blocking}"
            )
        warn_if_slow(plugin)
    waiting = [p for p in plugins() if not p.loaded]
    if not any(_is_due(p) for p in waiting):
        _left = waiting
    return bool(due)


def _is_due(plugin: Plugin, name: str = "", everything: bool = False) -> bool:
    if plugin.interrupted:
        wanted = plugin.name == name
    elif plugin.deferred:
        wanted = plugin.name == name or everything or imported(plugin.name)
    else:
        wanted = True
    return wanted and not plugin.blocked


def _import(plugin: Plugin) -> None:
    if plugin.interrupted:
        plugin.error, plugin.traceback, plugin.interrupted = "", "", False
    if plugin.error or plugin.module is not None:
        return
    from importlib.metadata import EntryPoint

    # a child of a fork could not import what another thread had begun to import
    with step(plugin, "could not be imported"), locks.new_lock():
        _check_unique(plugin, None)
        try:
            module = EntryPoint(plugin.name, plugin.target, GROUP).load()
        except (Exception, SystemExit) as error:
            _check_api(plugin, error)
            raise
        _check_api(plugin)
        if module is None:
            raise Refused(
                f"names None: the entry point {plugin.target!r} must name a module "
                "or an object with hooks."
            )
        if is_partial(module):
            raise Refused(
                "asked for a backend while it was still being imported: do that inside its "
                "functions."
            )
        _check_unique(plugin, module)
        if not plugin.error:  # it may have asked, see above
            plugin.module = module


def _check_unique(plugin: Plugin, module: Any) -> None:
    for other in plugins():
        if other.registered and (other.name == plugin.name or other.module is module):
            raise Refused(
                f"cannot be registered: its name or its module is already that of "
                f"{other.origin}. Rename the entry point."
            )


def _check_api(plugin: Plugin, error: BaseException | None = None) -> None:
    """Raise Refused for a plugin that needs another API version, by MULTIGRAD_API in its module.

    If `error` ended the import of the module, the version is read from the frame where the error
    passed through it.
    """
    name = plugin.target.partition(":")[0].strip()
    scopes = [getattr(sys.modules.get(name), "__dict__", {})]
    at = error.__traceback__ if error is not None else None
    while at is not None:
        scopes.append(at.tb_frame.f_globals)
        at = at.tb_next
    scopes = [s for s in scopes if s.get("__name__") == name and "MULTIGRAD_API" in s]
    version = scopes[0]["MULTIGRAD_API"] if scopes else 1
    if type(version) is not int or version < 1:
        reason = (
            f"MULTIGRAD_API in {name} must be an int, the version of multigrad's API for plugins "
            f"that it is written against, as {API}; it is {shown(version)}."
        )
    elif version > API:
        reason = (
            f"it needs version {version} of multigrad's API for plugins (MULTIGRAD_API in {name}), "
            f"and this one has version {API}. Upgrade multigrad: pip install --upgrade "
            f"{DISTRIBUTION}."
        )
    else:
        return
    also = f" Its import failed: {told(error)}" if error is not None else ""
    raise Refused(f"is refused: {reason}{also}") from error


def _take(plugin: Plugin) -> None:
    """Register the hooks of an imported plugin, and call them. The lock is held."""
    plugin.loading, plugin.deferred = True, False
    try:
        if not plugin.error and not plugin.registered:
            with step(plugin, "cannot be looked at"):
                hooks.register(plugin)
        if plugin.registered:
            with step(plugin, "failed in multigrad_backends"):
                for spec in hooks.items(plugin, "multigrad_backends", BackendSpec):
                    discovery.add(spec, plugin)
            with step(plugin, "failed in multigrad_operations"):
                for op in hooks.items(plugin, "multigrad_operations", registry.Op):
                    plugin.packages |= {op.module.partition(".")[0]} - {"multigrad"}
                    if registry.OPS.get(op.name) is not op:
                        plugin.fail(
                            f"{plugin.origin} returned the operation {op.name!r}, which is not in "
                            "the table: declare it with the functions of multigrad.registry."
                        )
        plugin.loaded = True
    finally:
        plugin.loading = False
        # else an interrupt of ours, and the next use takes it again
        plugin.loaded = plugin.loaded or plugin.interrupted


def load_samples() -> dict[str, Any]:
    """The conformance samples of all loaded plugins.

    The result is {operation: generator function, or "module:name"}.
    """
    fill()
    samples: dict[str, Any] = {}
    owners: dict[str, Plugin] = {}
    for plugin in plugins():
        with lock, step(plugin, "failed in multigrad_samples"):
            for name, target in hooks.samples(plugin):
                if name in samples:
                    plugin.fail(
                        f"{plugin.origin} returned samples for {name!r}, which already has those "
                        f"of {owners[name].origin}."
                    )
                else:
                    samples[name], owners[name] = target, plugin
    return samples


provide(registry, fill=fill)
provide(raw, want=load)
provide(discovery, load=load)
