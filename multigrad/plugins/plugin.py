"""A plugin, and how its code is run: one plugin never harms another.

`MULTIGRAD_BLOCK=name,name` (or `manager().set_blocked(name)`) prevents the import of a plugin.
"""

from __future__ import annotations

import contextlib
import os
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import pluggy

from .. import locks, registry
from ..backends.spec import Backend, BackendSpec
from ..errors import BackendError, NoDeviceError

GROUP = "multigrad"
DISTRIBUTION = "multigrad-array"
SLOW = 5.0
"""The seconds after which a warning names a plugin."""

plugin_manager = pluggy.PluginManager(GROUP)
lock = locks.new_lock()
"""The lock for loading plugins and their backends.

It is a single lock, so that two threads never wait for each other.
"""
_warned: set[str] = set()


def manager() -> pluggy.PluginManager:
    """The pluggy manager, for `set_blocked` and for tracing. It triggers no discovery."""
    for name in os.environ.get("MULTIGRAD_BLOCK", "").split(","):
        if name.strip() and not plugin_manager.is_blocked(name.strip()):
            plugin_manager.set_blocked(name.strip())
    return plugin_manager


@dataclass(eq=False, kw_only=True)
class Part:
    """A plugin or one of its backends: what is wrong with it. Several errors are all reported."""

    error: str = ""
    traceback: str = ""
    interrupted: bool = False  # by a KeyboardInterrupt: it is tried again if requested by name

    def fail(self, message: str, cause: BaseException | None = None) -> None:
        """Store an error, with the exception that is its cause."""
        if message not in self.error:  # another thread may have tried the same
            self.error = f"{self.error} {message}".strip()
            self.interrupted = isinstance(cause, KeyboardInterrupt)
            if cause is not None:
                self.traceback += "".join(traceback.format_exception(cause))

    def try_again(self) -> None:
        if self.interrupted:
            self.error, self.traceback, self.interrupted = "", "", False


@dataclass(eq=False)
class Plugin(Part):
    """A plugin that was found: its origin, how far it is loaded, and its errors."""

    name: str
    target: str
    distribution: str
    version: str
    built_in: bool = False
    deferred: bool = False  # until its library is imported, or it is requested by name
    module: Any = None
    loading: bool = False  # its hooks are called, or were
    loaded: bool = False  # whatever came of it
    packages: set[str] = field(default_factory=set)  # others, whose operations its hook returned
    seconds: float = 0.0  # that its code has taken to load

    @property
    def blocked(self) -> bool:
        return manager().is_blocked(self.name)

    @property
    def state(self) -> str:
        """The state in the listing of a plugin that has brought no backend."""
        if self.error or self.blocked:
            return "broken" if self.error else "blocked"
        return "deferred" if self.deferred else "operations"

    @property
    def registered(self) -> bool:
        """Whether its hooks are used."""
        return self.module is not None and plugin_manager.get_plugin(self.name) is self.module

    @property
    def origin(self) -> str:
        """The name of the plugin in messages."""
        return f"the plugin {self.name!r} of {self.distribution} {self.version}".rstrip()

    @property
    def blocking(self) -> str:
        """How users keep it out."""
        return f"The environment variable MULTIGRAD_BLOCK={self.name} keeps it out."

    @property
    def operations(self) -> list[registry.Op]:
        """The operations that its package has declared, or one whose operations it returned."""
        roots = {self.target.partition(":")[0].partition(".")[0], *self.packages}
        return [op for op in list(registry.OPS.values()) if op.module.partition(".")[0] in roots]

    @property
    def overrides(self) -> tuple[str, ...]:
        """The operations of the standard that it has replaced."""
        first = registry.OVERRIDDEN
        names = [op.name for op in self.operations if first.get(op.name, op.module) != op.module]
        return tuple(sorted(n for n in names if first[n].startswith("multigrad.")))


@dataclass(eq=False)
class Known(Part):
    """A backend that a plugin brings, and the result of loading it."""

    spec: BackendSpec
    plugin: Plugin
    backend: Backend | None = None
    cause: BaseException | None = None  # of the error
    loading: bool = False

    @property
    def blocked(self) -> bool:
        return self.plugin.blocked or manager().is_blocked(self.spec.name)

    @property
    def origin(self) -> str:
        return f"backend {self.spec.name!r} of {self.plugin.origin}"

    def fail(self, message: str, cause: BaseException | None = None) -> None:
        super().fail(str(cause) if isinstance(cause, NoDeviceError) else message, cause)
        self.cause = cause

    def try_again(self) -> None:
        if self.interrupted:
            self.cause = None
        super().try_again()


class Refused(Exception):
    """What is wrong with a plugin, in a sentence that goes on after its name."""


@contextlib.contextmanager
def step(part: Plugin | Known, failed: str) -> Iterator[None]:
    """Run code of a plugin, to load it or one of its backends.

    Its error is stored, and the operations that it declared are removed. Only KeyboardInterrupt is
    raised, since it comes from the user; a note names the plugin.
    """
    plugin = part.plugin if isinstance(part, Known) else part
    before, error_before, start = dict(registry.OPS), part.error, monotonic()
    try:
        yield
    except Refused as refusal:
        part.fail(f"{part.origin} {refusal}", refusal.__cause__)
    except KeyboardInterrupt as error:
        if not plugin.built_in:
            part.fail(f"{part.origin} {failed}: {text_of(error)}", error)
            error.add_note(f"This interrupted {plugin.origin}. {plugin.blocking}")
        raise
    except BaseException as error:  # SystemExit too: a plugin must not end the program
        part.fail(f"{part.origin} {failed}: {text_of(error)}", error)
    finally:
        plugin.seconds += monotonic() - start
        if part.error != error_before:
            registry.restore(before, plugin.operations)


def warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, UserWarning, stacklevel=3)


def warn_if_slow(plugin: Plugin) -> None:
    if plugin.seconds > SLOW and not plugin.built_in:
        warn_once(
            f"{plugin.origin} (entry point {plugin.name} = {plugin.target}) took more than "
            f"{SLOW:g} seconds to load. {plugin.blocking}"
        )


def text_of(error: BaseException) -> str:
    """The type and the text of an error; some third-party errors cannot be printed."""
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, BackendError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def repr_of(x: object) -> str:
    """The beginning of a plugin's value as text."""
    try:
        text = repr(x)
    except Exception:
        text = f"a {type(x).__name__} that cannot be printed"
    return text if len(text) <= 200 else f"{text[:200]}..."
