"""The docstrings of operations: the text of the table, the gradient, and an executed example.

A gradient is a line of mathematics, where `g` is the cotangent of the result `ans`. Entries of
`FORMULAS` are expressions that a test evaluates; entries of `GRADIENTS` are words. The examples are
in examples.py, with results that `make stubs` writes. A plugin may have tables of the same names in
a module `words` of its package. These modules are imported when the first function is made.
"""

from __future__ import annotations

import re
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
"""The gradient with respect to each argument, as an expression.

`n` is the number of elements that are reduced to one element of the result, or the size of a
matrix.
"""

AT = {
    "maximum": "g / 2 to each of two equal elements",
    "minimum": "g / 2 to each of two equal elements",
    "fmax": "g / 2 to each of two equal elements",
    "fmin": "g / 2 to each of two equal elements",
    "max": "elements equal to the extremum share g evenly",
    "min": "elements equal to the extremum share g evenly",
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
    "prod": "computed without division, so it is correct at 0",
    "atan2": "0 at (0, 0)",
    "copysign": "0 at x1 = 0",
    "clip": "at min and max themselves x gets g, and the bounds get 0",
    "linalg.inv": "of real matrices",
    "linalg.det": "exact for singular matrices too",
}
"""The values at kinks and singular points, or the case that the expression holds for."""

