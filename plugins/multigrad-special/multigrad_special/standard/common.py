"""Helpers that all forms share: checks of their arguments, polynomials."""

from __future__ import annotations

from types import ModuleType
from typing import Any

__all__ = ["refuse"]


class Namespace:
    """A module of array functions, `numpy` or `jax.numpy`, with the names that these forms need.

    A constant is placed with its operands, so `device` is always None.
    """

    device_of = staticmethod(lambda x: None)

    def __init__(self, name: str, module: ModuleType) -> None:
        self.__name__, self._module = name, module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


MAX_ORDER = 100  # of polygamma: not far above, float64 no longer holds the factorials


def refuse(name: str, backend: str, dtype: Any) -> TypeError:
    """Make the error for an array of a dtype that the function does not support."""
    return TypeError(
        f"special.{name} on the backend {backend!r} takes real floating-point arrays, not {dtype}."
    )


def horner(coefficients: list[float], x: Any) -> Any:
    """The polynomial with these coefficients, the constant term first."""
    value = coefficients[-1] * x + coefficients[-2]
    for c in reversed(coefficients[:-2]):
        value = value * x + c
    return value
