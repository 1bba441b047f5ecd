"""func.tree: nested structures of arrays, taken apart, made anew and computed with.

Parameters, gradients, states of optimizers are such trees.

A tree is what `multigrad.tree` knows: dictionaries, lists, tuples, named tuples, dataclasses, None,
and what `func.register_pytree` made a container; anything else is a leaf. Dictionaries keep the
order of their keys. Arrays may be raw or Tensors, or layers inside transformations, of any backend.
The names and the order of arguments are those of jax.tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import tree as trees
from ..core.element import SCALARS, is_array, mixed
from ..core.level import Layer
from ..core.tensor import element_of
from ..dispatch.creation import default_library
from ..tree import Structure
from .ravel import raveled
from .variables import R

__all__ = [
    "Structure",
    "all_finite",
    "flatten",
    "global_norm",
    "leaves",
    "map",
    "ravel",
    "structure",
    "unflatten",
]


def map(function: Callable[..., Any], tree: R, *rest: R) -> R:
    """The structure of `tree` with `function(leaf, *others)` in the place of each leaf; the others
    are the leaves of `rest` at the same place.

    Each of `rest` must have the structure of `tree`: ValueError says where it has not. Dictionaries
    go with each other by key, whatever the order; lists, tuples and named tuples by position. As
    jax.tree.map, but that each of `rest` may have leaves only where `tree` has.
    """
    if not callable(function):
        raise TypeError(
            f"tree.map: the first argument must be a function, not {type(function).__name__}"
        )
    if not rest:
        only: R = trees.replaced(function, tree)
        return only
    first, structure = trees.flattened(tree)
    columns = [
        first,
        *(
            _fitted(
                structure, other, f"tree.map: tree {i} must have the structure of the first one"
            )
            for i, other in enumerate(rest, 2)
        ),
    ]
    out: R = trees.built(structure, [function(*row) for row in zip(*columns, strict=True)])
    return out


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of a tree in order, and its structure, of which `unflatten` makes such a tree.

    As jax.tree.flatten.
    """
    return trees.flattened(tree)


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """A tree of that structure with these leaves, which may be anything.

    Raises ValueError where their number is another. As jax.tree.unflatten.
    """
    if not isinstance(structure, Structure):
        raise TypeError(
            "tree.unflatten: expected a structure, as tree.flatten and tree.structure return "
            f"it, not {type(structure).__name__}"
        )
    given = list(leaves)
    if len(given) != (n := trees.size(structure)):
        raise ValueError(
            f"tree.unflatten: the structure has {n} leaves, but {len(given)} were given"
        )
    return trees.built(structure, given)


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree in order. As jax.tree.leaves."""
    return trees.leaves(tree)


def structure(tree: Any) -> Structure:
    """What is left of a tree without its leaves.

    Structures of the same containers are equal. As jax.tree.structure.
    """
    return trees.flattened(tree)[1]


def ravel(tree: R) -> tuple[Any, Callable[[Any], R]]:
    """The elements of all arrays of a tree as one vector, and the function that makes such a tree
    of a vector: see `func.ravel_pytree`.
    """
    return raveled(tree, "tree.ravel")


def global_norm(tree: Any) -> Any:
    """The Euclidean norm of all elements of a tree: the square root of the sum of the squares of
    their absolute values.

    tree  arrays of floating dtypes of one library, real or complex

    Returns a real 0-d array of the dtype that the arrays promote to; 0 of the default backend for a
    tree without arrays. Differentiable, with the gradient 0 where all elements are 0. No square
    overflows that a single array's `linalg.vector_norm` does not. As optax.tree.norm.
    """
    found = _arrays(tree, "tree.global_norm")
    if not found:
        return default_library().xp.zeros(())
    for name, x in found:
        if not element_of(x).floating:
            raise TypeError(
                f"tree.global_norm: expected floating dtypes, but the leaf{_at(name)} is of "
                f"dtype {x.dtype}"
            )
    xp = _namespace(found)
    norms = [xp.linalg.vector_norm(x) for _, x in found]
    if len(norms) == 1:
        return norms[0]
    dtype = xp.result_type(*norms)
    return xp.linalg.vector_norm(
        xp.stack([x if x.dtype == dtype else xp.astype(x, dtype) for x in norms])
    )


def all_finite(tree: Any) -> Any:
    """Whether no element of a tree is nan or infinite: a 0-d boolean array, True for a tree without
    arrays.

    tree  arrays of one library; those of booleans and integers are finite
    """
    found = _arrays(tree, "tree.all_finite")
    if not found:
        return default_library().xp.asarray(True)
    xp = _namespace(found)
    finite = [xp.all(xp.isfinite(x)) for _, x in found if element_of(x).floating]
    if not finite:
        return xp.asarray(True)
    result = finite[0]
    for x in finite[1:]:
        result = xp.logical_and(result, x)
    return result


def _arrays(tree: Any, caller: str) -> list[tuple[str, Any]]:
    """The leaves of a tree, by name.

    Raises where one is no array, or where they are of two libraries.
    """
    found = trees.named_leaves(tree)
    libraries = []
    for name, x in found:
        if type(x) in SCALARS or not is_array(x):
            raise TypeError(
                f"{caller}: expected arrays, but the leaf{_at(name)} is a {type(x).__name__}"
            )
        libraries.append(element_of(x).library)
        if libraries[0] is not libraries[-1]:
            raise mixed(caller, libraries[0], libraries[-1])
    return found


def _at(name: str) -> str:
    return f" at {name}" if name else ""


def _fitted(structure: Structure, given: Any, problem: str) -> list[Any]:
    try:
        return trees.fitted(structure, given)
    except ValueError as error:
        raise ValueError(f"{problem}: {error}") from None


def _namespace(found: list[tuple[str, Any]]) -> Any:
    library = element_of(found[0][1]).library
    return library.bound if any(isinstance(x, Layer) for _, x in found) else library.xp
