"""Names beyond the standard that PyTorch has as well: the same values, gradients and second
derivatives, in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import multigrad as mg

torch = pytest.importorskip("torch")
F = torch.nn.functional

REAL = np.random.default_rng(3).normal(size=(4, 5)) * 2
HOLED = np.where(np.arange(20).reshape(4, 5) % 4 == 1, np.nan, REAL)
FAR = np.asarray([[-1000.0, 1000.0, 999.0], [-np.inf, 2.0, 1.0], [30.0, -30.0, 0.5]])
FINITE = np.asarray([[-1000.0, 1000.0, 999.0], [30.0, -30.0, 0.5], [19.0, 21.0, 20.5]])

CASES: list[tuple[str, Any, Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("sigmoid", FAR, mg.sigmoid, torch.sigmoid),
    ("relu", FAR, mg.relu, torch.relu),
    ("silu", FINITE, mg.silu, F.silu),
    ("softplus", FINITE, mg.softplus, F.softplus),
    (
        "softplus, beta and threshold",
        REAL,
        lambda x: mg.softplus(x, 2.5, 1.0),
        lambda x: F.softplus(x, 2.5, 1.0),
    ),
    ("softmax", FAR, lambda x: mg.softmax(x, axis=1), lambda x: torch.softmax(x, 1)),
    ("log_softmax", REAL, lambda x: mg.log_softmax(x, axis=0), lambda x: torch.log_softmax(x, 0)),
    ("logsumexp", FAR, lambda x: mg.logsumexp(x, axis=1), lambda x: torch.logsumexp(x, 1)),
    (
        "logsumexp, keepdims",
        REAL,
        lambda x: mg.logsumexp(x, axis=(0, 1), keepdims=True),
        lambda x: torch.logsumexp(x, (0, 1), keepdim=True),
    ),
    (
        "median of an odd number",
        REAL,
        lambda x: mg.median(x, axis=1),
        lambda x: torch.median(x, 1).values,
    ),
    ("quantile", REAL, lambda x: mg.quantile(x, 0.3, axis=1), lambda x: torch.quantile(x, 0.3, 1)),
    (
        "quantiles",
        REAL,
        lambda x: mg.quantile(x, [0.1, 0.75], axis=0, keepdims=True),
        lambda x: torch.quantile(
            x, torch.tensor([0.1, 0.75], dtype=torch.float64), 0, keepdim=True
        ),
    ),
    *(
        (
            f"quantile, {method}",
            REAL,
            lambda x, m=method: mg.quantile(x, 0.4, method=m),
            lambda x, m=method: torch.quantile(x, 0.4, interpolation=m),
        )
        for method in ("lower", "higher", "midpoint", "nearest")
    ),
    (
        "nanquantile",
        HOLED,
        lambda x: mg.nanquantile(x, 0.6, axis=1),
        lambda x: torch.nanquantile(x, 0.6, 1),
    ),
    ("nansum", HOLED, lambda x: mg.nansum(x, axis=1), lambda x: torch.nansum(x, 1)),
    ("nanmean", HOLED, lambda x: mg.nanmean(x, axis=0), lambda x: torch.nanmean(x, 0)),
    ("nan_to_num", HOLED, lambda x: mg.nan_to_num(x, nan=2.0), lambda x: torch.nan_to_num(x, 2.0)),
    ("cov", REAL, mg.cov, torch.cov),
    (
        "cov, weights",
        REAL,
        lambda x: mg.cov(x, ddof=0, aweights=np.asarray([0.1, 0.2, 0.5, 1.0, 0.4])),
        lambda x: torch.cov(
            x, correction=0, aweights=torch.tensor([0.1, 0.2, 0.5, 1.0, 0.4], dtype=torch.float64)
        ),
    ),
    ("corrcoef", REAL, mg.corrcoef, torch.corrcoef),
]


@pytest.mark.parametrize(("name", "x", "ours", "theirs"), CASES, ids=[case[0] for case in CASES])
def test_values_and_derivatives(name: str, x: Any, ours: Any, theirs: Any) -> None:
    def derivatives(f: Any, leaf: Any, tensor: Any, total: Any, grad: Any) -> list[Any]:
        out = f(leaf)
        weights = tensor(np.random.default_rng(4).normal(size=tuple(out.shape)))
        (first,) = grad(total(out * weights), leaf, create_graph=True)
        found = [out, first]
        if first.requires_grad:
            found += grad(
                total(first * tensor(np.random.default_rng(5).normal(size=x.shape))),
                leaf,
                allow_unused=True,
            )
        return [np.zeros(x.shape) if y is None else y.detach().numpy() for y in found]

    mine = derivatives(
        ours, mg.asarray(x, requires_grad=True), mg.asarray, mg.sum, mg.autograd.grad
    )
    other = derivatives(
        theirs, torch.tensor(x, requires_grad=True), torch.tensor, torch.sum, torch.autograd.grad
    )
    mine, other = ([*given, np.zeros(x.shape)][:3] for given in (mine, other))
    for order, (a, b) in enumerate(zip(mine, other, strict=True)):
        np.testing.assert_allclose(
            a, b, rtol=1e-9, atol=1e-12, err_msg=f"{name}, derivative {order}"
        )
