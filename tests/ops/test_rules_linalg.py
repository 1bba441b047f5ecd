"""Determinants, inverses, norms and products where the conformance suite cannot judge them: close to
the ends of the range and to singular matrices, of nothing at all, on libraries that lack a
function.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import array_api_compat.numpy
import numpy as np
import pytest
from rule_checks import NUMPY, complexes, lacking, reals

import multigrad as mg
from multigrad import registry
from multigrad.dispatch import codegen, runners
from multigrad.errors import GradientError
from multigrad_conformance.differences import slope

INF = np.inf
RANDOM = np.random.default_rng(0)
SQUARE = np.eye(4) + 0.1 * RANDOM.normal(size=(4, 4))


def regular(x: Any) -> Any:
    """A matrix near `x` that is well conditioned."""
    return x + 4 * np.eye(*x.shape[-2:])


def tensor(x: Any) -> Any:
    return mg.asarray(x, requires_grad=True)


# ----- singular points -----


def cofactors(x: Any) -> Any:
    """The derivative of the determinant, minor by minor."""
    n = len(x)
    return np.asarray(
        [
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(n)]
            for i in range(n)
        ]
    )


def singular(*values: float) -> Any:
    """A matrix of these singular values."""
    n = len(values)
    return np.linalg.qr(reals(n, n))[0] * np.asarray(values) @ np.linalg.qr(reals(n, n, seed=1))[0]


def test_a_determinant_of_two_tiny_singular_values_to_second_order() -> None:
    """Cofactors are cubic in the elements: their derivative along v is that of an interpolation
    through four points, but for rounding.
    """
    x, v = singular(2.0, 1.0, 1e-9, 1e-9), reals(4, 4, seed=3)
    t = tensor(x)
    (g,) = mg.autograd.grad(mg.linalg.det(t), t, create_graph=True)
    (h,) = mg.autograd.grad(g, t, grad_outputs=mg.asarray(v))
    np.testing.assert_allclose(np.asarray(g.detach()), cofactors(x), rtol=1e-12, atol=1e-12)
    weights = {1: 8 / 12, -1: -8 / 12, 2: -1 / 12, -2: 1 / 12}
    np.testing.assert_allclose(
        np.asarray(h),
        sum(w * cofactors(x + k * v) for k, w in weights.items()),
        rtol=1e-11,
        atol=1e-11,
    )


def test_third_derivative_of_a_determinant() -> None:
    """Of a regular matrix, and of a small one; at others it is refused."""

    def third(x: Any) -> Any:
        t = tensor(x)
        (g,) = mg.autograd.grad(mg.linalg.det(t), t, create_graph=True)
        (h,) = mg.autograd.grad((g * g).sum(), t, create_graph=True)
        return np.asarray(mg.autograd.grad((h * mg.asarray(reals(*x.shape))).sum(), t)[0])

    def loss(x: Any) -> float:
        t = tensor(x)
        (g,) = mg.autograd.grad(mg.linalg.det(t), t, create_graph=True)
        return float(np.sum(np.asarray(mg.autograd.grad((g * g).sum(), t)[0]) * reals(*x.shape)))

    for values in ((3.0, 1.0, 1.0, 1.0, 0.5), (3.0, 1.0, 1.0, 0.5), (3.0, 1.0, 0.0), (3.0, 0.0)):
        x = singular(*values)
        v = reals(*x.shape, seed=8)
        expected = slope(lambda t, x=x, v=v: loss(x + t * v))
        assert np.vdot(third(x), v) == pytest.approx(expected, rel=1e-5, abs=1e-7)
    with pytest.raises(
        GradientError,
        match="the third derivative at a singular matrix of more than 3 by 3 is not available",
    ):
        third(singular(3.0, 1.0, 1.0, 0.0))


def test_a_determinant_that_is_not_finite() -> None:
    """nan, where the library's decomposition would raise."""
    for bad in (np.nan, INF):
        with np.errstate(all="ignore"):
            (g,) = mg.autograd.grad(
                mg.linalg.det(t := tensor(np.asarray([np.eye(4), np.full((4, 4), bad)]))).sum(), t
            )
        np.testing.assert_allclose(np.asarray(g)[0], np.eye(4), atol=1e-14)
        assert np.all(np.isnan(np.asarray(g)[1]))


