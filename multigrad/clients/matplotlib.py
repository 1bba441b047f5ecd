"""matplotlib: constants are plotted as NumPy arrays; what requires grad is refused, and told to be
detached.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..core.level import Layer
from ..errors import GradientError


def _plain(x: Any) -> Any:
    """The values of a layer as a NumPy array; of a list those of its elements."""
    if isinstance(x, (list, tuple)):
        return [_plain(part) for part in x] if any(isinstance(part, Layer) for part in x) else x
    return x.numpy() if isinstance(x, Layer) else x  # type: ignore[attr-defined]


def register(module: ModuleType) -> None:
    """Register the conversion of Tensors, and of the other layers, among matplotlib's units."""

    class Values(module.ConversionInterface):  # type: ignore[misc, name-defined]
        """Values as they are, without a unit."""

        @staticmethod
        def default_units(x: Any, axis: Any) -> None:
            """Refuse what requires grad: here matplotlib lets errors pass as they are."""
            _plain(x)

        @staticmethod
        def convert(value: Any, unit: Any, axis: Any) -> Any:
            """The values; what is refused stays what it is, and NumPy, which is asked next, says
            why.
            """
            try:
                return _plain(value)
            except GradientError:
                return value

    module.registry[Layer] = Values()
