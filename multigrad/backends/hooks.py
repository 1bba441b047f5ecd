"""The hooks that a plugin implements, and the functions that call them.

A plugin is a light module, named by an entry point of the group `multigrad`, that imports no array
library:

    import multigrad as mg

    @mg.hookimpl
    def multigrad_backends():
        load = "multigrad_strict.backend:make"
        return [mg.BackendSpec("strict", module="array_api_strict", load=load)]

The plugin may declare the version of multigrad's API that it needs, by `MULTIGRAD_API = 1`. A
plugin that needs a newer version is refused (plugins.py).

Each plugin is called separately. multigrad stores its errors with the plugin, so they never affect
other plugins. `plugins.py` describes how plugins are discovered.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import pluggy

from .. import registry
from .plugins import (
    Plugin,
    lock,
    manager,
    note_overrides,
    noting,
    plugin_manager,
    plugins,
    shown,
    told,
    watched,
)
from .spec import BackendSpec

__all__ = [
    "call",
    "failures",
    "hookimpl",
    "items_of",
    "load_operations",
    "load_samples",
    "manager",
    "plugins",
]

hookspec = pluggy.HookspecMarker("multigrad")
hookimpl = pluggy.HookimplMarker("multigrad")


@hookspec
def multigrad_backends() -> Iterable[BackendSpec]:  # type: ignore[empty-body]
    """Return the backends that the plugin brings."""


@hookspec
def multigrad_operations() -> Iterable[registry.Op]:  # type: ignore[empty-body]
    """Declare operations with the functions of `multigrad.registry`, and return their results."""


@hookspec
def multigrad_samples() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Return the conformance samples of the plugin's operations.

    The result is {operation: generator function, or "module:name"}.
    """


plugin_manager.add_hookspecs(sys.modules[__name__])
_operations_loaded = False
_declaring = False


def call(plugin: Plugin, hook: str) -> Any:
    """The result of one plugin's hook, or None.

    It is None if the plugin lacks the hook, or if the hook failed; then the error is stored with
    the plugin.
    """
    if plugin.module is None or plugin_manager.get_plugin(plugin.name) is not plugin.module:
        return None
    caller: Any = getattr(plugin_manager.hook, hook)
    if not any(i.plugin is plugin.module for i in caller.get_hookimpls()):
        return None
    others = [p for p in plugin_manager.get_plugins() if p is not plugin.module]
    try:
        with watched(plugin):
            results = plugin_manager.subset_hook_caller(hook, others)()
    except BaseException as error:
        plugin.fail(f"{plugin.origin} failed in {hook}: {told(error)}", error)
        if isinstance(error, KeyboardInterrupt):
            raise
        return None
    if not results:
        plugin.fail(f"{plugin.origin} returned nothing from {hook}.")
        return None
    return results[0]


def items_of(plugin: Plugin, hook: str, kind: type) -> list[Any]:
    """The items that a hook of one plugin returns; others are reported and dropped."""
    result = call(plugin, hook)
    if result is None:
        return []
    try:
        if isinstance(result, (str, bytes, Mapping)):
            raise TypeError
        with watched(plugin) if isinstance(result, Iterator) else nullcontext():
            listed = list(result)
    except TypeError:
        plugin.fail(
            f"{plugin.origin} returned {shown(result)} from {hook}: return a list of "
            f"{kind.__name__}."
        )
        return []
    except BaseException as error:  # a hook may be a generator
        plugin.fail(f"{plugin.origin} failed in {hook}: {told(error)}", error)
        if isinstance(error, KeyboardInterrupt):
            raise
        return []
    for item in listed:
        if not isinstance(item, kind):
            plugin.fail(
                f"{plugin.origin} returned {shown(item)} from {hook}: return a list of "
                f"{kind.__name__}."
            )
    return [item for item in listed if isinstance(item, kind)]


def load_operations() -> None:
    """Let every plugin declare its operations, once.

    If a plugin fails, all of its operations are removed.
    """
    if not _operations_loaded:
        loaded = plugins()
        with lock:
            _declare(loaded)
        warn_overrides(loaded)


def operations_loaded() -> bool:
    """Whether the table has the operations of all loaded plugins."""
    return _operations_loaded


def _declare(discovered: list[Plugin]) -> None:
    global _declaring, _operations_loaded
    # a plugin's hook may call multigrad, which asks again; other threads wait for the lock
    if _operations_loaded or _declaring:
        return
    _declaring = True
    try:
        for plugin in discovered:
            declare(plugin)
        _operations_loaded = True
    finally:
        _declaring = False


def declare(plugin: Plugin) -> None:
    """Let one plugin declare its operations.

    If the table is not in use yet, the plugin declares them later.
    """
    with lock:
        if plugin.declared or plugin.deferred or not (_operations_loaded or _declaring):
            return
        plugin.declared = True
        before, failed = dict(registry.OPS), plugin.error
        own: list[registry.Op] = []
        try:
            with noting() as own:
                for op in items_of(plugin, "multigrad_operations", registry.Op):
                    if registry.OPS.get(op.name) is not op:
                        plugin.fail(
                            f"{plugin.origin} returned the operation {op.name!r}, which is not "
                            "in the table: declare it with the functions of multigrad.registry."
                        )
        finally:
            if plugin.error != failed:
                registry.restore(before, own)
        note_overrides(plugin, own)
    if not _declaring:
        warn_overrides([plugin])


_warned: set[Plugin] = set()


def warn_overrides(discovered: Iterable[Plugin]) -> None:
    """Warn once per plugin about the operations of the standard that it replaces.

    The replacement applies to the whole program.
    """
    for plugin in discovered:
        if plugin.overrides and plugin not in _warned:
            _warned.add(plugin)
            warnings.warn(
                f"{plugin.origin} replaces operations of the standard, by override=True: "
                f"{', '.join(plugin.overrides)}. The environment variable "
                f"MULTIGRAD_BLOCK={plugin.name} keeps it out.",
                UserWarning,
                stacklevel=2,
            )


def load_samples() -> dict[str, Any]:
    """The conformance samples of all loaded plugins.

    The result is {operation: generator function, or "module:name"}.
    """
    samples: dict[str, Any] = {}
    owners: dict[str, Plugin] = {}
    for plugin in plugins():
        with lock:
            result = call(plugin, "multigrad_samples")
        if result is None:
            continue
        if not isinstance(result, Mapping):
            plugin.fail(
                f"{plugin.origin} returned {shown(result)} from multigrad_samples: return "
                "{operation: generator}."
            )
            continue
        for name, target in result.items():
            if not isinstance(name, str) or not (
                callable(target) or (isinstance(target, str) and ":" in target)
            ):
                plugin.fail(
                    f"{plugin.origin} returned {shown({name: target})} from multigrad_samples: a "
                    "sample is a function or 'module:name', by the name of its operation."
                )
            elif name in samples:
                plugin.fail(
                    f"{plugin.origin} returned samples for {name!r}, which already has those of "
                    f"{owners[name].origin}."
                )
            else:
                samples[name], owners[name] = target, plugin
    return samples


def failures() -> dict[str, str]:
    """The errors of plugins, by plugin."""
    return {plugin.name: plugin.error for plugin in plugins() if plugin.error}