# ----- nothing, and the ends of the range -----


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("ord", "shape"),
    [
        ("fro", (0, 0)),
        ("nuc", (0, 0)),
        ("nuc", (0, 3)),
        ("nuc", (2, 3, 0)),
        (2, (0, 3)),
        (1, (3, 0)),
        (INF, (0, 3)),
        *((ord, (0, 2, 3)) for ord in ("fro", "nuc", 1, -1, 2, -2, INF, -INF)),
    ],
    ids=str,
)
def test_matrix_norm_of_nothing(ord: Any, shape: tuple[int, ...]) -> None:
    x = tensor(np.zeros(shape))
    (g,) = mg.autograd.grad(mg.linalg.matrix_norm(x, ord=ord).sum(), x, create_graph=True)
    assert g.shape == shape
    assert mg.autograd.grad(g.sum(), x)[0].shape == shape


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("ord", [1, 2, 3, 4, 1.5, 0.5, -1, INF])
def test_norms_of_any_size(ord: float, scale: float) -> None:
    """Where the norm is finite, its gradient is that of the same vector of usual size."""
    x = np.asarray([1.0, -2.0, 2.0])
    with np.errstate(all="ignore"):
        norm = mg.linalg.vector_norm(t := tensor(x * scale), ord=ord)
        expected = mg.autograd.grad(mg.linalg.vector_norm(u := tensor(x), ord=ord), u)[0]
        if 0 < float(norm.detach()) < INF:
            np.testing.assert_allclose(
                np.asarray(mg.autograd.grad(norm, t)[0]), np.asarray(expected), rtol=1e-9
            )


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float32", 1e-11), ("float32", 1e10), ("float64", 1e-80), ("float64", 1e80)],
)
def test_det_out_of_range_with_a_gradient_in_range(dtype, size):
    x = tensor((size * SQUARE).astype(dtype))
    (g,) = mg.autograd.grad(mg.linalg.det(x), x)
    one = np.dtype(dtype).type(size)
    unit = g.array / one / one / one
    np.testing.assert_allclose(
        unit,
        np.linalg.det(SQUARE) * np.linalg.inv(SQUARE).T,
        rtol=0,
        atol=1e-5 if dtype == "float32" else 1e-13,
    )


def test_a_library_that_finds_a_matrix_singular_whose_determinant_it_has_rounded(monkeypatch):
    """Its determinant and its inverse may come from two eliminations: the adjugate, which exists,
    does without the inverse then.
    """
    xp = mg.namespace("numpy")
    raw = xp.full((), 0.0)._elem.library.xp.linalg
    monkeypatch.setattr(raw, "det", lambda x: np.linalg.det(x) + 1e-17)
    x = tensor(np.diag([1.0, 2.0, 3.0, 0.0]))
    with runners.interpreted():  # what was learnt has the function of before
        (g,) = mg.autograd.grad(xp.linalg.det(x), x)
    np.testing.assert_allclose(g.array, np.diag([0.0, 0.0, 0.0, 6.0]), atol=1e-14)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3), (3, 2)])
@pytest.mark.parametrize(
    ("dtype", "size"), [("float32", 1e-13), ("float64", 1e-120), ("float64", 1e120)]
)
def test_pinv_of_small_and_large_matrices(shape, dtype, size):
    """pinv(s A) = pinv(A) / s, so the gradient is that at A, divided by s twice."""
    a = SQUARE[: shape[0], : shape[1]]
    weight = RANDOM.normal(size=shape[::-1])
    near, far = tensor(a), tensor((a * size).astype(dtype))
    (expected,) = mg.autograd.grad(mg.sum(mg.linalg.pinv(near) * weight), near)
    (g,) = mg.autograd.grad(mg.sum(mg.linalg.pinv(far) * weight.astype(dtype)), far)
    scale = np.dtype(dtype).type(size)
    np.testing.assert_allclose(
        g.array * scale * scale, expected.array, rtol=1e-4 if dtype == "float32" else 1e-12
    )


# ----- forms in terms of the standard alone -----


