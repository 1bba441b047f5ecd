"""The rules of elementwise functions: at ordinary points by differences, at kinks and singular
points by stated numbers.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from rule_checks import (
    NUMPY,
    check,
    complexes,
    gradients,
    linearized,
    reals,
    strict_raw,
    to_numpy,
)

import multigrad as mg
from multigrad import func, registry

pytest.importorskip("multigrad_conformance")
from multigrad_conformance import elementwise
from multigrad_conformance.elementwise import drawn
from multigrad_conformance.sample import Draw

INF, NAN = np.inf, np.nan
CHAPTERS = ("elementwise", "statistical", "searching", "sorting", "utility")


def differentiable(name: str) -> bool:
    """Whether it is an elementwise operation of the standard with a rule that the tests try."""
    op = registry.OPS[name]
    return op.chapter == "elementwise" and op.kind != "nondifferentiable" and name != "remainder"


# The table of the conformance suite says how arguments are drawn.
UNARY = {n: how for n, how in elementwise.UNARY.items() if differentiable(n)}
BINARY = {n: how for n, how in elementwise.BINARY.items() if differentiable(n)}
BROADCASTS = [
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 1), (4, 1, 3)),
    ((), (3,)),
    ((2,), ()),
    ((0, 2), (1, 2)),
]
REAL_ONLY = (
    "ceil",
    "floor",
    "trunc",
    "atan2",
    "copysign",
    "hypot",
    "logaddexp",
    "maximum",
    "minimum",
)


def between(low: float, high: float, *shape: int, seed: int = 0) -> Any:
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(low, high, shape))


def operands(name: str, *shapes: tuple[int, ...]) -> list[Any]:
    """Arguments of a function of two, as the table says; those that are drawn together are one
    array, cut in two.
    """
    draw, how = Draw(name), BINARY[name]
    if how[0] == "apart":
        sizes = [int(np.prod(s)) for s in shapes]
        both = draw.apart(sum(sizes))
        return [part.reshape(s) for part, s in zip(np.split(both, [sizes[0]]), shapes, strict=True)]
    return [drawn(draw, h, *s) for h, s in zip(how, shapes, strict=True)]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)], ids=str)
def test_unary(name: str, shape: tuple[int, ...]) -> None:
    check(name, drawn(Draw(name), UNARY[name], *shape), on=strict_raw())


@pytest.mark.parametrize("name", [n for n in [*UNARY, "imag"] if n not in REAL_ONLY])
def test_unary_complex(name: str) -> None:
    check(name, 0.2 + 0.4 * complexes(2, 3), on=strict_raw())


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
def test_binary(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    check(name, *operands(name, *shapes), on=strict_raw())


@pytest.mark.parametrize("name", [n for n in BINARY if n not in REAL_ONLY])
@pytest.mark.parametrize("kinds", ["cc", "rc", "cr"])
def test_binary_complex(name: str, kinds: str) -> None:
    first, second = (
        complexes(2, 3, seed=i) if k == "c" else between(0.3, 2, 2, 3, seed=i)
        for i, k in enumerate(kinds)
    )
    check(name, first, second, on=strict_raw())


def test_real_base_below_zero_with_complex_exponent() -> None:
    check("pow", -between(0.3, 2, 3), complexes(3), on=strict_raw())


def test_remainder() -> None:
    check("remainder", np.asarray([5.3, -5.3, 0.7]), np.asarray([2.0, 2.0, -0.3]), on=strict_raw())
    # 1 / 0.1 rounds to 10, but the remainder is that of 9
    np.testing.assert_array_equal(
        gradients(NUMPY, "remainder", np.asarray([1.0]), np.asarray([0.1]))[1], [-9.0]
    )


LOW, HIGH = between(-1, 0, 3, seed=1), between(0, 1, 2, 3, seed=2)


@pytest.mark.parametrize(
    "bounds",
    [{"min": LOW, "max": HIGH}, {"min": LOW}, {"max": HIGH}, {"min": -0.5, "max": 0.5}, {}],
    ids=list,
)
def test_clip(bounds: dict[str, Any]) -> None:
    check("clip", reals(2, 3), on=strict_raw(), **bounds)


@pytest.mark.parametrize(
    "types", ["float32 float64", "float64 float32", "float32 complex128", "complex64 float64"]
)
def test_gradients_have_the_dtype_of_their_argument(types: str) -> None:
    for name in ("multiply", "divide", "pow", "subtract"):
        first, second = (np.asarray([0.5, 1.5], dtype=t) for t in types.split())
        g = gradients(NUMPY, name, first, second)
        assert [v.dtype.name for v in g] == types.split()


def test_integer_arguments_get_no_gradient_and_do_no_harm() -> None:
    for name, expected in (
        ("multiply", [2.0, 3.0]),
        ("pow", [1.0, 6.75]),
        ("divide", [0.5, 1 / 3]),
    ):
        g = gradients(NUMPY, name, np.asarray([0.5, 1.5]), np.asarray([2, 3]))
        np.testing.assert_allclose(g[0], expected)
        assert g[1] is None


def array(values: Any) -> Any:
    if values is None:
        return None
    return np.asarray(values, dtype=np.complex128 if np.iscomplexobj(values) else np.float64)


@pytest.mark.parametrize("library", ["numpy", "strict"])
@pytest.mark.parametrize(
    ("name", "at"),
    [
        pytest.param(name, at, id=f"{name}: {at.where}")
        for name, rows in elementwise.KINKS.items()
        for at in rows
        if registry.OPS[name].chapter == "elementwise"
    ],
)
def test_kinks_and_singular_points(name: str, at: elementwise.At, library: str) -> None:
    """The gradients that the table states; for hypot and logaddexp they are not PyTorch's nan."""
    crossed = name == "clip" and "min = 1 > max" in at.where
    if crossed and library == "strict":
        pytest.skip("array_api_strict refuses crossed bounds")
    with np.errstate(all="ignore"):
        g = gradients(NUMPY if library == "numpy" else strict_raw(), name, *at.arrays())
    g = [v for v, a in zip(g, at.args, strict=False) if isinstance(a, list)]
    for actual, wanted in zip(g, at.gradient, strict=True):
        if actual.dtype.kind == "c":  # of what is not finite, the parts differ
            actual = np.where(np.isfinite(actual), actual, elementwise.NOT_FINITE)
        np.testing.assert_allclose(actual, np.asarray(wanted, dtype=actual.dtype), rtol=1e-15)


