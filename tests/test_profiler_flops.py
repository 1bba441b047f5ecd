"""Floating point operations by shapes: the numbers that the formulas of profiler_flops.py are meant to give."""

from __future__ import annotations

import numpy as np
import pytest

import multigrad as mg
from multigrad.autograd.profiler import profile


def counted(name, *args, dtype="float64", **kwargs):
    """What the profiler says of one call; arguments that are tuples are shapes of arrays."""
    xp = mg.namespace("numpy")
    rng = np.random.default_rng(0)
    arrays = [xp.asarray(_matrix(rng, a).astype(dtype)) if isinstance(a, tuple) else a for a in args]
    function = xp
    for part in name.split("."):
        function = getattr(function, part)
    with profile(with_flops=True) as prof:
        function(*arrays, **kwargs)
    return next(e.flops for e in prof.function_events if e.name == name)


def _matrix(rng, shape):
    """Positive definite if it is square, so that every factorisation takes it."""
    x = rng.normal(size=shape)
    return x @ x.swapaxes(-1, -2) + np.eye(shape[-1]) if len(shape) > 1 and shape[-1] == shape[-2] else x


CASES = [
    ("add", ((2, 3), (3,)), {}, 6),
    ("multiply", ((2, 3), 2.0), {}, 6),
    ("exp", ((2, 3),), {}, 0),  # no guess
    ("matmul", ((2, 3), (3, 5)), {}, 60),
    ("matmul", ((4, 2, 3), (3, 5)), {}, 240),
    ("matmul", ((3,), (3,)), {}, 6),
    ("linalg.matmul", ((2, 3), (3, 5)), {}, 60),
    ("vecdot", ((2, 3), (2, 3)), {}, 12),
    ("vecdot", ((2, 3), (2, 3)), {"axis": 0}, 12),
    ("tensordot", ((2, 3, 4), (3, 4, 5)), {}, 2 * 2 * 5 * 12),
    ("tensordot", ((2, 3), (5, 3)), {"axes": ((1,), (1,))}, 60),
    ("linalg.outer", ((2,), (3,)), {}, 6),
    ("linalg.cholesky", ((6, 6),), {}, 72),
    ("linalg.cholesky", ((2, 6, 6),), {}, 144),
    ("linalg.det", ((6, 6),), {}, 144),
    ("linalg.slogdet", ((6, 6),), {}, 144),
    ("linalg.inv", ((6, 6),), {}, 432),
    ("linalg.solve", ((6, 6), (6, 2)), {}, 144 + 2 * 6 * 12),
    ("linalg.qr", ((6, 3),), {}, 2 * (2 * 6 * 9 - 18)),
    ("linalg.qr", ((3, 6),), {}, 2 * (2 * 6 * 9 - 18)),
    ("linalg.eigh", ((6, 6),), {}, 9 * 216),
    ("linalg.eigvalsh", ((6, 6),), {}, 288),
    ("linalg.svd", ((6, 3),), {"full_matrices": False}, 6 * 6 * 9 + 20 * 27),
    ("linalg.svdvals", ((6, 3),), {}, 2 * 6 * 9 + 2 * 27),
    ("linalg.matrix_power", ((4, 4), 5), {}, 3 * 128),  # two squares and a product
    ("fft.rfft", ((8,),), {}, 2.5 * 8 * 3),
    ("fft.rfft", ((3, 8),), {"n": 4}, 3 * 2.5 * 4 * 2),
    ("fft.ihfft", ((8,),), {}, 60),
    ("fft.rfftn", ((4, 8),), {}, 2.5 * 32 * 5),
    ("fft.rfftn", ((4, 8),), {"s": (8,), "axes": (1,)}, 4 * 60),
]
COMPLEX = [
    ("multiply", ((2, 3), (2, 3)), {}, 36),
    ("add", ((2, 3), (2, 3)), {}, 12),
    ("matmul", ((2, 3), (3, 5)), {}, 240),
    ("fft.fft", ((8,),), {}, 5 * 8 * 3),
    ("fft.fft", ((8,),), {"n": 16}, 5 * 16 * 4),
    ("fft.fft", ((3, 8),), {"axis": 0}, round(5 * 24 * np.log2(3))),
    ("fft.ifftn", ((4, 8),), {}, 5 * 32 * 5),
    ("fft.irfft", ((5,),), {}, 60),
    ("fft.hfft", ((5,),), {}, 60),
    ("fft.fft", ((1,),), {}, 0),
]


@pytest.mark.parametrize(("name", "args", "options", "flops"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_real(name, args, options, flops):  # F207
    assert counted(name, *args, **options) == flops


@pytest.mark.parametrize(("name", "args", "options", "flops"), COMPLEX, ids=[f"{i}-{case[0]}" for i, case in enumerate(COMPLEX)])
def test_complex(name, args, options, flops):  # F207
    assert counted(name, *args, dtype="complex128", **options) == flops


def test_on_other_backends(backend):  # F207
    a = mg.tensor([[1.0, 2.0], [3.0, 5.0]], backend=backend)
    with profile(with_flops=True) as prof:
        mg.linalg.inv(a)
        a += 1.0
    assert {e.name: e.flops for e in prof.function_events if e.cpu_parent is None} == {"linalg.inv": 16, "add_": 4}
