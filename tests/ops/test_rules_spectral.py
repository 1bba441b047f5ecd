"""Eigenvectors and singular vectors: where values are repeated or 0, and which losses are
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import values
from matrix_losses import draw, gradient, hermitian, weighted
from rule_checks import complexes, reals

import multigrad as mg
from multigrad.errors import GradientError

xp = mg.namespace("numpy")

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

# ----- repeated values, values of 0 -----


def test_repeated_values_have_gradients_and_their_vectors_have_none(backend: str) -> None:
    own = mg.namespace(backend)
    x = mg.asarray(own.asarray(np.diag([2.0, 2.0, 1.0])).array, requires_grad=True)
    u, s, _ = own.linalg.svd(x)
    for loss in (
        own.linalg.eigvalsh(x).sum(),
        own.linalg.eigh(x)[0].sum(),
        own.linalg.svdvals(x).sum(),
        s.sum(),
        own.real(own.linalg.eigvals(x)).sum(),
        own.real(own.linalg.eig(x)[0]).sum(),
    ):
        np.testing.assert_allclose(
            values(mg.autograd.grad(loss, x, retain_graph=True)[0]), np.eye(3), atol=1e-12
        )
    for loss in (
        (u**4).sum(),
        (own.linalg.eigh(x)[1] ** 4).sum(),
        (own.abs(own.linalg.eig(x)[1]) ** 4).sum(),
    ):
        assert np.all(np.isnan(values(mg.autograd.grad(loss, x)[0])))


def test_one_repeated_matrix_does_not_spoil_the_batch() -> None:
    x = np.stack([np.eye(2), np.diag([1.0, 2.0]) + 0.1])
    g = gradient(lambda x: (xp.linalg.eigh(x)[1] ** 4).sum(), x)
    assert np.all(np.isnan(g[0])) and np.all(np.isfinite(g[1]))


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)], ids=str)
def test_singular_values_of_singular_matrices(kind: str, shape: tuple[int, int]) -> None:
    """Their gradient is a subgradient of the nuclear norm: U V^H, a partial isometry that takes x
    to its singular values.
    """
    x = draw(kind, shape[0], 1) @ draw(kind, 1, shape[1])
    for matrix in (x, np.zeros_like(x)):
        for loss in (lambda x: xp.linalg.svdvals(x).sum(), lambda x: xp.linalg.svd(x)[1].sum()):
            g = gradient(loss, matrix)
            np.testing.assert_allclose(np.linalg.svd(g)[1], 1, atol=1e-12)
            np.testing.assert_allclose(
                np.vdot(g, matrix), np.linalg.svd(matrix)[1].sum(), atol=1e-12
            )


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_vectors_of_one_zero_singular_value(kind: str) -> None:
    """They are determined up to their phases, also where the value is exactly 0: no division by
    it.
    """
    x = np.asarray(
        [[2.0, 0, 0], [0, 0, 0], [0, 0, 1]], dtype="complex128" if kind == "complex" else "float64"
    )
    for part in (0, 2):
        loss = lambda x, part=part: weighted(xp, xp.abs(xp.linalg.svd(x)[part]) ** 2)
        assert np.all(np.isfinite(gradient(loss, x)))
    if kind == "complex":  # how they turn against each other is not determined

        def product(x: Any) -> Any:
            u, _, vh = xp.linalg.svd(x)
            return xp.real(xp.sum(u @ vh)) + xp.imag(xp.sum(u @ vh))

        assert np.any(np.isnan(gradient(product, x)))
    tall = x[:, :2]  # there a left vector of the value 0 may be any of a plane
    assert np.all(
        np.isnan(
            gradient(lambda x: weighted(xp, xp.abs(xp.linalg.svd(x, full_matrices=False)[0])), tall)
        )
    )
    assert np.all(
        np.isfinite(
            gradient(
                lambda x: weighted(xp, xp.abs(xp.linalg.svd(x, full_matrices=False)[2]) ** 2), tall
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
    yield (
        SVD_PHASES,
        lambda: (lambda u, s, vh: own.real(u * own.conj(own.matrix_transpose(vh))).sum())(
            *own.linalg.svd(x)
        ),
    )
    yield (
        SVD_PHASES,
        lambda: (lambda u, s, vh: own.real(u @ own.conj(own.matrix_transpose(vh))).sum())(
            *own.linalg.svd(x)
        ),
    )


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_losses_that_depend_on_phases_are_refused(backend: str, scale: float) -> None:
    own = mg.namespace(backend)
    x = mg.asarray(own.asarray(hermitian(complexes(3, 3))).array, requires_grad=True)
    for message, loss in phase_losses(own, x):
        with pytest.raises(GradientError, match=message):
            (loss() * scale).backward()


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


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("condition", [2.0, 1e3, 1e6])
def test_rounding_is_not_taken_for_a_phase(condition: float, dtype: str) -> None:
    """50 losses at each scale, to second order: no loss that does not depend on phases is
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


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_added_singular_vectors_have_no_gradient(kind: str) -> None:
    tall = mg.asarray(draw(kind, 4, 2), requires_grad=True)
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
