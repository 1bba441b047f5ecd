"""func.scan: loops of 1,000 steps with gradients, compared with other ways to run them.

    python benchmarks/scanned.py

The others are NumPy by hand, the tape, PyTorch eager, HIPS autograd, and jax.jit over lax.scan. The
loops are longer versions of those of compiled.py, with a function for the body; all peers but JAX
run it in a Python loop. As a script, the file prints the costs of a longer loop besides its steps:
the calls of the body, the time of recording, and memory, at 100 and at 10,000 steps.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
import peers as installed_peers
from compiled import BATCH, EAGER, JIT, UNITS, jitted, leaves
from measure import HAND, OURS, Aim, Case
from paths import HIPS, TORCH, Peers, of_torch
from programs import STATES, TIME, gradients, kutta_by_hand, slope

import multigrad as mg
from multigrad import func

WORKLOAD = "func.scan"
MOST = 1.5  # the limit, in times of NumPy by hand
FEW, MANY = 100, 10_000  # steps

Run = Callable[[], list[Any]]
Loop = Callable[..., Any]  # scan(body, carry, xs, length=None)


def scanned_cases(peers: Peers, steps: int = 1000) -> Iterator[Case]:
    yield recurrent(peers, steps)
    yield runge_kutta(peers, steps)


def unrolled(body: Callable[..., Any], carry: Any, xs: Any, length: int | None = None) -> Any:
    """Run a scan without results as a Python loop."""
    for i in range(len(xs) if length is None else length):
        carry, _ = body(carry, None if xs is None else xs[i])
    return carry, None


def of_loss(
    peers: Peers,
    label: str,
    loss: Callable[..., Any],
    params: list[Any],
    data: list[Any],
    by_hand: Callable[..., Any],
) -> Case:
    """Return for each peer a run of the value and the gradients of `loss`."""
    functions = gradients(
        peers, lambda xp, p, *data: loss(unrolled, xp, p, *data), params, data, module=True
    )
    ours = func.value_and_grad(lambda *p: loss(func.scan, mg, p, *data), tuple(range(len(params))))
    runs: dict[str, Run] = {
        HAND: lambda: leaves(by_hand(*params)),
        OURS: lambda: leaves(ours(*params)),
        EAGER: lambda: leaves(functions[OURS](*params)),
    }
    for peer, arguments in (
        (TORCH, of_torch(peers.torch, *params) if peers.torch else ()),
        (HIPS, params),
    ):
        if peer in functions:
            runs[peer] = lambda f=functions[peer], arguments=arguments: leaves(f(*arguments))
    if installed_peers.installed("jax"):
        import jax

        numbers = tuple(range(len(params)))
        runs[JIT] = jitted(
            lambda jnp, vag, *p: vag(lambda *p: loss(jax.lax.scan, jnp, p, *data), numbers)(*p),
            params,
        )
    return Case(WORKLOAD, label, 1, runs, [Aim(HAND, MOST)], 1e-8)


# -- a recurrent network


def recurrent_loss(scan: Loop, xp: Any, params: Any, sequence: Any, start: Any) -> Any:
    w, u, b = params
    h, _ = scan(lambda h, x: (xp.tanh(h @ w + x @ u + b), None), start, sequence)
    return xp.sum(h * h)


def recurrent_by_hand(sequence: Any, start: Any) -> Callable[..., Any]:
    def gradient(w: Any, u: Any, b: Any) -> Any:
        states = [start]
        for x in sequence:
            states.append(np.tanh(states[-1] @ w + x @ u + b))
        h = states.pop()
        value, g, gw, gu, gb = (
            np.sum(h * h),
            2 * h,
            np.zeros_like(w),
            np.zeros_like(u),
            np.zeros_like(b),
        )
        for x in sequence[::-1]:
            ga = g * (1 - h * h)
            h = states.pop()
            gw += h.T @ ga
            gu += x.T @ ga
            gb += ga.sum(axis=0)
            g = ga @ w.T
        return value, gw, gu, gb

    return gradient


def recurrent_inputs(steps: int) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(6)
    params = [
        rng.normal(size=(UNITS, UNITS)) / 5,
        rng.normal(size=(UNITS, UNITS)) / 5,
        rng.normal(size=UNITS),
    ]
    return params, [rng.normal(size=(steps, BATCH, UNITS)), np.zeros((BATCH, UNITS))]


def recurrent(peers: Peers, steps: int) -> Case:
    params, data = recurrent_inputs(steps)
    return of_loss(
        peers,
        f"a recurrent network, {steps:,} steps, batch {BATCH}, {UNITS} units",
        recurrent_loss,
        params,
        data,
        recurrent_by_hand(*data),
    )


# -- Runge and Kutta's method


def runge_kutta(peers: Peers, steps: int) -> Case:
    rng = np.random.default_rng(5)
    params, start = (
        [rng.normal(size=(STATES, STATES)), rng.normal(size=STATES)],
        rng.normal(size=STATES),
    )
    dt = TIME / steps

    def loss(scan: Loop, xp: Any, params: Any, start: Any) -> Any:
        a, b = params

        def body(y: Any, _: Any) -> Any:
            k1 = slope(xp, y, a, b)
            k2 = slope(xp, y + 0.5 * dt * k1, a, b)
            k3 = slope(xp, y + 0.5 * dt * k2, a, b)
            k4 = slope(xp, y + dt * k3, a, b)
            return y + (dt / 6) * (k1 + 2 * k2 + 2 * k3 + k4), None

        y, _ = scan(body, start, None, length=steps)
        return xp.sum(y * y)

    return of_loss(
        peers,
        f"Runge-Kutta, {steps:,} steps and the gradient",
        loss,
        params,
        [start],
        kutta_by_hand(start, steps),
    )


# -- costs of a longer loop besides its steps


def calls(steps: int) -> tuple[float, int]:
    """Return the processor seconds of a network's gradient, and its number of calls of the body."""
    params, data = recurrent_inputs(steps)
    count = 0

    def scan(body: Callable[..., Any], carry: Any, xs: Any) -> Any:
        def counted(h: Any, x: Any) -> Any:
            nonlocal count
            count += 1
            return body(h, x)

        return func.scan(counted, carry, xs)

    gradient = func.value_and_grad(lambda *p: recurrent_loss(scan, mg, p, *data), (0, 1, 2))
    gc.collect()
    start = time.process_time()
    gradient(*params)
    return time.process_time() - start, count


