"""Arrays and keys of indexing on which a backend is compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from multigrad.backends import discovery
from multigrad.backends.raw import RawNamespace

NUMPY = discovery.get("numpy")


XP = RawNamespace(NUMPY)


def sample(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, shape)
    if np.dtype(dtype).kind == "u":
        x = abs(x)
    return np.asarray(
        x + 1j * rng.uniform(-3, 3, shape) if np.dtype(dtype).kind == "c" else x
    ).astype(dtype)


KEYS: list[Any] = [
    1,
    -1,
    slice(None),
    slice(3, 0, -2),
    None,
    Ellipsis,
    (),
    (1, 2),
    (Ellipsis, 0),
    (slice(1), None, 2),
    np.array([0, 2, 0, -1]),
    np.array(2),
    (np.array([[0, 1], [0, 1]]), np.array([1, -1])),
    (1, np.array([0, 0])),
    (np.array([0, 0]), slice(1, 3)),
    (np.array([1, 1]), np.array([2, 2]), 0),
    (slice(None), np.array([1, 1])),
    [0, 0, 1],
    np.arange(3) > 0,
    (np.arange(3) > 0, 1),
    np.ones((3, 4), bool),
    np.int64(2),
    True,
    np.zeros(3, bool),
    np.zeros(0, np.int64),
    (np.array([0, 1], np.uint8), np.array([3, 3], np.int32)),
]
