"""Names beyond the standard that programs use: NumPy's, else SciPy's or PyTorch's, with their signature and meaning."""

from . import einsum, interpolation, padding, products, sequences, shapes

__all__ = ["einsum", "interpolation", "padding", "products", "sequences", "shapes"]
