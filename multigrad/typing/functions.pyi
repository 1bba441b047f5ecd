# Written by `make stubs` from the table of operations.

from builtins import bool as _bool
from collections.abc import Sequence
from typing import Any, Literal, overload

from ..core.tensor import Tensor
from ..inspection import FloatLimits, IntLimits
from . import Array, ArrayLike, Axes, Device, DType, Shape
from .namespaces import FFT, Linalg, UniqueAllResult, UniqueCountsResult, UniqueInverseResult

__all__: list[str] = [
    "e",
    "inf",
    "nan",
    "newaxis",
    "pi",
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
    "float16",
    "linalg",
    "fft",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "average",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "cbrt",
    "ceil",
    "clip",
    "concat",
    "concatenate",
    "conj",
    "convolve",
    "copysign",
    "corrcoef",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "deg2rad",
    "diag",
    "diagonal",
    "diff",
    "divide",
    "dot",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "finfo",
    "flatten",
    "flip",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "from_dlpack",
    "full",
    "full_like",
    "gradient",
    "greater",
    "greater_equal",
    "heaviside",
    "hstack",
    "hypot",
    "iinfo",
    "imag",
    "inner",
    "interp",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "kron",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "negative",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "percentile",
    "permute_dims",
    "positive",
    "pow",
    "prod",
    "ptp",
    "quantile",
    "rad2deg",
    "ravel",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "searchsorted",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "sliding_window_view",
    "softmax",
    "softplus",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "tril",
    "triu",
    "trunc",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]

e: float
inf: float
nan: float
newaxis: None
pi: float
bool: DType
int8: DType
int16: DType
int32: DType
int64: DType
uint8: DType
uint16: DType
uint32: DType
uint64: DType
float32: DType
float64: DType
complex64: DType
complex128: DType
float16: DType
linalg: Linalg
fft: FFT

