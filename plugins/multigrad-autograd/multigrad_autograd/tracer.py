"""Names that programs import from `autograd.tracer`."""

from __future__ import annotations

from typing import Any

import numpy as np

from multigrad.extend import entry, register_plain_type

from .boxes import is_box, value
from .rules import notrace_primitive, primitive, register_notrace
from .tracing import Node, trace
from .util import subvals, toposort

__all__ = [
    "Box",
    "Node",
    "getval",
    "isbox",
    "notrace_primitive",
    "primitive",
    "register_notrace",
    "subvals",
    "toposort",
    "trace",
]


class _Boxes(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return is_box(instance)


class Box(metaclass=_Boxes):
    """The class of which every box is an instance.

    It cannot be instantiated, and user-defined types of values have no boxes here.
    """

    def __new__(cls, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "multigrad_autograd: boxes are arrays of multigrad, which the derivative makes"
        )

    @classmethod
    @entry
    def register(cls, value_type: type) -> None:
        """Let a subclass of NumPy's arrays count as plain arrays; other types are refused."""
        if isinstance(value_type, type) and issubclass(value_type, np.ndarray):
            register_plain_type(value_type)
            return
        raise NotImplementedError(
            "multigrad_autograd has no boxes for values of a user-defined type, such as "
            f"{value_type.__name__}: make it a container by multigrad.func.register_pytree"
        )


def isbox(x: Any) -> bool:
    """Return whether `x` is a box, of which a derivative may be taken."""
    return is_box(x)


def getval(x: Any) -> Any:
    """Return the raw array in a box; anything else unchanged."""
    return value(x)
