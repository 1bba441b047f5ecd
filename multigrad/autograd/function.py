"""Function: operations with a derivative of the user's own.

The meaning is that of torch.autograd.function.
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
