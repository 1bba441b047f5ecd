"""The arguments of loops: trees of arrays, and what a body must return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from ... import observe, tree
from ...core.element import SCALARS, Library, common_library, is_array, mixed
from ...core.level import Layer
from ...core.tensor import Tensor, element_of, strip
from ...dispatch.creation import default_library
from ...layers.transforming import as_tensor


class Arguments:
    """A tree of arrays that a loop is given, or hands to its body.

    names   of each leaf where it stands, as Python would reach it
    leaves  what it is where the loop is called
    """

    def __init__(self, given: Any) -> None:
        found = tree.named_leaves(given)
        self.names = [name for name, _ in found]
        self.leaves = [observe.stand_in(x) for _, x in found]
        self.structure = tree.flattened(given)[1]

    def at(self, i: int) -> str:
        """Where a leaf stands, for a message."""
        return f" at {self.names[i]}" if self.names[i] else ""

    def check_arrays(self, what: str, scalars: bool) -> None:
        """Raise TypeError where a leaf is neither an array nor, if they are allowed, a Python
        scalar.
        """
        for i, x in enumerate(self.leaves):
            if not (is_array(x) or (scalars and type(x) in SCALARS)):
                raise TypeError(
                    f"{what}: the leaf{self.at(i)} is a {type(x).__name__}, but must be an "
                    f"array{' or a number' if scalars else ''}"
                )


def library_of(name: str, *groups: Sequence[Any]) -> Library:
    """The library of all arrays among these, that of the default backend if there is none.

    Raises where there are two.
    """
    return library_in(name, *groups) or default_library()


def library_in(name: str, *groups: Sequence[Any]) -> Library | None:
    """The library of all arrays among these, None if there is none. Raises where there are two."""
    raw = [x for group in groups for x in group if is_array(x)]
    layers = [x for x in raw if isinstance(x, Layer)]
    library = common_library(name, [x for x in raw if not isinstance(x, Layer)])
    for x in layers:
        own = element_of(x).library
        if library is not None and own is not library:
            raise mixed(name, library, own)
        library = own
    return library


def numbers_as_arrays(given: Arguments, results: Sequence[Any], library: Library) -> None:
    """Let each Python scalar among the leaves be a 0-d array: of the dtype that the body returns in
    its place, as promotion would have it.
    """
    for i, x in enumerate(given.leaves):
        if type(x) in SCALARS:
            y = results[i] if i < len(results) else None
            like = element_of(y) if is_array(y) else None
            if type(y) in SCALARS and type(y) is not type(x):
                x = type(x + y)(x)  # an int beside a float
            given.leaves[i] = (
                library.xp.asarray(x)
                if like is None or not goes_to(x, like)
                else library.xp.asarray(x, dtype=like.dtype)
            )


def as_index(x: Any, least: int) -> int | None:
    """An int, or what Python takes for one, of at least that; None for anything else."""
    if isinstance(x, bool) or not hasattr(type(x), "__index__") or getattr(x, "shape", ()) != ():
        return None
    try:
        found = index(x)
    except TypeError:
        return None
    return found if found >= least else None


def with_arrays(values: Sequence[Any]) -> list[Any]:
    """Values with a 0-d array for each Python scalar: of the first dtype of its kind among the
    others, else of the library's own.
    """
    arrays = [x for x in values if is_array(x)]
    library = library_of("scan", arrays)

    def made(x: Any) -> Any:
        return library.xp.asarray(
            x,
            dtype=next(
                (y.dtype for y in arrays if library.xp.isdtype(y.dtype, _KINDS[type(x)])), None
            ),
        )

    return [made(x) if type(x) in SCALARS else x for x in values]


_KINDS = {bool: "bool", int: "integral", float: "real floating", complex: "complex floating"}


def goes_to(x: Any, elem: Any) -> bool:
    """Whether a Python scalar can be an array of that dtype."""
    if isinstance(x, bool):
        return bool(elem.bool)
    if isinstance(x, complex):
        return bool(elem.complex)
    return bool(elem.floating) or (isinstance(x, int) and not elem.bool)


def fitted(given: Arguments, output: Any, problem: str) -> list[Any]:
    """The leaves of what a body returned, which must be as what it was given: in structure, shapes
    and dtypes.
    """
    try:
        found = tree.fitted(given.structure, output)
    except ValueError as error:
        raise TypeError(f"{problem}: {error}") from None
    for i, (x, y) in enumerate(zip(given.leaves, found, strict=True)):
        if type(x) in SCALARS:
            continue  # an array in its place is made when it is known what the body returns
        if type(y) in SCALARS and not tuple(x.shape) and goes_to(y, element_of(x)):
            found[i] = element_of(x).library.xp.asarray(y, dtype=x.dtype)
        elif not is_array(y):
            raise TypeError(
                f"{problem}: the leaf{given.at(i)} is a {type(y).__name__}, but was given as an "
                f"array of {form(x)}"
            )
        elif tuple(x.shape) != tuple(y.shape) or element_of(x).dtype != element_of(y).dtype:
            raise TypeError(
                f"{problem}: the leaf{given.at(i)} is of {form(y)}, but was given as an array "
                f"of {form(x)}"
            )
    return found


def form(x: Any) -> str:
    """What an array is like, for a message."""
    return f"shape {tuple(x.shape)} and dtype {element_of(x).dtype}"


def finished(raw: bool) -> Callable[[Any], Any]:
    """How a result is handed out: raw arrays for raw arrays, unless a derivative is asked for;
    Tensors for Tensors.
    """
    return _stripped if raw else as_tensor


def _stripped(x: Any) -> Any:
    while isinstance(x, Tensor) and x._elem.run is not None and x._node is None:
        x._check()
        x = x._array
    return strip(x)
