"""func.tree: functions that flatten, rebuild and compute with nested structures of arrays.

Parameters, gradients and states of optimizers are such trees.

`multigrad.tree` defines trees: dictionaries, lists, tuples, named tuples, dataclasses, None, and
classes that `func.register_pytree` has registered. Any other object is a leaf. Dictionaries keep
the order of their keys. Arrays may be raw, Tensors, or layers inside of transformations, of any
backend. The names and the order of arguments are those of jax.tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from .. import tree as trees
from ..core.element import SCALARS, is_array
from ..core.tensor import element_of
from ..dispatch.creation import default_library
from ..tracebacks import entry
from ..tree import Structure
from .ravel import cast, namespace_of, raveled
from .reverse import check_function
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


@entry
def map(function: Callable[..., Any], tree: R, *rest: R) -> R:
    """Return the structure of `tree` with `function(leaf, *others)` in place of each leaf.

    The others are the leaves of each tree of `rest` at the same position. Each of them must have
    the structure of `tree`; ValueError says where it differs. Dictionaries match by key, in any
    order. Lists, tuples and named tuples match by position. Corresponds to jax.tree.map, except
    that a tree of `rest` must have its leaves where `tree` has them.
    """
    check_function(function, "tree.map")
    if not rest:
        only: R = trees.replaced(function, tree)
        return only
    first, structure = trees.flattened(tree)
    columns = [first]
    for i, other in enumerate(rest, 2):
        problem = f"tree.map: tree {i} must have the structure of the first one"
        columns.append(trees.fitted(structure, other, problem=problem))
    out: R = trees.built(structure, [function(*row) for row in zip(*columns, strict=True)])
    return out


@entry
def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of a tree in order, and its structure, from which `unflatten` rebuilds it.

    Corresponds to jax.tree.flatten.
    """
    return trees.flattened(tree)


@entry
def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """Return a tree of that structure with these leaves, which may be any objects.

    Raises ValueError if the number of leaves differs. Corresponds to jax.tree.unflatten.
    """
    if not isinstance(structure, Structure):
        raise TypeError(
            "tree.unflatten: expected a structure from tree.flatten or tree.structure, not "
            f"{type(structure).__name__}"
        )
    values = list(leaves)
    if len(values) != (n := trees.size(structure)):
        raise ValueError(
            f"tree.unflatten: the structure has {n} leaves, but {len(values)} were given"
        )
    return trees.built(structure, values)


@entry
def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree in order. Corresponds to jax.tree.leaves."""
    return trees.leaves(tree)


@entry
def structure(tree: Any) -> Structure:
    """Return the structure of a tree: the tree without its leaves.

    Equal containers have equal structures. Corresponds to jax.tree.structure.
    """
    return trees.flattened(tree)[1]


@entry
def ravel(tree: R) -> tuple[Any, Callable[[Any], R]]:
    """Return all elements of the arrays of a tree as one vector, and the inverse function.

    See `func.ravel_pytree`.
    """
    return raveled(tree, "tree.ravel")


@entry
def global_norm(tree: Any) -> Any:
    """Return the Euclidean norm of all elements of a tree.

    It is the square root of the sum of the squares of their absolute values.

    tree  arrays of floating dtypes of one library, real or complex

    Returns a real 0-d array of the dtype that the arrays promote to. A tree without arrays gives 0
    of the default backend. The norm is differentiable, and its gradient is 0 if all elements are 0.
    The squares overflow only where `linalg.vector_norm` of a single array overflows. Corresponds to
    optax.tree.norm.
    """
    arrays = _arrays(tree, "tree.global_norm")
    if not arrays:
        return default_library().xp.zeros(())
    xp = namespace_of([x for _, x in arrays], "tree.global_norm")
    for name, x in arrays:
        if not element_of(x).floating:
            raise TypeError(
                f"tree.global_norm: expected floating dtypes, but the leaf{_at(name)} is of "
                f"dtype {x.dtype}"
            )
    norms = [xp.linalg.vector_norm(x) for _, x in arrays]
    if len(norms) == 1:
        return norms[0]
    dtype = xp.result_type(*norms)
    return xp.linalg.vector_norm(xp.stack([cast(xp, x, dtype) for x in norms]))


@entry
def all_finite(tree: Any) -> Any:
    """Return whether all elements of a tree are finite, neither nan nor infinite.

    tree  arrays of one library; those of booleans and integers are finite

    Returns a 0-d boolean array, True for a tree without arrays.
    """
    arrays = _arrays(tree, "tree.all_finite")
    if not arrays:
        return default_library().xp.asarray(True)
    xp = namespace_of([x for _, x in arrays], "tree.all_finite")
    finite = [xp.all(xp.isfinite(x)) for _, x in arrays if element_of(x).floating]
    if not finite:
        return xp.asarray(True)
    return reduce(xp.logical_and, finite)


def _arrays(tree: Any, caller: str) -> list[tuple[str, Any]]:
    """The leaves of a tree, by name. Raises TypeError if one is not an array."""
    arrays = trees.named_leaves(tree)
    for name, x in arrays:
        if type(x) in SCALARS or not is_array(x):
            raise TypeError(
                f"{caller}: expected arrays, but the leaf{_at(name)} is a {type(x).__name__}"
            )
    return arrays


def _at(name: str) -> str:
    return f" at {name}" if name else ""