@pytest.fixture
def forms() -> Any:
    """The functions of a library that has none of them but a few."""
    return lacking("linalg", "solve", "svd", "svdvals").linalg


@pytest.mark.parametrize("make", [reals, complexes], ids=["real", "complex"])
def test_standard_only_forms(forms: Any, make: Any) -> None:
    library = array_api_compat.numpy.linalg

    def agree(name: str, *args: Any, **options: Any) -> None:
        with np.errstate(all="ignore"):
            own, expected = (getattr(where, name)(*args, **options) for where in (forms, library))
        several = isinstance(expected, tuple)
        for a, b in zip(
            own if several else (own,), expected if several else (expected,), strict=True
        ):
            assert np.asarray(a).dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)

    for shape in ((4, 4), (2, 3, 3), (1, 1), (0, 0), (2, 0, 0), (0, 2, 2)):
        x = make(*shape)
        for name in ("det", "slogdet", "inv"):
            agree(name, x)
        for n in (-3, 0, 1, 7):
            agree("matrix_power", x, n)
    for x in (np.zeros((3, 3)), np.asarray([[0.0, 2.0], [3.0, 0.0]]), np.ones((2, 2, 2))):
        agree("det", x)
        agree("slogdet", x)
    for shape in ((3, 3), (2, 4, 3), (2, 3, 4), (2, 0, 3)):
        x = make(*shape)
        for offset in (-5, -1, 0, 2):
            agree("diagonal", x, offset=offset)
            agree("trace", x, offset=offset)
        agree("trace", x, dtype=np.complex64)
        if 0 in shape:
            continue
        agree("pinv", x)
        agree("pinv", x, rtol=0.3)
        agree("matrix_rank", x)
        for ord in ("fro", None, "nuc", 1, -1, 2, -2, INF, -INF):
            agree("matrix_norm", x, ord=ord, keepdims=len(shape) == 3)
    agree("pinv", np.zeros((2, 0, 3)))
    agree("pinv", np.stack([np.ones((2, 3)), np.zeros((2, 3))]), rtol=np.asarray([0.1, 0.2]))
    agree("matrix_rank", np.stack([np.eye(2), np.ones((2, 2))]), rtol=np.asarray([0.1, 0.1]))
    agree("trace", np.arange(9).reshape(3, 3))
    for axis, keepdims in ((None, False), ((0, -1), True), (-1, False)):
        for ord in (1, 2, 2.5, 0.5, -1, 0, INF, -INF):
            agree("vector_norm", make(2, 3, 2), axis=axis, keepdims=keepdims, ord=ord)
    agree("cross", make(3, 1, 2), make(3, 4, 1, seed=1), axis=-3)
    agree("outer", make(2), make(3, seed=1))


def test_standard_only_forms_refuse(forms: Any) -> None:
    for name in ("det", "slogdet"):
        with pytest.raises(
            ValueError,
            match=rf"linalg\.{name}: the last two axes must have the same length; the shape is "
            r"\(2, 3\)",
        ):
            getattr(forms, name)(np.ones((2, 3)))
    with pytest.raises(ValueError, match="ord=3 is not one of 'fro', 'nuc'"):
        forms.matrix_norm(np.ones((2, 2)), ord=3)
    with pytest.raises(ValueError, match="both operands must have one dimension"):
        mg.linalg.outer(mg.asarray(np.ones((2, 2))), mg.asarray(np.ones(2)))


# ----- what it costs -----


def test_solve_keeps_the_matrix_and_solves_once() -> None:
    op = registry.OPS["linalg.solve"]
    for needs, kept in (
        ((True, False), {"x1", "ans"}),
        ((False, True), {"x1"}),
        ((True, True), {"x1", "ans"}),
    ):
        assert set(codegen.pullback(op, needs, False, True).plan) & {"x1", "x2", "ans"} == kept
    made: list[str] = []
    linalg = SimpleNamespace(solve=lambda *args: made.append("solve") or NUMPY.linalg.solve(*args))

    class Recording:
        def __getattr__(self, name: str) -> Any:
            return linalg if name == "linalg" else getattr(NUMPY, name)

    x1, x2 = regular(reals(3, 3)), reals(50, 3, 2)
    gradients = codegen.vjp(
        op, Recording(), [x1, x2], np.linalg.solve(x1, x2), reals(50, 3, 2, seed=3), (True, True)
    )
    assert made == ["solve"]
    assert [g.shape for g in gradients] == [(3, 3), (50, 3, 2)]


