"""The peers that are installed, and one way to say where the numbers come from."""

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
    """Whether a peer can be imported. The name `autograd` means HIPS autograd."""
    return importlib.util.find_spec(name) is not None


def torch() -> Any:
    """PyTorch on one thread, as the others are."""
    import torch as module

    module.set_num_threads(1)
    return module


def versions() -> dict[str, str]:
    found = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": str(os.cpu_count()),
    }
    for name, distribution in DISTRIBUTIONS.items():
        try:
            found[name] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
