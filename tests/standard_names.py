"""The 239 names of the Array API standard 2025.12, with the signatures of its functions, as its
text gives them.

Written down apart from the table of operations, so that the tests compare the two.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace

CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")
DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
ATTRIBUTES = ("T", "device", "dtype", "mT", "ndim", "shape", "size")

UNARY = (
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_invert",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_not",
    "negative",
    "positive",
    "real",
    "reciprocal",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "square",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
)

BINARY = (
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "remainder",
    "subtract",
)

FUNCTIONS = """
    arange(start, /, stop=None, step=1, *, dtype=None, device=None)
    asarray(obj, /, *, dtype=None, device=None, copy=None)
    empty(shape, *, dtype=None, device=None)
    empty_like(x, /, *, dtype=None, device=None)
    eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
    from_dlpack(x, /, *, device=None, copy=None)
    full(shape, fill_value, *, dtype=None, device=None)
    full_like(x, /, fill_value, *, dtype=None, device=None)
    linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
    meshgrid(*arrays, indexing='xy')
    ones(shape, *, dtype=None, device=None)
    ones_like(x, /, *, dtype=None, device=None)
    tril(x, /, *, k=0)
    triu(x, /, *, k=0)
    zeros(shape, *, dtype=None, device=None)
    zeros_like(x, /, *, dtype=None, device=None)

    astype(x, dtype, /, *, copy=True, device=None)
    can_cast(from_, to, /)
    finfo(type, /)
    iinfo(type, /)
    isdtype(dtype, kind)
    result_type(*arrays_and_dtypes)

    clip(x, /, min=None, max=None)

    take(x, indices, /, *, axis=None)
    take_along_axis(x, indices, /, *, axis=-1)

    matmul(x1, x2, /)
    matrix_transpose(x, /)
    tensordot(x1, x2, /, *, axes=2)
    vecdot(x1, x2, /, *, axis=-1)

    broadcast_arrays(*arrays)
    broadcast_shapes(*shapes)
    broadcast_to(x, /, shape)
    concat(arrays, /, *, axis=0)
    expand_dims(x, /, axis)
    flip(x, /, *, axis=None)
    moveaxis(x, source, destination, /)
    permute_dims(x, /, axes)
    repeat(x, repeats, /, *, axis=None)
    reshape(x, /, shape, *, copy=None)
    roll(x, /, shift, *, axis=None)
    squeeze(x, /, axis)
    stack(arrays, /, *, axis=0)
    tile(x, repetitions, /)
    unstack(x, /, *, axis=0)

    argmax(x, /, *, axis=None, keepdims=False)
    argmin(x, /, *, axis=None, keepdims=False)
    count_nonzero(x, /, *, axis=None, keepdims=False)
    nonzero(x, /)
    searchsorted(x1, x2, /, *, side='left', sorter=None)
    where(condition, x1, x2, /)

    isin(x1, x2, /, *, invert=False)
    unique_all(x, /)
    unique_counts(x, /)
    unique_inverse(x, /)
    unique_values(x, /)

    argsort(x, /, *, axis=-1, descending=False, stable=True)
    sort(x, /, *, axis=-1, descending=False, stable=True)

    cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
    cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
    max(x, /, *, axis=None, keepdims=False)
    mean(x, /, *, axis=None, keepdims=False)
    min(x, /, *, axis=None, keepdims=False)
    prod(x, /, *, axis=None, dtype=None, keepdims=False)
    std(x, /, *, axis=None, correction=0.0, keepdims=False)
    sum(x, /, *, axis=None, dtype=None, keepdims=False)
    var(x, /, *, axis=None, correction=0.0, keepdims=False)

    all(x, /, *, axis=None, keepdims=False)
    any(x, /, *, axis=None, keepdims=False)
    diff(x, /, *, axis=-1, n=1, prepend=None, append=None)

    linalg.cholesky(x, /, *, upper=False)
    linalg.cross(x1, x2, /, *, axis=-1)
    linalg.det(x, /)
    linalg.diagonal(x, /, *, offset=0)
    linalg.eig(x, /)
    linalg.eigh(x, /)
    linalg.eigvals(x, /)
    linalg.eigvalsh(x, /)
    linalg.inv(x, /)
    linalg.matmul(x1, x2, /)
    linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')
    linalg.matrix_power(x, n, /)
    linalg.matrix_rank(x, /, *, rtol=None)
    linalg.matrix_transpose(x, /)
    linalg.outer(x1, x2, /)
    linalg.pinv(x, /, *, rtol=None)
    linalg.qr(x, /, *, mode='reduced')
    linalg.slogdet(x, /)
    linalg.solve(x1, x2, /)
    linalg.svd(x, /, *, full_matrices=True)
    linalg.svdvals(x, /)
    linalg.tensordot(x1, x2, /, *, axes=2)
    linalg.trace(x, /, *, offset=0, dtype=None)
    linalg.vecdot(x1, x2, /, *, axis=-1)
    linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)

    fft.fft(x, /, *, n=None, axis=-1, norm='backward')
    fft.ifft(x, /, *, n=None, axis=-1, norm='backward')
    fft.fftn(x, /, *, s=None, axes=None, norm='backward')
    fft.ifftn(x, /, *, s=None, axes=None, norm='backward')
    fft.rfft(x, /, *, n=None, axis=-1, norm='backward')
    fft.irfft(x, /, *, n=None, axis=-1, norm='backward')
    fft.rfftn(x, /, *, s=None, axes=None, norm='backward')
    fft.irfftn(x, /, *, s=None, axes=None, norm='backward')
    fft.hfft(x, /, *, n=None, axis=-1, norm='backward')
    fft.ihfft(x, /, *, n=None, axis=-1, norm='backward')
    fft.fftfreq(n, /, *, d=1.0, dtype=None, device=None)
    fft.rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
    fft.fftshift(x, /, *, axes=None)
    fft.ifftshift(x, /, *, axes=None)
