"""The installed plugins: discovered by entry points, and imported one by one, separately.

Nothing is read before the first use. multigrad stores an error with its plugin, so that it never
affects others. The plugins of this distribution come first, then the others by name; the first to
claim a name keeps it. `MULTIGRAD_BLOCK=name,name` (or `manager().set_blocked(name)`) prevents the
import of a plugin. If the metadata of this distribution is not available (a source tree that is not
installed), its own plugins come from the list below, so that the tree works without installation.

A plugin is deferred if it is the only plugin of its distribution, and has the name of a library
that is not imported yet. It is loaded when that library is imported, or when the plugin is
requested by name. So a slow plugin costs nothing to programs that do not use its library. A warning
names any other plugin that takes more than five seconds.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib
import importlib.util
import os
import sys
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pluggy

from .. import locks, registry

if TYPE_CHECKING:
    # imported on first use: it takes as long as all of multigrad
    from importlib.metadata import EntryPoint

GROUP = "multigrad"
DISTRIBUTION = "multigrad-array"
BUILTIN = {name: f"multigrad.backends.{name}" for name in ("cupy", "jax", "numpy")}
API = 1
"""The version of the API for plugins, `multigrad.extend.API`.

It increases when something is added that a plugin may need.
"""
SLOW = 5.0
"""The seconds after which a warning names a plugin that is still being loaded."""


@dataclass(eq=False)
class Plugin:
    """A plugin that was discovered: its origin and its errors."""

    name: str
    target: str
    distribution: str
    version: str
    built_in: bool = False
    # not imported until its library is imported, or until it is requested by name
    deferred: bool = False
    module: Any = None
    error: str = ""
    error_told: bool = False  # whether a warning has told users with arrays of its library
    traceback: str = ""
    overrides: tuple[str, ...] = ()  # the operations of the standard that it replaced
    added: bool = False  # whether its backends and its operations were requested
    declared: bool = False

    @property
    def blocked(self) -> bool:
        return plugin_manager.is_blocked(self.name)

    @property
    def origin(self) -> str:
        """The name of the plugin in messages."""
        return f"the plugin {self.name!r} of {self.distribution} {self.version}".rstrip()

    def fail(self, message: str, error: BaseException | None = None) -> None:
        """Store an error; several errors of one plugin are all reported."""
        self.error = f"{self.error} {message}".strip()
        if error is not None:
            self.traceback = f"{self.traceback}{''.join(traceback.format_exception(error))}"

    def interrupted(self, error: BaseException) -> None:
        """Store what has ended its registration, if that is no error of the plugin."""
        if not self.error:
            self.fail(f"{self.origin} could not be taken into use: {told(error)}", error)


plugin_manager = pluggy.PluginManager("multigrad")
lock = locks.new_lock()
"""The lock for loading plugins and their backends.

