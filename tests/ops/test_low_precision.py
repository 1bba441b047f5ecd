"""float16 and bfloat16, which the standard does not have, on the libraries that have them.

Gradients are of their argument's dtype. Whatever many numbers are added up in is as wide as in the
library's best sum: the error of a sum of thousands is a rounding or two, where adding up as they
are would stop at 2048 in float16 and at 256 in bfloat16. Errors are in units of the dtype's
epsilon, relative to the largest element.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pytest

import multigrad as mg
from multigrad.errors import GradientError
from multigrad.registry import OPS, Op
from multigrad_conformance.problem import Problem, gradients, numpy_target, random_like, tensors_of
from multigrad_conformance.sample import DType, Kink, Sample, is_array, leaves
from multigrad_conformance.samples import samples_of
from multigrad_conformance.target import Target, call

mg.namespace("numpy")  # fills the table


class Low(NamedTuple):
    """A narrow dtype of a library."""

    backend: str
    dtype: Any  # NumPy's

    @property
    def eps(self) -> float:
        return 2.0**-10 if self.dtype == np.float16 else 2.0**-7

    @property
    def xp(self) -> Any:
        return mg.namespace(self.backend)

    def rounded(self, x: Any) -> Any:
        """Values that the dtype has, in float64."""
        return np.asarray(x).astype(self.dtype).astype(np.float64)

    def array(self, x: Any) -> Any:
        """Values as a raw array of the library."""
        return mg.asarray(np.asarray(x).astype(self.dtype), backend=self.backend).array

    def leaf(self, x: Any) -> Any:
        return mg.asarray(self.array(x), requires_grad=True)


def made(name: str) -> Low:
    backend, dtype = name.split()
    if backend == "jax":
        pytest.importorskip("jax")
    return Low(
        backend,
        np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype),
    )


ON_JAX = pytest.param("jax bfloat16", marks=pytest.mark.sweep)  # which compiles each operation


@pytest.fixture(params=["numpy float16", ON_JAX])
def low(request: pytest.FixtureRequest) -> Low:
    return made(request.param)


def exactly(x: Any) -> Any:
    """The values of a Tensor or raw array in float64."""
    return np.asarray(x.detach().array if isinstance(x, mg.Tensor) else x).astype(np.float64)


def uniform(*shape: int) -> Any:
    return np.random.default_rng(shape).uniform(0.5, 1.5, shape)


# ----- every operation -----

WIDER = ("corrcoef", "cov", "nanpercentile", "nanquantile", "percentile", "quantile")
"""Those whose results are wider, as NumPy's: in float64 at least, or of the dtype that a list of
quantiles has.
"""


def swept(op: Op) -> Iterator[Sample]:
    """The samples of real floats.

    Singular points are exact where they are stated, in any precision.
    """
    for sample in samples_of(op.name):
        floats = any(
            is_array(v) and v.dtype.kind == "f"
            for v in leaves((sample.args, tuple(sample.kwargs.values())))
        )
        if (
            floats
            and not isinstance(sample, Kink)
            and not sample.checks
            and not sample.complex
            and sample.values
        ):
            yield sample


SWEPT = [name for name, op in OPS.items() if next(swept(op), None) is not None]


@pytest.mark.parametrize("name", SWEPT)
def test_every_operation_in_numpy(name: str) -> None:
    refused = [
        sweep(made("numpy float16"), OPS[name], sample, tolerance=0.03, twice=True)
        for sample in swept(OPS[name])
    ]
    if all(refused):
        pytest.skip(f"NumPy refuses it: {refused[0]}")


COMPILED = (
    "exp",
    "divide",
    "pow",
    "atan2",
    "logaddexp",
    "log2",
    *(n for n in SWEPT if OPS[n].kind not in ("elementwise", "nondifferentiable")),
)
"""Each compiles anew: of those whose rule is a partial derivative, a few."""


@pytest.mark.sweep
@pytest.mark.parametrize("name", COMPILED)
def test_operations_in_jax(name: str) -> None:
    refused = sweep(made("jax bfloat16"), OPS[name], next(swept(OPS[name])), tolerance=0.25)
    if refused:
        pytest.skip(f"JAX refuses it: {refused}")


def sweep(low: Low, op: Op, sample: Sample, tolerance: float, twice: bool = False) -> str:
    """Values, gradients and tangents are those of float64 at the same rounded numbers, and of the
    dtype they belong to.

    Returns what the library says where it does not compute with this dtype.
    """
    target = Target(low.backend)
    wide = Problem.of(
        op, sample, lambda v: low.rounded(v) if is_array(v) and v.dtype.kind == "f" else v
    )
    narrow = [low_values(low, target, v) for v in wide.values]
    xs = [low.leaf(x) for x in wide.leaves()]

    def assert_close(actual: Any, expected: Any, what: str) -> None:
        np.testing.assert_allclose(
            exactly(actual),
            expected,
            rtol=tolerance,
            atol=tolerance,
            err_msg=f"{what} of {sample.label}",
        )

    with np.errstate(all="ignore"):
        refused = refusal(low, op, lambda: call(op, target.raw_function(op), narrow))
        if refused:
            return refused
        out = wide.finished(target.bound, call(op, target.function(op), wide.replaced(xs, narrow)))
        outs = [
            y
            for y in (out if isinstance(out, (tuple, list)) else (out,))
            if isinstance(y, mg.Tensor) and y._elem.floating
        ]
        for y, expected in zip(outs, wide.results(), strict=True):
            assert_close(
                np.real(y.detach().array) if y._elem.complex else y, np.real(expected), "a value"
            )
            if (
                not op.name.startswith(("fft.", "special."))
                and op.name not in WIDER
                and not any(isinstance(v, DType) for v in wide.values)
            ):
                assert y.dtype == low.dtype, sample.label
        if op.kind == "nondifferentiable" or not xs:
            return ""
        outs = tensors_of(out)
        cotangents = [np.asarray(random_like(y, 101 + i)) for i, y in enumerate(wide.results())]
        given = [
            mg.asarray(
                c.astype(np.complex64) if c.dtype.kind == "c" else low.rounded(c),
                backend=low.backend,
            ).astype(y.dtype)
            for c, y in zip(cotangents, outs, strict=True)
        ]
        found = mg.autograd.grad(outs, xs, grad_outputs=given, create_graph=twice)
        exact = gradients(
            numpy_target(), wide, [c if c.dtype.kind == "c" else low.rounded(c) for c in cotangents]
        )
        for g, expected in zip(found, exact, strict=True):
            assert g.dtype == low.dtype, sample.label
            assert_close(g, expected, "a gradient")
        curved = [g for g in found if g.requires_grad]
        if curved:
            seconds = mg.autograd.grad(
                curved, xs, grad_outputs=[g.detach() for g in curved], allow_unused=True
            )
            assert all(h is None or h.dtype == low.dtype for h in seconds)
    if op.kind == "define" and wide.finish is None and twice:
        assert_tangents(low, target, wide, narrow, assert_close)
    return ""


def low_values(low: Low, target: Target, value: Any) -> Any:
    if type(value) in (tuple, list):
        return type(value)(low_values(low, target, v) for v in value)
    return low.array(value) if is_array(value) and value.dtype.kind == "f" else target.raw(value)


def refusal(low: Low, op: Op, run: Callable[[], Any]) -> str:
    """What the library says if it knows the standard's dtypes only, as in the extensions and the
    kernels made of them it may.
    """
    try:
        run()
    except (TypeError, ValueError, NotImplementedError) as error:
        if op.chapter not in ("linalg", "fft", "kernels") or str(low.dtype) not in str(error):
            raise
        return str(error).partition("\n")[0]
    return ""


def assert_tangents(
    low: Low, target: Target, wide: Problem, narrow: list[Any], assert_close: Callable[..., None]
) -> None:
    """The tangents of a written jvp, of the dtype of the output."""

    def f(*xs: Any) -> tuple[Any, ...]:
        out = call(wide.op, target.function(wide.op), wide.replaced(xs, narrow))
        outs = out if isinstance(out, (tuple, list)) else (out,)
        return tuple(y for y in outs if y.dtype.kind == "f")

    with np.errstate(all="ignore"):
        outs, moved = mg.func.jvp(
            f, tuple(map(low.array, wide.leaves())), tuple(map(low.array, wide.tangents))
        )
    for y, t, expected in zip(outs, moved, wide.difference_tangents, strict=True):
        assert t.dtype == y.dtype
        assert_close(t, expected, "a tangent")


# ----- adding up -----


def error(low: Low, found: Any, exact: Any) -> float:
    """In units of the dtype's epsilon, relative to the largest element."""
    found = exactly(found)
    assert found.shape == exact.shape
    return float(np.max(np.abs(found - exact)) / (np.max(np.abs(exact)) or 1.0) / low.eps)


