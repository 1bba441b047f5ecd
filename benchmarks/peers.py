"""The installed peers and their versions."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from typing import Any

DISTRIBUTIONS = {
    "multigrad": "multigrad-array",
    "numpy": "numpy",
    "torch": "torch",
    "autograd": "autograd",
    "jax": "jax",
}


def installed(name: str) -> bool:
    """Return whether a peer can be imported. The name `autograd` means HIPS autograd."""
    return importlib.util.find_spec(name) is not None


def torch() -> Any:
    """Return PyTorch, limited to one thread like the others."""
    import torch as module

    module.set_num_threads(1)
    return module


def versions() -> dict[str, str]:
    versions_of = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": str(os.cpu_count()),
    }
    for name, distribution in DISTRIBUTIONS.items():
        try:
            versions_of[name] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions_of
