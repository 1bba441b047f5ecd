"""The linalg extension: every rule against differences, array_api_strict and PyTorch, to second
order, and at its singular points.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import array_api_compat.numpy
import numpy as np
import pytest
from rule_checks import NUMPY, check, complexes, linearized, reals, strict_raw

import multigrad as mg
from multigrad import registry
from multigrad.backends.raw import RawNamespace
from multigrad.backends.spec import Backend
from multigrad.dispatch import codegen
from multigrad.errors import GradientError

INF = np.inf
MAKERS = pytest.mark.parametrize("make", [reals, complexes], ids=["real", "complex"])


def regular(x: Any) -> Any:
    """A matrix near `x` that is well conditioned."""
    return x + 4 * np.eye(*x.shape[-2:])


def tensor(x: Any) -> Any:
    return mg.asarray(x, requires_grad=True)


# ----- against differences, and on array_api_strict -----


@MAKERS
@pytest.mark.parametrize(
    "shape", [(3, 3), (2, 1, 2, 2), (1, 1), (0, 2, 2), (0, 0), (2, 0, 0)], ids=str
)
@pytest.mark.parametrize("name", ["det", "slogdet", "inv"])
def test_square(name: str, shape: tuple[int, ...], make: Any) -> None:
    pytest.importorskip("array_api_strict")
    check(f"linalg.{name}", regular(make(*shape)), on=strict_raw())


@MAKERS
@pytest.mark.parametrize("n", [0, 1, 2, 3, 6, 7, -1, -2, -5])
def test_matrix_power(n: int, make: Any) -> None:
    pytest.importorskip("array_api_strict")
    check("linalg.matrix_power", regular(make(2, 3, 3)) / 4, n, on=strict_raw())


SYSTEMS = [
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((2, 3, 3), (3,)),
    ((2, 3, 3), (3, 2)),
    ((3, 3), (5, 3, 2)),
    ((3, 3), (3, 3, 3)),
    ((4, 1, 3, 3), (5, 3, 1)),
    ((1, 3, 3), (5, 3, 2)),
    ((0, 3, 3), (3, 2)),
    ((3, 3), (3, 0)),
    ((0, 0), (0, 2)),
    ((0, 0), (0,)),
]


@pytest.mark.parametrize(("shape1", "shape2"), SYSTEMS, ids=str)
def test_solve(shape1: tuple[int, ...], shape2: tuple[int, ...]) -> None:
    pytest.importorskip("array_api_strict")
    for first in (reals, complexes):
        for second in (reals, complexes):
            check("linalg.solve", regular(first(*shape1)), second(*shape2, seed=1), on=strict_raw())


@MAKERS
@pytest.mark.parametrize(
    "shape", [(3, 3), (4, 2), (2, 4), (2, 1, 3, 2), (0, 3, 2), (3, 0), (0, 3)], ids=str
)
def test_pinv(shape: tuple[int, ...], make: Any) -> None:
    pytest.importorskip("array_api_strict")
    check("linalg.pinv", regular(make(*shape)), on=strict_raw())
    check("linalg.pinv", regular(make(*shape)), rtol=1e-3)


@pytest.mark.parametrize(
    ("shape1", "shape2", "axis"),
    [
        ((3,), (3,), -1),
        ((2, 3), (3,), -1),
        ((4, 1, 3), (2, 3), -1),
        ((3, 2), (3, 1), -2),
        ((3, 2), (3, 2), 0),
        ((0, 3), (3,), -1),
    ],
    ids=str,
)
def test_cross(shape1: tuple[int, ...], shape2: tuple[int, ...], axis: int) -> None:
    pytest.importorskip("array_api_strict")
    check("linalg.cross", reals(*shape1), complexes(*shape2, seed=1), axis=axis)
    check(
        "linalg.cross",
        complexes(*shape1),
        complexes(*shape2, seed=1),
        axis=axis,
        on=strict_raw() if axis < 0 else None,
    )


@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (2, 3, 5), (2, 0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("offset", [0, 1, -1, 2, -2, 4, -4, 9, -9])
def test_diagonals(shape: tuple[int, ...], offset: int) -> None:
    pytest.importorskip("array_api_strict")
    check("linalg.diagonal", complexes(*shape), offset=offset, on=strict_raw())
    check("linalg.trace", reals(*shape), offset=offset, on=strict_raw())


def test_outer() -> None:
    pytest.importorskip("array_api_strict")
    check("linalg.outer", reals(2), complexes(3, seed=1))
    check("linalg.outer", complexes(2), complexes(3, seed=1), on=strict_raw())
    check("linalg.outer", reals(0), reals(3, seed=1), on=strict_raw())


ORDERS = (1, 2, 3, 4, 2.5, 1.5, 0.5, -1, -2, -0.5, 0, INF, -INF)


@MAKERS
@pytest.mark.parametrize("ord", ORDERS)
def test_vector_norm(ord: float, make: Any) -> None:
    pytest.importorskip("array_api_strict")
    for shape, axis in (
        ((4,), None),
        ((2, 3), None),
        ((2, 3), 0),
        ((2, 3, 2), (-1, 0)),
        ((2, 3, 2), (1,)),
        ((2, 2), ()),
        ((), None),
    ):
        for keepdims in (False, True):
            check(
                "linalg.vector_norm",
                make(*shape),
                axis=axis,
                keepdims=keepdims,
                ord=ord,
                on=strict_raw() if shape == (2, 3) else None,
            )


@MAKERS
@pytest.mark.parametrize("ord", ["fro", None, "nuc", 1, -1, 2, -2, INF, -INF], ids=str)
def test_matrix_norm(ord: Any, make: Any) -> None:
    pytest.importorskip("array_api_strict")
    for shape in ((3, 3), (2, 4, 2), (2, 4), (1, 1)):
        check(
            "linalg.matrix_norm", make(*shape), ord=ord, keepdims=len(shape) == 3, on=strict_raw()
        )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("ord", "shape"),
    [
        ("fro", (0, 0)),
        ("nuc", (0, 0)),
        ("nuc", (0, 3)),
        ("nuc", (2, 3, 0)),
        (2, (0, 3)),
        (1, (3, 0)),
        (INF, (0, 3)),
        *((ord, (0, 2, 3)) for ord in ("fro", "nuc", 1, -1, 2, -2, INF, -INF)),
    ],
    ids=str,
)
def test_matrix_norm_of_nothing(ord: Any, shape: tuple[int, ...]) -> None:
    x = tensor(np.zeros(shape))
    (g,) = mg.autograd.grad(mg.linalg.matrix_norm(x, ord=ord).sum(), x, create_graph=True)
    assert g.shape == shape
    assert mg.autograd.grad(g.sum(), x)[0].shape == shape


# ----- against PyTorch, to second order -----

CASES: list[tuple[str, tuple[tuple[int, ...], ...], dict[str, Any]]] = [
    ("det", ((2, 3, 3),), {}),
    ("slogdet", ((2, 3, 3),), {}),
    ("inv", ((2, 3, 3),), {}),
    ("matrix_power", ((3, 3),), {"n": 5}),
    ("matrix_power", ((3, 3),), {"n": -3}),
    ("pinv", ((2, 4, 2),), {}),
    ("pinv", ((2, 4),), {}),
    ("solve", ((2, 3, 3), (3, 2)), {}),
    ("solve", ((3, 3), (3,)), {}),
    ("cross", ((2, 3), (2, 3)), {}),
    ("outer", ((2,), (3,)), {}),
    ("vecdot", ((2, 3), (2, 3)), {}),
    ("diagonal", ((2, 3, 4),), {"offset": 1}),
    *(("vector_norm", ((2, 3),), {"ord": ord}) for ord in ORDERS if ord),
    *(
        ("matrix_norm", ((2, 3, 2),), {"ord": ord})
        for ord in ("fro", "nuc", 1, -1, 2, -2, INF, -INF)
    ),
]


@MAKERS
@pytest.mark.parametrize(("name", "shapes", "options"), CASES, ids=str)
def test_gradients_are_those_of_pytorch(
    name: str, shapes: Any, options: dict[str, Any], make: Any
) -> None:
    torch = pytest.importorskip("torch")
    arrays = [make(*shape, seed=i) for i, shape in enumerate(shapes)]
    theirs = torch.outer if name == "outer" else getattr(torch.linalg, name)
    expected = derivatives(theirs, options, arrays, torch.tensor, torch.autograd.grad)
    found = derivatives(getattr(mg.linalg, name), options, arrays, mg.asarray, mg.autograd.grad)
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-8, atol=1e-8)


def like(y: Any, seed: int) -> Any:
    return (complexes if "complex" in str(y.dtype) else reals)(*y.shape, seed=seed)


def derivatives(
    f: Any, options: dict[str, Any], arrays: list[Any], wrap: Any, grad: Any
) -> list[Any]:
    """The gradients of a function for random cotangents, and the gradients of these for random
    tangents; what does not depend is 0.

    The sign of a real determinant is constant in PyTorch, and recorded with a gradient of 0 here.
    """
    xs = [wrap(x).requires_grad_() for x in arrays]
    out = f(*xs, *options.values()) if "n" in options else f(*xs, **options)
    outs = list(out) if isinstance(out, tuple) else [out]
    if len(outs) == 2 and "complex" not in str(xs[0].dtype):
        outs = outs[1:]
    first = grad(
        outs,
        xs,
        grad_outputs=[wrap(like(y, 10 + i)) for i, y in enumerate(outs)],
        create_graph=True,
    )
    moving = [
        (g, wrap(like(x, 20 + i)))
        for i, (g, x) in enumerate(zip(first, xs, strict=True))
        if g.requires_grad
    ]
    second = [wrap(0 * x) for x in arrays]
    if moving:
        second = grad(
            [g for g, _ in moving],
            xs,
            grad_outputs=[v for _, v in moving],
            allow_unused=True,
            materialize_grads=True,
        )
    found = [t.detach() for t in (*first, *second)]
    return [
        np.asarray(t.resolve_conj().numpy(force=True) if hasattr(t, "resolve_conj") else t)
        for t in found
    ]


def test_pseudoinverse_of_constant_rank_as_pytorch() -> None:
    """Of rank 2 along every path: the product of two factors."""
    torch = pytest.importorskip("torch")
    a, b, g = complexes(4, 2), complexes(2, 3, seed=5), complexes(3, 4, seed=9)
    ma, mb = tensor(a), tensor(b)
    ta, tb = (torch.tensor(x, requires_grad=True) for x in (a, b))
    ours = mg.autograd.grad(
        mg.linalg.pinv(ma @ mb, rtol=1e-10), [ma, mb], grad_outputs=mg.asarray(g)
    )
    theirs = torch.autograd.grad(
        torch.linalg.pinv(ta @ tb, rtol=1e-10), [ta, tb], grad_outputs=torch.tensor(g)
    )
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(x), y.resolve_conj().numpy(), rtol=1e-9, atol=1e-9)


# ----- singular points -----


def derivative_and_hessian(f: Any, x: Any, v: Any) -> tuple[Any, Any]:
    """The gradient of a real function at x, and its derivative along v."""
    t = tensor(x)
    (g,) = mg.autograd.grad(f(t), t, create_graph=True)
    (h,) = mg.autograd.grad(g, t, grad_outputs=mg.asarray(v))
    return np.asarray(g.detach()), np.asarray(h)


def cofactors(x: Any) -> Any:
    """The derivative of the determinant, minor by minor."""
    n = len(x)
    return np.asarray(
        [
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(n)]
            for i in range(n)
        ]
    )


def singular(make: Any, *values: float) -> Any:
    n = len(values)
    return np.linalg.qr(make(n, n))[0] * np.asarray(values) @ np.linalg.qr(make(n, n, seed=1))[0]


@pytest.mark.parametrize(
    "values",
    [
        (1.0, 1.0, 1.0, 1.0),
        (2.0, 1.0, 0.5, 0.0),
        (2.0, 1.0, 0.0, 0.0),
        (2.0, 0.0, 0.0, 0.0),
        (0.0,) * 4,
        (2.0, 1.0, 1e-9, 1e-9),
    ],
    ids=str,
)
def test_determinants_to_second_order_of_any_rank(values: tuple[float, ...]) -> None:
    """Cofactors are cubic in the elements: their derivative along v is that of an interpolation
    through four points, but for rounding.
    """
    x, v = singular(reals, *values), reals(4, 4, seed=3)
    g, h = derivative_and_hessian(mg.linalg.det, x, v)
    np.testing.assert_allclose(g, cofactors(x), rtol=1e-12, atol=1e-12)
    weights = {1: 8 / 12, -1: -8 / 12, 2: -1 / 12, -2: 1 / 12}
    np.testing.assert_allclose(
        h, sum(w * cofactors(x + k * v) for k, w in weights.items()), rtol=1e-11, atol=1e-11
    )


def test_determinant_of_a_singular_complex_matrix() -> None:
    x = singular(complexes, 2.0, 1.0, 0.0)
    (g,) = mg.autograd.grad(
        mg.linalg.det(t := tensor(x)), t, grad_outputs=mg.asarray(np.asarray(1.0 + 0j))
    )
    np.testing.assert_allclose(np.asarray(g), np.conj(cofactors(x)), rtol=1e-12, atol=1e-12)


def test_third_derivative_of_a_determinant() -> None:
    """Of a regular matrix, and of a small one; at others it is refused."""

    def third(x: Any) -> Any:
        t = tensor(x)
        (g,) = mg.autograd.grad(mg.linalg.det(t), t, create_graph=True)
        (h,) = mg.autograd.grad((g * g).sum(), t, create_graph=True)
        return np.asarray(mg.autograd.grad((h * mg.asarray(reals(*x.shape))).sum(), t)[0])

    def loss(x: Any) -> float:
        t = tensor(x)
        (g,) = mg.autograd.grad(mg.linalg.det(t), t, create_graph=True)
        return float(np.sum(np.asarray(mg.autograd.grad((g * g).sum(), t)[0]) * reals(*x.shape)))

    for values in ((3.0, 1.0, 1.0, 1.0, 0.5), (3.0, 1.0, 1.0, 0.5), (3.0, 1.0, 0.0), (3.0, 0.0)):
        x = singular(reals, *values)
        step, v = 1e-4, reals(*x.shape, seed=8)
        assert np.vdot(third(x), v) == pytest.approx(
            (loss(x + step * v) - loss(x - step * v)) / (2 * step), rel=1e-5, abs=1e-7
        )
    with pytest.raises(
        GradientError,
        match="the third derivative at a singular matrix of more than 3 by 3 is not available",
    ):
        third(singular(reals, 3.0, 1.0, 1.0, 0.0))


def test_a_determinant_that_is_not_finite() -> None:
    """nan, where the library's decomposition would raise."""
    for bad in (np.nan, INF):
        with np.errstate(all="ignore"):
            (g,) = mg.autograd.grad(
                mg.linalg.det(t := tensor(np.asarray([np.eye(4), np.full((4, 4), bad)]))).sum(), t
            )
        np.testing.assert_allclose(np.asarray(g)[0], np.eye(4), atol=1e-14)
        assert np.all(np.isnan(np.asarray(g)[1]))


