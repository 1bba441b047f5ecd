"""Conversions of the arrays that the body of a loop captures or is called with."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.errors import BatchingError, GradientError

Function = Callable[..., Any]
ONE, TWO = np.asarray(1.5), np.array([1.5, 2.5])

CONVERSIONS: dict[str, Function] = {
    "detach": lambda y: y.detach(),
    "data": lambda y: y.data,
    "array": lambda y: y.array,
    "item": lambda y: y.item(),
    "tolist": lambda y: y.tolist(),
    "bool": bool,
    "deepcopy": copy.deepcopy,
}
WRAPPED: dict[str, Function] = {
    "grad": lambda f: func.grad(f)(ONE),
    "jvp": lambda f: func.jvp(f, ONE, ONE),
    "vmap": lambda f: func.vmap(f)(TWO),
    "hessian": lambda f: func.hessian(f)(ONE),
    "vmap(grad)": lambda f: func.vmap(func.grad(f))(TWO),
    "jvp(grad)": lambda f: func.jvp(func.grad(f), ONE, ONE),
    "compile(grad)": lambda f: func.compile(func.grad(f))(ONE),
}
LOOPS: dict[str, Function] = {
    "scan": lambda f, c: func.scan(lambda c, _: (f(c), None), c, length=3)[0],
    "scan, checkpoint=2": lambda f, c: func.scan(
        lambda c, _: (f(c), None), c, length=3, checkpoint=2
    )[0],
    "fori_loop": lambda f, c: func.fori_loop(0, 3, lambda i, c: f(c), c),
    "two loops": lambda f, c: func.fori_loop(
        0, 3, lambda i, c: func.fori_loop(0, 1, lambda j, c: f(c), c), c
    ),
}


def unrolled(f: Function, c: Any) -> Any:
    for _ in range(3):
        c = f(c)
    return c


def outcome(wrapped: Function, loop: Function, convert: Function) -> Any:
    """The values, or the class of the error."""
    try:
        found = wrapped(lambda y: loop(lambda c: c * convert(y), y * 1.0))
    except Exception as error:
        return type(error)
    return [np.asarray(x) for x in func.tree.leaves(found)]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_of_captured_arrays_as_in_a_loop_of_python(
    name: str, wrapped: str, loop: str
) -> None:
    convert = CONVERSIONS[name]
    if name == "data" and wrapped in ("jvp", "vmap"):
        pytest.skip("layers other than Tensors have no data")
    found = outcome(WRAPPED[wrapped], LOOPS[loop], convert)
    wanted = outcome(WRAPPED[wrapped], unrolled, convert)
    if (name, wrapped) == ("array", "jvp"):
        assert found is GradientError  # the layer would be another one at each call
    elif isinstance(wanted, type):
        assert found is wanted
    else:
        assert not isinstance(found, type), found
        for x, y in zip(found, wanted, strict=True):
            assert np.allclose(x, y), (found, wanted)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("wrapped", ["grad", "hessian", "vmap(grad)", "jvp(grad)"])
@pytest.mark.parametrize("name", ["data", "array", "detach"])
def test_conversions_of_the_carry(name: str, wrapped: str, loop: str) -> None:
    convert = CONVERSIONS[name]

    def run(loop: Function) -> Any:
        return WRAPPED[wrapped](lambda y: loop(lambda c: c * convert(c), y * 1.0))

    for x, y in zip(*(func.tree.leaves(run(f)) for f in (LOOPS[loop], unrolled)), strict=True):
        assert np.allclose(x, y)


@pytest.mark.parametrize("convert", [CONVERSIONS["data"], copy.deepcopy])
def test_a_captured_leaf_without_its_derivative(convert: Function) -> None:
    y = mg.tensor(1.5, requires_grad=True)
    func.scan(lambda c, _: (c * convert(y), None), y * 1.0, length=3)[0].backward()
    assert float(y.grad) == 1.5**3


@pytest.mark.parametrize("loop", LOOPS)
def test_data_of_both_levels(loop: str) -> None:
    def gradient(loop: Function) -> Any:
        def outer(y: Any) -> Any:
            return func.grad(lambda x: loop(lambda c: c * x.data * y.data * y, x * 1.0))(y * 2.0)

        return func.grad(outer)(ONE)

    assert np.allclose(gradient(LOOPS[loop]), gradient(unrolled))


def test_no_detaching_in_place_in_a_body() -> None:
    def run(y: Any) -> Any:
        return func.scan(lambda c, _: (c * y.detach_(), None), y * 1.0, length=3)[0]

    with pytest.raises(GradientError, match=r"Call detach\(\)"):
        func.grad(run)(ONE)


def test_values_of_one_example_in_a_condition() -> None:
    with pytest.raises(BatchingError, match=r"bool\(\)"):
        func.vmap(lambda y: func.while_loop(lambda c: bool(y) and c < 9.0, lambda c: c * 2.0, y))(
            TWO
        )
