"""matplotlib: constants are plotted as NumPy arrays.

A Tensor that requires grad is refused with the advice to detach it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..core.level import Layer
from ..errors import GradientError


def _plain(x: Any) -> Any:
    """The values of a layer as a NumPy array; for a list, those of its elements."""
    if isinstance(x, (list, tuple)):
        return [_plain(part) for part in x] if any(isinstance(part, Layer) for part in x) else x
    return x.numpy() if isinstance(x, Layer) else x  # type: ignore[attr-defined]


def register(module: ModuleType) -> None:
    """Register the conversion of Tensors, and of the other layers, among matplotlib's units."""

    class Values(module.ConversionInterface):  # type: ignore[misc, name-defined]
        """Values without a unit."""

        @staticmethod
        def default_units(x: Any, axis: Any) -> None:
            """Refuse values that require grad. Here matplotlib does not catch errors."""
            _plain(x)

        @staticmethod
        def convert(value: Any, unit: Any, axis: Any) -> Any:
            """The values as NumPy arrays.

            A refused value is returned unchanged. matplotlib then passes it to NumPy, which raises
            the right error.
            """
            try:
                return _plain(value)
            except GradientError:
                return value

    module.registry[Layer] = Values()
