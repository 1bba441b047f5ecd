"""Python's operators by their stems: how each form of one is applied, and what is tried on them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from conftest import values

import multigrad as mg

BITWISE = {"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}


A, B, W = np.asarray([3.5, 2.25, 5.0]), np.asarray([0.75, 1.5, 2.25]), np.asarray([1.0, -2.0, 0.5])


def apply(stem: str, form: str, a: Any, b: Any) -> Any:
    """a OP b, by the operator, by the reflected method of b, or in place on a (on a copy of a
    leaf).
    """
    if form == "reflected":
        return getattr(b, f"__r{stem}__")(a)
    if form == "in place":
        return getattr(operator, f"i{stem}")(a * 1 if requires(a) else a, b)
    return getattr(operator, {"and": "and_", "or": "or_"}.get(stem, stem))(a, b)


def requires(x: Any) -> bool:
    return isinstance(x, mg.Tensor) and x.requires_grad


def check(t: Any, expected: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(values(t), expected, rtol=rtol, atol=1e-14)


def gradients(y: Any, inputs: Any, weights: Any) -> Any:
    return mg.autograd.grad(y, inputs, grad_outputs=weights)
