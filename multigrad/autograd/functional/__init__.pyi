"""What type checkers see of `autograd.functional`.

The structure of a result depends on whether the inputs are a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from ...core.tensor import Tensor
from ...typing import Array

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_Tensors = tuple[Tensor, ...]
_R = TypeVar("_R")

@overload
def vjp(
    func: Callable[[Tensor], _R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[_R, Tensor]: ...
@overload
def vjp(
    func: Callable[..., _R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[_R, _Tensors]: ...
@overload
def jvp(
    func: Callable[[Tensor], _R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[_R, _R]: ...
@overload
def jvp(
    func: Callable[..., _R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[_R, _R]: ...
@overload
def jacobian(
    func: Callable[[Tensor], _R],
    inputs: Array,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> _R: ...
@overload
def jacobian(
    func: Callable[..., Tensor],
    inputs: tuple[Array, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> _Tensors: ...
@overload
def jacobian(
    func: Callable[..., _Tensors],
    inputs: tuple[Array, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> tuple[_Tensors, ...]: ...
@overload
def hessian(
    func: Callable[[Tensor], Any],
    inputs: Array,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Tensor: ...
@overload
def hessian(
    func: Callable[..., Any],
    inputs: tuple[Array, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> tuple[_Tensors, ...]: ...
@overload
def vhp(
    func: Callable[[Tensor], _R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[_R, Tensor]: ...
@overload
def vhp(
    func: Callable[..., _R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[_R, _Tensors]: ...
@overload
def hvp(
    func: Callable[[Tensor], _R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[_R, Tensor]: ...
@overload
def hvp(
    func: Callable[..., _R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[_R, _Tensors]: ...
