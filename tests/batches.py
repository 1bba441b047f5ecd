"""vmap against a loop: what the tests of batches share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg
from multigrad import func


def raw(xp: Any, x: Any) -> Any:
    """A NumPy array as one of the backend of `xp`."""
    return xp.asarray(np.array(x)).array


def tupled(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def numpy(x: Any) -> Any:
    return np.asarray(mg.asarray(x, backend="numpy").array)


def looped(xp: Any, f: Callable[..., Any], *arrays: Any, in_axes: Any = 0) -> list[Any]:
    """The results of `f` under vmap, after a comparison with a loop over the examples: values,
    shapes and dtypes. Nothing may be slow.
    """
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(arrays)
    size = next(x.shape[a] for x, a in zip(arrays, axes, strict=True) if a is not None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = func.vmap(lambda *xs: tupled(f(*xs)), in_axes=axes)(*(raw(xp, x) for x in arrays))
    rows = [
        tupled(
            f(
                *(
                    xp.asarray(raw(xp, x if a is None else np.take(x, k, axis=a)))
                    for x, a in zip(arrays, axes, strict=True)
                )
            )
        )
        for k in range(size)
    ]
    for i, y in enumerate(found):
        expected = np.stack([numpy(row[i]) for row in rows])
        assert y.dtype == rows[0][i].dtype
        single = expected.dtype.name in ("float32", "complex64")
        np.testing.assert_allclose(
            numpy(y),
            expected,
            rtol=1e-5 if single else 1e-10,
            atol=1e-6 if single else 1e-12,
            strict=True,
        )
    return [numpy(y) for y in found]
