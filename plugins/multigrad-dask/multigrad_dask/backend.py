"""The backend of Dask: its namespace, and the functions that it lacks.

Arrays stay lazy, and gradients have the chunks of their arguments.
"""

from __future__ import annotations

from typing import Any

import array_api_compat.dask.array as xp
import dask.array as da

import multigrad as mg

from . import collection, functions, matrices, unknown

UNKNOWN = (
    "the size of the result is unknown (nan) until it is computed, so that it is none of "
    "the sizes that the suite compares with"
)
ARRAYS = (
    "Dask takes one integer array of one dimension in a key: there is nothing of its own "
    "to compare with"
)
EXEMPTIONS: dict[str, str] = {
    **{
        f"getitem/{check}/{label}": UNKNOWN
        for check in ("dual", "jvp", "nested", "second", "vjp", "vmap*")
        for label in ("mask*", "no-element")
    },
    "getitem/override/*arrays": ARRAYS,
    **{
        f"unindex/{check}/{label}": UNKNOWN
        for check in ("jvp", "nested", "second", "vjp")
        for label in ("mask", "no-element")
    },
    **{
        f"unindex/vmap_{check}/{label}": UNKNOWN
        for check in ("pullback", "vjp")
        for label in ("mask*", "no-element")
    },
    **{
        f"unique_*/{check}/*": UNKNOWN
        for check in ("dual", "jvp", "layout", "nested", "second", "vjp", "vmap_pullback")
    },
}


def make() -> mg.Backend:
    """Make the backend of Dask arrays.

    They are lazy: operations and derivatives compute nothing; `bool(t)` and `float(t)` compute.
    """
    return mg.Backend(
        "dask",
        xp,
        (da.Array,),
        # A write gives a Dask array another graph, which its views do not see. multigrad's
        # treatment of immutable arrays has NumPy's semantics.
        capabilities=mg.Capabilities(mutable=False, lazy=True),
        functions=functions.FUNCTIONS | matrices.FUNCTIONS,
        kernels={
            "device": device,
            "function": unknown.function,
            "take_ownership": take_ownership,
            "place_like": place_like,
            "rule": unknown.rule,
            "to_numpy": to_numpy,
        },
        rules=functions.RULES,
        attributes=collection.ATTRIBUTES,
        exemptions=EXEMPTIONS,
    )


def device(xp: Any, x: Any) -> str:
    """The device of every array; only the scheduler knows where the chunks are."""
    return "cpu"


def place_like(xp: Any, g: Any, like: Any) -> Any:
    """`g` in the chunks of `like`."""
    if (
        not isinstance(like, da.Array)
        or not isinstance(g, da.Array)
        or g.chunks == like.chunks
        or unknown.any_in(g.shape, like.shape)
    ):
        return g
    return g.rechunk(like.chunks)


def take_ownership(xp: Any, g: Any, like: Any) -> Any:
    """`g` itself, in the chunks of `like`: a graph is never written.

    A write to a Dask array gives that object another graph.
    """
    return place_like(xp, g.copy(), like)


def to_numpy(xp: Any, x: Any, copy: bool | None = None) -> Any:
    """Compute `x`."""
    if copy is False:
        raise ValueError(
            "to_numpy(copy=False): a Dask array has no memory before it is computed. Leave out "
            "copy=False."
        )
    return x.compute()