def gradient(low: Low, y: Any, x: Any, cotangent: Any) -> Any:
    (g,) = mg.autograd.grad(y, x, grad_outputs=mg.asarray(low.array(cotangent)))
    assert g.dtype == low.dtype
    return g


def gradient_error(low: Low, y: Any, x: Any, cotangent: Any, exact: Any) -> float:
    """The error of a gradient."""
    return error(low, gradient(low, y, x, cotangent), exact)


MANY = 5000


@pytest.mark.parametrize("shape", [(4,), (1, 4), (), (MANY, 1), (300,)], ids=str)
def test_a_gradient_is_summed_to_a_broadcast_shape(low: Low, shape: tuple[int, ...]) -> None:
    g = low.rounded(uniform(MANY, shape[-1] if shape and shape[-1] > 4 else 4))
    x = low.leaf(np.ones(shape))
    exact = np.sum(g, axis={(): None, (MANY, 1): 1}.get(shape, 0), keepdims=len(shape) == 2)
    for y in (x * mg.asarray(low.array(np.ones(g.shape))), low.xp.broadcast_to(x, g.shape)):
        assert gradient_error(low, y, x, g, exact) <= 1


@pytest.mark.parametrize("width", [4, 300])
def test_gradients_of_what_is_taken_often(low: Low, width: int) -> None:
    g, index = low.rounded(uniform(MANY, width)), np.arange(MANY) % 2
    exact = np.stack([g[index == 0].sum(0), g[index == 1].sum(0), np.zeros(width)])
    x, i = low.leaf(np.ones((3, width))), mg.asarray(index, backend=low.backend)
    taken = [low.xp.take(x, i, axis=0), x[i]]
    if width == 4:
        along = low.xp.broadcast_to(i[:, None], (MANY, width))
        taken.append(low.xp.take_along_axis(x, along, axis=0))
    assert max(gradient_error(low, y, x, g, exact) for y in taken) <= 1


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("shape", [(), (4,)], ids=str)
def test_many_uses_of_one_tensor(low: Low, shape: tuple[int, ...], create_graph: bool) -> None:
    """As exact as the library's sum of all contributions; what is kept of the sum is of the
    argument's dtype.
    """
    uses = 3000 if low.backend == "numpy" else 400
    parts = low.rounded(uniform(uses, *shape))
    x = low.leaf(np.ones(shape))
    outs = [x * mg.asarray(low.array(part)) for part in parts]
    (g,) = mg.autograd.grad(
        outs,
        x,
        grad_outputs=[mg.asarray(low.array(np.ones(shape)))] * uses,
        create_graph=create_graph,
    )
    assert g.dtype == low.dtype
    assert error(low, g, parts.sum(0)) <= 1


