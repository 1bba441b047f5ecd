"""matplotlib: constants are plotted as NumPy arrays; what requires grad is refused, and told to be detached."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..engine.level import Layer


def register(module: ModuleType) -> None:
    """Register the conversion of Tensors, and of the other layers, among matplotlib's units."""

    class Values(module.ConversionInterface):  # type: ignore[misc, name-defined]
        """Values as they are, without a unit."""

        @staticmethod
        def convert(value: Any, unit: Any, axis: Any) -> Any:
            if isinstance(value, Layer):
                return value.numpy()  # type: ignore[attr-defined]
            return [x.numpy() if isinstance(x, Layer) else x for x in value] if isinstance(value, (list, tuple)) else value  # type: ignore[attr-defined]

    module.registry[Layer] = Values()
