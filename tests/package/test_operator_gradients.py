"""Python's operators on Tensors without views: derivatives of all thirteen, reflected and in place;
versions, errors.

The derivatives are written out here, by the textbook. What operators promote to and what they
mutate is the matter of the tests of the namespace.
"""

from __future__ import annotations

import operator
from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import values
from leaves import const, leaf
from operators import BITWISE, A, B, W, apply, check, gradients, requires

import multigrad as mg
from multigrad.errors import GradientError, MixedBackendsError

# Stem, sign; of a and b: the derivative by a and by b (None: no gradient, by declaration).
ELEMENTWISE: dict[str, tuple[str, Any, Any]] = {
    "add": ("+", lambda a, b: 1.0, lambda a, b: 1.0),
    "sub": ("-", lambda a, b: 1.0, lambda a, b: -1.0),
    "mul": ("*", lambda a, b: b, lambda a, b: a),
    "truediv": ("/", lambda a, b: 1 / b, lambda a, b: -a / b**2),
    "mod": ("%", lambda a, b: 1.0, lambda a, b: -np.floor(a / b)),
    "pow": ("**", lambda a, b: b * a ** (b - 1), lambda a, b: a**b * np.log(a)),
    "floordiv": ("//", None, None),
}
STEMS = (*ELEMENTWISE, "matmul", *BITWISE)
SMOOTH = [s for s, (_, da, _) in ELEMENTWISE.items() if da is not None]
FORMS = ("operator", "reflected", "in place")


# ----- first and second derivatives -----


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stem", SMOOTH)
def test_of_two_tensors(xp: Any, stem: str, form: str) -> None:
    a, b = leaf(xp, A), leaf(xp, B)
    y = apply(stem, form, a, b)
    _, da, db = ELEMENTWISE[stem]
    check(y, apply(stem, "operator", A, B))
    ga, gb = gradients(y, (a, b), const(xp, W))
    check(ga, W * da(A, B))
    check(gb, W * db(A, B))
    assert ga.shape == gb.shape == (3,) and ga.dtype == gb.dtype == xp.float64


@pytest.mark.parametrize("form", ["operator", "in place"])
@pytest.mark.parametrize("stem", SMOOTH)
def test_second_derivatives(xp: Any, stem: str, form: str) -> None:
    """Those of the sum of gradients, against central differences of the first."""
    a, b = leaf(xp, A), leaf(xp, B)
    _, da, db = ELEMENTWISE[stem]
    first = mg.autograd.grad(xp.sum(apply(stem, form, a, b)), (a, b), create_graph=True)
    total = xp.sum(first[0] * const(xp, W)) + xp.sum(first[1])
    step = 1e-5

    def along(a: Any, b: Any) -> Any:
        return W * da(a, b) + db(a, b)

    expected = [
        (along(A + step, B) - along(A - step, B)) / (2 * step),
        (along(A, B + step) - along(A, B - step)) / (2 * step),
    ]
    if total.requires_grad:
        got = mg.autograd.grad(total, (a, b), allow_unused=True, materialize_grads=True)
        for g, e in zip(got, expected, strict=True):
            check(g, e + np.zeros(3), rtol=1e-6)
    else:
        np.testing.assert_allclose(np.asarray(expected) + np.zeros((2, 3)), 0)


SHAPES: list[tuple[Any, Any]] = [
    ((2, 3), (3,)),
    ((2, 3), (2, 1)),
    ((2, 3), ()),
    ((1, 3), (1, 1)),
    ((3,), (3,)),
    ((0, 3), (3,)),
    ((), ()),
]


# The shapes are the business of code that all libraries share; JAX would compile each.
@pytest.mark.parametrize(
    ("backend", "stem", "shapes"),
    [*product(("numpy", "strict"), SMOOTH, SHAPES), *product(["jax"], ["mul"], SHAPES[:3])],
    ids=str,
    indirect=["backend"],
)
@pytest.mark.parametrize("form", FORMS)
def test_broadcasting(xp: Any, stem: str, form: str, shapes: Any) -> None:
    """A gradient has the shape of its operand; in place, only the other operand may be
    broadcast.
    """
    shape1, shape2 = shapes
    random = np.random.default_rng(1)
    a, b = random.uniform(2, 3, shape1), random.uniform(0.5, 1.5, shape2)
    _, da, db = ELEMENTWISE[stem]
    x, v = leaf(xp, a), leaf(xp, b)
    y = apply(stem, form, x, v)
    y.backward(xp.ones_like(y))
    full = np.zeros(shape1)
    check(x.grad, da(a, b) + full)
    axes = tuple(range(len(shape1) - len(shape2))) + tuple(
        i - len(shape2) for i, n in enumerate(shape2) if n == 1 and shape1[i - len(shape2)] != 1
    )
    check(v.grad, np.sum(db(a, b) + full, axis=axes).reshape(shape2))
    assert x.grad.shape == shape1 and v.grad.shape == shape2


