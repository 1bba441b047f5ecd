"""Gradient descent with momentum, RMSprop and Adam, for arrays and nested containers of them.

The containers are tuples, lists and dictionaries. `grad(x, i)` returns the gradient at x in
iteration i, in the structure of x; `callback(x, i, g)` is called before each step. The functions
consist of differentiable operations, so an optimization can itself be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from multigrad.extend import entry
from multigrad_autograd import numpy as np

from .flatten import flatten

__all__ = ["adam", "rmsprop", "sgd", "unflatten_optimizer"]

Function = Callable[..., Any]


def unflatten_optimizer(optimize: Function) -> Function:
    """Return an optimizer of nested containers, from the optimizer `optimize` of vectors."""

    @wraps(optimize)
    @entry
    def optimizer(
        grad: Function, x0: Any, callback: Function | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        start, unflatten = flatten(x0)

        def gradient(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def told(x: Any, i: int, g: Any) -> None:
            if callback is not None:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(gradient, start, told if callback else None, *args, **kwargs))

    return optimizer


@unflatten_optimizer
def sgd(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 200,
    step_size: Any = 0.1,
    mass: Any = 0.9,
) -> Any:
    """Descend along a running mean of the gradients.

    Each gradient has `mass` times the weight of the next one.
    """
    velocity: Any = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 100,
    step_size: Any = 0.1,
    gamma: Any = 0.9,
    eps: Any = 10**-8,
) -> Any:
    """Divide each component of the gradient by the root of a running mean of its squares.

    The mean starts at 1. T. Tieleman and G. Hinton, "Lecture 6.5: rmsprop", Coursera, 2012.
    """
    squares: Any = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        squares = gamma * squares + (1 - gamma) * g**2
        x = x - step_size * g / (np.sqrt(squares) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 100,
    step_size: Any = 0.001,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 10**-8,
) -> Any:
    """Minimize by Adam.

    D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 1.
    """
    first: Any = np.zeros(len(x))
    second: Any = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        first = b1 * first + (1 - b1) * g
        second = b2 * second + (1 - b2) * g**2
        unbiased = first / (1 - b1 ** (i + 1))
        x = x - step_size * unbiased / (np.sqrt(second / (1 - b2 ** (i + 1))) + eps)
    return x
