"""Pytrees: nested structures of arrays, as arguments and results of transformed functions.

One table says how each kind of container is flattened and rebuilt:

- dictionaries, in the order of insertion, OrderedDict and defaultdict. They match each other, by
  key;
- lists, tuples and named tuples. They match each other, by position;
- None, which has no leaves;
- dataclasses. Their fields are the children, except fields with `metadata={"static": True}`, which
  are kept unchanged. multigrad rebuilds a dataclass by setting its fields, without `__init__` and
  `__post_init__`, which may refuse leaves that are not arrays. If a field has `init=False`, the
  constructor makes the instance, because it computes such fields from the others;
- classes that `register_pytree` has registered.

A subclass of a dictionary, list or tuple is rebuilt by calling it with the arguments of its base
class. Every other object is a leaf.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from operator import is_
from typing import Any, NamedTuple

from .core.element import SCALARS
from .core.level import Layer
from .plugins import discovery
from .tracebacks import entry

Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Any, Any], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Container:
    """How containers of one type are flattened.

    flatten    from a container to its children and its other contents (aux); the aux of a
               dictionary begins with the keys
    unflatten  from aux and a sequence of children to a container
    family     dict or tuple: containers of one family match each other. None: a container matches
               those of the same type and aux
    registered  whether a user has registered it

    Two kinds of one class are equal, since the table may compute the kind of a class again.
    """

    cls: type
    flatten: Flatten = dataclasses.field(compare=False)
    unflatten: Unflatten = dataclasses.field(compare=False)
    family: type | None = dataclasses.field(default=None, compare=False)
    registered: bool = dataclasses.field(default=False, compare=False)


class Structure(NamedTuple):
    """A tree without its leaves. A leaf has the `kind` None."""

    kind: Container | None
    aux: Any
    children: tuple[Structure, ...]


_LEAF = Structure(None, None, ())

Path = tuple[tuple[Container, Any, int], ...]
"""A position in a tree: each container on the way with its aux, and the index of its child."""


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
    """The leaves of a tree in order, each with its path in Python's notation.

    A path is for example `[0]` or `['weights'].bias`. A tree that is a single leaf has the path "".
    """
    values, structure = flattened(tree)
    return list(zip(leaf_names(structure), values, strict=True))


def leaf_names(structure: Structure, name: str = "") -> list[str]:
    """The path of each leaf in a tree of that structure, whose own path is `name`."""
    kind, aux, children = structure
    if kind is None:
        return [name]
    return [
        path
        for i, child in enumerate(children)
        for path in leaf_names(child, name + _step(kind, aux, i))
    ]


def has_layer(tree: Any) -> bool:
    """Whether any leaf is a layer."""
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


def filled(tree: Any, values: Iterator[Any]) -> Any:
    """The same structure with the next of `values` in place of each leaf."""
    return replaced(lambda leaf: next(values), tree)


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """As `replaced`, except that containers without a changed leaf are kept.

    A container that cannot be rebuilt is kept, too.
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
    """The leaves of a tree, and its structure without the leaves."""
    out: list[Any] = []
    return out, _structure(tree, out)


def _structure(tree: Any, into: list[Any]) -> Structure:
    kind = _kinds[type(tree)]
    if kind is None:
        into.append(tree)
        return _LEAF
    children, aux = kind.flatten(tree)
    below: list[Structure] = []
    for child in children:
        if _kinds[type(child)] is None:
            into.append(child)
            below.append(_LEAF)
        else:
            below.append(_structure(child, into))
    return Structure(kind, aux, tuple(below))


def built(structure: Structure, values: Iterable[Any]) -> Any:
    """A tree of that structure with `values` as its leaves."""
    values = iter(values)
    kind, aux, children = structure
    if kind is None:
        return next(values)
    return kind.unflatten(
        aux,
        [next(values) if child.kind is None else built(child, values) for child in children],
    )


def fitted(tree: Any, other: Any, *, partial: bool = False, problem: str = "") -> list[Any]:
    """The leaves of `other`, which must have the structure of `tree`, a tree or a Structure.

    Raises ValueError if the structures differ.

    partial  None may replace any part of the tree; it gives None for each leaf of that part
    problem  what the error's message begins with
    """
    out: list[Any] = []
    try:
        _fit(tree, other, (), "partial" if partial else "whole", out)
    except ValueError as error:
        if problem:
            raise ValueError(f"{problem}: {error}") from None
        raise
    return out


def prefixed(tree: Any, prefix: Any) -> list[Any]:
    """For each leaf of `tree`, the leaf of `prefix` above it.

    A prefix is a tree whose leaves, None among them, hold for everything below them. Raises
    ValueError if `prefix` does not match the upper part of `tree`.
    """
    out: list[Any] = []
    _fit(tree, prefix, (), "prefix", out)
    return out


