"""The functions about multigrad's own array objects that backends need.

The engine, which is above the backends, provides them (dispatch/creation.py, layers/batched.py).
"""

from __future__ import annotations

from typing import Any

from ..provided import wanted


@wanted
def array_classes() -> tuple[type, ...]:
    """The classes of all array objects, with their bases; a backend cannot claim one."""
    raise NotImplementedError


@wanted
def tensor_classes() -> tuple[type, ...]:
    """The classes of Tensors."""
    raise NotImplementedError


@wanted
def stand_ins() -> tuple[type, ...]:
    """The classes of the objects that replace arrays inside transformations, besides Tensors."""
    raise NotImplementedError


@wanted
def opened(t: Any, transformation: str) -> Any:
    """The raw array of a Tensor that enters or leaves a library's own transformation.

    The Tensor must be a leaf that records nothing, so that no information is lost.
    """
    raise NotImplementedError


@wanted
def closed(x: Any, backend: str) -> Any:
    """Make a Tensor from the value that a library's transformation passes instead of an array."""
    raise NotImplementedError


@wanted
def has_attribute(name: str) -> bool:
    """Whether Tensors of every backend have an attribute of that name."""
    raise NotImplementedError
