"""Jacobians, Hessians and their products with vectors, for functions of Tensors.

Corresponds to torch.autograd.functional.

The arguments of a function are the Tensors to differentiate with respect to. Capture everything
else: `jacobian(lambda x: f(x, constant, flag=flag), inputs)`. The function receives new Tensors on
the memory of `inputs`, so the `.grad` of the caller's Tensors never changes. `inputs`, `v` and the
result of the function are each one Tensor or a *tuple* of Tensors, and the results have the same
structure. `inputs` and `v` may also be raw arrays of a known library, which are constants. Results
are always Tensors.

create_graph=True makes all results differentiable. strict=True raises RuntimeError if a result is
zero because an output does not depend on an input. Otherwise such results are zeros.
"""

from __future__ import annotations

from .jacobians import hessian, jacobian
from .products import hvp, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
