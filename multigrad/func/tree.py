"""Nested arguments: dictionaries, lists, tuples and named tuples of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a nested structure; dictionaries in the order of their keys' insertion. None is no leaf."""
    if isinstance(tree, dict):
        for value in tree.values():
            yield from leaves(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from leaves(value)
    elif tree is not None:
        yield tree


def replaced(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with `function` applied to each leaf."""
    if isinstance(tree, dict):
        return {key: replaced(function, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(replaced(function, value) for value in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(replaced(function, value) for value in tree)
    return None if tree is None else function(tree)