@pytest.mark.parametrize("scalar", [True, 2, 2.5])
@pytest.mark.parametrize("stem", SMOOTH)
def test_python_scalars_on_both_sides(xp: Any, backend: str, stem: str, scalar: Any) -> None:
    _, da, db = ELEMENTWISE[stem]
    s = float(scalar)
    # a boolean goes with booleans only, says the standard
    if scalar is True and backend == "strict":
        with pytest.raises(
            TypeError, match="Python bool scalars can only be promoted with bool arrays"
        ):
            apply(stem, "operator", leaf(xp, A), scalar)
        return
    for form in ("operator", "in place"):
        x = leaf(xp, A)
        y = apply(stem, form, x, scalar)
        check(y, apply(stem, "operator", A, s))
        check(gradients(y, x, const(xp, W))[0], W * da(A, s))
    x = leaf(xp, B)
    y = apply(stem, "operator", scalar, x)
    check(y, apply(stem, "operator", s, B))
    check(gradients(y, x, const(xp, W))[0], W * db(s, B))


@pytest.mark.parametrize("stem", ["add", "sub", "mul", "truediv", "pow"])
def test_complex_scalars(xp: Any, stem: str) -> None:
    """Of a real operand the gradient is the real part, and real."""
    _, da, db = ELEMENTWISE[stem]
    z, w = 0.5 + 2j, np.asarray([1.0, 2j, 1 - 1j])
    x, v = leaf(xp, A), leaf(xp, B)
    for y, operand, derivative in (
        (apply(stem, "operator", x, z), x, da(A, z)),
        (apply(stem, "operator", z, v), v, db(z, B)),
    ):
        assert y.dtype == xp.complex128
        (g,) = gradients(y, operand, const(xp, w, "complex128"))
        assert g.dtype == xp.float64
        check(g, np.real(w * np.conj(derivative)))
    c = leaf(xp, A + 1j, "complex128")
    check(
        gradients(apply(stem, "operator", c, 2), c, const(xp, w, "complex128"))[0],
        w * np.conj(da(A + 1j, 2.0)),
    )
    check(
        gradients(apply(stem, "in place", c, z), c, const(xp, w, "complex128"))[0],
        w * np.conj(da(A + 1j, z)),
    )


@pytest.mark.parametrize("form", ["operator", "in place"])
@pytest.mark.parametrize("stem", ["add", "sub", "mul", "truediv", "pow"])
def test_complex_operands(xp: Any, stem: str, form: str) -> None:
    """PyTorch's convention: the gradient is w times the conjugate of the derivative, its real part
    for a real operand.
    """
    _, da, db = ELEMENTWISE[stem]
    a, b, w = A + 1j, B - 0.5j, np.asarray([1.0, 2j, 1 - 1j])
    x, v, r = leaf(xp, a, "complex128"), leaf(xp, b, "complex128"), leaf(xp, B)
    for other, raw in ((v, b), (r, B)):
        ga, gb = gradients(apply(stem, form, x, other), (x, other), const(xp, w, "complex128"))
        check(ga, w * np.conj(da(a, raw)))
        expected = w * np.conj(db(a, raw))
        check(gb, expected if other is v else np.real(expected))
        assert gb.dtype == other.dtype


