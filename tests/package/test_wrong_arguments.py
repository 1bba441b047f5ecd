"""An argument of an operation that means nothing is refused: text for an array, 1.5 for an axis.

Libraries take many of them without an error. What may stand for an argument, such as an integer for
a flag, is accepted. test_misuse.py has the errors of all other arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
import pytest
from misuse import Foreign
from numpy_samples import filled, taken

import multigrad as mg
from multigrad.errors import MultigradError
from multigrad.registry import OPS, Op
from multigrad_conformance.samples import samples_of

NOTHING: tuple[Any, ...] = ("", "numpy", b"x", object(), {}, Foreign())
"""What stands for no argument but a name."""
REFUSED: dict[str, tuple[Any, ...]] = {
    "operand": (*NOTHING, None, ("",)),
    "flag": (*NOTHING, [], ("",), 1.5),
    "axis": (*NOTHING, ("",), 1.5, False),
    "integer": (*NOTHING, ("",), 1.5),
    "shape": NOTHING,
}
INTEGERS = ("edge_order", "k", "n", "n_cols", "n_rows", "num", "offset")
SHAPES = ("shape", "shift", "repetitions", "window_shape")
AXES = ("axis", "axis1", "axis2", "axisa", "axisb", "axisc", "source", "destination")
# These take more than arrays: dtypes, subscripts, and what NumPy makes an array of.
LOOSE = (
    "asarray",
    "einsum",
    "empty_like",
    "finfo",
    "from_dlpack",
    "full",
    "full_like",
    "iinfo",
    "ones_like",
    "result_type",
    "zeros_like",
)


def operations() -> list[str]:
    mg.zeros(1)
    return sorted(name for name, op in OPS.items() if op.public and op.builtin and samples_of(name))


def kind(op: Op, p: inspect.Parameter) -> str:
    """What the parameter is; "" if that is not one of the kinds above."""
    if op.roles[p.name] != "plain":
        return "" if op.name in LOOSE else "operand"
    if type(p.default) is bool and p.name != "optimize":
        return "flag"
    if p.name in AXES:
        return "axis"
    return "integer" if p.name in INTEGERS else "shape" if p.name in SHAPES else ""


def calls(op: Op, args: list[Any], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The calls with one argument that means nothing, and what they are called."""
    for i, p in enumerate(op.signature.parameters.values()):
        for value in REFUSED.get(kind(op, p), ()):
            call = f"{op.name}({p.name}={value!r})"
            if value is p.default:
                continue
            if p.kind is p.KEYWORD_ONLY or (p.kind is p.POSITIONAL_OR_KEYWORD and i >= len(args)):
                yield call, args, {**kwargs, p.name: value}
            elif i < len(args):
                yield call, [*args[:i], value, *args[i + 1 :]], kwargs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", ["Tensors", "raw arrays"])
def test_what_means_nothing_is_refused(given: str) -> None:
    accepted = []
    for name in operations():
        op, sample = OPS[name], samples_of(name)[0]
        function: Any = reduce(getattr, name.split("."), mg)
        arrays: list[Any] = []
        args, kwargs = taken(sample.args, arrays, False), dict(sample.kwargs)
        kwargs = {k: taken(v, arrays, False) for k, v in kwargs.items()}
        if given == "Tensors":
            grad = name != "from_dlpack"  # it gives memory away
            arrays = [mg.asarray(a, requires_grad=grad and a.dtype.kind in "fc") for a in arrays]
        args = list(filled(args, arrays))
        kwargs = {k: filled(v, arrays) for k, v in kwargs.items()}
        function(*args, **kwargs)  # the sample itself is right
        for call, wrong_args, wrong_kwargs in calls(op, args, kwargs):
            try:
                function(*wrong_args, **wrong_kwargs)
            except (TypeError, ValueError, IndexError, MultigradError):
                continue
            accepted.append(call)
    assert not accepted, "\n".join(accepted)


# ----- what may stand for an argument -----


@pytest.mark.parametrize("given", ["Tensors", "raw arrays", "batches"])
def test_numpys_integers_and_bools_are_accepted(given: str) -> None:
    x = np.arange(6.0).reshape(2, 3)
    a: Any = mg.asarray(x, requires_grad=True) if given == "Tensors" else x

    def same(f: Any, g: Any) -> None:
        if given == "batches":
            got = mg.func.vmap(f)(np.stack([a, a]))[1]
        else:
            got = f(a)
        got = got.detach().array if isinstance(got, mg.Tensor) else got
        np.testing.assert_array_equal(got, g(x))

    for axis in (np.int64(1), np.int8(-1), np.asarray(0), (np.int32(0),)):
        same(lambda x, axis=axis: mg.sum(x, axis=axis), lambda x, axis=axis: np.sum(x, axis))
        same(lambda x, axis=axis: mg.flip(x, axis=axis), lambda x, axis=axis: np.flip(x, axis))
    same(lambda x: mg.sum(x, axis=0, keepdims=1), lambda x: np.sum(x, axis=0, keepdims=True))
    same(lambda x: mg.tril(x, k=np.int64(1)), lambda x: np.tril(x, 1))
    same(lambda x: mg.reshape(x, (np.int64(3), 2)), lambda x: x.reshape(3, 2))
    same(lambda x: mg.reshape(x, [3, 2]), lambda x: x.reshape(3, 2))
    same(lambda x: mg.roll(x, np.int64(1)), lambda x: np.roll(x, 1))
    same(lambda x: mg.isin(x, x[0], invert=np.True_), lambda x: np.isin(x, x[0], invert=True))
    same(lambda x: mg.astype(x, "float32", copy=np.False_), lambda x: x.astype("float32"))


def test_numpys_integers_and_bools_are_accepted_by_creation() -> None:
    assert mg.zeros(np.int64(3)).shape == mg.ones([np.int64(3)]).shape == (3,)
    assert mg.eye(np.int64(2), k=np.int64(1)).array.tolist() == [[0, 1], [0, 0]]
    assert mg.linspace(0.0, 1.0, np.int64(2), endpoint=np.False_).array.tolist() == [0.0, 0.5]
    for flag in (np.True_, np.asarray(True), 1):
        assert mg.ones(2, requires_grad=flag).requires_grad
        assert mg.asarray([1.0], requires_grad=flag).requires_grad
        assert mg.tensor([1.0], requires_grad=flag).requires_grad
        assert mg.full(2, mg.asarray(1.0), requires_grad=flag).requires_grad


def test_an_operand_that_is_a_tuple_of_tensors_loses_no_gradient() -> None:
    """It was an array of NumPy, and only the other operand had a gradient."""
    t = mg.asarray([1.0, 2.0], requires_grad=True)
    with pytest.raises(
        TypeError, match="multiply: expected an array, .* for 'x2', got builtins.tuple"
    ):
        mg.multiply(t, (t[0], t[1]))