GRADIENTS = {
    "nanmax": "g for the element equal to the extremum; equal elements share it evenly",
    "nanmin": "g for the element equal to the extremum; equal elements share it evenly",
    "unique_all": "the cotangent of each value, added to its element of x",
    "real": "g as the real part",
    "imag": "1j * g",
    "where": "for x1: g where the condition holds, else 0; for x2: g elsewhere",
    "broadcast_to": "g, summed over the broadcast axes",
    "broadcast_arrays": "for each array: its cotangent, summed over the broadcast axes",
    "permute_dims": "g with its axes in the original order",
    "moveaxis": "g with its axes moved back",
    "swapaxes": "g with the two axes exchanged again",
    "concat": "for each array: its part of g",
    "concatenate": "for each array: its part of g",
    "stack": "for each array: its part of g",
    "hstack": "for each array: its part of g",
    "vstack": "for each array: its part of g",
    "unstack": "the cotangents of the parts, stacked",
    "split": "the cotangents of the parts, joined",
    "repeat": "g, summed over the copies of each element",
    "tile": "g, summed over the copies",
    "take": "zeros with g added at the indices",
    "take_along_axis": "zeros with g added at the indices",
    "cumulative_sum": "the sums of g from each element to the last",
    "cumulative_prod": "sums over all products that contain the element; correct at zeros",
    "sort": "each element of g goes back to the position of its element in x; ties keep their "
    "order",
    "diff": "-diff(g), with zeros at both ends, for n = 1",
    "tensordot": "for each array: g contracted with the conjugate of the other array",
    "vecdot": "for x1: conj(g) x2; for x2: g x1, along the axis",
    "linalg.cholesky": "L^-H Phi(L^H g) L^-1, made Hermitian, where Phi halves the diagonal of "
    "a lower triangle",
    "linalg.qr": "a function of Q, R and both cotangents; for matrices of full rank",
    "linalg.slogdet": "g x^-H for logabsdet",
    "linalg.eigh": "V (diag(g_w) + F * (V^H g_V)) V^H with F_ij = 1 / (w_j - w_i)",
    "linalg.eigvalsh": "V diag(g) V^H",
    "linalg.svd": "a function of U, S, Vh and their cotangents, with 1 / (s_j^2 - s_i^2) for the "
    "vectors",
    "linalg.svdvals": "U diag(g) Vh",
    "linalg.eig": "V^-H (diag(g_w) + F * (V^H g_V)) V^H with F_ij = 1 / conj(w_j - w_i)",
    "linalg.pinv": "the gradient for matrices of constant rank",
    "linalg.matrix_power": "the sum of (x^k)^H g (x^(n-1-k))^H over k < n",
    "linalg.cross": "for x1: x2 x g; for x2: g x x1",
    "linalg.outer": "for x1: g @ conj(x2); for x2: conj(x1) @ g",
    "linalg.diagonal": "a matrix with g on the diagonal",
    "fft.fft": "n ifft(g), for norm='backward'",
    "fft.ifft": "fft(g) / n, for norm='backward'",
    "fft.fftshift": "ifftshift(g)",
    "fft.ifftshift": "fftshift(g)",
    "astype": "g in the dtype of x, or its real part if x is real",
    "asarray": "g",
    "linspace": "sums of g, weighted by the distance from the other end of the interval",
    "softplus": "g / (1 + exp(-beta x))",
    "logsumexp": "g exp(a - ans)",
    "heaviside": "for x1: 0; for x2: g where x1 is 0",
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
"""The arguments of matrix functions."""


def text(op: Op) -> str:
    """The docstring of an operation."""
    parts = [
        op.doc,
        "\n".join(_arguments(op)),
        _returned(op),
        _raised(op),
        _gradient(op),
        _example(op),
        _meaning(op),
    ]
    return "\n\n".join(_wrapped(part) for part in parts if part)


def _wrapped(part: str) -> str:
    """Fill a paragraph to lines of 110; keep examples and lists of arguments unchanged."""
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
        lines.append(f"{arrays[0]}: {_kinds(op, 'an array')}")
    elif arrays:
        broadcast = " whose shapes broadcast" if _elementwise(op) or op.name == "where" else ""
        lines.append(
            f"{', '.join(arrays)}: {_kinds(op, 'arrays')}{broadcast}; if one of them is an array, "
            "others may be Python scalars"
        )
    lines += [
        f"{name}: arrays of one library; some of them may be Python scalars" for name in lists
    ]
    plain = [p for p in op.signature.parameters.values() if op.roles[p.name] == "plain"]
    meanings = {**MEANINGS, **getattr(_words(op.module.partition(".")[0]), "MEANINGS", {})}
    return lines + [f"{p.name}: {meanings[p.name]}" for p in plain if p.name in meanings]


MEANINGS = {
    "axis": "the axis, or a tuple of axes if the function accepts several; negative axes count "
    "from the last",
    "axes": "the axes, in order",
    "keepdims": "whether the result keeps the reduced axes, with length 1",
    "dtype": "the dtype of the result: a dtype of the library, or its name",
    "device": "its device",
    "correction": "the number that is subtracted from the number of elements",
    "shape": "the new shape, a tuple of ints",
    "k": "the diagonal; 0 is the main one",
    "offset": "the diagonal; 0 is the main one",
    "norm": "the direction that is divided by n: 'backward', 'forward', or 'ortho' (both are "
    "divided by its root)",
    "copy": "whether to copy; None copies only if necessary",
    "descending": "whether to sort from the largest to the smallest",
    "stable": "whether equal elements keep their order",
    "ord": "which norm",
    "full_matrices": "whether U and Vh are square",
    "upper": "whether to return the upper triangle",
    "include_initial": "whether the result begins with the empty sum or product",
    "method": "how to interpolate",
    "side": "'left' or 'right' of equal elements",
    "indexing": "'xy' (the first two axes exchanged) or 'ij'",
    "num": "how many",
    "endpoint": "whether the last number is `stop`",
    "shift": "the number of places to shift by",
    "mode": "the form of the result",
}
"""The meanings of plain parameters."""


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
    if op.chapter in ("fft", "linalg", "special"):
        return "floating dtypes"
    return "any numeric dtype" if op.chapter in ("elementwise", "statistical") else "any dtype"


def _kinds(op: Op, what: str) -> str:
    """`what`, "an array" or "arrays", with the dtypes that the operation takes."""
    dtypes = _dtypes(op)
    if dtypes == "floating dtypes":
        return "a floating-point array" if what == "an array" else "floating-point arrays"
    return f"{what} of {dtypes}"


def _elementwise(op: Op) -> bool:
    """Whether each element of the result depends on one element of each array.

    The chapter `special` has composite operations of this kind, too.
    """
    return op.kind == "elementwise" or op.chapter in ("elementwise", "special")


def _returned(op: Op) -> str:
    if op.outputs:
        return f"Returns a named tuple: {', '.join(op.outputs)}."
    if op.outputs is None:
        return "Returns a tuple of arrays."
    if op.chapter == "data_type" and op.kind == "nondifferentiable":
        return ""
    kind = "booleans" if op.name in BOOLEAN else "integers" if op.name in INDICES else ""
    what = f"Returns an array{f' of {kind}' if kind else ''}"
    if _elementwise(op):
        # bounds broadcast to x
        arrays = [a for a in op.arrays if a not in ("min", "max")] or list(op.arrays)
        dtype = (
            _dtypes(op) == "floating dtypes"
            and op.kind != "nondifferentiable"
            and op.name not in ("abs", "real", "imag")  # a complex array has a real result
        )
        if len(arrays) == 1:
            return f"{what} of the shape {'and dtype ' if dtype else ''}of {arrays[0]}."
        names = f"{', '.join(arrays[:-1])} and {arrays[-1]}"
        return f"{what} of the broadcast shape of {names}{', in their common dtype' * dtype}."
    if "keepdims" in op.roles and "axis" in op.roles:
        return (
            f"{what} with the shape of {op.arrays[0]} without the reduced axes; axis=None reduces "
            "over all axes, and the result has shape ()."
        )
    return f"{what}."


def _raised(op: Op) -> str:
    if not op.arrays or op.chapter == "creation":
        return (
            "Raises TypeError for an unknown dtype; for other invalid arguments the library's own "
            "exception is raised."
        )
    return (
        "Raises TypeError if no argument is an array of a known library, and MixedBackendsError "
        "if the arrays belong to two libraries. For shapes and dtypes that do not fit, the "
        "library's own exception is raised."
    )


def _gradient(op: Op) -> str:
    if op.kind == "nondifferentiable":
        return "Gradient: none; every transformation treats the result as a constant."
    formulas = _of(op, "FORMULAS", {})
    parts = [
        f"for {name}: {formula}" if len(op.differentiable) > 1 else formula
        for name, formula in formulas.items()
    ]
    text = "; ".join([*parts, *[t for t in (_of(op, "GRADIENTS", ""),) if t]])
    note = _of(op, "AT", "")
    if text:
        return f"Gradient, for the cotangent g: {text}{f' ({note})' if note else ''}."
    if op.kind == "composite":
        return "Gradient: it follows from the operations that this function consists of."
    return (
        "Gradient: the transpose of this linear map, applied to the cotangent."
        if op.kind in ("linear", "multilinear")
        else ""
    )


def _example(op: Op) -> str:
    call, result = _of(op, "EXAMPLES", ("", ""))
    return f"Example:\n\n    >>> {call}\n    {result}" if call else ""


def _of(op: Op, table: str, default: Any) -> Any:
    """The entry of an operation in a table of this module or of its plugin's module `words`."""
    return getattr(_words(op.module.partition(".")[0]), table, {}).get(op.name, default)


@cache
def _words(package: str) -> Any:
    """The module `words` of a package, or None."""
    name = __name__ if package == __name__.partition(".")[0] else f"{package}.words"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, package):
            raise
        return None


def _meaning(op: Op) -> str:
    """Where the function is defined; nothing if a name beyond the standard has no other source."""
    source = _of(op, "SOURCES", "")
    if not source and op.chapter == "beyond":
        named = re.search(r"\b(?:numpy|scipy|torch)(?:\.\w+)+", op.doc)
        source = named[0] if named else ""
    elif not source and not op.module.startswith("multigrad."):
        source = f"the plugin {op.module.partition('.')[0]}, {signature_text(op)}"
    elif not source and not op.public:
        source = f"multigrad's own, {op.name}"
    elif not source:
        kinks = (
            "; docs/subgradients.md gives the reasons for the gradients at these points"
            if op.name in AT
            else ""
        )
        source = f"the Python Array API standard 2025.12, {op.name}{kinks}"
    return f"Meaning: {source}." if source else ""
