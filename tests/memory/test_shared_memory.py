"""Tensors on one memory: a write through one is seen by the graph of the other, or refused."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from conftest import values
from leaves import check, leaf, vector

import multigrad as mg
from multigrad.errors import GradientError
from multigrad.registry import OPS


class TestOneMemory:
    """Two Tensors on one memory: a write through one is seen by the graph of the other, or
    refused.
    """

    def test_operand_is_a_detached_view_of_what_is_written(self, xp):
        x = leaf(xp, [1.0, 2.0])
        y = x * 1
        y *= xp.flip(y.detach())
        xp.sum(y).backward()
        check(x.grad, [2, 1])

    @pytest.mark.parametrize(
        "key", [np.int64(0), (np.int32(0), slice(None)), (np.uint8(0), ...)], ids=repr
    )
    def test_numpy_integer_key_makes_a_view(self, key):
        x = leaf(mg.namespace("numpy"), np.ones((2, 2)))
        y = x * 1
        row = y[key]
        loss = mg.sum(row * row)
        with mg.no_grad():
            y += 10
        with pytest.raises(GradientError, match="modified by an inplace operation"):
            loss.backward()

    @pytest.mark.parametrize(
        "same",
        [
            lambda x: x.astype(x.dtype, copy=False),
            lambda x: x.__array_namespace__().asarray(x, device=x.device),
            lambda x: x.detach().requires_grad_(),
        ],
        ids=["astype", "asarray", "detach"],
    )
    def test_the_argument_itself_under_another_name(self, xp, same):
        x = leaf(xp, [1.0, 2.0])
        loss = xp.sum(same(x) ** 2)
        before = values(x).copy()
        y = same(x)
        with pytest.raises(GradientError, match="leaf Variable"):
            y += 1
        check(x, before)
        with mg.no_grad():
            x += 10
        try:  # where arrays are immutable, the old value may still be there
            loss.backward()
        except GradientError as error:
            assert "modified by an inplace operation" in str(error)
        else:
            assert x.grad is None or np.array_equal(values(x.grad), 2 * before)

    def test_shallow_copy_is_noticed_or_separate(self):
        x = leaf(mg.namespace("numpy"), [1.0, 2.0])
        loss = mg.sum(x * x)
        y = copy.copy(x)
        with mg.no_grad():
            y += 1
        if np.shares_memory(x.array, y.array):
            with pytest.raises(GradientError, match="modified by an inplace operation"):
                loss.backward()
        else:
            loss.backward()
            check(x.grad, [2, 4])


MODIFIED = "modified by an inplace operation"


def test_an_update_by_a_plain_tensor_is_a_write() -> None:
    """`w -= step` of plain Tensors has a way of its own, which must tell the clock as well."""
    w = vector([1.0, 2.0])
    y = (w * w).sum()
    with mg.no_grad():
        w -= mg.asarray(np.asarray([0.5, 0.5]))
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


def test_accumulation_in_place_is_a_write() -> None:
    """A graph may have saved the `.grad` that another pass adds to."""
    x, w = vector([1.0, 2.0]), vector([3.0, 4.0])
    (x * x).sum().backward()
    assert x.grad is not None
    y = (x.grad * w).sum()
    (x * x).sum().backward()
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


def test_a_saved_output_of_the_general_path_is_checked() -> None:
    """A raw operand sends the operation past the hot path, which has its own way of noting what is
    saved.
    """
    y = mg.hypot(vector([3.0, 4.0]), np.asarray([4.0, 3.0]))
    y += 1.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


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
