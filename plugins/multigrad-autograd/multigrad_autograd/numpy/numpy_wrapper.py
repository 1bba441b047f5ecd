"""The names of NumPy in `autograd.numpy`, in their module of HIPS autograd."""

from typing import Any

import numpy as _np

from .table import NUMPY, wrap_namespace

__all__ = ["numpy_version", "wrap_namespace"]

globals().update(NUMPY)
numpy_version = _np.__version__


def __getattr__(name: str) -> Any:
    """Return an attribute that NumPy imports lazily."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_np, name)
