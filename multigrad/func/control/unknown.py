"""Questions about a value that decides a branch or a loop: a predicate, an index, a bound."""

from __future__ import annotations

from typing import Any

from ... import observe
from ...core.element import is_array
from ...core.level import Layer, innermost
from ...core.tensor import element_of
from ...layers.batched import Batched
from .arguments import form


def differs(x: Any) -> bool:
    """Whether a value differs between the examples of a batch, at any level."""
    while isinstance(x, Layer):
        if isinstance(x, Batched):
            return True
        x = x._array
    return False


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


def known_number(x: Any, what: str) -> int | None:
    """The value of an int or an integer array of shape (), or None.

    None means that the value is unknown, or differs between examples.
    """
    x = observe.stand_in(x)
    if type(x) is int:
        return x
    if not is_array(x):
        raise TypeError(
            f"{what} must be an int or an integer array of shape (), not a {type(x).__name__}"
        )
    if tuple(x.shape) or element_of(x).floating or element_of(x).bool:
        raise TypeError(
            f"{what} must be an int or an integer array of shape (), not an array of {form(x)}"
        )
    return int(x) if known(x) else None