def test_many_uses_of_an_intermediate_and_of_a_leaf_with_a_gradient(low: Low) -> None:
    x = low.leaf(np.ones(3))
    y = x * 2
    total: Any = y
    for _ in range(400):
        total = total + y
    total.sum().backward()
    assert x.grad.dtype == low.dtype and float(exactly(x.grad)[0]) == low.rounded(802.0)
    (x * 1).sum().backward()
    assert x.grad.dtype == low.dtype


@pytest.mark.parametrize("cotangent", [1.0, 1000.0])
@pytest.mark.parametrize("name", ["mean", "var", "std"])
@pytest.mark.parametrize(
    "dtype", ["numpy float16", pytest.param("jax float16", marks=pytest.mark.sweep), ON_JAX]
)
def test_moments_of_many(dtype: str, name: str, cotangent: float) -> None:
    """Their number is more than float16 holds."""
    low, n = made(dtype), 100_000
    x = low.leaf(np.random.default_rng(5).normal(size=n) + 1)
    y, value = getattr(low.xp, name)(x), exactly(x)
    assert error(low, y, np.asarray(getattr(np, name)(value))) <= 1
    exact = (
        {
            "mean": np.ones(n),
            "var": 2 * (value - value.mean()),
            "std": (value - value.mean()) / value.std(),
        }[name]
        * cotangent
        / n
    )
    smallest = 2.0**-24 if low.dtype == np.float16 else 0.0  # between two numbers close to 0
    found = exactly(gradient(low, y, x, cotangent))
    np.testing.assert_allclose(
        found, exact, rtol=3 * low.eps, atol=1.5 * smallest + 2 * low.eps * np.max(np.abs(exact))
    )


