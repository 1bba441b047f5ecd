"""Functions that a module calls and a module above it defines.

The module below declares each with `wanted`, and calls it as one of its own. The one above, which
imports it, gives it by name:

    @wanted                                     # gradients.py
    def in_batches(...): ...

    provide(gradients, in_batches=in_batches)   # layers/batched.py

A call costs what any call costs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def wanted(declaration: _F) -> _F:
    """Declare a function that a module above this one provides; its body is never run."""
    place = f"{declaration.__module__}.{declaration.__qualname__}"

    def missing(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"{place} is provided by a module that has not been imported; import multigrad first"
        )

    missing.__doc__ = declaration.__doc__
    missing.__wanted__ = place  # type: ignore[attr-defined]
    return missing  # type: ignore[return-value]


def provide(module: ModuleType, **functions: Callable[..., Any]) -> None:
    """Define functions which `module` declares with `wanted`, each once."""
    for name, function in functions.items():
        if not hasattr(vars(module).get(name), "__wanted__"):
            raise TypeError(f"{module.__name__} wants no {name!r}, or has got one")
        setattr(module, name, function)
