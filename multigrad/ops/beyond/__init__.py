"""Names beyond the standard that programs use: NumPy's, else SciPy's or PyTorch's, with their
signature and meaning.
"""

from . import (
    activations,
    einsum,
    interpolation,
    nans,
    padding,
    products,
    quantiles,
    running,
    sequences,
    shapes,
    statistics,
    ufuncs,
)

__all__ = [
    "activations",
    "einsum",
    "interpolation",
    "nans",
    "padding",
    "products",
    "quantiles",
    "running",
    "sequences",
    "shapes",
    "statistics",
    "ufuncs",
]