@pytest.mark.parametrize(
    ("name", "n", "axis"),
    [("max", 3000, 0), ("min", 100_000, None), ("norm", 3000, 0), ("norm", 100_000, None)],
)
def test_ties_of_many(low: Low, name: str, n: int, axis: int | None) -> None:
    shape = (n, 3) if axis == 0 else (n,)
    x = low.leaf(np.ones(shape))
    y = (
        low.xp.linalg.vector_norm(x, axis=axis, ord=np.inf)
        if name == "norm"
        else getattr(low.xp, name)(x, axis=axis)
    )
    assert gradient_error(low, y, x, np.ones(y.shape), np.full(shape, 1 / n)) <= 2


def test_scans_lose_what_the_library_loses(low: Low) -> None:
    g, x = low.rounded(uniform(MANY)), low.leaf(np.ones(MANY))
    exact = np.cumsum(g[::-1])
    own = error(low, low.xp.cumulative_sum(mg.asarray(low.array(g[::-1]))), exact)
    assert gradient_error(low, low.xp.cumulative_sum(x), x, g, exact[::-1]) <= own


def test_products_lose_what_the_library_loses(low: Low) -> None:
    a, b, g = (low.rounded(uniform(*shape)) for shape in ((2, 3, MANY), (MANY, 4), (2, 3, 4)))
    x1, x2 = low.leaf(a), low.leaf(b)
    own = max(error(low, x1 @ x2, a @ b), 1)
    assert gradient_error(low, x1 @ x2, x1, g, g @ b.T) <= own
    assert gradient_error(low, x1 @ x2, x2, g, np.tensordot(a, g, axes=((0, 1), (0, 1)))) <= own
    long, weight, ones = low.rounded(uniform(3, MANY)), low.leaf(uniform(3, 2)), np.ones((MANY, 2))
    assert (
        gradient_error(low, mg.asarray(low.array(long.T)) @ weight, weight, ones, long @ ones)
        <= own
    )


