"""`isinstance`, `type`, `tuple`, `list` and `dict` for programs whose values are boxes.

Python's containers can hold boxes, so `tuple`, `list` and `dict` are Python's. `isinstance` and
`type` examine the value in a box.
"""

from __future__ import annotations

import builtins
from typing import Any

from multigrad.extend import innermost

from .boxes import is_box, left
from .spaces import ContainerVSpace, DictVSpace, ListVSpace, TupleVSpace

__all__ = [
    "ContainerVSpace",
    "DictVSpace",
    "ListVSpace",
    "TupleVSpace",
    "dict",
    "isinstance",
    "list",
    "tuple",
    "type",
]


tuple, list, dict = builtins.tuple, builtins.list, builtins.dict


def isinstance(x: Any, classinfo: Any) -> bool:
    """Test the value in a box, as Python's isinstance does.

    A box of a number has its NumPy type, and so is a float; a box of an array is an ndarray.
    """
    return builtins.isinstance(x, classinfo) or (
        is_box(x) and builtins.isinstance(left(innermost(x)), classinfo)
    )


def type(x: Any) -> Any:
    """Return the type of the value in a box, otherwise Python's type."""
    return builtins.type(left(innermost(x)) if is_box(x) else x)
