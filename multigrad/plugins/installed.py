"""Installed distributions and modules, found without an import of any library."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from .plugin import DISTRIBUTION


def is_installed(module: str) -> bool:
    """Whether a library is installed; it is not imported."""
    root = module.partition(".")[0]  # a search for a submodule would import the module
    if root in sys.modules:
        return sys.modules[root] is not None
    try:
        return importlib.util.find_spec(root) is not None
    except (ImportError, ValueError):
        return False


def version_of(module: str) -> str:
    """The version of a library without importing it, or an empty string."""
    from importlib import metadata

    version = getattr(sys.modules.get(module), "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        pass
    # The distribution may have another name than the module (cupy-cuda12x). This slower search goes
    # by the files of each.
    for distribution in metadata.packages_distributions().get(module, ()):
        return metadata.version(distribution)
    return ""


def foreign_distribution() -> str | None:
    """Report a conflict with the unrelated PyPI package `multigrad`.

    It is a conflict if that package is installed, or has overwritten files of this one.
    """
    from importlib import metadata

    advice = f"Run: pip uninstall multigrad {DISTRIBUTION}; pip install {DISTRIBUTION}"
    try:
        foreign = metadata.distribution("multigrad")
    except metadata.PackageNotFoundError:
        foreign = None
    if foreign is not None:
        return (
            f"the unrelated PyPI package 'multigrad' {foreign.version} is installed in "
            f"{foreign.locate_file('')}: it and {DISTRIBUTION} import under one name and "
            f"overwrite each other's files. {advice}"
        )
    changed = _overwritten(DISTRIBUTION)
    if changed:
        return (
            f"{changed} is not the file that {DISTRIBUTION} installed: another package has "
            f"overwritten it. {advice}"
        )
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
