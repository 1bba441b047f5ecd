"""Names beyond the standard that programs use: NumPy's, else SciPy's or PyTorch's, with their signature and meaning."""

from . import activations, nans, quantiles, statistics, ufuncs

__all__ = ["activations", "nans", "quantiles", "statistics", "ufuncs"]
