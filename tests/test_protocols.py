"""NumPy's protocols: every ufunc and function that has a counterpart gives NumPy's values and the derivative, on every backend and at every level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from consumer_checks import check, drawn, values

import multigrad as mg
from multigrad.errors import GradientError, MixedBackendsError

X, Y, V, W = drawn(2, 3), drawn(2, 3, seed=1), drawn(5), drawn(5, seed=2)
SIGNED = drawn(2, 3, low=-0.9, high=0.9)
Z = V + 1j * W
SQUARE = drawn(3, 3) + 3 * np.eye(3)
SYMMETRIC = SQUARE + SQUARE.T
MASK = np.asarray([[True, False, True], [False, True, True]])
NAN = np.where(MASK, X, np.nan)
PLACES = np.asarray([2, 0, 2])
GRID = np.asarray([0.0, 0.5, 1.1, 2.0, 2.5])


def symmetric(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of the symmetric part, so that differences stay among symmetric matrices."""
    return lambda a: function((a + np.matrix_transpose(a)) / 2)


UFUNCS: dict[str, tuple[Any, ...]] = {
    **{name: (X,) for name in ("absolute", "cbrt", "ceil", "conjugate", "cos", "cosh", "deg2rad", "degrees", "exp", "exp2", "expm1", "fabs", "floor",
                               "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "negative", "positive", "rad2deg", "radians",
                               "reciprocal", "rint", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "logical_not")},
    **{name: (SIGNED,) for name in ("arccos", "arcsin", "arcsinh", "arctan", "arctanh", "modf")},
    "arccosh": (X + 1,),
    **{name: (X, Y) for name in ("add", "arctan2", "copysign", "divide", "equal", "float_power", "floor_divide", "fmax", "fmin", "fmod", "greater",
                                 "greater_equal", "heaviside", "hypot", "less", "less_equal", "logaddexp", "logaddexp2", "logical_and",
                                 "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter", "not_equal", "power", "remainder",
                                 "subtract", "vecdot", "divmod")},
    "matmul": (X, Y.T), "matvec": (X, drawn(3)), "vecmat": (drawn(2), X),
    **{name: (np.asarray([5, 3, 8]), np.asarray([1, 2, 3])) for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")},
    "invert": (np.asarray([5, 3, 8]),),
}

FUNCTIONS: dict[str, tuple[Any, ...]] = {
    # reductions
    "all": (lambda x: np.all(x > 1, axis=0), X), "any": (lambda x: np.any(x, axis=1, where=MASK), X), "amax": (np.amax, X),
    "amin": (lambda x: np.amin(x, 1, keepdims=True), X), "argmax": (lambda x: np.argmax(x, 1), X), "argmin": (np.argmin, X),
    "count_nonzero": (lambda x: np.count_nonzero(x, axis=1), X), "cumprod": (lambda x: np.cumprod(x, axis=1), X), "cumsum": (np.cumsum, X),
    "cumulative_prod": (lambda x: np.cumulative_prod(x, axis=1), X),
    "cumulative_sum": (lambda x: np.cumulative_sum(x, axis=0, include_initial=True), X),
    "max": (lambda x: np.max(x, axis=1, initial=0.5, where=MASK), X), "mean": (lambda x: np.mean(x, axis=0, where=MASK, keepdims=True), X),
    "min": (lambda x: np.min(x, axis=(0, 1), initial=9.0), X), "prod": (lambda x: np.prod(x, axis=1, initial=2.0, where=MASK), X),
    "std": (lambda x: np.std(x, axis=1, ddof=1), X), "sum": (lambda x: np.sum(x, axis=1, initial=2.0, where=MASK), X),
    "var": (lambda x: np.var(x, axis=1, where=np.asarray([True, True, False])), X),
    # joining, splitting
    "append": (lambda x, y: np.append(x, y, axis=0), X, Y), "array_split": (lambda v: np.array_split(v, 3), V),
    "atleast_3d": (np.atleast_3d, X), "broadcast_arrays": (np.broadcast_arrays, X, drawn(3)), "column_stack": (lambda v, w: np.column_stack([v, w]), V, W),
    "concatenate": (lambda x, y: np.concatenate([x, y], axis=1), X, Y), "dsplit": (lambda x: np.dsplit(np.reshape(x, (1, 2, 3)), 3), X),
    "dstack": (lambda x, y: np.dstack([x, y]), X, Y), "hsplit": (lambda x: np.hsplit(x, [1]), X), "hstack": (lambda v, w: np.hstack([v, w]), V, W),
    "stack": (lambda x, y: np.stack([x, y], axis=1), X, Y), "unstack": (lambda x: np.unstack(x, axis=1), X), "vsplit": (lambda x: np.vsplit(x, 2), X),
    "vstack": (lambda v, w: np.vstack([v, w]), V, W), "split": (lambda v: np.split(v, [1, 3]), V),
    # arranging
    "broadcast_to": (lambda v: np.broadcast_to(v, (2, 5)), V), "expand_dims": (lambda x: np.expand_dims(x, (0, 2)), X), "flip": (np.flip, X),
    "fliplr": (np.fliplr, X), "flipud": (np.flipud, X), "matrix_transpose": (np.matrix_transpose, X), "moveaxis": (lambda x: np.moveaxis(x, 0, 1), X),
    "ravel": (lambda x: np.ravel(x, "F") if isinstance(x, np.ndarray) else np.ravel(x, order="F"), X), "repeat": (lambda x: np.repeat(x, 2, axis=1), X),
    "reshape": (lambda x: np.reshape(x, (3, -1), order="F"), X), "roll": (lambda x: np.roll(x, (1, 2), axis=(0, 1)), X),
    "rollaxis": (lambda x: np.rollaxis(x, 1), X), "rot90": (lambda x: (np.rot90(x), np.rot90(x, 2), np.rot90(x, 3)), X),
    "squeeze": (lambda x: np.squeeze(x[None]), X), "swapaxes": (lambda x: np.swapaxes(x, 0, 1), X), "tile": (lambda x: np.tile(x, 2), X),
    "transpose": (np.transpose, X), "tril": (np.tril, SQUARE), "triu": (lambda x: np.triu(x, 1), SQUARE),
    "diag": (np.diag, V), "diagonal": (lambda x: np.diagonal(x, 1), SQUARE),
    # selecting
    "argwhere": (lambda x: np.argwhere(x > 1), X), "clip": (lambda x: np.clip(x, 0.5, None), X), "compress": (lambda x: np.compress([False, True], x, axis=0), X),
    "digitize": (lambda x: np.digitize(x, [0.5, 1.0]), X), "extract": (lambda x: np.extract(MASK, x), X), "flatnonzero": (lambda x: np.flatnonzero(x > 1), X),
    "isin": (lambda x: np.isin(x, [1.0, 2.0]), X), "nonzero": (lambda x: np.nonzero(x > 1), X), "searchsorted": (lambda v: np.searchsorted(v, [0.5, 1.0]), np.sort(V)),
    "select": (lambda x, y: np.select([x > 1.2, y > 1], [x, y], 0.5), X, Y), "take": (lambda x: np.take(x, PLACES, axis=1), X),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.asarray([[0], [2]]), axis=1), X), "where": (lambda x, y: np.where(MASK, x, y), X, Y),
    # sorting, sets
    "argpartition": (lambda v: np.take(v, np.sort(np.argpartition(v, 1)[:2])), V), "argsort": (np.argsort, V), "partition": (lambda v: np.partition(v, 2)[2], V),
    "sort": (lambda x: np.sort(x, axis=0), X), "sort_complex": (np.sort_complex, V), "unique": (lambda v: np.unique(v, return_counts=True), V),
    "unique_all": (np.unique_all, V), "unique_counts": (np.unique_counts, V), "unique_inverse": (np.unique_inverse, V), "unique_values": (np.unique_values, V),
    # making
    "copy": (np.copy, X), "full_like": (lambda x: np.full_like(x, 2.0), X), "ones_like": (np.ones_like, X), "zeros_like": (lambda x: np.zeros_like(x, shape=(2,)), X),
    "empty_like": (lambda x: np.empty_like(x, shape=(0, 2)), X), "linspace": (lambda v: np.linspace(v[0], v[1], 4), V),
    "meshgrid": (lambda v, w: np.meshgrid(v, w, indexing="ij"), V, W), "copyto": (lambda x, y: np.copyto(z := np.copy(x), y) or z, X, Y),
    # complex parts, comparisons
    "angle": (np.angle, Z), "imag": (np.imag, Z), "real": (np.real, Z), "real_if_close": (np.real_if_close, V + 0j), "isclose": (np.isclose, X, Y),
    "iscomplex": (np.iscomplex, Z), "isreal": (np.isreal, V), "isneginf": (np.isneginf, X), "isposinf": (np.isposinf, X),
    "allclose": (np.allclose, X, X), "array_equal": (np.array_equal, X, Y), "array_equiv": (np.array_equiv, X, X),
    # about arrays
    "shape": (np.shape, X), "ndim": (np.ndim, X), "size": (np.size, X), "iscomplexobj": (np.iscomplexobj, Z), "isrealobj": (np.isrealobj, X),
    "can_cast": (lambda x: np.can_cast(x, "float32") if not isinstance(x, np.ndarray) else False, X), "shares_memory": (np.shares_memory, X, Y),
    "may_share_memory": (np.may_share_memory, X, Y),
    # products, formulas
    "convolve": (np.convolve, V, drawn(3)), "correlate": (lambda v, w: np.correlate(v, w, "full"), V, drawn(3)), "corrcoef": (np.corrcoef, X), "cov": (np.cov, X),
    "cross": (np.cross, X, Y), "dot": (np.dot, X, Y.T), "einsum": (lambda x, y: np.einsum("ij,kj->ik", x, y), X, Y), "inner": (np.inner, X, Y),
    "kron": (np.kron, X, Y), "outer": (np.outer, V, W), "tensordot": (lambda x, y: np.tensordot(x, y, axes=([1], [1])), X, Y), "trace": (np.trace, SQUARE),
    "vdot": (np.vdot, Z, Z[::-1].copy()), "average": (lambda v, w: np.average(v, weights=w), V, W), "diff": (lambda v: np.diff(v, 2), V),
    "ediff1d": (lambda v: np.ediff1d(v, to_end=v[:1]), V), "fix": (np.fix, X), "gradient": (np.gradient, V), "interp": (lambda v: np.interp(1.0, GRID, v), V),
    "median": (lambda x: np.median(x, axis=1), X), "pad": (lambda x: np.pad(x, 1, mode="edge"), X), "percentile": (lambda v: np.percentile(v, 30), V),
    "polyval": (np.polyval, V, W), "ptp": (np.ptp, V), "quantile": (lambda v: np.quantile(v, [0.2, 0.7]), V), "round": (lambda x: np.round(x, 1), X),
    "around": (np.around, X), "sinc": (np.sinc, X), "trapezoid": (lambda v, w: np.trapezoid(v, np.cumsum(w)), V, W), "unwrap": (lambda v: np.unwrap(5 * v), V),
    "vander": (lambda v: np.vander(v, 3), V),
    # nan
    "nan_to_num": (np.nan_to_num, V), **{f"nan{name}": (lambda x, name=name: getattr(np, f"nan{name}")(np.where(MASK, x, np.nan), axis=1), X) for name in (
        "max", "mean", "median", "min", "prod", "std", "sum", "var", "cumsum", "cumprod", "argmax", "argmin")},
    "nanquantile": (lambda x: np.nanquantile(np.where(MASK, x, np.nan), 0.3, axis=1), X),
    "nanpercentile": (lambda x: np.nanpercentile(np.where(MASK, x, np.nan), 30, axis=1), X),
    "atleast_1d": (np.atleast_1d, X), "atleast_2d": (np.atleast_2d, V),
    # linear algebra
    **{f"linalg.{name}": (getattr(np.linalg, name), SQUARE) for name in ("cond", "det", "diagonal", "inv", "matrix_norm", "matrix_rank", "matrix_transpose",
                                                                        "pinv", "slogdet", "svdvals", "trace", "vector_norm")},
    "linalg.cholesky": (lambda a: np.linalg.cholesky(np.matmul(a, np.matrix_transpose(a))), SQUARE),
    "linalg.cross": (np.linalg.cross, X, Y), "linalg.eig": (lambda a: np.sum(np.linalg.eig(a)[0]), SYMMETRIC),
    "linalg.eigh": (symmetric(lambda a: np.linalg.eigh(a)[0]), SYMMETRIC), "linalg.eigvals": (lambda a: np.sum(np.linalg.eigvals(a)), SYMMETRIC),
    "linalg.eigvalsh": (symmetric(np.linalg.eigvalsh), SYMMETRIC), "linalg.matmul": (np.linalg.matmul, X, Y.T),
    "linalg.matrix_power": (lambda a: np.linalg.matrix_power(a, 3), SQUARE), "linalg.multi_dot": (lambda x, y: np.linalg.multi_dot([x, y, x]), X, Y.T.copy()),
    "linalg.norm": (lambda a: (np.linalg.norm(a), np.linalg.norm(a, axis=1), np.linalg.norm(a, 1), np.linalg.norm(a, axis=(0, 1), keepdims=True)), X),
    "linalg.outer": (np.linalg.outer, V, W), "linalg.qr": (lambda a: np.linalg.qr(a, mode="r"), SQUARE), "linalg.solve": (np.linalg.solve, SQUARE, drawn(3)),
    "linalg.svd": (lambda a: np.linalg.svd(a, compute_uv=False), X), "linalg.tensordot": (lambda x, y: np.linalg.tensordot(x, y, axes=2), X, Y),
    "linalg.vecdot": (np.linalg.vecdot, X, Y),
    # Fourier transforms
    **{f"fft.{name}": (getattr(np.fft, name), V) for name in ("fft", "ifft", "rfft", "ihfft", "fftshift", "ifftshift")},
    **{f"fft.{name}": (getattr(np.fft, name), Z) for name in ("hfft", "irfft")},
    **{f"fft.{name}": (getattr(np.fft, name), X) for name in ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "rfftn")},
    **{f"fft.{name}": (getattr(np.fft, name), X + 1j * Y) for name in ("irfft2", "irfftn")},
}
ALIASES = {"concat": "concatenate", "permute_dims": "transpose", "trapz": "trapezoid"}
NOT_NUMBERS = {"common_type", "min_scalar_type", "result_type"}
"""Counterparts that return dtypes, which have a test of their own."""
ELSEWHERE = {"i0"}
"""Those that need a plugin."""
KINKED = {"nanargmax", "nanargmin"}


def test_every_counterpart_is_tried() -> None:
    from multigrad.protocols import functions, ufuncs
    from multigrad.protocols.table import COUNTERPARTS

    assert set(COUNTERPARTS) | set(functions.SAME) <= set(FUNCTIONS) | set(ALIASES) | NOT_NUMBERS | ELSEWHERE
    assert set(ufuncs.NAMES) | set(ufuncs.COMPOSED) == set(UFUNCS)
    assert len(functions.TABLE) > 150


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs(name: str) -> None:
    check("numpy", getattr(np, name), *UFUNCS[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, *args = FUNCTIONS[name]
    check("numpy", function, *args)
