"""func.compile: replays, compared with NumPy by hand, eager libraries and jax.jit.

The eager libraries are multigrad without compile, PyTorch and HIPS autograd. One formula serves all
but `hand`. multigrad compiles the whole step: the gradient, the trajectory, the update of the
parameters. jax.jit is left out if XLA would compile a long unrolled loop for minutes.
compiled_costs.py measures recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import fluid
import numpy as np
import peers as installed_peers
from measure import HAND, OURS, Aim, Case
from paths import HIPS, TORCH, Peers, of_torch
from programs import (
    DIMENSIONS,
    LEAPS,
    STATES,
    STEP,
    gradients,
    kutta_by_hand,
    kutta_loss,
    potential,
    potential_by_hand,
)
from workloads import SCALE, tiny_inputs, tiny_loss

import multigrad as mg
from multigrad import func

WORKLOAD = "func.compile"
EAGER, JIT = "eager", "jax.jit"
CALLS = 3  # recording, comparison, and a replay
SHORT = 400  # operations: XLA takes minutes for longer loops

Run = Callable[[], list[Any]]
Loss = Callable[..., Any]


def compiled_cases(peers: Peers, steps: int = 1000) -> Iterator[Case]:
    for count in (10, 100, 1000):
        for size in (10, 1000):
            yield chain(peers, count, size)
    yield loop(peers, steps)
    yield tiny(peers)
    yield leapfrog(peers)
    yield recurrent(peers)
    yield runge_kutta(peers, steps)
    yield adam(peers)
    yield hessian(peers)
    yield flow(peers)


def case(
    label: str, runs: dict[str, Run], most: float | None, *aims: Aim, tolerance: float = 1e-8
) -> Case:
    return Case(
        WORKLOAD, label, 1, runs, [*([] if most is None else [Aim(HAND, most)]), *aims], tolerance
    )


def both(function: Callable[..., Any], *arguments: Callable[[], Any]) -> dict[str, Run]:
    """Return the function compiled and uncompiled, each on arguments of its own.

    The compiled function is called until it is replayed.
    """
    replayed = func.compile(function)
    first, second, recorded = ([make() for make in arguments] for _ in range(3))
    for _ in range(CALLS):
        replayed(*recorded)
    return {OURS: lambda: leaves(replayed(*first)), EAGER: lambda: leaves(function(*second))}


def leaves(x: Any) -> list[Any]:
    return [z for y in x for z in leaves(y)] if isinstance(x, (tuple, list)) else [x]


def of_gradients(
    peers: Peers,
    loss: Loss,
    params: list[Any],
    data: list[Any],
    by_hand: Callable[..., Any],
    *,
    jit: bool = True,
    **own: Any,
) -> dict[str, Run]:
    """Return for each peer a function for the value and the gradients of a loss."""
    functions = gradients(peers, loss, params, data, module=True, **own)
    runs: dict[str, Run] = {HAND: lambda: leaves(by_hand(*params))}
    runs |= both(functions[OURS], *(lambda x=x: x.copy() for x in params))
    for peer, arguments in (
        (TORCH, of_torch(peers.torch, *params) if peers.torch else ()),
        (HIPS, params),
    ):
        if peer in functions:
            runs[peer] = lambda f=functions[peer], arguments=arguments: leaves(f(*arguments))
    if jit and installed_peers.installed("jax"):
        extra = [own["jax"]] if "jax" in own else []
        numbers = tuple(range(len(params)))
        runs[JIT] = jitted(
            lambda jnp, value_and_grad, *p: value_and_grad(
                lambda *p: loss(jnp, p, *data, *extra), numbers
            )(*p),
            params,
        )
    return runs


def jitted(function: Callable[..., Any], arguments: list[Any]) -> Run:
    """Return `function(jnp, value_and_grad, *arguments)` under jax.jit.

    It computes in float64 if the arguments have that dtype.
    """
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(lambda *p: function(jnp, jax.value_and_grad, *p))
    given = [jnp.asarray(x) for x in arguments]
    return lambda: jax.tree_util.tree_leaves(jax.block_until_ready(compiled(*given)))


# -- chains of 10, 100 and 1,000 operations


def chain_loss(xp: Any, params: Any, a: Any, b: Any, turns: int) -> Any:
    (x,) = params
    for _ in range(turns):
        x = xp.tanh(xp.sin(x) * a + b) * SCALE
    return xp.sum(x)


def chain(peers: Peers, count: int, size: int) -> Case:
    rng = np.random.default_rng(0)
    x, a, b = rng.normal(size=size), rng.uniform(0.9, 1.1, size=size), rng.normal(size=size)
    turns = count // 5

    def by_hand(x: Any) -> Any:
        saved = []
        for _ in range(turns):
            y = np.tanh(np.sin(x) * a + b)
            saved.append((x, y))
            x = y * SCALE
        value, g = np.sum(x), np.ones(size)
        while saved:
            x, y = saved.pop()
            g = g * SCALE * (1 - y * y) * a * np.cos(x)
        return value, g

    def loss(xp: Any, params: Any, a: Any, b: Any) -> Any:
        return chain_loss(xp, params, a, b, turns)

    runs = of_gradients(peers, loss, [x], [a, b], by_hand, jit=count <= SHORT)
    small = [Aim(EAGER, 0.3), Aim(TORCH, 0.2)] if size <= 100 else []
    return case(f"chain of {count:,} operations, size {size:,}", runs, 1.0, *small)


# -- the loop of the tutorial


def loop(peers: Peers, turns: int) -> Case:
    rng = np.random.default_rng(1)
    params = [rng.uniform(0.99, 1.01, size=10) for _ in range(3)]

    def loss(xp: Any, params: Any) -> Any:
        x, y, z = params
        for _ in range(turns):
            z = (z / x) * y
        return xp.sum(z)

    def by_hand(x: Any, y: Any, z: Any) -> Any:
        quotients = []
        for _ in range(turns):
            quotients.append(z / x)
            z = quotients[-1] * y
        value, g, gx, gy = np.sum(z), np.ones(10), np.zeros(10), np.zeros(10)
        while quotients:
            q = quotients.pop()
            gy += g * q
            g = g * y / x
            gx -= g * q
        return value, gx, gy, g

    return case(
        f"z = (z / x) * y, {turns:,} times",
        of_gradients(peers, loss, params, [], by_hand, jit=False),
        1.2,
    )


# -- TinyModel

# a small rate, so that no run, however long, reaches subnormal gradients, which are slow
RATE = 1e-7


def tiny_by_hand(weights: Any, x: Any, ideal: Any) -> Run:
    w1, b1, w2, b2 = (w.copy() for w in weights)

    def step() -> list[Any]:
        nonlocal w1, b1, w2, b2
        pre = x @ w1 + b1
        mask = pre > 0
        h = np.where(mask, pre, np.float32(0))
        difference = h @ w2 + b2 - ideal
        loss = (difference * difference).sum()
        g = 2 * difference
        gh = np.where(mask, g @ w2.T, np.float32(0))
        w2 -= RATE * (h.T @ g)
        b2 -= RATE * g.sum(axis=0)
        w1 -= RATE * (x.T @ gh)
        b1 -= RATE * gh.sum(axis=0)
        return [loss]

    return step


def tiny(peers: Peers) -> Case:
    weights, x, ideal = tiny_inputs()

    def step(weights: Any, x: Any, ideal: Any) -> Any:
        loss, grads = func.value_and_grad(lambda w: tiny_loss(mg, w, x, ideal))(weights)
        for w, g in zip(weights, grads, strict=True):
            w -= RATE * g
        return loss

    runs: dict[str, Run] = {HAND: tiny_by_hand(weights, x, ideal)} | both(
        step, lambda: [w.copy() for w in weights], lambda: x, lambda: ideal
    )
    if peers.torch:
        torch, theirs = (
            peers.torch,
            [t.requires_grad_() for t in of_torch(peers.torch, *(w.copy() for w in weights))],
        )
        data = of_torch(torch, x, ideal)

        def torch_step() -> list[Any]:
            loss = tiny_loss(torch, theirs, *data)
            grads = torch.autograd.grad(loss, theirs)
            with torch.no_grad():
                for w, g in zip(theirs, grads, strict=True):
                    w -= RATE * g
            return [loss]

        runs[TORCH] = torch_step
    if installed_peers.installed("jax"):
        runs[JIT] = tiny_of_jax(weights, x, ideal)
    return case(
        "a training step of TinyModel, 1000-100-10, batch 16, float32", runs, 1.0, tolerance=1e-3
    )


def tiny_of_jax(weights: Any, x: Any, ideal: Any) -> Run:
    import jax
    import jax.numpy as jnp

    held, data = [jnp.asarray(w) for w in weights], (jnp.asarray(x), jnp.asarray(ideal))

    @jax.jit
    def step(weights: Any, x: Any, ideal: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda w: tiny_loss(jnp, w, x, ideal))(weights)
        return loss, [w - RATE * g for w, g in zip(weights, grads, strict=True)]

    def run() -> list[Any]:
        nonlocal held
        loss, held = jax.block_until_ready(step(held, *data))
        return [loss]

    return run


# -- Hamiltonian Monte Carlo: a trajectory of 25 leapfrog steps


def trajectory(gradient: Callable[[Any], Any]) -> Callable[..., Any]:
    def run(q: Any, p: Any) -> Any:
        p = p - 0.5 * STEP * gradient(q)
        for _ in range(LEAPS - 1):
            q = q + STEP * p
            p = p - STEP * gradient(q)
        q = q + STEP * p
        return [q, p - 0.5 * STEP * gradient(q)]

    return run


def leapfrog(peers: Peers) -> Case:
    rng = np.random.default_rng(4)
    given = [rng.normal(size=DIMENSIONS) / 2, rng.normal(size=DIMENSIONS)]
    by_hand = trajectory(lambda q: potential_by_hand(q)[1][0])
    runs: dict[str, Run] = {HAND: lambda: by_hand(*given)}
    runs |= both(
        trajectory(func.grad(lambda q: potential(mg, [q]))), *(lambda x=x: x for x in given)
    )
    if peers.torch:
        torch = peers.torch

        def slope(q: Any) -> Any:
            leaf = q.detach().requires_grad_()
            return torch.autograd.grad(potential(torch, [leaf]), leaf)[0]

        theirs, tensors = trajectory(slope), of_torch(torch, *given)
        runs[TORCH] = lambda: theirs(*tensors)
    if peers.autograd:
        of_hips = trajectory(peers.autograd.grad(lambda q: potential(peers.autograd.numpy, [q])))
        runs[HIPS] = lambda: of_hips(*given)
    if installed_peers.installed("jax"):
        runs[JIT] = jitted(
            lambda jnp, vag, q, p: trajectory(lambda q: vag(lambda q: potential(jnp, [q]))(q)[1])(
                q, p
            ),
            given,
        )
    return case(f"Hamiltonian Monte Carlo, {LEAPS} leapfrog steps", runs, 1.0)


# -- a recurrent network over 50 steps

LENGTH, BATCH, UNITS = 50, 8, 16


def recurrent_loss(xp: Any, params: Any, sequence: Any, zeros: Any) -> Any:
    (w, u, b), h = params, zeros
    for t in range(LENGTH):
        h = xp.tanh(h @ w + sequence[t] @ u + b)
    return xp.sum(h * h)


def recurrent_by_hand(sequence: Any, zeros: Any) -> Callable[..., Any]:
    def gradient(w: Any, u: Any, b: Any) -> Any:
        states = [zeros]
        for t in range(LENGTH):
            states.append(np.tanh(states[-1] @ w + sequence[t] @ u + b))
        h = states.pop()
        value, g, gw, gu, gb = (
            np.sum(h * h),
            2 * h,
            np.zeros_like(w),
            np.zeros_like(u),
            np.zeros_like(b),
        )
        for t in range(LENGTH - 1, -1, -1):
            ga = g * (1 - h * h)
            h = states.pop()
            gw += h.T @ ga
            gu += sequence[t].T @ ga
            gb += ga.sum(axis=0)
            g = ga @ w.T
        return value, gw, gu, gb

    return gradient


def recurrent(peers: Peers) -> Case:
    rng = np.random.default_rng(6)
    params = [
        rng.normal(size=(UNITS, UNITS)) / 5,
        rng.normal(size=(UNITS, UNITS)) / 5,
        rng.normal(size=UNITS),
    ]
    data = [rng.normal(size=(LENGTH, BATCH, UNITS)), np.zeros((BATCH, UNITS))]
    runs = of_gradients(peers, recurrent_loss, params, data, recurrent_by_hand(*data))
    return case(f"a recurrent network, {LENGTH} steps, batch {BATCH}, {UNITS} units", runs, 1.0)


# -- Runge and Kutta's method, with its gradient


def runge_kutta(peers: Peers, steps: int) -> Case:
    rng = np.random.default_rng(5)
    params, start = (
        [rng.normal(size=(STATES, STATES)), rng.normal(size=STATES)],
        rng.normal(size=STATES),
    )

    def loss(xp: Any, params: Any, start: Any) -> Any:
        return kutta_loss(xp, params, start, steps)

    runs = of_gradients(peers, loss, params, [start], kutta_by_hand(start, steps), jit=False)
    return case(f"Runge-Kutta, {steps:,} steps and the gradient", runs, None)


# -- a step of Adam over 50 parameters

PARAMETERS, SIDE = 50, 20


def adam_step(xp: Any, parameters: Any, means: Any, squares: Any, grads: Any, rate: float) -> None:
    for p, m, v, g in zip(parameters, means, squares, grads, strict=True):
        m *= 0.9
        m += 0.1 * g
        v *= 0.999
        v += 0.001 * g * g
        p -= rate * m / (xp.sqrt(v) + 1e-8)


def adam(peers: Peers) -> Case:
    rng = np.random.default_rng(7)
    lists = [
        [rng.normal(size=(SIDE, SIDE)) for _ in range(PARAMETERS)],
        [np.zeros((SIDE, SIDE)) for _ in range(PARAMETERS)],
        [np.zeros((SIDE, SIDE)) for _ in range(PARAMETERS)],
        [rng.normal(size=(SIDE, SIDE)) for _ in range(PARAMETERS)],
    ]

    def stepping(xp: Any, step: Callable[..., Any], held: list[Any]) -> Run:
        def run() -> list[Any]:
            step(xp, *held, 1e-3)
            return list(held[0])

        return run

    held = lambda: [[x.copy() for x in arrays] for arrays in lists]
    replayed = func.compile(lambda p, m, v, g, rate: adam_step(mg, p, m, v, g, rate))
    recorded = held()
    for _ in range(CALLS):
        replayed(*recorded, 1e-3)
    runs = {
        HAND: stepping(np, adam_step, held()),
        OURS: stepping(mg, lambda xp, *given: replayed(*given), held()),
    }
    if peers.torch:
        runs[TORCH] = stepping(
            peers.torch, adam_step, [of_torch(peers.torch, *arrays) for arrays in held()]
        )
    return case(f"a step of Adam, {PARAMETERS} parameters of {SIDE} x {SIDE}", runs, 1.0)


# -- a Hessian by vmap


def hessian(peers: Peers) -> Case:
    rng = np.random.default_rng(8)
    x, w = rng.normal(size=50), rng.normal(size=(50, 50)) / 7

    def by_hand() -> list[Any]:
        t = np.tanh(w @ x)
        return [(w.T * (-2 * t * (1 - t * t))) @ w]

    runs: dict[str, Run] = {HAND: by_hand} | both(
        func.hessian(lambda x: mg.sum(mg.tanh(mg.matmul(w, x)))), lambda: x
    )
    if peers.torch:
        torch, (tx, tw) = peers.torch, of_torch(peers.torch, x, w)
        theirs = torch.func.hessian(lambda x: torch.tanh(tw @ x).sum())
        runs[TORCH] = lambda: [theirs(tx)]
    if peers.autograd:
        anp = peers.autograd.numpy
        of_hips = peers.autograd.hessian(lambda x: anp.sum(anp.tanh(anp.dot(w, x))))
        runs[HIPS] = lambda: [of_hips(x)]
    if installed_peers.installed("jax"):
        import jax
        import jax.numpy as jnp

        runs[JIT] = jitted(
            lambda jnp_, vag, x: jax.hessian(lambda x: jnp.sum(jnp.tanh(w @ x)))(x), [x]
        )
    return case("the Hessian of sum(tanh(w @ x)), 50 variables", runs, 2.0)


# -- a fluid


def flow(peers: Peers) -> Case:
    params, data = fluid.inputs()
    own: dict[str, Any] = {"ours": fluid.index_of_ours, "hips": fluid.index_of_numpy}
    if peers.torch:
        own["torch"] = fluid.index_of_torch(peers.torch)
    if installed_peers.installed("jax"):
        own["jax"] = fluid.index_of_jax
    runs = of_gradients(peers, fluid.loss, params, data, fluid.by_hand(*data), **own)
    return case(f"a fluid of {fluid.SIDE} x {fluid.SIDE}, {fluid.STEPS} steps", runs, 2.2)
