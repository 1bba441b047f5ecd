"""Constants for the arguments of a transformed function that are not transformed.

A function of several arrays needs one namespace for all of them. So an array that is not
transformed is passed as a Tensor on its memory, which has the namespace of the layers beside it.
Scalars, subclasses of the library's arrays, arrays of other libraries and arrays of dtypes outside
of the standard are passed unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import tree
from ..core.element import Library
from ..core.level import Layer
from ..core.tensor import Tensor, element_of, wrap


class Constants:
    """The constants of one call: each array becomes one Tensor, even if it is several arguments.

    transformed  the arrays that are transformed
    """

    def __init__(self, transformed: Iterable[Any]) -> None:
        self._libraries: set[Library] = {
            x._elem.library if isinstance(x, Layer) else element_of(x).library for x in transformed
        }
        self._made: dict[int, Tensor] = {}

    def of(self, argument: Any) -> Any:
        """An argument as the function gets it.

        A container of such arrays is copied, unless its class does not allow that.
        """
        return tree.mapped(self._leaf, argument) if self._libraries else argument

    def _leaf(self, x: Any) -> Any:
        constant = self._made.get(id(x))
        if constant is None:
            if isinstance(x, Layer) or not any(library.has(x) for library in self._libraries):
                return x
            constant = self._made[id(x)] = wrap(x)
        return constant
