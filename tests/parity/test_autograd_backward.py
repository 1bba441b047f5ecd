"""autograd.backward, on each backend and in PyTorch.

Deprecated names are in test_variable.py, layouts in test_layouts.py.
"""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
from function_programs import leaf, same

import multigrad as mg

FREED = "Trying to backward through the graph a second time"
NOT_SCALAR = "grad can be implicitly created only for scalar outputs"
NO_GRAPH = r"element {} of tensors does not require grad and does not have a grad_fn"


@pytest.fixture
def x(side):
    return leaf(side, 1.0, 2.0)


def test_arguments_by_name_and_by_position(side, x):  # F010
    one = side.tensor([1.0, 10.0])
    found = side.autograd.backward(
        tensors=[x * 2], grad_tensors=[one], retain_graph=True, create_graph=False, inputs=[x]
    )
    assert found is None
    assert side.autograd.backward([x * 2], [one], True, False) is None
    same(side, x.grad, [4, 40])


def test_the_form_of_0_3(side, x):  # F011: variables, grad_variables, retain_graph by position
    y = x * x
    side.autograd.backward([y], [side.tensor([1.0, 1.0])], True)
    side.autograd.backward([y], [side.tensor([1.0, 1.0])])
    same(side, x.grad, [4, 8])


def test_a_sequence_or_one_tensor(side, x):  # F012
    backward, xp = side.autograd.backward, side.xp
    for tensors in (xp.sum(x * x), [xp.sum(x * x)], (xp.sum(x * x),)):
        backward(tensors)
    same(side, x.grad, [6, 12])
    for nothing in ([], ()):
        assert backward(nothing) is None
    same(side, x.grad, [6, 12])


def test_the_sum_of_the_gradients(side, x):  # F013
    w = leaf(side, 3.0, 4.0)
    y = x * w
    side.autograd.backward(
        [side.xp.sum(y), y, x * x], [None, side.tensor([1.0, 10.0]), side.tensor([1.0, 1.0])]
    )
    same(side, x.grad, [3 + 3 + 2, 4 + 40 + 4])
    same(side, w.grad, [1 + 1, 2 + 20])


def test_one_vector_for_each_tensor(side, x):  # F014
    one = side.tensor([1.0, 1.0])
    # PyTorch passes over what is too much
    for given in ([one], [], [one] * 3)[: 2 if side.name == "torch" else 3]:
        with pytest.raises(RuntimeError, match=f"got 2 tensors and {len(given)} gradients"):
            side.autograd.backward([x * 2, x * 3], given)
    side.autograd.backward([x * 2, x * 3], [one, side.tensor([1.0, 10.0])])
    same(side, x.grad, [5, 32])
    side.autograd.backward(x * 2, one)  # one for one
    same(side, x.grad, [7, 34])
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got float"):
        side.autograd.backward([x * 2], [1.0])


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_one_element_is_a_scalar(side, shape):  # F015
    x = leaf(side, 3.0)
    y = side.xp.reshape(x * x, shape)
    y.backward()
    same(side, x.grad, [6])


def test_anything_else_needs_its_vector(side, x):  # F015
    for y in (x * 2, (x * 2)[:0]):
        with pytest.raises(RuntimeError, match=NOT_SCALAR):
            y.backward()
        with pytest.raises(RuntimeError, match=NOT_SCALAR):
            side.autograd.backward([side.xp.sum(x), y], [None, None])
    assert x.grad is None
    z = side.tensor(1 + 2j, dtype="complex128", requires_grad=True)
    with pytest.raises(
        RuntimeError,
        match="grad can be implicitly created only for real scalar outputs but got .*complex128",
    ):
        (z * z).backward()


def test_none_among_the_vectors(side, x):  # F016
    constant = side.tensor([1.0, 1.0])
    total = side.xp.sum(x * x)
    side.autograd.backward([total, x * 3], [None, side.tensor([1.0, 10.0])])
    same(side, x.grad, [5, 34])
    for given in (None, [None, None], [None, constant]):
        with pytest.raises(RuntimeError, match=NO_GRAPH.format(1)):
            side.autograd.backward([side.xp.sum(x * x), constant], given)
    with pytest.raises(RuntimeError, match=NO_GRAPH.format(0)):
        constant.backward()
    same(side, x.grad, [5, 34])


def test_no_vectors_at_all(side, x):  # F017
    side.autograd.backward([side.xp.sum(x * x), x[0] * 10])
    same(side, x.grad, [12, 4])


def test_gradients_add_up_until_they_are_set_to_none_or_zero(side, x):  # F018
    for times in (1, 2, 3):
        side.xp.sum(x * x).backward()
        same(side, x.grad, [2 * times, 4 * times])
    x.grad = None
    side.xp.sum(x * x).backward()
    same(side, x.grad, [2, 4])
    x.grad.zero_()
    side.xp.sum(x * 3).backward()
    same(side, x.grad, [3, 3])


