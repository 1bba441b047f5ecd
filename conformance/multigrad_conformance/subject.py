"""A user's function with its arguments, callable on any backend.

It knows the differentiated arrays, the constants and the results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import multigrad as mg
from multigrad import extend

from .problem import is_floating
from .sample import is_array
from .target import Target

PRECISIONS: dict[str, dict[str, str]] = {
    "float64": {"f": "float64", "c": "complex128"},
    "float32": {"f": "float32", "c": "complex64"},
}
"""The dtypes of real and complex floating arrays, by their name in messages and in `dtypes`."""


class Leaf(NamedTuple):
    """One leaf of the arguments: its name, its value, and whether it is differentiated.

    An array is a NumPy array.
    """

    name: str
    value: Any
    differentiated: bool


Outputs = list[tuple[str, Any]]
"""The leaves of a result, each with its name."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A function, its arguments split into leaves, and whether it has a parameter `xp`."""

    function: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    leaves: tuple[Leaf, ...]
    takes_xp: bool

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        constants: Iterable[str | int],
    ) -> Subject:
        """Build a subject from a call.

        Raises TypeError if the function cannot be called with these arguments, or if an argument is
        an array that cannot be differentiated.
        """
        if not callable(function):
            raise TypeError(
                "check_function: the first argument must be a function, not "
                f"{type(function).__name__}"
            )
        name = (
            getattr(function, "__name__", None)
            or getattr(getattr(function, "func", None), "__name__", None)
            or type(function).__name__
        )
        named, takes_xp = _named(function, name, args, kwargs)
        chosen = set(_chosen(constants, named, len(args)))
        leaves = tuple(
            _leaf(f"{argument}{where}", value, argument not in chosen)
            for argument, tree in named
            for where, value in extend.named_leaves(tree)
        )
        return cls(function, name, args, kwargs, leaves, takes_xp)

    def at(self, precision: str) -> Subject:
        """Return the same subject with all floating arrays cast to a precision."""
        names = PRECISIONS[precision]
        return replace(
            self,
            leaves=tuple(
                leaf._replace(value=leaf.value.astype(names[leaf.value.dtype.kind]))
                if is_floating(leaf.value)
                else leaf
                for leaf in self.leaves
            ),
        )

    @property
    def differentiated(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.differentiated]

    @property
    def arrays(self) -> list[Any]:
        """The NumPy arrays to differentiate with respect to."""
        return [leaf.value for leaf in self.leaves if leaf.differentiated]

    @property
    def complex(self) -> bool:
        return any(is_array(leaf.value) and leaf.value.dtype.kind == "c" for leaf in self.leaves)

    def constants(self, target: Target) -> list[Any]:
        """Return the other leaves, with copied arrays and the library's dtypes."""
        return [
            target.raw(target.cast(leaf.value)) for leaf in self.leaves if not leaf.differentiated
        ]

    def call(
        self, target: Target, given: Sequence[Any], constants: Sequence[Any] | None = None
    ) -> Outputs:
        """Call the function with `given` as the differentiated arrays.

        The other arrays become constant Tensors.
        """
        moved, others = (
            iter(given),
            iter(self.constants(target) if constants is None else constants),
        )
        leaves = iter(
            [
                next(moved) if leaf.differentiated else _constant(target, next(others))
                for leaf in self.leaves
            ]
        )
        args, kwargs = extend.tree_map(lambda _: next(leaves), (self.args, dict(self.kwargs)))
        if self.takes_xp:
            kwargs["xp"] = target.bound
        return [
            (f"the result{where}", leaf)
            for where, leaf in extend.named_leaves(self.function(*args, **kwargs))
        ]


def _named(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[tuple[str, Any]], bool]:
    """Return the arguments by parameter, and whether a parameter `xp` is missing among them."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return [*((f"args[{i}]", value) for i, value in enumerate(args)), *kwargs.items()], False
    parameter = signature.parameters.get("xp")
    by_name = parameter is not None and parameter.kind in (
        parameter.KEYWORD_ONLY,
        parameter.POSITIONAL_OR_KEYWORD,
    )
    takes_xp = by_name and "xp" not in signature.bind_partial(*args, **kwargs).arguments
    try:
        bound = signature.bind(*args, **kwargs, **({"xp": None} if takes_xp else {}))
    except TypeError as error:
        raise TypeError(
            f"check_function: {name} cannot be called with these arguments: {error}"
        ) from None
    names = list(_spread(signature, bound.arguments, len(args)))
    return [*zip(names, args, strict=True), *kwargs.items()], takes_xp


def _spread(
    signature: inspect.Signature, arguments: Mapping[str, Any], count: int
) -> Iterator[str]:
    """Return the names of the positional arguments; those of `*args` are numbered."""
    left = count
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from (f"{name}[{i}]" for i in range(left))
            return
        if left and name in arguments:
            yield name
            left -= 1


def _chosen(
    constants: Iterable[str | int], named: Sequence[tuple[str, Any]], count: int
) -> Iterator[str]:
    """Return the names of the constant arguments."""
    names = [name for name, _ in named]
    for c in (constants,) if isinstance(constants, (str, int)) else constants:
        if isinstance(c, int) and -count <= c < count:
            yield names[:count][c]
        elif c in names:
            yield str(c)
        else:
            raise ValueError(
                f"check_function: constants names {c!r}, which is not an argument of this call: "
                f"there are {', '.join(names) or 'none'}"
            )


def _leaf(name: str, value: Any, may_move: bool) -> Leaf:
    """Return a leaf of the arguments; arrays of any library, and Tensors, become NumPy arrays."""
    if not (extend.is_array(value) or isinstance(value, np.ndarray)) or type(value) in (
        bool,
        int,
        float,
        complex,
    ):
        return Leaf(name, value, False)
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    if kind not in "biufc":
        raise TypeError(
            f"check_function: the argument {name} is an array of dtype {value.dtype}, which the "
            "standard does not have"
        )
    tensor = mg.asarray(value)  # it refuses masked arrays and similar subclasses
    array = np.array(mg.asarray(tensor.detach(), backend="numpy").array)
    return Leaf(name, array, may_move and is_floating(array))


def _constant(target: Target, value: Any) -> Any:
    return mg.asarray(value) if target.is_raw(value) else value
