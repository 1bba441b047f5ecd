"""The arguments of a call to a compiled function.

This module decides which are values of its programs and which are static, and makes the key of the
call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from math import prod
from typing import Any

from .. import tree
from ..core.element import Library, library_of
from ..core.level import Layer, Standing
from ..core.tensor import Tensor, View
from ..program import identity
from .recording import Aside

NUMBERS = (int, float, complex)
ARRAY, TENSOR, NUMBER, STATIC = "array", "Tensor", "number", "static"


class Static:
    """An argument that static_argnums names, of any type, as one leaf."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Statics:
    """The arguments that static_argnums names.

    numbers  their positions; negative ones count from the last argument of a call
    names    their parameter names, if the parameters of the function are known. An argument that is
             passed by such a name is static, too
    """

    def __init__(self, function: Callable[..., Any], numbers: Sequence[int]) -> None:
        self.numbers: Sequence[int] = numbers
        self.names: Sequence[str] = ()
        try:
            parameters = list(signature(function).parameters.values())
        except (TypeError, ValueError):  # for example a class or a builtin
            return
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return
        parameters = [p for p in parameters if p.kind <= Parameter.POSITIONAL_OR_KEYWORD]
        for i in numbers:
            if not -len(parameters) <= i < len(parameters):
                raise ValueError(
                    f"compile: static_argnums names the argument {i}, and the function takes "
                    f"{len(parameters)} positional arguments"
                )
        self.numbers = [i % len(parameters) for i in numbers]
        positional = (parameters[i] for i in self.numbers)
        self.names = [p.name for p in positional if p.kind is p.POSITIONAL_OR_KEYWORD]

    def boxed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, with the static ones in boxes."""
        boxed = list(args)
        for i in self.numbers:
            if -len(boxed) <= i < len(boxed):
                boxed[i] = Static(boxed[i])
        return tuple(boxed), {
            name: Static(x) if name in self.names else x for name, x in kwargs.items()
        }


@dataclass(frozen=True, slots=True)
class Leaf:
    """The properties of a leaf of the arguments that programs rely on.

    kind     "array", "Tensor" (a constant one), "number" or "static"
    cls      its class
    library  for an array: its library
    form     for an array: shape, dtype, strides if it has any, device, and whether the dtype is
             weak, as in JAX. For a static leaf: its key
    """

    kind: str
    cls: type
    library: Library | None = None
    form: Any = None

    @property
    def key(self) -> Any:
        return self.kind, self.cls, self.form

    def __str__(self) -> str:
        if self.kind == STATIC:
            return f"the value {self.form!r}"
        if self.library is None:
            return f"a {self.cls.__name__}"
        shape, dtype, strides, device, weak = self.form
        text = f"shape {shape}, {'weak ' if weak else ''}dtype {dtype}"
        if strides is not None:
            text += f", strides {strides}"
        return text if device is None else f"{text}, on {device}"


def raw(x: Any) -> Any:
    """The raw array of a Tensor; another object itself."""
    return x._array if isinstance(x, Tensor) else x


def leaf_of(x: Any) -> Leaf:
    """The Leaf of an argument.

    Raises Aside if the function is to be called itself, and Unhashable if the argument cannot be a
    part of a key.
    """
    kind = type(x)
    if kind in NUMBERS:
        return Leaf(NUMBER, kind)
    if isinstance(x, Layer):
        if kind not in (Tensor, View) or x._elem.run is not None:
            raise Aside
        x._check()
        if x._node is not None or isinstance(x._array, Layer):  # type: ignore[attr-defined]
            raise Aside
        return Leaf(TENSOR, kind, x._elem.library, form(x._array, x._elem.library))
    if isinstance(x, Standing):
        raise Aside
    if kind is Static:
        return Leaf(STATIC, type(x.value), form=static(x.value))
    library = None if kind in (bool, str, bytes) else library_of(x)
    if library is None:
        return Leaf(STATIC, kind, form=static(x))
    if library.element(x.dtype).opaque or is_traced(x, library):
        raise Aside
    return Leaf(ARRAY, kind, library, form(x, library))


def form(x: Any, library: Library) -> Any:
    """The properties of a raw array that a program relies on.

    Strides are those of arrays in the memory of the host, such as NumPy's.
    """
    strides = getattr(x, "strides", None)
    return (
        tuple(x.shape),
        x.dtype,
        strides if isinstance(strides, tuple) else None,
        library.device(library.xp, x),
        getattr(x, "weak_type", None),
    )


class Unhashable(Exception):
    """A static value that cannot be a part of a key."""


def static(x: Any) -> Any:
    """A value as a part of a key."""
    key = identity(x)
    try:
        hash(key)
    except TypeError:
        raise Unhashable from None
    return key


def is_static(x: Any, form: Any) -> bool:
    """Whether `static(x)` is that part of a key."""
    try:
        return bool(static(x) == form)
    except Unhashable:
        return False


def exact(structure: tree.Structure) -> Any:
    """A structure as a part of a key.

    The keys of dictionaries, and the aux of other containers, are compared as `static` values.
    """
    if structure.kind is None:
        return None
    return structure.kind, static(hashable(structure.aux)), tuple(map(exact, structure.children))


def hashable(x: Any) -> Any:
    return tuple(map(hashable, x)) if type(x) in (tuple, list) else x


_valued: set[type] = set()
"""The classes of arrays with values. All arrays of one class are alike in that."""


def is_traced(x: Any, library: Library) -> bool:
    """Whether the values of an array are unknown, for example under `jax.jit`.

    A class with one array whose values are known is not tested again, since tracers have classes of
    their own. An array without elements counts as known, and leaves its class undecided.
    """
    kind = type(x)
    if kind in _valued or not prod(x.shape):
        return False
    if (
        not library.backend.capabilities.lazy
        and library.backend.kernel("storage")(library.xp, x)[1] == 0
    ):
        return True
    _valued.add(kind)
    return False


class Arguments:
    """The arguments of one call.

    args       the positional arguments, and `kwargs` those by name
    leaves     in order, the static ones in boxes
    structure  of (args, kwargs) without the leaves
    kinds      the Leaf of each leaf
    key        the key of the programs that may run
    inputs     the places of the leaves that are values of programs
    """

    __slots__ = ("args", "inputs", "key", "kinds", "kwargs", "leaves", "structure")

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], statics: Statics | None
    ) -> None:
        self.args, self.kwargs = args, kwargs
        if statics is not None:
            args, kwargs = statics.boxed(args, kwargs)
        self.leaves, self.structure = tree.flattened((args, kwargs))
        self.kinds: list[Leaf] = []
        for i, x in enumerate(self.leaves):
            try:
                self.kinds.append(leaf_of(x))
            except Unhashable:
                if type(x) is Static:
                    raise TypeError(
                        f"compile: static_argnums names the argument {self.name(i)}, of type "
                        f"{type(x.value).__name__}, which cannot be hashed. Pass a tuple instead "
                        "of a list; arrays cannot be static arguments"
                    ) from None
                raise TypeError(
                    f"compile: the argument {self.name(i)} of type {type(x).__name__} is "
                    "neither an array, a number nor a container that is known, and cannot be "
                    "hashed, so it cannot be static either. "
                    + (
                        tree.as_values(x)
                        or "multigrad.func.register_pytree makes its class a container"
                    )
                ) from None
        libraries = {leaf.library.name for leaf in self.kinds if leaf.library is not None}
        if len(libraries) > 1:
            raise Aside
        self.inputs = [i for i, leaf in enumerate(self.kinds) if leaf.kind != STATIC]
        try:
            self.key = exact(self.structure), tuple([leaf.key for leaf in self.kinds])
            hash(self.key)
        except (TypeError, Unhashable):
            raise TypeError(
                "compile: a container among the arguments has a part besides its arrays that "
                "cannot be hashed; see multigrad.func.register_pytree"
            ) from None

    @property
    def library(self) -> Library | None:
        """The library of the arrays, or None without arrays."""
        return next((leaf.library for leaf in self.kinds if leaf.library is not None), None)

    @property
    def raw(self) -> bool:
        """Whether no argument is a Tensor. Then results are raw arrays, too."""
        return all(leaf.kind != TENSOR for leaf in self.kinds)

    def built(self, leaves: Sequence[Any]) -> Any:
        """Positional and named arguments with these leaves in place of those of the call."""
        return tree.built(self.structure, [x.value if type(x) is Static else x for x in leaves])

    def name(self, i: int) -> str:
        """The path of a leaf in Python's notation: `args[0]['weights']`, `scale`."""
        where = tree.leaf_names(self.structure)[i]
        return f"args{where[3:]}" if where.startswith("[0]") else where[5:].replace("']", "", 1)
