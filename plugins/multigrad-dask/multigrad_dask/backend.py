"""The backend of Dask: its namespace, and the functions that it lacks.

Arrays stay lazy, and gradients have the chunks of their arguments.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import array_api_compat.dask.array as xp
import dask.array as da
import numpy as np

import multigrad as mg
from multigrad.errors import BackendError

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
        f"repeat/{check}/each-its-own*": UNKNOWN
        for check in ("dual", "jvp", "nested", "second", "vjp", "vmap_pullback")
    },
    **{
        f"unindex/{check}/{label}": UNKNOWN
        for check in ("jvp", "nested", "second", "vjp", "vmap_pullback", "vmap_vjp")
        for label in ("mask*", "no-element")
    },
    **{
        f"unique_*/{check}/*": UNKNOWN
        for check in ("dual", "jvp", "layout", "nested", "second", "vjp", "vmap_pullback")
    },
}

FORMS = ("fftn", "ifftn", "irfftn", "matrix_norm", "rfftn", "vector_norm")
"""Functions of which Dask's lack cases of the standard: multigrad has each in terms of others.

Dask's transforms take the lengths `s` for those of the first axes, and no axis twice. Its norms
take neither stacks of matrices nor empty vectors.
"""


def _without_forms(part: Any) -> Any:
    return SimpleNamespace(**{name: f for name, f in vars(part).items() if name not in FORMS})


class Namespace:
    """The names of array_api_compat.dask.array, except for FORMS."""

    __name__ = xp.__name__
    fft = _without_forms(xp.fft)
    linalg = _without_forms(xp.linalg)

    def __getattr__(self, name: str) -> Any:
        return getattr(xp, name)


def make() -> mg.Backend:
    """Make the backend of Dask arrays.

    They are lazy: operations and derivatives compute nothing; `bool(t)` and `float(t)` compute.
    """
    return mg.Backend(
        "dask",
        Namespace(),
        (da.Array,),
        # A write gives a Dask array another graph, which its views do not see. multigrad's
        # treatment of immutable arrays has NumPy's semantics.
        capabilities=mg.Capabilities(mutable=False, lazy=True),
        functions=functions.FUNCTIONS | matrices.FUNCTIONS,
        kernels={
            "admit": admit,
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


def admit(xp: Any, x: Any) -> None:
    """Raise for chunks that are not arrays of the standard.

    A mean of masked chunks, for example, leaves out elements that derivative rules count.
    """
    kind = type(x._meta)
    if kind is np.ndarray or issubclass(kind, np.generic):
        return
    if kind.__module__.partition(".")[0] == "cupy":
        return
    if issubclass(kind, np.ma.MaskedArray):
        raise BackendError(
            "backend 'dask': the chunks of this Dask array are masked arrays, of which derivative "
            "rules would count every element. Pass the values and the mask apart, as in "
            "multigrad.sum(multigrad.where(da.ma.getmaskarray(x), 0.0, da.ma.getdata(x)))."
        )
    raise BackendError(
        f"backend 'dask': the chunks of this Dask array are of the type "
        f"{kind.__module__}.{kind.__qualname__}, which may not follow the Array API standard. "
        "Convert them to plain arrays first: x.map_blocks(numpy.asarray)."
    )


def device(xp: Any, x: Any) -> str:
    """The device of every array; only the scheduler knows where the chunks are."""
    return "cpu"


def place_like(xp: Any, g: Any, like: Any) -> Any:
    """`g` in the chunks of `like`.

    Under `vmap`, either of them may have one more axis, that of the examples.
    """
    if (
        not isinstance(like, da.Array)
        or not isinstance(g, da.Array)
        or g.chunks == like.chunks
        or g.shape != like.shape
        or unknown.any_in(g.shape)
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
