"""Layers that are never written: an in-place operation puts a new value in the place of the old one, and views follow.

A view knows its base and how it was made of it, as a Tensor does (see engine/views.py). A write goes to the root of the memory, by the
operation copy_slices; every other view takes its value from its base anew when it is used next. No buffer is touched, so an array that
came from outside stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from ..engine import layout
from ..engine.dispatch import _bases as bases
from ..engine.dispatch import general, itself, shows
from ..engine.graph import last_write, tick
from ..engine.inplace import _cast as cast_to
from ..engine.layout import memory, overlaps
from ..engine.leaving import Leaving
from ..engine.level import Layer, Run
from ..engine.tensor import How, element_of, peeled
from ..engine.views import REFERS
from ..errors import GradientError, LeakError
from ..observe import conversion
from ..registry import OPS, Op


class Immutable(Leaving):
    """Base of these layers. `_take`, `_constant`, `_copied` and `_mapped` are theirs: what a value consists of is for them to know.

    _elem         tells the transformation that it belongs to, and its level
    _cell         the times of in-place operations on its memory, shared by views
    _base, _how   of which layer it is a view, and how it was made of it; of `_how` None: all of it, as a constant
    _born         how many entries `_cell` had when the value was taken from the base; None: it is no view
    _parts        the names of what the value consists of
    """

    __slots__ = ("__weakref__", "_array", "_base", "_born", "_cell", "_elem", "_how")
    _node = None
    _parts: tuple[str, ...] = ("_array",)
    _base: Immutable
    _born: int | None
    _how: How | None

    @property
    def _level(self) -> int:  # type: ignore[override]
        return self._elem.level

    @property
    def _run(self) -> Run:
        return self._elem.run  # type: ignore[return-value]

    __hash__ = object.__hash__

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError(f"a {type(self).__name__} is made by the transformation that it belongs to, not by calling the class")

    @classmethod
    def _around(cls, x: Any, run: Run, level: int) -> Self:
        """A layer of this class around `x`, which is one layer further in."""
        layer = object.__new__(cls)
        layer._array = x
        layer._elem = element_of(x).at(run, level, isinstance(x, Layer), cls)
        layer._cell = []
        layer._born = layer._how = None
        return layer

    def _put(self, x: Any) -> None:
        """Exchange what is one layer further in."""
        self._array = x
        self._elem = self._elem.at(self._run, self._level, self._elem.layered or isinstance(x, Layer), type(self))

    def _take(self, value: Any) -> None:
        """Take over the value of a layer of the same level."""
        raise NotImplementedError

    def _constant(self, x: Any) -> Any:
        """A value from further in as a constant of this level."""
        raise NotImplementedError

    def _copied(self, stop: bool = False) -> Any:
        """Another layer of this value; with `stop`, as a constant on every level."""
        raise NotImplementedError

    def _mapped(self, function: Callable[[Any], Any]) -> Any:
        """Another layer, of what `function` makes of the parts of this one's value."""
        raise NotImplementedError

    def _frozen(self) -> Any:
        self._check()
        return self._copied()

    def _on(self, base: Immutable, how: How | None) -> Any:
        """This layer as a view of `base`."""
        self._base, self._how, self._cell, self._born = base, how, base._cell, len(base._cell)
        return self

    # Whether it may be used, and is up to date

    def _check(self) -> None:
        if self._run.finished:
            self._outlived()
        elif self._born is not None and len(self._cell) != self._born:
            self._refresh()

    _look = _check

    def _outlived(self) -> None:
        """Raise: the transformation is over."""
        raise LeakError(f"a {type(self).__name__} that was made inside the transformation {self._run.name!r} was used after it had finished; "
                        "return it from the function instead")

    def _refresh(self) -> None:
        """Bring a view up to date, its bases first."""
        chain: list[Immutable] = [self]
        _shorten(self)
        while chain[-1]._base._born is not None and chain[-1]._base._born != len(self._cell):
            chain.append(chain[-1]._base)
            _shorten(chain[-1])
        for view in reversed(chain):
            base, how = view._base, view._how
            if how is None:
                view._take(base._copied(stop=True))
            else:
                op, arguments, number, _ = how
                found = general(op, (base, *arguments))
                view._take(found if number is None or op.outputs == () else found[number])
            view._born = len(view._cell)

    # In place

    def _become(self, value: Any, name: str) -> Any:
        """Let the result of an operation take the place of the value. Returns self."""
        self._check()
        value = self._own(value, name)
        if tuple(value.shape) != tuple(self.shape):
            raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(value.shape)}")
        if value._elem.base is not self._elem.base:
            value = cast_to(self, value)
        if value is not self:
            self._write(value, name)
        return self

    def _own(self, value: Any, name: str) -> Any:
        """The value as a layer of this level."""
        value = peeled(value, self._level)
        if getattr(value, "_level", 0) > self._level:
            raise GradientError(f"{name}: a value of a running transformation cannot be written into an array from outside of it, nor into what is "
                                "computed from such arrays alone. Write into one that is made inside, as by zeros(), or choose with where().")
        return value if isinstance(value, Immutable) and value._level == self._level else self._constant(value)

    def _write(self, value: Any, name: str) -> None:
        if self._born is not None:
            _shorten(self)
        x: Any = self
        while x._born is not None:
            if x._how is None:
                raise GradientError(f"{name}: a {type(self).__name__} that was detached shows the value of another one, which would change without "
                                    "its derivative. clone() it first.")
            x = x._base
        if self._born is not None and overlaps(self):
            raise RuntimeError(f"{name}: {REFERS}")
        root, part = memory(self)
        root._take(general(OPS["copy_slices"], (root, value, part)) if part else value)
        self._take(value)
        now = last_write[0] = tick()
        self._cell.append(now)
        if self._born is not None:
            self._born = len(self._cell)

    # What it is besides

    @property
    @conversion
    def array(self) -> Any:
        """The value one layer further in."""
        self._check()
        return self._array

    @property
    def requires_grad(self) -> bool:
        """Whether a Tensor further in requires grad."""
        self._check()
        return bool(getattr(self._array, "requires_grad", False))

    @property
    def _version(self) -> int:
        return len(self._cell)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        raise GradientError(f"a {type(self).__name__} is no leaf of a graph: call requires_grad_() on the Tensor that it is made of, or use "
                            "multigrad.func.grad of a function of it")

    def backward(self, *_: object, **__: object) -> None:
        raise GradientError(f"backward() starts at a Tensor, not at a {type(self).__name__}: take it apart first "
                            "(multigrad.autograd.forward_ad.unpack_dual), or use multigrad.func.grad of a function of it")

    @conversion
    def detach(self) -> Any:
        """The same values as a constant, on every level."""
        self._check()
        return self._copied(stop=True)._on(self, None)

    def _refuse(self, what: str, fix: str) -> None:
        self._check()
        raise GradientError(f"Can't call {what} on a {type(self).__name__}: its value belongs to the transformation {self._run.name!r}.")

    @conversion
    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(f"a {type(self).__name__} belongs to a running transformation, so it can be neither copied by copy.copy() nor pickled; "
                           "clone() it")


def _shorten(view: Immutable) -> None:
    """Give the last view of a long chain another base that shows the same, as engine/views.py does."""
    found = layout.shortcut(view)
    if found is not None:
        base = view._base._copied()._on(*found)
        base._born = -1
        view._base = base


def tie(op: Op, values: Sequence[Any], found: Sequence[Any], top: Any, several: bool) -> None:
    """Note of which argument the results of an operation at the level of `top` are views."""
    kind = shows(op, values)
    if not kind:
        return
    if several:
        pairs = bases(op, values, values, found, top)
    elif kind != "layout" or type(values[0]) is not type(top) or layout.allows(values[0], values[0], found[0]):
        settings = tuple(tuple(v) if isinstance(v, list) else v for v in values[1:])  # a list may be changed by its owner
        pairs = [(values[0], itself(top) if kind == "same" else (op, settings, None, None))]
    else:
        return
    for x, (base, how) in zip(found, pairs, strict=True):
        if type(base) is type(top) and base._level == top._level:
            x._on(base, how)
