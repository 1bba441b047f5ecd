"""Variable and the other forms of former days: chapter H of docs/parity.md, and F010, F011, F024.

Some work in multigrad only, with a warning.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from function_programs import same

import multigrad as mg

NO_EFFECT = r"volatile was removed and now has no effect. Use `with \w+.no_grad\(\):` instead."


def test_variables_are_arrays(side):
    Variable = side.autograd.Variable
    x = side.tensor([1.0, 2.0], requires_grad=True)
    for data in (x, x * 1):
        v = Variable(data)
        assert type(v) is not Variable and isinstance(v, side.Tensor) and v is not data
        assert not v.requires_grad and v.grad_fn is None
        same(side, v, [1, 2])
    v = Variable(x * 2, requires_grad=True)
    assert v.is_leaf and v.requires_grad
    assert Variable(x, True).requires_grad and not Variable(data=x).requires_grad
    side.xp.sum(v * v).backward()
    same(side, v.grad, [4, 8])
    assert v.grad.shape == v.data.shape and v.grad.dtype == v.data.dtype and x.grad is None
    w = Variable(side.tensor([1, 2], dtype="int64"))
    assert side.values(w).tolist() == [1, 2]
    assert side.values(Variable()).tolist() == [] and side.values(Variable(None)).shape == (0,)


def test_memory_and_version_are_shared(side):
    c = side.tensor([1.0, 1.0])
    v = side.autograd.Variable(c)
    c += 1
    same(side, v, [2, 2])
    assert v._version == c._version == 1
    v *= 3
    same(side, c, [6, 6])


def test_every_array_is_a_variable(side):
    Variable = side.autograd.Variable
    assert (
        isinstance(side.tensor([1.0]), Variable)
        and not isinstance(3, Variable)
        and not isinstance(np.ones(1), Variable)
    )
    v = Variable(side.tensor([1.0]), requires_grad=True)
    seen = []
    v.register_hook(seen.append)
    (v * 2).backward(side.tensor([1.0]))
    assert len(seen) == 1 and not v.detach().requires_grad
    same(side, v.data, [1])


def test_volatile(side):
    Variable = side.autograd.Variable
    x = side.tensor([1.0], requires_grad=True)
    with pytest.warns(UserWarning, match=NO_EFFECT) as caught:
        v = Variable(x, volatile=True)
    assert not v.requires_grad and caught[0].filename == __file__
    with (
        pytest.warns(UserWarning, match=NO_EFFECT),
        pytest.raises(
            ValueError, match="Variable can't be volatile and require_grad at the same time!"
        ),
    ):
        Variable(x, requires_grad=True, volatile=True)
    with pytest.warns(
        UserWarning, match=r"volatile was removed \(Variable.volatile is always False\)"
    ) as caught:
        assert x.volatile is False
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=NO_EFFECT) as caught:
        x.volatile = True
    assert caught[0].filename == __file__
    assert (x * 2).requires_grad


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda V, x: V([1.0]), TypeError, "Variable data has to be a tensor, but got list"),
        (lambda V, x: V(1.0), TypeError, "Variable data has to be a tensor, but got float"),
        (lambda V, x: V(x, requires_grad=None), TypeError, "NoneType"),
        (lambda V, x: V(x, volatile=None), TypeError, "NoneType"),
        (lambda V, x: V(x, grad_fn=None), TypeError, "grad_fn"),
    ],
)
def test_errors(side, make, error, message):
    with pytest.raises(error, match=message):
        make(side.autograd.Variable, side.tensor([1.0]))


def test_integers_have_no_gradient(side):
    with pytest.raises(
        RuntimeError,
        match="only Tensors of floating point and complex dtype can require gradients|Only Tensors",
    ):
        side.autograd.Variable(side.tensor([1], dtype="int64"), requires_grad=True)


def test_where_it_is_found(side):
    package = side.autograd.__name__
    module = sys.modules[f"{package}.variable"]
    assert (
        module.Variable is side.autograd.Variable and type(module.Variable) is module.VariableMeta
    )
    with pytest.raises(
        RuntimeError, match=r"autograd.variable\(...\) is deprecated, use \w+.tensor\(...\) instead"
    ):
        side.autograd.variable([1.0])


def test_grad_variables(side):
    x = side.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(
        FutureWarning, match="`grad_variables` is deprecated. Use `grad_tensors` instead."
    ):
        side.autograd.backward(x * 2, grad_variables=[side.tensor([1.0, 10.0])])
    same(side, x.grad, [2, 20])
    with (
        pytest.warns(FutureWarning),
        pytest.raises(RuntimeError, match="Please only use `grad_tensors`"),
    ):
        side.autograd.backward(
            x * 2, [side.tensor([1.0, 1.0])], grad_variables=[side.tensor([1.0, 1.0])]
        )


def test_retain_variables(side):
    x = side.tensor([1.0, 2.0], requires_grad=True)
    y = side.xp.sum(x * x)
    for backward in (y.backward, lambda **how: side.autograd.backward(y, **how)):
        if side.name == "torch":  # which has removed what the documents describe
            with pytest.raises(TypeError, match="retain_variables"):
                backward(retain_variables=True)
            continue
        with pytest.warns(
            FutureWarning, match="`retain_variables` is deprecated. Use `retain_graph` instead."
        ):
            backward(retain_variables=True)
        with (
            pytest.warns(FutureWarning),
            pytest.raises(RuntimeError, match="Please only use `retain_graph`"),
        ):
            backward(retain_variables=True, retain_graph=True)
    if side.name != "torch":
        same(side, x.grad, [4, 8])
        with pytest.warns(FutureWarning):
            y.backward(retain_variables=False)
        with pytest.raises(
            RuntimeError, match="Trying to backward through the graph a second time"
        ):
            y.backward()


def test_raw_arrays_become_variables(xp):
    raw = xp.asarray(np.ones(2)).array
    v = mg.autograd.Variable(raw, requires_grad=True)
    assert v.array is raw and v.requires_grad
