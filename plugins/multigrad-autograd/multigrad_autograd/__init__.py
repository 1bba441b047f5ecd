"""HIPS autograd's interface on multigrad: change the imports of a program, or install this package.

    import multigrad_autograd.numpy as np
    from multigrad_autograd import grad

    grad(lambda x: np.sum(np.sin(x)))(np.ones(3))

Or replace autograd, before anything imports it:

    import multigrad_autograd
    multigrad_autograd.install()

Names and meanings are those of HIPS autograd. This includes complex gradients, which are the
conjugates of multigrad's.
"""

from . import builtins
from .builtins import dict, isinstance, list, tuple, type
from .differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from .installing import install
from .rules import primitive_with_deprecation_warnings as primitive

__all__ = [
    "builtins",
    "checkpoint",
    "deriv",
    "dict",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "install",
    "isinstance",
    "jacobian",
    "list",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_vjp",
    "multigrad",
    "multigrad_dict",
    "primitive",
    "tensor_jacobian_product",
    "tuple",
    "type",
    "value_and_grad",
    "vector_jacobian_product",
]
