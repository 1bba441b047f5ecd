"""Installed distributions and modules, found without an import of any library."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from typing import TYPE_CHECKING

from .plugin import DISTRIBUTION

if TYPE_CHECKING:
    # imported on first use: it takes as long as all of multigrad
    from importlib.metadata import PackagePath


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
