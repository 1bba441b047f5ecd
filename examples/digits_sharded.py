"""Train the network of examples/digits.py on several JAX devices: the weights are replicated, and
the images of a batch are sharded.

`loss` and `step` contain no sharding code, because the sharding is a property of the arrays. The
gradient of a weight sums over images on all devices, so XLA inserts an all-reduce. The program
compiled from multigrad's step has the same collectives as one written with jax.value_and_grad.

    python examples/digits_sharded.py                 8 devices, which XLA emulates on one CPU
    python examples/digits_sharded.py --epochs 20
"""

from __future__ import annotations

import os

# JAX reads these when it initializes its devices
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import argparse
import re
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
from digits import BATCH, RATE, TRAIN, Digits, load, step
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import multigrad as mg

AGREEMENT = 1e-11  # the devices sum in a different order
COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


def jax_loss(weights: Any, images: Any, labels: Any) -> Any:
    """The loss of examples/digits.py, written in JAX."""
    w1, b1, w2, b2 = weights
    hidden = images @ w1 + b1
    z = jnp.where(hidden > 0, hidden, 0.0) @ w2 + b2
    z = z - jnp.max(z, axis=1, keepdims=True)
    return jnp.mean(jnp.log(jnp.sum(jnp.exp(z), axis=1)) - jnp.sum(labels * z, axis=1))


def jax_step(weights: Any, images: Any, labels: Any) -> Any:
    value, gradients = jax.value_and_grad(jax_loss)(weights, images, labels)
    return value, [w - RATE * g for w, g in zip(weights, gradients, strict=True)]


def losses(digits: Digits, rows: Any, whole: Any) -> list[float]:
    """The loss of each step, with images and labels placed as `rows` and weights as `whole`."""
    descend = jax.jit(step)
    weights = [mg.asarray(jax.device_put(w, whole)) for w in digits.weights]
    values = []
    for order in digits.orders:
        for i in range(0, TRAIN - BATCH + 1, BATCH):  # full batches, which shard evenly
            chosen = order[i : i + BATCH]
            batch, labels = (
                mg.asarray(jax.device_put(x[chosen], rows)) for x in (digits.images, digits.labels)
            )
            value, weights = descend(weights, batch, labels)
            assert all(w.array.sharding.is_equivalent_to(whole, w.ndim) for w in weights)
            values.append(value)
    return [float(value) for value in values]


def collectives(function: Any, *args: Any) -> dict[str, int]:
    """The number of collective operations of each kind in the compiled program."""
    text = jax.jit(function).lower(*args).compile().as_text()
    return dict(Counter(re.findall(rf" ({'|'.join(COLLECTIVES)})(?:-start)?\(", text)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=3)
    digits = load(parser.parse_args().epochs, file_order=False)
    devices = jax.devices()
    mesh = Mesh(devices, ("batch",))
    rows, whole = NamedSharding(mesh, PartitionSpec("batch")), NamedSharding(mesh, PartitionSpec())
    one = jax.sharding.SingleDeviceSharding(devices[0])

    alone, shared = losses(digits, one, one), losses(digits, rows, whole)
    apart = max(abs(a - b) / abs(a) for a, b in zip(alone, shared, strict=True))
    print(
        f"{len(devices)} devices, {len(alone)} steps: the loss went from {shared[0]:.4f} to "
        f"{shared[-1]:.4f}, as on one device to {apart:.0e}"
    )

    raw = (
        [jax.device_put(w, whole) for w in digits.weights],
        *(jax.device_put(x[:BATCH], rows) for x in (digits.images, digits.labels)),
    )
    ours = collectives(
        step, [mg.asarray(w) for w in raw[0]], mg.asarray(raw[1]), mg.asarray(raw[2])
    )
    theirs = collectives(jax_step, *raw)
    print(f"collectives of multigrad's step: {ours}; of JAX's: {theirs}")
    assert apart <= AGREEMENT, (
        f"the losses differ by {apart:.1e}; float64 rounding allows {AGREEMENT:.0e}"
    )
    assert ours == theirs, "the compiled programs differ in their collectives"


if __name__ == "__main__":
    main()
