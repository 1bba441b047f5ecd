"""Layers whose arrays are never written: in-place operations exchange the value, and views follow.

A view knows its base and how it was made from it, as for Tensors (see memory/views.py). A write
changes the root of the memory, by the operation copy_slices. Every other view takes its new value
from its base at its next use. No buffer is written, so an array from outside stays unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from ..core import grad_mode
from ..core.aliasing import WHOLE, Location, Step, ViewSpec, laid_out, last_change, refresh
from ..core.array_protocols import ArrayProtocols
from ..core.conversions import conversion
from ..core.graph import versions
from ..core.level import Layer, Transformation
from ..core.tensor import element_of
from ..dispatch.general import bases, general
from ..errors import GradientError, LeakError, kind
from ..memory.old_values import before_write
from ..memory.views import REFERS, fitted, written
from ..registry import OPS, Op


class ValueLayer(ArrayProtocols):
    """Base of these layers.

    Subclasses define `_take`, `_constant`, `_copied` and `_mapped`, since they know the parts of a
    value.

    _elem    the Element, with the transformation that it belongs to and its level
    _cell    the version cell: the times of in-place operations on its memory, shared by views
    _view    for a view, its ViewSpec (base, and how it was made); None otherwise
    _seen    for a view, the last entry of `_cell` when the value was taken from the base
    _parts   the names of the parts of the value
    _family  the class in the Kinds of its Elements. Extensions share one, so that no Kind keeps a
             class that is made inside of a function
    """

    __slots__ = ("__weakref__", "_array", "_cell", "_elem", "_seen", "_view")
    _node = None
    _differentiates = False
    _parts: tuple[str, ...] = ("_array",)
    _family: ClassVar[type[ValueLayer]]
    _seen: int
    _view: ViewSpec | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if ValueLayer in cls.__bases__:
            cls._family = cls

    @property
    def _level(self) -> int:  # type: ignore[override]
        return self._elem.level

    @property
    def _run(self) -> Transformation:
        return self._elem.run  # type: ignore[return-value]

    __hash__ = object.__hash__

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError(
            f"a {kind(self)} is made by the transformation that it belongs to, not by calling "
            "the class"
        )

    @classmethod
    def _around(cls, x: Any, run: Transformation, level: int) -> Self:
        """A layer of this class around `x`, a value of the next inner level."""
        layer = object.__new__(cls)
        layer._array = x
        layer._elem = element_of(x).at(run, level, isinstance(x, Layer), cls._family)
        layer._cell = []
        layer._view = None
        return layer

    def _put(self, x: Any) -> None:
        """Exchange the inner value."""
        self._array = x
        self._elem = self._elem.at(
            self._run, self._level, self._elem.layered or isinstance(x, Layer), self._family
        )

    def _take(self, value: Any) -> None:
        """Take over the value of a layer of the same level."""
        self._array, self._elem = value._array, value._elem

    def _constant(self, x: Any) -> Any:
        """An inner value as a constant of this level."""
        raise NotImplementedError

    def _copied(self, stop: bool = False) -> Any:
        """Another layer of this value; with `stop`, as a constant at every level."""
        raise NotImplementedError

    def _mapped(self, function: Callable[[Any], Any]) -> Any:
        """Another layer, with `function` applied to the parts of the value."""
        raise NotImplementedError

    def _frozen(self) -> Any:
        self._check()
        return self._copied()

    def _on(self, base: ValueLayer, step: Step) -> Any:
        """This layer as a view of `base`."""
        self._view, self._cell, self._seen = (base, *step), base._cell, last_change(base._cell)
        return self

    # Checks before use

    def _check(self) -> None:
        if self._elem.run.finished:  # type: ignore[union-attr]
            self._outlived()
        elif self._view is not None and last_change(self._cell) != self._seen:
            refresh(self)

    _look = _check

    def _outlived(self) -> None:
        """Raise: the transformation is over."""
        raise LeakError(
            f"a {kind(self)} that was made inside the transformation {self._run.name!r} was "
            "used after it had finished; return it from the function instead"
        )

    def _renew(self) -> bool:
        """Take the value of a view from its base, which is up to date.

        The inner history is taken over, too, whatever the grad mode is now.
        """
        base, op, arguments, output, _ = self._view  # type: ignore[misc]
        if op is None:
            self._take(base._copied(stop=True))
        else:
            out = grad_mode.recorded(general, op, (base, *arguments))
            self._take(out if output is None or op.outputs == () else out[output])
        self._seen = last_change(self._cell)
        return True

    def _again(self, base: ValueLayer, step: Step) -> Any:
        """Another layer of this value, as a view of `base` made by `step`.

        It is brought up to date at its next use.
        """
        layer = self._copied()._on(base, step)
        layer._seen = -1
        return layer

    # In-place operations

    def _become(self, value: Any, name: str) -> Any:
        """Replace the value by the result of an operation. Returns self."""
        self._check()
        value = fitted(self, value, name)
        if value is not self:
            self._write(value, name)
        return self

    def _of_level(self, value: Any) -> Any:
        """A value as a layer of this level."""
        return (
            value
            if isinstance(value, ValueLayer) and value._level == self._level
            else self._constant(value)
        )

    def _write(self, value: Any, name: str) -> None:
        place = Location(self)
        if place.owner is not place.memory:
            raise GradientError(
                f"{name}: a {kind(self)} that was detached shows the value of another one, "
                "which would change without its derivative. clone() it first."
            )
        if place.repeats and place.overlaps(place.part):
            raise RuntimeError(f"{name}: {REFERS}")
        root = place.memory
        before_write(self._cell)
        old, shown = root._array, self._array
        root._take(general(OPS["copy_slices"], (root, value, place.part)) if place.part else value)
        root._array = laid_out(root._array, old)
        if self is not root:
            self._take(value)
            self._array = laid_out(self._array, shown)
        written(self, place)

    # Attributes

    @property
    @conversion
    def array(self) -> Any:
        """The value at the next inner level."""
        self._check()
        return self._array

    @property
    def requires_grad(self) -> bool:
        """Whether an inner Tensor requires grad."""
        self._check()
        return bool(getattr(self._array, "requires_grad", False))

    @property
    def _version(self) -> int:
        return versions(self._cell)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        raise GradientError(
            f"a {kind(self)} is not a leaf of a graph: call requires_grad_() on the Tensor that it "
            "is made of, or use multigrad.func.grad of a function of it"
        )

    def backward(self, *_: object, **__: object) -> None:
        raise GradientError(
            f"backward() starts at a Tensor, not at a {kind(self)}: take it apart first "
            "(multigrad.autograd.forward_ad.unpack_dual), or use multigrad.func.grad of a "
            "function of it"
        )

    @conversion
    def detach(self) -> Any:
        """The same values as a constant, at every level."""
        self._check()
        return self._copied(stop=True)._on(self, WHOLE)

    def _refuse(self, what: str, fix: str, advice: str = "") -> None:
        self._check()
        raise GradientError(
            f"Can't call {what} on a {kind(self)}: its value belongs to the transformation "
            f"{self._run.name!r}.{advice}"
        )

    @conversion
    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            f"a {kind(self)} belongs to a running transformation, so it can be neither copied "
            "by copy.copy() nor pickled; clone() it"
        )


def tie(op: Op, values: Sequence[Any], outs: Sequence[Any], top: Any) -> None:
    """Note the base of each result of an operation at the level of `top` that is a view."""
    if op.view is False or not all(isinstance(x, Layer) for x in outs):
        return
    # a list may be changed by its owner
    values = [tuple(v) if isinstance(v, list) else v for v in values]
    for x, (base, step) in zip(outs, bases(op, values, values, outs, top), strict=True):
        if type(base) is type(top) and base._level == top._level:
            x._on(base, step)