def test_the_nuclear_norm_of_an_orthogonal_matrix_is_smooth() -> None:
    q, v = np.linalg.qr(reals(3, 3))[0], reals(3, 3, seed=4)
    g, h = derivative_and_hessian(lambda x: mg.linalg.matrix_norm(x, ord="nuc"), q, v)
    np.testing.assert_allclose(g, q, atol=1e-14)
    np.testing.assert_allclose(h, q @ (q.T @ v - v.T @ q) / 2, atol=1e-14)


@pytest.mark.parametrize("name", ["inv", "slogdet"])
def test_singular_matrices_raise(name: str) -> None:
    """inv in the forward pass, slogdet, whose value exists, in the backward pass."""
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        out = getattr(mg.linalg, name)(t := tensor(np.ones((2, 2))))
        mg.autograd.grad(out[-1].sum(), t)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("ord", [1, 2, 3, 4, 1.5, 0.5, -1, INF])
def test_norms_of_any_size(ord: float, scale: float) -> None:
    """Where the norm is finite, its gradient is that of the same vector of usual size."""
    x = np.asarray([1.0, -2.0, 2.0])
    with np.errstate(all="ignore"):
        norm = mg.linalg.vector_norm(t := tensor(x * scale), ord=ord)
        expected = mg.autograd.grad(mg.linalg.vector_norm(u := tensor(x), ord=ord), u)[0]
        if 0 < float(norm.detach()) < INF:
            np.testing.assert_allclose(
                np.asarray(mg.autograd.grad(norm, t)[0]), np.asarray(expected), rtol=1e-9
            )


