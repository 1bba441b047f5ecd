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
from leaves import const, leaf, vector
from operators import BITWISE, A, B, W, apply, check, gradients

import multigrad as mg
from multigrad.errors import GradientError

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
    _, da, db = ELEMENTWISE[stem]
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
def test_an_operand_with_itself_in_place(xp: Any, stem: str) -> None:
    _, da, db = ELEMENTWISE[stem]
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
