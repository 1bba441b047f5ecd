"""Variable: the array with a gradient of PyTorch 0.3.

Every Tensor is a Variable. Calling the class makes a Tensor, as in PyTorch 0.3.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..core.element import is_array
from ..core.tensor import Tensor, wrap_new
from ..dispatch.creation import asarray

__all__ = ["Variable", "VariableMeta"]

_NO_EFFECT = "volatile was removed and now has no effect. Use `with multigrad.no_grad():` instead."


class VariableMeta(type):
    """The metaclass of Variable, by which every Tensor is a Variable."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)

    def __call__(
        cls, data: Any = None, requires_grad: bool = False, volatile: bool = False
    ) -> Tensor:
        for name, flag in (("requires_grad", requires_grad), ("volatile", volatile)):
            if flag is None or not isinstance(flag, (bool, int)):
                raise TypeError(f"Variable: {name} must be a bool, not {type(flag).__name__}")
        if volatile:
            warnings.warn(_NO_EFFECT, UserWarning, stacklevel=2)
            if requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if data is None:
            t = asarray([])
        elif isinstance(data, Tensor):
            t = data.detach()
        elif is_array(data):
            t = wrap_new(data)
        else:
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return t.requires_grad_() if requires_grad else t


class Variable(metaclass=VariableMeta):
    """Deprecated: a new Tensor on the memory of `data`, without its history.

    data      a Tensor or a raw array; None: an empty Tensor
    volatile  without effect; use no_grad

    Use multigrad.asarray or Tensor.detach instead. Corresponds to torch.autograd.Variable.
    """


def _volatile(t: Tensor) -> bool:
    """Deprecated: always False."""
    warnings.warn(
        "volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2
    )
    return False


def _set_volatile(t: Tensor, value: Any) -> None:
    warnings.warn(_NO_EFFECT, UserWarning, stacklevel=2)


Tensor._define("volatile", property(_volatile, _set_volatile))