# ----- forms in terms of the standard alone -----


def lacking() -> Any:
    """NumPy without the functions that have such a form: what is looked up here is the form
    itself.
    """
    linalg = array_api_compat.numpy.linalg
    kept = SimpleNamespace(**{name: getattr(linalg, name) for name in ("solve", "svd", "svdvals")})
    names = {
        name: getattr(array_api_compat.numpy, name)
        for name in dir(array_api_compat.numpy)
        if not name.startswith("__")
    }
    return RawNamespace(
        Backend("lacking", SimpleNamespace(**{**names, "linalg": kept}), (np.ndarray, np.generic))
    )


@MAKERS
def test_standard_only_forms(make: Any) -> None:
    forms, library = lacking().linalg, array_api_compat.numpy.linalg

    def agree(name: str, *args: Any, **options: Any) -> None:
        with np.errstate(all="ignore"):
            own, expected = (getattr(where, name)(*args, **options) for where in (forms, library))
        several = isinstance(expected, tuple)
        for a, b in zip(
            own if several else (own,), expected if several else (expected,), strict=True
        ):
            assert np.asarray(a).dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)

    for shape in ((4, 4), (2, 3, 3), (1, 1), (0, 0), (2, 0, 0), (0, 2, 2)):
        x = make(*shape)
        for name in ("det", "slogdet", "inv"):
            agree(name, x)
        for n in (-3, -1, 0, 1, 2, 7):
            agree("matrix_power", x, n)
    for x in (
        np.zeros((3, 3)),
        np.asarray([[0.0, 2.0], [3.0, 0.0]]),
        np.ones((2, 2, 2)),
        make(3, 3)[::-1],
        make(3, 3).T,
    ):
        agree("det", x)
        agree("slogdet", x)
    for shape in ((3, 3), (2, 4, 3), (2, 3, 4), (1, 1), (2, 0, 3)):
        x = make(*shape)
        for offset in range(-5, 6):
            agree("diagonal", x, offset=offset)
            agree("trace", x, offset=offset)
        agree("trace", x, dtype=np.complex64)
        if 0 in shape:
            continue
        agree("pinv", x)
        agree("pinv", x, rtol=0.3)
        agree("matrix_rank", x)
        for ord in ("fro", None, "nuc", 1, -1, 2, -2, INF, -INF):
            agree("matrix_norm", x, ord=ord)
            agree("matrix_norm", x, ord=ord, keepdims=True)
    agree("pinv", np.zeros((2, 0, 3)))
    agree("pinv", np.stack([np.ones((2, 3)), np.zeros((2, 3))]), rtol=np.asarray([0.1, 0.2]))
    agree(
        "matrix_rank",
        np.stack([np.eye(2), np.ones((2, 2)), np.zeros((2, 2))]),
        rtol=np.asarray([0.1, 0.1, 0.1]),
    )
    agree("trace", np.arange(9).reshape(3, 3))
    for axis, keepdims in ((None, False), (0, True), ((0, -1), True), (-1, False)):
        for ord in ORDERS:
            agree("vector_norm", make(2, 3, 2), axis=axis, keepdims=keepdims, ord=ord)
    agree("cross", make(2, 3), make(3, seed=1))
    agree("cross", make(3, 1, 2), make(3, 4, 1, seed=1), axis=-3)
    agree("outer", make(2), make(3, seed=1))


