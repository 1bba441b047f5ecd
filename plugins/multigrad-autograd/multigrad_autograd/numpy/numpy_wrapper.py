"""The names of `autograd.numpy` that are NumPy's, under the module in which HIPS autograd has
them.
"""

from typing import Any

import numpy as _np

from .table import NUMPY, wrap_namespace

__all__ = ["numpy_version", "wrap_namespace"]

globals().update(NUMPY)
numpy_version = _np.__version__


def __getattr__(name: str) -> Any:
    """What NumPy imports when it is asked for."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_np, name)
