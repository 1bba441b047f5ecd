"""The docstrings of operations: what the table says of an operation, put in words, with its
gradient and an executed example.

A gradient is a line of mathematics, where `g` is the cotangent of the result `ans`. What stands in
`FORMULAS` is an expression that a test evaluates; `GRADIENTS` says the others in words. The
examples are in examples.py, with results that `make stubs` writes. A plugin has the same tables, as
far as it likes, in a module `words` of its package. None of it is imported before the first
function is made.
"""

from __future__ import annotations

import inspect
import textwrap
from functools import cache
from importlib import import_module
from typing import Any

from ..registry import Op, signature_text
from .examples import EXAMPLES

__all__ = ["AT", "EXAMPLES", "FORMULAS", "GRADIENTS", "text"]

FORMULAS: dict[str, dict[str, str]] = {
    "add": {"x1": "g", "x2": "g"},
    "subtract": {"x1": "g", "x2": "-g"},
    "multiply": {"x1": "g * x2", "x2": "g * x1"},
    "divide": {"x1": "g / x2", "x2": "-g * x1 / x2**2"},
    "negative": {"x": "-g"},
    "positive": {"x": "g"},
    "reciprocal": {"x": "-g / x**2"},
    "square": {"x": "2 * g * x"},
    "sqrt": {"x": "g / (2 * sqrt(x))"},
    "pow": {"x1": "g * x2 * x1**(x2 - 1)", "x2": "g * ans * log(x1)"},
    "remainder": {"x1": "g", "x2": "-g * floor(x1 / x2)"},
    "exp": {"x": "g * exp(x)"},
    "expm1": {"x": "g * exp(x)"},
    "log": {"x": "g / x"},
    "log1p": {"x": "g / (1 + x)"},
    "log2": {"x": "g / (x * log(2))"},
    "log10": {"x": "g / (x * log(10))"},
    "logaddexp": {"x1": "g * exp(x1 - ans)", "x2": "g * exp(x2 - ans)"},
    "sin": {"x": "g * cos(x)"},
    "cos": {"x": "-g * sin(x)"},
    "tan": {"x": "g * (1 + tan(x)**2)"},
    "sinh": {"x": "g * cosh(x)"},
    "cosh": {"x": "g * sinh(x)"},
    "tanh": {"x": "g * (1 - tanh(x)**2)"},
    "asin": {"x": "g / sqrt(1 - x**2)"},
    "acos": {"x": "-g / sqrt(1 - x**2)"},
    "atan": {"x": "g / (1 + x**2)"},
    "asinh": {"x": "g / sqrt(1 + x**2)"},
    "acosh": {"x": "g / sqrt(x**2 - 1)"},
    "atanh": {"x": "g / (1 - x**2)"},
    "atan2": {"x1": "g * x2 / (x1**2 + x2**2)", "x2": "-g * x1 / (x1**2 + x2**2)"},
    "hypot": {"x1": "g * x1 / ans", "x2": "g * x2 / ans"},
    "abs": {"x": "g * sign(x)"},
    "sign": {"x": "0 * g"},
    "ceil": {"x": "0 * g"},
    "floor": {"x": "0 * g"},
    "round": {"x": "0 * g"},
    "trunc": {"x": "0 * g"},
    "conj": {"x": "conj(g)"},
    "copysign": {"x1": "g * sign(x1) * sign(x2)", "x2": "0 * g"},
    "maximum": {"x1": "where(x1 > x2, g, 0)", "x2": "where(x2 > x1, g, 0)"},
    "minimum": {"x1": "where(x1 < x2, g, 0)", "x2": "where(x2 < x1, g, 0)"},
    "clip": {"x": "where((x >= min) & (x <= max), g, 0)"},
    "cbrt": {"x": "g / (3 * ans**2)"},
    "deg2rad": {"x": "g * pi / 180"},
    "rad2deg": {"x": "g * 180 / pi"},
    "exp2": {"x": "g * ans * log(2)"},
    "fmax": {"x1": "where(x1 > x2, g, 0)", "x2": "where(x2 > x1, g, 0)"},
    "fmin": {"x1": "where(x1 < x2, g, 0)", "x2": "where(x2 < x1, g, 0)"},
    "fmod": {"x1": "g", "x2": "-g * trunc(x1 / x2)"},
    "logaddexp2": {"x1": "g * exp2(x1 - ans)", "x2": "g * exp2(x2 - ans)"},
    "sigmoid": {"x": "g * ans * (1 - ans)"},
    "relu": {"x": "where(x > 0, g, 0)"},
    "silu": {"x": "g * sigmoid(x) * (1 + x * (1 - sigmoid(x)))"},
    "softmax": {"x": "ans * (g - sum(g * ans, axis=axis, keepdims=True))"},
    "log_softmax": {"x": "g - exp(ans) * sum(g, axis=axis, keepdims=True)"},
    "sum": {"x": "broadcast_to(g, x.shape)"},
    "mean": {"x": "broadcast_to(g, x.shape) / n"},
    "var": {"x": "2 * g * (x - mean(x)) / n"},
    "std": {"x": "g * (x - mean(x)) / (n * ans)"},
    "max": {"x": "where(x == ans, g, 0)"},
    "min": {"x": "where(x == ans, g, 0)"},
    "prod": {"x": "g * ans / x"},
    "reshape": {"x": "reshape(g, x.shape)"},
    "expand_dims": {"x": "squeeze(g, axis=axis)"},
    "squeeze": {"x": "reshape(g, x.shape)"},
    "matrix_transpose": {"x": "matrix_transpose(g)"},
    "flip": {"x": "flip(g, axis=axis)"},
    "roll": {"x": "roll(g, -shift, axis=axis)"},
    "tril": {"x": "tril(g, k=k)"},
    "triu": {"x": "triu(g, k=k)"},
    "matmul": {"x1": "g @ matrix_transpose(conj(x2))", "x2": "matrix_transpose(conj(x1)) @ g"},
    "linalg.inv": {"x": "-matrix_transpose(ans) @ g @ matrix_transpose(ans)"},
    "linalg.det": {"x": "g * ans * matrix_transpose(linalg.inv(x))"},
    "linalg.solve": {
        "x1": "-outer(linalg.solve(matrix_transpose(x1), g), ans)",
        "x2": "linalg.solve(matrix_transpose(x1), g)",
    },
    "linalg.trace": {"x": "g * eye(n)"},
    "linalg.vector_norm": {"x": "g * x / ans"},
    "linalg.matrix_norm": {"x": "g * x / ans"},
}
"""The gradients by each argument, as expressions; `n` is the number of elements that go into one of
the result, or the size of a matrix.
"""

