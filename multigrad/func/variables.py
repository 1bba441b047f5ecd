"""Type variables for transformations, which keep the parameters of the functions that they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    overload,
)

if TYPE_CHECKING:
    from ..typing import Array

__all__ = [
    "A1",
    "A2",
    "A3",
    "Args",
    "Aux",
    "ByArray",
    "First",
    "No",
    "Out",
    "P",
    "R",
    "Second",
    "State",
    "Third",
    "Transformed",
    "X",
    "Xs",
    "Y",
    "Yes",
]

# Bound by Any, so that type checkers accept any use of a lambda's parameters.
P = ParamSpec("P")
R = TypeVar("R")
A1 = TypeVar("A1", bound=Any)
A2 = TypeVar("A2", bound=Any)
A3 = TypeVar("A3", bound=Any)
Aux = TypeVar("Aux")
Args = TypeVarTuple("Args")
State = TypeVar("State")
Xs = TypeVar("Xs", bound=Any)
Y = TypeVar("Y", bound=Any)
X = TypeVar("X", bound="Array")
Out = TypeVar("Out", bound="Array")

Result = TypeVar("Result", covariant=True)
Variable = TypeVar("Variable", covariant=True)


class Transformed(Protocol[P, Result]):
    """A function with the parameters of another function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result: ...


class ByArray(Protocol[Variable, P, Result]):
    """A derivative whose structure is known if the variable is an array.

    If the variable is a dictionary, list or tuple of arrays, the structure is unknown.
    """

    @property
    def variable(self) -> Variable: ...
    @overload
    def __call__(self: ByArray[Array, P, Result], *args: P.args, **kwargs: P.kwargs) -> Result: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...


First: TypeAlias = Callable[Concatenate[A1, P], R]
Second: TypeAlias = Callable[Concatenate[A1, A2, P], R]
Third: TypeAlias = Callable[Concatenate[A1, A2, A3, P], R]
No: TypeAlias = Literal[False]
Yes: TypeAlias = Literal[True]
