"""Pytrees: nested structures of arrays, as the arguments and results of the functions that are
transformed.

One table says how each kind of container is taken apart and made anew:

- dictionaries, in the order of their keys' insertion, OrderedDict and defaultdict; they go with
  each other, by key;
- lists, tuples and named tuples, which go with each other, by position;
- None, which has no leaves;
- dataclasses: their fields are the children, but those with `metadata={"static": True}`, which are
  kept as they are. One is made anew by setting its fields, without `__init__` and `__post_init__`,
  which may not take what is no array of the user's. Only where a field has `init=False` is it the
  constructor that makes it, so that such fields, which are computed of others, follow them;
- what was registered by `register_pytree`.

Subclasses of dictionaries, lists and tuples are made anew by calling the class as its base is
called. All else is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from operator import is_
from typing import Any, NamedTuple

from .backends import discovery
from .core.element import SCALARS
from .core.level import Layer

Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Any, Any], Any]


class Kind(NamedTuple):
    """How containers of one type are taken apart.

    flatten    from a container to its children and what else it consists of (aux); that of
               dictionaries begins with their keys
    unflatten  from aux and a sequence of children to a container
    family     dict, tuple or None: those that go with each other; of no family, those of the same
               type and aux do

    Two kinds of one class are equal: what is known of a class may be found once more.
    """

    cls: type
    flatten: Flatten
    unflatten: Unflatten
    family: type | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kind) and other.cls is self.cls

    def __hash__(self) -> int:
        return hash(self.cls)


class Structure(NamedTuple):
    """What is left of a tree without its leaves: `kind` of None is that of a leaf."""

    kind: Kind | None
    aux: Any
    children: tuple[Structure, ...]


_LEAF = Structure(None, None, ())

Path = tuple[tuple[Structure, int], ...]
"""Where in a tree something is: each container on the way, and which of its children comes next."""


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree in order."""
    kind = _kinds[type(tree)]
    if kind is None:
        return [tree]
    out: list[Any] = []
    for child in tree if kind.family is tuple else kind.flatten(tree)[0]:
        if _kinds[type(child)] is None:
            out.append(child)
        else:
            out += leaves(child)
    return out


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a tree in order, each with where it stands, as Python would reach it: `[0]`,
    `['weights'].bias`, "" of a leaf alone.
    """
    found, structure = flattened(tree)
    return list(zip(_names(structure, ""), found, strict=True))


def leaf_names(structure: Structure) -> list[str]:
    """Where each leaf of a tree of that structure stands."""
    return list(_names(structure, ""))


def _names(structure: Structure, name: str) -> Iterator[str]:
    if structure.kind is None:
        yield name
    for i, child in enumerate(structure.children):
        yield from _names(child, name + _step(structure, i))


def has_layer(tree: Any) -> bool:
    """Whether a leaf is a layer."""
    kind = _kinds[type(tree)]
    if kind is None:
        return isinstance(tree, Layer)
    for child in tree if kind.family is tuple else kind.flatten(tree)[0]:
        if isinstance(child, Layer) or (_kinds[type(child)] is not None and has_layer(child)):
            return True
    return False


def replaced(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with `function` applied to each leaf."""
    kind = _kinds[type(tree)]
    if kind is None:
        return function(tree)
    children, aux = kind.flatten(tree)
    return kind.unflatten(
        aux,
        [
            function(child) if _kinds[type(child)] is None else replaced(function, child)
            for child in children
        ],
    )


def filled(tree: Any, given: Iterator[Any]) -> Any:
    """The same structure with the next of `given` in the place of each leaf."""
    kind = _kinds[type(tree)]
    if kind is None:
        return next(given)
    children, aux = kind.flatten(tree)
    return kind.unflatten(
        aux,
        [
            next(given) if _kinds[type(child)] is None else filled(child, given)
            for child in children
        ],
    )


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """As `replaced`, but a container in which nothing changes, or that cannot be made anew, is kept
    as it is.
    """
    kind = _kinds[type(tree)]
    if kind is None:
        return function(tree)
    children, aux = kind.flatten(tree)
    before = list(children)
    after = [mapped(function, child) for child in before]
    if all(map(is_, before, after)):
        return tree
    try:
        return kind.unflatten(aux, after)
    except TypeError:
        return tree


