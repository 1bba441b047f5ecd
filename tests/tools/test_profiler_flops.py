"""Floating point operations by shapes: the numbers that the formulas of
multigrad/tools/profiler/flops.py are meant to give.
"""

from __future__ import annotations

import numpy as np
import pytest

import multigrad as mg
from multigrad.autograd.profiler import profile


def counted(name, *args, dtype="float64", **kwargs):
    """What the profiler says of one call; arguments that are tuples are shapes of arrays."""
    xp = mg.namespace("numpy")
    rng = np.random.default_rng(0)
    arrays = [
        xp.asarray(_matrix(rng, a).astype(dtype)) if isinstance(a, tuple) else a for a in args
    ]
    function = xp
    for part in name.split("."):
        function = getattr(function, part)
    with profile(with_flops=True) as prof:
        function(*arrays, **kwargs)
    return next(e.flops for e in prof.function_events if e.name == name)


def _matrix(rng, shape):
    """Positive definite if it is square, so that every factorisation takes it."""
    x = rng.normal(size=shape)
    return (
        x @ x.swapaxes(-1, -2) + np.eye(shape[-1])
        if len(shape) > 1 and shape[-1] == shape[-2]
        else x
    )


CASES = [
    ("add", ((2, 3), (3,)), {}, 6),
    ("multiply", ((2, 3), 2.0), {}, 6),
    ("exp", ((2, 3),), {}, 0),  # no guess
    ("matmul", ((2, 3), (3, 5)), {}, 60),
    ("matmul", ((3,), (3,)), {}, 6),
    ("linalg.matmul", ((2, 3), (3, 5)), {}, 60),
    ("vecdot", ((2, 3), (2, 3)), {"axis": 0}, 12),
    ("tensordot", ((2, 3, 4), (3, 4, 5)), {}, 2 * 2 * 5 * 12),
    ("tensordot", ((2, 3), (5, 3)), {"axes": ((1,), (1,))}, 60),
    ("linalg.outer", ((2,), (3,)), {}, 6),
    ("linalg.cholesky", ((2, 6, 6),), {}, 144),
    ("linalg.det", ((6, 6),), {}, 144),
    ("linalg.slogdet", ((6, 6),), {}, 144),
    ("linalg.inv", ((6, 6),), {}, 432),
    ("linalg.solve", ((6, 6), (6, 2)), {}, 144 + 2 * 6 * 12),
    ("linalg.qr", ((3, 6),), {}, 2 * (2 * 6 * 9 - 18)),
    ("linalg.eigh", ((6, 6),), {}, 9 * 216),
    ("linalg.eigvalsh", ((6, 6),), {}, 288),
    ("linalg.svd", ((6, 3),), {"full_matrices": False}, 6 * 6 * 9 + 20 * 27),
    ("linalg.svdvals", ((6, 3),), {}, 2 * 6 * 9 + 2 * 27),
    ("linalg.matrix_power", ((4, 4), 5), {}, 3 * 128),  # two squares and a product
    ("fft.rfft", ((3, 8),), {"n": 4}, 3 * 2.5 * 4 * 2),
    ("fft.ihfft", ((8,),), {}, 60),
    ("fft.rfftn", ((4, 8),), {"s": (8,), "axes": (1,)}, 4 * 60),
]
COMPLEX = [
    ("multiply", ((2, 3), (2, 3)), {}, 36),
    ("matmul", ((2, 3), (3, 5)), {}, 240),
    ("fft.fft", ((8,),), {"n": 16}, 5 * 16 * 4),
    ("fft.fft", ((3, 8),), {"axis": 0}, round(5 * 24 * np.log2(3))),
    ("fft.ifftn", ((4, 8),), {}, 5 * 32 * 5),
    ("fft.irfft", ((5,),), {}, 60),
    ("fft.hfft", ((5,),), {}, 60),
    ("fft.fft", ((1,),), {}, 0),
]


@pytest.mark.parametrize(
    ("name", "args", "options", "flops"),
    CASES,
    ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)],
)
def test_real(name, args, options, flops):  # F207
    assert counted(name, *args, **options) == flops


@pytest.mark.parametrize(
    ("name", "args", "options", "flops"),
    COMPLEX,
    ids=[f"{i}-{case[0]}" for i, case in enumerate(COMPLEX)],
)
def test_complex(name, args, options, flops):  # F207
    assert counted(name, *args, dtype="complex128", **options) == flops


def test_on_other_backends(backend):  # F207
    a = mg.tensor([[1.0, 2.0], [3.0, 5.0]], backend=backend)
    with profile(with_flops=True) as prof:
        mg.linalg.inv(a)
        a += 1.0
    assert {e.name: e.flops for e in prof.function_events if e.cpu_parent is None} == {
        "linalg.inv": 16,
        "add_": 4,
    }


RNG = np.random.default_rng(0)
A, B, SQUARE = (
    RNG.normal(size=(8, 4, 5)),
    RNG.normal(size=(5, 6)),
    RNG.normal(size=(5, 5)) + 5 * np.eye(5),
)
PRODUCT = 2 * 8 * 4 * 5 * 6


