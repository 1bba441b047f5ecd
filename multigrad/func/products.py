"""Products with second derivatives."""

from __future__ import annotations

from typing import Any

from ..core.element import is_array
from ..tracebacks import entry
from .forward import jvp_as, not_tuples
from .reverse import Function, check_function, value_and_grad


@entry
def hvp(
    function: Function, primals: Any, tangents: Any, *, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the output of `function` and the product of its Hessian with `tangents`.

    The product is the derivative of the gradient along `tangents`. The output must be one real
    scalar.

    primals   a tuple of the positional arguments: arrays, Tensors or pytrees of these, of floating
              dtypes. For a function of one array also that array itself; `tangents` is then an
              array, too
    tangents  of the same structure, shapes and kinds
    has_aux   `function` returns (output, aux), and aux is returned as a third value

    Returns (output, product). The product has the structure of `primals`: a tuple as well, or an
    array. `function` is called once, in forward mode over reverse mode. The cost in time and memory
    is about that of two gradients, for any number of variables. Raw arrays give raw arrays, Tensors
    give Tensors. Corresponds to autograd.functional.hvp, which uses two passes of reverse mode.
    """
    check_function(function, "hvp")
    if is_array(primals) and is_array(tangents):
        of_tuples: Function = hvp
        value, (product,), *aux = of_tuples(function, (primals,), (tangents,), has_aux=has_aux)
        return (value, product, *aux)
    if not isinstance(primals, tuple) or not primals:
        raise not_tuples("hvp", "tuple of at least one argument", primals, tangents)
    differentiated = value_and_grad(function, tuple(range(len(primals))), has_aux)

    def gradient(*args: Any) -> tuple[Any, Any]:
        value, grads = differentiated(*args)
        return grads, value

    _, product, value = jvp_as("hvp", gradient, primals, tangents, False, True)
    return (value[0], product, value[1]) if has_aux else (value, product)