@pytest.mark.parametrize("stem", ["add", "mul", "pow", "mod", "truediv"])
def test_each_operand_keeps_its_precision(xp: Any, stem: str) -> None:
    """In place too, where the result is cast back: what the operation keeps of the old value must
    outlive that.
    """
    _, da, db = ELEMENTWISE[stem]
    for form in ("operator", "reflected", "in place"):
        a, b = leaf(xp, A, "float32"), leaf(xp, B)
        y = apply(stem, form, a, b)
        assert y.dtype == (xp.float32 if form == "in place" else xp.float64)
        ga, gb = gradients(y, (a, b), const(xp, W, "float32" if form == "in place" else "float64"))
        assert ga.dtype == xp.float32 and gb.dtype == xp.float64
        check(ga, W * da(A, B), rtol=1e-5)
        check(gb, W * db(A, B), rtol=1e-5)
    x = leaf(xp, A, "float32")
    for y in (
        apply(stem, "operator", x, 2.5),
        apply(stem, "operator", 2, x),
        apply(stem, "in place", x, 2),
    ):
        assert y.dtype == xp.float32
        assert gradients(y, x, const(xp, W, "float32"))[0].dtype == xp.float32


@pytest.mark.parametrize("stem", SMOOTH)
def test_one_operand_is_a_constant(xp: Any, stem: str) -> None:
    _, da, db = ELEMENTWISE[stem]
    for form in ("operator", "in place"):
        a, b = leaf(xp, A), const(xp, B)
        check(gradients(apply(stem, form, a, b), a, const(xp, W))[0], W * da(A, B))
        assert b.grad is None
        a, b = const(xp, A), leaf(xp, B)
        y = apply(stem, form, a, b)
        assert y.requires_grad and (y is a) is (form == "in place")
        check(gradients(y, b, const(xp, W))[0], W * db(A, B))


@pytest.mark.parametrize("form", ["operator", "in place"])
@pytest.mark.parametrize("stem", SMOOTH)
def test_an_operand_with_itself(xp: Any, stem: str, form: str) -> None:
    _, da, db = ELEMENTWISE[stem]
    x = leaf(xp, A)
    y = x * 1.0
    y = apply(stem, "operator", y, y) if form == "operator" else getattr(operator, f"i{stem}")(y, y)
    check(y, apply(stem, "operator", A, A))
    check(gradients(y, x, const(xp, W))[0], W * (da(A, A) + db(A, A)))