def test_copies_of_one_element(low: Low) -> None:
    x, g = low.leaf(np.ones(3)), low.rounded(uniform(3 * MANY))
    counts = mg.asarray(np.asarray([MANY, MANY, MANY]), backend=low.backend)
    assert gradient_error(low, low.xp.repeat(x, MANY), x, g, g.reshape(3, MANY).sum(1)) <= 1
    assert gradient_error(low, low.xp.tile(x, (MANY,)), x, g, g.reshape(MANY, 3).sum(0)) <= 1
    assert gradient_error(low, low.xp.repeat(x, counts), x, g, g.reshape(3, MANY).sum(1)) <= 1


def test_sums_on_numpy_are_made_in_float32() -> None:
    """NumPy does so along one contiguous axis only: of 5000 ones, its sum along the first of two
    axes is 2048.
    """
    ones = np.ones((MANY, 3), np.float16)
    xp = mg.namespace("numpy")
    assert np.sum(ones, axis=0)[0] == 2048
    for axis, expected in ((0, MANY), (1, 3), (None, 3 * MANY)):
        for total in (
            xp.sum(ones, axis=axis),
            xp.sum(mg.asarray(ones), axis=axis),
            mg.sum(ones, axis=axis),
        ):
            assert total.dtype == np.float16 and np.all(exactly(total) == np.float16(expected))
    np.testing.assert_array_equal(
        exactly(xp.cumulative_sum(ones, axis=0))[:, 0], np.arange(1, MANY + 1.0).astype(np.float16)
    )
    for axis, expected in ((0, MANY), (1, 3), (None, 3 * MANY), ((0, 1), 3 * MANY)):
        total = xp.sum(ones, axis=axis, dtype=np.float16)
        assert total.dtype == np.float16 and np.all(exactly(total) == np.float16(expected))
    assert xp.sum(ones, dtype=np.float64).dtype == np.float64 and xp.sum(
        ones, axis=0, dtype=np.float16, keepdims=True
    ).shape == (1, 3)
    scan = xp.cumulative_sum(ones, axis=0, dtype=np.float16, include_initial=True)
    assert scan.dtype == np.float16 and scan.shape == (MANY + 1, 3)
    np.testing.assert_array_equal(exactly(scan)[:, 0], np.arange(MANY + 1.0).astype(np.float16))


LARGE = np.random.default_rng(1).uniform(-300.0, 300.0, (500, 3))
SMALL = np.random.default_rng(2).uniform(-1e-4, 1e-4, (500, 3))


def reduction(data: Any, name: str, **options: Any) -> tuple[Any, Callable[[Any, Any], Any]]:
    """Numbers, and a function of them in the namespace `xp`."""
    return data, lambda xp, x: attrgetter(name)(xp)(x, **options)


REDUCTIONS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "ten of 200": reduction(np.full(10, 200.0), "linalg.vector_norm"),
    **{
        f"vector_norm {ord}": reduction(LARGE, "linalg.vector_norm", axis=0, ord=ord)
        for ord in (2, 3, 4, -1, np.inf, -np.inf, 0)
    },
    "vector_norm 1": reduction(LARGE / 3, "linalg.vector_norm", axis=0, ord=1),
    "vector_norm 0.5": reduction(np.abs(LARGE[:8, 0]) / 300 + 0.1, "linalg.vector_norm", ord=0.5),
    "vector_norm of small ones": reduction(SMALL, "linalg.vector_norm", keepdims=True),
    **{
        f"matrix_norm {ord}": reduction(LARGE / 30, "linalg.matrix_norm", ord=ord)
        for ord in ("fro", 1, -1)
    },
    **{
        f"matrix_norm {ord}": reduction(LARGE.T / 30, "linalg.matrix_norm", ord=ord, keepdims=True)
        for ord in (np.inf, -np.inf)
    },
    **{
        f"matrix_norm {ord}": reduction(LARGE[:5] / 30, "linalg.matrix_norm", ord=ord)
        for ord in ("nuc", 2, -2)
    },
    "sum": reduction(np.abs(LARGE) / 30, "sum", axis=0),
    "mean": reduction(LARGE + 400, "mean", axis=0),
    "prod": reduction(np.asarray([[1000.0, 1000.0, 0.001, 0.001, -2.0]] * 2), "prod", axis=1),
    "prod of many": reduction(1 + SMALL * 100, "prod", axis=0),
    "var": reduction(LARGE / 2, "var", axis=0),
    "var far from 0": reduction(100 + LARGE / 300, "var", correction=1),
    "std": reduction(LARGE * 3, "std", axis=0),
    "std of small ones": reduction(SMALL, "std", keepdims=True),
    "cumulative_sum": reduction(np.abs(LARGE) / 30, "cumulative_sum", axis=0),
    "cumulative_prod": reduction(np.asarray([200.0, 200.0, 0.001, 0.001, -2.0]), "cumulative_prod"),
    "cumulative_prod of many": reduction(
        1 + SMALL * 100, "cumulative_prod", axis=0, include_initial=True
    ),
    "trace": reduction(np.diag(np.abs(LARGE[:, 0]) / 30), "linalg.trace"),
    "vecdot": (LARGE / 30, lambda xp, x: xp.vecdot(x, x, axis=0)),
}


