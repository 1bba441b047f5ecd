"""Loops written out, and the comparison of their results with those of scan."""

from __future__ import annotations

from typing import Any

import numpy as np

import multigrad as mg
from multigrad.func import tree


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
