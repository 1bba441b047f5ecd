"""Decompositions where the conformance suite cannot judge them: repeated values and values of 0,
losses that depend on a choice of LAPACK's, triangles that are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import values
from rule_checks import NUMPY, bound, complexes, lacking, reals, run

import multigrad as mg
from multigrad import registry
from multigrad.dispatch import codegen
from multigrad.errors import GradientError

xp = mg.namespace("numpy")
KINDS = pytest.mark.parametrize("draw", [reals, complexes], ids=["real", "complex"])

SVD_PHASES = (
    r"svd_backward: The singular vectors in the complex case are specified up to multiplication "
    r"by e\^{i phi}\. The specified loss function depends on this phase term, making it "
    r"ill-defined\."
)
EIGENVECTOR_PHASES = (
    r"{}: The eigenvectors in the complex case are specified up to multiplication by e\^{{i "
    r"phi}}\. The specified loss function depends on this quantity, so it is ill-defined\."
)
EIGH_PHASES = EIGENVECTOR_PHASES.format("linalg_eigh_backward")
EIG_PHASES = EIGENVECTOR_PHASES.format("linalg_eig_backward")


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def hermitian(x: Any) -> Any:
    return (x + adjoint(x)) / 2


def positive(x: Any) -> Any:
    return x @ adjoint(x) + np.eye(x.shape[-1])


def gradient(loss: Callable[[Any], Any], x: Any) -> Any:
    t = mg.asarray(np.asarray(x), requires_grad=True)
    (g,) = mg.autograd.grad(loss(t), t)
    return g.array


def weighted(x: Any) -> Any:
    """The elements of a real array, each by a number of its own, added up."""
    return (x * np.cos(np.arange(1.0, x.size + 1)).reshape(x.shape)).sum()


# ----- repeated values, values of 0 -----


def test_one_repeated_matrix_does_not_spoil_the_batch() -> None:
    x = np.stack([np.eye(2), np.diag([1.0, 2.0]) + 0.1])
    g = gradient(lambda x: (xp.linalg.eigh(x)[1] ** 4).sum(), x)
    assert np.all(np.isnan(g[0])) and np.all(np.isfinite(g[1]))


@KINDS
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)], ids=str)
def test_singular_values_of_singular_matrices(draw: Any, shape: tuple[int, int]) -> None:
    """Their gradient is a subgradient of the nuclear norm: U V^H, a partial isometry that takes x
    to its singular values.
    """
    x = draw(shape[0], 1) @ draw(1, shape[1])
    for matrix in (x, np.zeros_like(x)):
        for loss in (lambda x: xp.linalg.svdvals(x).sum(), lambda x: xp.linalg.svd(x)[1].sum()):
            g = gradient(loss, matrix)
            np.testing.assert_allclose(np.linalg.svd(g)[1], 1, atol=1e-12)
            np.testing.assert_allclose(
                np.vdot(g, matrix), np.linalg.svd(matrix)[1].sum(), atol=1e-12
            )


@KINDS
def test_vectors_of_one_zero_singular_value(draw: Any) -> None:
    """They are determined up to their phases, also where the value is exactly 0: no division by
    it.
    """
    x = np.diag([2.0, 0.0, 1.0]) + 0 * draw()
    for part in (0, 2):
        loss = lambda x, part=part: weighted(xp.abs(xp.linalg.svd(x)[part]) ** 2)
        assert np.all(np.isfinite(gradient(loss, x)))
    if draw is complexes:  # how they turn against each other is not determined

        def product(x: Any) -> Any:
            u, _, vh = xp.linalg.svd(x)
            return xp.real(xp.sum(u @ vh)) + xp.imag(xp.sum(u @ vh))

        assert np.any(np.isnan(gradient(product, x)))
    tall = x[:, :2]  # there a left vector of the value 0 may be any of a plane
    assert np.all(
        np.isnan(
            gradient(lambda x: weighted(xp.abs(xp.linalg.svd(x, full_matrices=False)[0])), tall)
        )
    )
    assert np.all(
        np.isfinite(
            gradient(
                lambda x: weighted(xp.abs(xp.linalg.svd(x, full_matrices=False)[2]) ** 2), tall
            )
        )
    )


# ----- refusals -----


def phase_losses(own: Any, x: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield EIGH_PHASES, lambda: own.real(own.linalg.eigh(x)[1]).sum()
    yield EIGH_PHASES, lambda: own.imag(own.linalg.eigh(x)[1][:, 1]).sum()
    yield EIG_PHASES, lambda: own.real(own.linalg.eig(x)[1]).sum()
    yield SVD_PHASES, lambda: own.real(own.linalg.svd(x)[0]).sum()
    yield SVD_PHASES, lambda: own.real(own.linalg.svd(x, full_matrices=False)[2]).sum()
    for together in (lambda u, v: u * v, lambda u, v: u @ v):

        def turned(together: Any = together) -> Any:
            u, _, vh = own.linalg.svd(x)
            return own.real(together(u, own.conj(own.matrix_transpose(vh)))).sum()

        yield SVD_PHASES, turned


def test_losses_that_depend_on_phases_are_refused(backend: str) -> None:
    own = mg.namespace(backend)
    x = mg.asarray(own.asarray(hermitian(complexes(3, 3))).array, requires_grad=True)
    for message, loss in phase_losses(own, x):
        with pytest.raises(GradientError, match=message):
            loss().backward()


@pytest.mark.parametrize(
    ("dtype", "scales"), [("complex64", (1e-4, 1.0, 1e20)), ("complex128", (1e-8, 1.0, 1e160))]
)
def test_phases_are_refused_at_every_scale(dtype: str, scales: tuple[float, ...]) -> None:
    x = hermitian(complexes(4, 4)).astype(dtype)
    weight = reals(4, 4).astype(x.real.dtype)
    for scale in scales:
        for vectors in (lambda x: mg.linalg.eigh(x)[1], lambda x: mg.linalg.svd(x)[0]):
            with pytest.raises(GradientError, match="vectors in the complex case are specified up"):
                gradient(lambda x, f=vectors, c=scale: mg.sum(mg.real(f(x)) * weight) * c, x)
            gradient(lambda x, f=vectors, c=scale: mg.sum(mg.abs(f(x)) ** 2 * weight) * c, x)


def test_real_matrices_have_eigenvectors_with_phases() -> None:
    x = mg.asarray(np.asarray([[0.0, -1.0], [1.0, 0.5]]), requires_grad=True)
    with pytest.raises(GradientError, match=EIG_PHASES):
        xp.real(xp.linalg.eig(x)[1]).sum().backward()


def test_one_matrix_of_a_batch_is_enough() -> None:
    x = mg.asarray(hermitian(complexes(4, 3, 3)), requires_grad=True)
    with pytest.raises(GradientError, match=EIGH_PHASES):
        xp.real(xp.linalg.eigh(x)[1][2, :, 0]).sum().backward()


def test_nan_is_passed_on_and_not_refused() -> None:
    x = complexes(3, 2)
    for loss in (
        lambda x: xp.abs(xp.linalg.eigh(x[:2, :])[1]),
        lambda x: xp.abs(xp.linalg.eig(x[:2, :])[1]),
        lambda x: xp.abs(xp.linalg.svd(x)[0]),
        lambda x: xp.abs(xp.linalg.svd(x)[2]),
    ):
        assert np.any(np.isnan(gradient(lambda x, loss=loss: (loss(x) * np.nan).sum(), x)))


def losses_without_phases(seed: int, dtype: str) -> Iterator[Callable[[Any], Any]]:
    """Random ones, of all three decompositions; of single vectors, pairs, projections and functions
    of the matrix.
    """
    random = np.random.default_rng(seed)

    def c(*shape: int) -> Any:
        return mg.asarray(
            (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
        )

    def vectors(v: Any) -> Any:
        projected = (v * xp.real(c(v.shape[-1]))) @ xp.conj(v.mT)
        return (xp.tanh(xp.abs(c(3, v.shape[-2]) @ v)) * xp.real(c(3, v.shape[-1]))).sum() + xp.abs(
            projected @ projected * c(*projected.shape)
        ).sum()

    def pairs(u: Any, s: Any, vh: Any) -> Any:
        return xp.real((u * xp.exp(-s)) @ vh * c(u.shape[-2], vh.shape[-1])).sum()

    yield lambda x: vectors(xp.linalg.svd(x, full_matrices=False)[0])
    yield lambda x: vectors(xp.conj(xp.linalg.svd(x, full_matrices=False)[2]).mT)
    yield lambda x: pairs(*xp.linalg.svd(x, full_matrices=False))
    for decompose in (xp.linalg.eigh, xp.linalg.eig):
        yield lambda x, f=decompose: vectors(f(x[:4, :])[1])
        # in its second derivative, terms as large as those by the values cancel
        yield lambda x, f=decompose: (lambda w, v: vectors(v) + (xp.abs(w) ** 4).sum())(
            *f(x[:4, :] @ xp.conj(x[:4, :]).mT * 30.0)
        )


@pytest.mark.sweep_after(2)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("condition", [2.0, 1e3, 1e6])
def test_rounding_is_not_taken_for_a_phase(condition: float, dtype: str) -> None:
    """Many losses at each scale, to second order: no loss that does not depend on phases is
    refused.
    """
    for seed in range(10):
        u, _, vh = np.linalg.svd(complexes(6, 4, seed=seed), full_matrices=False)
        x = (u * np.geomspace(1, 1 / condition, 4) @ vh).astype(dtype)
        for loss in losses_without_phases(seed, dtype):
            for scale in (1e-8, 1.0, 1e8):
                t = mg.asarray(x, requires_grad=True)
                (g,) = mg.autograd.grad(loss(t) * scale, t, create_graph=True)
                assert np.all(np.isfinite(g.array))
                mg.autograd.grad(xp.real(g * mg.asarray(complexes(6, 4).astype(dtype))).sum(), t)


def test_under_a_trace_what_would_be_refused_is_nan() -> None:
    jax = pytest.importorskip("jax")
    own = mg.namespace("jax")
    x = jax.numpy.asarray(hermitian(complexes(2, 2)))
    refused = jax.jit(mg.func.grad(lambda x: own.real(own.linalg.eigh(x)[1]).sum()))
    assert np.all(np.isnan(np.asarray(refused(x))))
    added = jax.jit(mg.func.grad(lambda x: own.linalg.svd(x)[0].sum()))
    assert np.all(np.isnan(np.asarray(added(jax.numpy.asarray(reals(2, 1))))))
    taken = jax.jit(mg.func.grad(lambda x: own.sum(own.linalg.svd(x)[0][0, 0])))
    assert np.all(np.isfinite(np.asarray(taken(jax.numpy.asarray(reals(2, 1))))))


@KINDS
def test_added_singular_vectors_have_no_gradient(draw: Any) -> None:
    tall = mg.asarray(draw(4, 2), requires_grad=True)
    u, s, vh = xp.linalg.svd(tall)
    for loss in (xp.abs(u[0, 2]), (xp.abs(u) ** 4).sum(), (xp.abs(u @ u) ** 2).sum() + s.sum()):
        with pytest.raises(
            GradientError, match="depends on the last columns of U, .* Use full_matrices=False"
        ):
            loss.backward(retain_graph=True)
    (unknown,) = mg.autograd.grad((xp.abs(u[:, 2:]) * np.nan).sum(), tall, retain_graph=True)
    assert np.all(np.isnan(unknown.array))
    with pytest.raises(GradientError, match="depends on the last rows of Vh"):
        (xp.abs(xp.linalg.svd(tall.mT)[2]) ** 4).sum().backward()
    full = (xp.abs(u[:, :2]) ** 4).sum() + (s**2).sum() + (xp.abs(vh) ** 4).sum()
    u, s, vh = xp.linalg.svd(tall, full_matrices=False)
    reduced = (xp.abs(u) ** 4).sum() + (s**2).sum() + (xp.abs(vh) ** 4).sum()
    (a,), (b,) = (mg.autograd.grad(loss, tall, retain_graph=True) for loss in (full, reduced))
    np.testing.assert_allclose(a.array, b.array, atol=1e-12)


@KINDS
def test_tangents_of_added_singular_vectors_stay_orthogonal(draw: Any) -> None:
    """Of U^H U = 1 the tangent is 0, that of the vectors that full_matrices adds included; they
    turn no further than they must.
    """
    x, t = draw(4, 2), draw(4, 2, seed=1)
    out = tuple(np.linalg.svd(x))
    du, _, _ = codegen.jvp(registry.OPS["linalg.svd"], NUMPY, [x, True], [t], out)
    turn = adjoint(out[0]) @ du
    np.testing.assert_allclose(turn + adjoint(turn), 0, atol=1e-12)
    np.testing.assert_allclose(turn[2:, 2:], 0, atol=1e-12)


# ----- orders, dtypes, triangles -----


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


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision_stays(dtype: str) -> None:
    x = positive((complexes if dtype == "complex64" else reals)(3, 3)).astype(dtype)
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
    for draw in (reals, complexes):
        x, wide = positive(draw(3, 3)), draw(3, 5)
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


def test_values_come_from_vectors_where_a_library_has_no_function_for_them() -> None:
    bare = lacking("linalg", "eig", "eigh", "svd").linalg
    x = hermitian(reals(3, 3))
    for name in ("eigvals", "eigvalsh", "svdvals"):
        np.testing.assert_allclose(getattr(bare, name)(x), getattr(np.linalg, name)(x), atol=1e-12)
