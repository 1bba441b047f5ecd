"""Evaluations recorded by user-defined nodes: HIPS autograd's `trace` and `Node`, by a layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from multigrad.extend import Layer, Op, Transform, carry_out, entry, is_array, rebind_augmented

from .boxes import as_array, is_box, left, mapped
from .rules import Call

__all__ = ["Node", "trace"]

Function = Callable[..., Any]


class Node:
    """The record of an operation. Subclass it, and pass a root of that class to `trace`.

    A node is made for each operation whose arguments depend on the input: `__init__(value, fun,
    args, kwargs, parent_argnums, parents)`. `fun(*args, **kwargs)` recomputes the value, and
    `parents` are the nodes of the arguments at `parent_argnums`.
    """

    __slots__ = ()

    def __init__(
        self,
        value: Any,
        fun: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parent_argnums: tuple[int, ...],
        parents: tuple[Any, ...],
    ) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} must have an __init__(value, fun, args, kwargs, "
            "parent_argnums, parents)"
        )

    def initialize_root(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} must have an initialize_root()")

    @classmethod
    def new_root(cls, *args: Any, **kwargs: Any) -> Self:
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)
        return root


class Recorded(Layer):
    """An array with the node that computed it."""

    __slots__ = ("node",)

    @classmethod
    def apply(cls, op: Op, args: tuple[Any, ...], transform: Transform) -> Any:
        return _recorded(
            _function(op),
            args,
            {},
            transform,
            lambda values: carry_out(op, values),
            op.outputs != (),
        )

    @classmethod
    def apply_function(
        cls,
        name: str,
        inside: Callable[[Callable[[Any], Any]], Any],
        args: tuple[Any, ...],
        transform: Transform,
    ) -> Any:
        call = args[0]
        if not isinstance(call, Call):
            raise NotImplementedError(f"multigrad_autograd.tracer.trace: {name} is not a primitive")
        whole = call.filled(args[1:])
        node: list[Any] = []

        def noted(x: Any) -> Any:
            if not node:
                given = transform.unwrap(args[1:])
                node.append(
                    _node(left(x), call.function, call.filled(given), call.kwargs, whole, transform)
                )
            return cls.wrap(x, transform, node=node[0])

        if len(call.argnums) and not isinstance(call.output, (dict, list, tuple)):
            return inside(noted)
        raise NotImplementedError(f"multigrad_autograd.tracer.trace: {name} returns several arrays")

    def constant(self, array: Any) -> Self:
        raise TypeError(
            "multigrad_autograd.tracer.trace: a function that writes into arrays cannot be traced"
        )


def _node(
    value: Any,
    fun: Function,
    values: tuple[Any, ...],
    kwargs: dict[str, Any],
    args: tuple[Any, ...],
    transform: Transform,
) -> Any:
    """Return the node of an operation on `args`, whose values are `values`."""
    own = [
        (i, layer.node) for i, x in enumerate(args) if (layer := transform.layer_of(x)) is not None
    ]
    return type(own[0][1])(
        value, fun, values, kwargs, tuple(i for i, _ in own), tuple(node for _, node in own)
    )


def _recorded(
    fun: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    transform: Transform,
    run: Function,
    several: bool,
) -> Any:
    listed = [
        x for a in args if isinstance(a, tuple) for x in a if transform.layer_of(x) is not None
    ]
    values = transform.unwrap(args)
    out = run(values)
    if listed:  # each element of a list of arrays is an argument
        fun, args, values = _of_parts(fun, args), _parts(args), _parts(values)
    node = _node(out, fun, values, kwargs, args, transform)
    if not several:
        return Recorded.wrap(out, transform, node=node) if is_array(out) else out
    kind = type(node)
    takes = [kind(x, container_take, (out, i), {}, (0,), (node,)) for i, x in enumerate(out)]
    return tuple(Recorded.wrap(x, transform, node=n) for x, n in zip(out, takes, strict=True))


def container_take(container: Any, key: Any) -> Any:
    """Return an element of a container."""
    return container[key]


def _parts(args: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(x for a in args for x in (a if isinstance(a, tuple) else (a,)))


def _of_parts(fun: Function, args: Sequence[Any]) -> Function:
    """Return `fun` as a function of the elements of the lists among its arguments."""
    sizes = [len(a) if isinstance(a, tuple) else None for a in args]

    def function(*parts: Any) -> Any:
        following = iter(parts)
        return fun(
            *[
                next(following) if n is None else tuple([next(following) for _ in range(n)])
                for n in sizes
            ]
        )

    function.__name__ = fun.__name__
    return function


def _function(op: Op) -> Function:
    """Return an operation as a function of the values of all its parameters, by position."""

    def function(*args: Any) -> Any:
        if not any(map(is_array, _parts(args))):
            args = tuple(
                [
                    _array(a) if role != "plain" else a
                    for role, a in zip(op.roles.values(), args, strict=True)
                ]
            )
        return carry_out(op, args)

    function.__name__ = op.name.rpartition(".")[2]
    return function


def _array(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_array, x))
    return np.asarray(x) if isinstance(x, (int, float, complex)) else x


@entry
def trace(start_node: Any, fun: Function, x: Any) -> tuple[Any, Any]:
    """Call `fun(x)`, and return its output and the output's node.

    The node is None if the output does not depend on `x`.

    start_node  the root, which is the node of `x`; if `x` is a container, the nodes of its elements
                are derived from it
    """
    transform = Transform("trace")

    def enter(x: Any, node: Any) -> Any:
        if isinstance(x, (dict, list, tuple)):
            keys = list(x) if isinstance(x, dict) else range(len(x))
            made = [
                enter(x[k], type(start_node)(x[k], container_take, (x, k), {}, (0,), (node,)))
                for k in keys
            ]
            return dict(zip(keys, made, strict=True)) if isinstance(x, dict) else type(x)(made)
        array = (
            x
            if is_box(x)
            else as_array(x)
            if isinstance(x, (float, complex, np.inexact, np.ndarray))
            else None
        )
        return x if array is None else Recorded.wrap(array, transform, node=node)

    def run() -> tuple[Any, Any]:
        rebind_augmented()
        out = fun(enter(x, start_node))
        layer = transform.layer_of(out) if is_box(out) else None
        if layer is None:
            warnings.warn("Output seems independent of input.", stacklevel=5)
            return mapped(lambda y: transform.unwrap(y) if is_box(y) else y, out), None
        return left(transform.unwrap(layer)), layer.node

    return transform.call(run)  # type: ignore[no-any-return]