def test_the_gradient_of_atan2_at_the_origin_has_a_sign() -> None:
    x = np.asarray([0.0, 1.0, 1e-200])
    for xp in (NUMPY, strict_raw()):
        for actual, signs in zip(gradients(xp, "atan2", x, x), (False, True), strict=True):
            np.testing.assert_array_equal(np.signbit(actual), [signs] * 3)


@pytest.mark.parametrize(("name", "part"), [("sqrt", INF), ("log", INF), ("reciprocal", NAN)])
def test_gradients_at_complex_0(name: str, part: float) -> None:
    for xp in (NUMPY, strict_raw()):
        with np.errstate(all="ignore"):
            (g,) = gradients(xp, name, np.asarray([0j]))
        np.testing.assert_array_equal([g.real, g.imag], [[part], [NAN]])


def test_crossed_bounds() -> None:
    """Unspecified in the standard (strict refuses them): the value is the upper bound, and so goes
    the gradient.
    """
    x, low, high = np.asarray([0.0, 1, 1.5, 2, 3]), np.asarray(2.0), np.ones(5)
    for actual, wanted in zip(
        gradients(NUMPY, "clip", x, low, high), ([0.0] * 5, 0.0, [1.0] * 5), strict=True
    ):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize(
    ("exponent", "expected"), [(0.0, [0, 0, 0, 0]), (1.0, [1, 1, 1, 1]), (2.0, [0, 4, NAN, INF])]
)
def test_pow_with_a_scalar_exponent(exponent: float, expected: list[float]) -> None:
    """Another text than for an array of exponents, and the same numbers."""
    g = gradients(NUMPY, "pow", np.asarray([0, 2, NAN, INF]), np.asarray(exponent))[0]
    np.testing.assert_array_equal(g, expected)


def test_pow_with_0d_exponents_of_every_kind() -> None:
    for x2 in (np.asarray(0.0), np.asarray(-1.5), np.asarray(0j), np.asarray(0.6 - 0.7j)):
        check("pow", between(0.3, 2, 2, 3), x2, on=strict_raw())
        check("pow", complexes(2, 3), x2, on=strict_raw())


INTEGERS = [
    ("i1", [-128, 127, 0, 1, 3]),
    ("i4", [-(2**31), 2**31 - 1, 0, 1]),
    ("u1", [0, 255, 1, 2]),
    ("u2", [0, 1, 65535]),
    ("u4", [0, 1]),
    ("u8", [0, 1]),
    ("?", [False, True]),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*BINARY, "fmod", "hypot", "logaddexp2"])
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
]


@pytest.mark.parametrize(
    ("name", "args"), FINITE_WHERE_DEFINED, ids=lambda v: v if isinstance(v, str) else ""
)
def test_no_floating_point_warning_where_the_gradient_is_finite(name: str, args: Any) -> None:
    with np.errstate(all="raise", under="ignore"):
        gradients(NUMPY, name, *map(array, args))


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


