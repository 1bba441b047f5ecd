"""Benchmarks on a GPU: multigrad on CuPy and on JAX, compared with hand-written code and others.

    python benchmarks/gpu.py [--quick]          or: make test-gpu

The others are jax.grad and PyTorch. There are two workloads in float32. One is the chain of 1000
elementwise operations: overhead at 1,000 elements, bandwidth at 16 million; 100 operations under
jax.jit, which compiles them into one. The other is a training step of a network of 784-1024-1024-10
units on a batch of 256. Every run waits for its device before the clock stops. Results go to
benchmarks/results/gpu.json and gpu.md.
"""

from __future__ import annotations

import os

# otherwise JAX takes the memory that CuPy and torch need
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import peers as installed_peers
import workloads
from measure import HAND, OURS, Case, measure
from run import write
from tables import duration, table

import multigrad as mg

RESULTS = Path(__file__).resolve().parent / "results"
SIZES = (1_000, 1_000_000, 16_000_000)
RATE = 1e-3
JIT = "jax.jit of jax.grad"
# float32; some libraries round the inputs of matrix products to tf32 by default
TOLERANCE = 1e-2


def waiting(run: Callable[[], Any], wait: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return `run`, followed by waiting for the device."""

    def finished() -> Any:
        values = run()
        wait(values)
        return values

    return finished


def torch_cuda() -> Any:
    """Return PyTorch, if it is installed and sees a GPU."""
    if not installed_peers.installed("torch"):
        return None
    import torch

    return torch if torch.cuda.is_available() else None


# -- CuPy: eager, as on NumPy


def cupy_cases() -> Iterator[Case]:
    import cupy

    def wait(_: Any) -> None:
        cupy.cuda.get_current_stream().synchronize()

    torch = torch_cuda()
    for size in SIZES:
        library = [v.astype(np.float32) for v in workloads.chain_inputs(size)]
        x, a, b, g = (cupy.asarray(v) for v in library)
        peers = {
            HAND: waiting(
                lambda x=x, a=a, b=b, g=g: [workloads.chain_by_hand(cupy, x, a, b, g)], wait
            ),
            OURS: waiting(workloads.chain_of_ours(x, a, b, g), wait),
        }
        if torch is not None:
            peers[workloads.TORCH] = waiting(
                workloads.chain_of_torch("cuda", *library), lambda _: torch.cuda.synchronize()
            )
        yield Case(
            "cupy: chain, forward + backward",
            f"size {size:,}, float32",
            workloads.CHAIN,
            peers,
            tolerance=TOLERANCE,
        )

    weights, images, ideal = mlp_inputs()
    held = [cupy.asarray(w) for w in weights]
    on_gpu = cupy.asarray(images), cupy.asarray(ideal)
    tensors, ours = [mg.asarray(w) for w in held], [mg.asarray(v) for v in on_gpu]
    peers = {
        HAND: waiting(lambda: mlp_by_hand(cupy, held, *on_gpu), wait),
        OURS: waiting(lambda: mlp_step(mg.autograd.grad, tensors, *ours), wait),
    }
    if torch is not None:
        theirs, batch = (
            [torch.asarray(w, device="cuda") for w in weights],
            [torch.asarray(v, device="cuda") for v in (images, ideal)],
        )
        step = waiting(
            lambda: mlp_step(torch.autograd.grad, theirs, *batch, xp=torch),
            lambda _: torch.cuda.synchronize(),
        )
        peers[workloads.TORCH] = step
    yield Case(
        "cupy: network 784-1024-1024-10",
        "a training step, batch 256",
        1,
        peers,
        tolerance=TOLERANCE,
    )


# -- JAX: the whole step compiled, with multigrad's and with JAX's gradient


def jax_cases() -> Iterator[Case]:
    import jax
    import jax.numpy as jnp

    wait = jax.block_until_ready
    device = jax.devices("gpu")[0]
    for size in SIZES:
        x, a, b, g = (
            jax.device_put(v.astype(np.float32), device) for v in workloads.chain_inputs(size)
        )
        own = jax.jit(
            lambda x, a, b, g: jax.vjp(lambda leaf: short_chain(jnp, leaf, a, b), x)[1](g)
        )

        def of_ours(x: Any, a: Any, b: Any, g: Any) -> Any:
            leaf, a, b, g = (
                mg.asarray(x, requires_grad=True),
                mg.asarray(a),
                mg.asarray(b),
                mg.asarray(g),
            )
            return [
                mg.autograd.grad(short_chain(leaf.__array_namespace__(), leaf, a, b), leaf, g)[
                    0
                ].array
            ]

        ours = jax.jit(of_ours)
        peers = {
            JIT: waiting(lambda own=own, v=(x, a, b, g): own(*v), wait),
            OURS: waiting(lambda ours=ours, v=(x, a, b, g): ours(*v), wait),
        }
        yield Case(
            "jax.jit: chain of 100, forward + backward",
            f"size {size:,}, float32",
            100,
            peers,
            tolerance=TOLERANCE,
        )

    weights, images, ideal = mlp_inputs()
    held, batch = (
        [jax.device_put(w, device) for w in weights],
        [jax.device_put(v, device) for v in (images, ideal)],
    )
    tensors, wrapped = [mg.asarray(w) for w in held], [mg.asarray(v) for v in batch]
    loss = jax.value_and_grad(lambda weights, images, ideal: mlp_loss(jnp, weights, images, ideal))

    def own_step(weights: Any, images: Any, ideal: Any) -> Any:
        value, gradients = loss(weights, images, ideal)
        return [value, *(w - RATE * g for w, g in zip(weights, gradients, strict=True))]

    compiled, ours = (
        jax.jit(own_step),
        jax.jit(lambda *arguments: mlp_step(mg.autograd.grad, *arguments)),
    )
    peers = {
        JIT: waiting(lambda: compiled(held, *batch), wait),
        OURS: waiting(lambda: ours(tensors, *wrapped), wait),
    }
    yield Case(
        "jax.jit: network 784-1024-1024-10",
        "a training step, batch 256",
        1,
        peers,
        tolerance=TOLERANCE,
    )


def short_chain(xp: Any, x: Any, a: Any, b: Any) -> Any:
    for _ in range(20):
        x = xp.tanh(xp.sin(x) * a + b) * workloads.SCALE
    return x


# -- the network


def mlp_inputs() -> tuple[list[Any], Any, Any]:
    rng = np.random.default_rng(4)
    shapes = ((784, 1024), (1024,), (1024, 1024), (1024,), (1024, 10), (10,))
    weights = [(rng.normal(size=s) / np.sqrt(s[0])).astype(np.float32) for s in shapes]
    return (
        weights,
        rng.normal(size=(256, 784)).astype(np.float32),
        rng.normal(size=(256, 10)).astype(np.float32),
    )


def mlp_loss(xp: Any, weights: Any, x: Any, ideal: Any) -> Any:
    w1, b1, w2, b2, w3, b3 = weights
    x = xp.tanh(x @ w1 + b1)
    x = xp.tanh(x @ w2 + b2)
    difference = x @ w3 + b3 - ideal
    return xp.mean(difference * difference)


def mlp_step(grad: Any, weights: Any, images: Any, ideal: Any, xp: Any = None) -> list[Any]:
    """Run one step of gradient descent, for multigrad and for torch."""
    leaves = [w.detach().requires_grad_() for w in weights]
    value = mlp_loss(xp or images.__array_namespace__(), leaves, images, ideal)
    return [
        value.detach(),
        *(w - RATE * g for w, g in zip(weights, grad(value, leaves), strict=True)),
    ]


def mlp_by_hand(xp: Any, weights: Any, x: Any, ideal: Any) -> list[Any]:
    w1, b1, w2, b2, w3, b3 = weights
    h1 = xp.tanh(x @ w1 + b1)
    h2 = xp.tanh(h1 @ w2 + b2)
    difference = h2 @ w3 + b3 - ideal
    g3 = difference * (2 / difference.size)
    g2 = (g3 @ w3.T) * (1 - h2 * h2)
    g1 = (g2 @ w2.T) * (1 - h1 * h1)
    gradients = [x.T @ g1, g1.sum(axis=0), h1.T @ g2, g2.sum(axis=0), h2.T @ g3, g3.sum(axis=0)]
    return [
        xp.mean(difference * difference),
        *(w - RATE * g for w, g in zip(weights, gradients, strict=True)),
    ]


# -- the report


def device_name() -> str:
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    return str(properties["name"].decode())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER")
    options = parser.parse_args(arguments)
    sections, record = (
        [],
        {"device": device_name(), "versions": installed_peers.versions(), "cases": []},
    )
    for library, make in (("cupy", cupy_cases), ("jax", jax_cases)):
        results = [measure(case, 1.0 if options.quick else 5.0) for case in make()]
        columns = [
            c for c in (HAND, JIT, OURS, workloads.TORCH) if any(c in r.rounds for r in results)
        ]
        others = [c for c in columns if c != OURS]
        rows = [
            [
                r.case.workload,
                r.case.label,
                *(duration(r.seconds(c)) if c in r.rounds else "" for c in columns),
                *(f"{r.ratio(OURS, c):.2f}" if c in r.rounds else "" for c in others),
            ]
            for r in results
        ]
        sections.append(
            f"## {library}\n\n"
            + table(["workload", "case", *columns, *(f"{OURS} / {c}" for c in others)], rows)
        )
        record["cases"] += [r.to_json() for r in results]
    text = (
        f"# On {record['device']}\n\n"
        + "\n\n".join(sections)
        + f"\n\n{json.dumps(record['versions'])}\n"
    )
    print(text)
    write(options.out / "gpu.json", record)
    (options.out / "gpu.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
