"""Nested values without their raw arrays.

What remains of a nested value is kept while its raw arrays are stored elsewhere or computed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .element import is_array
from .level import Layer, Transformation
from .tensor import Tensor, wrap_in

_new = object.__new__


class NestedLayer:
    """One layer of a nested value.

    kind   the class of the layer; it does not matter for a Tensor
    run    the transformation it belongs to, None at the base level
    level  its level
    node   the history of a Tensor, if it has one
    parts  by the name of the slot, the next inner value: a NestedLayer, or None for a raw array
    rest   the other slots of a layer that is not a Tensor
    """

    __slots__ = ("kind", "level", "node", "parts", "rest", "run")

    def __init__(self, x: Layer) -> None:
        self.kind = type(x)
        self.run: Transformation | None = getattr(x, "_run", None)
        self.level = x._level
        self.node: Any = getattr(x, "_node", None)
        self.parts: dict[str, NestedLayer | None] = {}
        self.rest: dict[str, Any] = {}

    def _each(self) -> Iterator[NestedLayer]:
        """This layer and all inside of it."""
        yield self
        for part in self.parts.values():
            if part is not None:
                yield from part._each()

    def forget(self) -> None:
        """Drop the histories, and keep only whether there were any."""
        for layer in self._each():
            layer.node = layer.node and True

    @property
    def recorded(self) -> bool:
        """Whether the nested value has a history, at any level."""
        return any(layer.node for layer in self._each())

    def runs(self) -> list[Transformation]:
        """The transformations that the nested value belongs to."""
        return [layer.run for layer in self._each() if layer.run is not None]


def taken_apart(
    x: Any, arrays: list[Any], cells: list[list[int]], cell: list[int] | None = None
) -> NestedLayer | None:
    """The nested value `x` without its raw arrays, which are appended to `arrays`.

    The version cell of the layer around each array is appended to `cells`. If `x` is itself a raw
    array, its version cell is `cell`, and None is returned.
    """
    if not isinstance(x, Layer):
        arrays.append(x)
        cells.append([] if cell is None else cell)
        return None
    shell = NestedLayer(x)
    if isinstance(x, Tensor):
        shell.parts["_array"] = taken_apart(x._array, arrays, cells, x._cell)
        return shell
    cell, x = x._cell, x._frozen()
    for name in (
        name
        for kind in type(x).__mro__
        for name in getattr(kind, "__slots__", ())
        if hasattr(x, name)
    ):
        value = getattr(x, name)
        if name in ("__weakref__", "_cell"):
            continue
        if is_array(value):
            shell.parts[name] = taken_apart(value, arrays, cells, cell)
        else:
            shell.rest[name] = value
    return shell


def put_together(shell: NestedLayer | None, arrays: Iterator[Any], afresh: bool = False) -> Any:
    """Make the nested value again, with these raw arrays.

    afresh  whether Tensors with a history become leaves that require grad
    """
    if shell is None:
        return next(arrays)
    parts = {name: put_together(part, arrays, afresh) for name, part in shell.parts.items()}
    if issubclass(shell.kind, Tensor):
        x = parts["_array"]
        t = wrap_in(shell.run, shell.level, x)
        if not afresh:
            t._node = shell.node
        elif shell.node is not None:
            t.requires_grad_()
        return t
    layer: Any = _new(shell.kind)
    for name, value in (*shell.rest.items(), *parts.items()):
        setattr(layer, name, value)
    layer._cell = []
    return layer
