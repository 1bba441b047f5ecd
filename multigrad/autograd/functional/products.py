"""Products of vectors with Jacobians and Hessians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.grad_mode import enable_grad
from ...tracebacks import entry
from . import calls

MISSING = {
    "vjp": calls.INDEPENDENT,
    "jvp": "The gradient with respect to the input is independent of entry {} in the grad_outputs "
    "when using the double backward trick to compute forward mode gradients. This is not allowed "
    "in strict mode.",
    "vhp": "The jacobian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode.",
    "hvp": "The hessian of the user-provided function is independent of entry {} in the "
    "grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
    "backward trick to replace forward mode AD.",
}
"""Strict mode: the errors for an entry of a product that is independent of the inputs."""


def _product(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    """The output of `func`, and the product `name`.

    That is the product of `v` with the Jacobian of `func` or, for "vhp" and "hvp", with that of its
    gradient. For "jvp" and "hvp" the Jacobian is transposed, by one more backward pass.
    """
    of_gradient, transposed = name in ("vhp", "hvp"), name in ("jvp", "hvp")
    with enable_grad():
        several_in, inputs = calls.as_tensors(inputs, "inputs", name)
        inputs = calls.fresh(inputs, create_graph, leaves=True)
        if name != "vjp":
            vector = calls.checked_vector(v, inputs, several_in, name, create_graph)
        several_out, outputs = calls.call(func, inputs, name, strict)
        if name == "vjp":
            vector = calls.checked_vector(v, outputs, several_out, name, create_graph)
        differentiated: calls.Grads = outputs
        if of_gradient:
            calls.check_scalar(several_out, outputs, name)
            differentiated = calls.gradients(outputs, inputs, create_graph=True)
            if strict:
                calls.require(differentiated, calls.OF_JACOBIAN)
        variables = inputs
        if transposed:
            # The gradient is linear in the cotangents, whatever their values, so its own gradient
            # with respect to them is the forward-mode product.
            variables = tuple(
                calls.zero_tensor(t).requires_grad_() for t in (inputs if of_gradient else outputs)
            )
            differentiated = calls.gradients(differentiated, inputs, variables, create_graph=True)
            if strict and not of_gradient:
                calls.require(differentiated, calls.OF_GRADIENT)
        product = calls.fill(
            calls.gradients(differentiated, variables, vector, create_graph),
            variables,
            strict,
            create_graph,
            MISSING[name],
            "hessian" if of_gradient else "jacobian",
        )
        return (
            calls.finish(outputs, several_out, create_graph),
            calls.finish(product, several_out if name == "jvp" else several_in, create_graph),
        )


@entry
def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the output of `func` and the product of `v` with its Jacobian.

    v  shaped as the output; optional for one element, where it is 1

    The product has the structure and the shapes of `inputs`.
    """
    return _product("vjp", func, inputs, v, create_graph, strict)


@entry
def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the output of `func` and the product of its Jacobian with `v`.

    v  of the same structure and shapes as `inputs`; if the input has a single element, `v` may be
       left out and is 1

    The product has the structure and the shapes of the output. Two backward passes compute it, as
    in PyTorch.
    """
    return _product("jvp", func, inputs, v, create_graph, strict)


@entry
def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the output of `func` and the product of `v` with its Hessian, shaped as `inputs`.

    v  shaped as `inputs`; optional for one element, where it is 1

    `func` must return one Tensor with one element.
    """
    return _product("vhp", func, inputs, v, create_graph, strict)


@entry
def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return the output of `func` and the product of its Hessian with `v`, shaped as `inputs`.

    v  shaped as `inputs`; optional for one element, where it is 1

    `func` must return one Tensor with one element. hvp takes one backward pass more than `vhp`. The
    results are equal for twice continuously differentiable functions, whose Hessian is symmetric.
    """
    return _product("hvp", func, inputs, v, create_graph, strict)
