"""Products with second derivatives."""

from __future__ import annotations

from typing import Any

from .. import tree
from .forward import jvp
from .reverse import Function, check_function, value_and_grad


def hvp(function: Function, primals: Any, tangents: Any, *, has_aux: bool = False) -> tuple[Any, ...]:
    """The output of `function`, one real scalar, and the product of its Hessian with `tangents`: the derivative of the gradient along them.

    primals   a tuple of the positional arguments: arrays, Tensors or pytrees of these, of floating dtypes
    tangents  of the same structure, shapes and kinds
    has_aux   `function` returns (output, aux), and aux is returned as a third value

    Returns (output, product), the product with the structure of `primals`, so a tuple as well. `function` is called once, in forward mode over
    reverse mode, at the price of about two gradients in time and memory, whatever the number of variables. Raw arrays give raw arrays,
    Tensors give Tensors. As autograd.functional.hvp, which does it by two passes of reverse mode.
    """
    check_function(function, "hvp")
    if not isinstance(primals, tuple) or not primals:
        raise TypeError("hvp: primals must be a tuple of at least one argument, so that function(*primals) is a call, "
                        f"not {tree.shown(primals)}")
    try:
        tree.matched(primals, tangents)
    except ValueError as error:
        raise ValueError(f"hvp: tangents must have the structure of primals: {error}") from None
    differentiated = value_and_grad(function, tuple(range(len(primals))), has_aux)

    def gradient(*args: Any) -> tuple[Any, Any]:
        value, grads = differentiated(*args)
        return grads, value

    _, product, value = jvp(gradient, primals, tangents, has_aux=True)
    return (value[0], product, value[1]) if has_aux else (value, product)
