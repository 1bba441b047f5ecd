"""The rules of decompositions: against PyTorch to second order, the two modes against each other,
what is meant by the functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import values
from matrix_losses import LOSSES, adjoint, draw, eigh_loss, gradient, hermitian, positive, weighted
from rule_checks import NUMPY, bound, check, complexes, inner, reals, run, strict_raw, to_numpy

import multigrad as mg
from multigrad import registry
from multigrad.backends.raw import RawNamespace
from multigrad.backends.spec import Backend
from multigrad.dispatch import codegen
from multigrad.errors import GradientError

xp = mg.namespace("numpy")

CASES = [
    (name, shape, kind)
    for name, (_, _, shapes) in LOSSES.items()
    for shape in shapes
    for kind in ("real", "complex")
]


def both_orders(xp: Any, grad: Any, loss: Any, x: Any, t: Any) -> Iterator[Any]:
    (first,) = grad(loss(xp, x), x, create_graph=True)
    yield first
    product = first * t
    yield grad(xp.sum(xp.real(product) if product.dtype == xp.complex128 else product), x)[0]


@pytest.mark.parametrize(("name", "shape", "kind"), CASES, ids=str)
def test_first_and_second_order_are_those_of_pytorch(
    name: str, shape: tuple[int, ...], kind: str
) -> None:
    torch = pytest.importorskip("torch")
    loss, project, _ = LOSSES[name]
    x, t = draw(kind, *shape, seed=3), draw(kind, *shape, seed=5)
    if project:
        x, t = project(x), hermitian(t)
    ours = both_orders(xp, mg.autograd.grad, loss, mg.asarray(x, requires_grad=True), mg.asarray(t))
    theirs = both_orders(
        torch, torch.autograd.grad, loss, torch.tensor(x, requires_grad=True), torch.tensor(t)
    )
    for order, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        np.testing.assert_allclose(
            values(a),
            hermitian(b.detach().numpy()) if project else b.detach().numpy(),
            rtol=1e-8,
            atol=1e-8,
            err_msg=f"order {order + 1}",
        )


# ----- the two modes -----


def phases(vectors: Any, g: Any) -> Any:
    """The derivative of a loss by the phase of each column."""
    return np.imag(np.sum(np.conj(vectors) * g, axis=-2, keepdims=True))


def turned(vectors: Any, by: Any) -> Any:
    """The cotangent that the phases of the columns have."""
    return 1j * vectors * by if np.iscomplexobj(vectors) else 0.0


def cotangents(name: str, out: tuple[Any, ...]) -> tuple[Any, ...]:
    """Random ones of a loss that does not depend on phases; on how a pair of singular vectors turns
    against each other it does.
    """
    g = [
        draw("complex" if np.iscomplexobj(y) else "real", *y.shape, seed=11 + i).astype(y.dtype)
        for i, y in enumerate(out)
    ]
    if name == "svd":
        k = out[1].shape[-1]
        g[0][..., :, k:] = 0
        g[2][..., k:, :] = 0
        u, v, g_v = out[0][..., :, :k], adjoint(out[2])[..., :, :k], adjoint(g[2])[..., :, :k]
        together = (phases(u, g[0][..., :, :k]) + phases(v, g_v)) / 2
        g[0][..., :, :k] -= turned(u, together)
        g[2][..., :k, :] -= adjoint(turned(v, together) + np.zeros_like(v))
    elif name in ("eigh", "eig"):
        g[1] = g[1] - turned(out[1], phases(out[1], g[1]))
    return tuple(g)


MODES = [
    ("cholesky", (2, 3, 3), {}),
    ("cholesky", (3, 3), {"upper": True}),
    ("eigh", (2, 3, 3), {}),
    ("eigvalsh", (3, 3), {}),
    ("eig", (2, 3, 3), {}),
    ("qr", (3, 2), {}),
    ("qr", (2, 2, 4), {}),
    ("svd", (4, 2), {}),
    ("svd", (2, 2, 4), {}),
    ("svd", (3, 2), {"full_matrices": False}),
    ("svd", (3, 3), {}),
    ("svdvals", (2, 3), {}),
    ("eigh", (1, 1), {}),
    ("svd", (0, 3), {}),
    ("qr", (3, 0), {}),
    ("eig", (0, 0), {}),
]


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize(("name", "shape", "options"), MODES, ids=str)
def test_each_mode_is_the_adjoint_of_the_other(
    name: str, shape: tuple[int, ...], options: Any, kind: str
) -> None:
    """With every output's cotangent at once, on NumPy and on nothing but the standard."""
    pytest.importorskip("array_api_strict")
    x, t = draw(kind, *shape), draw(kind, *shape, seed=2)
    x = positive(x) if name == "cholesky" else hermitian(x) if name in ("eigh", "eigvalsh") else x
    op, arguments = bound(f"linalg.{name}", (x,), options)
    out = run(NUMPY, op, arguments)
    outs = out if isinstance(out, tuple) else (out,)
    g = cotangents(name, outs)
    found = []
    for on in (NUMPY, strict_raw()):
        a = [on.asarray(x), *arguments[1:]]
        ys, gs = ([on.asarray(y) for y in z] for z in (outs, g))
        single = op.outputs == ()
        (gradient,) = codegen.vjp(
            op, on, a, ys[0] if single else tuple(ys), gs[0] if single else tuple(gs), (True,)
        )
        moved = codegen.jvp(op, on, a, [on.asarray(t)], ys[0] if single else tuple(ys))
        found.append((to_numpy(gradient), [to_numpy(m) for m in ((moved,) if single else moved)]))
    (gradient, moved), (gradient_strict, moved_strict) = found
    np.testing.assert_allclose(inner(g, moved), inner([t], [gradient]), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(gradient_strict, gradient, rtol=1e-9, atol=1e-10)
    for m, n, y in zip(moved, moved_strict, outs, strict=True):
        assert m.shape == y.shape and m.dtype == y.dtype
        np.testing.assert_allclose(n, m, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_without_a_choice_tangents_are_differences(kind: str) -> None:
    for shape in ((3, 3), (4, 2), (2, 4)):
        check("linalg.qr", draw(kind, *shape))
        check("linalg.svdvals", draw(kind, *shape))


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_tangents_of_added_singular_vectors_stay_orthogonal(kind: str) -> None:
    """Of U^H U = 1 the tangent is 0, that of the vectors that full_matrices adds included; they
    turn no further than they must.
    """
    x, t = draw(kind, 4, 2), draw(kind, 4, 2, seed=1)
    out = tuple(np.linalg.svd(x))
    du, _, _ = codegen.jvp(registry.OPS["linalg.svd"], NUMPY, [x, True], [t], out)
    turn = adjoint(out[0]) @ du
    np.testing.assert_allclose(turn + adjoint(turn), 0, atol=1e-12)
    np.testing.assert_allclose(turn[2:, 2:], 0, atol=1e-12)


# ----- stated meanings -----


def test_hermitian_functions_have_hermitian_gradients() -> None:
    g = gradient(
        lambda x: (xp.linalg.eigvalsh(x) * mg.asarray([1.0, 2.0])).sum(),
        np.asarray([[2.0, 1.0], [1.0, 3.0]]),
    )
    np.testing.assert_allclose(g, [[1.2764, 0.4472], [0.4472, 1.7236]], atol=5e-5)
    x = hermitian(complexes(3, 3))
    for loss in (
        lambda x: eigh_loss(xp, x),
        lambda x: xp.real(xp.linalg.cholesky(positive_tensor(x))).sum(),
        lambda x: weighted(xp, xp.linalg.eigvalsh(x)),
    ):
        g = gradient(loss, x)
        np.testing.assert_array_equal(g, adjoint(g))
    op, (x,) = bound("linalg.eigvalsh", (hermitian(reals(3, 3)),), {})
    t = reals(3, 3, seed=1)
    np.testing.assert_allclose(
        codegen.jvp(op, NUMPY, [x], [t], None), codegen.jvp(op, NUMPY, [x], [hermitian(t)], None)
    )


def positive_tensor(x: Any) -> Any:
    return x + 10 * mg.asarray(np.eye(x.shape[-1]))


def test_values_alone_keep_only_their_argument() -> None:
    for name in ("eigvalsh", "svdvals"):
        (rule,) = registry.OPS[f"linalg.{name}"].vjp.values()  # type: ignore[union-attr]
        assert rule.keeps == ("x",)


def test_eigenvalues_are_in_the_order_of_their_vectors() -> None:
    """Many a LAPACK, as that of NumPy 2.4, orders the eigenvalues of larger matrices in another way
    where it computes no vectors.
    """
    x = reals(200, 200)
    weight = mg.asarray(np.cos(np.arange(200.0)))
    a = gradient(lambda x: (xp.abs(xp.linalg.eigvals(x)) * weight).sum(), x)
    b = gradient(lambda x: (xp.abs(xp.linalg.eig(x)[0]) * weight).sum(), x)
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(values(xp.linalg.eigvals(x)), values(xp.linalg.eig(x)[0]))


def test_results_are_complex_and_gradients_of_real_matrices_real() -> None:
    for dtype, wide in ((np.float32, np.complex64), (np.float64, np.complex128)):
        x = mg.asarray(np.diag([1.0, 2.0]).astype(dtype), requires_grad=True)
        w, v = xp.linalg.eig(x)
        assert w.dtype == v.dtype == xp.linalg.eigvals(x).dtype == wide
        (g,) = mg.autograd.grad(xp.abs(w).sum() + (xp.abs(v) ** 4).sum(), x)
        assert g.dtype == dtype


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision_stays(dtype: str) -> None:
    x = positive(draw("complex" if dtype == "complex64" else "real", 3, 3)).astype(dtype)
    for name in ("cholesky", "eigh", "eigvalsh", "eig", "eigvals", "qr", "svd", "svdvals"):
        t = mg.asarray(x, requires_grad=True)
        out = getattr(xp.linalg, name)(t)
        outs = out if isinstance(out, tuple) else (out,)
        assert {str(y.dtype).rpartition(".")[2] for y in outs} <= {"float32", "complex64"}, name
        (g,) = mg.autograd.grad(sum((xp.abs(y) ** 4).sum() for y in outs), t, create_graph=True)
        assert g.dtype == t.dtype, name
        (h,) = mg.autograd.grad((xp.abs(g) ** 2).sum(), t)
        assert h.dtype == t.dtype and np.all(np.isfinite(values(h))), name


def test_cotangents_of_the_empty_triangle_do_not_matter() -> None:
    """There the outputs are 0 whatever the matrix is, and losses such as the sum of a masked log
    have none that is finite.
    """
    for kind in ("real", "complex"):
        x = positive(draw(kind, 3, 3))
        wide = draw(kind, 3, 5)
        for matrix, loss in (
            (x, xp.linalg.cholesky),
            (x, lambda x: xp.linalg.cholesky(x, upper=True)),
            (x, lambda x: xp.linalg.qr(x)[1]),
            (wide, lambda x: xp.linalg.qr(x)[1]),
        ):
            kept = np.asarray(loss(mg.asarray(matrix)).array) != 0
            assert not np.all(kept)

            def masked(x: Any, loss: Any = loss, kept: Any = kept) -> Any:
                return xp.where(mg.asarray(kept), xp.log(xp.abs(loss(x))), 0.0).sum()

            def taken(x: Any, loss: Any = loss, kept: Any = kept) -> Any:
                return xp.log(xp.abs(loss(x)[mg.asarray(kept)])).sum()

            with np.errstate(all="ignore"):
                np.testing.assert_allclose(
                    gradient(masked, matrix), gradient(taken, matrix), rtol=1e-12
                )


# ----- QR where it has no derivative -----


def test_qr_of_dependent_columns_has_no_gradient(backend: str) -> None:
    own = mg.namespace(backend)
    x = np.stack([np.zeros((3, 2)), reals(3, 2)])
    for matrix in (x, np.swapaxes(x, -1, -2)):
        t = mg.asarray(own.asarray(matrix).array, requires_grad=True)
        g = values(mg.autograd.grad(own.linalg.qr(t)[1].sum(), t)[0])
        assert np.any(np.isnan(g[0])) and np.all(np.isfinite(g[1]))


def test_complete_qr_of_more_rows_than_columns_has_no_gradient() -> None:
    message = r"The QR decomposition is not differentiable when mode='complete' and nrows > ncols\."
    x = mg.asarray(reals(3, 2), requires_grad=True)
    for part in (0, 1):
        with pytest.raises(GradientError, match=message):
            xp.linalg.qr(x, mode="complete")[part].sum().backward()
    op, arguments = bound("linalg.qr", (reals(3, 2),), {"mode": "complete"})
    with pytest.raises(GradientError, match=message):
        codegen.jvp(op, NUMPY, arguments, [reals(3, 2)], run(NUMPY, op, arguments))


# ----- libraries that lack a function -----


class Lacking:
    """NumPy's namespace without some functions of linalg."""

    def __init__(self, *names: str) -> None:
        linalg = NUMPY._backend.namespace.linalg
        self.linalg = type(
            "linalg",
            (),
            {n: staticmethod(getattr(linalg, n)) for n in linalg.__all__ if n not in names},
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(NUMPY._backend.namespace, name)


def test_values_come_from_vectors_where_a_library_has_no_function_for_them() -> None:
    names = ("eigvals", "eigvalsh", "svdvals")
    bare: Any = RawNamespace(Backend("lacking", Lacking(*names), (np.ndarray,)))
    x = hermitian(reals(3, 3))
    for name in names:
        np.testing.assert_allclose(
            getattr(bare.linalg, name)(x), getattr(NUMPY.linalg, name)(x), atol=1e-12
        )
