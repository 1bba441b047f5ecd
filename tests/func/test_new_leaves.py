"""`multigrad.tensor` makes a leaf without a history: of what is being differentiated it warns, and
inside a transformation it raises. The other functions that make an array of data keep its
derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import values
from forward_programs import raw

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad
from multigrad.errors import GradientError

DATA: dict[str, Callable[[Any], Any]] = {
    "an array": lambda x: x,
    "a view": lambda x: x[:1],
    "a list": lambda x: [x[0], x[1]],
    "a tuple of a list": lambda x: ([x[0], 1.0], [2.0, x[1]]),
    "a list with one of them": lambda x: [1.0, 2.0, x[1]],
    "a result": lambda x: x * 2.0,
}
TRANSFORMED: dict[str, Callable[..., Any]] = {
    "grad": lambda f, x: func.grad(lambda x: mg.sum(f(x)))(x),
    "jvp": lambda f, x: func.jvp(f, (x,), (x,)),
    "vmap of grad": lambda f, x: func.vmap(func.grad(lambda x: mg.sum(f(x))))(
        mg.stack([x, x]).array
    ),
    "hessian": lambda f, x: func.hessian(lambda x: mg.sum(f(x) * x[0]))(x),
}


@pytest.mark.parametrize("name", DATA)
def test_tensor_warns_of_what_requires_grad(xp: Any, backend: str, name: str) -> None:
    x = xp.asarray([1.0, 2.0], requires_grad=True)
    with pytest.warns(
        UserWarning,
        match=r"To copy construct from a tensor, it is recommended to use t\.detach\(\)\.clone\(\)"
        r".*requires_grad_\(True\).*multigrad\.asarray\(t, copy=True\) makes a differentiable copy",
    ) as caught:
        t = mg.tensor(DATA[name](x), backend=backend)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert t.is_leaf and not t.requires_grad
    kept = mg.asarray(DATA[name](x), copy=True, backend=backend)
    np.testing.assert_array_equal(values(t), values(kept))
    assert kept.requires_grad and not kept.is_leaf


@pytest.mark.filterwarnings("error")
def test_tensor_is_silent_where_no_gradient_is_lost(xp: Any, backend: str) -> None:
    x = xp.asarray([1.0, 2.0], requires_grad=True)
    constant = xp.asarray([1.0, 2.0])
    for t in (
        mg.tensor(constant),
        mg.tensor([constant[0], constant[1]], backend=backend),
        mg.tensor(x.detach(), requires_grad=True),
        mg.tensor([x[0].detach(), 1.0], backend=backend),
    ):
        assert t.is_leaf
    with mg.no_grad():
        assert not mg.tensor(x).requires_grad and mg.tensor(x, requires_grad=True).is_leaf


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("how", TRANSFORMED)
def test_tensor_raises_inside_a_transformation(how: str, name: str) -> None:
    x = np.array([1.0, 2.0])
    with pytest.raises(
        GradientError,
        match=r"tensor: the data is being differentiated by '\w+'.*multigrad\.asarray\(x, "
        r"copy=True\) makes a copy with its derivative.*multigrad\.tensor\(x\.detach\(\)\)",
    ):
        TRANSFORMED[how](lambda x: mg.sum(mg.tensor(DATA[name](x))) * x, x)
    TRANSFORMED[how](lambda x: mg.sum(mg.asarray(DATA[name](x), copy=True)) * x, x)


def test_tensor_of_a_detached_array_inside(xp: Any, backend: str) -> None:
    x = raw(xp, [1.0, 2.0])

    def f(x: Any) -> Any:
        w = mg.tensor(x.detach(), requires_grad=True)
        xp.sum(w**3).backward()
        pair = mg.tensor([x[0].detach(), x[1].detach()], backend=backend)
        return xp.sum((w.grad + pair) * x)

    expected = 3 * np.array([1.0, 4.0]) + np.array([1.0, 2.0])
    np.testing.assert_allclose(values(func.grad(f)(x)), expected)
    np.testing.assert_allclose(values(func.jvp(f, (x,), (raw(xp, [1.0, 1.0]),))[1]), expected.sum())


def test_tensor_of_a_batch_keeps_the_examples(xp: Any, backend: str) -> None:
    rows = raw(xp, [[1.0, 2.0], [3.0, 4.0]])

    def f(x: Any) -> Any:
        w = mg.tensor([x[0], x[1]], backend=backend, requires_grad=True)
        xp.sum(w**2).backward()
        return w.grad + mg.tensor(x)

    np.testing.assert_allclose(values(func.vmap(f)(rows)), 3 * values(rows))


def test_tensor_of_a_captured_tensor_warns() -> None:
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="To copy construct"):
        func.grad(lambda x: mg.sum(mg.tensor(w) * x))(np.ones(2))


def test_tensor_of_a_dual() -> None:
    x = mg.asarray([1.0, 2.0])
    with forward_ad.dual_level():
        moving = forward_ad.make_dual(x, mg.ones(2))
        with pytest.raises(GradientError, match="tensor: the data is being differentiated"):
            mg.tensor(moving)
        copied = mg.tensor(moving.detach(), requires_grad=True)
        assert type(copied) is mg.Tensor and copied.is_leaf


@pytest.mark.parametrize("check", ["first", False])
@pytest.mark.parametrize("name", DATA)
def test_tensor_in_a_compiled_function(name: str, check: Any) -> None:
    """Its copy would be frozen, and its gradient be lost where the program is differentiated."""
    x = np.array([1.0, 2.0])
    with pytest.raises(
        TypeError,
        match=r"multigrad\.tensor\(\) of an array inside of a compiled function.*"
        r"multigrad\.asarray\(x, copy=True\) makes a copy of it",
    ):
        func.compile(lambda x: mg.sum(mg.tensor(DATA[name](x))) * x, check=check)(x)
    constant = func.compile(lambda x: mg.tensor([1.0, 2.0]) * x, check=check)
    np.testing.assert_array_equal(values(constant(x)), [1.0, 4.0])
    np.testing.assert_array_equal(values(constant(2 * x)), [2.0, 8.0])


MADE: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda x: mg.asarray(x, copy=True),
    "asarray of a list": lambda x: mg.asarray([x[0], x[1]]),
    "asarray of nested lists": lambda x: mg.asarray([[x[0], 1.0], [2.0, x[1]]]),
    "asarray in float32": lambda x: mg.asarray(x, dtype="float32"),
    "asarray of a list, requires_grad": lambda x: mg.asarray([x[0], x[1]], requires_grad=True),
    "namespace.asarray": lambda x: x.__array_namespace__().asarray([x[0], x[1]]),
    "full": lambda x: mg.full((2,), x[0]),
    "full_like": lambda x: mg.full_like(mg.ones(2), x[0]),
    "linspace": lambda x: mg.linspace(x[0], x[1], 3),
    "clone": lambda x: x.clone(),
    "copy_": lambda x: mg.zeros(2).copy_(x),
    "numpy.array": lambda x: np.array([x[0], x[1]], like=x),
    "numpy.asarray": lambda x: np.asarray([x[0], x[1]], like=x),
    "numpy.full": lambda x: np.full((2,), x[0], like=x),
    "numpy.full_like": lambda x: np.full_like(x, x[0]),
    "numpy.linspace": lambda x: np.linspace(x[0], x[1], 3),
    "numpy.copy": np.copy,
    "to_backend": lambda x: x.to_backend("strict").to_backend("numpy"),
}
"""Functions that make an array of data, each with a derivative."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", MADE)
def test_what_makes_an_array_keeps_the_derivative(name: str) -> None:
    if name == "to_backend":
        pytest.importorskip("array_api_strict")
    x, make = np.array([1.0, 2.0]), MADE[name]

    def f(x: Any) -> Any:
        return mg.sum(make(x) * 3.0)

    steps = np.eye(2) * 1e-2
    exact = np.array([(_plain(f, x + d) - _plain(f, x - d)) / 2e-2 for d in steps])
    t = mg.asarray(x, requires_grad=True)
    f(t).backward()
    np.testing.assert_allclose(values(t.grad), exact, rtol=1e-4)
    np.testing.assert_allclose(values(func.grad(f)(x)), exact, rtol=1e-4)
    for k in range(2):
        np.testing.assert_allclose(
            values(func.jvp(f, (x,), (np.eye(2)[k],))[1]), exact[k], rtol=1e-4
        )
    rows = func.vmap(func.grad(f))(np.stack([x, 2 * x]))
    np.testing.assert_allclose(values(rows), np.stack([exact, exact]), rtol=1e-4)


