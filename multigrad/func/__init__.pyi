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
_P = ParamSpec("_P")
_R = TypeVar("_R")
_A1 = TypeVar("_A1", bound=Any)
_A2 = TypeVar("_A2", bound=Any)
_A3 = TypeVar("_A3", bound=Any)
_Aux = TypeVar("_Aux")
_Args = TypeVarTuple("_Args")
_State = TypeVar("_State")
_Xs = TypeVar("_Xs", bound=Any)
_Y = TypeVar("_Y", bound=Any)
_X = TypeVar("_X", bound="Array")
_Out = TypeVar("_Out", bound="Array")

_Result = TypeVar("_Result", covariant=True)
_Variable = TypeVar("_Variable", covariant=True)

class _Transformed(Protocol[_P, _Result]):
    """A function with the parameters of another function."""

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _Result: ...

class _ByArray(Protocol[_Variable, _P, _Result]):
    """A derivative whose structure is known if the variable is an array.

    If the variable is a dictionary, list or tuple of arrays, the structure is unknown.
    """

    @property
    def variable(self) -> _Variable: ...
    @overload
    def __call__(
        self: _ByArray[Array, _P, _Result], *args: _P.args, **kwargs: _P.kwargs
    ) -> _Result: ...
    @overload
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Any: ...

_First: TypeAlias = Callable[Concatenate[_A1, _P], _R]
_Second: TypeAlias = Callable[Concatenate[_A1, _A2, _P], _R]
_Third: TypeAlias = Callable[Concatenate[_A1, _A2, _A3, _P], _R]
_No: TypeAlias = Literal[False]
_Yes: TypeAlias = Literal[True]