BRIEFLY = ("ten of 200", "matrix_norm 1", "prod of many", "std")


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        *(("numpy float16", n) for n in REDUCTIONS),
        *(pytest.param("jax float16", n, marks=pytest.mark.sweep) for n in REDUCTIONS),
        *(pytest.param("jax bfloat16", n, marks=pytest.mark.sweep) for n in BRIEFLY),
    ],
)
def test_reductions_are_made_in_a_wider_dtype(dtype: str, name: str) -> None:
    """Values, gradients, recorded gradients and tangents are within roundings of those in float64,
    where squares and partial products overflow.
    """
    low = made(dtype)
    data, f = REDUCTIONS[name]
    data, wp = low.rounded(data), mg.namespace("numpy")
    wide = wp.asarray(data, requires_grad=True)
    out = f(wp, wide)
    g = low.rounded(np.random.default_rng(3).uniform(0.5, 1.5, out.shape))
    t = low.rounded(np.random.default_rng(4).uniform(-1.0, 1.0, data.shape))
    (exact,) = mg.autograd.grad(out, wide, grad_outputs=wp.asarray(g))
    moved = mg.func.jvp(lambda x: f(wp, x), (data,), (t,))[1]
    x = low.leaf(data)
    y = f(low.xp, x)
    assert y.dtype == low.dtype and error(low, y, exactly(out)) <= 1.2
    assert error(low, mg.asarray(f(low.xp, mg.asarray(low.array(data)))), exactly(out)) <= 1.2
    assert gradient_error(low, y, x, g, exactly(exact)) <= 1.2
    (recorded,) = mg.autograd.grad(
        f(low.xp, x), x, grad_outputs=mg.asarray(low.array(g)), create_graph=True
    )
    assert recorded.dtype == low.dtype and error(low, recorded, exactly(exact)) <= 1.2
    tangent = mg.func.jvp(lambda x: f(low.xp, x), (low.array(data),), (low.array(t),))[1]
    assert tangent.dtype == low.dtype and error(low, tangent, exactly(moved)) <= 1.2


def test_norms_of_narrow_arrays_inside_transformations(low: Low) -> None:
    rows = low.rounded(np.stack([np.full(10, 200.0), np.full(10, 150.0)]))
    norm = low.xp.linalg.vector_norm
    per_row = mg.func.vmap(mg.func.grad(norm))(low.array(rows))
    assert per_row.dtype == low.dtype and error(low, per_row, np.full((2, 10), 10**-0.5)) <= 1
    assert error(low, mg.func.vmap(norm)(low.array(rows)), np.linalg.norm(rows, axis=1)) <= 1
    hessian = mg.func.hessian(lambda x: norm(x) ** 2 / 2)(low.array([3.0, 4.0]))
    np.testing.assert_allclose(exactly(hessian), np.eye(2), atol=4 * low.eps)


