"""The types of settings: parameters that are flags, axes or lengths.

Libraries take many wrong types without an error: NumPy reverses no axis for `flip(x, axis='')` and
the first for `axis=False`. `dispatch.general` accepts what may stand for the usual types, and
raises for the rest. The key of a call has the type of a setting, but not those of the elements of a
tuple of axes or lengths: a runner leaves them to the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..registry import Op, per_operation


class Setting(NamedTuple):
    """A kind of settings.

    types     the types that need no further test
    accepts   whether a value of another type may stand for one of these
    expected  what the error says; `{n}` is the setting
    """

    types: frozenset[type]
    accepts: Callable[[Any], bool]
    expected: str


def _is_integer(x: Any) -> bool:
    """Whether `x` is like an integer: also a 0-d array, but no array with an axis."""
    return hasattr(x, "__index__") and not getattr(x, "ndim", 0)


def _is_flag(x: Any) -> bool:
    """Whether `x` is like a bool: np.True_, an integer, a 0-d array of one of these."""
    return _is_integer(x) or (
        str(getattr(x, "dtype", "")).rpartition(".")[2] == "bool" and not getattr(x, "ndim", 0)
    )


def _is_axis(x: Any) -> bool:
    axes = x if isinstance(x, (list, tuple, range)) else (x,)
    return all(_is_integer(y) and not isinstance(y, bool) for y in axes)


def _is_length(x: Any) -> bool:
    """Whether `x` is like an integer, or a sequence, whose elements the library checks.

    The length of an axis may be unknown, as nan.
    """
    return _is_integer(x) or (
        isinstance(x, Sequence) and not isinstance(x, (str, bytes, bytearray, memoryview))
    )


_WHOLE = frozenset((int, type(None)))
FLAG = Setting(frozenset((bool,)), _is_flag, "a bool. Pass True or False")
OPTIONAL_FLAG = Setting(
    frozenset((bool, type(None))), _is_flag, "a bool or None. Pass True, False or None"
)
AXIS = Setting(
    _WHOLE,
    _is_axis,
    "an integer, a tuple of integers, or None. Pass the number of the axis, as in {n}=0",
)
INTEGER = Setting(_WHOLE, _is_integer, "an integer. Pass it as in {n}=1")
LENGTHS = Setting(_WHOLE, _is_length, "an integer or a tuple of integers. Pass it as in {n}=1")

BY_NAME = (
    dict.fromkeys(("axes", "axis", "axis1", "axis2", "axisa", "axisb", "axisc"), AXIS)
    | dict.fromkeys(("destination", "source"), AXIS)
    | dict.fromkeys(("edge_order", "k", "n", "n_cols", "n_rows", "num", "offset"), INTEGER)
    | dict.fromkeys(("repetitions", "s", "shape", "shift", "window_shape"), LENGTHS)
    | {"copy": OPTIONAL_FLAG}
)
"""The kinds of parameters by their names. Those with a bool as their default are flags."""

OTHER = ("tensordot.axes", "linalg.tensordot.axes", "einsum.optimize", "to_backend.source")
"""Parameters with such a name and another meaning."""


@per_operation
def kinds(op: Op) -> dict[str, Setting]:
    """The settings of an operation whose types are checked. Plugins check their own."""
    if not op.builtin:
        return {}
    named = {
        n: FLAG if type(p.default) is bool else BY_NAME.get(n)
        for n, p in op.signature.parameters.items()
        if op.roles[n] == "plain" and f"{op.name}.{n}" not in OTHER
    }
    return {n: kind for n, kind in named.items() if kind is not None}


def check(op: Op, values: tuple[Any, ...]) -> None:
    """Raise TypeError if a setting of an operation has a wrong type."""
    expected = kinds(op)
    for name, value in zip(op.roles, values, strict=True):
        if name in expected:
            check_one(op.name, name, value, expected[name])


def flag(function: str, name: str, value: Any) -> bool:
    """Whether a flag is set. Raises TypeError unless it is like a bool."""
    check_one(function, name, value, FLAG)
    return bool(value)


def check_one(function: str, name: str, value: Any, kind: Setting) -> None:
    """Raise TypeError if the value of one setting has a wrong type."""
    if type(value) in kind.types or kind.accepts(value):
        return
    expected = kind.expected.format(n=name)
    must, _, cure = expected.partition(". ")
    raise TypeError(
        f"{function}(): argument {name!r} must be {must}, not {type(value).__name__}: {value!r:.60}"
        f". {cure}."
    )