It is a single lock, so that two threads never wait for each other.
"""
_plugins: list[Plugin] = []
_deferred: list[Plugin] = []
# the plugins whose import ended in a KeyboardInterrupt, with their errors
_interrupted: dict[tuple[str, str, str], str] = {}
_waking: set[tuple[int, Plugin]] = set()
_slow: set[tuple[str, str]] = set()  # the plugins that a warning has named
_registered: list[Plugin] = []
_found = False


def manager() -> pluggy.PluginManager:
    """The pluggy manager, for `set_blocked` and for tracing. It triggers no discovery."""
    for name in os.environ.get("MULTIGRAD_BLOCK", "").split(","):
        if name.strip() and not plugin_manager.is_blocked(name.strip()):
            plugin_manager.set_blocked(name.strip())
    return plugin_manager


def plugins() -> list[Plugin]:
    """Every installed plugin, discovered on the first call."""
    if not _found:
        _discover()
    return _plugins


def _discover() -> None:
    global _found
    manager()
    # A plugin may declare operations when it is imported. The built-in operations come first, so
    # that the plugin raises in case of a conflict, not multigrad.
    with locks.new_lock():  # see _import
        importlib.import_module("multigrad.ops")
        candidates = _candidates()
    # Imports run without the lock. A thread that imports a plugin itself, and asks for a backend
    # there, would hold that module's import lock and wait for ours while we wait for its lock.
    for plugin in candidates:
        if not plugin.deferred:
            _import(plugin)
    with lock:
        if _found:
            return
        for plugin in candidates:
            if not plugin.deferred:
                _register(plugin)
        _plugins[:] = candidates
        _deferred[:] = [plugin for plugin in candidates if plugin.deferred]
        _found = True


def _candidates() -> list[Plugin]:
    """The plugins of the installed distributions, not imported yet.

    The plugins of this distribution come first, then the others by name.
    """
    points = [(point, *_origin(point)) for point in _entry_points()]
    built_in = []
    for name, target in BUILTIN.items():
        said = [(d, v) for point, d, v in points if (point.name, point.value) == (name, target)]
        distribution, version = min(
            said, key=lambda s: s[0] != DISTRIBUTION, default=(DISTRIBUTION, "(not installed)")
        )
        built_in.append(Plugin(name, target, distribution, version, built_in=True))
    of_distribution = Counter(id(point.dist) for point, _, _ in points)
    others = []
    for point, distribution, version in points:
        if BUILTIN.get(point.name) == point.value:
            continue
        plugin = Plugin(point.name, point.value, distribution, version)
        interrupted = _interrupted.get((plugin.name, plugin.target, plugin.distribution), "")
        if point.name in BUILTIN:
            _refuse_name(plugin, next(p for p in built_in if p.name == point.name))
        elif interrupted:
            plugin.deferred, plugin.error = True, interrupted
        else:
            plugin.deferred = (
                of_distribution[id(point.dist)] == 1
                and not plugin.blocked
                and _can_wait(point.name)
            )
        others.append(plugin)
    return built_in + sorted(others, key=lambda p: (p.name, p.distribution, p.target))


def _entry_points() -> list[EntryPoint]:
    from importlib import metadata

    try:
        return list(metadata.entry_points(group=GROUP))
    # the entry points of a distribution may be unreadable; those of the others are not
    except Exception:
        points_of: dict[str, list[EntryPoint]] = {}
        for distribution in metadata.distributions():
            with contextlib.suppress(Exception):
                points = [point for point in distribution.entry_points if point.group == GROUP]
                points_of.setdefault(str(distribution.name), points)
        return [point for points in points_of.values() for point in points]


def _origin(point: EntryPoint) -> tuple[str, str]:
    """The name and version of the distribution of an entry point, if its metadata has them."""
    try:
        return (point.dist.name or "?", point.dist.version or "") if point.dist else ("?", "")
    except Exception:
        return "?", ""


def _can_wait(name: str) -> bool:
    """Whether `name` is a module that could be imported but has not been completely imported.

    A plain folder of that name does not count.
    """
    if not name.isidentifier() or imported(name):
        return False
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        return False
    return spec is not None and spec.origin is not None


def imported(name: str) -> bool:
    """Whether the module of that name has been completely imported."""
    module = sys.modules.get(name)
    return module is not None and not getattr(
        getattr(module, "__spec__", None), "_initializing", False
    )


def interrupted() -> int:
    """The number of plugins whose import or hook has ended in a KeyboardInterrupt."""
    return len(_interrupted) + sum(p.error.count(KeyboardInterrupt.__name__) for p in _plugins)


def deferred() -> list[Plugin]:
    """The plugins that are still deferred."""
    return [plugin for plugin in plugins() if plugin.deferred]


def wake(
    bring: Callable[[Plugin], None], name: str | None = None, *, everything: bool = False
) -> bool:
    """Load deferred plugins: those of imported libraries, the one of that name, or all.

    `bring` takes each into use. Returns whether there were any. Another thread that asks meanwhile
    returns after they are in use.
    """
    if not _deferred:  # each array of an unknown type leads here
        return False
    me = threading.get_ident()
    woken = False
    for plugin in list(_deferred):
        # after an error, an interrupt, it is tried again only if it is requested by name
        wanted = plugin.name == name or (not plugin.error and (everything or imported(plugin.name)))
        if not wanted or plugin.blocked or (me, plugin) in _waking:
            continue
        woken = True
        try:
            _waking.add((me, plugin))
            _wake(plugin, bring)
        finally:
            _waking.discard((me, plugin))
    return woken


def _wake(plugin: Plugin, bring: Callable[[Plugin], None]) -> None:
    loaded = replace(plugin, deferred=False, error="", traceback="")
    try:
        _import(loaded)  # without the lock, see above
    except KeyboardInterrupt:
        plugin.error, plugin.traceback = loaded.error, loaded.traceback
        raise
    with lock:
        if plugin not in _deferred:  # another thread was faster
            return
        place = _plugins.index(plugin)
        try:
            _plugins[place] = loaded
            _register(loaded)
            bring(loaded)
        except BaseException as error:
            loaded.interrupted(error)
            raise
        finally:
            _deferred.remove(plugin)


def warn_of_failed(libraries: set[str], brought: set[Plugin | None]) -> None:
    """Warn once about arrays of a library whose plugin, by its name, failed to bring a backend."""
    for plugin in plugins():
        if (
            plugin.error
            and not (plugin.error_told or plugin.deferred or plugin.built_in)
            and plugin.name in libraries
            and plugin not in brought
        ):
            plugin.error_told = True
            warnings.warn(
                f"{plugin.error.rstrip('.')}. Arrays of {plugin.name!r} count as those of an "
                "unknown library.",
                UserWarning,
                stacklevel=2,
            )


@contextlib.contextmanager
def watched(plugin: Plugin) -> Iterator[None]:
    """Name the plugin in a warning as soon as the block takes too long, since it may never end."""
    if plugin.built_in or (plugin.name, plugin.target) in _slow:
        yield
        return
    done = _thread.allocate_lock()
    done.acquire()
    with contextlib.suppress(RuntimeError):  # no threads on this platform (WebAssembly)
        # 2 ms less than threading.Timer, which waits until its thread runs
        _thread.start_new_thread(_watch, (plugin, done))
    try:
        yield
    finally:
        done.release()


def _watch(plugin: Plugin, done: _thread.LockType) -> None:
    if done.acquire(timeout=SLOW):
        return
    if (plugin.name, plugin.target) in _slow:  # another thread waits for it too
        return
    _slow.add((plugin.name, plugin.target))
    warnings.warn(
        f"multigrad has waited for {SLOW:g} seconds for {plugin.origin} (entry point "
        f"{plugin.name} = {plugin.target}), which is still being loaded. The environment "
        f"variable MULTIGRAD_BLOCK={plugin.name} keeps it out.",
        UserWarning,
        stacklevel=2,
    )


def told(error: BaseException) -> str:
    """The type and the text of an error; some third-party errors cannot be printed."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _import(plugin: Plugin) -> None:
    if plugin.blocked or plugin.error:
        return
    from importlib.metadata import EntryPoint

    before = dict(registry.OPS)
    own: list[registry.Op] = []
    try:
        # a child of a fork could not import what another thread had begun to import
        with watched(plugin), noting() as own, locks.new_lock():
            plugin.module = EntryPoint(plugin.name, plugin.target, GROUP).load()
    except BaseException as error:  # SystemExit too: a plugin must not end the program
        registry.restore(before, own)
        refusal = _other_api(plugin, error)
        plugin.fail(
            f"{refusal} Its import failed: {told(error)}"
            if refusal
            else f"{plugin.origin} could not be imported: {told(error)}",
            error,
        )
        # most likely from the user; the next call leaves this plugin out
        if isinstance(error, KeyboardInterrupt):
            _interrupted[plugin.name, plugin.target, plugin.distribution] = plugin.error
            raise
        return
    refusal = _other_api(plugin)
    if refusal:
        registry.restore(before, own)
        plugin.fail(refusal)
        return
    note_overrides(plugin, own)
    if plugin.module is None:
        plugin.fail(
            f"{plugin.origin} names None: the entry point {plugin.target!r} must name a module "
            "or an object with hooks."
        )
    if getattr(getattr(plugin.module, "__spec__", None), "_initializing", False):
        plugin.fail(
            f"{plugin.origin} asked for a backend while it was still being imported: do that "
            "inside its functions."
        )


