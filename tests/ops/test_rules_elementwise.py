"""The rules of elementwise functions where the conformance suite cannot judge them: signs of zero,
branch cuts, operands of other dtypes.

Kinks and singular points stand in `multigrad_conformance.elementwise`: the suite and
test_hard_cases.py try them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rule_checks import NUMPY, complexes, gradients, strict_raw, to_numpy

import multigrad as mg
from multigrad import func, registry

pytest.importorskip("multigrad_conformance")
from multigrad_conformance import elementwise

INF = np.inf
BINARY = [name for name in elementwise.BINARY if registry.OPS[name].differentiable]


@pytest.mark.parametrize("library", ["numpy", "strict"])
@pytest.mark.parametrize(
    ("name", "at"),
    [
        pytest.param(name, at, id=f"{name}: {at.where}")
        for name, points in elementwise.POINTS.items()
        for at in points.kinks
        if not at.suite and not at.page
    ],
)
def test_points_that_neither_the_suite_nor_the_page_has(
    name: str, at: elementwise.At, library: str
) -> None:
    found = gradients(NUMPY if library == "numpy" else strict_raw(), name, *at.arrays())
    for actual, wanted in zip(found, at.gradient, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-15)
        if name == "atan2":  # at the origin, too
            np.testing.assert_array_equal(np.signbit(actual), np.signbit(wanted))


def test_a_remainder_of_a_quotient_that_rounds_to_an_integer() -> None:
    """1 / 0.1 rounds to 10, but the remainder is that of 9."""
    np.testing.assert_array_equal(
        gradients(NUMPY, "remainder", np.asarray([1.0]), np.asarray([0.1]))[1], [-9.0]
    )


def test_real_base_below_zero_with_complex_exponent() -> None:
    x, exponent = np.asarray([-0.5, -1.5]), complexes(2)
    for found, wide in zip(
        gradients(NUMPY, "pow", x, exponent), gradients(NUMPY, "pow", x + 0j, exponent), strict=True
    ):
        np.testing.assert_allclose(found, wide if found.dtype.kind == "c" else wide.real)


def test_clip_without_bounds() -> None:
    (g,) = [g for g in gradients(NUMPY, "clip", np.asarray([1.0, np.nan])) if g is not None]
    np.testing.assert_array_equal(g, [1, 1])


INTEGERS = [
    ("i1", [-128, 127, 0, 1, 3]),
    ("i4", [-(2**31), 2**31 - 1, 0, 1]),
    ("u1", [0, 255, 1, 2]),
    ("u8", [0, 1]),
    ("?", [False, True]),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("dtype", "values"), INTEGERS, ids=[dtype for dtype, _ in INTEGERS])
def test_an_integer_operand_has_the_derivatives_of_a_floating_one(
    name: str, dtype: str, values: list[int]
) -> None:
    """No rule computes in the dtype of the integer, where -1 or 1 more would wrap around."""
    if dtype == "?" and name == "subtract":
        pytest.skip("NumPy does not subtract booleans from floats")
    function = getattr(NUMPY, name)
    x, whole = np.asarray([[0.3], [1.7], [2.4]]), np.asarray(values, dtype=dtype)
    for swapped in (False, True):

        def total(x: Any, k: Any, swapped: bool = swapped) -> Any:
            return mg.sum(function(k, x) if swapped else function(x, k))

        slope = func.grad(total)
        for derivative in (
            slope,
            func.jacfwd(total),
            func.grad(lambda x, k, slope=slope: mg.sum(slope(x, k))),
        ):
            np.testing.assert_allclose(
                derivative(x, whole), derivative(x, whole.astype("f8")), rtol=1e-2
            )


FINITE_WHERE_DEFINED = [
    ("abs", ([0.0],)),
    ("abs", ([0j],)),
    ("maximum", ([1.0], [1.0])),
    ("clip", ([1.0], [1.0], [1.0])),
    ("pow", ([0.0, 0], [0.0, 2])),
    ("pow", ([0j], [0j])),
    ("atan2", ([0.0], [0.0])),
    ("hypot", ([0.0], [0.0])),
    ("logaddexp", ([-INF, -INF], [-INF, 0.0])),
    ("logaddexp", ([1e4], [-1e4])),
    ("copysign", ([0.0], [1.0])),
    ("max", ([1.0, 1.0],)),
    ("prod", ([0.0, 0.0],)),
    ("cumulative_prod", ([0.0, 0.0],)),
    ("std", ([1.0, 1.0],)),
]


@pytest.mark.parametrize(
    ("name", "args"), FINITE_WHERE_DEFINED, ids=lambda v: v if isinstance(v, str) else ""
)
def test_no_floating_point_warning_where_the_gradient_is_finite(name: str, args: Any) -> None:
    with np.errstate(all="raise", under="ignore"):
        gradients(NUMPY, name, *map(np.asarray, args))


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "log", "sqrt"])
def test_branch_cuts_are_approached_from_the_side_of_the_signed_zero(name: str) -> None:
    for point in (2.0, -2.0, 2j, -2j):
        for side in (0.0, -0.0):
            part = (
                complex(point.real, side) if isinstance(point, float) else complex(side, point.imag)
            )
            beside = (
                part + complex(0, np.copysign(1e-9, side))
                if isinstance(point, float)
                else part + np.copysign(1e-9, side)
            )
            on, near = (gradients(NUMPY, name, np.asarray([z]))[0] for z in (part, beside))
            np.testing.assert_allclose(on, near, rtol=1e-7, err_msg=f"{name} at {part}")


def test_second_derivatives_at_singular_points_are_infinite_not_nan() -> None:
    for name, sign in (("asin", 1), ("acos", -1), ("atanh", 1), ("acosh", -1)):
        x = mg.asarray(np.asarray([1.0]), requires_grad=True)
        with np.errstate(all="ignore"):
            (slope,) = mg.autograd.grad(getattr(mg, name)(x), x, mg.ones(1), create_graph=True)
            (second,) = mg.autograd.grad(slope, x, mg.ones(1))
        np.testing.assert_array_equal(second.array, [sign * INF])


def test_an_infinite_cotangent_is_selected_not_multiplied() -> None:
    g = np.asarray([INF, INF, 1.0])
    x = np.asarray([0.0, 1.0, 3.0])
    np.testing.assert_array_equal(gradients(NUMPY, "clip", x, 0.5, 2.0, g=g)[0], [0, INF, 0])
    np.testing.assert_array_equal(
        gradients(NUMPY, "maximum", x, np.asarray([1.0, 0, 4]), g=g)[0], [0, INF, 0]
    )


@pytest.fixture
def powers(operations: Any) -> Any:
    """`powers(base, shift, x)`, differentiable by x alone; its rule notes what it gets for the
    other two.
    """
    seen: list[tuple[Any, ...]] = []

    def rule(xp: Any, base: Any, shift: Any, x: Any) -> Any:
        seen.extend((b.shape, str(b.dtype).rpartition(".")[2]) for b in (base, shift))
        return xp.log(base) * xp.exp(xp.log(base) * x + shift)

    def forward(xp: Any, base: Any, shift: Any, x: Any) -> Any:
        return xp.exp(xp.log(xp.asarray(base, dtype=x.dtype)) * x + shift)

    registry.elementwise("powers(base, shift, x, /)", x=rule, forward=forward)
    return seen


def test_a_rule_sees_an_array_in_the_place_of_a_scalar_whose_derivative_nothing_asks_for(
    xp: Any, powers: Any
) -> None:
    x = xp.asarray([0.5, 1.0], dtype="float32").array
    base = np.log(1.3)
    values = np.exp(base * np.asarray([0.5, 1.0]) + 2)

    def one(t: Any) -> Any:
        return xp.powers(1.3, 2, t)

    def recorded(order: int) -> Any:
        t = mg.asarray(x, requires_grad=True)
        y = one(t)
        for i in range(order):
            (y,) = mg.autograd.grad(xp.sum(y), [t], create_graph=i < order - 1)
        return y

    def slope(f: Any) -> Any:
        return lambda t: func.jvp(f, (t,), (xp.ones_like(t),))[1]

    ones = xp.ones(2, dtype="float32").array
    for order, found in (
        (1, recorded(1)),
        (3, recorded(3)),
        (1, func.grad(lambda t: xp.sum(one(t)))(x)),
        (2, func.jvp(slope(one), (x,), (ones,))[1]),
        (2, func.vmap(func.grad(func.grad(one)))(x)),
        (2, func.vmap(func.grad(slope(one)))(x)),
    ):
        np.testing.assert_allclose(
            to_numpy(mg.asarray(found).array), base**order * values, rtol=1e-5
        )
    assert set(powers) == {((), "float32")}
