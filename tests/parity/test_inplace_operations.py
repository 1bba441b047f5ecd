"""In-place operations in general, on each backend and in PyTorch.

Mutation programs and views have files of their own.
"""

from __future__ import annotations

import numpy as np
import pytest
from function_programs import leaf, same

SPOILT = (
    "one of the variables needed for gradient computation has been modified by an inplace operation"
)


def test_in_place_operations_are_differentiated(side):  # F090
    x, w = leaf(side, 0.5, 1.5), leaf(side, 2.0, 3.0)
    y = x * 1
    before = y
    y += w
    y *= w
    y -= 1
    y /= 2
    y.exp_()
    assert y is before
    side.xp.sum(y).backward()
    value = np.exp(((np.array([0.5, 1.5]) + [2, 3]) * [2, 3] - 1) / 2)
    same(side, y, value)
    same(side, x.grad, value * [2, 3] / 2)
    same(side, w.grad, value * (np.array([0.5, 1.5]) + 2 * np.array([2, 3])) / 2)


def test_every_write_is_counted(side):  # F091
    t = side.tensor([1.0, 2.0])
    versions = [t._version]
    t += 1
    versions.append(t._version)
    t[0] = 5.0
    versions.append(t._version)
    t.zero_()
    versions.append(t._version)
    with side.no_grad():
        t.exp_()
    versions.append(t._version)
    t * 2, t.requires_grad_()  # what writes nothing
    versions.append(t._version)
    assert versions == [0, 1, 2, 3, 4, 4]


def test_the_error_comes_with_the_pass(side):
    # F092: not with the write, and only where what was written is needed
    x = leaf(side, 1.0, 2.0)
    y = x * 1
    spoilt, fine = side.xp.sin(y), y + 1
    y += 1
    side.xp.sum(fine).backward(retain_graph=True)
    same(side, x.grad, [1, 1])
    with pytest.raises(
        RuntimeError,
        match=f"{SPOILT}: .*is at version 1; expected version 0 instead. Hint: enable anomaly "
        "detection",
    ):
        side.xp.sum(spoilt).backward()


def test_no_error_means_a_right_gradient(side):  # F093
    for name in ("exp", "sin", "sqrt", "tanh", "square", "negative"):
        for writes_result in (False, True):
            x = leaf(side, 0.5, 1.5)
            y = x * 1
            z = getattr(side.xp, name)(y)
            expected = side.values(side.autograd.grad(side.xp.sum(z), x, retain_graph=True)[0])
            if writes_result:
                z *= 3
            else:
                y *= 3
            try:
                (g,) = side.autograd.grad(side.xp.sum(z), x)
            except RuntimeError as error:
                assert SPOILT in str(error)
            else:
                same(side, g, expected * (3 if writes_result else 1))


def test_a_leaf_that_requires_grad_is_refused_at_once(side):  # F094, F266
    x = leaf(side, 1.0, 2.0)
    for write in (lambda: x.sin_(), lambda: x.__iadd__(1), lambda: x.zero_()):
        with pytest.raises(
            RuntimeError,
            match="a leaf Variable that requires grad is being used in an in-place operation",
        ):
            write()
    same(side, x, [1, 2])
    assert x._version == 0


def test_a_write_through_a_detached_alias(side):  # F095: both see it, and so does the check
    x = leaf(side, 1.0, 2.0)
    y = x * 1
    z = side.xp.sin(y)
    alias = y.detach()
    alias[0] = 7.0
    same(side, y, [7, 2])
    assert y._version == alias._version == 1
    with pytest.raises(RuntimeError, match=SPOILT):
        side.xp.sum(z).backward()
    y += 1
    same(side, alias, [8, 3])


SHAPES = {
    "resize_": lambda t, other: t.resize_((1,)),
    "resize_as_": lambda t, other: t.resize_as_(other),
    "set_": lambda t, other: t.set_(other),
    "transpose_": lambda t, other: t.transpose_(0, 1),
    "shape": lambda t, other: setattr(t, "shape", (1, 4)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_detached_array_cannot_change_the_shape_of_the_original(side, name):  # F096
    x = side.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    call = lambda: SHAPES[name](x.detach(), side.tensor([1.0]))
    if side.name == "torch" and name != "shape":
        call()  # of the alias alone, in these days
    else:
        with pytest.raises(AttributeError):  # nothing here changes its shape in place
            call()
    assert tuple(x.shape) == (2, 2)
    same(side, x, [[1, 2], [3, 4]])
    side.xp.sum(x * x).backward()
    same(side, x.grad, [[2, 4], [6, 8]])
