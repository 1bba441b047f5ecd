"""The workloads, each written for every peer in its own idiom and with the same arithmetic.

`hand` is the forward pass and the gradient in plain NumPy, saving only the arrays that the gradient
needs. multigrad is used through its public names only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import peers as installed_peers
from measure import HAND, OURS, Aim, Case

import multigrad as mg

TORCH = "torch"
HIPS = "HIPS autograd"
# elementwise operations: 200 times sin, multiply by array, add array, tanh, multiply by scalar
CHAIN = 1000
SCALE = 0.98


# -- a chain of 1000 elementwise operations


def chain(xp: Any, x: Any, a: Any, b: Any) -> Any:
    """Run the chain on a namespace with sin and tanh; every peer but `hand` runs this function."""
    for _ in range(CHAIN // 5):
        x = xp.tanh(xp.sin(x) * a + b) * SCALE
    return x


def chain_by_hand(np: Any, x: Any, a: Any, b: Any, g: Any) -> Any:
    saved = []
    for _ in range(CHAIN // 5):
        y = np.tanh(np.sin(x) * a + b)
        saved.append((x, y))
        x = y * SCALE
    while saved:
        x, y = saved.pop()
        g = g * SCALE * (1 - y * y) * a * np.cos(x)
    return g


def chain_inputs(size: int) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    return (
        rng.normal(size=size),
        rng.uniform(0.9, 1.1, size=size),
        rng.normal(size=size),
        np.ones(size),
    )


def chain_cases(sizes: tuple[int, ...]) -> Iterator[Case]:
    for size in sizes:
        x, a, b, g = chain_inputs(size)
        peers = {
            HAND: lambda x=x, a=a, b=b, g=g: [chain_by_hand(np, x, a, b, g)],
            OURS: chain_of_ours(x, a, b, g),
        }
        if installed_peers.installed("torch"):
            peers[TORCH] = chain_of_torch("cpu", x, a, b, g)
        if installed_peers.installed("autograd"):
            peers[HIPS] = chain_of_hips(x, a, b, g)
        aims = {1: [Aim(TORCH, 0.5), Aim(HIPS, 0.25)]}.get(
            size, [Aim(HAND, 1.08)] if size >= 100_000 else []
        )
        yield Case("chain, forward + backward", f"size {size:,}", CHAIN, peers, aims)


def chain_of_ours(*arrays: Any) -> Any:
    x, a, b, g = (mg.asarray(v) for v in arrays)
    xp = x.__array_namespace__()

    def run() -> list[Any]:
        leaf = x.detach().requires_grad_()
        return [*mg.autograd.grad(chain(xp, leaf, a, b), leaf, g)]

    return run


def chain_of_torch(device: str, *arrays: Any) -> Any:
    torch = installed_peers.torch()
    x, a, b, g = (torch.asarray(v, device=device) for v in arrays)

    def run() -> list[Any]:
        leaf = x.detach().requires_grad_()
        return [*torch.autograd.grad(chain(torch, leaf, a, b), leaf, g)]

    return run


def chain_of_hips(x: Any, a: Any, b: Any, g: Any) -> Any:
    import autograd
    import autograd.numpy as anp

    def run() -> list[Any]:
        vjp, _ = autograd.make_vjp(lambda leaf: chain(anp, leaf, a, b))(x)
        return [vjp(g)]

    return run


def forward_cases(sizes: tuple[int, ...]) -> Iterator[Case]:
    """Yield the chain without recording: the cost of an operation if no gradient is taken."""
    for size in sizes:
        x, a, b, _ = chain_inputs(size)
        tx, ta, tb = (mg.asarray(v) for v in (x, a, b))
        xp = tx.__array_namespace__()
        peers = {
            HAND: lambda x=x, a=a, b=b: [chain(np, x, a, b)],
            OURS: lambda tx=tx, ta=ta, tb=tb, xp=xp: [chain(xp, tx, ta, tb)],
        }
        if installed_peers.installed("torch"):
            torch = installed_peers.torch()
            ux, ua, ub = (torch.asarray(v) for v in (x, a, b))
            peers[TORCH] = lambda ux=ux, ua=ua, ub=ub, torch=torch: [chain(torch, ux, ua, ub)]
        if installed_peers.installed("autograd"):
            import autograd.numpy as anp

            peers[HIPS] = lambda x=x, a=a, b=b, anp=anp: [chain(anp, x, a, b)]
        yield Case("chain, forward only", f"size {size:,}", CHAIN, peers)


# -- the tutorial's loop z = (z / x) * y


def loop(x: Any, y: Any, z: Any) -> Any:
    for _ in range(CHAIN):
        z = (z / x) * y
    return z


def loop_by_hand(x: Any, y: Any, z: Any, g: Any) -> list[Any]:
    saved = []
    for _ in range(CHAIN):
        q = z / x
        saved.append(q)
        z = q * y
    gx, gy = np.zeros_like(x), np.zeros_like(y)
    while saved:
        q = saved.pop()
        gy += g * q
        g = g * y / x
        gx -= g * q
    return [gx, gy, g]


def loop_cases() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    x = rng.uniform(0.5, 2, size=10)
    arrays = (x, x * rng.uniform(0.9995, 1.0005, size=10), rng.normal(size=10))
    g = np.ones(10)
    ours, our_g = [mg.asarray(v, requires_grad=True) for v in arrays], mg.asarray(g)
    peers = {
        HAND: lambda: loop_by_hand(*arrays, g),
        OURS: lambda: mg.autograd.grad(loop(*ours), ours, our_g),
    }
    if installed_peers.installed("torch"):
        torch = installed_peers.torch()
        theirs, their_g = [torch.asarray(v).requires_grad_() for v in arrays], torch.asarray(g)
        peers[TORCH] = lambda: torch.autograd.grad(loop(*theirs), theirs, their_g)
    if installed_peers.installed("autograd"):
        import autograd

        def hips() -> Any:
            vjp, _ = autograd.make_vjp(lambda leaves: loop(*leaves))(arrays)
            return vjp(g)

        peers[HIPS] = hips
    yield Case(
        "z = (z / x) * y", "1000 times, size 10, forward + backward", CHAIN, peers, tolerance=1e-8
    )


# -- the tutorial's TinyModel: 1000-100-10, batch 16, float32, one whole training step

RATE = 1e-6


def tiny_inputs() -> tuple[list[Any], Any, Any]:
    rng = np.random.default_rng(2)
    shapes = [(1000, 100), (100,), (100, 10), (10,)]
    weights = [
        rng.uniform(-1, 1, size=s).astype(np.float32) / np.float32(np.sqrt(s[0])) for s in shapes
    ]
    return (
        weights,
        rng.normal(size=(16, 1000)).astype(np.float32),
        rng.normal(size=(16, 10)).astype(np.float32),
    )


def tiny_by_hand() -> Any:
    (w1, b1, w2, b2), x, ideal = tiny_inputs()

    def step() -> list[Any]:
        nonlocal w1, b1, w2, b2
        pre = x @ w1 + b1
        mask = pre > 0
        h = np.where(mask, pre, 0)
        difference = h @ w2 + b2 - ideal
        loss = (difference * difference).sum()
        g = 2 * difference
        gh = np.where(mask, g @ w2.T, 0)
        w2 -= RATE * (h.T @ g)
        b2 -= RATE * g.sum(axis=0)
        w1 -= RATE * (x.T @ gh)
        b1 -= RATE * gh.sum(axis=0)
        return [loss]

    return step


def tiny_loss(xp: Any, weights: Any, x: Any, ideal: Any) -> Any:
    w1, b1, w2, b2 = weights
    pre = x @ w1 + b1
    difference = xp.where(pre > 0, pre, 0) @ w2 + b2 - ideal
    return (difference * difference).sum()


def tiny_step(xp: Any, no_grad: Any, weights: Any, x: Any, ideal: Any) -> list[Any]:
    """Run a training step as in PyTorch's tutorials, for torch and for multigrad."""
    loss = tiny_loss(xp, weights, x, ideal)
    loss.backward()
    with no_grad():
        for w in weights:
            w -= RATE * w.grad
            w.grad = None
    return [loss]


