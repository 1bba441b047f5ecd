"""Installed plugins, distributions and modules, found without an import of any of them.

The plugins of this distribution come first, then the others by name. If the metadata of this
distribution is not available (a source tree that is not installed), its own plugins come from the
list below, so that the tree works without installation.

A plugin is deferred if it is the only plugin of its distribution, and has the name of a library
that is not imported yet. So a slow plugin costs nothing to programs that do not use its library.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from .plugin import DISTRIBUTION, GROUP, Plugin, lock

if TYPE_CHECKING:
    # imported on first use: it takes as long as all of multigrad
    from importlib.metadata import EntryPoint, PackagePath

BUILTIN = {name: f"multigrad.backends.{name}" for name in ("cupy", "jax", "numpy")}

_plugins: list[Plugin] = []


def plugins() -> list[Plugin]:
    """Every installed plugin, loaded or not."""
    if not _plugins:
        with lock:
            if not _plugins:
                _plugins[:] = _installed()
    return _plugins


def _installed() -> list[Plugin]:
    found = [Plugin(p.name, p.value, *_origin(p)) for p in _entry_points()]
    versions = {p.target: p.version for p in found if p.distribution == DISTRIBUTION}
    built_in = [
        Plugin(name, target, DISTRIBUTION, versions.get(target, "(not installed)"), built_in=True)
        for name, target in BUILTIN.items()
    ]
    others = [p for p in found if BUILTIN.get(p.name) != p.target]
    of_distribution = Counter(p.distribution for p in found)
    for plugin in others:
        plugin.deferred = of_distribution[plugin.distribution] == 1 and _can_wait(plugin.name)
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

    A plain folder of that name does not count, nor does the name of a plugin of this distribution.
    """
    if name not in BUILTIN and name.isidentifier() and not imported(name):
        with contextlib.suppress(Exception):
            spec = importlib.util.find_spec(name)
            return spec is not None and spec.origin is not None
    return False


def imported(name: str) -> bool:
    """Whether the module of that name has been completely imported."""
    module = sys.modules.get(name)
    return module is not None and not is_partial(module)


def is_partial(module: Any) -> bool:
    """Whether a module is still being imported."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


# ----- Libraries and distributions -----


def is_installed(module: str) -> bool:
    """Whether a library is installed; it is not imported."""
    root = module.partition(".")[0]  # a search for a submodule would import the module
    if root in sys.modules:
        return sys.modules[root] is not None
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(root) is not None
    return False


def version_of(module: str) -> str:
    """The version of a library without importing it, or an empty string."""
    from importlib import metadata

    version = getattr(sys.modules.get(module), "__version__", None)
    if isinstance(version, str):
        return version
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(module)
    # The distribution may have another name than the module (cupy-cuda12x). This slower search goes
    # by the files of each.
    names = metadata.packages_distributions().get(module)
    return metadata.version(names[0]) if names else ""


def foreign_distribution() -> str | None:
    """Report a conflict with the unrelated PyPI package `multigrad`.

    It is a conflict if that package is installed, or has overwritten files of this one.
    """
    from importlib import metadata

    advice = f"Run: pip uninstall multigrad {DISTRIBUTION}; pip install {DISTRIBUTION}"
    for foreign in metadata.distributions(name="multigrad"):
        return (
            f"the unrelated PyPI package 'multigrad' {foreign.version} is installed in "
            f"{foreign.locate_file('')}: it and {DISTRIBUTION} import under one name and "
            f"overwrite each other's files. {advice}"
        )
    ours = next(iter(metadata.distributions(name=DISTRIBUTION)), None)
    for file in (ours and ours.files) or ():
        if str(file) == "multigrad/__init__.py" and not _is_intact(file):
            return (
                f"{file.locate()} is not the file that {DISTRIBUTION} installed: another package "
                f"has overwritten it. {advice}"
            )
    return None


def _is_intact(file: PackagePath) -> bool:
    """Whether a file is the installed one, as far as the distribution has its hash."""
    import base64
    import hashlib

    if file.hash is None:
        return True
    try:
        digest = hashlib.new(file.hash.mode, file.read_binary()).digest()
    except (OSError, ValueError):
        return False
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value
