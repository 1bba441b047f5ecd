"""autoray: functions of NumPy under the backend name `multigrad`.

autoray finds the names in `multigrad` by itself, from the module of the class of an array. This
module adds the names that only NumPy has.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..dispatch.creation import asarray, default_library

OF_NUMPY = (
    "absolute",
    "allclose",
    "amax",
    "amin",
    "array_equal",
    "average",
    "conjugate",
    "cumprod",
    "cumsum",
    "linalg.multi_dot",
    "linalg.norm",
    "power",
    "ptp",
    "rot90",
    "squeeze",
    "vdot",
)
"""Functions of NumPy that have another name in the standard, or none.

NumPy's protocols dispatch them to operations.
"""


def register(module: ModuleType) -> None:
    """Register functions under the name of the backend, `multigrad`."""
    import numpy as np

    for name in OF_NUMPY:
        function: Any = np
        for part in name.split("."):
            function = getattr(function, part, None)
        if function is not None:
            module.register_function("multigrad", name, function)
    module.register_function("multigrad", "array", _array)
    module.register_function("multigrad", "identity", _identity)
    module.register_function("multigrad", "complex", lambda real, imag: real + 1j * imag)


def _array(data: Any, dtype: Any = None, **options: Any) -> Any:
    """A differentiable copy; lists of Tensors are stacked."""
    return asarray(data, dtype=dtype, copy=True, **options)


def _identity(*args: Any, **kwargs: Any) -> Any:
    return default_library().bound.eye(*args, **kwargs)