def tiny_cases() -> Iterator[Case]:
    weights, x, ideal = tiny_inputs()
    ours = [mg.asarray(w.copy(), requires_grad=True) for w in weights]
    tx, tideal = mg.asarray(x), mg.asarray(ideal)
    xp = tx.__array_namespace__()
    peers = {HAND: tiny_by_hand(), OURS: lambda: tiny_step(xp, mg.no_grad, ours, tx, tideal)}
    if installed_peers.installed("torch"):
        torch = installed_peers.torch()
        theirs = [torch.asarray(w.copy()).requires_grad_() for w in weights]
        ux, uideal = torch.asarray(x), torch.asarray(ideal)
        peers[TORCH] = lambda: tiny_step(torch, torch.no_grad, theirs, ux, uideal)
    if installed_peers.installed("autograd"):
        import autograd
        import autograd.numpy as anp

        gradient = autograd.value_and_grad(lambda leaves: anp.sum(tiny_loss(anp, leaves, x, ideal)))
        held = [w.copy() for w in weights]

        def hips() -> list[Any]:
            loss, grads = gradient(held)
            for w, g in zip(held, grads, strict=True):
                w -= RATE * g
            return [loss]

        peers[HIPS] = hips
    yield Case(
        "TinyModel",
        "a training step, 1000-100-10, batch 16, float32",
        1,
        peers,
        [Aim(HAND, 1.5)],
        tolerance=1e-3,
    )


# -- lists of Python numbers, to arrays and back


def list_cases() -> Iterator[Case]:
    for label, array in (
        ("10,000", np.linspace(0.0, 1.0, 10_000)),
        ("100 x 100", np.linspace(0.0, 1.0, 10_000).reshape(100, 100)),
    ):
        numbers, t = array.tolist(), mg.asarray(array)
        peers = {
            HAND: lambda numbers=numbers: [np.asarray(numbers)],
            OURS: lambda numbers=numbers: [mg.asarray(numbers)],
        }
        back = {HAND: lambda array=array: [array.tolist()], OURS: lambda t=t: [t.tolist()]}
        if installed_peers.installed("torch"):
            torch = installed_peers.torch()
            peers[TORCH] = lambda numbers=numbers, torch=torch: [
                torch.asarray(numbers, dtype=torch.float64)
            ]
            u = torch.asarray(array)
            back[TORCH] = lambda u=u: [u.tolist()]
        yield Case("lists", f"asarray of {label} floats", 1, peers, [Aim(HAND, 2.0)])
        yield Case("lists", f"tolist of {label} floats", 1, back, [Aim(HAND, 2.0)])