def _fit(tree: Any, other: Any, path: Path, how: str, into: list[Any]) -> None:
    """Append what `other` has for each leaf of `tree`, a tree or a Structure.

    how  "whole": `other` has the same structure; "partial" and "prefix": see `fitted`, `prefixed`
    """
    children: Iterable[Any]
    if type(tree) is Structure:
        kind, aux, children = tree
    else:
        kind = _kinds[type(tree)]
        children, aux = ((), None) if kind is None else kind.flatten(tree)
    is_leaf = _kinds[type(other)] is None
    if (how != "whole" and other is None) or (how == "prefix" and is_leaf):
        into += [other] * (size(tree) if type(tree) is Structure else len(leaves(tree)))
    elif kind is not None:
        pairs = _paired(kind, aux, tuple(children), other, path)
        for i, (child, part) in enumerate(pairs):
            _fit(child, part, (*path, (kind, aux, i)), how, into)
    elif how == "prefix" or not is_leaf:
        what = "one value for an array" if how == "prefix" else "an array"
        raise ValueError(f"expected {what}{_at(path)}, got {shown(other)}")
    else:
        into.append(other)


def size(structure: Structure) -> int:
    """The number of leaves in a tree of that structure."""
    return 1 if structure.kind is None else sum(map(size, structure.children))


def _paired(
    kind: Container, aux: Any, children: tuple[Any, ...], other: Any, path: Path
) -> Iterable[tuple[Any, Any]]:
    """Each child of a container with the matching child of another container."""
    name = kind.cls.__name__
    if kind.family is tuple:
        if not isinstance(other, (list, tuple)) or len(other) != len(children):
            raise ValueError(f"expected a {name} of {len(children)}{_at(path)}, got {shown(other)}")
        return zip(children, other, strict=True)
    if kind.family is dict:
        if not isinstance(other, dict) or set(other) != set(aux[0]):
            raise ValueError(
                f"expected a dictionary with the keys {sorted(map(str, aux[0]))}{_at(path)}, "
                f"got {shown(other)}"
            )
        return [(child, other[key]) for key, child in zip(aux[0], children, strict=True)]
    if type(other) is not kind.cls:
        raise ValueError(
            f"expected {'None' if kind.cls is type(None) else f'a {name}'}{_at(path)}, got "
            f"{shown(other)}"
        )
    parts, other_aux = kind.flatten(other)
    others = tuple(parts)
    if len(children) != len(others) or not same(aux, other_aux):
        raise ValueError(
            f"expected a {name} of {len(children)} parts and {aux!r}{_at(path)}, got one of "
            f"{len(others)} and {other_aux!r}"
        )
    return zip(children, others, strict=True)


def same(aux: Any, other: Any) -> bool:
    """Whether two structures, or the aux of two containers, are equal."""
    if aux is other:
        return True
    try:
        return bool(aux == other)
    except Exception:  # for example arrays, whose comparison has no truth value
        return False


def _at(path: Path) -> str:
    return f" at {''.join(_step(*step) for step in path)}" if path else ""


def _step(kind: Container, aux: Any, i: int) -> str:
    if kind.family is dict:
        return f"[{aux[0][i]!r}]"
    named = dataclasses.is_dataclass(kind.cls) and not kind.registered and kind.family is None
    return f".{_fields(kind.cls)[i].name}" if named else f"[{i}]"


def shown(x: Any) -> str:
    """The type of a value, and the length of a container, for messages."""
    name = type(x).__name__
    return f"{name} of {len(x)}" if isinstance(x, (dict, list, tuple)) else name


def as_values(x: object) -> str:
    """How to pass the values of an unknown object to multigrad, "" if it has none; for messages."""
    if isinstance(x, type):
        return ""
    if hasattr(x, "to_numpy"):
        return "Pass its values, x.to_numpy()."
    return "Pass its values, np.asarray(x)." if hasattr(x, "__array__") else ""


# The table