def _plain(f: Callable[[Any], Any], x: Any) -> float:
    return float(f(mg.asarray(x)).detach())


REFUSED: dict[str, Callable[[Any], Any]] = {
    "arange": lambda x: mg.arange(x[0], x[1]),
    "eye": lambda x: mg.eye(2, k=x[0]),
    "from_dlpack": lambda x: mg.namespace("numpy").from_dlpack(x),
    "numpy.array": lambda x: np.array([x[0], x[1]]),
    "numpy.asarray": np.asarray,
    "numpy.from_dlpack": np.from_dlpack,
    "numpy.full": lambda x: np.full((2,), x[0]),
    "numpy.full_like": lambda x: np.full_like(np.ones(2), x[0]),
    "numpy.geomspace": lambda x: np.geomspace(x[0], x[1], 3),
    "numpy.copyto": lambda x: np.copyto(np.zeros(2), x),
}
"""Functions that make an array without a derivative."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_derivative_is_refused(name: str) -> None:
    x = np.array([1.0, 2.0])
    refused = (RuntimeError, TypeError, BufferError)
    with pytest.raises(refused, match=r"requires? grad|gradient"):
        REFUSED[name](mg.asarray(x, requires_grad=True))
    for transformed in (
        lambda f: func.vjp(f, x),
        lambda f: func.jvp(f, (x,), (x,)),
        lambda f: func.vmap(f)(np.stack([x, x])),
    ):
        with pytest.raises(refused, match=r"requires? grad|transformation|gradient|tangent|vmap"):
            transformed(lambda x: mg.asarray(REFUSED[name](x)))