def total(program, *arrays, raw=False):
    """All that the profiler counts for `program(xp, *arrays)`."""
    xp = mg.namespace("numpy")
    given = arrays if raw else [xp.asarray(a) for a in arrays]
    with profile(with_flops=True) as prof:
        program(xp, *given)
    return prof.total_average().flops


TRANSFORMED = {
    "vmap": (lambda xp, a, b: mg.func.vmap(lambda t: xp.matmul(t, b))(a), (A, B), PRODUCT),
    "vmap of rfft": (
        lambda xp, a: mg.func.vmap(lambda t: xp.fft.rfft(t, axis=0))(a),
        (A,),
        round(2.5 * 160 * np.log2(4)),
    ),
    "vmap of outer": (
        lambda xp, a: mg.func.vmap(lambda t: xp.linalg.outer(t, t))(a),
        (A[:, 0],),
        8 * 25,
    ),
    "one matrix for all": (
        lambda xp, a, s: mg.func.vmap(lambda t: xp.linalg.solve(s, t))(a),
        (A[:, 0], SQUARE),
        round(250 / 3 + 2 * 5 * 40),
    ),
    "in place": (lambda xp, a: mg.func.vmap(lambda t: (t * 1.0).add_(t))(a), (A,), 2 * 160),
    "vmap of grad": (
        lambda xp, a, b: mg.func.vmap(mg.func.grad(lambda t: xp.sum(xp.matmul(t, b))))(a),
        (A, B),
        2 * PRODUCT,
    ),
    "jacrev": (
        lambda xp, v, b: mg.func.jacrev(lambda t: xp.matmul(t, b))(v),
        (A[0, 0], B),
        60 + 6 * 60,
    ),
    "jvp": (
        lambda xp, a, b: mg.func.jvp(lambda t: xp.matmul(t, b), (a,), (a,)),
        (A, B),
        2 * PRODUCT,
    ),
    "jvp, two tangents": (
        lambda xp, a, b: mg.func.jvp(xp.matmul, (a, b), (a, b)),
        (A, B),
        3 * PRODUCT + 192,
    ),
    "jvp of several outputs": (
        lambda xp, s: mg.func.jvp(lambda t: xp.linalg.slogdet(t)[1], (s,), (s,)),
        (SQUARE,),
        None,
    ),
    "jvp of vmap": (
        lambda xp, a, b: mg.func.jvp(mg.func.vmap(lambda t: xp.matmul(t, b)), (a,), (a,)),
        (A, B),
        2 * PRODUCT,
    ),
    "jvp of grad": (
        lambda xp, a, b: mg.func.jvp(mg.func.grad(lambda t: xp.sum(xp.matmul(t, b))), (a,), (a,)),
        (A, B),
        None,
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_under_transformations(name):  # F207
    """All examples, each operation once, tangents too; of Tensors and of raw arrays alike."""
    program, arrays, flops = TRANSFORMED[name]
    found = total(program, *arrays)
    assert found == (flops if flops is not None else found) > 0
    assert total(program, *arrays, raw=True) == found


def test_results_are_the_same_where_tangents_are_counted(backend, xp):
    a, b = xp.asarray(A.tolist()).array, xp.asarray(B.tolist()).array
    f = lambda t: xp.sum(xp.tanh(xp.matmul(t, b)) / 3)
    plain = mg.func.jvp(f, (a,), (a,))
    with profile(with_flops=True):
        counted_ = mg.func.jvp(f, (a,), (a,))
    for x, y in zip(plain, counted_, strict=True):
        assert type(x) is type(y) and x.dtype == y.dtype
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-14)


def test_hooks_count_on_top_of_their_node():
    x, b = mg.asarray(A, requires_grad=True), mg.asarray(B)
    with profile(with_flops=True) as prof:
        y = x @ b
        y.register_hook(lambda g: g + g)
        mg.sum(y).backward()
    found = {e.name: e.flops for e in prof.function_events}
    assert found["MatmulBackward"] == PRODUCT and prof.total_average().flops == 2 * PRODUCT + 192
    with profile(with_flops=True) as prof:
        y = x @ b
        y.register_hook(lambda g: g + g)
        mg.autograd.grad(mg.sum(y), x, create_graph=True)
    assert prof.total_average().flops == 2 * PRODUCT + 192


def test_flops_are_counted_once(xp):
    def total(function):
        with profile(with_flops=True) as prof:
            function()
        return prof.total_average().flops

    a, b = xp.ones((2, 3), requires_grad=True), xp.ones((3, 4), requires_grad=True)
    assert total(lambda: xp.linalg.matmul(a, b)) == total(lambda: a @ b) == 48
    assert total(lambda: xp.sum(a @ b).backward()) == 48 * 3
    loss = lambda: mg.autograd.grad(xp.sum(a @ b), [a, b], create_graph=True)
    assert total(loss) == 48 * 3


def test_lengths_that_are_not_known_count_nothing():
    from multigrad.tools.profiler.flops import count

    for n in (None, float("nan")):
        assert count("add", {}, {}, ((n,),), False) == 0
        assert count("matmul", {}, {"x1": (2, n)}, ((2, 2),), False) == 0
