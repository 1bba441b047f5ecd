"""Functions beyond the standard, compared with formulas of standard functions and with PyTorch.

The formula is what one would write without the function. A run is a forward and a backward pass:
the gradient of sum(f(x) * c) with respect to x, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from measure import OURS, Aim, Case
from paths import TORCH, Peers, Run, namespace

import multigrad as mg

WORKLOAD, FORMULA = "beyond the standard", "formula"
SMALL, LARGE = (64, 10), (1000, 1001)
Function = Callable[[Any, Any], Any]


def softmax(xp: Any, x: Any) -> Any:
    powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)


def logsumexp(xp: Any, x: Any) -> Any:
    peak = xp.max(x, axis=-1, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - peak), axis=-1)) + xp.squeeze(peak, axis=-1)


def median(xp: Any, x: Any) -> Any:
    x, n = xp.sort(x, axis=-1), x.shape[-1]
    return x[..., n // 2] if n % 2 else (x[..., n // 2 - 1] + x[..., n // 2]) * 0.5


def covariance(xp: Any, x: Any) -> Any:
    x = x - xp.mean(x, axis=1, keepdims=True)
    return x @ xp.matrix_transpose(x) / (x.shape[1] - 1)


# The name, the formula, PyTorch's function, and the greatest ratio to the formula's time, for a
# small and for a large array.
ROWS: dict[str, tuple[Function, Function, Function, float, float]] = {
    "softmax": (
        lambda xp, x: xp.softmax(x, axis=-1),
        softmax,
        lambda torch, x: torch.softmax(x, -1),
        1.0,
        1.0,
    ),
    "logsumexp": (
        lambda xp, x: xp.logsumexp(x, axis=-1),
        logsumexp,
        lambda torch, x: torch.logsumexp(x, -1),
        1.2,
        1.0,
    ),
    "sigmoid": (
        lambda xp, x: xp.sigmoid(x),
        lambda xp, x: 1 / (1 + xp.exp(-x)),
        lambda torch, x: torch.sigmoid(x),
        1.2,
        1.0,
    ),
    "median": (
        lambda xp, x: xp.median(x, axis=-1),
        median,
        lambda torch, x: torch.quantile(x, 0.5, -1),
        2.5,
        0.3,
    ),
    "cov": (lambda xp, x: xp.cov(x), covariance, lambda torch, x: torch.cov(x), 1.5, 1.1),
    "einsum ij,kj->ik": (
        lambda xp, x: xp.einsum("ij,kj->ik", x, x),
        lambda xp, x: x @ xp.matrix_transpose(x),
        lambda torch, x: torch.einsum("ij,kj->ik", x, x),
        2.0,
        1.1,
    ),
}


def beyond_cases(
    peers: Peers, shapes: tuple[tuple[int, int], ...] = (SMALL, LARGE)
) -> Iterator[Case]:
    for name, (ours, formula, theirs, *limits) in ROWS.items():
        for shape, limit in zip(shapes, limits, strict=False):
            data = np.random.default_rng(0).normal(size=shape)
            runs = {OURS: _of_ours(ours, data), FORMULA: _of_ours(formula, data)}
            if peers.torch:
                runs[TORCH] = _of_torch(peers.torch, theirs, data)
            yield Case(
                WORKLOAD,
                f"{name}, {shape[0]:,} x {shape[1]:,}",
                1,
                runs,
                [Aim(FORMULA, limit)],
                tolerance=1e-6,
            )


def _weights(shape: Any) -> Any:
    return np.random.default_rng(1).normal(size=tuple(shape))


def _of_ours(f: Function, data: Any) -> Run:
    xp, x = namespace(), mg.asarray(data)
    weights = _weights(f(xp, x).shape)

    def run() -> list[Any]:
        leaf = x.detach().requires_grad_()
        return [*mg.autograd.grad(xp.sum(f(xp, leaf) * weights), [leaf])]

    return run


def _of_torch(torch: Any, f: Function, data: Any) -> Run:
    x = torch.tensor(data)
    weights = torch.tensor(_weights(f(torch, x).shape))

    def run() -> list[Any]:
        leaf = x.detach().requires_grad_()
        return [*torch.autograd.grad((f(torch, leaf) * weights).sum(), [leaf])]

    return run
