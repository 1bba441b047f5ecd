"""SciPy's functions that are compiled code, or that write where a history would have to follow:
they refuse a Tensor that requires grad.

None of them returns a result without a gradient; for Tensors that require none they give SciPy's
values, where they can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.cluster.hierarchy as hierarchy
import scipy.cluster.vq as vq
import scipy.fft
import scipy.integrate as integrate
import scipy.interpolate as interpolate
import scipy.linalg as linalg
import scipy.ndimage as ndimage
import scipy.signal as signal
import scipy.spatial.distance as distance
import scipy.special as special
import scipy.stats as stats
from consumer_checks import check, drawn, flat, values

import multigrad as mg
from multigrad.errors import GradientError

SQUARE = drawn(3, 3)
X, Y, V, W = drawn(2, 5), drawn(2, 5, seed=1), drawn(6), drawn(6, seed=2)

SIMPSON_CONVERTS = tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 18)

# Compiled: they ask for a NumPy array.
CONVERTING: dict[str, tuple[Any, ...]] = {
    "fft.dct": (scipy.fft.dct, V),
    "fft.dst": (scipy.fft.dst, V),
    "signal.detrend": (signal.detrend, V),
    "signal.convolve": (signal.convolve, V, W),
    "signal.correlate": (signal.correlate, V, W),
    "signal.medfilt": (signal.medfilt, V),
    "linalg.expm": (linalg.expm, SQUARE),
    "linalg.inv": (linalg.inv, SQUARE),
    "linalg.solve": (linalg.solve, SQUARE, drawn(3)),
    "interpolate.CubicSpline": (lambda x, y: interpolate.CubicSpline(x, y)(y), np.cumsum(V), V),
    "ndimage.gaussian_filter": (lambda x: ndimage.gaussian_filter(x, 1.0), V),
    "ndimage.sobel": (ndimage.sobel, X),
    "ndimage.convolve": (ndimage.convolve, V, W),
    **({"integrate.simpson": (integrate.simpson, V)} if SIMPSON_CONVERTS else {}),
    "cluster.vq.vq": (vq.vq, X, Y),
    "cluster.hierarchy.linkage": (hierarchy.linkage, X),
    "spatial.distance.cdist": (distance.cdist, X, Y),
    "spatial.distance.euclidean": (distance.euclidean, V, W),
    "stats.spearmanr": (lambda x, y: tuple(stats.spearmanr(x, y)), V, W),
    "stats.wasserstein_distance": (stats.wasserstein_distance, V, W),
}

# Written in terms of the standard, but for arrays that may be written to after their use. PyTorch
# refuses them as well.
WRITING: dict[str, tuple[Any, ...]] = {
    "special.logsumexp with b": (lambda x, b: special.logsumexp(x, axis=1, b=b), X, Y),
    "stats.boxcox_llf": (lambda x: stats.boxcox_llf(1.5, x), V),
    "integrate.romb": (integrate.romb, drawn(5)),
}


def same(result: Any, expected: Any) -> None:
    for y, raw in zip(flat(result), flat(expected), strict=True):
        np.testing.assert_allclose(values(y), raw, rtol=1e-10, atol=1e-12)


def refused(function: Callable[..., Any], args: list[Any], message: str) -> None:
    """It raises, at once or in the backward pass."""
    with pytest.raises(GradientError, match=message):
        sum(y.sum() for y in flat(function(*args)) if y.requires_grad).backward()


# before it comes to the conversion itself
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad:UserWarning")
@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
@pytest.mark.parametrize("name", CONVERTING)
def test_compiled_functions(name: str, backend: str) -> None:
    function, *args = CONVERTING[name]
    given = [mg.tensor(a, backend=backend) for a in args]
    same(function(*given), function(*args))
    for i, t in enumerate(given):
        t.requires_grad_()
        refused(
            function,
            given,
            r"Can't call numpy(\.apply_along_axis)?\(\) on Tensor that requires grad.* Use "
            r".*tensor.detach\(\)",
        )
        given[i] = t.detach()


@pytest.mark.parametrize("backend", ["numpy", "strict"], indirect=True)
@pytest.mark.parametrize("name", WRITING)
def test_functions_that_write(name: str, backend: str) -> None:
    function, *args = WRITING[name]
    same(function(*(mg.tensor(a, backend=backend) for a in args)), function(*args))
    given = [mg.tensor(a, backend=backend, requires_grad=True) for a in args]
    refused(function, given, "has been modified by an inplace operation")


def test_no_array_of_objects_comes_out() -> None:
    """gaussian_filter once made one of a foreign array, and of that nonsense."""
    smooth = ndimage.gaussian_filter(mg.asarray(V), 1.0)
    assert isinstance(smooth, mg.Tensor) and smooth.dtype == np.float64


def test_ufuncs() -> None:
    """What SciPy writes with NumPy's ufuncs is differentiable by NumPy's protocol."""
    check("numpy", lambda x: signal.gausspulse(x, fc=1.0), V)


@pytest.mark.parametrize("backend", ["numpy", "jax"], indirect=True)
def test_mixed_arrays(backend: str) -> None:
    x = mg.asarray(V, backend=backend, requires_grad=True)
    with pytest.raises(TypeError, match="Multiple namespaces for array inputs"):
        signal.lfilter(np.asarray([1.0, 2.0]), np.asarray([1.0, 0.5]), x)