AT = {
    "maximum": "g / 2 to each of two equal elements",
    "minimum": "g / 2 to each of two equal elements",
    "fmax": "g / 2 to each of two equal elements",
    "fmin": "g / 2 to each of two equal elements",
    "max": "equal extrema share g evenly",
    "min": "equal extrema share g evenly",
    "std": "0 where all elements are equal",
    "linalg.vector_norm": "0 at the vector of zeros; for ord=2, of real arrays",
    "linalg.matrix_norm": "0 at the matrix of zeros; for ord='fro', of real arrays",
    "abs": "0 at 0",
    "relu": "0 at 0",
    "sqrt": "inf at 0",
    "hypot": "0 at (0, 0)",
    "asin": "inf at -1 and 1",
    "acos": "-inf at -1 and 1",
    "acosh": "inf at 1",
    "cbrt": "inf at 0",
    "prod": "computed without a division, so right at 0",
    "atan2": "0 at (0, 0)",
    "copysign": "0 at x1 = 0",
    "clip": "g at the bounds themselves, which the bounds do not share",
    "linalg.inv": "of real matrices",
    "linalg.det": "exact for singular matrices too",
}
"""What holds at kinks and singular points, or where the expression is for a case only."""

GRADIENTS = {
    "nanmax": "g where x is the extremum; equal ones share it evenly",
    "nanmin": "g where x is the extremum; equal ones share it evenly",
    "unique_all": "the cotangent of each value, put to its place in x",
    "real": "g, as the real part",
    "imag": "1j * g",
    "where": "of x1: g where the condition holds, else 0; of x2: g elsewhere",
    "broadcast_to": "g, summed over the axes that were broadcast",
    "broadcast_arrays": "of each array: its cotangent, summed over what was broadcast",
    "permute_dims": "g with its axes put back",
    "moveaxis": "g with its axes moved back",
    "swapaxes": "g with the two axes exchanged again",
    "concat": "of each array: its part of g",
    "concatenate": "of each array: its part of g",
    "stack": "of each array: its part of g",
    "hstack": "of each array: its part of g",
    "vstack": "of each array: its part of g",
    "unstack": "the cotangents of the parts, stacked",
    "split": "the cotangents of the parts, joined",
    "repeat": "g, summed over the copies of each element",
    "tile": "g, summed over the copies",
    "take": "zeros with g added at the indices",
    "take_along_axis": "zeros with g added at the indices",
    "cumulative_sum": "the sums of g from each element on",
    "cumulative_prod": "sums over the products that each element is in; right at zeros",
    "sort": "g, put back to where the elements were; ties keep their order",
    "diff": "-diff(g), with zeros at both ends, for n = 1",
    "tensordot": "of each array: g contracted with the conjugate of the other",
    "vecdot": "of x1: conj(g) x2; of x2: g x1, along the axis",
    "linalg.cholesky": "L^-H Phi(L^H g) L^-1, made Hermitian, where Phi halves the diagonal of "
    "a lower triangle",
    "linalg.qr": "from Q, R and both cotangents; for matrices of full rank",
    "linalg.slogdet": "g x^-H, of logabsdet",
    "linalg.eigh": "V (diag(g_w) + F * (V^H g_V)) V^H with F_ij = 1 / (w_j - w_i)",
    "linalg.eigvalsh": "V diag(g) V^H",
    "linalg.svd": "from U, S, Vh and their cotangents, with 1 / (s_j^2 - s_i^2) for the vectors",
    "linalg.svdvals": "U diag(g) Vh",
    "linalg.eig": "V^-H (diag(g_w) + F * (V^H g_V)) V^H with F_ij = 1 / conj(w_j - w_i)",
    "linalg.pinv": "that of matrices whose rank does not change",
    "linalg.matrix_power": "the sum of (x^k)^H g (x^(n-1-k))^H over k < n",
    "linalg.cross": "of x1: x2 x g; of x2: g x x1",
    "linalg.outer": "of x1: g @ conj(x2); of x2: conj(x1) @ g",
    "linalg.diagonal": "a matrix with g on the diagonal",
    "fft.fft": "n ifft(g), for norm='backward'",
    "fft.ifft": "fft(g) / n, for norm='backward'",
    "fft.fftshift": "ifftshift(g)",
    "fft.ifftshift": "fftshift(g)",
    "astype": "g in the dtype of x, its real part where x is real",
    "asarray": "g",
    "linspace": "sums of g, weighted by the distance from the other end",
    "softplus": "g / (1 + exp(-beta x))",
    "logsumexp": "g exp(a - ans)",
    "heaviside": "0; of x2: g where x1 is 0",
}
"""The gradients in words."""

