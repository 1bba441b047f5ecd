"""Eager arrays of JAX, without jit: the tape and func's transformations, compared with JAX's.

JAX's functions are `jax.grad` and `jax.vmap(jax.grad)`. The program is `mix` of paths.py, 25 times
its four operations, in float32, JAX's default. The rows of the tape and of vmap(grad) have aims.
transformations.py compares a whole training step under jax.jit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from measure import OURS, Aim, Case
from paths import SIZE, Run, inputs, loss, mix

import multigrad as mg
from multigrad import func

JAX = "jax, eager"
WORKLOAD = "eager JAX"
TURNS, OPERATIONS = 25, 100
KEPT, KEPT_OF_BATCHES = 0.2, 0.3  # the greatest ratios to JAX's time


def eager_cases() -> Iterator[Case]:
    import jax
    import jax.numpy as jnp

    xp = mg.namespace("jax")
    x, w, b = (jnp.asarray(a, dtype=jnp.float32) for a in inputs())
    rows = jnp.asarray(np.random.default_rng(1).normal(size=(SIZE, SIZE)), dtype=jnp.float32)
    tx, tw, tb = (mg.asarray(a) for a in (x, w, b))
    ours, theirs = func.grad(loss(xp, b, TURNS), (0, 1)), jax.grad(loss(jnp, b, TURNS), (0, 1))
    each, their_each = func.vmap(ours, in_axes=(0, None)), jax.vmap(theirs, in_axes=(0, None))

    def tape() -> list[object]:
        leaves = [tx.detach().requires_grad_(), tw.detach().requires_grad_()]
        return [*mg.autograd.grad(xp.sum(mix(xp, *leaves, tb, TURNS)), leaves)]

    def waiting(run: Run) -> Run:
        return lambda: [*jax.block_until_ready(run())]

    of_jax = waiting(lambda: [*theirs(x, w)])
    yield _case("tape, beside jax.grad", {OURS: waiting(tape), JAX: of_jax}, Aim(JAX, KEPT))
    yield _case("func.grad, beside jax.grad", {OURS: waiting(lambda: [*ours(x, w)]), JAX: of_jax})
    both = {OURS: waiting(lambda: [*each(rows, w)]), JAX: waiting(lambda: [*their_each(rows, w)])}
    yield _case(
        "vmap(grad), beside jax.vmap(jax.grad), 4 examples", both, Aim(JAX, KEPT_OF_BATCHES)
    )


def _case(label: str, runs: dict[str, Run], *aims: Aim) -> Case:
    return Case(WORKLOAD, label, OPERATIONS, runs, [*aims], 1e-4)
