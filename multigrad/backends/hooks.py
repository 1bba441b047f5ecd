"""The hooks that a plugin implements, and the plugins that were found.

A plugin is a light module, named by an entry point of the group `multigrad`, that imports no array library:

    import multigrad as mg

    @mg.hookimpl
    def multigrad_backends():
        return [mg.BackendSpec("strict", module="array_api_strict", load="multigrad_strict.backend:make")]

Nothing is read before the first need. Each plugin is loaded and called by itself: what goes wrong is kept with that
plugin and never takes the others down. The plugins of this distribution come first, then the others by name, and the
first to claim a name keeps it. `MULTIGRAD_BLOCK=name,name` (or `manager().set_blocked(name)`) keeps a plugin from
being imported at all. Where the metadata of this distribution cannot be seen (a source tree that is not installed),
its own plugins are taken from the list below, so that the tree works as it stands.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pluggy

from .. import registry
from .spec import BackendSpec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint  # imported where it is needed: it costs as much as all of multigrad

GROUP = "multigrad"
DISTRIBUTION = "multigrad-array"
BUILTIN = {name: f"multigrad.backends.{name}" for name in ("numpy", "jax", "cupy")}

hookspec = pluggy.HookspecMarker("multigrad")
hookimpl = pluggy.HookimplMarker("multigrad")


@hookspec
def multigrad_backends() -> Iterable[BackendSpec]:  # type: ignore[empty-body]
    """Return the backends that the plugin brings."""


@hookspec
def multigrad_operations() -> Iterable[registry.Op]:  # type: ignore[empty-body]
    """Declare operations with the functions of `multigrad.registry`, and return what they returned."""


@hookspec
def multigrad_samples() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Return the conformance samples of the plugin's operations: {operation: generator function, or "module:name"}."""


@dataclass
class Plugin:
    """A plugin that was found: where it comes from, and what went wrong with it."""

    name: str
    target: str
    distribution: str
    version: str
    module: Any = None
    error: str = ""
    traceback: str = ""
    specs: list[BackendSpec] = field(default_factory=list)

    @property
    def blocked(self) -> bool:
        return _manager.is_blocked(self.name)

    @property
    def origin(self) -> str:
        """How a message names the plugin."""
        return f"the plugin {self.name!r} of {self.distribution} {self.version}".rstrip()

    def fail(self, message: str, error: BaseException | None = None) -> None:
        """Remember what went wrong; several mistakes of one plugin are all told."""
        self.error = f"{self.error} {message}".strip()
        if error is not None:
            self.traceback = f"{self.traceback}{''.join(traceback.format_exception(error))}"


_manager = pluggy.PluginManager("multigrad")
_manager.add_hookspecs(sys.modules[__name__])
_lock = threading.RLock()
_plugins: list[Plugin] = []
_registered: list[Plugin] = []
_found = False
_operations_loaded = False
_declaring = False


def manager() -> pluggy.PluginManager:
    """The pluggy manager, for `set_blocked` and for tracing. Asking for it discovers nothing."""
    for name in os.environ.get("MULTIGRAD_BLOCK", "").split(","):
        if name.strip() and not _manager.is_blocked(name.strip()):
            _manager.set_blocked(name.strip())
    return _manager


def plugins() -> list[Plugin]:
    """Every plugin that is installed, discovered on the first call."""
    if not _found:
        _discover()
    return _plugins


def _discover() -> None:
    global _found
    manager()
    # A plugin that declares operations when it is imported has to meet the built-in ones, not to be met by them.
    importlib.import_module("multigrad.ops")
    # Imports run outside the lock: a thread that imports a plugin itself, and from there asks for a backend, would
    # hold that module's import lock and wait for ours while we wait for its.
    candidates = [_import(*found) for found in _entry_points()]
    with _lock:
        if _found:
            return
        for plugin in candidates:
            if not plugin.blocked and not plugin.error:
                _register(plugin)
        _plugins[:] = candidates
        _found = True


def _entry_points() -> list[tuple[EntryPoint, str, str]]:
    from importlib.metadata import EntryPoint, entry_points

    found = []
    for point in entry_points(group=GROUP):
        dist = point.dist
        found.append((point, dist.name if dist else "?", dist.version if dist else ""))
    present = {point.value for point, _, _ in found}
    for name, target in BUILTIN.items():
        if target not in present:
            found.append((EntryPoint(name, target, GROUP), DISTRIBUTION, "(not installed)"))
    return sorted(found, key=lambda f: (f[0].value not in BUILTIN.values(), f[1], f[0].name))


def _import(point: EntryPoint, distribution: str, version: str) -> Plugin:
    plugin = Plugin(point.name, point.value, distribution, version)
    if plugin.blocked:
        return plugin
    before = dict(registry.OPS)
    try:
        plugin.module = point.load()
    except (Exception, SystemExit) as error:
        _restore(before)
        plugin.fail(f"{plugin.origin} could not be imported: {type(error).__name__}: {error}", error)
        return plugin
    if plugin.module is None:
        plugin.fail(f"{plugin.origin} names None: the entry point {point.value!r} must name a module or an object with hooks.")
    if getattr(getattr(plugin.module, "__spec__", None), "_initializing", False):
        plugin.fail(f"{plugin.origin} asked for a backend while it was still being imported: do that inside its functions.")
    return plugin