BOOLEAN = (
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "signbit",
    "isin",
    "all",
    "any",
)
INDICES = (
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "nanargmax",
    "nanargmin",
    "nonzero",
    "searchsorted",
)
SPD = {
    "linalg.cholesky": "Hermitian positive definite matrices (..., M, M)",
    "linalg.qr": "matrices (..., M, N)",
    "linalg.svd": "matrices (..., M, N)",
    "linalg.svdvals": "matrices (..., M, N)",
    "linalg.eigh": "Hermitian matrices (..., M, M)",
    "linalg.eigvalsh": "Hermitian matrices (..., M, M)",
    "linalg.eig": "square matrices (..., M, M)",
    "linalg.eigvals": "square matrices (..., M, M)",
    "linalg.det": "square matrices (..., M, M)",
    "linalg.slogdet": "square matrices (..., M, M)",
    "linalg.inv": "square matrices (..., M, M)",
    "linalg.matrix_power": "square matrices (..., M, M)",
    "linalg.pinv": "matrices (..., M, N)",
    "linalg.matrix_rank": "matrices (..., M, N)",
    "linalg.matrix_norm": "matrices (..., M, N)",
}
"""The arguments of the functions of matrices."""


def text(op: Op) -> str:
    """The docstring of an operation."""
    parts = [
        op.doc,
        "\n".join(_arguments(op)),
        _returned(op),
        _raised(op),
        _gradient(op),
        _example(op),
        f"Meaning: {_source(op)}.",
    ]
    return "\n\n".join(_wrapped(part) for part in parts if part)


