"""scipy.ndimage: the filters, measurements and interpolations with floating results, on Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from consumer_checks import drawn
from consumer_tables import SCIPY, Call, Table

ndimage = pytest.importorskip("scipy.ndimage", reason="scipy is a dependency of the tests only")

X, V, W = drawn(3, 4), drawn(6), drawn(3, seed=2)
LABELS, INDEX = np.asarray([0, 0, 1, 1, 2, 2]), np.asarray([1, 2])


def of_one(name: str, *given: Any, **options: Any) -> Call:
    return Call(f"ndimage.{name}", lambda x: getattr(ndimage, name)(x, *given, **options), (X,))


def measured(name: str) -> Call:
    return Call(
        f"ndimage.{name}",
        lambda x, labels, index: getattr(ndimage, name)(x, labels, index),
        (V, LABELS, INDEX),
    )


CALLS = [
    *(
        of_one(name, (2, 2))
        for name in (
            "black_tophat",
            "grey_closing",
            "grey_dilation",
            "grey_erosion",
            "grey_opening",
            "morphological_gradient",
            "morphological_laplace",
            "white_tophat",
        )
    ),
    *(
        of_one(name, 3)
        for name in (
            "maximum_filter",
            "maximum_filter1d",
            "median_filter",
            "minimum_filter",
            "minimum_filter1d",
            "uniform_filter",
            "uniform_filter1d",
        )
    ),
    *(
        of_one(name, 1.0)
        for name in (
            "gaussian_filter",
            "gaussian_filter1d",
            "gaussian_gradient_magnitude",
            "gaussian_laplace",
        )
    ),
    *(of_one(name) for name in ("laplace", "prewitt", "sobel", "spline_filter", "spline_filter1d")),
    *(
        of_one(name, 0.7)
        for name in ("fourier_ellipsoid", "fourier_gaussian", "fourier_shift", "fourier_uniform")
    ),
    *(
        measured(name)
        for name in (
            "maximum",
            "mean",
            "median",
            "minimum",
            "standard_deviation",
            "sum_labels",
            "variance",
        )
    ),
    of_one("percentile_filter", 40, 3),
    of_one("rank_filter", 1, 2),
    of_one("rotate", 30.0, reshape=False),
    of_one("shift", 0.4),
    of_one("zoom", 1.5),
    Call("ndimage.sum", lambda x, labels, index: ndimage.sum(x, labels, index), (V, LABELS, INDEX)),
    Call(
        "ndimage.affine_transform",
        lambda x, m: ndimage.affine_transform(x, m),
        (X, np.asarray([[0.9, 0.1], [0.05, 0.8]])),
        by=[0],
    ),
    Call("ndimage.center_of_mass", ndimage.center_of_mass, (X,)),
    Call("ndimage.convolve", ndimage.convolve, (V, W)),
    Call("ndimage.convolve1d", ndimage.convolve1d, (V, W)),
    Call("ndimage.correlate", ndimage.correlate, (V, W)),
    Call("ndimage.correlate1d", ndimage.correlate1d, (V, W)),
    Call("ndimage.extrema", lambda x: list(ndimage.extrema(x))[:2], (X,)),
    Call("ndimage.generic_filter", lambda x: ndimage.generic_filter(x, lambda a: a.sum(), 3), (V,)),
    Call("ndimage.generic_filter1d", lambda x: ndimage.generic_filter1d(x, doubled, 3), (V,)),
    Call(
        "ndimage.generic_gradient_magnitude",
        lambda x: ndimage.generic_gradient_magnitude(x, ndimage.sobel),
        (X,),
    ),
    Call("ndimage.generic_laplace", lambda x: ndimage.generic_laplace(x, ndimage.sobel), (X,)),
    Call(
        "ndimage.geometric_transform",
        lambda x: ndimage.geometric_transform(x, lambda at: (at[0] * 0.8,)),
        (V,),
    ),
    Call(
        "ndimage.labeled_comprehension",
        lambda x, labels, index: ndimage.labeled_comprehension(
            x, labels, index, lambda a: a.sum(), float, 0.0
        ),
        (V, LABELS, INDEX),
    ),
    Call(
        "ndimage.map_coordinates",
        lambda x, at: ndimage.map_coordinates(x, at, order=2),
        (X, np.asarray([[0.4, 1.3], [1.2, 2.6]])),
    ),
    Call("ndimage.vectorized_filter", lambda x: ndimage.vectorized_filter(x, summed, size=3), (V,)),
]


def doubled(line: Any, out: Any) -> None:
    out[...] = 2 * line[1:-1]


def summed(windows: Any, axis: Any) -> Any:
    xp = windows.__array_namespace__()
    return xp.sum(windows, axis=axis)


TABLE = Table("SciPy", "scipy_ndimage", CALLS, part="scipy.ndimage", settings=SCIPY)
test_calls = TABLE.test()
