"""In-place operations in general, on each backend and in PyTorch.

Mutation programs and views have files of their own.
"""

from __future__ import annotations

import pytest
from function_programs import leaf, same

SPOILT = (
    "one of the variables needed for gradient computation has been modified by an inplace operation"
)


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
