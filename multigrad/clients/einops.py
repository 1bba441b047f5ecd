"""einops: its operations on Tensors, by the namespace of their library."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ..core.level import Layer
from ..dispatch.creation import asarray, default_library
from ..dispatch.functions import function_of
from ..namespace import Namespace
from ..registry import OPS


class Operations:
    """The operations that einops needs of a library.

    einops finds them in a subclass of its own class, which `register` derives from both.
    """

    framework_name = "multigrad"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Layer)

    def from_numpy(self, x: Any) -> Any:
        return asarray(x)

    def to_numpy(self, x: Any) -> Any:
        return x.numpy()

    def arange(self, start: int, stop: int) -> Any:
        return default_library().bound.arange(start, stop)

    def shape(self, x: Any) -> tuple[int, ...]:
        return tuple(x.shape)

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        return _of(x).reshape(x, tuple(shape))

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        return _of(x).permute_dims(x, tuple(axes))

    def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
        return getattr(_of(x), operation)(x, axis=tuple(axes))

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
        return _of(tensors[0]).stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Any:
        return _of(x).expand_dims(x, axis=new_position)

    def tile(self, x: Any, repeats: Sequence[int]) -> Any:
        return _of(x).tile(x, tuple(repeats))

    def concat(self, tensors: list[Any], axis: int) -> Any:
        return _of(tensors[0]).concat(tensors, axis=axis)

    def is_float_type(self, x: Any) -> bool:
        return bool(_of(x).isdtype(x.dtype, ("real floating", "complex floating")))

    def einsum(self, pattern: str, *x: Any) -> Any:
        # beyond the standard, so not every namespace has it
        return function_of(OPS["einsum"])(pattern, *x)


def _of(x: Any) -> Namespace:
    namespace: Namespace = x.__array_namespace__()
    return namespace


def register(module: ModuleType) -> None:
    """Make the subclass of `AbstractBackend` by which einops finds an array library.

    einops makes its only instance when it meets a Tensor.
    """
    base = getattr(module, "AbstractBackend", None)
    if isinstance(base, type):
        _kept.append(type("MultigradBackend", (Operations, base), {"__module__": __name__}))


_kept: list[type] = []
"""The subclass. einops has only a weak reference to it."""
