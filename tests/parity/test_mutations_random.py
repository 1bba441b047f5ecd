"""Random programs that write: as PyTorch does, where it is installed, and as the same program
without writes, on every backend.
"""

from __future__ import annotations

import numpy as np
import pytest
from parity.mutations import corpus, generator
from parity.mutations.model import Model
from parity.mutations.sides import Multigrad, Torch

from multigrad.errors import BackendError

LEAVES, CONSTANTS = generator.LEAVES, generator.CONSTANTS


@pytest.fixture(autouse=True)
def _quiet():
    with corpus.quiet():
        yield


def arrays(xp):
    return {n: xp.array(corpus.ARRAYS[n], requires_grad=n in LEAVES) for n in LEAVES + CONSTANTS}


def gradients(xp, results, data):
    """Gradients of the leaves, zeros for None; second ones too."""
    total = corpus.weighted(xp, results)
    leaves = [data[n] for n in LEAVES]
    first = xp.grad(total, leaves, create_graph=True, allow_unused=True)
    second = corpus.second(xp, total, leaves)
    return [
        xp.raw(xp.zeros_like(leaf.detach()) if g is None else g)
        for leaf, g in zip(leaves, first, strict=True)
    ] + [xp.raw(g) for g in second]


def outcome(xp, steps):
    """Where and how it was refused, what is known without values, and the values."""
    data = arrays(xp)
    results, refused = generator.execute(xp, steps, data)
    if refused is not None:
        number, error = refused
        return ("forward", number, *corpus.described(error)), [], []
    known = [(t._version, t.requires_grad, t.is_leaf) for t in results]
    values = [xp.raw(t) for t in results]
    try:
        return None, known, values + gradients(xp, results, data)
    except RuntimeError as error:
        # which one of several changed arrays is met first, differs
        return ("backward", corpus.described(error)[0]), known, values


def listing(seed, steps):
    first = [f"#{i} = {n}" for i, n in enumerate(LEAVES + CONSTANTS)]
    return "\n".join([f"seed {seed}", *first, *map(str, steps)])


def finite(numbers):
    """Not so after a division by 0, when gradients of what was overwritten since may be nan or
    0.
    """
    return all(np.isfinite(v).all() for v in numbers)


def close(got, want, note):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(
            a,
            b,
            rtol=1e-8,
            atol=1e-8 * max(1.0, np.abs(b[np.isfinite(b)]).max(initial=0.0)),
            err_msg=note,
        )


@pytest.mark.parametrize(
    ("first", "count"), [(0, 200), pytest.param(200, 3000, marks=pytest.mark.slow)]
)
def test_as_in_pytorch(first, count):
    pytest.importorskip("torch")
    theirs, ours = Torch(), Multigrad("numpy")
    refused = 0
    for seed in range(first, first + count):
        steps = generator.draw(seed)
        want, got = outcome(theirs, steps), outcome(ours, steps)
        note = listing(seed, steps)
        assert got[0] == want[0], note
        assert got[1] == want[1], note
        if finite(want[2]):
            close(got[2], want[2], note)
        refused += want[0] is not None
    assert 0.05 * count < refused < 0.5 * count


def modelled(xp, steps):
    """Values and gradients of the program without writes."""
    data = arrays(xp)
    results = Model(xp, data).run(steps)
    return [xp.raw(t) for t in results] + gradients(xp, results, data)


@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.slow)])
def test_as_without_writes(count):
    xp = Multigrad("numpy")
    succeed = 0
    for seed in range(10_000, 10_000 + count):
        steps = generator.draw(seed)
        found = outcome(xp, steps)
        if found[0] is not None:
            continue
        succeed += 1
        want = modelled(xp, steps)
        if finite(want):
            close(found[2], want, listing(seed, steps))
    assert succeed > 0.5 * count


@pytest.mark.parametrize(
    ("backend", "count"),
    [
        ("strict", 60),
        ("jax", 8),
        pytest.param("strict", 1000, marks=pytest.mark.slow),
        pytest.param("jax", 150, marks=pytest.mark.slow),
    ],
)
def test_as_on_numpy(backend, count):
    try:
        reference, xp = Multigrad("numpy"), Multigrad(backend)
    except BackendError as error:
        pytest.skip(f"backend {backend!r} cannot be used here: {error}")
    for seed in range(20_000, 20_000 + count):
        steps = generator.draw(seed)
        want, got = outcome(reference, steps), outcome(xp, steps)
        note = listing(seed, steps)
        assert got[:2] == want[:2], note
        if finite(want[2]):
            close(got[2], want[2], note)
