"""The comparison of a program with its function.

It detects functions that depend on more than their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import tree
from ..core.aliasing import laid_out
from ..core.element import SCALARS, library_of
from ..core.level import Layer
from ..core.tensor import Tensor, wrap
from ..errors import MultigradError
from ..program import Torn
from .arrays import equal, unshared
from .leaves import Arguments, raw
from .variants import Variant
from .writes import write


class HiddenStateError(MultigradError, RuntimeError):
    """A compiled function depends on a state besides its arguments, which the recording froze."""


def compared(
    function: Callable[..., Any], name: str, variant: Variant, arguments: Arguments
) -> Any:
    """The result of the program for these arguments, after a comparison with the function.

    Raises HiddenStateError if they differ, and Torn if the function raises.
    """
    leaves = _copies(arguments, variant)
    before = _read(arguments, variant)
    outs = variant.run(*[raw(leaves[i]) for i in arguments.inputs])
    values = _values(variant.returned(outs, leaves), leaves, variant)
    expected = _called(function, arguments, variant)
    _unwritten(name, arguments, before)
    exactly = _different(values, expected)
    if exactly:
        different = _different(values, expected, _unit(variant))
        if different or _different(expected, _called(function, arguments, variant)):
            raise HiddenStateError(_message(name, exactly[0][0], different))
    for i in variant.writes:
        write(arguments.leaves[i], raw(leaves[i]))
    return variant.result(outs, arguments.leaves)


def _copies(arguments: Arguments, variant: Variant) -> list[Any]:
    """The leaves of the arguments, with copies of those that are written."""
    leaves = list(arguments.leaves)
    for i in variant.writes:
        x = leaves[i]
        # with the strides of the original, since reshaping it may make a copy because of them
        copy = laid_out(unshared(raw(x)), raw(x))
        leaves[i] = wrap(copy) if isinstance(x, Tensor) else copy
    return leaves


def _read(arguments: Arguments, variant: Variant) -> list[tuple[int, Any]]:
    """Copies of the arrays that the program only reads, with their places."""
    library = arguments.library
    if library is None or not library.mutable:
        return []
    places = [
        i
        for i in arguments.inputs
        if arguments.kinds[i].library is library and i not in variant.writes
    ]
    return [(i, unshared(raw(arguments.leaves[i]))) for i in places]


def _unwritten(name: str, arguments: Arguments, before: Sequence[tuple[int, Any]]) -> None:
    """Raise if the function has written to arrays that its program only reads, and restore them."""
    names = []
    for i, value in before:
        x = raw(arguments.leaves[i])
        if not equal(x, value):
            write(x, value)
            names.append(arguments.name(i))
    if names:
        raise HiddenStateError(
            f"compile: {name} has written to {', '.join(names)} in a way that its program has "
            "not recorded, as by a method of the library's own arrays. Write by x[...] = "
            "value, or by an operator such as x += value"
        )


def _called(
    function: Callable[..., Any], arguments: Arguments, variant: Variant
) -> list[tuple[str, Any]]:
    """The results of the function, and the arguments that it writes."""
    leaves = _copies(arguments, variant)
    try:
        args, kwargs = arguments.built(leaves)
        return _values(function(*args, **kwargs), leaves, variant)
    except BaseException as error:
        for i in variant.writes:
            write(arguments.leaves[i], raw(leaves[i]))
        if isinstance(error, Exception):
            raise Torn(error) from None  # the function has been called, and is not called again
        raise


def _values(result: Any, leaves: Sequence[Any], variant: Variant) -> list[tuple[str, Any]]:
    """The values of a call to compare, each with its name.

    They are the leaves of the result, and the arguments that were written.
    """
    results = [(f"result{where}", x) for where, x in tree.named_leaves(result)]
    return results + [(f"argument {i} in place", leaves[i]) for i in variant.writes]


def _unit(variant: Variant) -> float:
    """The unit of rounding of the lowest precision in which the program computes."""
    library = variant.library
    dtypes = {spec.dtype for spec in variant.program.specs.values() if spec.dtype is not None}
    floating = [dtype for dtype in dtypes if library.element(dtype).floating]
    return max((float(library.xp.finfo(dtype).eps) for dtype in floating), default=0.0)


def _different(
    values: Sequence[tuple[str, Any]], expected: Sequence[tuple[str, Any]], unit: float = 0.0
) -> list[tuple[str, Any, Any]]:
    """The names and values that differ. With a unit of rounding, arrays may differ by rounding."""
    if [name for name, _ in values] != [name for name, _ in expected]:
        return [("the structure of the result", None, None)]
    pairs = [
        (name, _plain(x), _plain(y)) for (name, x), (_, y) in zip(values, expected, strict=True)
    ]
    return [(name, x, y) for name, x, y in pairs if not _same(x, y, unit)]


def _message(name: str, where: str, different: Sequence[tuple[str, Any, Any]]) -> str:
    """The error for a result that differs from that of the program."""
    libraries = [(where, _library(x), _library(y)) for where, x, y in different]
    if libraries and all(a and b and a is not b for _, a, b in libraries):
        place, library, other = libraries[0]
        return (
            f"compile: {name} has returned an array of {other.name} where its program returns one "
            f"of {library.name} ({place}). A function of {other.name} that takes an array of "
            f"{library.name} itself converts it, but a recording stays with {library.name}. Call "
            f"the function of multigrad or of {library.name} instead. (check=False skips the "
            "comparison.)"
        )
    return (
        f"compile: {name} has returned another result than its program, which was "
        f"recorded at an earlier call ({where}). So it depends on hidden state besides "
        "its arguments, such as a random generator, a counter or the time, and the "
        "program has frozen the state of the recording. Pass it as an argument. Or it "
        "asks for the class of its arguments, as by isinstance(x, numpy.ndarray): while "
        "it is recorded, they are layers. (check=False skips the comparison.)"
    )


def _library(x: Any) -> Any:
    return None if type(x) in SCALARS else library_of(x)


def _plain(x: Any) -> Any:
    while isinstance(x, Layer):
        x._check()
        x = x._array
    return x


def _same(x: Any, y: Any, unit: float) -> bool:
    if _library(x) is not None and _library(y) is not None:
        return equal(x, y, unit)
    return type(x) is type(y) and bool(x is y or x == y or (x != x and y != y))