def test_precision_where_naive_formulas_lose_it() -> None:
    tiny = np.asarray([1e-200])
    np.testing.assert_allclose(gradients(NUMPY, "atan2", tiny, tiny)[0], 5e199, rtol=1e-14)
    weight = gradients(NUMPY, "logaddexp", np.asarray([1e6 - 40.0]), np.asarray([1e6]))
    np.testing.assert_allclose(weight[0], 1 / (1 + np.exp(40.0)), rtol=1e-13)


def test_second_derivatives_at_singular_points_are_infinite_not_nan() -> None:
    for name, sign in (("asin", 1), ("acos", -1), ("atanh", 1), ("acosh", -1)):
        x = mg.asarray(np.asarray([1.0]), requires_grad=True)
        with np.errstate(all="ignore"):
            (slope,) = mg.autograd.grad(getattr(mg, name)(x), x, mg.ones(1), create_graph=True)
            (second,) = mg.autograd.grad(slope, x, mg.ones(1))
        np.testing.assert_array_equal(second.array, [sign * INF])


def test_no_gradient_overflows_on_the_way() -> None:
    huge = np.asarray([1e200])
    for name, wanted in (("asinh", 1e-200), ("acosh", 1e-200)):
        np.testing.assert_allclose(gradients(NUMPY, name, huge)[0], wanted, rtol=1e-14)
    far = 1e200 + 1e200j
    for name, wanted in (
        ("asinh", 1 / far),
        ("acosh", 1 / far),
        ("asin", 1j / far),
        ("acos", -1j / far),
        ("atan", 0),
        ("atanh", 0),
    ):
        np.testing.assert_allclose(
            gradients(NUMPY, name, np.asarray([far]))[0], np.conj(wanted), rtol=1e-14, atol=1e-300
        )


def test_an_infinite_cotangent_is_selected_not_multiplied() -> None:
    g = np.asarray([INF, INF, 1.0])
    x = np.asarray([0.0, 1.0, 3.0])
    np.testing.assert_array_equal(gradients(NUMPY, "clip", x, 0.5, 2.0, g=g)[0], [0, INF, 0])
    np.testing.assert_array_equal(
        gradients(NUMPY, "maximum", x, np.asarray([1.0, 0, 4]), g=g)[0], [0, INF, 0]
    )


# What each rule keeps, per argument, as in PyTorch: it decides what may be modified after the
# operation.
KEEPS: dict[str, tuple[tuple[str, ...], ...]] = {
    "abs": (("x",),),
    "acos": (("x",),),
    "acosh": (("x",),),
    "add": ((), ()),
    "asin": (("x",),),
    "asinh": (("x",),),
    "atan": (("x",),),
    "atan2": (("x1", "x2"), ("x1", "x2")),
    "atanh": (("x",),),
    "ceil": ((),),
    "clip": (("x", "min", "max"),) * 3,
    "conj": ((),),
    "copysign": (("x1", "ans"), ()),
    "cos": (("x",),),
    "cosh": (("x",),),
    "divide": (("x2",), ("x1", "x2")),
    "exp": (("ans",),),
    "expm1": (("ans",),),
    "floor": ((),),
    "hypot": (("x1", "ans"), ("x2", "ans")),
    "imag": (("x_dtype",),),
    "log": (("x",),),
    "log10": (("x",),),
    "log1p": (("x",),),
    "log2": (("x",),),
    "logaddexp": (("x1", "x2"), ("x1", "x2")),
    "maximum": (("x1", "x2"), ("x1", "x2")),
    "minimum": (("x1", "x2"), ("x1", "x2")),
    "multiply": (("x2",), ("x1",)),
    "negative": ((),),
    "positive": ((),),
    "pow": (("x1", "x2", "x2_scalar"), ("x1", "x2", "ans")),
    "real": ((),),
    "reciprocal": (("ans",),),
    "remainder": ((), ("x1", "x2")),
    "round": ((),),
    "sign": (("x", "ans"),),
    "sin": (("x",),),
    "sinh": (("x",),),
    "sqrt": (("ans",),),
    "square": (("x",),),
    "subtract": ((), ()),
    "tan": (("ans",),),
    "tanh": (("ans",),),
    "trunc": ((),),
}


def test_what_the_rules_keep() -> None:
    ours = [
        op
        for op in registry.OPS.values()
        if op.chapter == "elementwise" and op.kind != "nondifferentiable"
    ]
    assert {op.name for op in ours} == set(KEEPS)
    for op in ours:
        assert not isinstance(op.vjp, registry.Rule)
        assert tuple(op.vjp[a].keeps for a in op.arrays) == KEEPS[op.name], op.name


