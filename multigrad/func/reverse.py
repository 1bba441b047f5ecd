"""Reverse-mode transformations of functions: vjp, grad, value_and_grad.

The function receives its arguments as Tensors of a level of their own. So transformations nest
without confusing each other's derivatives: over raw arrays, under `jax.jit`, and inside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from math import prod
from typing import Any

from .. import tree
from ..backward.gradients import not_scalar, seed
from ..core.element import SCALARS, is_array
from ..core.level import Layer, Transformation
from ..core.tensor import Tensor, element_of, strip
from ..layers import transforming
from ..layers.transforming import (
    constants_beside,
    depends_on,
    derivative,
    gradients_of,
    input_of,
    left_of,
    released,
    returned,
    value_at,
)
from ..tracebacks import blamed, entry, result_of

Function = Callable[..., Any]


@entry
def vjp(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    """Run `function` and return its output with a function that maps cotangents back to `primals`.

    primals  arrays, Tensors, or pytrees of these (see multigrad.tree), of floating dtypes
    has_aux  `function` returns (output, aux), and aux is returned as a third value

    Returns (output, pullback): `pullback(cotangents)` takes the structure of the output and returns
    a tuple with the structure of `primals`. It may be called several times.

    Corresponds to torch.func.vjp.
    """
    check_function(function, "vjp")
    # copies of the containers, since the function may change them
    primals = tree.replaced(lambda x: x, primals)
    raw = not tree.has_layer(primals)
    run = Transformation("vjp")
    output = aux = None

    def listed(inputs: list[Any]) -> Iterable[Any]:
        nonlocal output, aux
        output, aux = _call(function, tree.filled(primals, iter(inputs)), {}, has_aux, run)
        return tree.leaves(output)

    _, pulled = transforming.vjp(listed, tree.leaves(primals), run)

    @result_of("pullback")
    def pullback(cotangents: Any) -> tuple[Any, ...]:
        problem = "the pullback of vjp takes cotangents with the structure of the output"
        seeds = tree.fitted(output, cotangents, problem=problem)
        grads = pulled(seeds)
        del seeds
        return tuple([tree.replaced(lambda x: derivative(grads, x, raw), p) for p in primals])

    result = _outside(output, run, raw, released)
    return (result, pullback, _outside(aux, run, raw, released)) if has_aux else (result, pullback)


@entry
def value_and_grad(
    function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """Return a function that computes `function` and its gradient.

    argnums  the positional arguments to differentiate with respect to; a sequence gives a tuple of
             gradients
    has_aux  `function` returns (value, aux); then ((value, aux), gradient) is returned

    `function` must return one real scalar. Raw arrays give raw arrays, Tensors give Tensors.
    Arguments may be pytrees: nested dictionaries, lists, tuples, dataclasses and registered
    classes. The gradients have the structure of the arguments, and share no memory with other
    arrays. The function receives raw arrays among its other arguments, if they are of the same
    library, as constant Tensors on the same memory. Corresponds to jax.value_and_grad.
    """
    both = _differentiated(function, argnums, has_aux, True)
    return result_of("value_and_grad(f)", function)(both)


def _differentiated(
    function: Function, argnums: int | Sequence[int], has_aux: bool, with_value: bool
) -> Function:
    """What `value_and_grad` returns, or `grad` without the value; they handle its errors."""
    numbers = _numbers(argnums, "grad")
    check_function(function, "grad")

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        chosen = _chosen(numbers, len(args), "grad")
        raw = not (tree.has_layer(args) or (kwargs and tree.has_layer(kwargs)))
        run = Transformation("grad")
        by_position = {i: tree.replaced(lambda x: input_of(x, run), args[i]) for i in chosen}
        # before the call, since the function may change its containers
        flat = [t for i in chosen for t in tree.leaves(by_position[i])]
        inputs = [by_position.get(i) for i in range(len(args))]
        if kwargs or len(by_position) < len(args):
            constant = constants_beside(flat)
            inputs = [
                t if i in by_position else constant(a)
                for i, (t, a) in enumerate(zip(inputs, args, strict=True))
            ]
            kwargs = constant(kwargs)
        output, aux = run.call(_call, function, inputs, kwargs, has_aux, run)
        _check_value(output)
        if prod(getattr(output, "shape", ())) != 1:
            raise not_scalar(output.shape, "grad")
        seeds: list[Any] = [None]
        if isinstance(output, Tensor) and output._elem.run is not None:
            seeds = [seed(output, shared=True)]  # raises for some dtypes
        if not depends_on(output, run):
            seeds = [None]
        gradients = gradients_of([output], seeds, flat, run, keep=False)
        del seeds
        grads = tuple(
            [tree.replaced(lambda x: derivative(gradients, x, raw), args[i]) for i in chosen]
        )
        gradient = grads[0] if isinstance(argnums, int) else grads
        aux = _outside(aux, run, raw) if has_aux else None
        if not with_value:
            return (gradient, aux) if has_aux else gradient
        value = _outside(output, run, raw)
        return ((value, aux) if has_aux else value), gradient

    return differentiated


@entry
def grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Return a function that computes the gradient of `function`.

    With `has_aux`, it returns (gradient, aux). See value_and_grad.
    """
    differentiated = _differentiated(function, argnums, has_aux, False)

    @wraps(function)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        try:
            return differentiated(*args, **kwargs)
        except Exception as error:
            error = blamed(error, "grad(f)", args, kwargs)
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside

    return gradient