def test_the_graph_is_freed_unless_it_is_retained(side, x):  # F019
    y = side.xp.sum(x * x)
    y.backward(retain_graph=True)
    y.backward(retain_graph=False)
    for retain in (None, True):
        with pytest.raises(RuntimeError, match=FREED):
            y.backward(retain_graph=retain)
    same(side, x.grad, [4, 8])
    z = side.xp.sum(x + x)  # which saved nothing
    z.backward()
    z.backward()
    same(side, x.grad, [8, 12])


@pytest.mark.filterwarnings("ignore:Using backward\\(\\) with create_graph=True")
def test_retain_graph_is_create_graph_by_default(side, x):  # F020
    y = side.xp.sum(x**3)
    y.backward(create_graph=True)
    y.backward(create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match=FREED):
        y.backward()
    same(side, x.grad, [6, 24])
    x.grad = None


@pytest.mark.filterwarnings("ignore:Using backward\\(\\) with create_graph=True")
def test_create_graph_records_the_pass(side, x):  # F021
    y = side.xp.sum(x**3)
    y.backward(retain_graph=True)
    assert not x.grad.requires_grad
    x.grad = None
    y.backward(create_graph=True)
    first = x.grad
    assert first.requires_grad and first.grad_fn is not None
    x.grad = None
    side.xp.sum(first).backward()
    same(side, x.grad, [6, 12])


def test_create_graph_is_false_by_default(side, x):
    # F022: PyTorch has refused the None of 0.3 since; here it means False, as it did
    y = side.xp.sum(x**3)
    if side.name == "torch":
        with pytest.raises(TypeError, match="NoneType"):
            y.backward(create_graph=None)
    else:
        y.backward(create_graph=None)
        assert not x.grad.requires_grad
        with pytest.raises(RuntimeError, match=FREED):
            y.backward()


def test_raw_arrays_as_vectors(xp):  # F023: as 0.3 turned plain tensors into Variables
    x = xp.asarray(np.array([1.0, 2.0]), requires_grad=True)
    raw = xp.asarray(np.array([1.0, 10.0])).array
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        mg.autograd.backward(x**3, grad_variables=[raw])
    (g,) = mg.autograd.grad(x**3, x, raw, create_graph=True)
    for found in (x.grad, g):
        np.testing.assert_allclose(np.asarray(found.detach().array), [3, 120])
    assert g.requires_grad and not x.grad.requires_grad


def test_only_into_inputs(side, x):  # F025
    w = leaf(side, 3.0, 4.0)
    for inputs in ([x], (x,), x, {"x": x}):
        side.autograd.backward(side.xp.sum(x * w), inputs=inputs)
    same(side, x.grad, [12, 16])
    assert w.grad is None


def test_into_every_leaf_that_was_used(side, x):  # F026
    w, unused = leaf(side, 3.0, 4.0), leaf(side, 5.0)
    side.autograd.backward(side.xp.sum(x * w))
    same(side, x.grad, [3, 4])
    same(side, w.grad, [1, 2])
    assert unused.grad is None


def test_inputs_that_are_no_leaves(side, x):  # F027
    y = x * 3
    side.xp.sum(y * y).backward(inputs=[y])
    same(side, y.grad, [6, 12])
    assert x.grad is None


def test_inputs_that_are_wrong_or_unused(side, x):  # F027
    w = leaf(side, 3.0)
    y = x * 2
    for inputs in ([], (), {}):
        with pytest.raises(
            RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty"
        ):
            side.autograd.backward(side.xp.sum(y), inputs=inputs)
    with pytest.raises(
        RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"
    ):
        side.autograd.backward(side.xp.sum(y), inputs=[side.tensor([1.0])])
    side.autograd.backward(side.xp.sum(y), inputs=[w, x, x])
    same(side, x.grad, [2, 2])
    assert w.grad is None


def test_the_cycle_of_create_graph(side, x):
    # F028: what the warning is about, and the two ways out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # once per process; its text is in test_backward.py
        side.xp.sum(x**3).backward(create_graph=True)
    node = x.grad.grad_fn
    while node.next_functions:
        node = next(n for n, _ in node.next_functions if n is not None)
    assert node.variable is x  # which holds the gradient
    x.grad = None
    (g,) = side.autograd.grad(side.xp.sum(x**3), x, create_graph=True)
    assert g.requires_grad and x.grad is None


def test_a_pass_runs_on_the_thread_that_calls_it(side, x):
    # F029: so in that thread's current stream, and after what it has queued there
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(threading.get_ident()))
    thread = threading.Thread(
        target=lambda: seen.append(threading.get_ident()) or side.xp.sum(y).backward()
    )
    thread.start()
    thread.join()
    assert len(seen) == 2 and seen[0] == seen[1] != threading.get_ident()
