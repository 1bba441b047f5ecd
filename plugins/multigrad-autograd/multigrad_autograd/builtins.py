"""`isinstance`, `type`, `tuple`, `list` and `dict` for programs whose values are boxes.

Containers need no boxes of their own: those of Python hold boxes. So these are Python's, and
`isinstance` and `type` look at the value in a box.
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
    """As Python's, of the value in a box: a box of a number is one of its NumPy type, and so a
    float; a box of an array is an ndarray.
    """
    return builtins.isinstance(x, classinfo) or (
        is_box(x) and builtins.isinstance(left(innermost(x)), classinfo)
    )


def type(x: Any) -> Any:
    """As Python's, of the value in a box."""
    return builtins.type(left(innermost(x)) if is_box(x) else x)
