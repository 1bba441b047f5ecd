"""The arguments of loops, which are trees of arrays, and checks of the results of bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import index
from typing import Any

from ... import observe, tree
from ...core.element import SCALARS, Library, common_library, is_array, mixed
from ...core.level import Layer, innermost
from ...core.tensor import Tensor, element_of, strip
from ...custom.kept import layers_in
from ...dispatch.creation import default_library
from ...layers.batched import Batched
from ...layers.transforming import returned

Results = tuple[list[Any], tree.Structure]
"""The leaves of a result, and its structure."""


def arguments_of(*structures: tree.Structure) -> tree.Structure:
    """The structure of the arguments of a call, given that of each argument."""
    return _EMPTY._replace(children=structures)


_EMPTY = tree.flattened(())[1]


def place(structure: tree.Structure, i: int) -> str:
    """Where a leaf is, for a message: its path in Python's notation."""
    name = tree.leaf_names(structure)[i]
    return f" at {name}" if name else ""


class TreeArgument:
    """A tree of arrays that is an argument of a loop or of its body.

    leaves  the value of each leaf where the loop is called
    forms   the Element and the shape of each leaf, once all of them are arrays
    """

    forms: list[Any] | None = None

    def __init__(self, argument: Any) -> None:
        leaves, self.structure = tree.flattened(argument)
        self.leaves = observe.passed(leaves)

    def at(self, i: int) -> str:
        return place(self.structure, i)

    def check_arrays(self, what: str, scalars: bool) -> None:
        """Raise TypeError if a leaf is not an array, or a Python scalar if `scalars` is true."""
        for i, x in enumerate(self.leaves):
            if not (is_array(x) or (scalars and type(x) in SCALARS)):
                raise TypeError(
                    f"{what}: the leaf{self.at(i)} is a {type(x).__name__}, but must be an "
                    f"array{' or a number' if scalars else ''}"
                )


def library_in(name: str, *groups: Sequence[Any]) -> Library | None:
    """The library of all arrays among these, or None without arrays.

    Raises MixedBackendsError for arrays of two libraries.
    """
    arrays = [x for group in groups for x in group if is_array(x)]
    library = common_library(name, [x for x in arrays if not isinstance(x, Layer)])
    for x in arrays:
        if isinstance(x, Layer):
            own = element_of(x).library
            if library is not None and own is not library:
                raise mixed(name, library, own)
            library = own
    return library


def library_of(name: str, *groups: Sequence[Any]) -> Library:
    """As `library_in`, but the library of the default backend without arrays."""
    return library_in(name, *groups) or default_library()


def layered(*groups: Sequence[Any]) -> bool:
    """Whether an enclosing transformation records a loop, so that an array is a layer."""
    for group in groups:
        for x in group:
            if isinstance(x, Layer):
                return True
    return False


def control_of(library: Library, *groups: Sequence[Any]) -> Any:
    """The library's own loops and branches, if it traces these raw arrays. None for layers."""
    if layered(*groups):
        return None
    return library.backend.kernel("control")(library.xp, list(chain(*groups)))


def numbers_as_arrays(argument: TreeArgument, results: Sequence[Any], library: Library) -> None:
    """Replace each Python scalar among the leaves by a 0-d array.

    Its dtype is that of the body's result in the same place, according to type promotion.
    """
    for i, x in enumerate(argument.leaves):
        if type(x) in SCALARS:
            y = results[i] if i < len(results) else None
            if type(y) in SCALARS and type(y) is not type(x):
                x = type(x + y)(x)  # for example an int beside a float
            argument.leaves[i] = number_as_array(x, library, y)


def number_as_array(x: Any, library: Library, like: Any) -> Any:
    """A Python scalar as a 0-d array, with the dtype of `like` if that is an array of its kind."""
    fits = is_array(like) and goes_to(x, element_of(like))
    return library.xp.asarray(x, dtype=element_of(like).dtype if fits else None)


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
    xp = library_of("scan", arrays).xp

    def dtype(x: Any) -> Any:
        kind = _KINDS[type(x)]
        return next((y.dtype for y in arrays if xp.isdtype(y.dtype, kind)), None)

    return [xp.asarray(x, dtype=dtype(x)) if type(x) in SCALARS else x for x in values]


