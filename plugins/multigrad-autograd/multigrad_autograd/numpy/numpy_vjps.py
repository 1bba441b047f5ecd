"""What programs take from `autograd.numpy.numpy_vjps` for rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multigrad_autograd import numpy as np

__all__ = ["balanced_eq", "match_complex", "replace_zero", "unbroadcast", "unbroadcast_f"]


def match_complex(target: Any, x: Any) -> Any:
    """`x` as a complex array where `target` is complex, and as a real one where it is not."""
    if np.iscomplexobj(target):
        return x if np.iscomplexobj(x) else x + 0j
    return np.real(x) if np.iscomplexobj(x) else x


def unbroadcast(x: Any, target_meta: tuple[Any, ...], broadcast_idx: int = 0) -> Any:
    """`x` summed over the axes along which an array was broadcast; `target_meta` is `metadata` of
    that array.
    """
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    ones = tuple([i for i, n in enumerate(shape) if n == 1 and np.shape(x)[i] != 1])
    x = np.sum(x, axis=ones, keepdims=True) if ones else x
    return x if is_complex or not np.iscomplexobj(x) else np.real(x)


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`f`, with its result summed to the shape of `target`."""
    meta = np.metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def balanced_eq(x: Any, z: Any, y: Any) -> Any:
    """1 where x is z, 1/2 where y is as well, else 0."""
    return np.equal(x, z) / (1.0 + np.equal(x, y))


def replace_zero(x: Any, val: Any) -> Any:
    """`x` with `val` in the place of zeros."""
    return np.where(np.not_equal(x, 0), x, val)
