"""Transformations of functions over raw arrays, Tensors and nested structures of them.

Raw arrays as arguments give raw arrays as results.
"""

from __future__ import annotations

from ..tree import register_pytree
from . import tree as tree
from .checkpoint import checkpoint
from .compile import compile
from .control.branches import cond, switch
from .control.scan import scan
from .control.whiles import fori_loop, while_loop
from .custom import custom_jvp, custom_vjp
from .forward import hvp, jvp, linearize
from .jacobian import hessian, jacfwd, jacobian, jacrev
from .ravel import ravel_pytree
from .reverse import grad, value_and_grad, vjp
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
