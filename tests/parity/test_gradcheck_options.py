"""What test_gradcheck.py leaves of gradcheck and gradgradcheck, on each backend and in
PyTorch.
"""

from __future__ import annotations

import pytest
from function_programs import leaf, make

BOTH_MODES = pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])


@BOTH_MODES
def test_the_step_and_the_tolerances_are_arguments(side, fast):  # F180, F181
    x = leaf(side, 1.0, 2.0)
    seen = []

    def func(a):
        seen.append(side.values(a).tolist())
        return a * a

    # central differences of a square are exact
    assert side.autograd.gradcheck(func, (x,), eps=0.25, atol=1e-8, rtol=1e-8, fast_mode=fast)
    steps = {round(abs(a - b), 6) for row in seen for a, b in zip(row, (1.0, 2.0), strict=True)}
    assert steps == {0.0, 0.25} or (fast and max(steps) <= 0.25)


@BOTH_MODES
def test_gradients_of_every_dtype(side, fast):  # F190
    for dtype in ("float64", "complex128"):
        x = side.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
        assert side.autograd.gradcheck(
            lambda a: a * a * side.tensor([1.0, 3.0]), x, check_grad_dtypes=True, fast_mode=fast
        )
        assert side.autograd.gradgradcheck(
            lambda a: a * a * a, x, check_grad_dtypes=True, fast_mode=fast
        )


def test_sparse_arrays_are_not_there(side):
    # F187: its argument is called `masked` since, and changes nothing for dense arrays
    x = leaf(side, 1.0, 2.0)
    for masked in (True, False, None):
        assert side.autograd.gradcheck(lambda a: a * a, x, masked=masked)
    assert side.autograd.gradgradcheck(lambda a: a * a, x, masked=True)
    with pytest.raises(TypeError, match="check_sparse_nnz"):
        side.autograd.gradcheck(lambda a: a * a, x, check_sparse_nnz=True)


@pytest.mark.parametrize("side", ["numpy", "torch"], indirect=True)
@pytest.mark.parametrize("scattered", [False, True])
def test_grad_outputs_that_are_not_contiguous(side, scattered):
    # F194: where the library has strides
    seen = []

    def backward(ctx, g):
        seen.append(
            g.stride() if side.name == "torch" else tuple(s // 8 for s in g.detach().array.strides)
        )
        return g * 3

    func = make(side, lambda ctx, x: x * 3, backward).apply
    assert side.autograd.gradgradcheck(
        func, leaf(side, 1.0, 2.0, 3.0), gen_non_contig_grad_outputs=scattered
    )
    assert ((2,) in seen) is scattered


def test_grad_outputs_are_drawn_and_checked_too(side):  # F192, F193
    x, seen = leaf(side, 1.0, 2.0), []

    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        if g.requires_grad:
            seen.append(side.values(g).tolist())
        return 2 * a * g

    func = make(side, lambda ctx, a: (ctx.save_for_backward(a), a * a)[1], backward).apply
    assert side.autograd.gradgradcheck(func, x)
    assert (
        seen
        and all(-1 <= value <= 1 and value != 0 for value in seen[0])
        and seen[0][0] != seen[0][1]
    )
    seen.clear()
    assert side.autograd.gradgradcheck(func, (x,), (leaf(side, 3.0, 4.0),))
    assert seen[0] == [3.0, 4.0]
    # wrong by the gradient alone: what is returned does not depend on it as it should
    wrong = make(side, lambda ctx, a: a * 2, lambda ctx, g: g * 2 + (g - g.detach()) * 5).apply
    assert side.autograd.gradcheck(wrong, x)
    with pytest.raises(
        RuntimeError, match="Jacobian mismatch for output 0 with respect to input 1"
    ):
        side.autograd.gradgradcheck(wrong, x)


@BOTH_MODES
def test_arguments_of_gradgradcheck(side, fast):  # F192
    check, x, calls = side.autograd.gradgradcheck, leaf(side, 1.0, 2.0), []

    def disturbed(a):
        b = a * a
        b.register_hook(lambda g: calls.append(1) or g * (1 + 1e-12 * len(calls)))
        return b * a

    half = lambda a: a * a * a.detach()  # the second derivative is too small by a third of it
    assert check(half, x, atol=20.0, fast_mode=fast) and check(half, x, rtol=2.0, fast_mode=fast)
    assert check(half, x, raise_exception=False, fast_mode=fast) is False
    assert check(lambda a: a * a * a, x, eps=1e-4, atol=1e-6, fast_mode=fast)
    assert check(
        disturbed, x, nondet_tol=1e-6, check_undefined_grad=False, atol=1e-3, fast_mode=fast
    )
    assert (
        check(
            disturbed,
            x,
            nondet_tol=0.0,
            check_undefined_grad=False,
            atol=1e-3,
            raise_exception=False,
            fast_mode=fast,
        )
        is False
    )