def test_standard_only_forms_refuse() -> None:
    forms = lacking().linalg
    for name in ("det", "slogdet"):
        with pytest.raises(
            ValueError,
            match=rf"linalg\.{name}: the last two axes must have the same length; the shape is "
            r"\(2, 3\)",
        ):
            getattr(forms, name)(np.ones((2, 3)))
    with pytest.raises(
        ValueError, match="the axis -1 must have length 3 in both operands; their shapes are"
    ):
        forms.cross(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="ord=3 is not one of 'fro', 'nuc'"):
        forms.matrix_norm(np.ones((2, 2)), ord=3)
    with pytest.raises(ValueError, match="both operands must have one dimension"):
        mg.linalg.outer(mg.asarray(np.ones((2, 2))), mg.asarray(np.ones(2)))


# ----- what is kept, and what it costs -----


@pytest.mark.parametrize(
    ("name", "argument", "kept"),
    [
        ("det", "x", {"x"}),
        ("inv", "x", {"ans"}),
        ("slogdet", "x", {"x", "sign"}),
        ("matrix_power", "x", {"x"}),
        ("pinv", "x", {"x", "ans"}),
        ("trace", "x", set()),
        ("diagonal", "x", set()),
        ("cross", "x1", {"x2"}),
        ("outer", "x2", {"x1"}),
        ("vector_norm", "x", {"x", "ans"}),
    ],
)
def test_what_is_kept(name: str, argument: str, kept: set[str]) -> None:
    op = registry.OPS[f"linalg.{name}"]
    assert not isinstance(op.vjp, registry.Rule)
    assert set(op.vjp[argument].keeps) & {*op.arrays, "ans", *(op.outputs or ())} == kept