def peak(steps: int, scan: Loop) -> float:
    """Return the peak bytes of a network's gradient, beyond those of its arguments."""
    params, data = recurrent_inputs(steps)
    gradient = func.value_and_grad(lambda *p: recurrent_loss(scan, mg, p, *data), (0, 1, 2))
    gradient(*params)
    gc.collect()
    tracemalloc.start()
    held = tracemalloc.get_traced_memory()[0]
    kept = gradient(*params)
    most = tracemalloc.get_traced_memory()[1] - held
    tracemalloc.stop()
    del kept
    return most


def measure(rounds: int = 3) -> dict[str, float]:
    """Return the costs of a scan and its gradient.

    They are microseconds per step, milliseconds of the gradient besides its steps, calls of the
    body, and bytes of a further step in carries.
    """
    calls(FEW)  # warm-up: imports and caches
    rows = [(calls(FEW), calls(MANY)) for _ in range(rounds)]
    step = median((many - few) / (MANY - FEW) for (few, _), (many, _) in rows)
    carry = 8 * BATCH * UNITS
    memory = {
        name: (peak(MANY, scan) - peak(FEW, scan)) / (MANY - FEW) / carry
        for name, scan in (
            ("scan", func.scan),
            ("binomial", lambda *given: func.scan(*given, checkpoint="binomial")),
            ("tape", unrolled),
        )
    }
    (_, few), (_, many) = rows[0]
    return {
        "step": step * 1e6,
        "besides": (median(few for (few, _), _ in rows) - FEW * step) * 1e3,
        "calls": few,
        "calls, long": many,
        **{f"memory, {name}": x for name, x in memory.items()},
    }


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print(json.dumps(measure(), indent=1))