def flattened(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of a tree, and its structure, which holds none of them."""
    found: list[Any] = []
    return found, _structure(tree, found)


def _structure(tree: Any, into: list[Any]) -> Structure:
    kind = _kinds[type(tree)]
    if kind is None:
        into.append(tree)
        return _LEAF
    children, aux = kind.flatten(tree)
    return Structure(kind, aux, tuple(_structure(child, into) for child in children))


def built(structure: Structure, given: Iterable[Any]) -> Any:
    """A tree of that structure with the given leaves."""
    return _build(structure, iter(given))


def _build(structure: Structure, given: Iterator[Any]) -> Any:
    kind, aux, children = structure
    return (
        next(given)
        if kind is None
        else kind.unflatten(aux, [_build(child, given) for child in children])
    )


def matched(tree: Any, given: Any) -> Iterator[Any]:
    """The leaves of `given` in the order of those of `tree`.

    Raises ValueError where the structures differ.
    """
    found: list[Any] = []
    return iter(found if _goes_with(tree, given, found) else fitted(flattened(tree)[1], given))


def _goes_with(tree: Any, given: Any, into: list[Any]) -> bool:
    """`_fit` for leaves, lists and tuples, without the structure of `tree`.

    False where there is anything else, or anything wrong.
    """
    kind = _kinds[type(tree)]
    if kind is None:
        into.append(given)
        return _kinds[type(given)] is None
    if kind.family is not tuple or not isinstance(given, (list, tuple)) or len(given) != len(tree):
        return False
    return all(_goes_with(child, other, into) for child, other in zip(tree, given, strict=True))


def fitted(structure: Structure, given: Any, *, partial: bool = False) -> list[Any]:
    """The leaves of `given`, which must be of this structure.

    partial  None may stand for any part of the tree, and is there for each of its leaves
    """
    found: list[Any] = []
    _fit(structure, given, (), partial, found)
    return found


def _fit(structure: Structure, given: Any, path: Path, partial: bool, into: list[Any]) -> None:
    if partial and given is None:
        into.extend([None] * size(structure))
    elif structure.kind is None:
        if _kinds[type(given)] is not None:
            raise ValueError(f"expected an array{_at(path)}, got {shown(given)}")
        into.append(given)
    else:
        for i, (child, other) in enumerate(_paired(structure, structure.kind, given, path)):
            _fit(child, other, (*path, (structure, i)), partial, into)


def prefixed(tree: Any, prefix: Any) -> Iterator[Any]:
    """For each leaf of `tree` the leaf of `prefix` above it: a tree whose leaves, None among them,
    stand for all that is below.

    Raises ValueError where the prefix is no beginning of the tree.
    """
    found: list[Any] = []
    if not _begins(tree, prefix, found):
        found.clear()
        _prefix(flattened(tree)[1], prefix, (), found)
    return iter(found)


def _begins(tree: Any, prefix: Any, into: list[Any]) -> bool:
    """`_prefix` for lists and tuples, without the structure of `tree`.

    False where there is anything else, or anything wrong.
    """
    kind = _kinds[type(tree)]
    if prefix is None or _kinds[type(prefix)] is None:
        into.extend([prefix] * (1 if kind is None else len(leaves(tree))))
        return True
    if (
        kind is None
        or kind.family is not tuple
        or not isinstance(prefix, (list, tuple))
        or len(prefix) != len(tree)
    ):
        return False
    return all(_begins(child, below, into) for child, below in zip(tree, prefix, strict=True))


def _prefix(structure: Structure, prefix: Any, path: Path, into: list[Any]) -> None:
    if prefix is None or _kinds[type(prefix)] is None:
        into.extend([prefix] * size(structure))
    elif structure.kind is None:
        raise ValueError(f"expected one value for an array{_at(path)}, got {shown(prefix)}")
    else:
        for i, (child, other) in enumerate(_paired(structure, structure.kind, prefix, path)):
            _prefix(child, other, (*path, (structure, i)), into)


def size(structure: Structure) -> int:
    """How many leaves a tree of that structure has."""
    return 1 if structure.kind is None else sum(map(size, structure.children))


def _paired(
    structure: Structure, kind: Kind, given: Any, path: Path
) -> Iterable[tuple[Structure, Any]]:
    """The children of a container, each with that of another one that must go with it."""
    children, aux, name = structure.children, structure.aux, kind.cls.__name__
    if kind.family is tuple:
        if not isinstance(given, (list, tuple)) or len(given) != len(children):
            raise ValueError(f"expected a {name} of {len(children)}{_at(path)}, got {shown(given)}")
        return zip(children, given, strict=True)
    if kind.family is dict:
        if not isinstance(given, dict) or set(given) != set(aux[0]):
            raise ValueError(
                f"expected a dictionary with the keys {sorted(map(str, aux[0]))}{_at(path)}, "
                f"got {shown(given)}"
            )
        return [(child, given[key]) for key, child in zip(aux[0], children, strict=True)]
    if type(given) is not kind.cls:
        raise ValueError(
            f"expected {'None' if kind.cls is type(None) else f'a {name}'}{_at(path)}, got "
            f"{shown(given)}"
        )
    found, other = kind.flatten(given)
    others = tuple(found)
    if len(children) != len(others) or not _same(aux, other):
        raise ValueError(
            f"expected a {name} of {len(children)} parts and {aux!r}{_at(path)}, got one of "
            f"{len(others)} and {other!r}"
        )
    return zip(children, others, strict=True)


def _same(aux: Any, other: Any) -> bool:
    if aux is other:
        return True
    try:
        return bool(aux == other)
    except Exception:  # arrays, say, whose comparison is no truth value
        return False


def _at(path: Path) -> str:
    return f" at {''.join(_step(*step) for step in path)}" if path else ""


def _step(structure: Structure, i: int) -> str:
    kind = structure.kind
    assert kind is not None
    if kind.family is dict:
        return f"[{structure.aux[0][i]!r}]"
    named = (
        dataclasses.is_dataclass(kind.cls) and kind.cls not in _registered and kind.family is None
    )
    return f".{_fields(kind.cls)[i].name}" if named else f"[{i}]"


def shown(given: Any) -> str:
    """What a value is, for messages."""
    return (
        f"{type(given).__name__} of {len(given)}"
        if isinstance(given, (dict, list, tuple))
        else type(given).__name__
    )


# The table


def register_pytree(cls: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Let the instances of a class be containers of arrays, wherever arguments and results may be
    nested.

    flatten    takes an instance and returns (children, aux): what it holds, arrays or containers,
               and whatever else it takes to make it anew, which has to be comparable by `==`
    unflatten  takes aux and a sequence of children, and returns an instance. The children need not
               be arrays, so it should not look at them.

    It is this very class that is registered; its subclasses are not. As
    jax.tree_util.register_pytree_node.
    """
    if not isinstance(cls, type):
        raise TypeError(f"register_pytree: expected a class, got {cls!r}")
    if cls in SCALARS or cls is str or _is_array_type(cls):
        raise TypeError(
            f"register_pytree: {cls.__qualname__} cannot be a container: its instances are "
            "arrays or scalars, which are leaves"
        )
    if cls in _registered:
        raise ValueError(f"register_pytree: {cls.__qualname__} is registered already")

    def checked(tree: Any) -> tuple[Iterable[Any], Any]:
        found = flatten(tree)
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(
                f"the flatten function of {cls.__qualname__} must return (children, aux), not "
                f"{shown(found)}"
            )
        return tuple(found[0]), found[1]

    _registered[cls] = Kind(cls, checked, unflatten)
    _kinds.forget()


def _is_array_type(cls: type) -> bool:
    return (
        issubclass(cls, Layer)
        or hasattr(cls, "__array_namespace__")
        or any(issubclass(cls, b.array_types) for b in discovery.loaded())
    )


def _pairs(aux: Any, children: Any) -> Iterator[tuple[Any, Any]]:
    return zip(aux[0], children, strict=True)


_registered: dict[type, Kind] = {
    kind.cls: kind
    for kind in (
        Kind(type(None), lambda tree: ((), None), lambda aux, children: None),
        Kind(tuple, lambda tree: (tree, None), lambda aux, children: tuple(children), tuple),
        Kind(list, lambda tree: (tree, None), lambda aux, children: list(children), tuple),
        Kind(
            dict,
            lambda tree: (tree.values(), (tuple(tree), None)),
            lambda aux, children: dict(_pairs(aux, children)),
            dict,
        ),
        Kind(
            OrderedDict,
            lambda tree: (tree.values(), (tuple(tree), None)),
            lambda aux, children: OrderedDict(_pairs(aux, children)),
            dict,
        ),
        Kind(
            defaultdict,
            lambda tree: (tree.values(), (tuple(tree), tree.default_factory)),
            lambda aux, children: defaultdict(aux[1], _pairs(aux, children)),
            dict,
        ),
    )
}


class Kinds(dict[type, Kind | None]):
    """The kind of every type that was met, None for those of leaves."""

    def __missing__(self, cls: type) -> Kind | None:
        if len(self) > 1000:  # classes that were made in passing are not kept
            self.forget()
        found = self[cls] = _find(cls)
        return found

    def forget(self) -> None:
        self.clear()
        self.update(_registered)


_kinds = Kinds(_registered)


def _find(cls: type) -> Kind | None:
    if _is_array_type(cls):
        return None
    base = next(
        (c for c in cls.__mro__ if c in (dict, OrderedDict, defaultdict, list, tuple)), None
    )
    if base is None:
        return _dataclass(cls) if dataclasses.is_dataclass(cls) else None
    if base is tuple and hasattr(cls, "_fields"):
        return Kind(cls, lambda tree: (tree, None), lambda aux, children: cls(*children), tuple)
    _, flatten, unflatten, family = _registered[base]

    def remade(aux: Any, children: Any) -> Any:
        plain: Any = unflatten(aux, children)
        try:
            found: Any = cls(plain.default_factory, plain) if base is defaultdict else cls(plain)
            if len(found) == len(plain) and type(found) is cls:
                return found
        except Exception as error:
            cause: Exception | None = error
        else:
            cause = None
        how = "(default_factory, dictionary)" if base is defaultdict else f"(a {base.__name__})"
        raise TypeError(
            f"a {cls.__qualname__} cannot be made anew by {cls.__name__}{how}. Say how by "
            "multigrad.func.register_pytree"
        ) from cause

    return Kind(cls, flatten, remade, family)


def _fields(cls: Any) -> list[dataclasses.Field[Any]]:
    """The fields of a dataclass that are children."""
    return [f for f in dataclasses.fields(cls) if f.init and not f.metadata.get("static")]


def _dataclass(cls: Any) -> Kind:
    names = tuple(f.name for f in _fields(cls))
    static = tuple(f.name for f in dataclasses.fields(cls) if f.init and f.metadata.get("static"))
    by_constructor = any(not f.init for f in dataclasses.fields(cls))

    def flatten(tree: Any) -> tuple[Iterable[Any], Any]:
        return [getattr(tree, name) for name in names], tuple(
            getattr(tree, name) for name in static
        )

    def unflatten(aux: Any, children: Any) -> Any:
        values = dict(zip((*static, *names), (*aux, *children), strict=True))
        if by_constructor:
            return cls(**values)
        found = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(found, name, value)  # a frozen one as well
        return found

    return Kind(cls, flatten, unflatten)
