"""`out=` of NumPy's functions where that is the only Tensor: NumPy computes of its own arrays, and
the Tensor is written in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn, values

import multigrad as mg
from multigrad.errors import MixedBackendsError

X = drawn(2, 3)
CALLS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda out, name=name: getattr(np, name)(X, axis=0, out=out)  # type: ignore[misc]
        for name in (
            "all",
            "max",
            "mean",
            "nanmean",
            "ptp",
            "std",
            "median",
        )
    },
    **{
        name: lambda out, name=name: getattr(np, name)(X, axis=1, out=out)  # type: ignore[misc]
        for name in ("cumsum", "nancumsum")
    },
    "mean, by position": lambda out: np.mean(X, 0, None, out),
    "mean of a list": lambda out: np.mean([[1.0, 2.0, 3.0]], axis=0, out=out),
    "mean of some": lambda out: np.mean(X, axis=0, where=X > X.min(), out=out),
    "quantile": lambda out: np.quantile(X, 0.3, axis=0, out=out),
    "round": lambda out: np.round(X, 1, out=out),
    "round, by position": lambda out: np.round(X, 1, out),
    "clip": lambda out: np.clip(X, 0.6, 1.2, out=out),
    "take": lambda out: np.take(X, [1, 0, 1], axis=1, out=out),
    "compress": lambda out: np.compress([False, True], X, axis=0, out=out),
    "concatenate": lambda out: np.concatenate([X, X], axis=1, out=out),
    "stack": lambda out: np.stack([X[0], X[1]], out=out),
    "choose, which has no counterpart": lambda out: np.choose([1, 0, 1], [X[0], X[1]], out=out),
    "multi_dot": lambda out: np.linalg.multi_dot([X, X.T], out=out),
    "add.reduce": lambda out: np.add.reduce(X, out=out),
    "logical_or.reduce": lambda out: np.logical_or.reduce(X > 1, out=out),
    "subtract.reduce, which has no counterpart": lambda out: np.subtract.reduce(X, out=out),
    "maximum.accumulate": lambda out: np.maximum.accumulate(X, out=out),
}


@pytest.mark.parametrize("call", CALLS)
def test_out_alone_is_written_in_place(call: str) -> None:
    function = CALLS[call]
    shape, dtype = next(
        (s, d)
        for s in ((3,), (2, 3), (1, 3), (2, 6), (2, 2))
        for d in ("float64", "bool")
        if fits(function, s, d)
    )
    want = np.zeros(shape, dtype)
    function(want)
    x = mg.asarray(np.ones(shape), requires_grad=True)
    out = mg.zeros(shape, dtype=dtype) if dtype == "bool" else x * 3.0
    version = out._version
    assert function(out) is out and out._version == version + 1
    np.testing.assert_array_equal(values(out), want)
    if out.requires_grad:
        mg.sum(out * out).backward()
        np.testing.assert_array_equal(values(x.grad), np.zeros(shape))


def fits(function: Callable[[Any], Any], shape: Any, dtype: str) -> bool:
    try:
        function(np.zeros(shape, dtype))
    except (TypeError, ValueError):
        return False
    return True


def test_what_was_saved_of_out_is_noticed() -> None:
    x = mg.asarray(X[0], requires_grad=True)
    y = mg.exp(x)
    loss = mg.sum(y)
    np.mean(X, axis=0, out=y)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        loss.backward()
    with pytest.raises(
        RuntimeError,
        match="a leaf Variable that requires grad is being used in an in-place operation",
    ):
        np.mean(X, axis=0, out=x)


def test_out_must_fit_as_in_numpy() -> None:
    with pytest.raises(ValueError, match="could not be broadcast|output"):
        np.mean(X, axis=0, out=mg.zeros(4, dtype="float64"))
    with pytest.raises(TypeError, match="Cannot cast"):
        np.argmax(X, axis=0, out=mg.zeros(3, dtype="float64"))
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(
        MixedBackendsError, match="numpy.mean: got arrays of two backends, 'numpy' and 'strict'"
    ):
        np.mean(X, axis=0, out=mg.asarray(strict.zeros(3)))


@pytest.mark.parametrize("name", ["all", "any", "mean", "std", "var"])
def test_an_option_that_is_a_tensor_is_named(name: str) -> None:
    with pytest.raises(
        TypeError,
        match=rf"numpy.(\w+.reduce|{name}): a Tensor is given for an option only, beside NumPy "
        r"arrays. Wrap the arrays",
    ):
        getattr(np, name)(X, where=mg.asarray(X > 1))


def test_an_operand_in_the_place_of_an_out_that_is_given_by_keyword_only_is_an_operand() -> None:
    x = mg.asarray(X, requires_grad=True)
    np.testing.assert_array_equal(np.einsum("ab->b", x).detach().numpy(), X.sum(0))
    (g,) = mg.autograd.grad(mg.sum(np.einsum("ab->b", x) * mg.asarray(X[0])), x)
    np.testing.assert_array_equal(g.numpy(), np.broadcast_to(X[0], X.shape))
    assert mg.func.jvp(lambda x: np.einsum("ab->ba", x), (X,), (2.0 * X,))[1].shape == (3, 2)
