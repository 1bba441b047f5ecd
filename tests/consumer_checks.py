"""What the tests of other libraries' functions share: arrays, Tensors, values."""

from __future__ import annotations

from typing import Any

import numpy as np

import multigrad as mg


def drawn(*shape: int, low: float = 0.3, high: float = 1.7, seed: int = 0) -> Any:
    """Uniform float64 values, distinct, with neither kinks nor poles of most functions among
    them.
    """
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(low, high, shape))


def floating(x: Any) -> bool:
    """Whether `x` is an array or a Tensor of floating dtype, real or complex."""
    return hasattr(x, "dtype") and not isinstance(x, type) and numpy_dtype(x).kind in "fc"


def numpy_dtype(x: Any) -> Any:
    """NumPy's dtype of the name that the dtype of an array or a Tensor has in the standard."""
    return np.dtype(str(x.dtype).rpartition(".")[2])


def tensors(backend: str, args: tuple[Any, ...]) -> list[Any]:
    """The arguments, NumPy arrays as Tensors on memory of their own; floating ones require grad."""
    return [
        mg.tensor(a, backend=backend, requires_grad=floating(a)) if isinstance(a, np.ndarray) else a
        for a in args
    ]


def values(t: Any) -> Any:
    return np.asarray(t.detach().array if isinstance(t, mg.Tensor) else t)


def cotangent(like: Any, seed: int) -> Any:
    """A random NumPy array of the shape and dtype of an array or Tensor."""
    dtype = numpy_dtype(like)
    random = np.random.default_rng([seed, *like.shape])
    x = random.uniform(0.5, 1.5, like.shape) * random.choice([-1.0, 1.0], like.shape)
    return np.asarray(
        x + 1j * random.uniform(-1, 1, like.shape) if dtype.kind == "c" else x
    ).astype(dtype)
