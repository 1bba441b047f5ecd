"""SGD with momentum, Adam, and gradient clipping in a few lines each, for any nested structure of
raw arrays of any library.

An optimizer is a pair (init, update). `init(parameters)` returns the initial state, and
`update(grads, state)` returns the change of the parameters and the next state. Both are pure, so
jax.jit can compile a step. Run it with `python examples/optimizers.py --backend jax`; the default
is NumPy.
"""

import argparse
from collections.abc import Callable
from typing import Any

import multigrad as mg
from multigrad import func
from multigrad.func import tree

Optimizer = tuple[Callable[[Any], Any], Callable[[Any, Any], tuple[Any, Any]]]


def sgd(rate: float, momentum: float = 0.0) -> Optimizer:
    def update(grads: Any, velocity: Any) -> tuple[Any, Any]:
        velocity = tree.map(lambda v, g: momentum * v + g, velocity, grads)
        return tree.map(lambda v: -rate * v, velocity), velocity

    return lambda parameters: tree.map(lambda x: 0.0 * x, parameters), update


def adam(rate: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 1."""

    def init(parameters: Any) -> Any:
        zeros = tree.map(lambda x: 0.0 * x, parameters)
        # the last entry counts the steps: an array, so that jax.jit compiles once
        return zeros, zeros, 0.0 * tree.global_norm(parameters)

    def update(grads: Any, state: Any) -> tuple[Any, Any]:
        n = state[2] + 1.0
        mean = tree.map(lambda m, g: b1 * m + (1.0 - b1) * g, state[0], grads)
        square = tree.map(lambda s, g: b2 * s + (1.0 - b2) * g * g, state[1], grads)
        return tree.map(
            lambda m, s: -rate * (m / (1.0 - b1**n)) / ((s / (1.0 - b2**n)) ** 0.5 + eps),
            mean,
            square,
        ), (mean, square, n)

    return init, update


def clipped(optimizer: Optimizer, limit: float) -> Optimizer:
    """The same optimizer with gradients scaled down to the norm `limit` if theirs is larger."""

    def update(grads: Any, state: Any) -> tuple[Any, Any]:
        scale = mg.minimum(limit / (tree.global_norm(grads) + 1e-12), 1.0).array
        return optimizer[1](tree.map(lambda g: g * scale, grads), state)

    return optimizer[0], update


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="numpy")
    xp = mg.namespace(parser.parse_args().backend)
    x = xp.linspace(-1.0, 1.0, 64)
    start = {
        "w": xp.linspace(-3.0, 3.0, 16).array,
        "b": xp.linspace(-1.0, 1.0, 16).array,
        "out": xp.linspace(-0.5, 0.5, 16).array,
    }
    step = func.value_and_grad(
        lambda p: mg.mean((mg.tanh(x[:, None] * p["w"] + p["b"]) @ p["out"] - mg.sin(3.0 * x)) ** 2)
    )
    for name, (init, update) in {
        "sgd": sgd(0.05, 0.9),
        "adam": adam(0.05),
        "clipped sgd": clipped(sgd(0.1, 0.9), 1.0),
    }.items():
        parameters, state, losses = start, init(start), []
        for _ in range(200):
            value, grads = step(parameters)
            change, state = update(grads, state)
            parameters = tree.map(lambda p, d: p + d, parameters, change)
            losses.append(float(value))
        print(f"{name}: {losses[0]:.4f} -> {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
