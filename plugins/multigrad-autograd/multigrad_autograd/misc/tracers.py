"""Functions whose evaluation is recorded once and then replayed: `const_graph`, `full_graph`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from multigrad.extend import entry
from multigrad_autograd.tracing import Node, trace
from multigrad_autograd.util import subvals, toposort
from multigrad_autograd.wrap_util import wraps

__all__ = ["ConstGraphNode", "FullGraphNode", "const_graph", "const_graph_unary", "full_graph"]

Function = Callable[..., Any]


class ConstGraphNode(Node):
    """A node that recomputes its value from the values of its parents."""

    __slots__ = ("_argnums", "_args", "_fun", "_kwargs", "parents")

    @entry
    def __init__(
        self,
        value: Any,
        fun: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parent_argnums: tuple[int, ...],
        parents: tuple[Any, ...],
    ) -> None:
        self.parents = parents
        self._argnums = parent_argnums
        self._args = subvals(args, [(i, None) for i in parent_argnums])
        self._fun = fun
        self._kwargs = kwargs

    def initialize_root(self) -> None:
        self.parents = ()

    def partial_fun(self, values: Iterable[Any]) -> Any:
        """Return the value of the node for these values of the parents."""
        return self._fun(
            *subvals(self._args, zip(self._argnums, values, strict=True)), **self._kwargs
        )


@entry
def const_graph_unary(fun: Function) -> Function:
    """Return a function of one argument that calls `fun` once, and then replays its operations."""
    order: list[ConstGraphNode] = []

    def replayed(x: Any) -> Any:
        if not order:
            out, end = trace(ConstGraphNode.new_root(), fun, x)
            if end is None:
                raise ValueError("Output is independent of input")
            order.extend(reversed(list(toposort(end))))
            return out
        values = {order[0]: x}
        for node in order[1:]:
            values[node] = node.partial_fun([values[p] for p in node.parents])
        return values[order[-1]]

    return replayed


@entry
def const_graph(fun: Function, *args: Any, **kwargs: Any) -> Function:
    """Return `fun` with some arguments fixed, as a function of the others.

    It calls `fun` once, and then replays the recorded operations.
    """
    bound = partial(fun, *args, **kwargs)
    replayed = const_graph_unary(lambda given: bound(*given))

    @wraps(fun)
    def of_the_others(*given: Any) -> Any:
        return replayed(given)

    return of_the_others


class FullGraphNode(Node):
    """A node that stores its value, and the function, arguments and parents that produced it."""

    __slots__ = ("recipe", "value")

    @entry
    def __init__(
        self,
        value: Any,
        fun: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parent_argnums: tuple[int, ...],
        parents: tuple[Any, ...],
    ) -> None:
        self.value = value
        self.recipe: tuple[Any, ...] = (
            fun,
            args,
            kwargs,
            list(zip(parent_argnums, parents, strict=True)),
        )

    def initialize_root(self) -> None:
        self.value = None
        self.recipe = (lambda x: x, (), {}, [])


@entry
def full_graph(fun: Function, *args: Any, **kwargs: Any) -> Any:
    """Return the node of the output of `fun(*args, **kwargs)`."""
    return trace(FullGraphNode.new_root(), lambda given: fun(*given, **kwargs), args)[1]
