"""Plugins are imported and taken into use one by one, separately, with the backends they bring.

multigrad stores an error with its plugin, so that it never affects others: `step` surrounds each
call of a plugin's code.

Imports run without the lock. A thread that imports a plugin itself, and asks for a backend there,
would hold that module's import lock and wait for ours while we wait for its lock.
"""

from __future__ import annotations

import sys
from traceback import walk_tb
from typing import Any

from .. import locks, registry
from ..backends import raw
from ..backends.spec import BackendSpec
from ..provided import provide, wanted
from . import API, hooks
from .installed import imported, is_partial, plugins
from .plugin import (
    DISTRIBUTION,
    GROUP,
    Known,
    Plugin,
    Refused,
    lock,
    repr_of,
    step,
    text_of,
    warn_if_slow,
    warn_once,
)

backends: dict[str, Known] = {}
"""The backends that loaded plugins have brought, by name."""
_owners: dict[str, list[Known]] = {}  # by the modules of their libraries
_waiting: list[Plugin] | None = None  # the plugins that wait; None until all others are loaded


@wanted
def declare_standard() -> None:
    """Declare the operations of the standard, which come first.

    So in case of a conflict the plugin raises, not multigrad. Provided by namespace.py.
    """


def fill() -> bool:
    """Load all plugins that are not deferred; return whether their operations are all declared.

    That is False for a plugin that asks while it is loaded. Other threads wait.
    """
    if _waiting is None:
        load()
    return _waiting is not None


def load(name: str = "", everything: bool = False) -> bool:
    """Load the plugins that are due, and return whether there were any.

    At first, these are all but the deferred ones. Later, these are the deferred plugins whose
    library was imported meanwhile, the one of that name, or all of them.
    """
    global _waiting
    if _waiting is None:
        declare_standard()
    waiting = plugins() if _waiting is None else _waiting
    due = [plugin for plugin in waiting if _is_due(plugin, name, everything)]
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
    if due or _waiting is None:
        waiting = [plugin for plugin in plugins() if not plugin.loaded]
        if not any(map(_is_due, waiting)):
            _waiting = waiting
    return bool(due)


def _is_due(plugin: Plugin, name: str = "", everything: bool = False) -> bool:
    waits = plugin.deferred and not everything and not imported(plugin.name)
    asked = plugin.name == name or not (waits or plugin.interrupted)
    return asked and not plugin.loaded and not plugin.blocked


def _import(plugin: Plugin) -> None:
    plugin.try_again()
    if plugin.error or plugin.module is not None:
        return
    from importlib.metadata import EntryPoint

    # a child of a fork could not import what another thread had begun to import
    with step(plugin, "could not be imported"), locks.new_lock():
        _check_unique(plugin)
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
        if not plugin.error:  # it may have asked, see above
            plugin.module = module


def _check_unique(plugin: Plugin) -> None:
    for other in plugins():
        if other.registered and (other.name == plugin.name or other.module is plugin.module):
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
    scopes += [frame.f_globals for frame, _ in walk_tb(getattr(error, "__traceback__", None))]
    of_module = (s for s in scopes if s.get("__name__") == name)
    version = next((s["MULTIGRAD_API"] for s in of_module if "MULTIGRAD_API" in s), 1)
    if type(version) is not int or version < 1:
        reason = (
            f"MULTIGRAD_API in {name} must be an int, the version of multigrad's API for plugins "
            f"that it is written against, as {API}; it is {repr_of(version)}."
        )
    elif version > API:
        reason = (
            f"it needs version {version} of multigrad's API for plugins (MULTIGRAD_API in {name}), "
            f"and this one has version {API}. Upgrade multigrad: pip install --upgrade "
            f"{DISTRIBUTION}."
        )
    else:
        return
    also = f" Its import failed: {text_of(error)}" if error is not None else ""
    raise Refused(f"is refused: {reason}{also}") from error


def _take(plugin: Plugin) -> None:
    """Register the hooks of an imported plugin, and call them. The lock is held."""
    plugin.loading, plugin.deferred = True, False
    try:
        if not plugin.error and not plugin.registered:
            with step(plugin, "cannot be looked at"):
                _check_unique(plugin)
                hooks.register(plugin)
        if plugin.registered:
            with step(plugin, "failed in multigrad_backends"):
                for spec in hooks.items(plugin, "multigrad_backends", BackendSpec):
                    _add(spec, plugin)
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
            for name, target in hooks.items(plugin, "multigrad_samples"):
                owner = owners.setdefault(name, plugin)
                if owner is plugin:
                    samples[name] = target
                else:
                    plugin.fail(
                        f"{plugin.origin} returned samples for {name!r}, which already has those "
                        f"of {owner.origin}."
                    )
    return samples


# ----- Their backends -----


def _add(spec: BackendSpec, plugin: Plugin) -> None:
    """Store a backend that a plugin brings; the plugin fails if its name is taken."""
    other = backends.get(spec.name)
    if other is None:
        backends[spec.name] = Known(spec, plugin)
        _assign_modules()
    elif other.spec != spec or other.plugin is not plugin:  # else it is taken again
        plugin.fail(
            f"the backend {spec.name!r} of {plugin.origin} is already that of "
            f"{other.plugin.origin}. Choose another name."
        )


def _assign_modules() -> None:
    """Decide which backend each module belongs to, or a part of a library.

    The first one has it: backends in use, then the built-in ones, then plugins by name.
    """
    global _owners

    def rank(entry: Known) -> tuple[bool, bool, str, str]:
        plugin = entry.plugin
        return entry.backend is None, not plugin.built_in, plugin.name, plugin.distribution

    owners: dict[str, list[Known]] = {}
    for entry in sorted((e for e in backends.values() if not e.blocked), key=rank):
        module, plugin = entry.spec.module, entry.plugin
        owner = next((o for o in owners_of(module, owners) if o.plugin is not plugin), None)
        if owner is None:
            owners.setdefault(module, []).append(entry)
            continue
        names = [f"MULTIGRAD_BLOCK={p.name}" for p in (owner.plugin, plugin) if not p.built_in]
        entry.fail(
            f"{entry.origin} is refused: its module {module!r} is that of the {owner.origin}. "
            f"Keep one out by the environment variable {' or '.join(names)}, or name the module "
            "of a library in BackendSpec that no other backend is for."
        )
    _owners = owners  # in one step, since other threads look up arrays meanwhile


def owners_of(module: str, owners: dict[str, list[Known]] | None = None) -> list[Known]:
    """The backends whose libraries contain that module, backends for a submodule first."""
    owners = _owners if owners is None else owners
    found: list[Known] = []
    while module:
        found += owners.get(module, ())
        module = module.rpartition(".")[0]
    return found


provide(registry, fill=fill)
provide(raw, want=load)