def _other_api(plugin: Plugin, error: BaseException | None = None) -> str:
    """The reason to refuse a plugin that needs another API version, or "" if it fits.

    A plugin declares its version in its module, by MULTIGRAD_API. If `error` ended the import of
    the module, the version is read from the frame where the error passed through it.
    """
    name = plugin.target.partition(":")[0].strip()
    scopes = [getattr(sys.modules.get(name), "__dict__", {})]
    step = error.__traceback__ if error is not None else None
    while step is not None:
        scopes.append(step.tb_frame.f_globals)
        step = step.tb_next
    version = next(
        (s["MULTIGRAD_API"] for s in scopes if s.get("__name__") == name and "MULTIGRAD_API" in s),
        1,
    )
    if type(version) is not int or version < 1:
        return (
            f"{plugin.origin} is refused: MULTIGRAD_API in {name} must be an int, the version "
            f"of multigrad's API for plugins that it is written against, as {API}; it is "
            f"{shown(version)}."
        )
    if version > API:
        return (
            f"{plugin.origin} is refused: it needs version {version} of multigrad's API for "
            f"plugins (MULTIGRAD_API in {name}), and this one has version {API}. Upgrade "
            f"multigrad: pip install --upgrade {DISTRIBUTION}."
        )
    return ""


def shown(x: object) -> str:
    """The beginning of a plugin's value as text."""
    try:
        text = repr(x)
    except Exception:
        text = f"a {type(x).__name__} that cannot be printed"
    return text if len(text) <= 200 else f"{text[:200]}..."