def _wrapped(part: str) -> str:
    """A paragraph in lines of 110; an example, and lists of arguments, as they are."""
    return (
        part
        if "\n" in part
        else textwrap.fill(part, 110, break_long_words=False, break_on_hyphens=False)
    )


def _arguments(op: Op) -> list[str]:
    """A line for each kind of argument."""
    arrays = [name for name, role in op.roles.items() if role == "array"]
    lists = [name for name, role in op.roles.items() if role == "arrays"]
    lines = []
    if arrays and op.name in SPD:
        lines.append(f"{', '.join(arrays)}: {SPD[op.name]} of a floating dtype")
    elif op.name in ("matmul", "linalg.matmul"):
        lines.append(
            "x1, x2: arrays of shapes (..., M, K) and (..., K, N), or vectors (K,), of numeric "
            "dtypes"
        )
    elif op.name == "linalg.solve":
        lines.append("x1: (..., M, M); x2: (M,) or (..., M, K), of floating dtypes")
    elif len(arrays) == 1:
        lines.append(f"{arrays[0]}: an array, of {_dtypes(op)}")
    elif arrays:
        broadcast = (
            ", whose shapes broadcast"
            if op.kind == "elementwise" or op.chapter == "elementwise" or op.name == "where"
            else ""
        )
        lines.append(
            f"{', '.join(arrays)}: arrays{broadcast}, of {_dtypes(op)}; beside an array, Python "
            "scalars as well"
        )
    lines += [
        f"{name}: arrays of one library, of which some may be Python scalars" for name in lists
    ]
    plain = [p for p in op.signature.parameters.values() if op.roles[p.name] == "plain"]
    meanings = {**MEANINGS, **getattr(_words(op.module.partition(".")[0]), "MEANINGS", {})}
    return lines + [f"{p.name}: {meanings[p.name]}" for p in plain if p.name in meanings]


MEANINGS = {
    "axis": "the axis or, where the function takes several, a tuple of axes; negative ones "
    "count from the last",
    "axes": "the axes, in order",
    "keepdims": "whether reduced axes stay, with length 1",
    "dtype": "the dtype of the result, of the library or by name",
    "device": "its device",
    "correction": "what is subtracted from the number of elements",
    "shape": "the new shape, a tuple of ints",
    "k": "which diagonal; 0 is the main one",
    "offset": "which diagonal; 0 is the main one",
    "norm": "which direction is divided by n: 'backward', 'ortho' (both by its root), 'forward'",
    "copy": "whether to copy; None: only where needed",
    "descending": "whether from the largest to the smallest",
    "stable": "whether equal elements keep their order",
    "ord": "which norm",
    "full_matrices": "whether U and Vh are square",
    "upper": "whether the upper triangle is returned",
    "include_initial": "whether to begin with the sum, or product, of nothing",
    "method": "how to interpolate",
    "side": "'left' or 'right' of equal elements",
    "indexing": "'xy' (the first two axes exchanged) or 'ij'",
    "num": "how many",
    "endpoint": "whether the last one is `stop`",
    "shift": "by how many places",
    "mode": "which form of the result",
}
"""What plain parameters mean."""


