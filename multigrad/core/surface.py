"""The base class on which `methods.py` installs the operators and methods from the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..registry import keeping
from .foreign_names import ATTRIBUTES, hint
from .level import Layer, innermost

if TYPE_CHECKING:
    from .members import Members as _Members
else:
    _Members = Layer


class Surface(_Members):
    """Base of Tensor and the other layers.

    `make stubs` declares the installed members in members.pyi for type checkers.
    """

    __slots__ = ()

    @classmethod
    def _define(cls, name: str, method: Any) -> None:
        """Give this class an operator, a method or a property that a higher module makes.

        It comes from the table, or from the attributes of torch.Tensor.
        """
        setattr(cls, name, method)

    @classmethod
    def _remove(cls, name: str) -> None:
        delattr(cls, name)


class OfArrays:
    """A placeholder for an attribute that Tensors lack, but raw arrays or torch.Tensor have.

    Access raises AttributeError, whose message names the replacement: an attribute of Tensors, or
    `.array`. If the backend of the array gives Tensors that attribute, its value is returned. (A
    `__getattr__` could do the same, and would make every other attribute slower.)
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, obj: Any, cls: type) -> Any:
        if obj is None:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {self._name!r}")
        attribute = obj._elem.library.backend.attributes.get(self._name)
        if attribute is not None:
            return attribute(obj)
        text = f"{cls.__name__!r} object has no attribute {self._name!r}"
        if self._name in ATTRIBUTES:
            text += hint(ATTRIBUTES, self._name)
        elif hasattr(type(innermost(obj)), self._name):
            text += (
                f", which only the {obj._elem.library.name} array in it has. Use "
                f"x.array.{self._name}, through which no gradient flows, or the functions of "
                "the standard."
            )
        raise AttributeError(text, name=self._name, obj=obj)


def mention(types: Iterable[type], attributes: Iterable[str]) -> None:
    """Install placeholders for attributes that layers lack: of array types, and of a backend."""
    names = {name for t in types for name in dir(t) if not name.startswith("_")}.union(attributes)
    with keeping:
        for name in names:
            # hasattr() would generate the methods
            if not any(name in cls.__dict__ for cls in Surface.__mro__):
                Surface._define(name, OfArrays(name))


for _name in ATTRIBUTES:
    Surface._define(_name, OfArrays(_name))
