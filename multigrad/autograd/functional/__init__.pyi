"""What type checkers see of `autograd.functional`.

The structure of a result depends on whether the inputs are a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from ...core.tensor import Tensor
from ...typing import Array

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]
R = TypeVar("R")

@overload
def vjp(
    func: Callable[[Tensor], R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensor]: ...
@overload
def vjp(
    func: Callable[..., R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensors]: ...
@overload
def jvp(
    func: Callable[[Tensor], R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    func: Callable[..., R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, R]: ...
@overload
def jacobian(
    func: Callable[[Tensor], R],
    inputs: Array,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> R: ...
@overload
def jacobian(
    func: Callable[..., Tensor],
    inputs: tuple[Array, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Tensors: ...
@overload
def jacobian(
    func: Callable[..., Tensors],
    inputs: tuple[Array, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> tuple[Tensors, ...]: ...
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
) -> tuple[Tensors, ...]: ...
@overload
def vhp(
    func: Callable[[Tensor], R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensor]: ...
@overload
def vhp(
    func: Callable[..., R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensors]: ...
@overload
def hvp(
    func: Callable[[Tensor], R],
    inputs: Array,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensor]: ...
@overload
def hvp(
    func: Callable[..., R],
    inputs: tuple[Array, ...],
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Tensors]: ...
