"""The rules of manipulation, creation, data types and sets."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from rule_checks import NUMPY, check, complexes, linearized, reals, strict_raw

import multigrad as mg
from multigrad import registry
from multigrad.dispatch import codegen

CHAPTERS = ("manipulation", "indexing", "linear_algebra", "creation", "data_type", "set")


def test_the_signatures_are_those_of_the_standard() -> None:
    strict = pytest.importorskip("array_api_strict")
    seen = 0
    for op in registry.OPS.values():
        if op.chapter not in CHAPTERS or op.name in ("getitem", "setitem"):
            continue
        theirs = inspect.signature(getattr(strict, op.name)).parameters.values()
        ours = op.signature.parameters.values()
        assert [(p.name, p.kind) for p in ours] == [(p.name, p.kind) for p in theirs], op.name
        for mine, other in zip(ours, theirs, strict=True):
            # its own mark for "not given"; None in the standard
            if type(other.default).__name__ != "Undef":
                assert mine.default == other.default or mine.default is other.default, op.name
        seen += 1
    assert seen >= 48


def test_every_operation_says_what_it_does() -> None:
    for op in registry.OPS.values():
        if op.chapter in (*CHAPTERS, "kernels"):
            assert op.doc.endswith((".", "`.")) and "\n" not in op.doc, op.name


CASES: dict[str, tuple[Any, ...]] = {
    "broadcast_arrays": ("broadcast_arrays", reals(3, 1), reals(4), reals()),
    "broadcast_to": ("broadcast_to", reals(3, 1), (2, 3, 4)),
    "broadcast_to scalar": ("broadcast_to", reals(), (2, 2)),
    "broadcast_to empty": ("broadcast_to", reals(1, 3), (0, 3)),
    "concat": ("concat", [reals(2, 3), reals(2, 1), reals(2, 0)], {"axis": -1}),
    "concat first": ("concat", [complexes(1, 3), complexes(2, 3)]),
    "concat flat": ("concat", (reals(2, 3), reals(4), reals()), {"axis": None}),
    "concat one": ("concat", [reals(3)]),
    "expand_dims": ("expand_dims", reals(2, 3), -1),
    "expand_dims scalar": ("expand_dims", reals(), 0),
    "expand_dims several": ("expand_dims", reals(2, 3), (0, -1)),
    "flip": ("flip", reals(2, 3)),
    "flip axes": ("flip", complexes(2, 3, 2), {"axis": (0, -1)}),
    "moveaxis": ("moveaxis", reals(2, 3, 4), 0, -1),
    "moveaxis several": ("moveaxis", reals(2, 3, 4, 5), (0, -1), (1, 0)),
    "permute_dims": ("permute_dims", reals(2, 3, 4), (1, 2, 0)),
    "permute_dims negative": ("permute_dims", reals(2, 3, 4), (-1, 0, -2)),
    "permute_dims scalar": ("permute_dims", reals(), ()),
    "repeat": ("repeat", reals(2, 3), 2),
    "repeat axis": ("repeat", complexes(2, 3, 2), 3, {"axis": 1}),
    "repeat nothing": ("repeat", reals(2, 0), 3, {"axis": 1}),
    "repeat zero times": ("repeat", reals(2, 3), 0, {"axis": 0}),
    "repeat counts": ("repeat", reals(2, 3), np.asarray([2, 0, 1]), {"axis": -1}),
    "repeat counts flat": ("repeat", reals(2, 2), np.asarray([2, 0, 1, 3])),
    "reshape": ("reshape", reals(2, 6), (3, -1)),
    "reshape copy": ("reshape", reals(4), (2, 2), {"copy": True}),
    "reshape to scalar": ("reshape", reals(1, 1), ()),
    "roll": ("roll", reals(2, 3), 4),
    "roll axes": ("roll", complexes(2, 3), (1, -2), {"axis": (0, 1)}),
    "roll an axis": ("roll", reals(2, 3), -1, {"axis": -1}),
    "squeeze": ("squeeze", reals(1, 3, 1), (0, -1)),
    "stack": ("stack", [reals(2, 3), reals(2, 3, seed=1)], {"axis": -1}),
    "stack scalars": ("stack", (reals(), reals(seed=1), reals(seed=2))),
    "tile": ("tile", reals(2, 3), (2,)),
    "tile more axes": ("tile", complexes(2, 3), (2, 1, 3)),
    "tile none": ("tile", reals(2, 3), (0, 1)),
    "tril": ("tril", complexes(2, 3, 4), {"k": 1}),
    "triu": ("triu", reals(3, 2), {"k": -1}),
    "unstack": ("unstack", reals(2, 3), {"axis": 1}),
    "unstack to scalars": ("unstack", complexes(3)),
    "meshgrid": ("meshgrid", reals(2), reals(3), reals(4)),
    "meshgrid ij": ("meshgrid", reals(2), reals(3), {"indexing": "ij"}),
    "meshgrid one": ("meshgrid", reals(3)),
    "asarray": ("asarray", reals(3), {"copy": True}),
    "unique_all": ("unique_all", np.asarray([[3.0, 1.0, 2.0], [5.0, 7.0, 0.0]])),
}


def arguments(case: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (case[:-1], case[-1]) if isinstance(case[-1], dict) else (case, {})


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rules(case: tuple[Any, ...]) -> None:
    pytest.importorskip("array_api_strict")
    args, kwargs = arguments(case)
    check(*args, on=strict_raw(), **kwargs)


# What the standard leaves open, or array_api_strict refuses.
NUMPY_CASES: dict[str, tuple[Any, ...]] = {
    "mixed dtypes": (
        "concat",
        [reals(2, 3), complexes(2, 1), np.ones((2, 1), dtype=np.int64)],
        {"axis": 1},
    ),
    "broadcast_arrays mixed": ("broadcast_arrays", reals(3, 1), complexes(4)),
    "repeat scalar": ("repeat", reals(), 3),
    "repeat by one count": ("repeat", reals(3), np.asarray([2])),
    "meshgrid scalar": ("meshgrid", reals(), reals(2)),
    "astype complex": ("astype", reals(3), np.complex128),
    "astype on a device": ("astype", reals(3), np.complex128, {"device": "cpu"}),
    "linspace": ("linspace", reals(), reals(seed=1), 5),
    "linspace open": ("linspace", complexes(), reals(seed=1), 4, {"endpoint": False}),
    "linspace one": ("linspace", reals(), reals(seed=1), 1),
    "linspace none": ("linspace", reals(), reals(seed=1), 0),
    "linspace from a number": ("linspace", 0.5, reals(2), 3),
}


@pytest.mark.parametrize("case", NUMPY_CASES.values(), ids=NUMPY_CASES)
def test_rules_beyond_the_standard(case: tuple[Any, ...]) -> None:
    args, kwargs = arguments(case)
    check(*args, **kwargs)


def test_full_like_passes_the_gradient_to_the_value_only() -> None:
    op = registry.OPS["full_like"]
    assert op.kind == "composite"
    out = op.forward(NUMPY, np.ones((2, 3), dtype=np.float32), 2.0, None, None)
    assert out.shape == (2, 3) and out.dtype == np.float32 and np.all(out == 2)


@pytest.mark.parametrize("name", ["full", "full_like"])
def test_a_value_with_history_fills(name: str) -> None:
    xp = mg.namespace("numpy")
    value = xp.asarray(np.asarray(2.0), requires_grad=True)
    out = xp.full((2, 3), value) if name == "full" else xp.full_like(xp.ones((2, 3)), value)
    out.sum().backward()
    assert out.dtype == np.float64 and out.shape == (2, 3)
    np.testing.assert_array_equal(value.grad.array, 6.0)


def vjp(name: str, g: Any, needs: Any, *args: Any, **kwargs: Any) -> Any:
    op = registry.OPS[name]
    bound = op.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = list(bound.arguments.values())
    return codegen.vjp(op, NUMPY, values, codegen._call_raw(op, NUMPY, values), g, needs)


def test_outputs_that_were_not_used_count_as_zero() -> None:
    x = reals(3, 2)
    (gx,) = vjp("unstack", (None, np.ones(2), None), (True,), x)
    np.testing.assert_array_equal(gx, [[0, 0], [1, 1], [0, 0]])
    ((ga, gb),) = vjp(
        "broadcast_arrays", (None, np.ones((2, 3))), ((True, True),), reals(3), reals(2, 1)
    )
    assert ga is None
    np.testing.assert_array_equal(gb, [[3], [3]])
    ((ga, gb),) = vjp("meshgrid", (np.ones((2, 3)), None), ((True, True),), reals(3), reals(2))
    np.testing.assert_array_equal(ga, [2, 2, 2])
    assert gb is None


@pytest.mark.parametrize("name", ["concat", "stack"])
def test_an_array_of_a_list_that_needs_no_gradient_gets_none(name: str) -> None:
    ((ga, gb),) = vjp(
        name, np.ones(4 if name == "concat" else (2, 2)), ((False, True),), [reals(2), reals(2)]
    )
    assert ga is None
    np.testing.assert_array_equal(gb, [1, 1])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nothing_but_a_count_is_kept(case: tuple[Any, ...]) -> None:
    """Manipulation keeps shapes and indices only, so its operands may be written to afterwards
    (SEMANTICS of in-place).
    """
    op = registry.OPS[case[0]]
    assert not isinstance(op.vjp, registry.Rule)
    kept = {name for rule in op.vjp.values() for name in rule.keeps}
    assert kept & {"ans", *op.arrays} <= {"repeats"}


@pytest.mark.parametrize("name", ["concat", "tile", "repeat", "unstack", "meshgrid"])
def test_precision_stays(name: str) -> None:
    args, kwargs = arguments(CASES[name])
    narrow = [
        [a.astype(np.float32) for a in v]
        if isinstance(v, list)
        else v.astype(np.float32)
        if isinstance(v, np.ndarray)
        else v
        for v in args[1:]
    ]
    _, gradients, moved, _, _ = linearized(NUMPY, name, tuple(narrow), kwargs, lambda x: x)
    flat = [
        g
        for outer in (gradients, moved)
        for part in (outer if isinstance(outer, tuple) else (outer,))
        for g in (part if isinstance(part, (tuple, list)) else [part])
        if g is not None
    ]
    assert {g.dtype for g in flat} == {np.dtype(np.float32)}


def test_the_first_of_equal_values_receives_the_gradient() -> None:
    x = np.asarray([2.0, 1.0, 2.0])
    (gx,) = vjp("unique_all", (np.asarray([3.0, 5.0]), None, None, None), (True,), x)
    np.testing.assert_array_equal(gx, [5, 3, 0])


@pytest.mark.parametrize("name", ["unique_counts", "unique_inverse"])
def test_unique_is_made_from_unique_all(name: str) -> None:
    x = np.asarray([2.0, 1.0, 2.0])
    for ours, theirs in zip(
        registry.OPS[name].forward(NUMPY, x), getattr(np, name)(x), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(registry.OPS["unique_values"].forward(NUMPY, x), [1, 2])


def test_roll_by_an_integer_of_numpy() -> None:
    x = mg.asarray(np.ones(3), requires_grad=True)
    (mg.roll(x, np.int64(1), axis=0) * np.asarray([1.0, 2.0, 3.0])).sum().backward()
    np.testing.assert_array_equal(x.grad.array, [2.0, 3.0, 1.0])
