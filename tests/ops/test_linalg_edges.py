"""Where linear algebra and Fourier transforms broke once: numbers near the ends of their range,
nothing at all, wrong lengths.
"""

from __future__ import annotations

import numpy as np
import pytest

import multigrad as mg
from multigrad.errors import GradientError

RANDOM = np.random.default_rng(0)
SQUARE = np.eye(4) + 0.1 * RANDOM.normal(size=(4, 4))
HERMITIAN = (lambda z: z + z.conj().T)(RANDOM.normal(size=(4, 4)) + 1j * RANDOM.normal(size=(4, 4)))


def leaf(x):
    return mg.asarray(np.asarray(x), requires_grad=True)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float32", 1e-11), ("float32", 1e10), ("float64", 1e-80), ("float64", 1e80)],
)
def test_det_out_of_range_with_a_gradient_in_range(dtype, size):
    x = leaf((size * SQUARE).astype(dtype))
    (g,) = mg.autograd.grad(mg.linalg.det(x), x)
    unit = (
        g.array
        / np.dtype(dtype).type(size)
        / np.dtype(dtype).type(size)
        / np.dtype(dtype).type(size)
    )
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
    x = leaf(np.diag([1.0, 2.0, 3.0, 0.0]))
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
    near, far = leaf(a), leaf((a * size).astype(dtype))
    (expected,) = mg.autograd.grad(mg.sum(mg.linalg.pinv(near) * weight), near)
    (g,) = mg.autograd.grad(mg.sum(mg.linalg.pinv(far) * weight.astype(dtype)), far)
    scale = np.dtype(dtype).type(size)
    np.testing.assert_allclose(
        g.array * scale * scale, expected.array, rtol=1e-4 if dtype == "float32" else 1e-12
    )


@pytest.mark.parametrize(
    ("dtype", "scales"), [("complex64", (1e-4, 1.0, 1e20)), ("complex128", (1e-8, 1.0, 1e160))]
)
def test_phases_are_refused_at_every_scale(dtype, scales):
    weight = RANDOM.normal(size=(4, 4)).astype("float32" if dtype == "complex64" else "float64")
    for scale in scales:
        for vectors in (lambda x: mg.linalg.eigh(x)[1], lambda x: mg.linalg.svd(x)[0]):
            x = leaf(HERMITIAN.astype(dtype))
            with pytest.raises(
                GradientError,
                match="backward: The .* vectors in the complex case|eigenvectors in the complex "
                "case",
            ):
                mg.autograd.grad(mg.sum(mg.real(vectors(x)) * weight) * scale, x)
            x = leaf(HERMITIAN.astype(dtype))
            mg.autograd.grad(mg.sum(mg.abs(vectors(x)) ** 2 * weight) * scale, x)


def test_integers_of_numpy_as_axes():
    x, y = leaf(np.ones((2, 3))), leaf(np.ones((3, 2)))
    assert (
        mg.autograd.grad(mg.sum(mg.tensordot(x, y, axes=np.int64(1))), x)[0].tolist()
        == [[2.0] * 3] * 2
    )


@pytest.mark.parametrize("name", ["numpy", "strict", "jax"])
@pytest.mark.parametrize(("shape", "rank"), [((0, 3), 0), ((3, 0), 0), ((2, 0, 3), [0, 0])])
def test_rank_of_nothing(name, shape, rank):
    pytest.importorskip({"strict": "array_api_strict"}.get(name, name))
    xp = mg.namespace(name)
    assert xp.linalg.matrix_rank(xp.zeros(shape)).tolist() == rank


@pytest.mark.parametrize("name", ["numpy", "strict", "jax"])
def test_cross_of_two_components(name):
    pytest.importorskip({"strict": "array_api_strict"}.get(name, name))
    xp = mg.namespace(name)
    with pytest.raises(
        ValueError, match=r"linalg\.cross: the axis -1 must have length 3 in both operands"
    ):
        xp.linalg.cross(xp.ones(3), xp.ones(2))


@pytest.mark.parametrize("name", ["numpy", "strict", "jax"])
def test_a_transform_over_no_axes_shows_its_argument(name):
    """What some libraries return is the argument itself, so that a write to it is one to both."""
    pytest.importorskip({"strict": "array_api_strict"}.get(name, name))
    xp = mg.namespace(name)
    b = xp.asarray(np.asarray(3.0 + 1.0j), requires_grad=True)
    c = b * 1
    d = c * c
    e = xp.fft.fftn(c)
    try:
        e += 5
        (g,) = mg.autograd.grad(xp.real(d), b)
    except GradientError:
        return
    assert complex(g) == 6 - 2j


def test_what_is_no_array_is_named_without_the_options():
    with pytest.raises(
        TypeError, match=r"fft\.fft: none of the arguments is an array of a known library \(list\)"
    ):
        mg.fft.fft([1.0, 2.0])


def test_what_would_cut_a_gradient_raises():
    """Integers cannot hold a fraction, nor what flows to it."""
    integers, bounds = mg.asarray(np.asarray([0, 1])), leaf([0.5, 1.5])
    with pytest.raises(TypeError, match="clip: the bounds must be integers where x is one"):
        mg.clip(integers, bounds, None)
    with pytest.raises(TypeError, match=r"clip: the bounds must be integers .* but min is 0\.5"):
        mg.clip(integers, 0.5, None)
    with pytest.raises(
        TypeError,
        match="full_like: converting a fill_value of dtype float64 to the dtype of x, int64, would lose",
    ):
        mg.full_like(integers, bounds[0])