def test_solve_keeps_the_matrix_and_solves_once() -> None:
    op = registry.OPS["linalg.solve"]
    for needs, kept in (
        ((True, False), {"x1", "ans"}),
        ((False, True), {"x1"}),
        ((True, True), {"x1", "ans"}),
    ):
        assert set(codegen.pullback(op, needs, False, True).plan) & {"x1", "x2", "ans"} == kept
    made: list[str] = []
    linalg = SimpleNamespace(solve=lambda *args: made.append("solve") or NUMPY.linalg.solve(*args))

    class Recording:
        def __getattr__(self, name: str) -> Any:
            return linalg if name == "linalg" else getattr(NUMPY, name)

    x1, x2 = regular(reals(3, 3)), reals(50, 3, 2)
    gradients = codegen.vjp(
        op, Recording(), [x1, x2], np.linalg.solve(x1, x2), reals(50, 3, 2, seed=3), (True, True)
    )
    assert made == ["solve"]
    assert [g.shape for g in gradients] == [(3, 3), (50, 3, 2)]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision_stays(dtype: str) -> None:
    x = regular(reals(3, 3)).astype(dtype)
    for name, options in (
        ("det", {}),
        ("slogdet", {}),
        ("inv", {}),
        ("pinv", {}),
        ("trace", {}),
        ("matrix_norm", {"ord": "nuc"}),
        ("matrix_norm", {"ord": np.float64(2)}),
        ("matrix_norm", {"ord": np.int64(1)}),
        ("vector_norm", {"ord": np.float64(3)}),
        ("vector_norm", {"axis": np.int64(0), "ord": 0.5}),
        ("vector_norm", {"ord": np.inf, "keepdims": np.bool_(True)}),
    ):
        out, (g, *_), moved, _, _ = linearized(NUMPY, f"linalg.{name}", (x,), options, lambda a: a)
        assert g.dtype == x.dtype
        several = isinstance(out, tuple)
        assert [m.dtype for m in (moved if several else (moved,))] == [
            np.asarray(y).dtype for y in (out if several else (out,))
        ]


