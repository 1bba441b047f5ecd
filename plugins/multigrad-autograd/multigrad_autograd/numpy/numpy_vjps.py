"""Functions of `autograd.numpy.numpy_vjps` that programs import for their own rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multigrad.extend import entry
from multigrad_autograd import numpy as np

__all__ = ["balanced_eq", "match_complex", "replace_zero", "unbroadcast", "unbroadcast_f"]


@entry
def match_complex(target: Any, x: Any) -> Any:
    """Return `x` as a complex array if `target` is complex, otherwise as a real one."""
    if np.iscomplexobj(target):
        return x if np.iscomplexobj(x) else x + 0j
    return np.real(x) if np.iscomplexobj(x) else x


@entry
def unbroadcast(x: Any, target_meta: tuple[Any, ...], broadcast_idx: int = 0) -> Any:
    """Sum `x` over the axes along which an array was broadcast.

    `target_meta` is `metadata` of that array.
    """
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    ones = tuple([i for i, n in enumerate(shape) if n == 1 and np.shape(x)[i] != 1])
    x = np.sum(x, axis=ones, keepdims=True) if ones else x
    return x if is_complex or not np.iscomplexobj(x) else np.real(x)


@entry
def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `f` with its result summed to the shape of `target`."""
    if not callable(f):
        raise TypeError(f"unbroadcast_f: f must be a function, not {type(f).__name__}")
    meta = np.metadata(target)

    @entry
    def summed(g: Any) -> Any:
        return unbroadcast(f(g), meta)

    return summed


@entry
def balanced_eq(x: Any, z: Any, y: Any) -> Any:
    """Return 1 where x equals z, 1/2 where y does as well, else 0."""
    return np.equal(x, z) / (1.0 + np.equal(x, y))


@entry
def replace_zero(x: Any, val: Any) -> Any:
    """Return `x` with its zeros replaced by `val`."""
    return np.where(np.not_equal(x, 0), x, val)
