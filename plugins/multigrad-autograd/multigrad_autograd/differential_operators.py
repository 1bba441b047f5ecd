"""HIPS autograd's differential operators, for functions of many arguments."""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from multigrad import func
from multigrad.extend import entry

from . import core
from . import numpy as np
from .spaces import vspace
from .wrap_util import unary_to_nary

__all__ = [
    "checkpoint",
    "deriv",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "jacobian",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad",
    "multigrad_dict",
    "tensor_jacobian_product",
    "value_and_grad",
    "vector_jacobian_product",
]

Function = Callable[..., Any]

make_vjp = unary_to_nary(core.make_vjp)
make_jvp = unary_to_nary(core.make_jvp)


@unary_to_nary
def grad(fun: Function, x: Any) -> Any:
    """
    Returns a function which gives the gradient of `fun`, of the type of the argument with respect
    to which it is taken.

    `fun` must return one real number, or a real array with one element. The gradient of a complex
    argument x + iy is d/dx - i d/dy.
    """
    return core.value_and_grad("Grad", fun, x)[1]


@unary_to_nary
def value_and_grad(fun: Function, x: Any) -> tuple[Any, Any]:
    """Return a function that returns the value of `fun` and its gradient."""
    return core.value_and_grad("value_and_grad", fun, x)


@unary_to_nary
def elementwise_grad(fun: Function, x: Any) -> Any:
    """Return the sums of the columns of the Jacobian of `fun`.

    For an elementwise function it is the derivative at each element.
    """
    vjp, ans = core.make_vjp(fun, x)
    space = vspace(ans)
    if space.iscomplex:
        raise TypeError("Elementwise_grad only applies to real-output functions.")
    return vjp(space.ones())


@unary_to_nary
def deriv(fun: Function, x: Any) -> Any:
    """Return the derivative along ones, by forward mode."""
    return core.make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Function, x: Any) -> Any:
    """Return the Jacobian of `fun`, from arrays to arrays.

    Its shape is the shape of the output followed by that of the argument.
    """
    vjp, ans = core.make_vjp(fun, x)
    space = vspace(ans)
    rows = [vjp(unit) for unit in space.standard_basis()]
    return np.reshape(np.stack(rows), space.shape + vspace(x).shape)


@unary_to_nary
def holomorphic_grad(fun: Function, x: Any) -> Any:
    """Return the complex derivative of a holomorphic function."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=3)
    return grad(lambda y: np.real(fun(y)))(x)


@entry
def grad_named(fun: Function, argname: str) -> Function:
    """Return the gradient with respect to the positional argument of that name."""
    gradient: Function = grad(fun, inspect.getfullargspec(fun).args.index(argname))
    return gradient


@unary_to_nary
def hessian(fun: Function, x: Any) -> Any:
    """Return the Hessian of a function whose result is one real number."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Function, x: Any) -> tuple[Function, Any]:
    """Return (function from a vector to the product of the Hessian with it, gradient)."""
    return core.make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
    """Return a function for the product of the Hessian with a tensor.

    It takes the arguments of `fun`, and a tensor of the shape of argument `argnum`.
    """
    gradient = grad(fun, argnum)

    def contracted(*args: Any, **kwargs: Any) -> Any:
        *given, tensor = args
        return np.tensordot(gradient(*given, **kwargs), tensor, np.ndim(tensor))

    product: Function = grad(contracted, argnum)
    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """Return a function for the product of a tensor with the Jacobian.

    It takes the arguments of `fun` and a tensor, all of whose axes are summed over.
    """

    def contracted(*args: Any, **kwargs: Any) -> Any:
        *given, tensor = args
        return np.tensordot(tensor, fun(*given, **kwargs), np.ndim(tensor))

    product: Function = jacobian(contracted, argnum)
    return product


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Function, x: Any) -> Function:
    """Return a function from a tangent of `x` to that of the output, by reverse mode twice."""
    vjp, out = core.make_vjp(fun, x)
    return core.make_vjp(vjp, vspace(out).zeros())[0]


def make_ggnvp(
    f: Function, g: Function = lambda x: 0.5 * np.sum(x**2, axis=-1), f_argnum: int = 0
) -> Function:
    """Return a function for products with the generalized Gauss-Newton matrix of `g(f(x))`.

    The product with a vector v is J^T H v.
    """

    @unary_to_nary
    def ggnvp_maker(f: Function, x: Any) -> Function:
        f_vjp, y = core.make_vjp(f, x)
        g_hvp, gradient = core.make_vjp(grad(g), y)
        f_jvp, _ = core.make_vjp(f_vjp, vspace(gradient).zeros())
        return lambda v: f_vjp(g_hvp(f_jvp(v)))

    maker: Function = ggnvp_maker(f, f_argnum)
    return maker


@unary_to_nary
def grad_and_aux(fun: Function, x: Any) -> tuple[Any, Any]:
    """Return the gradient of the value, and aux, for a function that returns (value, aux)."""
    vjp, (ans, aux) = core.make_vjp(lambda y: tuple(fun(y)), x)
    return vjp((vspace(ans).ones(), vspace(aux).zeros())), aux


@entry
def multigrad(fun: Function, argnums: Any = (0,)) -> Function:
    """Return the gradients with respect to several arguments, as a tuple: `grad(fun, argnums)`."""
    gradient: Function = grad(fun, tuple(argnums))
    return gradient


@entry
def multigrad_dict(fun: Function) -> Function:
    """Return a function for the gradients with respect to all arguments.

    They are a dictionary by the arguments' names, defaults included.
    """
    signature = inspect.signature(fun)
    kinds = {name: p.kind for name, p in signature.parameters.items()}

    def called(given: dict[str, Any]) -> Any:
        bound = inspect.BoundArguments(
            signature, OrderedDict((name, given[name]) for name in kinds if name in given)
        )
        return fun(*bound.args, **bound.kwargs)

    @entry
    def gradients(*args: Any, **kwargs: Any) -> OrderedDict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        grads = grad(called)(dict(bound.arguments))
        return OrderedDict((name, grads[name]) for name in bound.arguments)

    return gradients


def checkpoint(fun: Function) -> Function:
    """Return the same function, which saves only its arguments and recomputes the rest in backward.

    See `multigrad.func.checkpoint`.
    """
    return func.checkpoint(fun)
