"""Function: operations with a user-defined derivative.

Corresponds to torch.autograd.function.
"""

from __future__ import annotations

from ..custom.function import Function, FunctionMeta, InplaceFunction, once_differentiable
from ..custom.kept import FunctionCtx
from ..custom.node import BackwardCFunction

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "once_differentiable",
]

_ContextMethodMixin = FunctionCtx
