"""Function: operations with a derivative of the user's own. The meaning is that of torch.autograd.function."""

from __future__ import annotations

from ..custom.context import FunctionCtx
from ..custom.function import Function, FunctionMeta, InplaceFunction, once_differentiable
from ..custom.node import BackwardCFunction

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]

_ContextMethodMixin = FunctionCtx
