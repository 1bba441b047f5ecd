"""What an author of array-agnostic code meets in the first hour, and gaps in the other tests that
mutations of the engine showed.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad.dispatch import codegen
from multigrad.registry import OPS

MODIFIED = "modified by an inplace operation"


def leaf(values: Any) -> mg.Tensor:
    return mg.asarray(np.asarray(values, dtype=np.float64), requires_grad=True)


def test_an_update_by_a_plain_tensor_is_a_write() -> None:
    """`w -= step` of plain Tensors has a way of its own, which must tell the clock as well."""
    w = leaf([1.0, 2.0])
    y = (w * w).sum()
    with mg.no_grad():
        w -= mg.asarray(np.asarray([0.5, 0.5]))
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


def test_accumulation_in_place_is_a_write() -> None:
    """A graph may have saved the `.grad` that another pass adds to."""
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x * x).sum().backward()
    assert x.grad is not None
    y = (x.grad * w).sum()
    (x * x).sum().backward()
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_recorded_pass_adds_to_the_gradient_by_a_new_tensor() -> None:
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    before = x.grad
    (x**3).sum().backward(create_graph=True)
    assert x.grad is not None and x.grad is not before and x.grad.requires_grad
    np.testing.assert_allclose(x.grad.detach().array, [5.0, 16.0])
    x.grad = None  # the graph of the gradient holds it: a cycle


def test_a_saved_output_of_the_general_path_is_checked() -> None:
    """A raw operand sends the operation past the hot path, which has its own way of noting what is
    saved.
    """
    y = mg.hypot(leaf([3.0, 4.0]), np.asarray([4.0, 3.0]))
    y += 1.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_an_output_that_does_not_lead_to_the_inputs_is_left_alone() -> None:
    """Its hooks do not run, and what it saved is still there."""
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    seen: list[mg.Tensor] = []
    w.register_hook(seen.append)
    other = (w * 2.0).sin().sum()
    (g,) = mg.autograd.grad([(x * x).sum(), other], x)
    np.testing.assert_array_equal(g.array, [2.0, 4.0])
    assert not seen and w.grad is None
    other.backward()
    assert len(seen) == 1 and w.grad is not None
    np.testing.assert_allclose(w.grad.array, 2 * np.cos([6.0, 8.0]))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_tangents_at_ties_are_the_adjoint_of_the_gradients(name: str, keepdims: bool) -> None:
    xp: Any = mg.namespace("numpy")._library.xp
    x, t = (
        np.asarray([[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]),
        np.asarray([[1.0, 10.0, 100.0], [2.0, 3.0, 7.0]]),
    )
    values = (x, 1, keepdims)
    ans = getattr(xp, name)(x, axis=1, keepdims=keepdims)
    moved = codegen.jvp(OPS[name], xp, values, (t,), ans)
    np.testing.assert_allclose(np.reshape(moved, (2,)), [37.0, 4.0])
    (g,) = codegen.vjp(OPS[name], xp, values, ans, np.ones_like(ans), (True,))
    np.testing.assert_allclose(np.sum(g * t), np.sum(moved))


def test_a_gradient_is_summed_over_leading_and_inner_axes_at_once() -> None:
    x, y = leaf(np.ones((2, 1))), leaf(np.ones((4, 1, 3)))
    gx, gy = mg.autograd.grad((x * y).sum(), (x, y))
    assert gx.shape == (2, 1) and gy.shape == (4, 1, 3)
    np.testing.assert_array_equal(gx.array, np.full((2, 1), 12.0))
    np.testing.assert_array_equal(gy.array, np.full((4, 1, 3), 2.0))


def shared_memory(op: Any, values: list[Any]) -> None:
    """Every result on the memory of an argument has that argument's version counter."""
    from multigrad_conformance.target import Target, call

    arrays: list[mg.Tensor] = []

    def wrapped(value: Any) -> Any:
        if type(value) in (tuple, list):
            return type(value)(wrapped(v) for v in value)
        if not isinstance(value, np.ndarray):
            return value
        arrays.append(mg.asarray(value.copy()))
        return arrays[-1]

    given = [wrapped(v) for v in values]
    for _ in range(3):  # the first call goes the general way, later ones the hot path
        with np.errstate(all="ignore"):
            out = call(op, Target("numpy").function(op), given)
        for y in out if isinstance(out, tuple | list) else (out,):
            for x in arrays:
                if (
                    isinstance(y, mg.Tensor)
                    and isinstance(y.array, np.ndarray)
                    and y is not x
                    and np.shares_memory(x.array, y.array)
                ):
                    assert y._cell is x._cell, (
                        f"{op.name}: a write through the result would not be noticed by what "
                        "saved the argument"
                    )


def test_what_shares_memory_shares_the_version_counter() -> None:
    pytest.importorskip("multigrad_conformance")
    from multigrad_conformance import Kink
    from multigrad_conformance.problem import Problem
    from multigrad_conformance.sample import mapped
    from multigrad_conformance.samples import samples_of
    from multigrad_conformance.target import Target

    target = Target("numpy")
    for op in list(OPS.values()):
        if op.chapter in ("kernels", "conversion") or op.name in ("from_dlpack", "setitem"):
            continue
        for sample in samples_of(op.name):
            if not isinstance(sample, Kink):
                shared_memory(
                    op,
                    [
                        mapped(lambda v: v if isinstance(v, np.ndarray) else target.raw(v), v)
                        for v in Problem.of(op, sample).values
                    ],
                )


def test_a_namespace_survives_pickle_and_copy() -> None:
    xp = mg.namespace("numpy")
    assert pickle.loads(pickle.dumps(xp)) is xp
    assert copy.copy(xp) is xp and copy.deepcopy(xp) is xp


def test_array_api_compat_knows_a_tensor() -> None:
    compat = pytest.importorskip("array_api_compat")
    t = leaf([1.0, 2.0])
    assert compat.array_namespace(t, None, 1.0) is mg.namespace("numpy")
    assert (
        compat.is_array_api_obj(t) and not compat.is_numpy_array(t) and not compat.is_lazy_array(t)
    )
    assert compat.device(t) == "cpu" and compat.size(t) == 2
