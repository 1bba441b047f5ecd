"""Transformations of functions over raw arrays, Tensors and nested structures of them."""
