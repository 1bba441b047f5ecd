"""Transformations of functions over raw arrays, Tensors and nested structures of them. Raw arrays in, raw arrays out."""

from __future__ import annotations

from .forward import jvp, linearize
from .jacobian import hessian, jacfwd, jacobian, jacrev
from .reverse import grad, value_and_grad, vjp
from .vmap import vmap

__all__ = ["grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp", "linearize", "value_and_grad", "vjp", "vmap"]