def _register(plugin: Plugin) -> None:
    if plugin.blocked or plugin.error:
        return
    other = next(
        (p for p in _registered if p.name == plugin.name or p.module is plugin.module), None
    )
    if other is not None:
        _refuse_name(plugin, other)
        return
    try:
        plugin_manager.register(plugin.module, plugin.name)
    except pluggy.PluginValidationError as error:
        _unregister(plugin)
        plugin.fail(f"{plugin.origin} implements a hook wrongly: {error}")
        return
    except Exception as error:  # attribute access on a third-party object may run any code
        _unregister(plugin)
        plugin.fail(f"{plugin.origin} cannot be looked at: {told(error)}", error)
        return
    _registered.append(plugin)
    callers = plugin_manager.get_hookcallers(plugin.module) or []
    unknown = [
        c.name
        for c in callers
        if c.spec is None and not all(i.optionalhook for i in c.get_hookimpls())
    ]
    if not callers or unknown:
        known = "multigrad_backends, multigrad_operations, multigrad_samples"
        what = (
            f"unknown hooks: {', '.join(unknown)}"
            if unknown
            else "no hooks: mark its functions with @multigrad.hookimpl"
        )
        plugin.fail(f"{plugin.origin} implements {what}. Known: {known}.")
        _unregister(plugin)


def _refuse_name(plugin: Plugin, other: Plugin) -> None:
    plugin.fail(
        f"{plugin.origin} cannot be registered: its name or its module is already that of "
        f"{other.origin}. Rename the entry point."
    )


def _unregister(plugin: Plugin) -> None:
    if plugin_manager.get_plugin(plugin.name) is plugin.module:
        plugin_manager.unregister(name=plugin.name)


_noted = threading.local()


@contextlib.contextmanager
def noting() -> Iterator[list[registry.Op]]:
    """Collect the operations that are declared inside, except those of other plugins.

    A plugin may ask for all plugins while it is imported, so others may declare operations too.
    """
    own: list[registry.Op] = []
    stack = vars(_noted).setdefault("stack", [])
    before = len(stack)
    try:
        stack.append(own)
        yield own
    finally:
        del stack[before:]


def _note(op: registry.Op) -> None:
    stack = vars(_noted).get("stack")
    # after an interrupt, a declaration is noted again
    if stack and not op.builtin and op not in stack[-1]:
        stack[-1].append(op)


registry.on_declaration(_note)


def note_overrides(plugin: Plugin, own: Iterable[registry.Op]) -> None:
    """Store on `plugin` the operations of the standard that it has replaced.

    These are operations in `own`, and those that the plugin's module replaced in an earlier import.
    """
    root = plugin.target.partition(":")[0].partition(".")[0]
    mine = {op.name for op in own}
    replaced = set()
    for name, first in registry.OVERRIDDEN.items():
        op = registry.OPS.get(name)
        if (
            op is not None
            and op.module != first
            and first.startswith("multigrad.")
            and (name in mine or op.module.partition(".")[0] == root)
        ):
            replaced.add(name)
    plugin.overrides = tuple(sorted({*plugin.overrides, *replaced}))
