"""Loops written out, the orders of derivatives, and the comparison with scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import func
from multigrad.func import tree

XS = np.arange(1.0, 4.0)
START = np.array(0.3)
A = np.array(0.7)
Run = Callable[..., Any]


def unrolled(
    body: Any, carry: Any, xs: Any, *, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """What `scan` returns, as Tensors."""
    carry, xs = (tree.map(lambda x: mg.asarray(x), t) for t in (carry, xs))
    n = length if length is not None else tree.leaves(xs)[0].shape[0]
    ys = []
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = body(carry, tree.map(lambda x, i=i: x[i, ...], xs))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, tree.map(lambda *parts: mg.stack(list(parts)), *ys)


def near(a: Any, b: Any, tolerance: float = 1e-10) -> None:
    """The leaves of both have equal shapes and nearly equal values; a list is one array."""
    a, b = (tree.leaves(np.stack(t) if isinstance(t, list) else t) for t in (a, b))
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        x, y = (z.detach().numpy() if isinstance(z, mg.Tensor) else np.asarray(z) for z in (x, y))
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def on_the_tape(f: Any) -> Any:
    w = mg.asarray(A, requires_grad=True)
    return mg.autograd.grad(mg.autograd.grad(f(w), [w], create_graph=True)[0], [w])[0].numpy()


def a_transformation_on_the_tape(f: Any) -> Any:
    w = mg.asarray(A, requires_grad=True)
    return mg.autograd.grad(func.grad(f)(w), [w])[0].numpy()


ORDERS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f(A),
    "grad": lambda f: func.grad(f)(A),
    "grad of grad": lambda f: func.grad(func.grad(f))(A),
    "third": lambda f: func.grad(func.grad(func.grad(f)))(A),
    "jvp of grad": lambda f: func.jvp(func.grad(f), (A,), (A,))[1],
    "grad of jvp": lambda f: func.grad(lambda a: func.jvp(f, (a,), (2.0 * A,))[1])(A),
    "vmap of grad": lambda f: func.vmap(func.grad(f))(np.stack([A, 0.5 * A])),
    "grad of vmap": lambda f: func.grad(lambda a: mg.sum(func.vmap(f)(a)))(np.stack([A, 0.5 * A])),
    "tape": on_the_tape,
    "grad on the tape": a_transformation_on_the_tape,
}
"""The derivatives of a function of one number: each takes the function."""
