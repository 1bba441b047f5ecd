"""The functions of NumPy that have a counterpart: operations by their declarations, others by name.

Names are those of NumPy, dotted in `linalg` and `fft`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..registry import OPS, import_standard, is_own

COUNTERPARTS: dict[str, Callable[..., Any]] = {}


def counterpart(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function into the table under these names of NumPy."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        COUNTERPARTS.update(dict.fromkeys(names, function))
        return function

    return put


def counterparts(**functions: Callable[..., Any]) -> None:
    """Put functions into the table under their names of NumPy."""
    COUNTERPARTS.update(functions)


def function_named(name: str) -> Any:
    """The function of NumPy, or None if this release of NumPy has none."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def operations() -> Iterator[tuple[str, Any, str]]:
    """The functions of NumPy that multigrad's operations carry out: name, function, operation.

    They have the name of the operation, or its declaration names them. A function under another
    name, such as numpy.permute_dims, may have another signature.
    """
    import_standard()  # not those of plugins: one may be calling NumPy here, in another thread
    for op in list(OPS.values()):
        if is_own(op) and op.public and op.arrays and op.chapter not in ("creation", "data_type"):
            for name in (op.name, *op.about.numpy):
                function = function_named(name)
                if isinstance(function, np.ufunc):
                    yield function.__name__, function, op.name
                elif getattr(function, "__name__", "") == name.rpartition(".")[2]:
                    yield name, function, op.name