def _dtypes(op: Op) -> str:
    if op.name in ("mean", "var", "std"):
        return "floating dtypes"
    if op.name.startswith(("bitwise", "logical")):
        return "boolean dtypes" if op.name.startswith("logical") else "integer or boolean dtypes"
    if op.kind == "elementwise" and op.name not in (
        "add",
        "subtract",
        "multiply",
        "negative",
        "positive",
        "square",
        "pow",
        "remainder",
        "maximum",
        "minimum",
        "clip",
        "ceil",
        "floor",
        "round",
        "trunc",
    ):
        return "floating dtypes"
    if op.chapter in ("fft", "linalg"):
        return "floating dtypes"
    return "any numeric dtype" if op.chapter in ("elementwise", "statistical") else "any dtype"


def _returned(op: Op) -> str:
    if op.outputs:
        return f"Returns a named tuple: {', '.join(op.outputs)}."
    if op.outputs is None:
        return "Returns a tuple of arrays."
    if op.chapter == "data_type" and op.kind == "nondifferentiable":
        return ""
    kind = "booleans" if op.name in BOOLEAN else "integers" if op.name in INDICES else ""
    what = f"Returns an array{f' of {kind}' if kind else ''}"
    if op.chapter == "elementwise" or op.kind == "elementwise":
        arrays = [
            a for a in op.arrays if op.signature.parameters[a].default is inspect.Parameter.empty
        ]
        return (
            f"{what} of the shape of {arrays[0]}."
            if len(arrays) == 1
            else f"{what} of the shape to which {' and '.join(arrays)} broadcast."
        )
    if "keepdims" in op.roles and "axis" in op.roles:
        return (
            f"{what} of the shape of {op.arrays[0]} without the axes reduced over; "
            "axis=None stands for all, and gives one of shape ()."
        )
    return f"{what}."


def _raised(op: Op) -> str:
    if not op.arrays or op.chapter == "creation":
        return (
            "Raises TypeError for an unknown dtype, and what the library raises for other "
            "arguments."
        )
    return (
        "Raises TypeError where no argument is an array of a known library, MixedBackendsError "
        "where they are of two, and what the library raises for shapes and dtypes that do not "
        "fit."
    )


def _gradient(op: Op) -> str:
    if op.kind == "nondifferentiable":
        return "Gradient: none; the result is a constant to every transformation."
    formulas = _of(op, "FORMULAS", {})
    parts = [
        f"of {name}: {formula}" if len(op.differentiable) > 1 else formula
        for name, formula in formulas.items()
    ]
    text = "; ".join([*parts, *[t for t in (_of(op, "GRADIENTS", ""),) if t]])
    note = _of(op, "AT", "")
    if text:
        return f"Gradient, for the cotangent g: {text}{f' ({note})' if note else ''}."
    if op.kind == "composite":
        return "Gradient: that of the operations which it consists of."
    return (
        "Gradient: the transpose of this linear map, applied to the cotangent."
        if op.kind in ("linear", "multilinear")
        else ""
    )


def _example(op: Op) -> str:
    call, result = _of(op, "EXAMPLES", ("", ""))
    return f"Example:\n\n    >>> {call}\n    {result}" if call else ""


def _of(op: Op, table: str, default: Any) -> Any:
    """What a table of words has for an operation: one of this module, or of the plugin that
    declares the operation.
    """
    return getattr(_words(op.module.partition(".")[0]), table, {}).get(op.name, default)


@cache
def _words(package: str) -> Any:
    """The module of words of a package, or None."""
    name = __name__ if package == __name__.partition(".")[0] else f"{package}.words"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, package):
            raise
        return None


def _source(op: Op) -> str:
    last = op.name.rpartition(".")[2]
    if source := _of(op, "SOURCES", ""):
        return str(source)
    if op.chapter == "special" or op.name.startswith("special."):
        return f"scipy.special.{last}, and PyTorch for what gradients are at singular points"
    if op.chapter == "beyond":
        return "NumPy, SciPy or PyTorch, as said above"
    if not op.module.startswith("multigrad."):
        return f"the plugin {op.module.partition('.')[0]}, {signature_text(op)}"
    kinks = "; docs/subgradients.md tells why gradients are these" if op.name in AT else ""
    return f"the Python Array API standard 2025.12, {op.name}{kinks}"
