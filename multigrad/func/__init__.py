"""Transformations of functions over raw arrays, Tensors and nested structures of them. Raw arrays in, raw arrays out."""

from __future__ import annotations

from .. import tree as tree
from ..tree import register_pytree
from .checkpoint import checkpoint
from .custom import custom_jvp, custom_vjp
from .forward import jvp, linearize
from .jacobian import hessian, jacfwd, jacobian, jacrev
from .products import hvp
from .ravel import ravel_pytree
from .reverse import grad, value_and_grad, vjp
from .vmap import vmap

__all__ = ["checkpoint", "custom_jvp", "custom_vjp", "grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "jvp", "linearize",
           "ravel_pytree", "register_pytree", "value_and_grad", "vjp", "vmap"]