def _check_value(output: Any) -> None:
    """Raise if the output of a function has no gradient."""
    if type(output) in SCALARS:
        return
    if not is_array(output):
        raise TypeError(
            "grad: the function must return one real scalar, but it returned "
            f"{type(output).__name__}. Return (value, aux) and pass has_aux=True to return more."
        )
    elem = element_of(output)
    if not elem.floating:
        raise TypeError(
            f"grad: the function must return one real scalar, but its result has dtype {elem.dtype}"
        )


def check_function(function: Any, name: str, what: str = "the first argument") -> None:
    if not callable(function):
        raise TypeError(f"{name}: {what} must be a function, not {type(function).__name__}")


def _numbers(argnums: int | Sequence[int], name: str) -> tuple[int, ...]:
    numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not numbers or not all(type(i) is int for i in numbers):
        raise TypeError(f"{name}: argnums must be an int or a tuple of ints, not {argnums!r}")
    return tuple(numbers)


def _chosen(numbers: tuple[int, ...], n: int, name: str) -> list[int]:
    for i in numbers:
        if not -n <= i < n:
            raise ValueError(
                f"{name}: argnums names argument {i}, but the function was called with {n} "
                "positional arguments"
            )
    return [i % n for i in numbers]


def _call(
    function: Function, inputs: list[Any], kwargs: Any, has_aux: bool, run: Transformation
) -> tuple[Any, Any]:
    output = function(*inputs, **kwargs)
    aux = None
    if has_aux:
        if not isinstance(output, tuple) or len(output) != 2:
            raise TypeError(
                f"{run.name}: with has_aux=True the function must return a tuple (output, aux), "
                f"but it returned {type(output).__name__}"
            )
        output, aux = output
    if aux is None and isinstance(output, Layer):
        output._check()
        return value_at(output, run), None
    for t in tree.leaves([output, aux]):
        if isinstance(t, Layer):
            t._check()
    return tree.replaced(lambda t: value_at(t, run), output), aux


def _outside(
    result: Any, run: Transformation, raw: bool, outer: Callable[..., Any] = left_of
) -> Any:
    """The result of the function after the transformation, as raw arrays or as Tensors."""
    finish = strip if raw else returned
    return tree.replaced(lambda t: finish(outer(t, run)), result)