def test_a_batch_against_one_matrix_makes_no_batch_of_gradients() -> None:
    """The gradient of the matrix is one product; a sum over per-entry gradients would take batch
    times the memory.
    """
    made: list[tuple[int, ...]] = []

    class Recording:
        def __getattr__(self, name: str) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                out = getattr(NUMPY, name)(*args, **kwargs)
                made.append(getattr(out, "shape", ()))
                return out

            return call

    x1, x2 = reals(50, 2, 3), reals(3, 4)
    (_, g2) = codegen.vjp(
        registry.OPS["matmul"], Recording(), [x1, x2], x1 @ x2, reals(50, 2, 4), (False, True)
    )
    assert g2.shape == (3, 4)
    assert (50, 3, 4) not in made


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision_stays_whatever_numpy_s_scalars_are(dtype: str) -> None:
    x = regular(reals(3, 3)).astype(dtype)
    for name, options in (
        ("matrix_norm", {"ord": np.float64(2)}),
        ("matrix_norm", {"ord": np.int64(1)}),
        ("vector_norm", {"ord": np.float64(3)}),
        ("vector_norm", {"axis": np.int64(0), "ord": 0.5}),
        ("vector_norm", {"ord": np.inf, "keepdims": np.bool_(True)}),
    ):
        norm = getattr(mg.linalg, name)(t := tensor(x), **options)
        assert norm.dtype == np.float32
        assert mg.autograd.grad(norm.sum(), t)[0].dtype == x.dtype


def test_under_a_trace() -> None:
    """No rule asks for a value, so that all of it compiles; what cannot be refused there is nan."""
    jax = pytest.importorskip("jax")

    def loss(x: Any) -> Any:
        t = mg.asarray(x, requires_grad=True)
        y = (
            mg.linalg.det(t)
            + mg.linalg.matrix_norm(mg.linalg.inv(t), ord="nuc")
            + mg.linalg.slogdet(mg.linalg.pinv(t)).logabsdet
        )
        (g,) = mg.autograd.grad(y, t, create_graph=True)
        return mg.autograd.grad((g * g).sum(), t)[0].array

    x = jax.numpy.asarray(regular(reals(3, 3)))
    np.testing.assert_allclose(
        np.asarray(jax.jit(loss)(x)),
        np.asarray(loss(np.asarray(x))),
        rtol=1e-6 if x.dtype == "float64" else 1e-2,
    )


# ----- arguments -----


def test_integers_of_numpy_as_axes():
    x, y = tensor(np.ones((2, 3))), tensor(np.ones((3, 2)))
    (g,) = mg.autograd.grad(mg.sum(mg.tensordot(x, y, axes=np.int64(1))), x)
    assert g.tolist() == [[2.0] * 3] * 2


@pytest.mark.parametrize(("shape", "rank"), [((0, 3), 0), ((3, 0), 0), ((2, 0, 3), [0, 0])])
def test_rank_of_nothing(xp, shape, rank):
    assert xp.linalg.matrix_rank(xp.zeros(shape)).tolist() == rank


def test_cross_of_two_components(xp):
    with pytest.raises(
        ValueError, match=r"linalg\.cross: the axis -1 must have length 3 in both operands"
    ):
        xp.linalg.cross(xp.ones(3), xp.ones(2))


def test_what_would_cut_a_gradient_raises():
    """Integers cannot hold a fraction, nor what flows to it."""
    integers, bounds = mg.asarray(np.asarray([0, 1])), tensor([0.5, 1.5])
    with pytest.raises(TypeError, match="clip: the bounds must be integers where x is one"):
        mg.clip(integers, bounds, None)
    with pytest.raises(TypeError, match=r"clip: the bounds must be integers .* but min is 0\.5"):
        mg.clip(integers, 0.5, None)
    with pytest.raises(
        TypeError,
        match="full_like: converting a fill_value of dtype float64 to the dtype of x, int64, would lose",
    ):
        mg.full_like(integers, bounds[0])