def test_aliases_are_those_of_the_main_namespace() -> None:
    for name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
        assert registry.OPS[f"linalg.{name}"].signature == registry.OPS[name].signature
    x1, x2 = tensor(complexes(2, 3)), tensor(complexes(2, 3, seed=1))
    for alias, function in (
        (mg.linalg.vecdot, mg.vecdot),
        (lambda a, b: mg.linalg.tensordot(a, b, axes=2), lambda a, b: mg.tensordot(a, b)),
        (lambda a, b: mg.linalg.matmul(a, mg.linalg.matrix_transpose(b)), lambda a, b: a @ b.mT),
    ):
        ours, theirs = (
            mg.autograd.grad((mg.abs(f(x1, x2)) ** 2).sum(), [x1, x2]) for f in (alias, function)
        )
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_results_are_named() -> None:
    out = mg.linalg.slogdet(tensor(np.asarray([[0.0, 2.0], [3.0, 0.0]])))
    assert out._fields == ("sign", "logabsdet")
    assert (float(out.sign.detach()), float(out.logabsdet.detach())) == (
        -1.0,
        pytest.approx(np.log(6.0)),
    )


def test_under_a_trace() -> None:
    """No rule asks for a value, so that all of it compiles; what cannot be refused there is nan."""
    jax = pytest.importorskip("jax")

    def loss(x: Any) -> Any:
        t = mg.asarray(x, requires_grad=True)
        y = (
            mg.linalg.det(t)
            + mg.linalg.matrix_norm(mg.linalg.inv(t), ord="nuc")
            + mg.linalg.slogdet(mg.linalg.pinv(t)).logabsdet
        )
        (g,) = mg.autograd.grad(y, t, create_graph=True)
        return mg.autograd.grad((g * g).sum(), t)[0].array

    x = jax.numpy.asarray(regular(reals(3, 3)))
    np.testing.assert_allclose(
        np.asarray(jax.jit(loss)(x)),
        np.asarray(loss(np.asarray(x))),
        rtol=1e-6 if x.dtype == "float64" else 1e-2,
    )
