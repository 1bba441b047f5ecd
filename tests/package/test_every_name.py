"""Every function of the standard, called once on every backend: none is missing, and each gives
what NumPy's own gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_compat.numpy as reference
import numpy as np
import pytest
import standard_names
from conftest import values

import multigrad as mg


def real(xp: Any) -> Any:
    return xp.asarray([0.5, -0.25, 0.75])


def other(xp: Any) -> Any:
    return xp.asarray([2.0, 0.5, -0.75])


def whole(xp: Any) -> Any:
    return xp.asarray([3, 0, 3])


def truth(xp: Any) -> Any:
    return xp.asarray([True, False, True])


def complex_(xp: Any) -> Any:
    return xp.asarray([1 + 2j, -0.5j, 3.0])


def matrix(xp: Any) -> Any:
    """Symmetric and positive definite."""
    return xp.asarray([[2.0, 0.5, 0.0], [0.5, 1.0, -0.25], [0.0, -0.25, 3.0]])


OPERANDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("logical_and", "logical_not", "logical_or", "logical_xor"), truth),
    **dict.fromkeys(
        (n for n in (*standard_names.UNARY, *standard_names.BINARY) if n.startswith("bitwise_")),
        whole,
    ),
    "acosh": lambda xp: real(xp) + 1.5,
    "imag": complex_,
    "pow": lambda xp: xp.asarray([0.5, 0.25, 0.75]),
    **dict.fromkeys(("log", "log2", "log10", "sqrt"), lambda xp: real(xp) + 0.5),
}

CALLS: dict[str, Callable[[Any], Any]] = {
    "arange": lambda xp: xp.arange(1, 7, 2),
    "asarray": lambda xp: xp.asarray([[1, 2], [3, 4]], dtype=xp.float32),
    "empty": lambda xp: xp.empty((2, 3)),
    "empty_like": lambda xp: xp.empty_like(matrix(xp)),
    "eye": lambda xp: xp.eye(2, 3, k=1),
    "from_dlpack": lambda xp: xp.from_dlpack(real(xp)),
    "full": lambda xp: xp.full((2, 2), 3),
    "full_like": lambda xp: xp.full_like(real(xp), 3),
    "linspace": lambda xp: xp.linspace(0.0, 1.0, 5, endpoint=False),
    "meshgrid": lambda xp: xp.meshgrid(real(xp), other(xp), indexing="ij"),
    "ones": lambda xp: xp.ones(3),
    "ones_like": lambda xp: xp.ones_like(whole(xp)),
    "tril": lambda xp: xp.tril(matrix(xp), k=-1),
    "triu": lambda xp: xp.triu(matrix(xp), k=1),
    "zeros": lambda xp: xp.zeros((0, 2)),
    "zeros_like": lambda xp: xp.zeros_like(truth(xp)),
    "astype": lambda xp: xp.astype(real(xp), xp.complex64),
    "can_cast": lambda xp: xp.can_cast(xp.int8, xp.int16),
    "finfo": lambda xp: float(xp.finfo(xp.float32).eps),
    "iinfo": lambda xp: int(xp.iinfo(xp.uint8).max),
    "isdtype": lambda xp: xp.isdtype(xp.int8, "signed integer"),
    "result_type": lambda xp: str(xp.result_type(xp.float32, real(xp))).rpartition(".")[2],
    "clip": lambda xp: xp.clip(real(xp), 0.0, other(xp) + 1),
    "take": lambda xp: xp.take(matrix(xp), xp.asarray([2, 0]), axis=1),
    "take_along_axis": lambda xp: xp.take_along_axis(real(xp), xp.asarray([2, 2, 0])),
    "matmul": lambda xp: xp.matmul(matrix(xp), real(xp)),
    "matrix_transpose": lambda xp: xp.matrix_transpose(xp.triu(matrix(xp))),
    "tensordot": lambda xp: xp.tensordot(matrix(xp), real(xp), axes=1),
    "vecdot": lambda xp: xp.vecdot(complex_(xp), real(xp) * 1j),
    "broadcast_arrays": lambda xp: xp.broadcast_arrays(matrix(xp), real(xp)),
    "broadcast_shapes": lambda xp: xp.broadcast_shapes((3, 1), (2,)),
    "broadcast_to": lambda xp: xp.broadcast_to(real(xp), (2, 3)),
    "concat": lambda xp: xp.concat([matrix(xp), matrix(xp)], axis=1),
    "expand_dims": lambda xp: xp.expand_dims(real(xp), (0, -1)),
    "flip": lambda xp: xp.flip(matrix(xp), axis=0),
    "moveaxis": lambda xp: xp.moveaxis(xp.zeros((1, 2, 3)), 0, -1),
    "permute_dims": lambda xp: xp.permute_dims(xp.zeros((1, 2, 3)), (-1, 0, 1)),
    "repeat": lambda xp: xp.repeat(real(xp), whole(xp)),
    "reshape": lambda xp: xp.reshape(matrix(xp), (-1, 1)),
    "roll": lambda xp: xp.roll(matrix(xp), (1, 2), axis=(0, 1)),
    "squeeze": lambda xp: xp.squeeze(xp.zeros((1, 2, 1)), (0, 2)),
    "stack": lambda xp: xp.stack([real(xp), other(xp)], axis=-1),
    "tile": lambda xp: xp.tile(real(xp), (2, 2)),
    "unstack": lambda xp: xp.unstack(matrix(xp), axis=1),
    "argmax": lambda xp: xp.argmax(matrix(xp), axis=1, keepdims=True),
    "argmin": lambda xp: xp.argmin(real(xp)),
    "count_nonzero": lambda xp: xp.count_nonzero(whole(xp)),
    "nonzero": lambda xp: xp.nonzero(matrix(xp)),
    "searchsorted": lambda xp: xp.searchsorted(xp.sort(real(xp)), other(xp), side="right"),
    "where": lambda xp: xp.where(truth(xp), real(xp), 1.0),
    "isin": lambda xp: xp.isin(whole(xp), xp.asarray([3, 4])),
    "unique_all": lambda xp: xp.unique_all(whole(xp)),
    "unique_counts": lambda xp: xp.unique_counts(whole(xp)),
    "unique_inverse": lambda xp: xp.unique_inverse(whole(xp)),
    "unique_values": lambda xp: xp.unique_values(whole(xp)),
    "argsort": lambda xp: xp.argsort(whole(xp), descending=True),
    "sort": lambda xp: xp.sort(matrix(xp), axis=0),
    "cumulative_prod": lambda xp: xp.cumulative_prod(
        xp.asarray([2, 3], dtype=xp.int8), include_initial=True
    ),
    "cumulative_sum": lambda xp: xp.cumulative_sum(real(xp), include_initial=True),
    "sum": lambda xp: xp.sum(xp.asarray([2, 3], dtype=xp.int8)),
    "prod": lambda xp: xp.prod(xp.asarray([2, 3], dtype=xp.uint8)),
    **{
        n: lambda xp, n=n: getattr(xp, n)(matrix(xp), axis=(0, 1), keepdims=True)
        for n in ("max", "min", "mean")
    },
    **{n: lambda xp, n=n: getattr(xp, n)(matrix(xp), axis=0, correction=1) for n in ("std", "var")},
    "all": lambda xp: xp.all(whole(xp)),
    "any": lambda xp: xp.any(matrix(xp), axis=1),
    "diff": lambda xp: xp.diff(real(xp), n=2, append=other(xp)),
    **{
        f"linalg.{n}": lambda xp, n=n: getattr(xp.linalg, n)(matrix(xp))
        for n in (
            "cholesky",
            "det",
            "diagonal",
            "eig",
            "eigh",
            "eigvals",
            "eigvalsh",
            "inv",
            "matrix_norm",
            "matrix_rank",
            "matrix_transpose",
            "pinv",
            "qr",
            "slogdet",
            "svd",
            "svdvals",
            "trace",
            "vector_norm",
        )
    },
    "linalg.cross": lambda xp: xp.linalg.cross(real(xp), other(xp)),
    "linalg.matmul": lambda xp: xp.linalg.matmul(matrix(xp), matrix(xp)),
    "linalg.matrix_power": lambda xp: xp.linalg.matrix_power(matrix(xp), -3),
    "linalg.outer": lambda xp: xp.linalg.outer(real(xp), other(xp)),
    "linalg.solve": lambda xp: xp.linalg.solve(matrix(xp), real(xp)),
    "linalg.tensordot": lambda xp: xp.linalg.tensordot(real(xp), matrix(xp), axes=((0,), (1,))),
    "linalg.vecdot": lambda xp: xp.linalg.vecdot(matrix(xp), real(xp)),
    **{
        f"fft.{n}": lambda xp, n=n: getattr(xp.fft, n)(real(xp) * 1j)
        for n in ("fft", "ifft", "fftn", "ifftn", "irfft", "irfftn", "hfft")
    },
    **{
        f"fft.{n}": lambda xp, n=n: getattr(xp.fft, n)(real(xp))
        for n in ("rfft", "rfftn", "ihfft", "fftshift", "ifftshift")
    },
    "fft.fftfreq": lambda xp: xp.fft.fftfreq(5, d=0.5),
    "fft.rfftfreq": lambda xp: xp.fft.rfftfreq(5),
}
for _name in standard_names.UNARY:
    CALLS[_name] = lambda xp, n=_name: getattr(xp, n)(OPERANDS.get(n, real)(xp))
for _name in standard_names.BINARY:
    CALLS[_name] = lambda xp, n=_name: getattr(xp, n)(
        OPERANDS.get(n, real)(xp), OPERANDS.get(n, other)(xp)
    )

# Of these the shape and the dtype are given, the values (or the signs of vectors, or their order)
# are not.
OPEN = {
    "empty",
    "empty_like",
    "linalg.eig",
    "linalg.eigh",
    "linalg.eigvals",
    "linalg.qr",
    "linalg.svd",
}


def compare(ours: Any, theirs: Any, name: str) -> None:
    if isinstance(theirs, tuple):
        assert type(ours) is tuple or isinstance(ours, tuple), name
        assert len(ours) == len(theirs), name
        for x, y in zip(ours, theirs, strict=True):
            compare(x, y, name)
    elif hasattr(theirs, "dtype"):
        assert isinstance(ours, mg.Tensor), f"{name}: {type(ours)}"
        assert (
            tuple(ours.shape) == theirs.shape
            and str(ours.dtype).rpartition(".")[2] == theirs.dtype.name
        ), name
        if name not in OPEN:
            assert np.allclose(values(ours), theirs, rtol=1e-13, atol=1e-14, equal_nan=True), name
    else:
        assert ours == theirs and type(ours) is type(theirs), name


def test_the_list_is_whole() -> None:
    assert set(CALLS) == set(standard_names.functions)


@pytest.mark.parametrize("name", CALLS)
# which compiles each of them
@pytest.mark.parametrize("on", ["numpy", "strict", pytest.param("jax", marks=pytest.mark.slow)])
def test_it_gives_what_numpy_gives(on: str, name: str) -> None:
    compare(CALLS[name](mg.namespace(on)), CALLS[name](reference), name)
