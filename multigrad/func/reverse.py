"""Reverse-mode transformations of functions: vjp, grad, value_and_grad.

The function sees its arguments as Tensors of a level of their own, so transformations nest without confusing each
other's derivatives, over raw arrays, under `jax.jit`, and inside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

from ..engine.backward import Pass, run_pass
from ..engine.dispatch import is_array
from ..engine.element import SCALARS
from ..engine.gradients import NOT_SCALAR, check_gradient, seed
from ..engine.level import Layer, Run, outside
from ..engine.ownership import owned
from ..engine.tensor import Tensor, element_of, strip, wrap_in, wrap_new
from ..errors import GradientError
from . import tree
from .constants import Constants

Function = Callable[..., Any]


def vjp(function: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Run `function` and return its output with a function that takes cotangents back to `primals`.

    primals  arrays, Tensors, or pytrees of these (see multigrad.func.tree), of floating dtypes
    has_aux  `function` returns (output, aux), and aux is returned as a third value

    Returns (output, pullback): `pullback(cotangents)` takes the structure of the output and returns a tuple with the
    structure of `primals`. It may be called several times. As torch.func.vjp.
    """
    check_function(function, "vjp")
    primals = tuple(tree.replaced(lambda x: x, p) for p in primals)  # whatever becomes of containers, here and in the function
    raw = not tree.has_layer(primals)
    run = Run("vjp")
    inputs = [tree.replaced(lambda x: _input(x, run, "vjp"), p) for p in primals]
    flat = list(tree.leaves(inputs))
    output, aux = run.call(_call, function, inputs, {}, has_aux, "vjp", run)
    outs = list(tree.leaves(output))

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        try:
            given = list(tree.matched(output, cotangents))
        except ValueError as error:
            raise ValueError(f"the pullback of vjp takes cotangents in the structure of the output: {error}") from None
        seeds = [check_gradient(t, g, i) if _own(t, run) else None for i, (t, g) in enumerate(zip(outs, given, strict=True))]
        grads = _differentiate(outs, seeds, flat, run, keep=True)
        del seeds, given
        return tuple(tree.replaced(lambda x: _derivative(grads, x, raw), p) for p in primals)

    result = tree.replaced(lambda t: _result(_inner(t, run), raw), output)
    return (result, pullback, _outside(aux, run, raw)) if has_aux else (result, pullback)


def value_and_grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Return a function that computes `function` and its gradient.

    argnums  which positional arguments to differentiate with respect to; for a sequence the gradients come as a tuple
    has_aux  `function` returns (value, aux); then ((value, aux), gradient) is returned

    `function` must return one real scalar. Raw arrays give raw arrays, Tensors give Tensors; arguments may be pytrees:
    nested dictionaries, lists, tuples, dataclasses and what is registered; the gradients have their structure, and are arrays that nothing
    else shares. Raw arrays among the other arguments, of the same library, arrive as constant Tensors on their memory. As jax.value_and_grad.
    """
    numbers = _numbers(argnums, "grad")
    check_function(function, "grad")

    @wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        chosen = _chosen(numbers, len(args), "grad")
        raw = not tree.has_layer([args, kwargs])
        run = Run("grad")
        by_position = {i: tree.replaced(lambda x: _input(x, run, "grad"), args[i]) for i in chosen}
        flat = [t for i in chosen for t in tree.leaves(by_position[i])]  # now: the function may do with its containers as it likes
        inputs = [by_position.get(i) for i in range(len(args))]
        if kwargs or len(by_position) < len(args):
            constants = Constants(flat)
            inputs = [t if i in by_position else constants.of(a) for i, (t, a) in enumerate(zip(inputs, args, strict=True))]
            kwargs = constants.of(kwargs)
        output, aux = run.call(_call, function, inputs, kwargs, has_aux, "grad", run)
        _check_value(output)
        value = seed(output, shared=True) if isinstance(output, Tensor) and output._elem.run is not None else None
        if value is None and prod(getattr(output, "shape", ())) != 1:
            raise GradientError(NOT_SCALAR)
        seeds = [value if _own(output, run) else None]
        found = _differentiate([output], seeds, flat, run, keep=False)
        del seeds, value
        grads = tuple([tree.replaced(lambda x: _derivative(found, x, raw), args[i]) for i in chosen])
        primal = _result(_inner(output, run), raw)
        return ((primal, _outside(aux, run, raw)) if has_aux else primal), grads[0] if isinstance(argnums, int) else grads

    return differentiated


def grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Return a function that computes the gradient of `function`; with `has_aux`, (gradient, aux). See value_and_grad."""
    both = value_and_grad(function, argnums, has_aux)

    @wraps(function)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def _check_value(output: Any) -> None:
    """Raise where the output of a function is none that has a gradient."""
    if isinstance(output, Layer):
        elem = output._elem
    elif is_array(output):
        elem = element_of(output)
    elif type(output) in SCALARS:
        return
    else:
        raise TypeError(f"grad: the function must return one real scalar, but it returned {type(output).__name__}. "
                        "Return (value, aux) and pass has_aux=True to return more.")
    if not elem.floating:
        raise TypeError(f"grad: the function must return one real scalar, but its result has dtype {elem.dtype}")


