"""The rules of reductions, scans and differences where the conformance suite cannot judge them:
infinities, zeros among complex numbers, long scans, axes of 0-d arrays.

Ties, zeros and constants are rows of hard_cases.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import values
from rule_checks import NUMPY, complexes, gradients, reals, strict_raw

import multigrad as mg
from multigrad.registry import OPS

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("name", ["prod", "cumulative_prod"])
def test_real_cast_to_complex_takes_the_real_part(name: str) -> None:
    """Where PyTorch fails."""
    x, g = reals(3), np.asarray([2 + 1j, -1j, 3.0])[() if name == "cumulative_prod" else 0]
    (found,) = gradients(NUMPY, name, x, dtype=np.dtype("complex128"), g=g)
    (wide,) = gradients(NUMPY, name, x + 0j, g=g)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wide.real)


@pytest.mark.parametrize("library", ["numpy", "strict"])
@pytest.mark.parametrize(
    ("name", "x", "kwargs", "expected"),
    [
        ("min", [[1.0, 3], [1, 3]], {"axis": 0, "keepdims": True}, [[0.5, 0.5], [0.5, 0.5]]),
        ("prod", [[2.0, 0], [3, 4]], {}, [[0, 24], [0, 0]]),
        ("cumulative_prod", [INF, 2.0, 3.0], {}, [9, INF, INF]),
        ("cumulative_prod", [2.0, 3.0, INF], {}, [INF, INF, 6]),
        ("var", [1.0, 1.0], {"correction": 2}, [NAN, NAN]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_ties_zeros_and_infinities(
    name: str, x: Any, kwargs: dict[str, Any], expected: Any, library: str
) -> None:
    xp = NUMPY if library == "numpy" else strict_raw()
    (g,) = gradients(xp, name, np.asarray(x), **kwargs)
    np.testing.assert_allclose(g, np.asarray(expected, dtype=float), rtol=1e-15)


@pytest.mark.parametrize("zeros", [(), (0,), (1, 3), (0, 1, 2, 3, 4)], ids=str)
def test_products_of_complex_numbers_with_zeros(zeros: tuple[int, ...]) -> None:
    """Of the product of z, the gradient is the conjugate of the product of the others."""
    x = complexes(5)
    x[list(zeros)] = 0
    (g,) = gradients(NUMPY, "prod", x)
    np.testing.assert_allclose(g, [np.conj(np.prod(np.delete(x, i))) for i in range(5)])
    (scanned,) = gradients(NUMPY, "cumulative_prod", x, g=np.asarray([0, 0, 0, 0, 1.0 + 0j]))
    np.testing.assert_allclose(scanned, g, atol=1e-15)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 9, 33])
def test_scans_of_every_length(length: int) -> None:
    x = 1.0 + reals(length) / 4
    (g,) = gradients(strict_raw(), "cumulative_prod", x)
    np.testing.assert_allclose(g, np.cumsum(np.cumprod(x)[::-1])[::-1] / x, rtol=1e-12)


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
    "given",
    [{"prepend": [9.0]}, {"append": [9.0]}, {"prepend": [9.0], "append": [7.0, 8.0]}, {}],
    ids=str,
)
def test_no_differences_are_the_array_itself(xp: Any, given: dict[str, Any]) -> None:
    """As in NumPy, PyTorch and array_api_strict: what is to be joined counts only where differences
    are taken.
    """
    raw = {name: xp.asarray(np.asarray(v)).array for name, v in given.items()}
    x = xp.asarray(np.asarray([1.0, 4.0, 9.0])).array
    none = lambda x: xp.diff(x, n=0, **raw)
    assert values(none(x)).tolist() == [1.0, 4.0, 9.0]
    assert values(mg.func.grad(lambda x: xp.sum(none(x) ** 2))(x)).tolist() == [2.0, 8.0, 18.0]
    assert values(mg.func.jvp(none, (x,), (x,))[1]).tolist() == [1.0, 4.0, 9.0]
    rows = xp.stack([xp.asarray(x), xp.asarray(x)]).array
    assert values(mg.func.vmap(none)(rows)).tolist() == [[1.0, 4.0, 9.0]] * 2


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
