"""The memory layout of gradients (NumPy, whose arrays have strides), and PyTorch's beside it.

Strides are counted in elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import multigrad as mg


@dataclass
class Library:
    name: str
    parameter: Any  # (NumPy array) -> a leaf on an array of the same layout
    sum: Any
    grad: Any

    def strides(self, t: Any) -> tuple[int, ...]:
        if self.name == "torch":
            return tuple(t.stride())
        return tuple(s // t.array.itemsize for s in t.array.strides)

    def values(self, t: Any) -> Any:
        return t.detach().numpy() if self.name == "torch" else t.detach().array

    def constant(self, x: Any) -> Any:
        return self.parameter(x).detach()


@pytest.fixture(params=["numpy", "torch"])
def library(request: pytest.FixtureRequest) -> Library:
    if request.param == "numpy":
        return Library(
            "numpy", lambda x: mg.asarray(x, requires_grad=True), mg.sum, mg.autograd.grad
        )
    torch = pytest.importorskip("torch")
    return Library(
        "torch", lambda x: torch.from_numpy(x).requires_grad_(), torch.sum, torch.autograd.grad
    )


def numbers(*shape):
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


def loss(library, p, order="C"):
    # p**3, the constant in an order of its own
    return library.sum(p * p * library.constant(np.array(library.values(p), order=order)))


DENSE = {
    "row-major": (numbers(4, 3), (3, 1)),
    "column-major": (numbers(3, 4).T, (1, 4)),
    "permuted": (np.transpose(numbers(4, 2, 3), (1, 2, 0)), (3, 1, 6)),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("case", DENSE)
def test_a_dense_parameter_gives_its_strides(library, case, order):  # F080
    data, strides = DENSE[case]
    p = library.parameter(data)
    assert library.strides(p) == strides
    loss(library, p, order).backward()
    assert library.strides(p.grad) == strides
    np.testing.assert_allclose(library.values(p.grad), 2 * data**2)


@pytest.mark.parametrize("case", ["used twice", "matrix product", "transposed"])
def test_by_whatever_way_the_gradient_came(library, case):  # F080
    data = numbers(3, 4).T
    p = library.parameter(data)
    x = library.constant(numbers(2, 4))
    y = {
        "used twice": lambda: p * p + p * 2,
        "matrix product": lambda: x @ p,
        "transposed": lambda: p.T @ x.T,
    }[case]()
    library.sum(y * y).backward()
    assert library.strides(p.grad) == (1, 4)


SPARSE = {
    "a slice with steps": (numbers(8, 6)[::2, ::3], (2, 1)),
    "columns of a wider array": (numbers(4, 6)[:, :3], (3, 1)),
    "expanded": (np.broadcast_to(numbers(3), (4, 3)), (3, 1)),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("case", SPARSE)
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_any_other_parameter_gives_row_major(library, case, order):  # F081
    data, strides = SPARSE[case]
    p = library.parameter(data)
    assert library.strides(p) != strides
    loss(library, p, order).backward()
    assert library.strides(p.grad) == strides
    np.testing.assert_allclose(library.values(p.grad), 2 * data**2)


def test_the_gradient_of_a_sum_is_dense(library):  # F080: a stride of 0 comes from sum
    p = library.parameter(numbers(3, 4).T)
    library.sum(p).backward()
    assert library.strides(p.grad) == (1, 4)
    values = library.values(p.grad)
    values[0, 0] = 7  # its own memory, each element once
    assert values.sum() == 18


def test_accumulation_is_in_place(library):  # F082
    p = library.parameter(numbers(3, 4).T)
    loss(library, p).backward()
    g, memory = p.grad, library.values(p.grad)
    loss(library, p).backward()
    assert p.grad is g and library.strides(g) == (1, 4)
    assert np.shares_memory(memory, library.values(p.grad))
    np.testing.assert_allclose(memory, 4 * numbers(3, 4).T ** 2)


@pytest.mark.filterwarnings("ignore:Using backward\\(\\) with create_graph=True")
def test_under_create_graph_it_is_replaced(library):  # F083
    p = library.parameter(numbers(3, 4).T)
    loss(library, p).backward()
    g = p.grad
    before = library.values(g).copy()
    loss(library, p).backward(create_graph=True)
    assert p.grad is not g and p.grad.requires_grad
    # strides are attempted there, not promised
    np.testing.assert_array_equal(library.values(g), before)
    np.testing.assert_allclose(library.values(p.grad), 2 * before)
    p.grad = None  # the cycle between the parameter and its gradient


def test_starting_from_none_or_zero(library):  # F084
    data = numbers(3, 4).T
    p = library.parameter(data)
    for _ in range(2):
        p.grad = None
        loss(library, p).backward()
        assert library.strides(p.grad) == (1, 4)
        np.testing.assert_allclose(library.values(p.grad), 2 * data**2)
    g = p.grad
    g.zero_()
    loss(library, p).backward()
    assert p.grad is g and library.strides(g) == (1, 4)
    np.testing.assert_allclose(library.values(g), 2 * data**2)


@pytest.mark.filterwarnings("ignore:grad and param do not obey the gradient layout contract")
def test_a_layout_given_by_hand_is_kept(library):  # F085
    data = numbers(3, 4).T
    p = library.parameter(data)
    g = library.constant(np.zeros((4, 3)))
    p.grad = g
    loss(library, p).backward()
    assert library.strides(p.grad) == (3, 1)
    np.testing.assert_allclose(library.values(g), 2 * data**2)
    np.testing.assert_allclose(library.values(p.grad), 2 * data**2)


def test_the_gradient_shares_no_memory_with_others(library):
    # F086 is about sparse layouts, which the standard has none of
    go = numbers(4, 3)
    p, q = library.parameter(numbers(4, 3)), library.parameter(numbers(4, 3))
    (p + q).backward(library.constant(go))
    arrays = [library.values(p.grad), library.values(q.grad), go]
    for i, a in enumerate(arrays):
        np.testing.assert_array_equal(a, numbers(4, 3))
        assert not any(np.shares_memory(a, b) for b in arrays[:i])
