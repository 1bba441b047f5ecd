"""multigrad's own arrays, as far as a backend needs to know them.

The engine, which stands above the backends, provides it (convert.py).
"""

from __future__ import annotations

from typing import Any

from ..provided import wanted


@wanted
def array_classes() -> tuple[type, ...]:
    """The classes of all of them, bases included: no backend may claim one."""
    raise NotImplementedError


@wanted
def tensor_classes() -> tuple[type, ...]:
    """The classes of Tensors."""
    raise NotImplementedError


@wanted
def stand_ins() -> tuple[type, ...]:
    """The classes of what functions get in the place of arrays inside transformations, besides
    Tensors.
    """
    raise NotImplementedError


@wanted
def opened(t: Any, transformation: str) -> Any:
    """The raw array of a Tensor that passes into or out of a library's own transformation, without
    loss: a leaf that records nothing.
    """
    raise NotImplementedError


@wanted
def closed(x: Any, backend: str) -> Any:
    """A Tensor of what a library's own transformation returns, or maps over, in the place of an
    array.
    """
    raise NotImplementedError


@wanted
def has_attribute(name: str) -> bool:
    """Whether Tensors of every backend have an attribute of that name."""
    raise NotImplementedError
