"""ravel_pytree: all arrays of a pytree as one vector, for algorithms that work on vectors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import prod
from typing import Any

from .. import tree as trees
from ..core.element import SCALARS, is_array, mixed
from ..core.tensor import element_of
from ..dispatch.creation import default_library
from ..layers.transforming import namespace
from ..tracebacks import entry
from .variables import R


@entry
def ravel_pytree(tree: R) -> tuple[Any, Callable[[Any], R]]:
    """Return all elements of the arrays of `tree` as one vector, and the inverse function.

    tree  arrays, Tensors, or a nested structure of these, of one library

    Returns (vector, unravel). The vector has shape (n,) and the dtype that the arrays promote to.
    `unravel(vector)` has the structure of `tree`, with arrays of the original shapes and dtypes.
    Both are differentiable, and unravel takes any vector of n elements of that library: raw arrays
    give raw arrays, Tensors give Tensors. A tree without arrays gives a vector without elements, of
    the default backend.

    Raises TypeError if a leaf is not an array, and MixedBackendsError for arrays of two libraries.
    unravel raises ValueError for a vector of another shape. Corresponds to
    jax.flatten_util.ravel_pytree.
    """
    return raveled(tree, "ravel_pytree")


def raveled(tree: Any, caller: str) -> tuple[Any, Callable[[Any], Any]]:
    """`ravel_pytree`, with the name of the public function for messages."""
    leaves, structure = trees.flattened(tree)
    for name, x in trees.named_leaves(tree):
        if type(x) in SCALARS or not is_array(x):
            raise TypeError(
                f"{caller}: expected arrays, or nested dictionaries, lists and tuples of "
                f"arrays, but a leaf is a {type(x).__name__}{f', at {name}' if name else ''}"
            )
    shapes = [tuple(x.shape) for x in leaves]
    dtypes = [x.dtype for x in leaves]
    ends = list(accumulate(map(prod, shapes)))
    size = ends[-1] if ends else 0

    def unravel(vector: Any) -> Any:
        if tuple(vector.shape) != (size,):
            raise ValueError(
                f"unravel: expected a vector of shape ({size},), got shape {tuple(vector.shape)}"
            )
        xp = namespace_of([vector], "unravel")
        parts = (
            [vector]
            if len(ends) == 1
            else [vector[end - prod(shape) : end] for end, shape in zip(ends, shapes, strict=True)]
        )
        return trees.built(
            structure,
            [
                cast(xp, xp.reshape(part, shape), dtype)
                for part, shape, dtype in zip(parts, shapes, dtypes, strict=True)
            ],
        )

    if not leaves:
        return default_library().xp.zeros((0,)), unravel
    xp = namespace_of(leaves, caller)
    dtype = dtypes[0] if dtypes.count(dtypes[0]) == len(dtypes) else xp.result_type(*dtypes)
    flat = [cast(xp, xp.reshape(x, (-1,)), dtype) for x in leaves]
    return flat[0] if len(flat) == 1 else xp.concat(flat), unravel


def cast(xp: Any, x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else xp.astype(x, dtype)


def namespace_of(arrays: list[Any], caller: str) -> Any:
    """The namespace for Tensors if one is among the arrays, else for raw arrays.

    Raises MixedBackendsError for arrays of two libraries.
    """
    library = element_of(arrays[0]).library
    for x in arrays:
        if element_of(x).library is not library:
            raise mixed(caller, library, element_of(x).library)
    return namespace(*arrays)
