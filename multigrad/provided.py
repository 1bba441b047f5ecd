"""Functions that a lower module calls and a higher module defines.

The lower module declares each with `wanted` and calls it like one of its own functions. The higher
module, which imports the lower one, provides it by name:

    @wanted                                     # gradients.py
    def in_batches(...): ...

    provide(gradients, in_batches=in_batches)   # layers/batched.py

A call costs as much as any function call.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def wanted(declaration: _F) -> _F:
    """Declare a function that a higher module provides; the body of the declaration never runs."""
    place = f"{declaration.__module__}.{declaration.__qualname__}"

    def missing(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"{place} is provided by a module that has not been imported; import multigrad first"
        )

    missing.__doc__ = declaration.__doc__
    missing.__wanted__ = place  # type: ignore[attr-defined]
    return missing  # type: ignore[return-value]


def provide(module: ModuleType, **functions: Callable[..., Any]) -> None:
    """Define functions that `module` declares with `wanted`, each once."""
    for name, function in functions.items():
        if not hasattr(vars(module).get(name), "__wanted__"):
            raise TypeError(
                f"{module.__name__} does not declare {name!r} with `wanted`, or "
                "another module has provided it already"
            )
        setattr(module, name, function)
