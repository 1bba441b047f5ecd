"""Gradients through Python's operators: as operator, reflected and in place, they are those of the function of the standard."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg

A = [1.5, 0.75, 2.0]
B = [0.5, 1.25, 3.0]
DIFFERENTIABLE = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow", "mod": "remainder"}
BITWISE = ("and", "or", "xor", "lshift", "rshift")
FORMS = ("operator", "reflected", "in place")
COMPLEX = ("add", "sub", "mul", "truediv", "pow")


def leaf(xp: Any, data: Any, dtype: str = "float64") -> Any:
    """A Tensor that requires grad."""
    return xp.asarray(np.asarray(data, dtype=dtype), requires_grad=True)


def const(xp: Any, data: Any, dtype: str = "float64") -> Any:
    """A Tensor that does not."""
    return xp.asarray(np.asarray(data, dtype=dtype))


def apply(stem: str, form: str, x: Any, y: Any) -> Any:
    """`x <operator> y`, in one of three forms; in place on a copy of x, which is then the result itself."""
    name = f"{stem}_" if stem in ("and", "or") else stem
    if form == "operator":
        return getattr(operator, name)(x, y)
    if form == "reflected":
        return getattr(y, f"__r{stem}__")(x)
    copied = x.clone()
    found = getattr(operator, f"i{stem}")(copied, y)
    assert found is copied, "in place, the Tensor stays the same object"
    return found


def gradients(y: Any, x: Any, g: Any, **options: Any) -> Any:
    return mg.autograd.grad(y, x, g, **options)


def check(t: Any, expected: Any, rtol: float = 1e-12) -> None:
    """Values, and the shape and dtype of what is expected where that is a Tensor."""
    if isinstance(expected, mg.Tensor):
        assert t.shape == expected.shape and t.dtype == expected.dtype
        expected = values(expected)
    np.testing.assert_allclose(values(t), expected, rtol=rtol, atol=1e-14)


def same_gradients(xp: Any, found: Callable[[Any, Any], Any], function: Callable[[Any, Any], Any], a: Any, b: Any) -> None:
    """Both give the same values, gradients and second derivatives of a and b, with a cotangent that is no constant."""
    results = []
    for f in (found, function):
        y = f(a, b)
        g = xp.reshape(xp.astype(xp.arange(1, y.size + 1), y.dtype), y.shape)
        first = gradients(y, [a, b], g, create_graph=True)
        loss = sum((xp.sum(xp.real(d * xp.conj(d)) if xp.isdtype(d.dtype, "complex floating") else d * d) for d in first), start=xp.asarray(0.0))
        second = gradients(loss, [a, b], xp.ones(()), allow_unused=True) if loss.requires_grad else (None, None)
        results.append((y, *first, *second))
    for t, expected in zip(*results, strict=True):
        assert (t is None) == (expected is None)
        if t is not None:
            check(t, expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stem", DIFFERENTIABLE)
def test_real(xp: Any, stem: str, form: str) -> None:
    same_gradients(xp, lambda x, y: apply(stem, form, x, y), getattr(xp, DIFFERENTIABLE[stem]), leaf(xp, A), leaf(xp, B))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stem", COMPLEX)
def test_complex(xp: Any, stem: str, form: str) -> None:
    """The left operand complex, the right one real: its gradient is real."""
    a = leaf(xp, [1.5 + 1j, 0.75 - 0.5j, 2.0j], "complex128")
    same_gradients(xp, lambda x, y: apply(stem, form, x, y), getattr(xp, DIFFERENTIABLE[stem]), a, leaf(xp, B))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stem", DIFFERENTIABLE)
def test_broadcast(xp: Any, stem: str, form: str) -> None:
    """The right operand is broadcast (of the left one, in place, the shape stays); its gradient is summed."""
    a = leaf(xp, [A, B])
    for b in (leaf(xp, B), leaf(xp, 1.25)):
        same_gradients(xp, lambda x, y: apply(stem, form, x, y), getattr(xp, DIFFERENTIABLE[stem]), a, b)


@pytest.mark.parametrize("form", FORMS)
def test_matmul(xp: Any, form: str) -> None:
    a, b = leaf(xp, [[1.0, 2.0], [3.0, 4.0]]), leaf(xp, [[0.5, -1.0], [2.0, 1.5]])
    same_gradients(xp, lambda x, y: apply("matmul", form, x, y), xp.matmul, a, b)


@pytest.mark.parametrize("stem", DIFFERENTIABLE)
def test_scalars(xp: Any, stem: str) -> None:
    """A Python scalar on either side, and in place, is a constant of the array's dtype."""
    f = getattr(operator, stem)
    a = leaf(xp, A)
    left = getattr(xp, DIFFERENTIABLE[stem])(const(xp, 2.5), a)
    right = getattr(xp, DIFFERENTIABLE[stem])(a, const(xp, 2.5))
    g = const(xp, [1.0, 2.0, 3.0])
    for y, expected in ((f(2.5, a), left), (f(a, 2.5), right), (apply(stem, "in place", a, 2.5), right)):
        check(y, expected)
        check(gradients(y, a, g, retain_graph=True)[0], gradients(expected, a, g, retain_graph=True)[0])


@pytest.mark.parametrize("form", FORMS)
def test_floor_division_has_no_gradient(xp: Any, form: str) -> None:
    y = apply("floordiv", form, leaf(xp, A), leaf(xp, B))
    check(y, np.asarray(A) // np.asarray(B))
    assert form == "in place" or not y.requires_grad


def test_in_place_twice(xp: Any) -> None:
    """Each step sees the values that were there; the history is that of the chain."""
    a, b = leaf(xp, A), leaf(xp, B)
    y = a * 1
    y *= b
    y += a
    y /= b
    check(y, np.asarray(A) + np.asarray(A) / np.asarray(B))
    g = gradients(y, [a, b], xp.ones_like(y))
    check(g[0], 1 + 1 / np.asarray(B))
    check(g[1], -np.asarray(A) / np.asarray(B) ** 2)


def test_in_place_on_a_leaf_is_refused(xp: Any) -> None:
    a = leaf(xp, A)
    for stem in (*DIFFERENTIABLE, "floordiv"):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
            getattr(operator, f"i{stem}")(a, 2.0)
    with mg.no_grad():
        a *= 2.0
    check(a.detach(), 2 * np.asarray(A))
    assert a.is_leaf and a.requires_grad
