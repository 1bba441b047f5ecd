"""Names beyond the standard that programs use.

Signatures and meanings are NumPy's, or else SciPy's or PyTorch's.
"""

from . import (  # noqa: F401 - importing them fills the table
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
