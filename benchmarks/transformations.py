"""The workloads of multigrad.func: Hessians, Jacobians, per-sample gradients, and jax.jit.

The first three are compared with torch.func and torch.autograd.functional. The last one compares
the compiled tape with jax.grad. All use the same formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import peers as installed_peers
from measure import HAND, OURS, Aim, Case

import multigrad as mg
from multigrad import func

TORCH = "torch"
JIT = "jax.jit of jax.grad"


def transformation_cases() -> Iterator[Case]:
    torch = None
    if installed_peers.installed("torch"):
        import torch

        torch.set_num_threads(1)
    yield _hessian(torch)
    yield from _jacobians(torch)
    yield _per_sample(torch)
    if installed_peers.installed("jax"):
        yield _compiled()


def _case(
    label: str, peers: dict[str, Callable[[], Any]], aims: list[Aim], tolerance: float = 1e-9
) -> Case:
    return Case("transformations", label, 1, peers, aims, tolerance)


def _hessian(torch: Any) -> Case:
    x = np.random.default_rng(0).normal(size=100)
    hessian = func.hessian(lambda x: mg.sum(x**3))
    peers: dict[str, Callable[[], Any]] = {OURS: lambda: [hessian(x)]}
    if torch is not None:
        t, of_torch = torch.tensor(x), torch.func.hessian(lambda x: (x**3).sum())
        peers[TORCH] = lambda: [of_torch(t)]
    return _case(
        "Hessian of sum(x**3), 100 variables; torch.func.hessian", peers, [Aim(TORCH, 2.0)]
    )


def _jacobians(torch: Any) -> Iterator[Case]:
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=(200, 200)) / 14, rng.normal(size=200)
    programs = {
        "tanh(w @ x)": (lambda x: mg.tanh(mg.matmul(w, x)), lambda torch, w, x: torch.tanh(w @ x)),
        "x**3": (lambda x: x**3, lambda torch, w, x: x**3),
    }
    for name, (ours, theirs) in programs.items():
        jacobian = func.jacrev(ours)
        t = mg.asarray(x)
        functional = lambda ours=ours, t=t: [
            mg.autograd.functional.jacobian(ours, t, vectorize=True)
        ]
        both: list[tuple[str, Callable[[], Any], Any]] = [
            (f"func.jacrev of {name}, 200 x 200", lambda j=jacobian: [j(x)], "func"),
            (f"functional.jacobian(vectorize=True) of {name}", functional, "functional"),
        ]
        for label, run, kind in both:
            peers = {OURS: run}
            if torch is not None:
                tw, tx = torch.tensor(w), torch.tensor(x)
                f = lambda x, theirs=theirs, tw=tw: theirs(torch, tw, x)
                if kind == "func":
                    of_torch = torch.func.jacrev(f)
                    peers[TORCH] = lambda j=of_torch, tx=tx: [j(tx)]
                else:
                    peers[TORCH] = lambda f=f, tx=tx: [
                        torch.autograd.functional.jacobian(f, tx, vectorize=True)
                    ]
            yield _case(label, peers, [Aim(TORCH, 1.25)])


def _per_sample(torch: Any) -> Case:
    """Return the gradients of each of 16 samples with respect to every weight of TinyModel."""
    rng = np.random.default_rng(2)
    single = lambda *shape: rng.normal(size=shape).astype(np.float32)
    w1, b1, w2, b2 = single(100, 1000) / 32, single(100) / 10, single(10, 100) / 10, single(10) / 10
    x, y = single(16, 1000), single(16, 10)

    def loss(p: Any, x: Any, y: Any) -> Any:
        h = mg.matmul(p[0], x) + p[1]
        d = mg.matmul(p[2], mg.where(h > 0, h, 0.0)) + p[3] - y
        return mg.sum(d * d)

    def by_hand() -> list[Any]:
        h = x @ w1.T + b1
        mask = h > 0
        r = np.where(mask, h, 0)
        d = 2 * (r @ w2.T + b2 - y)
        gh = np.where(mask, d @ w2, 0)
        return [gh[:, :, None] * x[:, None, :], gh, d[:, :, None] * r[:, None, :], d]

    gradients = func.vmap(func.grad(loss), in_axes=(None, 0, 0))
    peers: dict[str, Callable[[], Any]] = {
        HAND: by_hand,
        OURS: lambda: gradients([w1, b1, w2, b2], x, y),
    }
    if torch is not None:
        p, tx, ty = [torch.tensor(a) for a in (w1, b1, w2, b2)], torch.tensor(x), torch.tensor(y)

        def torch_loss(p: Any, x: Any, y: Any) -> Any:
            h = p[0] @ x + p[1]
            d = p[2] @ torch.where(h > 0, h, 0.0) + p[3] - y
            return (d * d).sum()

        of_torch = torch.func.vmap(torch.func.grad(torch_loss), in_dims=(None, 0, 0))
        peers[TORCH] = lambda: of_torch(p, tx, ty)
    return _case(
        "per-sample gradients of TinyModel, batch 16, float32", peers, [Aim(TORCH, 1.2)], 1e-3
    )


def _compiled() -> Case:
    """Return a step of a network of 784-256-256-10 units on a batch of 128, under jax.jit.

    XLA runs only the operations that the tape traced.
    """
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(3)
    sizes = (784, 256, 256, 10)
    single = lambda *shape: jnp.asarray(rng.normal(size=shape).astype(np.float32))
    p = [(single(n, m) / 20, single(m) / 10) for n, m in pairwise(sizes)]
    x, y = single(128, 784), jnp.asarray(np.eye(10, dtype=np.float32)[rng.integers(0, 10, 128)])

    def loss(xp: Any, p: Any, x: Any, y: Any) -> Any:
        for i, (w, b) in enumerate(p):
            x = xp.matmul(x, w) + b
            x = xp.maximum(x, 0.0) if i < len(p) - 1 else x
        z = x - xp.max(x, axis=-1, keepdims=True)
        return -xp.mean(
            xp.sum(y * (z - xp.log(xp.sum(xp.exp(z), axis=-1, keepdims=True))), axis=-1)
        )

    def stepping(gradient: Any) -> Callable[[], Any]:
        @jax.jit
        def step(p: Any, x: Any, y: Any) -> Any:
            return jax.tree_util.tree_map(lambda a, g: a - 0.1 * g, p, gradient(p, x, y))

        return lambda: jax.tree_util.tree_leaves(jax.block_until_ready(step(p, x, y)))

    xp = mg.namespace("jax")
    peers = {
        JIT: stepping(jax.grad(lambda p, x, y: loss(jnp, p, x, y))),
        OURS: stepping(func.grad(lambda p, x, y: loss(xp, p, x, y))),
    }
    return _case(
        "a training step of 784-256-256-10, batch 128, jax.jit of func.grad",
        peers,
        [Aim(JIT, 1.05)],
        1e-4,
    )
