"""What type checkers see of the transformations.

The type of a result depends on that of the function, and on `argnums` and `has_aux` where a program
has them as literals. Functions without overloads have their types in their modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import (
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

from ..tree import register_pytree
from ..typing import Array
from . import tree
from .checkpoint import checkpoint
from .compile import compile
from .control.branches import cond, switch
from .control.checkpoints import Checkpoint
from .control.whiles import fori_loop, while_loop
from .custom import custom_jvp, custom_vjp
from .forward import linearize
from .ravel import ravel_pytree
from .vmap import vmap

__all__ = [
    "checkpoint",
    "compile",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "ravel_pytree",
    "register_pytree",
    "scan",
    "switch",
    "tree",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
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

@overload
def vjp(
    function: Callable[[*Args], R], *primals: *Args, has_aux: No = False
) -> tuple[R, Callable[[R], tuple[*Args]]]: ...
@overload
def vjp(
    function: Callable[[*Args], tuple[R, Aux]], *primals: *Args, has_aux: Yes
) -> tuple[R, Callable[[R], tuple[*Args]], Aux]: ...
@overload
def value_and_grad(
    function: First[A1, P, R], argnums: Literal[0] = 0, has_aux: No = False
) -> Transformed[Concatenate[A1, P], tuple[R, A1]]: ...
@overload
def value_and_grad(
    function: Second[A1, A2, P, R], argnums: Literal[1], has_aux: No = False
) -> Transformed[Concatenate[A1, A2, P], tuple[R, A2]]: ...
@overload
def value_and_grad(
    function: Second[A1, A2, P, R], argnums: tuple[Literal[0], Literal[1]], has_aux: No = False
) -> Transformed[Concatenate[A1, A2, P], tuple[R, tuple[A1, A2]]]: ...
@overload
def value_and_grad(
    function: Third[A1, A2, A3, P, R],
    argnums: tuple[Literal[0], Literal[1], Literal[2]],
    has_aux: No = False,
) -> Transformed[Concatenate[A1, A2, A3, P], tuple[R, tuple[A1, A2, A3]]]: ...
@overload
def value_and_grad(
    function: First[A1, P, tuple[R, Aux]], argnums: Literal[0] = 0, *, has_aux: Yes
) -> Transformed[Concatenate[A1, P], tuple[tuple[R, Aux], A1]]: ...
@overload
def value_and_grad(
    function: Callable[P, tuple[R, Aux]], argnums: int | Sequence[int], has_aux: Yes
) -> Transformed[P, tuple[tuple[R, Aux], Any]]: ...
@overload
def value_and_grad(
    function: Callable[P, R], argnums: int | Sequence[int], has_aux: bool = False
) -> Transformed[P, tuple[Any, Any]]: ...
@overload
def grad(
    function: First[A1, P, R], argnums: Literal[0] = 0, has_aux: No = False
) -> Transformed[Concatenate[A1, P], A1]: ...
@overload
def grad(
    function: Second[A1, A2, P, R], argnums: Literal[1], has_aux: No = False
) -> Transformed[Concatenate[A1, A2, P], A2]: ...
@overload
def grad(
    function: Second[A1, A2, P, R], argnums: tuple[Literal[0], Literal[1]], has_aux: No = False
) -> Transformed[Concatenate[A1, A2, P], tuple[A1, A2]]: ...
@overload
def grad(
    function: Third[A1, A2, A3, P, R],
    argnums: tuple[Literal[0], Literal[1], Literal[2]],
    has_aux: No = False,
) -> Transformed[Concatenate[A1, A2, A3, P], tuple[A1, A2, A3]]: ...
@overload
def grad(
    function: First[A1, P, tuple[R, Aux]], argnums: Literal[0] = 0, *, has_aux: Yes
) -> Transformed[Concatenate[A1, P], tuple[A1, Aux]]: ...
@overload
def grad(
    function: Callable[P, tuple[R, Aux]], argnums: int | Sequence[int], has_aux: Yes
) -> Transformed[P, tuple[Any, Aux]]: ...
@overload
def grad(
    function: Callable[P, R], argnums: int | Sequence[int], has_aux: bool = False
) -> Transformed[P, Any]: ...
@overload
def jvp(
    function: Callable[[*Args], R],
    primals: tuple[*Args],
    tangents: tuple[*Args],
    *,
    strict: bool = False,
    has_aux: No = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    function: Callable[[*Args], tuple[R, Aux]],
    primals: tuple[*Args],
    tangents: tuple[*Args],
    *,
    strict: bool = False,
    has_aux: Yes,
) -> tuple[R, R, Aux]: ...
@overload
def jvp(
    function: Callable[[X], R],
    primals: X,
    tangents: X,
    *,
    strict: bool = False,
    has_aux: No = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    function: Callable[[X], tuple[R, Aux]],
    primals: X,
    tangents: X,
    *,
    strict: bool = False,
    has_aux: Yes,
) -> tuple[R, R, Aux]: ...
@overload
def jacrev(
    function: First[A1, P, R],
    argnums: Literal[0] = 0,
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
) -> ByArray[A1, Concatenate[A1, P], R]: ...
@overload
def jacrev(
    function: Second[A1, A2, P, R],
    argnums: Literal[1],
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
) -> ByArray[A2, Concatenate[A1, A2, P], R]: ...
@overload
def jacrev(
    function: Second[A1, A2, P, Out],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
) -> ByArray[A1 | A2, Concatenate[A1, A2, P], tuple[Out, Out]]: ...
@overload
def jacrev(
    function: First[A1, P, tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Yes,
    chunk_size: int | None = None,
) -> ByArray[A1, Concatenate[A1, P], tuple[R, Aux]]: ...
@overload
def jacrev(
    function: Callable[P, Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
) -> Transformed[P, Any]: ...
@overload
def jacfwd(
    function: First[A1, P, R],
    argnums: Literal[0] = 0,
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> ByArray[A1, Concatenate[A1, P], R]: ...
@overload
def jacfwd(
    function: Second[A1, A2, P, R],
    argnums: Literal[1],
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> ByArray[A2, Concatenate[A1, A2, P], R]: ...
@overload
def jacfwd(
    function: Second[A1, A2, P, Out],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> ByArray[A1 | A2, Concatenate[A1, A2, P], tuple[Out, Out]]: ...
@overload
def jacfwd(
    function: First[A1, P, tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Yes,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> ByArray[A1, Concatenate[A1, P], tuple[R, Aux]]: ...
@overload
def jacfwd(
    function: Callable[P, Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Transformed[P, Any]: ...
@overload
def jacobian(
    function: First[A1, P, R],
    argnums: Literal[0] = 0,
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
) -> ByArray[A1, Concatenate[A1, P], R]: ...
@overload
def jacobian(
    function: Second[A1, A2, P, R],
    argnums: Literal[1],
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
) -> ByArray[A2, Concatenate[A1, A2, P], R]: ...
@overload
def jacobian(
    function: Second[A1, A2, P, Out],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
) -> ByArray[A1 | A2, Concatenate[A1, A2, P], tuple[Out, Out]]: ...
@overload
def jacobian(
    function: First[A1, P, tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Yes,
    chunk_size: int | None = None,
) -> ByArray[A1, Concatenate[A1, P], tuple[R, Aux]]: ...
@overload
def jacobian(
    function: Callable[P, Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
) -> Transformed[P, Any]: ...
@overload
def hessian(
    function: First[A1, P, R],
    argnums: Literal[0] = 0,
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
) -> ByArray[A1, Concatenate[A1, P], R]: ...
@overload
def hessian(
    function: Second[A1, A2, P, R],
    argnums: Literal[1],
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
) -> ByArray[A2, Concatenate[A1, A2, P], R]: ...
@overload
def hessian(
    function: Second[A1, A2, P, Out],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: No = False,
    *,
    chunk_size: int | None = None,
) -> ByArray[A1 | A2, Concatenate[A1, A2, P], tuple[tuple[Out, Out], tuple[Out, Out]]]: ...
@overload
def hessian(
    function: First[A1, P, tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Yes,
    chunk_size: int | None = None,
) -> ByArray[A1, Concatenate[A1, P], tuple[R, Aux]]: ...
@overload
def hessian(
    function: Callable[P, Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
) -> Transformed[P, Any]: ...
@overload
def hvp(
    function: Callable[[*Args], R],
    primals: tuple[*Args],
    tangents: tuple[*Args],
    *,
    has_aux: No = False,
) -> tuple[R, tuple[*Args]]: ...
@overload
def hvp(
    function: Callable[[*Args], tuple[R, Aux]],
    primals: tuple[*Args],
    tangents: tuple[*Args],
    *,
    has_aux: Yes,
) -> tuple[R, tuple[*Args], Aux]: ...
@overload
def hvp(
    function: Callable[[X], R], primals: X, tangents: X, *, has_aux: No = False
) -> tuple[R, X]: ...
@overload
def hvp(
    function: Callable[[X], tuple[R, Aux]], primals: X, tangents: X, *, has_aux: Yes
) -> tuple[R, X, Aux]: ...
@overload
def scan(
    body: Callable[[State, Xs], tuple[State, Y]],
    carry: State,
    xs: Xs,
    *,
    length: int | None = None,
    reverse: bool = False,
    checkpoint: Checkpoint = "step",
) -> tuple[State, Y]: ...
@overload
def scan(
    body: Callable[[State, None], tuple[State, Y]],
    carry: State,
    xs: None = None,
    *,
    length: int | None = None,
    reverse: bool = False,
    checkpoint: Checkpoint = "step",
) -> tuple[State, Y]: ...
