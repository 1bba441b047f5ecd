"""The hooks that a plugin implements, and the functions that call them.

A plugin is a light module, named by an entry point of the group `multigrad`, that imports no array
library:

    import multigrad as mg

    @mg.hookimpl
    def multigrad_backends():
        load = "multigrad_strict.backend:make"
        return [mg.BackendSpec("strict", module="array_api_strict", load=load)]

The plugin may declare the version of multigrad's API that it needs, by `MULTIGRAD_API = 1`. A
plugin that needs a newer version is refused (loading.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pluggy

from .. import registry
from ..backends.spec import BackendSpec
from .plugin import Plugin, Refused, plugin_manager, repr_of

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


NAMES = "multigrad_backends, multigrad_operations, multigrad_samples"
plugin_manager.add_hookspecs(sys.modules[__name__])


def register(plugin: Plugin) -> None:
    """Register the hooks of an imported plugin. Raises Refused if there is a fault in them."""
    try:
        plugin_manager.register(plugin.module, plugin.name)
        callers = plugin_manager.get_hookcallers(plugin.module) or []
        unknown = [
            c.name
            for c in callers
            if c.spec is None and not all(i.optionalhook for i in c.get_hookimpls())
        ]
        if unknown:
            raise Refused(f"implements unknown hooks: {', '.join(unknown)}. Known: {NAMES}.")
        if not callers:
            raise Refused(
                f"implements no hooks: mark its functions with @multigrad.hookimpl. Known: {NAMES}."
            )
    except BaseException as error:  # attribute access on a third-party object may run any code
        if plugin.registered:
            plugin_manager.unregister(name=plugin.name)
        if isinstance(error, pluggy.PluginValidationError):
            raise Refused(f"implements a hook wrongly: {error}") from None
        raise


def items(plugin: Plugin, hook: str, kind: type | None = None) -> Iterator[Any]:
    """The items that a hook of one plugin returns, if it has that hook; wrong ones are reported.

    They are of the type `kind`; without one, they are the items of a dictionary of samples. Raises
    Refused if the result has no items, and whatever the hook raises.
    """
    others = [p for p in plugin_manager.get_plugins() if p is not plugin.module]
    caller = plugin_manager.subset_hook_caller(hook, others)
    if not plugin.registered or not caller.get_hookimpls():
        return
    results = caller()
    if not results:
        raise Refused(f"returned nothing from {hook}.")
    result = results[0]
    if kind is None:
        has_items, advice = isinstance(result, Mapping), "return {operation: generator}"
    else:
        has_items = isinstance(result, Iterable) and not isinstance(result, (str, bytes, Mapping))
        advice = f"return a list of {kind.__name__}"
    if not has_items:
        raise Refused(f"returned {repr_of(result)} from {hook}: {advice}.")
    for item in list(result if kind is not None else result.items()):
        if isinstance(item, kind) if kind is not None else _is_sample(*item):
            yield item
        else:
            if kind is None:
                item = dict([item])
                advice = "a sample is a function or 'module:name', by the name of its operation"
            plugin.fail(f"{plugin.origin} returned {repr_of(item)} from {hook}: {advice}.")


def _is_sample(name: Any, target: Any) -> bool:
    return isinstance(name, str) and (
        callable(target) or (isinstance(target, str) and ":" in target)
    )