def check_function(function: Any, name: str) -> None:
    if not callable(function):
        raise TypeError(f"{name}: the first argument must be a function, not {type(function).__name__}")


def _numbers(argnums: int | Sequence[int], name: str) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums) if isinstance(argnums, (tuple, list)) else ()
    if not numbers or not all(type(i) is int for i in numbers):
        raise TypeError(f"{name}: argnums must be an int or a tuple of ints, not {argnums!r}")
    return numbers


def _chosen(numbers: tuple[int, ...], n: int, name: str) -> list[int]:
    for i in numbers:
        if not -n <= i < n:
            raise ValueError(f"{name}: argnums names argument {i}, but the function was called with {n} positional arguments")
    return [i % n for i in numbers]


def _checked_input(x: Any, name: str) -> Any:
    """An argument to differentiate with respect to, if it can be one."""
    if type(x) in SCALARS:
        raise TypeError(f"{name}: cannot differentiate with respect to a Python {type(x).__name__}; pass an array, as xp.asarray({x!r})")
    if not is_array(x):
        raise TypeError(f"{name}: cannot differentiate with respect to a {type(x).__qualname__}: it is neither an array nor a container that is "
                        "known. multigrad.func.register_pytree makes a class one; a field of a dataclass that is no array can be marked by "
                        "metadata={'static': True}.")
    elem = element_of(x)
    if not elem.floating:
        raise TypeError(f"{name}: cannot differentiate with respect to an array of dtype {elem.dtype}; only floating dtypes have gradients")
    return x._frozen() if isinstance(x, Layer) else x


def _input(x: Any, run: Run, name: str) -> Tensor:
    t = wrap_in(run, run.own_level, _checked_input(x, name))
    t.requires_grad_()
    run.inputs.append(t._node)
    return t


def _call(function: Function, inputs: list[Any], kwargs: dict[str, Any], has_aux: bool, name: str, run: Run) -> tuple[Any, Any]:
    output = function(*inputs, **kwargs)
    aux = None
    if has_aux:
        if not isinstance(output, tuple) or len(output) != 2:
            raise TypeError(f"{name}: with has_aux=True the function must return a tuple (output, aux), but it returned {type(output).__name__}")
        output, aux = output
    if type(output) is Tensor and aux is None:
        output._check()
        return _peeled(output, run), None
    for t in tree.leaves([output, aux]):
        if isinstance(t, Layer):
            t._check()
    return tree.replaced(lambda t: _peeled(t, run), output), aux


def _peeled(t: Any, run: Run) -> Any:
    """The value of a Tensor that was created inside the transformation: what the transformation itself differentiates."""
    if not isinstance(t, Tensor) or t._run is not run or t._level != run.tensor_level:
        return t
    t._check()
    return t._array


def _own(t: Any, run: Run) -> bool:
    """Whether `t` depends on the inputs of this transformation."""
    if not isinstance(t, Tensor) or t._run is not run:
        return False
    t._check()
    return t._node is not None


def _inner(t: Any, run: Run) -> Any:
    """What is left of a value when the transformation is over."""
    while isinstance(t, Layer) and getattr(t, "_run", None) is run:
        t = t._array
    return t


def _differentiate(outputs: list[Any], seeds: list[Any], inputs: list[Tensor], run: Run, keep: bool) -> list[Any]:
    """The gradients of the inputs, the last one first."""
    roots = [(t._node, _inner(g, run)) for t, g in zip(outputs, seeds, strict=True) if g is not None]
    targets: dict[Any, Any] = {t._leaf: None for t in inputs}  # whatever became of their flag
    if roots:
        run_pass(roots, Pass(inputs[0], keep, False, targets, every=run.leaves == len(targets)))
    return [_zeros(t._array) if targets[t._leaf] is None else targets[t._leaf] for t in reversed(inputs)]


def _zeros(x: Any) -> Any:
    """The derivative of what does not depend on `x`, or `x` on it."""
    host = element_of(x).host
    with outside():
        return (host.bound if isinstance(x, Layer) else host.xp).zeros_like(x)


def _result(x: Any, raw: bool) -> Any:
    """Raw arrays for raw arrays, unless a captured Tensor requires grad; Tensors for Tensors."""
    if raw:
        return strip(x)
    return x if isinstance(x, Layer) or not is_array(x) else wrap_new(x)


def _derivative(values: list[Any], like: Any, raw: bool) -> Any:
    """The last of `values`, taken from there, as a result that nothing shares: a derivative with respect to `like`, or of it."""
    if raw:
        values[-1] = strip(values[-1])
    return _result(owned(values, like), raw)


def _outside(aux: Any, run: Run, raw: bool) -> Any:
    return tree.replaced(lambda t: _result(_inner(t, run), raw), aux)
