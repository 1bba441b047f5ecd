"""Calls of hooks, in the order of PyTorch.

First the hooks of a Tensor run in the order of registration, and retain_grad stores the result.
Then the prehooks of its node, the node, and its posthooks run. The node of a leaf accumulates; the
hooks after the accumulation come before the posthooks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import locks
from ..core.graph import GradCell, Node, NodeHooks, OutputNode, RemovableHandle, extra, watch
from ..core.level import Layer, innermost
from ..core.passes import Pass, current
from ..core.tensor import Tensor, element_of, peeled, wrap_at, wrapped
from ..errors import GradientError, kind

_retaining = locks.new_lock()


def run_hooks(e: NodeHooks, g: Any, p: Pass) -> Any:
    """Pass the gradient of a Tensor (None if unused) through its hooks; store it if retained."""
    if not e.hooks and e.retain is None:
        return g
    t = _shown(g, p)
    for hook in tuple(e.hooks.values()):
        if (result := hook(t)) is not None:
            t = _checked(hook, result, t)
    # a layer of a higher level would not outlive its transformation
    if e.retain is not None and isinstance(t, Tensor):
        cell, stored = e.retain, False
        with _retaining:
            while not stored:
                before = cell.grad
                total = _own(t, cell, p) if before is None else before + t
                if cell.grad is before:  # no signal handler has run a pass meanwhile
                    cell.grad = total
                    stored = True
    return _hidden(t, p)


def run_prehooks(e: NodeHooks, g: Any, p: Pass) -> Any:
    """Pass the gradients of all outputs of a node, one or a tuple, through its prehooks."""
    grads = tuple(_shown(x, p) for x in (g if isinstance(g, tuple) else (g,)))
    for hook in tuple(e.prehooks.values()):
        grads = _replaced(hook, hook(grads), grads)
    hidden = tuple(_hidden(t, p) for t in grads)
    return hidden if isinstance(g, tuple) else hidden[0]


def run_posthooks(node: Node, e: NodeHooks, gradients: Any, g: Any, p: Pass) -> Any:
    """Pass the gradients that a rule returned, None for constants, through the posthooks."""
    single = node.next != () and node.rule.single
    computed = iter((gradients,) if single else gradients)
    flags = [parent is not None for parent, _ in node.next_functions]
    inputs = tuple(_shown(next(computed), p) if flag else None for flag in flags)
    outputs = tuple(_shown(x, p) for x in (g if isinstance(g, tuple) else (g,)))
    for hook in tuple(e.posthooks.values()):
        inputs = _replaced(hook, hook(inputs, outputs), inputs)
    result = tuple(_hidden(t, p) for t, flag in zip(inputs, flags, strict=True) if flag)
    return result[0] if single else result


def run_post_accumulate(e: NodeHooks, leaf: Tensor) -> None:
    """Call the hooks that follow the accumulation into a leaf, with the leaf; they return None."""
    for hook in tuple(e.post_accumulate.values()):
        if hook(leaf) is not None:
            raise GradientError("Tensor post accumulate grad hooks should return None.")


def _shown(g: Any, p: Pass) -> Any:
    """A gradient as hooks see it."""
    return None if g is None else wrapped(p.like, g)


def _hidden(t: Any, p: Pass) -> Any:
    """A gradient as the pass uses it. A hook may have written it into an array that it made."""
    t = peeled(t, p.like._level)
    if p.create_graph or not isinstance(t, Tensor) or t._level != p.like._level:
        return t
    t._look()  # a hook may return a view that was written since
    return t._array


def _own(t: Tensor, cell: GradCell, p: Pass) -> Tensor:
    """The gradient that retain_grad stores, which must not share memory with that in the pass."""
    if isinstance(t._array, Layer):
        return t
    holder = cell.holder() if cell.holder is not None else None
    library = t._elem.library
    array = library.take_ownership(
        library.xp, t._array, None if holder is None else innermost(holder)
    )
    return t.clone() if p.create_graph else wrap_at(t, array)


def _replaced(hook: Any, result: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
    if result is None:
        return before
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{_kind(result)}'")
    if len(result) != len(before):
        raise GradientError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got "
            f"{len(result)}, but expected {len(before)})"
        )
    return tuple(
        new if new is None or new is old else _checked(hook, new, old)
        for new, old in zip(result, before, strict=True)
    )


def _checked(hook: Any, result: Any, before: Tensor | None) -> Tensor:
    if before is None:
        raise GradientError("can't replace a None gradient with a non-None value")
    if not isinstance(result, Layer):
        raise TypeError(
            f"expected Variable, but hook returned '{_kind(result)}' (the hook {_name(hook)!r})"
        )
    if tuple(result.shape) != tuple(before.shape):  # type: ignore[attr-defined]
        raise GradientError(f"hook '{_name(hook)}' has changed the size of value")
    if element_of(result) is not before._elem.base:
        raise GradientError(
            f"hook '{_name(hook)}' has changed the type of value (was {before._elem.library.name} "
            f"{before.dtype} got {element_of(result).library.name} {element_of(result).dtype})"
        )
    return result  # type: ignore[return-value]


def _kind(x: Any) -> str:
    return "Tensor" if isinstance(x, Tensor) else kind(x)


def _name(hook: Any) -> str:
    name: str = getattr(hook, "__name__", type(hook).__name__)
    return name


class Group:
    """A hook on several Tensors, called once in each pass.

    every  True: called after the last of their gradients that the pass reaches, with a list (None
           for the others); False: called with the first gradient
    """

    def __init__(self, nodes: list[Node], function: Callable[[Any], None], every: bool) -> None:
        self.function = function
        self.every = every
        self.nodes = nodes
        self.handles = [
            RemovableHandle(extra(node).hooks, partial(self._arrived, i))
            for i, node in enumerate(nodes)
        ]
        for node in nodes:
            watch(node.next if type(node) is OutputNode else node)

    def _arrived(self, number: int, t: Any) -> None:
        """Note that the gradient of Tensor `number` has arrived in the pass that runs."""
        p = current.get()
        # registered while this pass was running: it is called from the next pass on
        if p is None or not hasattr(p, "reached"):
            return
        state = p.groups.get(self)
        if state is None:
            pending = sum(
                1
                for node in self.nodes
                if (node.next if type(node) is OutputNode else node) in p.reached
            )
            state = p.groups[self] = [pending if self.every else 1, [None] * len(self.nodes)]
        state[0] -= 1
        state[1][number] = t
        if state[0] == 0:
            self.function(state[1] if self.every else t)
