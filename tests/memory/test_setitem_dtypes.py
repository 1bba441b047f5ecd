"""`x[key] = value` between dtypes: what is written takes the dtype of x, on every library and
recorded or not, but never loses its kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import values
from leaves import check, const, leaf

import multigrad as mg

KINDS = {
    "bool": 0,
    "int64": 1,
    "float32": 2,
    "float64": 2,
    "complex128": 3,
}


def made(xp: Any, data: list[int], dtype: str, recorded: bool) -> Any:
    return leaf(xp, data, dtype) * 1 if recorded else const(xp, data, dtype)


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_dtypes(xp: Any, target: str, source: str) -> None:
    """As `+=`: narrower of the same kind is cast, on every library; of a lower kind is refused. x
    is untouched by a refusal.
    """
    variants = [False] if KINDS[target] < 2 else [False, True]
    for recorded in variants:
        y = made(xp, [0, 1, 0], target, recorded)
        before = y._version
        if KINDS[source] > KINDS[target]:
            with pytest.raises(
                RuntimeError,
                match=rf"result type .*{source}.* can't be cast to the desired output type "
                rf".*{target}",
            ):
                y[0] = const(xp, 1, source)
            check(y, [0, 1, 0])
            assert y._version == before
        else:
            y[0] = const(xp, 1, source)
            check(y, [1, 1, 0])
            assert y.dtype == getattr(xp, target) and y._version == before + 1


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("target", "scalar"),
    [
        ("int64", 1.5),
        ("int64", 1j),
        ("float64", 1j),
        ("bool", 1),
    ],
)
def test_scalars_of_a_higher_kind(xp: Any, target: str, scalar: Any, recorded: bool) -> None:
    y = made(xp, [0, 1], target, recorded and KINDS[target] > 1)
    with pytest.raises(
        RuntimeError,
        match=rf"a Python {type(scalar).__name__} .*can't be cast to the desired output type "
        rf".*{target}",
    ):
        y[0] = scalar
    check(y, [0, 1])
    assert y._version == 0


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("target", "scalar"),
    [
        ("float32", 1.1),
        ("float64", True),
        ("complex128", 1.5),
    ],
)
def test_scalars_that_are_written(xp: Any, target: str, scalar: Any, recorded: bool) -> None:
    y = made(xp, [0, 1], target, recorded and KINDS[target] > 1)
    y[0] = scalar
    np.testing.assert_array_equal(values(y), np.asarray([scalar, 1], dtype=target))
    assert y.dtype == getattr(xp, target)


def test_zero_and_copy(xp: Any) -> None:
    """`zero_` knows every dtype; `copy_` casts as astype does, where `x[...] = value` would
    refuse.
    """
    for dtype in KINDS:
        check(const(xp, [0, 1], dtype).zero_(), [0, 0])
    check(const(xp, [7, 7], "int64").copy_(const(xp, [1.5, 2.0])), [1, 2])
    check(const(xp, [True, False], "bool").copy_(const(xp, 3, "int64")), [True, True])
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        const(xp, [0.0, 1.0]).copy_(const(xp, [1j, 2], "complex128"))
    x, v = leaf(xp, [1.0, 2.0]), leaf(xp, [3, 4], "float32")
    y = x * 1.0
    xp.sum(y.copy_(v) * const(xp, [5.0, 6.0])).backward()
    check(x.grad, [0, 0])
    check(v.grad, [5, 6])
    assert y.dtype == xp.float64 and v.grad.dtype == xp.float32


def test_a_value_whose_memory_was_replaced() -> None:
    """Of a NumPy scalar, a write makes a new array: a detached alias must follow before it is
    written elsewhere.
    """
    s = mg.asarray(np.ones(3)).sum()
    d = s.detach()
    s *= 2
    y = mg.zeros(2)
    y[0] = d
    check(y, [6, 0])


@pytest.mark.parametrize(
    ("target", "source", "gradient"),
    [("float32", "float64", 1.0), ("float64", "float32", 1.0), ("complex128", "float64", 1 + 3j)],
)
def test_each_gradient_has_the_dtype_of_its_argument(
    xp: Any, target: str, source: str, gradient: Any
) -> None:
    """A real value in a complex array has a real gradient."""
    x, v = leaf(xp, [1, 2, 3], target), leaf(xp, [4, 5], source)
    y = x * 1
    y[:2] = v
    gx, gv = mg.autograd.grad(xp.sum(y), (x, v), const(xp, gradient, target))
    assert gx.dtype == x.dtype and gv.dtype == v.dtype
    check(gx, [0, 0, gradient])
    check(gv, [1, 1])
