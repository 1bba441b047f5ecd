"""The arguments of loops, which are trees of arrays, and checks of the results of bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from ... import observe, tree
from ...core.element import SCALARS, Library, common_library, is_array, mixed
from ...core.level import Layer
from ...core.tensor import Tensor, element_of, strip
from ...dispatch.creation import default_library
from ...layers.transforming import returned


class TreeArgument:
    """A tree of arrays that is an argument of a loop or of its body.

    names   the path of each leaf in Python's notation
    leaves  the value of each leaf where the loop is called
    """

    def __init__(self, given: Any) -> None:
        named = tree.named_leaves(given)
        self.names = [name for name, _ in named]
        self.leaves = [observe.stand_in(x) for _, x in named]
        self.structure = tree.flattened(given)[1]

    def at(self, i: int) -> str:
        """The path of a leaf, for a message."""
        return f" at {self.names[i]}" if self.names[i] else ""

    def check_arrays(self, what: str, scalars: bool) -> None:
        """Raise TypeError if a leaf is not an array, or a Python scalar if `scalars` is true."""
        for i, x in enumerate(self.leaves):
            if not (is_array(x) or (scalars and type(x) in SCALARS)):
                raise TypeError(
                    f"{what}: the leaf{self.at(i)} is a {type(x).__name__}, but must be an "
                    f"array{' or a number' if scalars else ''}"
                )


def library_of(name: str, *groups: Sequence[Any]) -> Library:
    """The library of all arrays among these, or that of the default backend without arrays.

    Raises MixedBackendsError for arrays of two libraries.
    """
    return library_in(name, *groups) or default_library()


def library_in(name: str, *groups: Sequence[Any]) -> Library | None:
    """The library of all arrays among these, or None without arrays.

    Raises MixedBackendsError for arrays of two libraries.
    """
    raw = [x for group in groups for x in group if is_array(x)]
    layers = [x for x in raw if isinstance(x, Layer)]
    library = common_library(name, [x for x in raw if not isinstance(x, Layer)])
    for x in layers:
        own = element_of(x).library
        if library is not None and own is not library:
            raise mixed(name, library, own)
        library = own
    return library


def numbers_as_arrays(given: TreeArgument, results: Sequence[Any], library: Library) -> None:
    """Replace each Python scalar among the leaves by a 0-d array.

    Its dtype is that of the body's result in the same place, according to type promotion.
    """
    for i, x in enumerate(given.leaves):
        if type(x) in SCALARS:
            y = results[i] if i < len(results) else None
            like = element_of(y) if is_array(y) else None
            if type(y) in SCALARS and type(y) is not type(x):
                x = type(x + y)(x)  # for example an int beside a float
            given.leaves[i] = (
                library.xp.asarray(x)
                if like is None or not goes_to(x, like)
                else library.xp.asarray(x, dtype=like.dtype)
            )


def as_index(x: Any, least: int) -> int | None:
    """`x` as an int of at least `least`, or None if it is not such an integer."""
    if isinstance(x, bool) or not hasattr(type(x), "__index__") or getattr(x, "shape", ()) != ():
        return None
    try:
        i = index(x)
    except TypeError:
        return None
    return i if i >= least else None


def with_arrays(values: Sequence[Any]) -> list[Any]:
    """The values with a 0-d array in place of each Python scalar.

    Its dtype is the first dtype of its kind among the other values, else the default of the
    library.
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


def fitted(given: TreeArgument, output: Any, problem: str) -> list[Any]:
    """The leaves of the result of a body, which must match its argument.

    The structure, the shapes and the dtypes must be equal; otherwise TypeError is raised. Arrays of
    another library raise MixedBackendsError.
    """
    try:
        leaves = tree.fitted(given.structure, output)
    except ValueError as error:
        raise TypeError(f"{problem}: {error}") from None
    for i, (x, y) in enumerate(zip(given.leaves, leaves, strict=True)):
        if type(x) in SCALARS:
            continue  # numbers_as_arrays replaces it, once the result of the body is known
        if type(y) in SCALARS and not tuple(x.shape) and goes_to(y, element_of(x)):
            leaves[i] = element_of(x).library.xp.asarray(y, dtype=x.dtype)
        elif not is_array(y):
            raise TypeError(
                f"{problem}: the leaf{given.at(i)} is a {type(y).__name__}, but was given as an "
                f"array of {form(x)}"
            )
        elif element_of(x).library is not element_of(y).library:
            raise mixed(problem.partition(":")[0], element_of(x).library, element_of(y).library)
        elif tuple(x.shape) != tuple(y.shape) or element_of(x).dtype != element_of(y).dtype:
            raise TypeError(
                f"{problem}: the leaf{given.at(i)} is of {form(y)}, but was given as an array "
                f"of {form(x)}. Convert it with astype or reshape"
            )
    return leaves


def form(x: Any) -> str:
    """The shape and the dtype of an array, for a message."""
    return f"shape {tuple(x.shape)} and dtype {element_of(x).dtype}"


def finished(raw: bool) -> Callable[[Any], Any]:
    """The function that turns a result into a raw array or a Tensor.

    Raw arguments give raw arrays, except for a Tensor with a history. Tensors give Tensors.
    """
    return _stripped if raw else returned


def _stripped(x: Any) -> Any:
    while isinstance(x, Tensor) and x._elem.run is not None and x._node is None:
        x._check()
        x = x._array
    return strip(x)
