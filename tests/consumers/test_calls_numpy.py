"""NumPy's own functions on Tensors, by NumPy's protocols, as a table: ufuncs and their methods,
functions of arrays, of matrices, and transforms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from consumer_checks import drawn
from consumer_tables import JAX, NUMPY, Call, Reason, Table

from multigrad.errors import GradientError

A, B, V, W, SQUARE = (
    drawn(3, 4),
    drawn(3, 4, seed=1),
    drawn(6),
    drawn(6, seed=1),
    drawn(3, 3) + 2 * np.eye(3),
)
GAPS = np.where(B > 1.4, np.nan, A)
SAMPLED = ("sin", "add", "mean", "dot")


def find(name: str) -> Callable[..., Any]:
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def plain(names: str, *args: Any) -> list[Call]:
    """Functions of arrays alone."""
    return [
        Call(f"np.{name}", find(name), args, also=["jax"] * (name in SAMPLED))
        for name in names.split()
    ]


def calls(args: tuple[Any, ...], **functions: Callable[..., Any]) -> list[Call]:
    """Functions with more than arrays, by their names with two underscores for a dot."""
    return [
        Call("np." + name.replace("__", "."), function, args)
        for name, function in functions.items()
    ]


def added_to(x: Any) -> Any:
    total = np.ones(6)
    total += x
    return total


def into(x: Any, y: Any) -> Any:
    z = x * 1
    np.multiply(x, y, out=z)
    return z


UFUNCS = [
    *plain(
        "sin cos sinh cosh tanh arctan arcsinh exp exp2 expm1 log log2 log10 log1p sqrt cbrt "
        "square reciprocal negative positive abs fabs sign floor ceil trunc rint deg2rad "
        "radians rad2deg degrees conjugate isfinite isnan signbit",
        A,
    ),
    *plain("tan arcsin arccos arctanh", A / 2),
    *plain(
        "add subtract multiply divide true_divide maximum minimum fmax fmin hypot arctan2 power "
        "float_power logaddexp logaddexp2 copysign heaviside remainder fmod floor_divide less "
        "greater_equal equal not_equal logical_and",
        A,
        B,
    ),
    *plain("matmul vecdot matvec", SQUARE, drawn(3, 3, seed=1)),
    *calls(
        (A,),
        add__reduce=lambda x: np.add.reduce(x, axis=0),
        multiply__reduce=lambda x: np.multiply.reduce(x, axis=1),
        maximum__reduce=np.maximum.reduce,
        add__accumulate=lambda x: np.add.accumulate(x, axis=1),
        multiply__accumulate=np.multiply.accumulate,
    ),
    *calls((V, W), multiply__outer=np.multiply.outer, subtract__outer=np.subtract.outer),
    Call("np.multiply with out=", into, (V, W)),
    Call("np.sin with where=", lambda x: np.where(x > 1, np.sin(x), 0.0), (V,), note="by np.where"),
    Call(
        "array * Tensor",
        lambda x: np.arange(6.0) * x - np.float64(2) / x,
        (V,),
        note="NumPy's array on the left",
    ),
    Call("array += Tensor", added_to, (V,)),
]
REDUCTIONS = [
    *plain(
        "sum mean std var prod max min ptp median average cumsum cumprod trapezoid argmax "
        "argmin count_nonzero any all",
        A,
    ),
    *plain(
        "nansum nanmean nanstd nanvar nanmax nanmin nanprod nanmedian nancumsum nan_to_num", GAPS
    ),
    *calls(
        (A,),
        quantile=lambda x: np.quantile(x, [0.3, 0.6], axis=0),
        percentile=lambda x: np.percentile(x, 30),
        diff=lambda x: np.diff(x, 2),
        gradient=lambda x: np.gradient(x, axis=0),
        cov=np.cov,
        corrcoef=np.corrcoef,
        ediff1d=np.ediff1d,
        allclose=lambda x: np.allclose(x, x),
        isclose=lambda x: np.isclose(x, x),
        histogram=lambda x: np.histogram(x)[0],
        unique=np.unique,
        cumulative_sum=lambda x: np.cumulative_sum(x, axis=1),
        digitize=lambda x: np.digitize(x, [0.5, 1.0]),
    ),
]
ARRANGING = [
    *plain(
        "transpose ravel flip fliplr flipud rot90 sort argsort triu tril diagonal trace copy "
        "atleast_2d shape ndim size zeros_like ones_like real imag angle iscomplexobj",
        A,
    ),
    *calls(
        (A,),
        reshape=lambda x: np.reshape(x, (4, 3)),
        swapaxes=lambda x: np.swapaxes(x, 0, 1),
        moveaxis=lambda x: np.moveaxis(x, 0, 1),
        expand_dims=lambda x: np.expand_dims(x, 0),
        squeeze=lambda x: np.squeeze(x[None]),
        roll=lambda x: np.roll(x, 1, 0),
        tile=lambda x: np.tile(x, (2, 1)),
        repeat=lambda x: np.repeat(x, 2, axis=0),
        pad=lambda x: np.pad(x, 1, mode="reflect"),
        clip=lambda x: np.clip(x, 0.5, 1.2),
        diag=lambda x: np.diag(x[0]),
        split=lambda x: np.split(x, 2, axis=1),
        array_split=lambda x: np.array_split(x, 2),
        broadcast_to=lambda x: np.broadcast_to(x, (2, 3, 4)),
        take=lambda x: np.take(x, [0, 2], axis=0),
        take_along_axis=lambda x: np.take_along_axis(x, np.asarray([[0, 1, 2, 0]]), axis=0),
        round=lambda x: np.round(x, 1),
        compress=lambda x: np.compress([True, False, True], x, axis=0),
        select=lambda x: np.select([x < 1], [x * 2], x),
        full_like=lambda x: np.full_like(x, 2.0),
        insert=lambda x: np.insert(x, 1, 0.0, axis=0),
        delete=lambda x: np.delete(x, 1, axis=0),
        apply_along_axis=lambda x: np.apply_along_axis(lambda row: row * 2, 0, x),
        vectorize=lambda x: np.vectorize(lambda n: n * 2)(x),
        piecewise=lambda x: np.piecewise(x, [x < 1, x >= 1], [lambda n: n * 2, lambda n: n]),
        asarray=np.asarray,
        array=np.array,
    ),
    *calls(
        (V, W),
        concatenate=lambda x, y: np.concatenate([x, y]),
        stack=lambda x, y: np.stack([x, y]),
        hstack=lambda x, y: np.hstack([x, y]),
        vstack=lambda x, y: np.vstack([x, y]),
        column_stack=lambda x, y: np.column_stack([x, y]),
        append=np.append,
        where=lambda x, y: np.where(x > y, x, y),
        meshgrid=np.meshgrid,
        broadcast_arrays=lambda x, y: np.broadcast_arrays(x, y[:1]),
        linspace=lambda x, y: np.linspace(x[0], y[0], 5),
        block=lambda x, y: np.block([x, y]),
        array_equal=np.array_equal,
    ),
]
ALGEBRA = [
    *plain("dot vdot inner outer kron", V, W),
    *calls(
        (V, W),
        tensordot=lambda x, y: np.tensordot(x, y, 1),
        einsum=lambda x, y: np.einsum("i,i->", x, y),
        cross=lambda x, y: np.cross(x[:3], y[:3]),
        convolve=np.convolve,
        correlate=np.correlate,
        lib__stride_tricks__sliding_window_view=lambda x, y: (
            np.lib.stride_tricks.sliding_window_view(x * y, 3)
        ),
        interp=lambda x, y: np.interp([0.5, 1.5], np.arange(6.0), x - y),
        polyval=lambda x, y: np.polyval(x, y),
        vander=lambda x, y: np.vander(x - y, 3),
        polyfit=lambda x, y: np.polyfit(x, y, 1),
    ),
    *plain(
        "linalg.inv linalg.det linalg.cond linalg.norm linalg.pinv linalg.matrix_rank "
        "linalg.svdvals",
        SQUARE,
    ),
    *calls(
        (SQUARE,),
        linalg__slogdet=lambda x: np.linalg.slogdet(x)[1],
        linalg__eigvalsh=lambda x: np.linalg.eigvalsh(x + x.T),
        linalg__eigh=lambda x: np.linalg.eigh(x + x.T)[0],
        linalg__cholesky=lambda x: np.linalg.cholesky(x @ x.T),
        linalg__matrix_power=lambda x: np.linalg.matrix_power(x, 3),
        linalg__solve=lambda x: np.linalg.solve(x, x[0]),
        linalg__multi_dot=lambda x: np.linalg.multi_dot([x, x, x]),
        linalg__qr=lambda x: np.linalg.qr(x)[1],
        linalg__svd=lambda x: np.linalg.svd(x, compute_uv=False),
        linalg__lstsq=lambda x: np.linalg.lstsq(x, x[0])[0],
    ),
]
TRANSFORMS = [
    *plain("fft.fft fft.ifft fft.rfft fft.fftshift fft.fft2 sinc unwrap i0", A),
    *calls((V,), fft__irfft=np.fft.irfft, fft__hfft=np.fft.hfft),
]

CALLS = [*UFUNCS, *REDUCTIONS, *ARRANGING, *ALGEBRA, *TRANSFORMS]
REASONS = {
    "adds into": Reason(
        GradientError,
        "a NumPy array cannot keep its history",
        "writes into a NumPy array; write `a = a + t`",
    )
}
TABLE = Table("NumPy", "numpy", CALLS, settings={"numpy": NUMPY, "jax": JAX}, reasons=REASONS)
test_calls = TABLE.test()