FACTORS: list[tuple[Any, Any]] = [
    ((2, 3), (3, 3)),
    ((2, 2, 3), (3, 3)),
    ((2, 0), (0, 0)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
]


# Of the last three pairs the result has another shape than the left operand, so it cannot be
# written there.
@pytest.mark.parametrize(
    ("backend", "form", "shapes"),
    [
        *product(("numpy", "strict"), FORMS[:2], FACTORS),
        *product(("numpy", "strict"), FORMS[2:], FACTORS[:3]),
        *product(["jax"], FORMS, FACTORS[:1]),
    ],
    ids=str,
    indirect=["backend"],
)
def test_matmul(xp: Any, form: str, shapes: Any) -> None:
    shape1, shape2 = shapes
    random = np.random.default_rng(2)
    a, b = random.normal(size=shape1), random.normal(size=shape2)
    x, v = leaf(xp, a), leaf(xp, b)
    y = apply("matmul", form, x, v)
    check(y, a @ b)
    w = random.normal(size=y.shape)
    ga, gb = gradients(y, (x, v), const(xp, w))
    assert ga.shape == shape1 and gb.shape == shape2
    for g, at, which in ((ga, a, 0), (gb, b, 1)):
        expected = np.zeros(at.shape)
        for i in np.ndindex(at.shape):  # linear in each: the derivative is the product with a unit
            unit = np.zeros(at.shape)
            unit[i] = 1
            expected[i] = np.sum(w * (unit @ b if which == 0 else a @ unit))
        check(g, expected)


@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
@pytest.mark.parametrize("stem", SMOOTH)
def test_raw_arrays_beside_tensors(xp: Any, backend: str, stem: str) -> None:
    """On either side. On the left of `+=` a raw array is not written with what requires grad; JAX
    makes a Tensor, NumPy raises.
    """
    _, da, db = ELEMENTWISE[stem]
    raw_a, raw_b = const(xp, A).array, const(xp, B).array
    x, v = leaf(xp, A), leaf(xp, B)
    check(gradients(apply(stem, "operator", x, raw_b), x, const(xp, W))[0], W * da(A, B))
    check(gradients(apply(stem, "operator", raw_a, v), v, const(xp, W))[0], W * db(A, B))
    check(gradients(apply(stem, "in place", x, raw_b), x, const(xp, W))[0], W * da(A, B))
    # which never lets the operand on the right decide what becomes of the array on the left
    if backend == "numpy":
        with pytest.raises(GradientError, match="a NumPy array cannot keep its history"):
            getattr(operator, f"i{stem}")(raw_a, v)
        assert requires(np.float64(2.0) * x) and requires(x ** np.float64(2.0))
    else:
        y = getattr(operator, f"i{stem}")(raw_a, v)
        check(gradients(y, v, const(xp, W))[0], W * db(A, B))
    np.testing.assert_array_equal(raw_a, A)


# ----- in place -----


@pytest.mark.parametrize("stem", STEMS)
def test_in_place_is_in_place(xp: Any, stem: str) -> None:
    """The same Tensor, the same dtype, one version more; recorded or not."""
    integers = stem in BITWISE
    for recorded in (False, True):
        if stem == "matmul":
            a, b = np.eye(2) + 1, np.asarray([[1.0, 2.0], [3.0, 4.0]])
        else:
            a, b = (np.asarray([6, 5]), np.asarray([1, 2])) if integers else (A, B)
        t = const(xp, a, str(a.dtype))
        if recorded and not integers:
            t = t * leaf(xp, 1.0)
        other, alias, dtype = const(xp, b, str(b.dtype)), t, t.dtype
        t = getattr(operator, f"i{stem}")(t, other)
        assert t is alias and t.dtype == dtype and t._version == 1 and other._version == 0
        check(t, apply(stem, "operator", a, b))
        assert t.requires_grad is (recorded and not integers and stem != "floordiv")


@pytest.mark.parametrize("stem", SMOOTH)
def test_in_place_without_recording(xp: Any, stem: str) -> None:
    """Under no_grad the value changes and the history stays, as in PyTorch; leaves may be
    written.
    """
    x = leaf(xp, A)
    y = x * 3.0
    with mg.no_grad():
        getattr(operator, f"i{stem}")(y, const(xp, B))
        getattr(operator, f"i{stem}")(x, 2.0)
    check(y, apply(stem, "operator", A * 3, B))
    check(x, apply(stem, "operator", A, 2.0))
    assert y.grad_fn.name() == "MultiplyBackward" and y._version == 1
    assert x.is_leaf and x.requires_grad and x._version == 1
    xp.sum(y).backward()
    check(x.grad, [3, 3, 3])


def test_an_operation_without_gradient_ends_the_history(xp: Any) -> None:
    """As `y = y // 2` does: what came before is no longer part of the value."""
    x = leaf(xp, A)
    for write in (
        lambda t: t.__ifloordiv__(2.0),
        lambda t: t.__ifloordiv__(const(xp, B)),
        lambda t: t.__ifloordiv__(leaf(xp, B)),
        lambda t: t.floor_divide_(2.0),
        lambda t: t.isnan_(),
        lambda t: t.greater_(const(xp, B)),
    ):
        y = x * 3.0
        y = write(y)
        assert (
            not y.requires_grad and y.grad_fn is None and y.dtype == xp.float64 and y._version == 1
        )
        z = y * x
        check(gradients(z, x, xp.ones_like(z))[0], values(y))


@pytest.mark.parametrize("stem", [s for s in STEMS if s not in BITWISE])
def test_a_leaf_is_not_written(xp: Any, stem: str) -> None:
    x = leaf(xp, np.eye(2) + 1)
    with pytest.raises(
        GradientError,
        match="a leaf Variable that requires grad is being used in an in-place operation",
    ):
        getattr(operator, f"i{stem}")(x, const(xp, np.eye(2)))
    check(x, np.eye(2) + 1)
    assert x._version == 0


SPOILT = (
    "one of the variables needed for gradient computation has been modified by an inplace operation"
)
# Which operands an operation keeps, so that they must not change before the backward pass: a's, b's
# and the result's.
KEPT = {
    "add": (False, False, False),
    "sub": (False, False, False),
    "mul": (True, True, False),
    "truediv": (True, True, False),
    "mod": (True, True, False),
    "pow": (True, True, True),
}


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("form", ["operator", "in place"])
@pytest.mark.parametrize("stem", SMOOTH)
def test_what_must_not_change(xp: Any, stem: str, form: str, which: int) -> None:
    x = leaf(xp, A)
    a, b = x * 1.0, leaf(xp, B) * 1.0
    y = apply(stem, form, a, b)  # in place on a copy of a, so a may change then
    changed = (a, b, y)[which]
    changed += 1
    total = xp.sum(y)
    if KEPT[stem][which] and not (form == "in place" and which == 0):
        with pytest.raises(GradientError, match=SPOILT):
            total.backward()
    else:
        total.backward()


def test_what_is_refused_leaves_the_tensor_as_it_was(xp: Any, backend: str) -> None:
    other = mg.namespace("strict" if backend == "numpy" else "numpy")
    lost = "result type .*{} can't be cast to the desired output type .*{}"
    cases: list[tuple[str, Any, Any, Any, Any]] = [
        (
            "int64",
            "add",
            const(xp, [0.5, 0.5]),
            (RuntimeError, TypeError),
            lost.format("float64", "int64") + "|promot",
        ),
        (
            "float64",
            "mul",
            const(xp, [1j, 1j], "complex128"),
            RuntimeError,
            lost.format("complex128", "float64"),
        ),
        ("float64", "mul", 1j, RuntimeError, lost.format("complex128", "float64")),
        (
            "float64",
            "add",
            const(xp, np.ones((2, 2))),
            RuntimeError,
            r"output with shape \[2\] doesn't match the broadcast shape \[2, 2\]",
        ),
        (
            "float64",
            "matmul",
            const(xp, np.ones((2, 3))),
            RuntimeError,
            r"output with shape \[2\] doesn't match the broadcast shape \[3\]",
        ),
        (
            "float64",
            "add",
            const(xp, np.ones(3)),
            (ValueError, RuntimeError, TypeError),
            "broadcast|shape",
        ),
        ("float64", "matmul", 2.0, TypeError, "unsupported operand"),
        (
            "float64",
            "add",
            const(other, [1.0, 1.0]),
            MixedBackendsError,
            "got arrays of two backends",
        ),
        ("float64", "pow", "2", TypeError, "unsupported operand"),
        ("float64", "add", None, TypeError, "unsupported operand"),
        ("float64", "lshift", 1, TypeError, "shift"),
    ]
    for dtype, stem, operand, error, text in cases:
        for recorded in (False, True):
            t = (
                leaf(xp, [1.0, 2.0]) * 1.0
                if recorded and dtype == "float64"
                else const(xp, [1, 2], dtype)
            )
            with pytest.raises(error, match=text):
                getattr(operator, f"i{stem}")(t, operand)
            check(t, [1, 2])
            assert t._version == 0


def test_statements_on_attributes_and_items(xp: Any) -> None:
    class Model:
        w: Any = None

    m, x = Model(), leaf(xp, A)
    m.w = x * 2.0
    first = m.w
    m.w += 1.0
    several = [m.w, x]
    several[0] *= 3.0
    assert several[0] is first
    check(gradients(first, x, xp.ones_like(x))[0], [6, 6, 6])


def test_a_chain_of_writes(xp: Any) -> None:
    """y = ((x + 1) * x - x) / x ** 2, each step in place: the derivative of 1."""
    x = leaf(xp, A)
    y = x * 1.0
    y += 1.0
    y *= x
    y -= x
    y /= x**2
    check(y, [1, 1, 1])
    (g,) = mg.autograd.grad(xp.sum(y), x, create_graph=True)
    check(g, [0, 0, 0])
    check(gradients(g, x, xp.ones_like(x))[0], [0, 0, 0])


@pytest.mark.parametrize("stem", SMOOTH)
def test_in_place_inside_a_transformation(xp: Any, stem: str) -> None:
    _, da, _ = ELEMENTWISE[stem]

    def loss(x: Any) -> Any:
        y = x * 1.0
        before = y
        y = getattr(operator, f"i{stem}")(y, 1.5)
        assert y is before and y._version == 1
        return xp.sum(y)

    check(mg.func.grad(loss)(const(xp, A).array), da(A, 1.5) + np.zeros(3))
    if xp.__name__.endswith("jax"):
        jax = pytest.importorskip("jax")
        check(jax.jit(mg.func.grad(loss))(jax.numpy.asarray(A)), da(A, 1.5) + np.zeros(3))


# ----- twins -----


TWINS: dict[str, tuple[Any, ...]] = {
    "sin_": (),
    "exp_": (),
    "sqrt_": (),
    "negative_": (),
    "abs_": (),
    "reciprocal_": (),
    "square_": (),
    "tanh_": (),
    "log_": (),
    "add_": (B,),
    "multiply_": (B,),
    "divide_": (2.0,),
    "pow_": (1.5,),
    "maximum_": (B + 1,),
    "atan2_": (B,),
    "copysign_": (-B,),
    "hypot_": (B,),
    "logaddexp_": (B,),
    "clip_": (2.5, 4.0),
    "remainder_": (B,),
    "floor_": (),
    "sign_": (),
}


@pytest.mark.parametrize("name", TWINS)
def test_twins(xp: Any, name: str) -> None:
    """`t.sin_()` is `t = t.sin()` in the memory of t: value, gradient, version, second
    derivative.
    """
    arguments = [const(xp, v) if isinstance(v, np.ndarray) else v for v in TWINS[name]]
    found = []
    for twin in (True, False):
        x = leaf(xp, A)
        y = x * 1.0
        z = getattr(y, name)(*arguments) if twin else getattr(y, name[:-1])(*arguments)
        assert (z is y) is twin and z._version == int(twin)
        (g,) = mg.autograd.grad(xp.sum(z), x, create_graph=True)
        h = gradients(g, x, xp.ones_like(x))[0] if g.requires_grad else xp.zeros_like(x)
        found.append((values(z), values(g), values(h)))
    for got, expected in zip(*found, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_result_that_is_kept_must_not_change(xp: Any) -> None:
    """Of `exp_` the result is kept, and that is the memory that was written."""
    for name, kept in (("exp_", True), ("sqrt_", True), ("sin_", False)):
        x = leaf(xp, A)
        y = x * 1.0
        getattr(y, name)()
        y += 1.0
        if kept:
            with pytest.raises(GradientError, match=SPOILT):
                xp.sum(y).backward()
        else:
            xp.sum(y).backward()
            check(x.grad, np.cos(A))


# ----- PyTorch -----


PAIRS: dict[str, tuple[Any, Any]] = {
    "tensors": (A, B),
    "broadcast": (A, np.asarray(1.75)),
    "scalar behind": (A, 1.75),
    "integer behind": (A, 3),
    "scalar before": (1.75, B),
    "complex": (A - 1j, B + 0.5j),
    "real and complex": (A, B + 0.5j),
    "matrices": (np.arange(9.0).reshape(3, 3), np.outer(B, A)),
    "complex matrices": (np.arange(9.0).reshape(3, 3) * 1j, np.outer(B + 0.5j, A)),
}
KNOWN = [
    (stem, pair, form)
    for stem, pair, form in product(SMOOTH, PAIRS, ("operator", "in place"))
    if "matrices" not in pair
    and not (form == "in place" and pair in ("scalar before", "real and complex"))
    # PyTorch has no derivative of the last
    and not (stem == "mod" and pair in ("complex", "real and complex", "scalar before"))
]
KNOWN += [
    ("matmul", pair, form)
    for pair in ("matrices", "complex matrices")
    for form in ("operator", "in place")
]


@pytest.mark.parametrize(("stem", "pair", "form"), KNOWN)
def test_as_pytorch(stem: str, pair: str, form: str) -> None:
    """Value, gradients and second derivatives are PyTorch's."""
    torch = pytest.importorskip("torch")
    results = []
    for lib in (mg.namespace("numpy"), torch):
        grad = mg.autograd.grad if lib is not torch else torch.autograd.grad
        x, v = (
            a
            if isinstance(a, (int, float))
            else leaf(lib, a, str(a.dtype))
            if lib is not torch
            else torch.tensor(a, requires_grad=True)
            for a in PAIRS[pair]
        )
        leaves = [t for t in (x, v) if not isinstance(t, (int, float))]
        y = (
            apply(stem, "operator", x, v)
            if form == "operator"
            else getattr(operator, f"i{stem}")(x * 1.0, v)
        )
        first = grad(
            lib.sum(lib.real(y * lib.conj(y)) if "complex" in pair else y**2),
            leaves,
            create_graph=True,
        )
        second = grad(sum(lib.sum(lib.real(g)) for g in first), leaves, allow_unused=True)
        second = [
            lib.zeros_like(t) if g is None else g for g, t in zip(second, leaves, strict=True)
        ]
        results.append([array_of(t) for t in (y, *first, *second)])
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype or not np.any(ours)
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


def array_of(t: Any) -> Any:
    return values(t) if isinstance(t, mg.Tensor) else t.detach().resolve_conj().numpy(force=True)