def _register(plugin: Plugin) -> None:
    try:
        _manager.register(plugin.module, plugin.name)
    except pluggy.PluginValidationError as error:
        _unregister(plugin)
        plugin.fail(f"{plugin.origin} implements a hook wrongly: {error}")
        return
    except ValueError:
        other = next((p.origin for p in _registered if p.name == plugin.name or p.module is plugin.module), "another plugin")
        plugin.fail(f"{plugin.origin} cannot be registered: its name or its module is already that of {other}. Rename the entry point.")
        return
    _registered.append(plugin)
    callers = _manager.get_hookcallers(plugin.module) or []
    unknown = [c.name for c in callers if c.spec is None and not all(i.optionalhook for i in c.get_hookimpls())]
    if not callers or unknown:
        known = "multigrad_backends, multigrad_operations, multigrad_samples"
        what = f"unknown hooks: {', '.join(unknown)}" if unknown else "no hooks: mark its functions with @multigrad.hookimpl"
        plugin.fail(f"{plugin.origin} implements {what}. Known: {known}.")
        _unregister(plugin)


def _unregister(plugin: Plugin) -> None:
    if _manager.get_plugin(plugin.name) is plugin.module:
        _manager.unregister(name=plugin.name)


def call(plugin: Plugin, hook: str) -> Any:
    """What one plugin's hook returns, or None: it has none, or it failed and the failure is kept with the plugin."""
    if plugin.module is None or _manager.get_plugin(plugin.name) is not plugin.module:
        return None
    caller: Any = getattr(_manager.hook, hook)
    if not any(i.plugin is plugin.module for i in caller.get_hookimpls()):
        return None
    others = [p for p in _manager.get_plugins() if p is not plugin.module]
    try:
        results = _manager.subset_hook_caller(hook, others)()
    except (Exception, SystemExit) as error:
        plugin.fail(f"{plugin.origin} failed in {hook}: {type(error).__name__}: {error}", error)
        return None
    if not results:
        plugin.fail(f"{plugin.origin} returned nothing from {hook}.")
        return None
    return results[0]


def items_of(plugin: Plugin, hook: str, kind: type) -> list[Any]:
    """The items that a hook of one plugin returns; whatever is not of that kind is reported and left out."""
    result = call(plugin, hook)
    if result is None:
        return []
    try:
        if isinstance(result, (str, bytes, Mapping)):
            raise TypeError
        listed = list(result)
    except TypeError:
        plugin.fail(f"{plugin.origin} returned {result!r} from {hook}: return a list of {kind.__name__}.")
        return []
    except (Exception, SystemExit) as error:  # a hook may be a generator
        plugin.fail(f"{plugin.origin} failed in {hook}: {type(error).__name__}: {error}", error)
        return []
    for item in listed:
        if not isinstance(item, kind):
            plugin.fail(f"{plugin.origin} returned {item!r} from {hook}: return a list of {kind.__name__}.")
    return [item for item in listed if isinstance(item, kind)]


def load_operations() -> None:
    """Let every plugin declare its operations, once. Of a plugin that fails on the way, no operation stays."""
    if not _operations_loaded:
        found = plugins()
        with _lock:
            _declare(found)


def _declare(found: list[Plugin]) -> None:
    global _declaring, _operations_loaded
    if _operations_loaded or _declaring:  # a plugin's hook may call multigrad, which asks again; other threads wait for the lock
        return
    _declaring = True
    try:
        _declare_all(found)
        _operations_loaded = True
    finally:
        _declaring = False


def _declare_all(found: list[Plugin]) -> None:
    for plugin in found:
        before, failed = dict(registry.OPS), plugin.error
        for op in items_of(plugin, "multigrad_operations", registry.Op):
            if registry.OPS.get(op.name) is not op:
                plugin.fail(f"{plugin.origin} returned the operation {op.name!r}, which is not in the table: "
                            "declare it with the functions of multigrad.registry.")
        if plugin.error != failed:
            _restore(before)


def _restore(before: dict[str, registry.Op]) -> None:
    """Put the table back to what it was, and have the engine drop what it made of the operations in between."""
    changed = [op for name, op in registry.OPS.items() if before.get(name) is not op]
    for op in changed:
        del registry.OPS[op.name]
    for name, op in before.items():
        registry.OPS.setdefault(name, op)
    registry.forget_remembered()
    for op in changed:
        for listener in registry._listeners:
            listener(before.get(op.name, op))


def load_samples() -> dict[str, Any]:
    """The conformance samples of all plugins: {operation: generator function, or "module:name"}."""
    samples: dict[str, Any] = {}
    owners: dict[str, Plugin] = {}
    for plugin in plugins():
        with _lock:
            result = call(plugin, "multigrad_samples")
        if result is None:
            continue
        if not isinstance(result, Mapping):
            plugin.fail(f"{plugin.origin} returned {result!r} from multigrad_samples: return {{operation: generator}}.")
            continue
        for name, target in result.items():
            if not isinstance(name, str) or not (callable(target) or (isinstance(target, str) and ":" in target)):
                plugin.fail(f"{plugin.origin} returned the sample {name!r}: {target!r}; a sample is a function or 'module:name'.")
            elif name in samples:
                plugin.fail(f"{plugin.origin} returned samples for {name!r}, which already has those of {owners[name].origin}.")
            else:
                samples[name], owners[name] = target, plugin
    return samples


def failures() -> dict[str, str]:
    """What went wrong, by plugin."""
    return {plugin.name: plugin.error for plugin in plugins() if plugin.error}