def test_every_differentiable_function_is_tried_above() -> None:
    assert set(KEEPS) == {*UNARY, *BINARY, "imag", "remainder", "clip"}


def plain(signature: inspect.Signature) -> list[tuple[Any, ...]]:
    return [(p.name, p.kind, p.default) for p in signature.parameters.values()]


def test_signatures_are_those_of_the_standard() -> None:
    strict = pytest.importorskip("array_api_strict")
    ours = [op for op in registry.OPS.values() if op.chapter in CHAPTERS]
    assert len(ours) == 67 + 9 + 6 + 2 + 3
    for op in ours:
        theirs = inspect.signature(getattr(strict, op.name))
        assert plain(op.signature) == plain(theirs), op.name
        assert op.doc.endswith(".") and op.module == f"multigrad.ops.{op.chapter}"


def test_operators_of_the_standard_are_served_once() -> None:
    stems = [
        op.operator for op in registry.OPS.values() if op.chapter == "elementwise" and op.operator
    ]
    expected = (
        "abs add and eq floordiv ge gt invert le lshift lt mod mul ne neg or pos pow "
        "rshift sub truediv xor"
    )
    assert " ".join(sorted(stems)) == expected


@pytest.fixture
def powers() -> Any:
    """`powers(base, shift, x)`, differentiable by x alone; its rule notes what it gets for the
    other two.
    """
    seen: list[tuple[Any, ...]] = []

    def rule(xp: Any, base: Any, shift: Any, x: Any) -> Any:
        seen.extend((b.shape, str(b.dtype).rpartition(".")[2]) for b in (base, shift))
        return xp.log(base) * xp.exp(xp.log(base) * x + shift)

    op = registry.elementwise(
        "powers(base, shift, x, /)",
        x=rule,
        forward=lambda xp, base, shift, x: xp.exp(
            xp.log(xp.asarray(base, dtype=x.dtype)) * x + shift
        ),
    )
    try:
        yield seen
    finally:
        registry.restore({}, [op])


@pytest.mark.parametrize("backend", ["numpy", "strict", "jax"], indirect=True)
def test_a_rule_sees_an_array_in_the_place_of_a_scalar_whose_derivative_nothing_asks_for(
    backend: str, powers: Any
) -> None:
    pytest.importorskip({"strict": "array_api_strict"}.get(backend, backend))
    xp = mg.namespace(backend)
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

    func, ones = mg.func, xp.ones(2, dtype="float32").array

    def slope(f: Any) -> Any:
        return lambda t: func.jvp(f, (t,), (xp.ones_like(t),))[1]

    for order, found in (
        (1, recorded(1)),
        (2, recorded(2)),
        (3, recorded(3)),
        (1, func.grad(lambda t: xp.sum(one(t)))(x)),
        (1, func.jvp(one, (x,), (ones,))[1]),
        (2, func.jvp(slope(one), (x,), (ones,))[1]),
        (1, func.vmap(func.grad(one))(x)),
        (2, func.vmap(func.grad(func.grad(one)))(x)),
        (2, func.vmap(func.grad(slope(one)))(x)),
    ):
        np.testing.assert_allclose(
            to_numpy(mg.asarray(found).array), base**order * values, rtol=1e-5
        )
    assert set(powers) == {((), "float32")}


TORCH_COMPLEX = [n for n in [*UNARY, *BINARY, "imag"] if n not in (*REAL_ONLY, "round")]


@pytest.mark.parametrize(
    ("name", "complex_"),
    [(n, False) for n in [*UNARY, *BINARY]] + [(n, True) for n in TORCH_COMPLEX],
)
def test_gradients_are_those_of_torch(name: str, complex_: bool) -> None:
    torch = pytest.importorskip("torch")
    number = 2 if name in BINARY else 1
    if complex_:
        args = [0.2 + 0.4 * complexes(2, 3, seed=i) for i in range(number)]
    elif name in BINARY:
        args = operands(name, (2, 3), (2, 3))
    else:
        args = [drawn(Draw(name), UNARY[name], 2, 3)]
    _, found, _, g, _ = linearized(NUMPY, name, tuple(args), {}, lambda x: x)
    theirs = [torch.tensor(a, requires_grad=True) for a in args]
    function = getattr(torch, {"sign": "sgn", "conj": "conj_physical"}.get(name, name))
    wanted = torch.autograd.grad(function(*theirs), theirs, torch.tensor(g))
    for ours, torchs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, torchs.numpy(force=True), rtol=1e-12, atol=1e-12)
