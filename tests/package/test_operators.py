"""Python's operators on Tensors without views: comparisons, bits, hashes, foreign operands, casts to
scalars; derivatives of all thirteen, reflected and in place; versions, errors.

The derivatives are written out here, by the textbook. What operators promote to and what they
mutate is the matter of test_promotion.py.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from conftest import values
from leaves import const, leaf, vector

import multigrad as mg
from multigrad.errors import GradientError

BITWISE = ("and", "or", "xor", "lshift", "rshift")
A, B, W = np.asarray([3.5, 2.25, 5.0]), np.asarray([0.75, 1.5, 2.25]), np.asarray([1.0, -2.0, 0.5])


def apply(stem: str, form: str, a: Any, b: Any) -> Any:
    """a OP b, by the operator, by the reflected method of b, or in place on a (on a copy of a
    leaf).
    """
    if form == "reflected":
        return getattr(b, f"__r{stem}__")(a)
    if form == "in place":
        return getattr(operator, f"i{stem}")(a * 1 if getattr(a, "requires_grad", 0) else a, b)
    return getattr(operator, {"and": "and_", "or": "or_"}.get(stem, stem))(a, b)


def check(t: Any, expected: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(values(t), expected, rtol=rtol, atol=1e-14)


def gradients(y: Any, inputs: Any, weights: Any) -> Any:
    return mg.autograd.grad(y, inputs, grad_outputs=weights)


# The derivatives by a and by b (None: no gradient, by declaration).
ELEMENTWISE: dict[str, tuple[Any, Any]] = {
    "add": (lambda a, b: 1.0, lambda a, b: 1.0),
    "sub": (lambda a, b: 1.0, lambda a, b: -1.0),
    "mul": (lambda a, b: b, lambda a, b: a),
    "truediv": (lambda a, b: 1 / b, lambda a, b: -a / b**2),
    "mod": (lambda a, b: 1.0, lambda a, b: -np.floor(a / b)),
    "pow": (lambda a, b: b * a ** (b - 1), lambda a, b: a**b * np.log(a)),
    "floordiv": (None, None),
}
STEMS = (*ELEMENTWISE, "matmul", *BITWISE)
SMOOTH = [s for s, (da, _) in ELEMENTWISE.items() if da is not None]
FORMS = ("operator", "reflected", "in place")


# ----- comparisons, bits, unary operators -----


@pytest.mark.parametrize("stem", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_have_no_gradient(xp: Any, stem: str) -> None:
    compare: Callable[[Any, Any], Any] = getattr(operator, stem)
    x, v = leaf(xp, [1.0, 2.0, 3.0]), leaf(xp, [2.0, 2.0, 2.0])
    expected = compare(np.asarray([1.0, 2.0, 3.0]), 2.0)
    for found in (compare(x, v), compare(x, 2.0), compare(x, 2), compare(x, v.detach())):
        assert found.dtype == xp.bool and not found.requires_grad and found.grad_fn is None
        np.testing.assert_array_equal(values(found), expected)
    np.testing.assert_array_equal(
        values(compare(2.0, x)), compare(2.0, np.asarray([1.0, 2.0, 3.0]))
    )


def test_equality_with_what_is_no_array(xp: Any) -> None:
    x = leaf(xp, A)
    assert (x == None) is False and (x != None) is True and (x == "a") is False  # noqa: E711
    with pytest.raises(TypeError, match="not supported between"):
        operator.lt(x, None)
    with pytest.raises(TypeError, match="not supported between"):
        operator.ge(x, "a")


def test_tensors_are_hashed_by_identity(xp: Any) -> None:
    x, y = leaf(xp, A), leaf(xp, A)
    found = {x: "x", y: "y"}
    assert found[x] == "x" and found[y] == "y" and hash(x) != hash(y) and len({x, y, x}) == 2
    x.detach().__iadd__(1.0)
    assert found[x] == "x"


@pytest.mark.parametrize("stem", BITWISE)
def test_bitwise_operators(xp: Any, stem: str) -> None:
    n, m = np.asarray([6, 5, 12]), np.asarray([3, 1, 2])
    for form in ("operator", "reflected", "in place"):
        found = apply(stem, form, const(xp, n, "int64"), const(xp, m, "int64"))
        np.testing.assert_array_equal(values(found), apply(stem, "operator", n, m))
        assert found.dtype == xp.int64 and not found.requires_grad
    np.testing.assert_array_equal(
        values(apply(stem, "operator", 5, const(xp, m, "int64"))), apply(stem, "operator", 5, m)
    )
    with pytest.raises((TypeError, ValueError)):
        apply(stem, "operator", leaf(xp, A), const(xp, m, "int64"))


def test_unary_operators(xp: Any) -> None:
    x = leaf(xp, [-1.5, 0.0, 2.0])
    for y, value, slope in (
        (-x, [1.5, 0, -2], [-1, -1, -1]),
        (+x, [-1.5, 0, 2], [1, 1, 1]),
        (abs(x), [1.5, 0, 2], [-1, 0, 1]),
    ):
        check(y, value)
        check(gradients(y, x, xp.ones_like(x))[0], slope)
        assert y is not x
    np.testing.assert_array_equal(values(~const(xp, [True, False], "bool")), [False, True])
    np.testing.assert_array_equal(values(~const(xp, [0, 5], "int64")), [-1, -6])
    with pytest.raises((TypeError, ValueError)):
        ~x


def test_operators_that_the_standard_does_not_have(xp: Any) -> None:
    x = leaf(xp, A)
    for expression in (
        lambda: divmod(x, 2.0),
        lambda: divmod(2.0, x),
        lambda: x @ 2.0,
        lambda: 2 @ x,
        lambda: x @ None,
    ):
        with pytest.raises(TypeError, match="unsupported operand"):
            expression()
    with pytest.raises(TypeError):
        pow(x, 2, 3)


def test_the_operator_of_matrix_products_takes_no_numbers_at_any_level(xp: Any) -> None:
    x = const(xp, A)
    for number in (2, 1j):
        for multiply in (lambda z, n=number: z @ n, lambda z, n=number: n @ z):
            for run in (
                lambda f: mg.func.jvp(f, (x,), (x,)),
                lambda f: mg.func.vmap(f)(x),
                lambda f: mg.func.grad(f)(x),
            ):
                for _ in range(3):  # straight code or not
                    with pytest.raises(TypeError, match="unsupported operand"):
                        run(multiply)


def test_other_operands_get_their_turn(xp: Any) -> None:
    class Unit:
        def __radd__(self, other: Any) -> str:
            return "mine"

        def __rmatmul__(self, other: Any) -> str:
            return "mine"

        def __eq__(self, other: Any) -> Any:
            return "equal"

        __hash__ = object.__hash__

    x = const(xp, A)
    assert x + Unit() == "mine" and x @ Unit() == "mine" and (x == Unit()) == "equal"
    y = x
    y += Unit()
    assert y == "mine" and x._version == 0
    with pytest.raises(TypeError, match="unsupported operand"):
        x - Unit()


# ----- casts to Python scalars -----


CASTS: list[tuple[Any, str, Any]] = [
    (float, "float64", 2.5),
    (int, "float64", 2.0),
    (complex, "float64", 2.5),
    (bool, "float64", 2.5),
    (complex, "complex128", 1 + 2j),
    (int, "int64", 7),
    (float, "int64", 7),
    (bool, "int64", 0),
    (bool, "bool", True),
    (int, "bool", True),
    (float, "float32", 0.5),
]


@pytest.mark.parametrize(("kind", "dtype", "value"), CASTS)
def test_casts(xp: Any, kind: Any, dtype: str, value: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = kind(const(xp, value, dtype))
    assert type(found) is kind and found == kind(value)


@pytest.mark.parametrize("kind", [float, int, complex])
def test_casts_that_drop_a_gradient_warn(xp: Any, kind: Any) -> None:
    x = leaf(xp, 2.0)
    with pytest.warns(
        UserWarning,
        match=rf"Converting a tensor with requires_grad=True to a scalar by {kind.__name__}\(\) "
        r"drops its gradient",
    ):
        assert kind(x * 1.5) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bool(x) and x.item() == 2.0 and kind(x.detach()) == 2 and (x > 1) and not (x < 1)


def test_casts_that_are_refused(xp: Any) -> None:
    for kind in (float, int):
        with pytest.raises(TypeError):
            kind(const(xp, 1j, "complex128"))
    for kind in (float, int, complex, bool):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            kind(const(xp, [1.0, 2.0]))
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            kind(const(xp, np.zeros((0,))))
    with pytest.raises(ValueError):
        int(const(xp, np.nan))
    with pytest.raises(OverflowError):
        int(const(xp, np.inf))


def test_index(xp: Any) -> None:
    n = const(xp, 2, "int64")
    assert (
        operator.index(n) == 2
        and [10, 20, 30][n] == 30
        and list(range(n)) == [0, 1]
        and "ab" * n == "abab"
        and [0] * n == [0, 0]
    )
    for bad in (const(xp, 2.0), const(xp, True, "bool"), const(xp, [1, 2], "int64")):
        with pytest.raises(
            TypeError, match="only integer Tensors of one element can be used as an index"
        ):
            operator.index(bad)


# ----- first and second derivatives -----


@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), ()), ((0, 3), (3,)), ((3,), (3,))],
    ids=str,
)
@pytest.mark.parametrize("stem", SMOOTH)
@pytest.mark.parametrize("form", FORMS)
def test_broadcasting(stem: str, form: str, shapes: Any) -> None:
    """A gradient has the shape of its operand; in place, only the other operand may be
    broadcast.
    """
    shape1, shape2 = shapes
    random = np.random.default_rng(1)
    a, b = random.uniform(2, 3, shape1), random.uniform(0.5, 1.5, shape2)
    da, db = ELEMENTWISE[stem]
    x, v = vector(a), vector(b)
    y = apply(stem, form, x, v)
    y.backward(mg.ones_like(y))
    full = np.zeros(shape1)
    check(x.grad, da(a, b) + full)
    axes = tuple(range(len(shape1) - len(shape2))) + tuple(
        i - len(shape2) for i, n in enumerate(shape2) if n == 1 and shape1[i - len(shape2)] != 1
    )
    check(v.grad, np.sum(db(a, b) + full, axis=axes).reshape(shape2))
    assert x.grad.shape == shape1 and v.grad.shape == shape2


@pytest.mark.parametrize("stem", ["add", "sub", "mul", "truediv", "pow"])
def test_complex_scalars(xp: Any, stem: str) -> None:
    """Of a real operand the gradient is the real part, and real."""
    da, db = ELEMENTWISE[stem]
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


@pytest.mark.parametrize("stem", ["add", "mul", "pow", "mod", "truediv"])
def test_each_operand_keeps_its_precision(xp: Any, stem: str) -> None:
    """In place too, where the result is cast back: what the operation keeps of the old value must
    outlive that.
    """
    da, db = ELEMENTWISE[stem]
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
def test_an_operand_with_itself_in_place(xp: Any, stem: str) -> None:
    da, db = ELEMENTWISE[stem]
    x = leaf(xp, A)
    y = x * 1.0
    y = getattr(operator, f"i{stem}")(y, y)
    check(y, apply(stem, "operator", A, A))
    check(gradients(y, x, const(xp, W))[0], W * (da(A, A) + db(A, A)))


def test_a_tensor_that_is_added_to_an_array_of_jax() -> None:
    """Which no statement writes: it makes a Tensor."""
    jax = pytest.importorskip("jax")
    x = leaf(mg.namespace("jax"), A)
    y = jax.numpy.asarray(B)
    y += x
    check(gradients(y, x, x.detach())[0], A)


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


@pytest.mark.parametrize(
    ("stem", "operand", "message"),
    [
        ("mul", 1j, "can't be cast to the desired output type"),
        ("add", np.ones((2, 3)), "doesn't match the broadcast shape"),
        ("matmul", np.ones((3, 2)), "doesn't match the broadcast shape"),
        ("matmul", 2.0, "unsupported operand"),
        ("add", "an array of another backend", "got arrays of two backends"),
        ("pow", "2", "unsupported operand"),
        ("add", None, "unsupported operand"),
    ],
    ids=str,
)
@pytest.mark.parametrize("recorded", [False, True])
def test_what_is_refused_leaves_the_tensor_as_it_was(
    stem: str, operand: Any, message: str, recorded: bool
) -> None:
    if isinstance(operand, str) and operand != "2":
        pytest.importorskip("array_api_strict")
        operand = mg.namespace("strict").ones(3)
    t = vector(A) * 1.0 if recorded else mg.asarray(A.copy())
    with pytest.raises((RuntimeError, TypeError), match=message):
        getattr(operator, f"i{stem}")(t, operand)
    check(t, A)
    assert t._version == 0


# ----- twins -----


TWINS: dict[str, tuple[Any, ...]] = {
    "exp_": (),
    "sign_": (),
    "divide_": (2.0,),
    "pow_": (1.5,),
    "atan2_": (B,),
    "clip_": (2.5, 4.0),
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
            with pytest.raises(GradientError, match="modified by an inplace operation"):
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
