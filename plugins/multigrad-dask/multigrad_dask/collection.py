"""Tensors as Dask collections: `dask.compute(t)`, `dask.persist(t)`, `t.visualize()`.

`compute` returns constants: arrays of the chunks' library, as for a Dask array. `persist` and
`dask.optimize` return a Tensor with the persisted array and the history of the original Tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dask
import dask.array as da

import multigrad as mg


class Persist(mg.autograd.Function):
    """A Tensor with its value replaced by an equal one."""

    @staticmethod
    def forward(ctx: Any, x: Any, array: da.Array) -> Any:
        return mg.asarray(array)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        return t


def array_of(t: Any) -> da.Array:
    """The Dask array of a Tensor.

    Raises AttributeError for a Dual, a batch, and a Tensor that holds one. These consist of several
    arrays, so Dask passes them through unchanged.
    """
    x = t.array if isinstance(t, mg.Tensor) else None
    if isinstance(x, da.Array):
        return x
    raise AttributeError(
        f"a {type(t).__name__} inside func.jvp or func.vmap is not a Dask collection: it consists "
        "of several arrays. Compute the result of the transformation."
    )


def rebuilt(t: Any, rebuild: Callable[..., da.Array], state: tuple[Any, ...]) -> Callable[..., Any]:
    """Make the Tensor that replaces `t`, from its persisted graph."""

    def tensor(graph: Any, *, rename: Any = None) -> Any:
        array = rebuild(graph, *state, rename=rename)
        return Persist.apply(t, array) if t.requires_grad else mg.asarray(array)

    return tensor


def persisted(t: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    rebuild, state = array_of(t).__dask_postpersist__()
    return rebuilt(t, rebuild, state), ()


def token(t: Any) -> Any:
    """The token of a Tensor as a collection.

    Two Tensors with the same array but different histories are different collections, and a Tensor
    differs from its array.
    """
    return "multigrad.Tensor", array_of(t).name, id(t) if t.requires_grad else None


def of_array(name: str) -> Callable[[Any], Any]:
    return lambda t: getattr(array_of(t), name)


def method(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The attribute that is `function` bound to the Tensor.

    It exists if the Tensor holds a Dask array.
    """

    def attribute(t: Any) -> Any:
        array_of(t)
        return lambda: function(t)

    return attribute


def _one(function: Callable[..., Any]) -> Callable[[Any], Any]:
    def attribute(t: Any) -> Any:
        array_of(t)
        return lambda **options: function(t, **options)[0]

    return attribute


ATTRIBUTES: Mapping[str, Callable[[Any], Any]] = {
    **{
        name: of_array(name)
        for name in (
            "__dask_graph__",
            "__dask_keys__",
            "__dask_layers__",
            "__dask_optimize__",
            "__dask_postcompute__",
            "__dask_scheduler__",
            "chunks",
            "visualize",
        )
    },
    "__dask_postpersist__": method(persisted),
    "__dask_tokenize__": method(token),
    "compute": _one(dask.compute),
    "persist": _one(dask.persist),
}