@overload
def vjp(
    function: Callable[[*_Args], _R], *primals: *_Args, has_aux: _No = False
) -> tuple[_R, Callable[[_R], tuple[*_Args]]]: ...
@overload
def vjp(
    function: Callable[[*_Args], tuple[_R, _Aux]], *primals: *_Args, has_aux: _Yes
) -> tuple[_R, Callable[[_R], tuple[*_Args]], _Aux]: ...
@overload
def value_and_grad(
    function: _First[_A1, _P, _R], argnums: Literal[0] = 0, has_aux: _No = False
) -> _Transformed[Concatenate[_A1, _P], tuple[_R, _A1]]: ...
@overload
def value_and_grad(
    function: _Second[_A1, _A2, _P, _R], argnums: Literal[1], has_aux: _No = False
) -> _Transformed[Concatenate[_A1, _A2, _P], tuple[_R, _A2]]: ...
@overload
def value_and_grad(
    function: _Second[_A1, _A2, _P, _R],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: _No = False,
) -> _Transformed[Concatenate[_A1, _A2, _P], tuple[_R, tuple[_A1, _A2]]]: ...
@overload
def value_and_grad(
    function: _Third[_A1, _A2, _A3, _P, _R],
    argnums: tuple[Literal[0], Literal[1], Literal[2]],
    has_aux: _No = False,
) -> _Transformed[Concatenate[_A1, _A2, _A3, _P], tuple[_R, tuple[_A1, _A2, _A3]]]: ...
@overload
def value_and_grad(
    function: _First[_A1, _P, tuple[_R, _Aux]], argnums: Literal[0] = 0, *, has_aux: _Yes
) -> _Transformed[Concatenate[_A1, _P], tuple[tuple[_R, _Aux], _A1]]: ...
@overload
def value_and_grad(
    function: Callable[_P, tuple[_R, _Aux]], argnums: int | Sequence[int], has_aux: _Yes
) -> _Transformed[_P, tuple[tuple[_R, _Aux], Any]]: ...
@overload
def value_and_grad(
    function: Callable[_P, _R], argnums: int | Sequence[int], has_aux: bool = False
) -> _Transformed[_P, tuple[Any, Any]]: ...
@overload
def grad(
    function: _First[_A1, _P, _R], argnums: Literal[0] = 0, has_aux: _No = False
) -> _Transformed[Concatenate[_A1, _P], _A1]: ...
@overload
def grad(
    function: _Second[_A1, _A2, _P, _R], argnums: Literal[1], has_aux: _No = False
) -> _Transformed[Concatenate[_A1, _A2, _P], _A2]: ...
@overload
def grad(
    function: _Second[_A1, _A2, _P, _R],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: _No = False,
) -> _Transformed[Concatenate[_A1, _A2, _P], tuple[_A1, _A2]]: ...
@overload
def grad(
    function: _Third[_A1, _A2, _A3, _P, _R],
    argnums: tuple[Literal[0], Literal[1], Literal[2]],
    has_aux: _No = False,
) -> _Transformed[Concatenate[_A1, _A2, _A3, _P], tuple[_A1, _A2, _A3]]: ...
@overload
def grad(
    function: _First[_A1, _P, tuple[_R, _Aux]], argnums: Literal[0] = 0, *, has_aux: _Yes
) -> _Transformed[Concatenate[_A1, _P], tuple[_A1, _Aux]]: ...
@overload
def grad(
    function: Callable[_P, tuple[_R, _Aux]], argnums: int | Sequence[int], has_aux: _Yes
) -> _Transformed[_P, tuple[Any, _Aux]]: ...
@overload
def grad(
    function: Callable[_P, _R], argnums: int | Sequence[int], has_aux: bool = False
) -> _Transformed[_P, Any]: ...
@overload
def jvp(
    function: Callable[[*_Args], _R],
    primals: tuple[*_Args],
    tangents: tuple[*_Args],
    *,
    strict: bool = False,
    has_aux: _No = False,
) -> tuple[_R, _R]: ...
@overload
def jvp(
    function: Callable[[*_Args], tuple[_R, _Aux]],
    primals: tuple[*_Args],
    tangents: tuple[*_Args],
    *,
    strict: bool = False,
    has_aux: _Yes,
) -> tuple[_R, _R, _Aux]: ...
@overload
def jvp(
    function: Callable[[_X], _R],
    primals: _X,
    tangents: _X,
    *,
    strict: bool = False,
    has_aux: _No = False,
) -> tuple[_R, _R]: ...
@overload
def jvp(
    function: Callable[[_X], tuple[_R, _Aux]],
    primals: _X,
    tangents: _X,
    *,
    strict: bool = False,
    has_aux: _Yes,
) -> tuple[_R, _R, _Aux]: ...
@overload
def jacrev(
    function: _First[_A1, _P, _R],
    argnums: Literal[0] = 0,
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
) -> _ByArray[_A1, Concatenate[_A1, _P], _R]: ...
@overload
def jacrev(
    function: _Second[_A1, _A2, _P, _R],
    argnums: Literal[1],
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
) -> _ByArray[_A2, Concatenate[_A1, _A2, _P], _R]: ...
@overload
def jacrev(
    function: _Second[_A1, _A2, _P, _Out],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
) -> _ByArray[_A1 | _A2, Concatenate[_A1, _A2, _P], tuple[_Out, _Out]]: ...
@overload
def jacrev(
    function: _First[_A1, _P, tuple[_R, _Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: _Yes,
    chunk_size: int | None = None,
) -> _ByArray[_A1, Concatenate[_A1, _P], tuple[_R, _Aux]]: ...
@overload
def jacrev(
    function: Callable[_P, Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
) -> _Transformed[_P, Any]: ...
@overload
def jacfwd(
    function: _First[_A1, _P, _R],
    argnums: Literal[0] = 0,
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> _ByArray[_A1, Concatenate[_A1, _P], _R]: ...
@overload
def jacfwd(
    function: _Second[_A1, _A2, _P, _R],
    argnums: Literal[1],
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> _ByArray[_A2, Concatenate[_A1, _A2, _P], _R]: ...
@overload
def jacfwd(
    function: _Second[_A1, _A2, _P, _Out],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> _ByArray[_A1 | _A2, Concatenate[_A1, _A2, _P], tuple[_Out, _Out]]: ...
@overload
def jacfwd(
    function: _First[_A1, _P, tuple[_R, _Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: _Yes,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> _ByArray[_A1, Concatenate[_A1, _P], tuple[_R, _Aux]]: ...
@overload
def jacfwd(
    function: Callable[_P, Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> _Transformed[_P, Any]: ...
@overload
def jacobian(
    function: _First[_A1, _P, _R],
    argnums: Literal[0] = 0,
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
) -> _ByArray[_A1, Concatenate[_A1, _P], _R]: ...
@overload
def jacobian(
    function: _Second[_A1, _A2, _P, _R],
    argnums: Literal[1],
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
) -> _ByArray[_A2, Concatenate[_A1, _A2, _P], _R]: ...
@overload
def jacobian(
    function: _Second[_A1, _A2, _P, _Out],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
) -> _ByArray[_A1 | _A2, Concatenate[_A1, _A2, _P], tuple[_Out, _Out]]: ...
@overload
def jacobian(
    function: _First[_A1, _P, tuple[_R, _Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: _Yes,
    chunk_size: int | None = None,
) -> _ByArray[_A1, Concatenate[_A1, _P], tuple[_R, _Aux]]: ...
@overload
def jacobian(
    function: Callable[_P, Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
) -> _Transformed[_P, Any]: ...
@overload
def hessian(
    function: _First[_A1, _P, _R],
    argnums: Literal[0] = 0,
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
) -> _ByArray[_A1, Concatenate[_A1, _P], _R]: ...
@overload
def hessian(
    function: _Second[_A1, _A2, _P, _R],
    argnums: Literal[1],
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
) -> _ByArray[_A2, Concatenate[_A1, _A2, _P], _R]: ...
@overload
def hessian(
    function: _Second[_A1, _A2, _P, _Out],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: _No = False,
    *,
    chunk_size: int | None = None,
) -> _ByArray[
    _A1 | _A2, Concatenate[_A1, _A2, _P], tuple[tuple[_Out, _Out], tuple[_Out, _Out]]
]: ...
@overload
def hessian(
    function: _First[_A1, _P, tuple[_R, _Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: _Yes,
    chunk_size: int | None = None,
) -> _ByArray[_A1, Concatenate[_A1, _P], tuple[_R, _Aux]]: ...
@overload
def hessian(
    function: Callable[_P, Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
) -> _Transformed[_P, Any]: ...
@overload
def hvp(
    function: Callable[[*_Args], _R],
    primals: tuple[*_Args],
    tangents: tuple[*_Args],
    *,
    has_aux: _No = False,
) -> tuple[_R, tuple[*_Args]]: ...
@overload
def hvp(
    function: Callable[[*_Args], tuple[_R, _Aux]],
    primals: tuple[*_Args],
    tangents: tuple[*_Args],
    *,
    has_aux: _Yes,
) -> tuple[_R, tuple[*_Args], _Aux]: ...
@overload
def hvp(
    function: Callable[[_X], _R], primals: _X, tangents: _X, *, has_aux: _No = False
) -> tuple[_R, _X]: ...
@overload
def hvp(
    function: Callable[[_X], tuple[_R, _Aux]], primals: _X, tangents: _X, *, has_aux: _Yes
) -> tuple[_R, _X, _Aux]: ...
@overload
def scan(
    body: Callable[[_State, _Xs], tuple[_State, _Y]],
    carry: _State,
    xs: _Xs,
    *,
    length: int | None = None,
    reverse: bool = False,
    checkpoint: Checkpoint = "step",
) -> tuple[_State, _Y]: ...
@overload
def scan(
    body: Callable[[_State, None], tuple[_State, _Y]],
    carry: _State,
    xs: None = None,
    *,
    length: int | None = None,
    reverse: bool = False,
    checkpoint: Checkpoint = "step",
) -> tuple[_State, _Y]: ...
