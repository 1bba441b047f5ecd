"""Tensor: an array of any library that records operations on it.

`methods.py` installs the operators and the methods of the table. The attributes mean the same as
those of torch.Tensor. A Tensor of the base level wraps a raw array. One of a running transformation
may wrap a layer of a lower level. Its Element tells which. A View shares memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from sys import modules
from typing import Any, Self
from weakref import ref

from .. import observe
from ..errors import GradientError, kind
from ..provided import wanted
from ..tracebacks import entry
from . import level, showing
from .aliasing import WHOLE, Step, ViewSpec, last_change, refresh
from .array_protocols import ArrayProtocols
from .computed import mark
from .conversions import conversion
from .element import Element, is_array, library_of, mixed
from .graph import (
    AccumulateGrad,
    GradCell,
    Node,
    OutputNode,
    RemovableHandle,
    edge,
    extra,
    versions,
)
from .level import Layer, Transformation, innermost

_new = object.__new__
_NO_HOOK = "cannot register a hook on a tensor that doesn't require gradient."


@wanted
def backward(*args: Any, **kwargs: Any) -> None:
    """Accumulate the gradients of leaves.

    Provided by backward/gradients.py.
    """


@wanted
def register_clients() -> None:
    """Register Tensors with the imported libraries that have a client module.

    Provided by clients/.
    """


seen = [0]
"""The number of imported modules when clients were last looked for among them."""


def looked(modules: int) -> None:
    """Note that clients were looked for among this many modules; -1 causes another search."""
    seen[0] = modules


class Tensor(ArrayProtocols):
    """An array with a gradient.

    `multigrad.asarray` and `multigrad.tensor` make Tensors; the class is not called directly.
    """

    __slots__ = ("__weakref__", "_array", "_cell", "_elem", "_grad_cell", "_leaf", "_node")
    _noun = "Tensor"
    _array: Any
    _cell: list[int]
    _elem: Element
    _grad_cell: GradCell
    _leaf: AccumulateGrad
    _node: Node | None

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError(
            "a Tensor is made by multigrad.asarray(obj) or multigrad.tensor(data), not by "
            "calling the class"
        )

    @property
    def _level(self) -> int:  # type: ignore[override]
        return self._elem.level

    @property
    def _run(self) -> Transformation | None:
        return self._elem.run

    def _put(self, value: Any) -> None:
        """Exchange the value, and the Element, since either value may be a layer."""
        self._array = value
        if self._elem.layered is not isinstance(value, Layer):
            self._elem = self._elem.beside(value)

    def _frozen(self) -> Tensor:
        """Another Tensor of this value, if writes may exchange it, as in a transformation."""
        if self._elem.run is None:
            return self
        self._check()
        t = _new(Tensor)
        t._array = self._array
        t._elem = self._elem
        t._cell = []
        t._node = self._node
        return t

    # Attributes

    @property
    @conversion
    def array(self) -> Any:
        """The raw array of the backend, sharing memory; the graph does not see writes to it."""
        self._look()
        return self._array

    @property
    @conversion
    def data(self) -> Tensor:
        """A Tensor on the same memory that does not require grad, with its own version counter.

        Writes to it do not change the version of this Tensor, so backward() does not detect them.
        """
        self._look()
        if not isinstance(self._array, self._elem.library.fixed):
            # a Tensor of a transformation could hold values that do not fit into this memory
            t = wrap(self._array)
            return t if self._node is None else mark(t)
        return Data._of(self) if self._elem.run is None else alias(self)

    @data.setter
    @entry
    def data(self, value: Any) -> None:
        array = value
        if isinstance(value, Tensor):
            value._look()
            array = value._array
        if isinstance(array, Layer) and array._level >= self._level:
            raise GradientError(
                f"data: a {kind(array)} belongs to the transformation "
                f"{array._elem.run.name!r}, and cannot become the values of a Tensor outside of it."
            )
        library = array._elem.library if isinstance(array, Layer) else library_of(array)
        if library is None:
            raise TypeError(
                f"data must be a Tensor or an array of a library, not {kind(array)}: write "
                "t.data = multigrad.asarray(x)."
            )
        if library is not self._elem.library:
            raise mixed("data", self._elem.library, library)
        if tuple(array.shape) != tuple(self.shape) or array.dtype != self.dtype:
            raise RuntimeError(
                f"data of shape {tuple(array.shape)} and dtype {array.dtype} cannot replace "
                f"that of a Tensor of shape {tuple(self.shape)} and dtype {self.dtype}"
            )
        self._cell = self._cell.copy()  # arrays on the old memory keep the old cell
        if self._view is not None:
            base = wrap_at(self, array)
            base._cell = self._cell
            self._view = base, *WHOLE
            self._seen = last_change(self._cell)  # type: ignore[misc]
        self._put(array)
        if self._node is None and isinstance(value, Tensor) and value._node is not None:
            mark(self)

    @property
    def _version(self) -> int:
        """The number of in-place writes to the memory."""
        return versions(self._cell)

    @staticmethod
    def _apply_custom(application: Any, values: Sequence[Any], top: Tensor | None) -> Any:
        return application.recorded(values, top)

    def _moves(self) -> bool:
        mode = observe.gate.get()
        return self._history is not None and (
            mode is True or bool(mode.at(self._elem.run, self._elem.level))
        )

    def _check(self) -> None:
        """Bring a view up to date if its memory was written through another Tensor since.

        Raises if its history cannot follow.
        """
        if self._elem.layered:
            self._check_value()

    def _check_value(self) -> None:
        """Raise if the value is a layer of a transformation that has finished."""
        value, run = self._array, self._elem.run
        if run.finished and isinstance(value, Layer) and not isinstance(value, Tensor):  # type: ignore[union-attr]
            value._check()

    def _look(self) -> None:
        """Bring the values of a view up to date, without its history."""
        try:  # noqa: SIM105  a third of the time of suppress()
            self._check()
        except GradientError:  # the values are up to date by then
            pass

    # Gradients and the graph

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded.

        It can be set on a leaf, which then accumulates gradients in `.grad`; see requires_grad_.
        """
        self._check()
        return self._history is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        self._check()
        if value:
            self.requires_grad_()
        elif self._history is not None:
            if type(self._node) is not AccumulateGrad:
                raise GradientError(
                    "you can only change requires_grad flags of leaf variables. If you want to "
                    "use a computed variable in a subgraph that doesn't require differentiation "
                    "use var_no_grad = var.detach()."
                )
            self._node.enabled = False
            self._node = None

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` and return self.

        Raises RuntimeError for dtypes that are not floating.
        """
        if not isinstance(requires_grad, bool):
            raise TypeError(
                "requires_grad_(): argument 'requires_grad' must be bool, not "
                f"{type(requires_grad).__name__}"
            )
        self._check()
        if not requires_grad:
            self.requires_grad = False
        elif self._node is None or self._history is None:
            if not self._elem.floating:
                raise GradientError(
                    "only Tensors of floating point and complex dtype can require gradients, "
                    f"not {self.dtype} (backend {self._elem.library.name!r}). Convert it: "
                    "xp.astype(x, xp.float64)."
                )
            self._become_leaf()
        return self

    def _become_leaf(self) -> AccumulateGrad:
        """Record operations from here on. Returns the node of this leaf."""
        if not hasattr(self, "_leaf"):
            self._leaf = AccumulateGrad(self, self._own_cell())
            if self._elem.run is not None:
                self._elem.run.leaves += 1
        self._leaf.enabled = True
        self._node = self._leaf
        if observe.gate.get() is not True:
            observe.node(self._leaf, (), self)
        return self._leaf

    def _of_level(self, value: Any) -> Tensor:
        """Wrap a value in a Tensor of this level."""
        return (
            value
            if isinstance(value, Tensor) and value._elem.level == self._elem.level
            else wrap_at(self, value)
        )

    def _own_cell(self) -> GradCell:
        if not hasattr(self, "_grad_cell"):
            self._grad_cell = GradCell()
        return self._grad_cell

    @property
    def is_leaf(self) -> bool:
        """Whether this is a leaf: a user made it, or it does not require grad.

        `backward` accumulates gradients in leaves.
        """
        self._check()
        return self._history is None or type(self._node) is AccumulateGrad

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operation that made it; None for a leaf.

        Its `next_functions` are the nodes of the operands.
        """
        self._check()
        node = self._history
        return None if node is None or type(node) is AccumulateGrad else edge(node)[0]

    @property
    def output_nr(self) -> int:
        """The number of this output among those of `grad_fn`."""
        self._check()
        return self._node.number if type(self._node) is OutputNode else 0

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has accumulated, with this shape and dtype, or None.

        Only leaves have one, and Tensors after `retain_grad()`. `del x.grad`, or `x.grad = None`,
        starts anew. Setting one of another shape raises RuntimeError.
        """
        cell: GradCell | None = getattr(self, "_grad_cell", None)
        if cell is not None and cell.grad is not None:
            grad: Tensor = cell.grad
            return grad
        if not self.is_leaf and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. "
                "Its .grad attribute won't be populated during autograd.backward(). If you "
                "indeed want the .grad field to be populated for a non-leaf Tensor, use "
                ".retain_grad() on the non-leaf Tensor.",
                UserWarning,
                stacklevel=2,
            )
        return None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            del self.grad
            return
        if not isinstance(value, Tensor):
            raise TypeError(
                "assigned grad expected to be a Tensor or None but got grad of type "
                f"{kind(value)}. Wrap it: multigrad.asarray(grad)."
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if tuple(value.shape) != tuple(self.shape):
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of "
                f"size '{list(self.shape)}'. Please ensure that the gradient and the tensor are "
                "the same size"
            )
        if value._elem.base is not self._elem.base:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{value.dtype}' (backend "
                f"{value._elem.library.name!r}) to a tensor with grad_dtype '{self.dtype}' "
                f"(backend {self._elem.library.name!r}). Please convert it first."
            )
        library = self._elem.library
        if not library.mutable and not isinstance(value._array, Layer):
            # raises for a tracer from inside a trace
            library.take_ownership(library.xp, value._array, innermost(self))
        self._own_cell().grad = value

    @grad.deleter
    def grad(self) -> None:
        if hasattr(self, "_grad_cell"):
            self._grad_cell.grad = None

    @entry
    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
        *,
        retain_variables: bool | None = None,
    ) -> None:
        """Accumulate the gradients of this Tensor into the `.grad` of the leaves it depends on.

        See multigrad.autograd.backward.
        """
        backward(
            self,
            gradient,
            retain_graph,
            create_graph,
            inputs=inputs,
            retain_variables=retain_variables,
        )

    @conversion
    def detach(self) -> Tensor:
        """A Tensor on the same memory that does not require grad; it shares the version counter.

        Inside transformations it is a constant to each of them.
        """
        t = alias(self)
        t._put(detached(t._array))
        return t if self._node is None else mark(t)

    @conversion
    def detach_(self) -> Tensor:
        """Detach this Tensor in place; it becomes a leaf that does not require grad."""
        if self._view is not None and self._view[1] is not None:
            raise GradientError("Can't detach views in-place. Use detach() instead.")
        if type(self._node) is AccumulateGrad:
            self._node.enabled = False
        if self._history is not None:
            self._node = None
        return self

    # Hooks

    @entry
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook(grad)` whenever the gradient of this Tensor is computed.

        A return value other than None replaces the gradient.
        """
        return RemovableHandle(extra(self._differentiated(_NO_HOOK)).hooks, hook)

    @entry
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(self)` after a gradient was accumulated into this leaf's `.grad`."""
        node = self._differentiated(_NO_HOOK)
        if type(node) is not AccumulateGrad:
            raise GradientError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        return RemovableHandle(extra(node).post_accumulate, hook)

    @entry
    def retain_grad(self) -> None:
        """Keep this Tensor's gradient in `.grad` although it is not a leaf."""
        node = self._differentiated("can't retain_grad on Tensor that has requires_grad=False.")
        if type(node) is not AccumulateGrad:
            cell = extra(node).retain = self._own_cell()
            cell.holder = ref(self)

    def _differentiated(self, message: str) -> Node:
        """The node that gets the gradient; raises with this message if there is none."""
        self._check()
        if self._node is None or self._history is None:
            raise GradientError(f"{message} Call its requires_grad_() first.")
        return self._node

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad()` was called on a Tensor that is not a leaf."""
        self._check()
        node = self._history
        return (
            node is not None
            and type(node) is not AccumulateGrad
            and getattr(getattr(node, "extra", None), "retain", None) is not None
        )

    __hash__ = object.__hash__

    __repr__ = showing.text
    _repr_html_ = showing.html

    @conversion
    def __copy__(self) -> Tensor:
        """A leaf on the same memory, with the same version counter and flag."""
        self._movable()
        if not self.is_leaf:
            raise RuntimeError(
                "only leaf Tensors can be copied by copy.copy(); use detach(), or clone() to "
                "keep the graph"
            )
        copied = self.detach()
        return copied if self._history is None else copied.requires_grad_()

    def _movable(self) -> None:
        """Raise if a transformation differentiates it: only operations copy the derivative, too."""
        if self._elem.run is not None and self._history is not None:
            raise RuntimeError(
                f"a Tensor that the transformation {self._elem.run.name!r} differentiates can "
                "be neither copied by copy.copy() nor pickled; clone() it"
            )

    @conversion
    def __reduce_ex__(self, protocol: Any) -> Any:
        self._movable()
        if not self.is_leaf or isinstance(self._array, Layer):
            raise RuntimeError("only leaf Tensors can be pickled; use detach() first")
        return _tensor_from_pickle, (self._array, self._history is not None)


def _tensor_from_pickle(array: Any, requires_grad: bool) -> Tensor:
    t = wrap(array)
    return t.requires_grad_() if requires_grad else t


# Pickles name this function, and files outlive the modules of a release.
_tensor_from_pickle.__module__ = "multigrad"


class View(Tensor):
    """A Tensor on the memory of another Tensor, its base; the two share a version counter.

    `_view` is its ViewSpec: the base, and how the view was made. `_seen` is the last change of the
    memory that it has seen. After a write through another Tensor it is brought up to date when
    it is next used (see memory/views.py).
    """

    __slots__ = ("_seen", "_view")
    _seen: int
    _view: ViewSpec

    @classmethod
    def _make(cls, array: Any, base: Tensor, step: Step) -> Self:
        t = _new(cls)
        t._array = array
        t._elem = base._elem.beside(array)
        t._cell = base._cell
        t._seen = last_change(base._cell)
        t._node = None
        t._view = base, *step
        return t

    def _renew(self) -> bool:
        """Take array and history from the base, which is up to date.

        Returns whether the history could follow (see memory/views.py).
        """
        raise NotImplementedError

    def _again(self, base: Any, step: Step) -> View:
        """Another view of this value, with another base and step; its next use renews it."""
        t = View._make(self._array, base, step)
        t._seen = -1
        return t

    def _check(self) -> None:
        if (self._cell[-1] if self._cell else 0) != self._seen:
            refresh(self)
        if self._elem.layered:
            self._check_value()


class Data(View):
    """`x.data` of a library with immutable arrays. Writes reach x without changing its version."""

    __slots__ = ("_writes",)
    _quiet = True
    _writes: int

    @classmethod
    def _of(cls, base: Tensor) -> Data:
        t = cls._make(base._array, base, WHOLE)
        t._writes = 0
        return t

    @property
    def _version(self) -> int:
        return self._writes


# the names that Python's messages show
View.__name__ = Data.__name__ = View.__qualname__ = Data.__qualname__ = "Tensor"


def detached(x: Any) -> Any:
    """A value as a constant at every level."""
    return x.detach() if isinstance(x, Layer) else x  # type: ignore[attr-defined]


def alias(base: Tensor) -> Tensor:
    """A view of all of `base` as a constant: same memory, same version counter, no history."""
    base._look()
    if (
        base._elem.run is None
        and type(base) is View
        and base._view[1] is None
        and base._cell is base._view[0]._cell
    ):
        base = base._view[0]
        base._look()
    return View._make(base._array, base, WHOLE)


def peeled(x: Any, level: int) -> Any:
    """`x` without layers of running transformations above `level`, as far as it is constant there.

    `x` may have such layers because it was combined with an array made inside of these
    transformations.
    """
    while isinstance(x, Tensor) and x._elem.level > level and x._elem.run is not None:
        x._check()
        if x._history is not None:
            break
        x = x._array
    return x


def strip(x: Any) -> Any:
    """A constant Tensor of the base level as its raw array; any other value unchanged.

    If the Tensor were kept, results at the next outer level would have an unnecessary layer.
    """
    if isinstance(x, Tensor) and x._elem.run is None:
        if x._view is not None:
            x._check()
        if x._node is None:
            return x._array
    return x


def constant(x: Any) -> Any:
    """A value of a lower level, or any other object, as a node of a higher level may save it."""
    x = strip(x)
    return x._frozen() if isinstance(x, Tensor) else x


def element_of(x: Any) -> Element:
    """The Element of an array, or of the raw arrays inside a layer. Raises TypeError for others."""
    if isinstance(x, Layer):
        elem: Element = x._elem.base
        return elem
    library = library_of(x)
    if library is None:
        raise TypeError(
            "expected an array of a known library or a Tensor, got "
            f"{type(x).__module__}.{type(x).__qualname__}. Wrap lists and scalars with "
            "multigrad.asarray; `python -m multigrad backends` lists the known libraries."
        )
    return library.element(x.dtype)


def checked(t: Tensor) -> Tensor:
    """Return `t`, a new Tensor. Raises TypeError if Tensors cannot hold its dtype."""
    if t._elem.refusal is not None:
        raise TypeError(t._elem.refusal)
    return t


def wrap(x: Any) -> Tensor:
    """A constant Tensor of the base level around a raw array."""
    t = _new(Tensor)
    t._array = x
    t._elem = element_of(x)
    t._cell = []
    t._node = None
    return t


def lifted(x: Any) -> Any:
    """A raw array, or each one in a tuple, as a constant Tensor: rules get layers only."""
    if type(x) is tuple:
        return tuple(map(lifted, x))
    return x if isinstance(x, Layer) or not is_array(x) else wrap(x)


def wrap_in(run: Transformation | None, level: int, x: Any) -> Tensor:
    """A constant Tensor around `x` at a level of a transformation, or at the base level if none."""
    t = wrap(x)
    if run is not None:
        t._elem = t._elem.at(run, level, isinstance(x, Layer))
    return t


def wrap_at(like: Tensor, x: Any) -> Tensor:
    """A constant Tensor of the level of `like` around `x`."""
    elem = like._elem
    return wrap(x) if elem.run is None else wrap_in(elem.run, elem.level, x)


def wrapped(like: Tensor, x: Any) -> Any:
    """A layer of the level of `like` or a higher one; anything else is wrapped, see `wrap_at`."""
    return x if isinstance(x, Layer) and x._level >= like._elem.level else wrap_at(like, x)


def wrap_new(x: Any) -> Tensor:
    """A constant Tensor around `x` at the level of the innermost transformation, or the base."""
    if len(modules) != seen[0]:
        register_clients()
    run = level.running()
    if isinstance(x, Layer):
        if x._level > (1 if run is None else run.tensor_level):
            raise GradientError(
                f"a {kind(x)} cannot become the value of a Tensor from outside of its "
                "transformation; detach() it first, or use the functions of multigrad.func"
            )
        x = x._frozen()
    return checked(wrap(x) if run is None else wrap_in(run, run.tensor_level, x))
