"""The graph and its saved values, as torch.autograd.graph."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import ref

from .. import observe
from ..backward.hooks import Group
from ..core.graph import GradientEdge, RemovableHandle, edge
from ..core.graph import Node as _Node
from ..core.level import Layer
from ..core.tensor import Tensor, alias
from ..custom.node import BackwardCFunction
from ..errors import kind
from ..memory import saved
from ..memory.old_values import OldValues
from ..memory.views import written
from ..tracebacks import entry

if TYPE_CHECKING:
    from ..tools.graphs.drawing import GraphPicture, draw
    from ..tools.graphs.memory import MemoryReport, memory_report
    from ..tools.graphs.provenance import label, record_lines
    from ..tools.graphs.text import print_graph

__all__ = [
    "GradientEdge",
    "GraphPicture",
    "MemoryReport",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "draw",
    "get_gradient_edge",
    "increment_version",
    "label",
    "memory_report",
    "print_graph",
    "record_lines",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


_TOOLS = {
    "GraphPicture": "drawing",
    "MemoryReport": "memory",
    "draw": "drawing",
    "label": "provenance",
    "memory_report": "memory",
    "print_graph": "text",
    "record_lines": "provenance",
}


def _tool(name: str) -> Any:
    """A tool for graphs, imported on first use, since most programs use none."""
    if name not in _TOOLS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    tool = globals()[name] = getattr(import_module(f"multigrad.tools.graphs.{_TOOLS[name]}"), name)
    return tool


if not TYPE_CHECKING:  # type checkers know the names above
    __getattr__ = _tool


def __dir__() -> list[str]:
    return sorted({*__all__, "__all__", "__doc__"})


class Node(ABC):
    """The type of `grad_fn`: a recorded operation, or the ctx of a Function.

    Use it for isinstance. It declares the attributes that all nodes have.
    """

    @abstractmethod
    def name(self) -> str:
        """Return the name of the node.

        It is `SinBackward` for the node of `sin`, `<Function>Backward` for that of a Function, and
        `AccumulateGrad` for that of a leaf.
        """

    @property
    @abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that made the operands, each with the number of its output.

        The entry of a constant is (None, 0).
        """

    @property
    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes about this node."""

    @abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node has run.

        If it returns a tuple, the tuple replaces `grad_inputs`.
        """

    @abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs.

        If it returns a tuple, the tuple replaces `grad_outputs`.
        """


Node.register(_Node)
Node.register(BackwardCFunction)


class saved_tensors_hooks:
    """Context manager that keeps `pack_hook(tensor)` in place of each saved array.

    pack_hook    called when an operation saves an array, with a Tensor that has the history of the
                 array. It must not modify the Tensor
    unpack_hook  called with the packed value whenever the array is needed. It must return a Tensor
                 equal to the packed one

    The innermost pair is active, on the thread or task that entered it. Other threads and tasks
    have no overhead. A pair that is entered inside of a transformation, a backward pass or a
    Function, and is not left there, ends with it. Versions of packed arrays are not checked. Unlike
    PyTorch's, the hooks may be used inside of a transformation of multigrad.func. There they
    receive the raw arrays, each as a constant Tensor.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError("saved_tensors_hooks takes two functions, pack_hook and unpack_hook")
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self._entered: list[saved.HookPair] = []

    def __enter__(self) -> None:
        pair = saved.HookPair(self.pack_hook, self.unpack_hook)
        self._entered.append(pair)
        try:
            saved.enter(pair)
        except BaseException:  # `__exit__` is not called
            self._entered.pop()
            raise

    def __exit__(self, *exc: object) -> None:
        observe.leave(self._entered[-1])
        self._entered.pop()


class save_on_cpu(saved_tensors_hooks):
    """Context manager that keeps saved arrays in the memory of the host.

    The arrays return to their device when they are needed.

    pin_memory, device_type  accepted as in PyTorch, without effect: the standard has no pinned
                             memory, and multigrad remembers the device of an array

    Arrays of a backend whose memory is that of the host are kept unchanged, and so are the tracers
    of a running trace.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(_to_host, _from_host)


def _to_host(t: Tensor) -> tuple[Any, Any]:
    where = t.device
    if isinstance(t._array, Layer) or where is None or "cpu" in str(where).lower():
        return t.data, None
    return alias(t).to_backend("numpy"), (t._elem.library.name, where)


def _from_host(packed: tuple[Any, Any]) -> Tensor:
    t, origin = packed
    back: Tensor = t if origin is None else t.to_backend(origin[0]).to_device(origin[1])
    return back


class disable_saved_tensors_hooks(contextlib.ContextDecorator):
    """Context manager in which entering `saved_tensors_hooks` raises RuntimeError.

    The argument is the message of the error.
    """

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message
        self._before: list[str | None] = []

    def __enter__(self) -> None:
        if saved.any_in_force():
            raise RuntimeError(self.error_message)
        before = saved.disabled.get()
        self._before.append(before)
        try:
            saved.forbid(self.error_message)
        except BaseException:  # an interrupt, after which `__exit__` is not called
            saved.forbid(before)
            raise

    def __exit__(self, *exc: object) -> None:
        saved.forbid(self._before[-1])  # first, since an interrupt may come after any call
        self._before.pop()


class allow_mutation_on_saved_tensors(contextlib.ContextDecorator):
    """Context manager in which saved arrays may be modified: the graph keeps the old values.

    A write copies the arrays on its memory that the graph has saved in this context. Saving costs
    only a note, and libraries of immutable arrays need no copies. The graph may be differentiated
    after the context, too, with the values that it kept. A write after the context, or on another
    thread, is an error in the pass, as without the context.
    """

    _keeper: OldValues | None = None

    def __enter__(self) -> None:
        for observer in observe.watching():
            if isinstance(observer, OldValues):
                holder = observer.holder()
                if holder is not None and holder._keeper is observer:
                    raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
                observe.leave(observer)  # an interrupt has ended its `__exit__`
        keeper = self._keeper = OldValues()
        keeper.holder = ref(self)
        saved.enter(keeper)

    def __exit__(self, *exc: object) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            observe.leave(keeper)


@entry
def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the place in the graph at which the gradient of `tensor` arrives.

    `backward` and `grad` accept it in place of the Tensor.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"get_gradient_edge(): argument 'tensor' must be a Tensor, not {kind(tensor)}. Only a "
            "Tensor has a place in the graph."
        )
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    node = tensor._node
    assert node is not None
    saved.note_output(tensor)
    return GradientEdge(*edge(node))


@entry
def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Report a write to the memory of a Tensor, or of several, that multigrad did not see."""
    if not isinstance(tensor, (Tensor, Iterable)):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        if not isinstance(t, Tensor):
            raise RuntimeError(
                "increment_version expects each element of the iterable to be a tensor"
            )
        written(t)


class _MultiHandle(RemovableHandle):
    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


@entry
def register_multi_grad_hook(
    tensors: Tensor | Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once in each backward pass that reaches some of `tensors`.

    mode  "all": after the last of their gradients, with a list of the gradients, which has None for
          Tensors that the pass does not reach. "any": after the first gradient, with that gradient
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes = []
    for t in [tensors] if isinstance(tensors, Tensor) else tensors:
        if not isinstance(t, Tensor):
            raise TypeError(
                "register_multi_grad_hook(): argument 'tensors' must be a Tensor or a sequence of "
                f"Tensors, but contains {kind(t)}. Only a Tensor has a place in the graph."
            )
        t._check()
        if t._node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        nodes.append(t._node)
    return _MultiHandle(Group(nodes, fn, mode == "all").handles)
