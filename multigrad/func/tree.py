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


def matched(tree: Any, given: Any, path: str = "") -> Iterator[Any]:
    """The leaves of `given` in the order of those of `tree`. Raises ValueError where the structures differ."""
    if isinstance(tree, dict):
        if not isinstance(given, dict) or set(given) != set(tree):
            raise ValueError(f"expected a dictionary with the keys {sorted(map(str, tree))}{_at(path)}, got {_shown(given)}")
        for key, value in tree.items():
            yield from matched(value, given[key], f"{path}[{key!r}]")
    elif isinstance(tree, (list, tuple)):
        if not isinstance(given, (list, tuple)) or len(given) != len(tree):
            raise ValueError(f"expected a {type(tree).__name__} of {len(tree)}{_at(path)}, got {_shown(given)}")
        for i, value in enumerate(tree):
            yield from matched(value, given[i], f"{path}[{i}]")
    elif tree is not None:
        if given is None or isinstance(given, (dict, list, tuple)):
            raise ValueError(f"expected an array{_at(path)}, got {_shown(given)}")
        yield given


def _at(path: str) -> str:
    return f" at {path}" if path else ""


def _shown(given: Any) -> str:
    return f"{type(given).__name__} of {len(given)}" if isinstance(given, (dict, list, tuple)) else type(given).__name__


def prefixed(tree: Any, prefix: Any, name: str) -> Iterator[Any]:
    """For each leaf of `tree`, what stands for it in `prefix`, whose ints and Nones stand for whole branches. Raises ValueError where they differ."""
    if prefix is None or isinstance(prefix, int):
        for _ in leaves(tree):
            yield prefix
    elif isinstance(tree, dict) and isinstance(prefix, dict) and set(tree) == set(prefix):
        for key, value in tree.items():
            yield from prefixed(value, prefix[key], name)
    elif isinstance(tree, (list, tuple)) and isinstance(prefix, (list, tuple)) and len(tree) == len(prefix):
        for value, part in zip(tree, prefix, strict=True):
            yield from prefixed(value, part, name)
    else:
        raise ValueError(f"{name}: expected an int, None or the structure of {_shown(tree)}, got {_shown(prefix)}")