def abs(x: Array, /) -> Tensor: ...
def acos(x: Array, /) -> Tensor: ...
def acosh(x: Array, /) -> Tensor: ...
def add(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def all(x: Array, /, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def any(x: Array, /, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def argmax(x: Array, /, axis: int | None = None, *, keepdims: _bool = False) -> Tensor: ...
def argmin(x: Array, /, axis: int | None = None, *, keepdims: _bool = False) -> Tensor: ...
def argsort(
    x: Array, /, axis: int = -1, *, descending: _bool = False, stable: _bool = True
) -> Tensor: ...
def asin(x: Array, /) -> Tensor: ...
def asinh(x: Array, /) -> Tensor: ...
def astype(
    x: Array, dtype: DType, /, *, copy: _bool = True, device: Device | None = None
) -> Tensor: ...
def atan(x: Array, /) -> Tensor: ...
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def atanh(x: Array, /) -> Tensor: ...
@overload
def atleast_1d(x: ArrayLike, /) -> Tensor: ...
@overload
def atleast_1d(x1: ArrayLike, x2: ArrayLike, /, *arrays: ArrayLike) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(x: ArrayLike, /) -> Tensor: ...
@overload
def atleast_2d(x1: ArrayLike, x2: ArrayLike, /, *arrays: ArrayLike) -> tuple[Tensor, ...]: ...
@overload
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    *,
    keepdims: _bool = False,
) -> Tensor: ...
@overload
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: _bool = False,
) -> tuple[Tensor, Tensor]: ...
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def bitwise_invert(x: Array, /) -> Tensor: ...
def bitwise_left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def broadcast_arrays(*arrays: ArrayLike) -> tuple[Tensor, ...]: ...
def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]: ...
def broadcast_to(x: Array, /, shape: Shape) -> Tensor: ...
def can_cast(from_: Any, to: Any, /) -> _bool: ...
def cbrt(x: Array, /) -> Tensor: ...
def ceil(x: Array, /) -> Tensor: ...
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor: ...
def concat(arrays: Sequence[ArrayLike], /, axis: int | None = 0) -> Tensor: ...
def concatenate(
    arrays: Sequence[ArrayLike], /, axis: int | None = 0, *, dtype: DType | None = None
) -> Tensor: ...
def conj(x: Array, /) -> Tensor: ...
def convolve(
    a: ArrayLike, v: ArrayLike, mode: Literal["full", "same", "valid"] = "full"
) -> Tensor: ...
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: _bool = True, *, dtype: DType | None = None
) -> Tensor: ...
def cos(x: Array, /) -> Tensor: ...
def cosh(x: Array, /) -> Tensor: ...
def count_nonzero(x: Array, /, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: _bool = True,
    bias: _bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: DType | None = None,
) -> Tensor: ...
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Tensor: ...
def cumprod(a: Array, axis: int | None = None, dtype: DType | None = None) -> Tensor: ...
def cumsum(a: Array, axis: int | None = None, dtype: DType | None = None) -> Tensor: ...
def cumulative_prod(
    x: Array,
    /,
    axis: int | None = None,
    *,
    dtype: DType | None = None,
    include_initial: _bool = False,
) -> Tensor: ...
def cumulative_sum(
    x: Array,
    /,
    axis: int | None = None,
    *,
    dtype: DType | None = None,
    include_initial: _bool = False,
) -> Tensor: ...
def deg2rad(x: Array, /) -> Tensor: ...
def diag(v: Array, k: int = 0) -> Tensor: ...
def diagonal(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: ...
def diff(
    x: ArrayLike,
    /,
    n: int = 1,
    axis: int = -1,
    *,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Tensor: ...
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def dot(a: ArrayLike, b: ArrayLike) -> Tensor: ...
def einsum(*operands: Any, optimize: Any = False) -> Tensor: ...
def empty(
    shape: Shape,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def empty_like(
    x: ArrayLike,
    /,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def exp(x: Array, /) -> Tensor: ...
def exp2(x: Array, /) -> Tensor: ...
def expand_dims(x: Array, /, axis: int | tuple[int, ...]) -> Tensor: ...
def expm1(x: Array, /) -> Tensor: ...
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def finfo(type: Any, /) -> FloatLimits: ...
def flatten(a: Array, order: Literal["C", "F"] = "C") -> Tensor: ...
def flip(x: Array, /, axis: Axes = None) -> Tensor: ...
def floor(x: Array, /) -> Tensor: ...
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def fmax(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def fmin(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def from_dlpack(
    x: Any,
    /,
    *,
    device: Device | None = None,
    copy: _bool | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def full(
    shape: Shape,
    fill_value: ArrayLike,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def full_like(
    x: ArrayLike,
    /,
    fill_value: ArrayLike,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def gradient(
    f: ArrayLike, *varargs: ArrayLike | Sequence[float], axis: Axes = None, edge_order: int = 1
) -> Any: ...
def greater(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def greater_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def hstack(tup: Sequence[ArrayLike], *, dtype: DType | None = None) -> Tensor: ...
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def iinfo(type: Any, /) -> IntLimits: ...
def imag(x: Array, /) -> Tensor: ...
def inner(a: ArrayLike, b: ArrayLike) -> Tensor: ...
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: float | None = None,
    right: float | None = None,
    period: float | None = None,
) -> Tensor: ...
def isdtype(dtype: DType, kind: str | DType | tuple[Any, ...]) -> _bool: ...
def isfinite(x: Array, /) -> Tensor: ...
def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: _bool = False) -> Tensor: ...
def isinf(x: Array, /) -> Tensor: ...
def isnan(x: Array, /) -> Tensor: ...
def kron(a: ArrayLike, b: ArrayLike) -> Tensor: ...
def less(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def less_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    endpoint: _bool = True,
    requires_grad: _bool = False,
) -> Tensor: ...
def log(x: Array, /) -> Tensor: ...
def log10(x: Array, /) -> Tensor: ...
def log1p(x: Array, /) -> Tensor: ...
def log2(x: Array, /) -> Tensor: ...
def log_softmax(x: Array, axis: Axes = None) -> Tensor: ...
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def logical_not(x: Array, /) -> Tensor: ...
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: _bool = False,
    return_sign: Literal[False] = False,
) -> Tensor: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: _bool = False,
    *,
    return_sign: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def matrix_transpose(x: Array, /) -> Tensor: ...
def max(x: Array, /, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def mean(x: Array, /, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def median(a: Array, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def meshgrid(*arrays: ArrayLike, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]: ...
def min(x: Array, /, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def moveaxis(x: Array, source: Shape, destination: Shape, /) -> Tensor: ...
def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def nan_to_num(
    x: Array,
    copy: _bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor: ...
def nanargmax(a: Array, axis: int | None = None, *, keepdims: _bool = False) -> Tensor: ...
def nanargmin(a: Array, axis: int | None = None, *, keepdims: _bool = False) -> Tensor: ...
def nancumprod(a: Array, axis: int | None = None, dtype: DType | None = None) -> Tensor: ...
def nancumsum(a: Array, axis: int | None = None, dtype: DType | None = None) -> Tensor: ...
def nanmax(a: Array, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def nanmean(
    a: Array, axis: Axes = None, dtype: DType | None = None, *, keepdims: _bool = False
) -> Tensor: ...
def nanmedian(a: Array, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def nanmin(a: Array, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    *,
    method: str = "linear",
    keepdims: _bool = False,
    weights: ArrayLike | None = None,
) -> Tensor: ...
def nanprod(
    a: Array, axis: Axes = None, dtype: DType | None = None, *, keepdims: _bool = False
) -> Tensor: ...
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    *,
    method: str = "linear",
    keepdims: _bool = False,
    weights: ArrayLike | None = None,
) -> Tensor: ...
def nanstd(
    a: Array,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    ddof: int = 0,
    keepdims: _bool = False,
    correction: float | None = None,
) -> Tensor: ...
def nansum(
    a: Array, axis: Axes = None, dtype: DType | None = None, *, keepdims: _bool = False
) -> Tensor: ...
def nanvar(
    a: Array,
    axis: Axes = None,
    dtype: DType | None = None,
    *,
    ddof: int = 0,
    keepdims: _bool = False,
    correction: float | None = None,
) -> Tensor: ...
def negative(x: Array, /) -> Tensor: ...
def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def nonzero(x: Array, /) -> tuple[Tensor, ...]: ...
def not_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def ones(
    shape: Shape,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def ones_like(
    x: ArrayLike,
    /,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def outer(a: ArrayLike, b: ArrayLike) -> Tensor: ...
def pad(
    array: Array,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: Literal["even", "odd"] = "even",
) -> Tensor: ...
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    *,
    method: str = "linear",
    keepdims: _bool = False,
    weights: ArrayLike | None = None,
) -> Tensor: ...
def permute_dims(x: Array, /, axes: Sequence[int]) -> Tensor: ...
def positive(x: Array, /) -> Tensor: ...
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def prod(
    x: Array, /, axis: Axes = None, *, dtype: DType | None = None, keepdims: _bool = False
) -> Tensor: ...
def ptp(a: Array, axis: Axes = None, *, keepdims: _bool = False) -> Tensor: ...
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    *,
    method: Literal["linear"] = "linear",
    keepdims: _bool = False,
    weights: ArrayLike | None = None,
) -> Tensor: ...
def rad2deg(x: Array, /) -> Tensor: ...
def ravel(a: Array, order: Literal["C", "F"] = "C") -> Tensor: ...
def real(x: Array, /) -> Tensor: ...
def reciprocal(x: Array, /) -> Tensor: ...
def relu(x: Array, /) -> Tensor: ...
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def repeat(x: ArrayLike, repeats: Array | int, /, axis: int | None = None) -> Tensor: ...
def reshape(x: Array, /, shape: Shape, *, copy: _bool | None = None) -> Tensor: ...
def result_type(*arrays_and_dtypes: Any) -> DType: ...
def roll(x: Array, /, shift: Shape, axis: Axes = None) -> Tensor: ...
def round(x: Array, /, *, decimals: int = ...) -> Tensor: ...
def searchsorted(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: ArrayLike | None = None,
) -> Tensor: ...
def sigmoid(x: Array, /) -> Tensor: ...
def sign(x: Array, /) -> Tensor: ...
def signbit(x: Array, /) -> Tensor: ...
def silu(x: Array, /) -> Tensor: ...
def sin(x: Array, /) -> Tensor: ...
def sinc(x: Array, /) -> Tensor: ...
def sinh(x: Array, /) -> Tensor: ...
def sliding_window_view(x: Array, window_shape: Shape, axis: Axes = None) -> Tensor: ...
def softmax(x: Array, axis: Axes = None) -> Tensor: ...
def softplus(x: Array, /, beta: float = 1.0, threshold: float = 20.0) -> Tensor: ...
def sort(
    x: Array, /, axis: int = -1, *, descending: _bool = False, stable: _bool = True
) -> Tensor: ...
def split(ary: Array, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]: ...
def sqrt(x: Array, /) -> Tensor: ...
def square(x: Array, /) -> Tensor: ...
def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Tensor: ...
def stack(arrays: Sequence[ArrayLike], /, axis: int = 0) -> Tensor: ...
def std(
    x: Array,
    /,
    axis: Axes = None,
    *,
    correction: float = 0.0,
    keepdims: _bool = False,
    ddof: float = ...,
) -> Tensor: ...
def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
def sum(
    x: Array, /, axis: Axes = None, *, dtype: DType | None = None, keepdims: _bool = False
) -> Tensor: ...
def swapaxes(a: Array, axis1: int, axis2: int) -> Tensor: ...
def take(
    x: ArrayLike, indices: Array | int | Sequence[Any], /, axis: int | None = None
) -> Tensor: ...
def take_along_axis(x: ArrayLike, indices: ArrayLike, /, axis: int = -1) -> Tensor: ...
def tan(x: Array, /) -> Tensor: ...
def tanh(x: Array, /) -> Tensor: ...
def tensordot(
    x1: ArrayLike, x2: ArrayLike, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor: ...
def tile(x: Array, repetitions: Shape, /) -> Tensor: ...
def trace(
    a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DType | None = None
) -> Tensor: ...
def transpose(a: Array, axes: Sequence[int] | None = None) -> Tensor: ...
def tril(x: Array, /, *, k: int = 0) -> Tensor: ...
def triu(x: Array, /, *, k: int = 0) -> Tensor: ...
def trunc(x: Array, /) -> Tensor: ...
def unique_all(x: Array, /) -> UniqueAllResult: ...
def unique_counts(x: Array, /) -> UniqueCountsResult: ...
def unique_inverse(x: Array, /) -> UniqueInverseResult: ...
def unique_values(x: Array, /) -> Tensor: ...
def unstack(x: Array, /, axis: int = 0) -> tuple[Tensor, ...]: ...
def var(
    x: Array,
    /,
    axis: Axes = None,
    *,
    correction: float = 0.0,
    keepdims: _bool = False,
    ddof: float = ...,
) -> Tensor: ...
def vecdot(x1: ArrayLike, x2: ArrayLike, /, axis: int = -1) -> Tensor: ...
def vstack(tup: Sequence[ArrayLike], *, dtype: DType | None = None) -> Tensor: ...
@overload
def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@overload
def where(condition: ArrayLike, /) -> tuple[Tensor, ...]: ...
def zeros(
    shape: Shape,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def zeros_like(
    x: ArrayLike,
    /,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
