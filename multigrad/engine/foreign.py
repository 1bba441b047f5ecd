"""Names of NumPy's and PyTorch's that multigrad does not have, with what there is instead: errors mention it."""

from __future__ import annotations

from collections.abc import Mapping

FUNCTIONS: Mapping[str, str] = {
    "absolute": "abs", "amax": "max", "amin": "min", "append": "concat", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "argwhere": "stack(nonzero(x), axis=1)", "around": "round", "array": "asarray",
    "array_split": "split, with the indices to split at", "as_tensor": "asarray", "asanyarray": "asarray", "ascontiguousarray": "asarray",
    "bitwise_not": "bitwise_invert", "bmm": "matmul", "cat": "concat", "chunk": "split", "clamp": "clip", "column_stack": "stack(arrays, axis=1)",
    "conjugate": "conj", "copy": "asarray(x, copy=True)",
    "degrees": "rad2deg", "det": "linalg.det", "div": "divide", "dsplit": "split(x, n, axis=2)", "eigh": "linalg.eigh", "eq": "equal", "fabs": "abs",
    "fix": "trunc", "fliplr": "flip(x, axis=1)", "flipud": "flip(x, axis=0)", "float_power": "pow", "from_numpy": "asarray",
    "gather": "take_along_axis", "ge": "greater_equal", "gt": "greater", "hsplit": "split(x, n, axis=1)", "in1d": "isin", "index_select": "take",
    "inv": "linalg.inv", "invert": "bitwise_invert", "le": "less_equal", "left_shift": "bitwise_left_shift", "lt": "less",
    "masked_fill": "where", "mm": "matmul", "mod": "remainder", "movedim": "moveaxis", "mul": "multiply", "mv": "matmul", "ndim": "x.ndim",
    "ne": "not_equal", "neg": "negative", "norm": "linalg.vector_norm", "numel": "x.size", "permute": "permute_dims", "power": "pow",
    "product": "prod", "radians": "deg2rad", "right_shift": "bitwise_right_shift", "rint": "round", "rollaxis": "moveaxis",
    "row_stack": "vstack", "rsqrt": "1 / sqrt(x)", "shape": "x.shape", "size": "x.size", "sub": "subtract", "swapdims": "swapaxes",
    "t": "matrix_transpose", "tensor": "asarray", "true_divide": "divide", "unbind": "unstack", "unique": "unique_values", "unsqueeze": "expand_dims",
    "vdot": "vecdot", "view": "reshape", "vsplit": "split(x, n, axis=0)",
}
"""Functions, by what to call; of an argument x, where it is no function."""

ATTRIBUTES: Mapping[str, str] = {
    "H": "x.mT.conj()", "amax": "x.max()", "amin": "x.min()", "argwhere": "x.nonzero()", "bmm": "x @ y", "chunk": "split(x, n)",
    "clamp": "x.clip()", "conjugate": "x.conj()", "contiguous": "x itself", "copy": "x.clone()", "cpu": "x.to_device()", "cuda": "x.to_device()",
    "dim": "x.ndim", "div": "x / y", "double": "x.astype()",
    "expand": "x.broadcast_to()", "expand_as": "x.broadcast_to()", "float": "x.astype()", "gather": "take_along_axis(x, indices)",
    "half": "x.astype()",
    "index_select": "take(x, indices)", "int": "x.astype()", "is_floating_point": "isdtype(x.dtype, 'real floating')", "long": "x.astype()",
    "masked_fill": "where(mask, value, x)", "mm": "x @ y", "movedim": "x.moveaxis()", "mul": "x * y", "mv": "x @ y",
    "ndimension": "x.ndim", "nelement": "x.size", "new_zeros": "zeros_like(x)", "norm": "linalg.vector_norm(x)", "numel": "x.size",
    "permute": "x.permute_dims()", "ptp": "ptp(x)", "put": "x[key] = values", "rsqrt": "1 / x.sqrt()",
    "split": "split(x, indices_or_sections): NumPy's sections, not PyTorch's sizes", "sub": "x - y", "t": "x.T", "to": "x.astype() or x.to_device()",
    "type_as": "x.astype(y.dtype)", "unbind": "x.unstack()", "unsqueeze": "x.expand_dims()", "view": "x.reshape()", "view_as": "x.reshape(y.shape)",
}
"""Attributes of arrays, by what to write for an array x; functions without an x in front are those of the namespace."""


def hint(names: Mapping[str, str], name: str) -> str:
    """What an error about a missing name says of what there is instead: a sentence, or nothing."""
    there = names.get(name)
    return "" if there is None else f". It is called {there} here" if there.isidentifier() else f". Write {there}"