_KINDS = {bool: "bool", int: "integral", float: "real floating", complex: "complex floating"}


def goes_to(x: Any, elem: Any) -> bool:
    """Whether a Python scalar can be an array of that dtype."""
    if isinstance(x, bool):
        return bool(elem.bool)
    if isinstance(x, complex):
        return bool(elem.complex)
    return bool(elem.floating) or (isinstance(x, int) and not elem.bool)


def fitted(argument: TreeArgument, results: Results, problem: str) -> list[Any]:
    """The leaves of the result of a body, which must match its argument.

    The structure, the shapes and the dtypes must be equal; otherwise TypeError is raised. Arrays of
    another library raise MixedBackendsError.
    """
    leaves, structure = results
    if structure is not argument.structure and not tree.same(structure, argument.structure):
        try:
            leaves = tree.fitted(argument.structure, tree.built(structure, leaves))
        except ValueError as error:
            raise TypeError(f"{problem}: {error}") from None
    forms = argument.forms
    if forms is None:
        forms = [
            None if type(x) in SCALARS else (element_of(x), tuple(x.shape)) for x in argument.leaves
        ]
        if None not in forms:
            argument.forms = forms
    for i, (expected, x, y) in enumerate(zip(forms, argument.leaves, leaves, strict=True)):
        if expected is None:
            continue  # numbers_as_arrays replaces it, once the result of the body is known
        elem, shape = expected
        if type(y) in SCALARS and not shape and goes_to(y, elem):
            leaves[i] = elem.library.xp.asarray(y, dtype=elem.dtype)
            continue
        try:
            other = element_of(y)
        except TypeError:
            if is_array(y):
                raise
            raise TypeError(
                f"{problem}: the leaf{argument.at(i)} is a {type(y).__name__}, but was given as an "
                f"array of {form(x)}"
            ) from None
        if elem.library is not other.library:
            raise mixed(problem.partition(":")[0], elem.library, other.library)
        if shape != tuple(y.shape) or elem.dtype != other.dtype:
            raise TypeError(
                f"{problem}: the leaf{argument.at(i)} is of {form(y)}, but was given as an array "
                f"of {form(x)}. Convert it with astype or reshape"
            )
    return leaves


def form(x: Any) -> str:
    """The shape and the dtype of an array, for a message."""
    return f"shape {tuple(x.shape)} and dtype {element_of(x).dtype}"


def described(x: Any) -> str:
    return f"an array of {form(x)}" if is_array(x) else f"a {type(x).__name__}"


def finished(raw: bool) -> Callable[[Any], Any]:
    """The function that turns a result into a raw array or a Tensor.

    Raw arguments give raw arrays, except for a Tensor with a history. Tensors give Tensors.
    """
    return unwrapped if raw else returned


def unwrapped(x: Any) -> Any:
    """The value of Tensors without a history, at any level; another value itself."""
    while isinstance(x, Tensor) and x._elem.run is not None and x._node is None:
        x._check()
        x = x._array
    return strip(x)


# Values that decide a branch or a loop: a predicate, an index, a bound


def differs(x: Any) -> bool:
    """Whether a value differs between the examples of a batch, at any level."""
    return any(isinstance(layer, Batched) for layer in layers_in(x))


def known(x: Any) -> bool:
    """Whether a value is known, and the same for all examples.

    Read the value itself afterwards, so that a recording notices it.
    """
    if isinstance(x, Layer):
        x._check()
    if differs(x):
        return False
    at = innermost(x)
    library = element_of(at).library
    return (
        library.backend.kernel("concrete_bool")(library.xp, at if element_of(at).bool else at == at)
        is not None
    )


def integer(x: Any, what: str) -> Any:
    """`x` itself, which must be an int or an integer array of shape ()."""
    x = observe.passed(x)
    if type(x) is int:
        return x
    if not is_array(x) or tuple(x.shape) or element_of(x).floating or element_of(x).bool:
        raise TypeError(
            f"{what} must be an int or an integer array of shape (), not {described(x)}"
        )
    return x


def known_number(x: Any, what: str) -> int | None:
    """The value of an int or an integer array of shape (), or None.

    None means that the value is unknown, or differs between examples.
    """
    x = integer(x, what)
    return int(x) if type(x) is int or known(x) else None