@entry
def register_pytree(cls: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Let instances of a class be containers of arrays in nested arguments and results.

    flatten    takes an instance and returns (children, aux). The children are arrays or containers.
               aux is all other data that is needed to rebuild the instance, comparable by `==`
    unflatten  takes aux and a sequence of children, and returns an instance. It should not inspect
               the children, which need not be arrays

    The registration holds for this class only; its subclasses are not registered. Raises TypeError
    if `cls` is not a class, or if its instances are leaves, and ValueError if it is already
    registered. Corresponds to jax.tree_util.register_pytree_node.
    """
    if not isinstance(cls, type):
        raise TypeError(f"register_pytree: expected a class, got {cls!r}")
    if cls in SCALARS or cls is str or _is_array_type(cls):
        raise TypeError(
            f"register_pytree: {cls.__qualname__} cannot be a container: its instances are "
            "arrays or scalars, which are leaves"
        )
    kind = cls.__dict__.get(KIND) or dict.get(_kinds, cls)
    if cls in _BUILT_IN or (kind is not None and kind.registered):
        raise ValueError(f"register_pytree: {cls.__qualname__} is already registered")

    def checked(tree: Any) -> tuple[Iterable[Any], Any]:
        parts = flatten(tree)
        if not isinstance(parts, tuple) or len(parts) != 2:
            raise TypeError(
                f"the flatten function of {cls.__qualname__} must return (children, aux), not "
                f"{shown(parts)}"
            )
        return tuple(parts[0]), parts[1]

    _kinds.keep(cls, Container(cls, checked, unflatten, registered=True))


def _is_array_type(cls: type) -> bool:
    return (
        issubclass(cls, Layer)
        or hasattr(cls, "__array_namespace__")
        or any(issubclass(cls, b.array_types) for b in discovery.loaded())
    )


def _sequence(cls: Any, make: Callable[[Any], Any]) -> Container:
    return Container(cls, lambda tree: (tree, None), lambda aux, children: make(children), tuple)


def _dictionary(cls: Any) -> Container:
    """The kind of a class of dictionaries; its aux is the keys and the default factory, if any."""

    def flatten(tree: Any) -> tuple[Iterable[Any], Any]:
        return tree.values(), (tuple(tree), tree.default_factory if cls is defaultdict else None)

    def unflatten(aux: Any, children: Any) -> Any:
        items = zip(aux[0], children, strict=True)
        return cls(aux[1], items) if cls is defaultdict else cls(items)

    return Container(cls, flatten, unflatten, dict)


_BUILT_IN: dict[type, Container] = {
    type(None): Container(type(None), lambda tree: ((), None), lambda aux, children: None),
    **{cls: _sequence(cls, cls) for cls in (tuple, list)},
    **{cls: _dictionary(cls) for cls in (dict, OrderedDict, defaultdict)},
}


KIND = "__multigrad_kind__"
"""The attribute that has the kind of a class which is registered, or made inside of a function.

A kind refers to its class, so a table of kinds would keep such classes alive.
"""


class Containers(dict[type, Container | None]):
    """The kind of every type that has occurred and lasts, None for the type of a leaf."""

    def __missing__(self, cls: type) -> Container | None:
        return self.keep(cls, cls.__dict__.get(KIND) or _find(cls))

    def keep(self, cls: type, kind: Container | None) -> Container | None:
        lasts = _lasts(cls)
        if kind is not None and (kind.registered or not lasts):
            try:
                type.__setattr__(cls, KIND, kind)
            except TypeError:  # a class of an extension module
                lasts = True
        if lasts:
            if len(self) > 1000:  # bounds the table in programs that import modules again
                self.clear()
                self.update(_BUILT_IN)
            self[cls] = kind
        return kind


def _lasts(cls: type) -> bool:
    """Whether a class lives as long as its module, which has it by its name."""
    module = sys.modules.get(str(getattr(cls, "__module__", None)))
    return not cls.__flags__ & HEAP or getattr(module, cls.__qualname__, None) is cls


HEAP = 1 << 9
"""The flag of the types that are not part of the interpreter or of an extension module."""

_kinds = Containers(_BUILT_IN)


def _find(cls: type) -> Container | None:
    if _is_array_type(cls):
        return None
    base = next(
        (c for c in cls.__mro__ if c in (dict, OrderedDict, defaultdict, list, tuple)), None
    )
    if base is None:
        return _dataclass(cls) if dataclasses.is_dataclass(cls) else None
    if base is tuple and hasattr(cls, "_fields"):
        return _sequence(cls, lambda children: cls(*children))
    plain_kind = _BUILT_IN[base]

    def remade(aux: Any, children: Any) -> Any:
        plain = plain_kind.unflatten(aux, children)
        cause: Exception | None = None
        try:
            tree: Any = cls(plain.default_factory, plain) if base is defaultdict else cls(plain)
            if len(tree) == len(plain) and type(tree) is cls:
                return tree
        except Exception as error:
            cause = error
        how = "(default_factory, dictionary)" if base is defaultdict else f"(a {base.__name__})"
        raise TypeError(
            f"a {cls.__qualname__} cannot be rebuilt by {cls.__name__}{how}. Register how to "
            "rebuild it with multigrad.func.register_pytree"
        ) from cause

    return dataclasses.replace(plain_kind, cls=cls, unflatten=remade)


def _fields(cls: Any) -> list[dataclasses.Field[Any]]:
    """The fields of a dataclass that are children."""
    return [f for f in dataclasses.fields(cls) if f.init and not f.metadata.get("static")]


def _dataclass(cls: Any) -> Container:
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
        instance = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(instance, name, value)  # also in a frozen dataclass
        return instance

    return Container(cls, flatten, unflatten)