# ----- life with narrow dtypes -----


def test_a_training_step(low: Low) -> None:
    """Dtypes stay through operators, methods, in-place operations, second derivatives, copies."""
    w, x = low.leaf(uniform(4, 2)), mg.asarray(low.array(uniform(5, 4)))
    y = x @ w * 0.5 + 1
    y -= 0.25
    y[0, :] = 2.0
    loss = (y.exp() / 3).mean()
    assert y.dtype == loss.dtype == low.dtype
    (g,) = mg.autograd.grad(loss, w, create_graph=True)
    (h,) = mg.autograd.grad(g.sum(), w)
    loss = ((x @ w).exp() / 3).mean()
    loss.backward()
    assert g.dtype == h.dtype == w.grad.dtype == low.dtype
    w.grad.zero_()
    for other in (
        copy.deepcopy(w),
        pickle.loads(pickle.dumps(w)),
        mg.tensor(w.detach()),
        low.xp.ones_like(w, requires_grad=True),
    ):
        assert other.dtype == low.dtype and other.shape == w.shape
    assert mg.func.grad(lambda v: (v * v).sum())(low.array(uniform(3))).dtype == low.dtype
    assert isinstance(w[0, 0].item(), float) and w.tolist()[0][0] == w[0, 0].item()
    assert low.xp.zeros(3, dtype=low.dtype, requires_grad=True).dtype == low.dtype


def test_mixed_with_float32(low: Low) -> None:
    """The result is wide, each gradient of its argument's dtype."""
    x, wide = (
        low.leaf(np.ones(3)),
        mg.asarray(np.ones(3, np.float32), backend=low.backend, requires_grad=True),
    )
    y = x * wide + x.astype(low.xp.float32) + wide
    assert y.dtype == low.xp.float32
    y.sum().backward()
    assert x.grad.dtype == low.dtype and wide.grad.dtype == low.xp.float32
    np.testing.assert_array_equal(exactly(x.grad), 2)
    np.testing.assert_array_equal(exactly(wide.grad), 2)


@pytest.mark.sweep
def test_jit_does_not_change_how_gradients_are_added_up() -> None:
    jax = pytest.importorskip("jax")
    low = made("jax bfloat16")
    g = low.rounded(uniform(MANY, 2))

    @jax.jit
    def compiled(x: Any, g: Any) -> Any:
        t = mg.asarray(x, requires_grad=True)
        y = t[jax.numpy.zeros(MANY, int)] + t
        return mg.autograd.grad(y, t, grad_outputs=mg.asarray(g))[0].array

    found = compiled(low.array(np.ones((1, 2))), low.array(g))
    assert found.dtype == low.dtype and error(low, found, 2 * g.sum(0, keepdims=True)) <= 1


def test_bfloat16_in_numpy_has_values_but_no_gradients() -> None:
    """Which NumPy does not count among the floats: a Tensor says so, and does not drop a gradient
    on the way.
    """
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.asarray([1.5, 2.0], ml_dtypes.bfloat16)
    t = mg.asarray(x)
    assert (t + t).dtype == x.dtype and t.tolist() == [1.5, 2.0] and t[1].item() == 2.0
    with pytest.raises(
        GradientError,
        match="only Tensors of floating point and complex dtype can require gradients, not "
        "bfloat16",
    ):
        t.requires_grad_()
    leaf = mg.asarray(np.ones(2, np.float32), requires_grad=True)
    with pytest.raises(
        TypeError,
        match="the result has dtype bfloat16, which is none of the standard's, so the gradient "
        "would be lost",
    ):
        leaf.astype(x.dtype)
    (leaf * t).sum().backward()  # a constant like any other
    assert leaf.grad.dtype == np.float32 and leaf.grad.tolist() == [1.5, 2.0]
