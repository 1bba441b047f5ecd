"""Programs in plain NumPy, as people write them, as a table: `np` and the arrays' own methods, and
no word of any other library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from consumer_checks import drawn
from consumer_tables import NUMPY, Call, Table

A, B, V, W, CUBE = drawn(3, 4), drawn(3, 4, seed=1), drawn(6), drawn(6, seed=1), drawn(2, 3, 4)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def cross_entropy(x: Any, w: Any) -> Any:
    return -np.mean(np.log(softmax(np.dot(x, w)))[np.arange(3), [0, 2, 1]])


def layer(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0.1) - np.tanh(np.einsum("ij,jk->ik", x, w))


def attention(x: Any) -> Any:
    scores = np.einsum("bij,bkj->bik", x, x) / np.sqrt(x.shape[-1])
    return np.matmul(softmax(scores), x)


def batch_norm(x: Any) -> Any:
    return (x - np.mean(x, axis=0)) / np.sqrt(np.var(x, axis=0) + 1e-3)


def runge_kutta(y: Any) -> Any:
    """Two steps of Lotka's and Volterra's equations."""

    def slope(y: Any) -> Any:
        return np.stack([y[0] * (1.1 - 0.4 * y[1]), y[1] * (0.1 * y[0] - 0.4)])

    for _ in range(2):
        k1 = slope(y)
        k2 = slope(y + 0.05 * k1)
        k3 = slope(y + 0.05 * k2)
        y = y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + 0.1 * k3))
    return y


def gaussian_process(x: Any, y: Any) -> Any:
    """The logarithm of the marginal likelihood."""
    kernel = np.exp(-0.5 * np.square(x[:, None] - x[None, :])) + 0.1 * np.eye(x.shape[0])
    chol = np.linalg.cholesky(kernel)
    return -0.5 * np.dot(y, np.linalg.solve(kernel, y)) - np.sum(np.log(np.diagonal(chol)))


def kalman(mean: Any, cov: Any, z: Any) -> Any:
    moved = np.array([[1.0, 0.1], [0.0, 1.0]])
    mean, cov = np.dot(moved, mean), moved @ cov @ np.transpose(moved) + 0.01 * np.eye(2)
    gain = cov @ np.linalg.inv(cov + np.eye(2))
    return mean + gain @ (z - mean), (np.eye(2) - gain) @ cov


def kabsch(p: Any, q: Any) -> Any:
    """The distance of two sets of points after the best rotation."""
    p, q = p - np.mean(p, axis=0), q - np.mean(q, axis=0)
    u, _, vh = np.linalg.svd(np.dot(np.transpose(p), q), full_matrices=False)
    return np.linalg.norm(np.dot(p, np.dot(u, vh)) - q)


def mode_dot(tensor: Any, matrix: Any) -> Any:
    """The product of a tensor and a matrix along the first axis, by unfolding, as TensorLy has
    it.
    """
    unfolded = np.reshape(np.moveaxis(tensor, 0, 0), (tensor.shape[0], -1))
    return np.reshape(np.dot(matrix, unfolded), (matrix.shape[0], *tensor.shape[1:]))


def khatri_rao(a: Any, b: Any) -> Any:
    return np.einsum("ir,jr->ijr", a, b).reshape((-1, a.shape[1]))


def smoothed(x: Any) -> Any:
    return np.convolve(np.pad(x, 1, mode="edge"), np.array([0.25, 0.5, 0.25]), mode="valid")


def heat(u: Any) -> Any:
    """Three explicit steps of the heat equation on a ring."""
    for _ in range(3):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


def low_pass(x: Any) -> Any:
    spectrum = np.fft.rfft(x)
    return np.fft.irfft(np.where(np.arange(spectrum.shape[0]) < 2, spectrum, 0.0), n=x.shape[0])


CALLS = [
    Call("softmax", softmax, (A,)),
    Call("cross entropy", cross_entropy, (A, drawn(4, 3))),
    Call("a layer", layer, (A, drawn(4, 2), drawn(2))),
    Call("attention", attention, (CUBE,)),
    Call("batch normalization", batch_norm, (A,)),
    Call("Runge-Kutta", runge_kutta, (drawn(2),)),
    Call("a Gaussian process", gaussian_process, (V, W)),
    Call("a Kalman filter", kalman, (drawn(2), np.eye(2) + 0.1 * drawn(2, 2), drawn(2, seed=3))),
    Call("Kabsch's rotation", kabsch, (A, B)),
    Call("TensorLy's mode_dot", mode_dot, (CUBE, drawn(3, 2))),
    Call("TensorLy's khatri_rao", khatri_rao, (A, B)),
    Call("a convolution", smoothed, (V,)),
    Call("the heat equation", heat, (V,)),
    Call("Rosenbrock's function", rosenbrock, (V,)),
    Call("a low pass", low_pass, (V,)),
]

TABLE = Table(
    "other libraries", "programs", CALLS, part="programs in plain NumPy", settings={"numpy": NUMPY}
)
test_calls = TABLE.test()