"""

INSPECTION = """
    capabilities()
    default_device()
    default_dtypes(*, device=None)
    devices()
    dtypes(*, device=None, kind=None)
"""

METHODS = """
    __array_namespace__(*, api_version=None)
    __bool__()
    __complex__()
    __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
    __dlpack_device__()
    __float__()
    __getitem__(key, /)
    __index__()
    __int__()
    __setitem__(key, value, /)
    to_device(device, /, *, stream=None)
"""

UNARY_OPERATORS = ("abs", "invert", "neg", "pos")
COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
# Each has a reflected and an in-place form, which the standard asks for in words only.
ARITHMETIC = (
    "add",
    "and",
    "floordiv",
    "lshift",
    "matmul",
    "mod",
    "mul",
    "or",
    "pow",
    "rshift",
    "sub",
    "truediv",
    "xor",
)


def _read(text: str) -> dict[str, inspect.Signature]:
    """Names and signatures of lines such as `name(x, /, *, axis=None)`."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition("(")
        scope = SimpleNamespace()
        exec(f"def function({rest}: ...", vars(scope))
        found[name] = inspect.signature(scope.function)
    return found


def _all(names: tuple[str, ...], text: str) -> dict[str, inspect.Signature]:
    return _read("\n".join(text.replace("NAME", n) for n in names))


functions = _all(UNARY, "NAME(x, /)") | _all(BINARY, "NAME(x1, x2, /)") | _read(FUNCTIONS)
inspection = _read(INSPECTION)
methods = (
    _read(METHODS)
    | _all(UNARY_OPERATORS, "__NAME__()")
    | _all((*COMPARISONS, *ARITHMETIC), "__NAME__(other, /)")
)
unwritten = _all(
    tuple(f"{prefix}{stem}" for prefix in "ri" for stem in ARITHMETIC), "__NAME__(other, /)"
)
"""The reflected and in-place operators."""

names = [
    *functions,
    "__array_namespace_info__",
    *inspection,
    *(f"array.{n}" for n in (*methods, *ATTRIBUTES)),
    *CONSTANTS,
    *DTYPES,
]
assert len(set(names)) == len(names) == 239
