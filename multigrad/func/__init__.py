"""Transformations of functions over raw arrays, Tensors and nested structures of them. Raw arrays in, raw arrays out."""

from __future__ import annotations

from .checkpoint import checkpoint
from .forward import jacfwd, jvp, linearize
from .reverse import grad, value_and_grad, vjp

__all__ = ["checkpoint", "grad", "jacfwd", "jvp", "linearize", "value_and_grad", "vjp"]
