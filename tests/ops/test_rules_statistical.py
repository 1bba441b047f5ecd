"""The rules of reductions and scans, of searching, sorting and utility functions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from conftest import values
from rule_checks import NUMPY, check, complexes, gradients, linearized, reals, strict_raw

import multigrad as mg
from multigrad import registry
from multigrad.dispatch import codegen
from multigrad.registry import OPS

INF, NAN = np.inf, np.nan
AXES: tuple[Any, ...] = (None, 0, -1, (1,), (0, 2), (-1, -3), ())


# The deviation over no axes is 0 everywhere, at its kink.
REDUCTIONS = [
    (n, a)
    for n in ("sum", "mean", "prod", "max", "min", "var", "std")
    for a in AXES
    if (n, a) != ("std", ())
]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("name", "axis"), REDUCTIONS, ids=str)
def test_reductions(name: str, axis: Any, keepdims: bool) -> None:
    check(name, reals(2, 3, 2), on=strict_raw(), axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("axis", [None, 1, (0, -1)], ids=str)
@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_reductions_of_complex(name: str, axis: Any) -> None:
    check(name, complexes(2, 3, 2), on=strict_raw(), axis=axis)


@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_of_complex(name: str) -> None:
    """Beyond the standard, but NumPy computes it."""
    check(name, complexes(2, 3), axis=1, correction=1)


@pytest.mark.parametrize("correction", [0, 1, 0.5, -1])
@pytest.mark.parametrize("name", ["var", "std"])
def test_corrections(name: str, correction: float) -> None:
    check(name, reals(2, 4), on=strict_raw(), axis=1, correction=correction)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "var"])
def test_reductions_of_0d(name: str) -> None:
    check(name, reals(), on=strict_raw())


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2)], ids=str)
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_reductions_of_nothing(name: str, shape: tuple[int, ...]) -> None:
    check(name, reals(*shape), on=strict_raw())
    check(name, reals(*shape), on=strict_raw(), axis=0)


def test_mean_of_nothing_is_nan_with_an_empty_gradient() -> None:
    with warnings.catch_warnings(action="ignore"):
        (g,) = gradients(NUMPY, "mean", np.zeros((0, 2)))
        (along,) = gradients(NUMPY, "mean", np.zeros((0, 2)), axis=0)
    assert g.shape == along.shape == (0, 2)


SCANS = [((5,), None), ((1,), 0), ((0,), 0), ((2, 6), 1), ((3, 2), 0), ((2, 7, 2), -2), ((2, 0), 0)]


@pytest.mark.parametrize("include_initial", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SCANS, ids=str)
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_scans(name: str, shape: tuple[int, ...], axis: Any, include_initial: bool) -> None:
    for make in (reals, complexes):
        check(name, make(*shape), on=strict_raw(), axis=axis, include_initial=include_initial)


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["float32", "float64", "complex128"])
def test_results_of_another_dtype(name: str, source: str, target: str) -> None:
    x = reals(4).astype(source)
    out, (g,), moved, *_ = linearized(NUMPY, name, (x,), {"dtype": np.dtype(target)}, lambda v: v)
    assert g.dtype == source and out.dtype == moved.dtype == target
    (exact,) = linearized(NUMPY, name, (x.astype(target),), {}, lambda v: v)[1]
    np.testing.assert_allclose(g, exact.real, rtol=1e-5)


def test_real_cast_to_complex_takes_the_real_part() -> None:
    """Where PyTorch fails."""
    np.testing.assert_array_equal(
        gradients(NUMPY, "sum", reals(3), dtype=np.dtype("complex128"), g=np.asarray(2 + 1j))[0],
        [2, 2, 2],
    )
    check("prod", reals(3), dtype=np.dtype("complex128"))
    check("cumulative_prod", reals(3), dtype=np.dtype("complex128"))


# Value, parameters -> gradient of the sum, as in PyTorch (there amax and amin with an axis).
SINGULAR: list[tuple[str, Any, dict[str, Any], Any]] = [
    ("max", [1.0, 3, 3], {}, [0, 0.5, 0.5]),
    ("min", [[1.0, 1, 3], [2, 0, 5]], {}, [[0, 0, 0], [0, 1, 0]]),
    ("max", [[1.0, 3, 3], [2, 2, 2]], {"axis": 1}, [[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]]),
    ("min", [[1.0, 3], [1, 3]], {"axis": 0, "keepdims": True}, [[0.5, 0.5], [0.5, 0.5]]),
    ("max", [1.0, NAN, 3, NAN], {}, [0, 0.5, 0, 0.5]),
    ("max", [-INF, -INF], {}, [0.5, 0.5]),
    ("prod", [2.0, 0, 4], {}, [0, 8, 0]),
    ("prod", [0.0, 0, 4], {}, [0, 0, 0]),
    ("prod", [0.0, 0, 0], {}, [0, 0, 0]),
    ("prod", [[2.0, 0], [3, 4]], {}, [[0, 24], [0, 0]]),
    ("cumulative_prod", [2.0, 0, 4, 5], {}, [1, 50, 0, 0]),
    ("cumulative_prod", [2.0, 0, 0, 5], {}, [1, 2, 0, 0]),
    ("cumulative_prod", [INF, 2.0, 3.0], {}, [9, INF, INF]),
    ("cumulative_prod", [2.0, 3.0, INF], {}, [INF, INF, 6]),
    ("var", [3.0], {}, [0]),
    ("std", [3.0], {}, [0]),
    ("var", [3.0], {"correction": 1}, [NAN]),
    ("std", [3.0], {"correction": 1}, [NAN]),
    ("std", [3.0, 3.0], {}, [0, 0]),
    ("std", [[3.0, 3.0], [1.0, 3.0]], {"axis": 1}, [[0, 0], [-0.5, 0.5]]),
    ("var", [1.0, 1.0], {"correction": 2}, [NAN, NAN]),
    ("sort", [3.0, 1, 1, 2], {}, [1, 1, 1, 1]),
]


@pytest.mark.parametrize("library", ["numpy", "strict"])
@pytest.mark.parametrize(
    ("name", "x", "kwargs", "expected"), SINGULAR, ids=lambda v: v if isinstance(v, str) else ""
)
def test_ties_zeros_and_constants(
    name: str, x: Any, kwargs: dict[str, Any], expected: Any, library: str
) -> None:
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        (g,) = gradients(
            NUMPY if library == "numpy" else strict_raw(),
            name,
            np.asarray(x, dtype=float),
            **kwargs,
        )
    np.testing.assert_allclose(g, np.asarray(expected, dtype=float), rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "x"),
    [("max", [1.0, 1]), ("prod", [0.0, 0]), ("cumulative_prod", [0.0, 0]), ("std", [1.0, 1])],
)
def test_no_floating_point_warning_where_the_gradient_is_finite(name: str, x: Any) -> None:
    with np.errstate(all="raise"):
        gradients(NUMPY, name, np.asarray(x))


@pytest.mark.parametrize(
    "zeros", [(0,), (2,), (4,), (0, 4), (1, 3), (1, 2, 3), (0, 1, 2, 3, 4)], ids=str
)
def test_products_with_zeros(zeros: tuple[int, ...]) -> None:
    x = reals(5)
    x[list(zeros)] = 0
    for dtype in (np.float64, np.complex128):
        check("prod", x.astype(dtype), on=strict_raw())
        check("cumulative_prod", x.astype(dtype), on=strict_raw())


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 9, 33])
def test_scans_of_every_length(length: int) -> None:
    check("cumulative_prod", 0.5 + reals(length) / 4, on=strict_raw())


WHERE = [((3,), (2, 3), ()), ((2, 1), (3,), (2, 3)), ((), (2,), (2,)), ((0,), (1,), (0,))]


@pytest.mark.parametrize("shapes", WHERE, ids=str)
def test_where(shapes: tuple[tuple[int, ...], ...]) -> None:
    condition, x1, x2 = (reals(*s, seed=i) for i, s in enumerate(shapes))
    check("where", condition > 0, x1, x2, on=strict_raw())
    check("where", condition > 0, x1 + 1j, complexes(*shapes[2]), on=strict_raw())


def test_where_with_real_and_complex_branches() -> None:
    """Where PyTorch fails."""
    check("where", np.asarray([True, False]), reals(2), complexes(2))
    check("where", np.asarray([True, False]), reals(2), 1.5)


def test_where_passes_nothing_of_the_branch_not_taken() -> None:
    g = gradients(
        NUMPY,
        "where",
        np.asarray([True, False]),
        np.asarray([1.0, NAN]),
        np.asarray([INF, 2]),
        g=np.asarray([INF, NAN]),
    )
    assert g[0] is None
    np.testing.assert_array_equal(g[1], [INF, 0])
    np.testing.assert_array_equal(g[2], [0, NAN])


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"axis": 0}, {"descending": True}, {"axis": -2, "descending": True, "stable": False}],
    ids=str,
)
def test_sort(kwargs: dict[str, Any]) -> None:
    check("sort", reals(4, 3), on=strict_raw(), **kwargs)
    check("sort", reals(5, 1), on=strict_raw(), **kwargs)


@pytest.mark.parametrize(
    ("descending", "expected"), [(False, [3.0, 1, 2, 4]), (True, [1.0, 3, 4, 2])]
)
@pytest.mark.parametrize("stable", [False, True])
def test_sort_follows_the_stable_permutation(
    descending: bool, expected: list[float], stable: bool
) -> None:
    x = np.asarray([5.0, 1, 1, 7])
    (g,) = gradients(
        NUMPY, "sort", x, descending=descending, stable=stable, g=np.asarray([1.0, 2, 3, 4])
    )
    order = np.argsort(-x if descending else x, kind="stable")
    np.testing.assert_array_equal(g[order], [1, 2, 3, 4])
    np.testing.assert_array_equal(g, [2, 3, 4, 1] if descending else expected)


DIFFS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((5,), {}),
    ((5,), {"n": 3}),
    ((5,), {"n": 0}),
    ((2,), {"n": 3}),
    ((3, 4), {"axis": 0}),
    ((3, 4), {"axis": -2, "n": 2}),
    ((3, 4), {"prepend": reals(3, 2)}),
    ((3, 4), {"axis": 0, "append": reals(1, 4), "prepend": reals(2, 4), "n": 2}),
]


@pytest.mark.parametrize(("shape", "kwargs"), DIFFS, ids=str)
def test_diff_in_terms_of_others(shape: tuple[int, ...], kwargs: dict[str, Any]) -> None:
    op = registry.OPS["diff"]
    x = reals(*shape)
    arguments = op.signature.bind(x, **kwargs)
    arguments.apply_defaults()
    assert op.kind == "composite" and callable(op.forward)
    np.testing.assert_array_equal(
        op.forward(NUMPY, *arguments.arguments.values()), np.diff(x, **kwargs)
    )


@pytest.mark.parametrize(
    "given",
    [{"prepend": [9.0]}, {"append": [9.0]}, {"prepend": [9.0], "append": [7.0, 8.0]}, {}],
    ids=str,
)
def test_no_differences_are_the_array_itself(xp: Any, given: dict[str, Any]) -> None:
    """As in NumPy, PyTorch and array_api_strict: what is to be joined counts only where differences
    are taken.
    """
    x = xp.asarray(np.asarray([1.0, 4.0, 9.0]), requires_grad=True)
    joined = {name: xp.asarray(np.asarray(v), requires_grad=True) for name, v in given.items()}
    y = xp.diff(x, n=0, **joined)
    assert values(y).tolist() == [1.0, 4.0, 9.0]
    (g,) = mg.autograd.grad(xp.sum(y * y), x)
    assert values(g).tolist() == [2.0, 8.0, 18.0]
    raw = {name: v.detach().array for name, v in joined.items()}
    assert values(xp.diff(x.detach().array, n=0, **raw)).tolist() == [1.0, 4.0, 9.0]
    of = {
        "grad": mg.func.grad(lambda x: xp.sum(xp.diff(x, n=0, **joined) ** 2)),
        "vmap": mg.func.vmap(lambda x: xp.diff(x, n=0, **raw)),
        "jvp": lambda x: mg.func.jvp(lambda x: xp.diff(x, n=0, **raw), (x,), (x,))[1],
    }
    data = x.detach().array
    assert values(of["grad"](data)).tolist() == [2.0, 8.0, 18.0] and values(
        of["jvp"](data)
    ).tolist() == [1.0, 4.0, 9.0]
    rows = xp.stack([x.detach(), x.detach()])
    assert values(of["vmap"](rows.array)).tolist() == [[1.0, 4.0, 9.0]] * 2
    assert all(isinstance(xp.diff(data, n=0, **{name: v}), mg.Tensor) for name, v in joined.items())


def test_a_negative_number_of_differences(xp: Any) -> None:
    for x in (xp.ones(3), xp.ones(3, requires_grad=True)):
        with pytest.raises(ValueError, match="diff: n is -1; it must be 0 or more"):
            xp.diff(x, n=-1)


@pytest.mark.parametrize("axis", [2, 5, -3])
def test_diff_refuses_an_axis_that_there_is_not(xp, axis):
    x = xp.asarray(np.ones((2, 3)))
    with pytest.raises(
        IndexError, match=rf"diff: axis {axis} is out of bounds for an array with 2 axes"
    ):
        xp.diff(x, axis=axis)
    with pytest.raises(IndexError, match=rf"diff: axis {axis} is out of bounds"):
        mg.func.vmap(lambda t: xp.diff(t, axis=axis))(xp.ones((4, 2, 3)))
    with pytest.raises(IndexError, match="diff: axis -1 is out of bounds for an array with 0 axes"):
        xp.diff(xp.asarray(1.0))


def test_more_differences_than_elements_are_none(xp):
    x = xp.asarray(np.ones((2, 3)), requires_grad=True)
    for n, axis, shape in ((3, 1, (2, 0)), (9, 1, (2, 0)), (2, 0, (0, 3)), (5, 0, (0, 3))):
        y = xp.diff(x, n=n, axis=axis)
        assert y.shape == shape
        (g,) = mg.autograd.grad(xp.sum(y), x)
        np.testing.assert_array_equal(values(g), np.zeros((2, 3)))


# What each rule keeps: sums nothing but shapes, so what was summed may be modified afterwards.
KEEPS = {
    "cumulative_prod": {"x"},
    "cumulative_sum": set(),
    "max": {"x"},
    "mean": set(),
    "min": {"x"},
    "prod": {"x"},
    "sort": set(),
    "std": {"x"},
    "sum": set(),
    "var": {"x"},
    "where": {"condition"},
}


def test_what_the_rules_keep() -> None:
    chapters = ("statistical", "searching", "sorting", "utility")
    ours = {
        op.name: op
        for op in registry.OPS.values()
        if op.chapter in chapters and op.kind not in ("nondifferentiable", "composite")
    }
    assert set(ours) == set(KEEPS)
    for name, op in ours.items():
        assert not isinstance(op.vjp, registry.Rule)
        for rule in op.vjp.values():
            assert {n for n in rule.keeps if n in (*op.arrays, "ans")} == KEEPS[name], name


TORCH: dict[str, tuple[str, dict[str, Any]]] = {
    "sum": ("sum", {"axis": (0, 2)}),
    "mean": ("mean", {"axis": 1}),
    "prod": ("prod", {"axis": 1}),
    "max": ("amax", {"axis": (0, 1)}),
    "min": ("amin", {"axis": 2, "keepdims": True}),
    "var": ("var", {"axis": (0, 2), "correction": 1}),
    "std": ("std", {"axis": 1, "correction": 0}),
    "cumulative_sum": ("cumsum", {"axis": 1}),
    "cumulative_prod": ("cumprod", {"axis": 1}),
}


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("rounded", [False, True], ids=["plain", "ties and zeros"])
def test_gradients_are_those_of_torch(name: str, rounded: bool) -> None:
    torch = pytest.importorskip("torch")
    theirs, kwargs = TORCH[name]
    x = np.round(reals(3, 4, 2)) if rounded else reals(3, 4, 2)
    _, (found,), _, g, _ = linearized(NUMPY, name, (x,), kwargs, lambda v: v)
    t = torch.tensor(x, requires_grad=True)
    names = {"axis": "dim", "keepdims": "keepdim"}
    y = getattr(torch, theirs)(t, **{names.get(k, k): v for k, v in kwargs.items()})
    (wanted,) = torch.autograd.grad(y, t, torch.tensor(g))
    np.testing.assert_allclose(found, wanted.numpy(force=True), rtol=1e-12, atol=1e-12)


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


# ----- 0-d arrays -----

SCALAR_AXIS: dict[str, tuple[Any, float]] = {
    "sum": (lambda x, a: mg.sum(x, axis=a), 1.0),
    "sum, keepdims": (lambda x, a: mg.sum(x, axis=a, keepdims=True), 1.0),
    "mean": (lambda x, a: mg.mean(x, axis=a), 1.0),
    "prod": (lambda x, a: mg.prod(x, axis=a), 1.0),
    "prod, keepdims": (lambda x, a: mg.prod(x, axis=a, keepdims=True), 1.0),
    "max": (lambda x, a: mg.max(x, axis=a), 1.0),
    "nanprod": (lambda x, a: mg.nanprod(x, axis=a), 1.0),
    "nanmax": (lambda x, a: mg.nanmax(x, axis=a), 1.0),
    "ptp": (lambda x, a: mg.ptp(x, axis=a), 0.0),
    "softmax": (lambda x, a: mg.softmax(x, axis=a), 0.0),
    "log_softmax": (lambda x, a: mg.log_softmax(x, axis=a), 0.0),
    "logsumexp": (lambda x, a: mg.logsumexp(x, axis=a), 1.0),
    "repeat": (lambda x, a: mg.sum(mg.repeat(x, 3, axis=a)), 3.0),
    "take": (lambda x, a: mg.sum(mg.take(x, mg.asarray([0, 0]), axis=a)), 2.0),
    "multiply.reduce": (lambda x, a: np.multiply.reduce(x, axis=a), 1.0),
    "fmax.reduce": (lambda x, a: np.fmax.reduce(x, axis=a), 1.0),
    "fmin.reduce": (lambda x, a: np.fmin.reduce(x, axis=a), 1.0),
    "maximum.reduce": (lambda x, a: np.maximum.reduce(x, axis=a), 1.0),
    "add.reduce": (lambda x, a: np.add.reduce(x, axis=a), 1.0),
}


@pytest.mark.parametrize("axis", [0, -1, np.int64(-1)], ids=["0", "-1", "np.int64(-1)"])
@pytest.mark.parametrize("name", SCALAR_AXIS)
def test_the_axis_that_numpy_accepts_for_a_0d_array(name: str, axis: Any) -> None:
    """Each derivative, alone and in a batch, is that of the same function without an axis."""
    function, slope = SCALAR_AXIS[name]
    f = lambda x: function(x, axis)
    x, batch = np.asarray(2.0), np.asarray([2.0, 3.0])
    t = mg.asarray(x, requires_grad=True)
    y = f(t)
    assert y.shape == ()
    (g,) = mg.autograd.grad(y, t, create_graph=True)
    assert g.shape == () and g.item() == slope
    value, moved = mg.func.jvp(f, (x,), (np.asarray(1.0),))
    assert np.shape(value) == np.shape(moved) == () and moved == slope
    np.testing.assert_allclose(mg.func.vmap(f)(batch), [f(mg.asarray(b)).item() for b in batch])
    np.testing.assert_allclose(mg.func.vmap(mg.func.grad(f))(batch), [slope, slope])
    np.testing.assert_allclose(
        mg.func.jvp(mg.func.vmap(f), (batch,), (np.ones(2),))[1], [slope, slope]
    )


@pytest.mark.parametrize("axis", [1, -2, (0,)], ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "max"])
def test_another_axis_of_a_0d_array_raises(name: str, axis: Any) -> None:
    f = lambda x: getattr(mg, name)(x, axis=axis)
    for call in (
        lambda: f(mg.asarray(2.0)),
        lambda: mg.func.grad(f)(np.asarray(2.0)),
        lambda: mg.func.vmap(f)(np.ones(2)),
    ):
        with pytest.raises(IndexError, match="out of bounds"):
            call()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda xp, x: xp.take_along_axis(x, xp.asarray(0), axis=0), "take_along_axis"),
        (lambda xp, x: xp.repeat(x, 2, axis=1), "repeat"),
        (lambda xp, x: xp.moveaxis(x, 0, 0), "moveaxis"),
        (lambda xp, x: xp.unstack(x, axis=0), "unstack"),
    ],
    ids=lambda c: c if isinstance(c, str) else "",
)
def test_the_forms_for_libraries_without_a_function_say_which_axis(call: Any, name: str) -> None:
    """They count an axis from the front, which must exist."""
    with pytest.raises(IndexError, match=f"{name}: .* is out of bounds for an array with 0 axes"):
        call(Forms(), np.asarray(1.0))


class Forms:
    """The forms of operations, over NumPy's functions."""

    def __getattr__(self, name: str) -> Any:
        forward = OPS[name].forward if name in OPS else None
        if not isinstance(forward, dict):
            return getattr(np, name)

        def form(x: Any, *args: Any, **kwargs: Any) -> Any:
            given = OPS[name].signature.bind(x, *args, **kwargs)
            given.apply_defaults()
            return forward["*"](self, *given.arguments.values())

        return form
