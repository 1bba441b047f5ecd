"""Kinks, ties, zeros and singular points: the table of hard_cases.py on every backend, beside
PyTorch and JAX; products to third order; shapes and dtypes of gradients; what is refused."""

from __future__ import annotations

import itertools
import re
import warnings
from typing import Any

import hard_cases
import numpy as np
import pytest
from conftest import BACKENDS, values
from hard_cases import CASES, OTHERS, Case

import multigrad as mg
from multigrad.errors import GradientError


def on_every_backend(cases: list[Case]) -> Any:
    """JAX compiles each row: at the short level, those where its own choice is another one."""
    short = {name for name, given in OTHERS.items() if "jax" in given}
    return pytest.mark.parametrize(
        ("backend", "case"),
        [
            pytest.param(
                backend,
                case,
                id=f"{backend}-{case.id}",
                marks=[pytest.mark.slow] if backend == "jax" and case.id not in short else [],
            )
            for backend in BACKENDS
            for case in cases
        ],
    )


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    """Libraries warn of what is done here on purpose: divisions by zero, no degrees of freedom."""
    with warnings.catch_warnings():
        for message in (
            "divide by zero",
            "invalid value",
            "overflow",
            "Degrees of freedom",
            "var\\(\\)",
            "std\\(\\)",
            "Mean of empty",
            "degrees of",
        ):
            warnings.filterwarnings("ignore", message=message)
        yield


def array(data: Any) -> Any:
    found = np.array(data)
    return found if found.dtype.kind == "c" else found.astype(np.float64)


def total(xp: Any, y: Any) -> Any:
    """The sum; of complex numbers, of their real parts."""
    return xp.sum(xp.real(y) if xp.isdtype(y.dtype, "complex floating") else y)


def derivatives(
    xp: Any, f: Any, leaves: list[Any], second: bool, grad: Any = mg.autograd.grad
) -> list[Any]:
    found = list(grad(total(xp, f(xp, *leaves)), leaves, create_graph=second, allow_unused=True))
    found = [xp.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]
    if not second:
        return found
    sums = [total(xp, g) for g in found]
    if not any(s.requires_grad for s in sums):
        return [xp.zeros_like(x) for x in leaves]
    again = grad(sum(sums), leaves, allow_unused=True)
    return [xp.zeros_like(x) if g is None else g for g, x in zip(again, leaves, strict=True)]


def numbers(xp: Any, case: Case, dtype: Any = None) -> list[Any]:
    found = [array(a) for a in case.at]
    return [
        xp.asarray(a if dtype is None else a.astype(dtype[a.dtype.kind]), requires_grad=True)
        for a in found
    ]


def check(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    for got, want in zip(found, expected, strict=True):
        got, want = np.asarray(got), array(want)
        # of what is not finite, the parts differ from library to library
        if want.dtype.kind == "c" or got.dtype.kind == "c":
            got, want = (np.where(np.isfinite(z), z, complex(np.nan, np.nan)) for z in (got, want))
        np.testing.assert_allclose(
            got,
            want.reshape(got.shape) if want.size == got.size else want,
            rtol=rtol,
            atol=rtol * 1e-3,
        )


def refused(backend: str, case: Case) -> bool:
    """Whether the library refuses the values; then it really does."""
    if backend not in case.refused:
        return False
    with pytest.raises((ValueError, TypeError)):
        case.f(mg.namespace(backend), *numbers(mg.namespace(backend), case))
    return True


@on_every_backend(CASES)
def test_gradients(xp: Any, backend: str, case: Case) -> None:
    if refused(backend, case):
        return
    leaves = numbers(xp, case)
    found = derivatives(xp, case.f, leaves, second=False)
    for g, x in zip(found, leaves, strict=True):
        assert g.shape == x.shape and g.dtype == x.dtype
    check([values(g) for g in found], case.gradient)


@on_every_backend([case for case in CASES if case.second is not None])
def test_second_derivatives(xp: Any, backend: str, case: Case) -> None:
    if refused(backend, case):
        return
    found = derivatives(xp, case.f, numbers(xp, case), second=True)
    check([values(g) for g in found], case.second)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_in_single_precision(case: Case) -> None:
    """The same choices, and gradients of the argument's dtype."""
    xp = mg.namespace("numpy")
    leaves = numbers(xp, case, {"f": np.float32, "c": np.complex64})
    found = derivatives(xp, case.f, leaves, second=False)
    assert [g.dtype for g in found] == [x.dtype for x in leaves]
    check([values(g) for g in found], case.gradient, rtol=1e-5)


ELEMENTWISE = [
    case
    for chapter in (
        "Absolute value, sign, rounding",
        "Choosing one of two",
        "Powers",
        "Exponentials, logarithms, angles",
    )
    for case in hard_cases.TABLE[chapter]
    if not case.what.startswith("where(c")
]


@pytest.mark.parametrize(
    ("backend", "case"),
    [
        pytest.param(backend, case, id=f"{backend}-{case.id}")
        for backend in ("numpy", "strict")
        for case in ELEMENTWISE
        if backend not in case.refused
    ],
)
def test_without_axes(xp: Any, case: Case) -> None:
    """Each element of an elementwise case as a 0-d Tensor: NumPy computes with scalars then, by
    other code.
    """
    for element in range(len(case.at[0])):
        leaves = [xp.asarray(array(a)[element], requires_grad=True) for a in case.at]
        found = derivatives(xp, case.f, leaves, second=False)
        assert all(g.shape == () for g in found)
        check([values(g) for g in found], [array(g)[element] for g in case.gradient])


def test_under_jit() -> None:
    """The compiler chooses the same: it may rearrange arithmetic, and nothing is known of the
    values.
    """
    jax = pytest.importorskip("jax")
    xp = mg.namespace("jax")
    points = (
        "ties",
        "nan",
        "complex 0",
        "0, -0, nan",
        "x1 = 0, -0",
        "0/0",
        "(0, 0)",
        "(0, 0), (-0, 0)",
    )
    chosen = [case for case in ELEMENTWISE if case.where in points]
    assert len(chosen) > 10

    def gradients(*arguments: Any) -> Any:
        return [
            mg.func.grad(lambda *a, f=case.f: total(xp, f(xp, *a)), argnums=tuple(range(len(a))))(
                *a
            )
            for case, a in zip(chosen, arguments, strict=True)
        ]

    found = jax.jit(gradients)(
        *[tuple(jax.numpy.asarray(array(a)) for a in case.at) for case in chosen]
    )
    for case, gradient in zip(chosen, found, strict=True):
        check(gradient, case.gradient)


# ----- what the page says about the others, and the page -----


def test_pytorch() -> None:
    """Every row: PyTorch gives what we do, or what the page says it gives."""
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13"):
        pytest.skip(f"the page is about PyTorch 2.13; this is {torch.__version__}")
    import array_api_compat.torch as xp

    for case in CASES:
        others = OTHERS.get(case.id, {})
        for second in (False, True):
            expected = (
                others.get("torch_second", case.second)
                if second
                else others.get("torch", case.gradient)
            )
            if expected is None:
                continue
            leaves = [torch.tensor(array(a), requires_grad=True) for a in case.at]
            found = derivatives(xp, case.on_torch or case.f, leaves, second, torch.autograd.grad)
            try:
                check([g.detach().resolve_conj().numpy(force=True) for g in found], expected)
            except AssertionError as error:
                raise AssertionError(
                    f"{case.id}, {'second' if second else 'first'} derivative on PyTorch: {error}"
                ) from None


@pytest.mark.slow
def test_jax() -> None:
    """Every row, likewise."""
    jax = pytest.importorskip("jax")
    if not jax.__version__.startswith("0.10"):
        pytest.skip(f"the page is about JAX 0.10; this is {jax.__version__}")
    for case in CASES:
        arguments = [jax.numpy.asarray(array(a)) for a in case.at]
        found = jax.grad(
            lambda *a, f=case.f: total(jax.numpy, f(jax.numpy, *a)),
            argnums=tuple(range(len(arguments))),
        )(*arguments)
        try:
            check(
                [np.conj(np.asarray(g)) for g in found],
                OTHERS.get(case.id, {}).get("jax", case.gradient),
            )
        except AssertionError as error:
            raise AssertionError(f"{case.id} on JAX: {error}") from None


def test_the_page_is_the_table() -> None:
    text = hard_cases.PAGE.read_text()
    assert hard_cases.updated(text) == text, "write the page anew: python tests/hard_cases.py"
    chapters = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert chapters == list(hard_cases.TABLE)
    assert len(re.findall(r"^\| `", text, flags=re.MULTILINE)) == len(CASES)


def test_the_rows_are_told_apart() -> None:
    names = [case.id for case in CASES]
    assert len(set(names)) == len(names) and set(OTHERS) <= set(names)


# ----- products: polynomials, and right as such -----


def multilinear_derivative(f: Any, x: Any, places: tuple[int, ...]) -> Any:
    """The derivative by some of the elements of a function that is linear in each: differences,
    exact at any step.
    """
    if len(set(places)) < len(places):
        return 0.0
    found = 0.0
    for sides in itertools.product((1.0, 0.0), repeat=len(places)):
        moved = x.copy()
        moved[list(places)] = sides
        found = found + (-1) ** sides.count(0.0) * f(moved)
    return found


ZEROS = [
    [0, 0, 5, 7],
    [2, 3, 5, 7],
    [2, 0, 5, 7],
    [2, 0, 5, 0],
    [0, 0, 0, 7],
    [0, 0, 0, 0],
    [0, 3, 5, 0],
]


@pytest.mark.parametrize(
    ("backend", "x"), [*itertools.product(("numpy", "strict"), ZEROS), ("jax", ZEROS[0])], ids=str
)
@pytest.mark.parametrize("name", ["prod", "cumulative_prod"])
def test_products_to_third_order(xp: Any, name: str, x: list[float]) -> None:
    point, n = np.asarray(x, dtype=np.float64), len(x)
    w = np.asarray([1.0, 10.0, 100.0, 1000.0])

    def f(x: Any) -> Any:
        return np.sum(w * np.cumprod(x)) if name == "cumulative_prod" else np.prod(x)

    leaf = xp.asarray(point.copy(), requires_grad=True)
    y = getattr(xp, name)(leaf)
    y = xp.sum(y * xp.asarray(w)) if name == "cumulative_prod" else y
    directions = np.random.default_rng(3).integers(-3, 4, (2, n)).astype(np.float64)
    (g1,) = mg.autograd.grad(y, leaf, create_graph=True)
    (g2,) = mg.autograd.grad(xp.sum(g1 * xp.asarray(directions[0])), leaf, create_graph=True)
    (g3,) = mg.autograd.grad(xp.sum(g2 * xp.asarray(directions[1])), leaf)
    d = [
        [
            [[multilinear_derivative(f, point, (i, j, k)) for k in range(n)] for j in range(n)]
            for i in range(n)
        ],
        [[multilinear_derivative(f, point, (i, j)) for j in range(n)] for i in range(n)],
        [multilinear_derivative(f, point, (i,)) for i in range(n)],
    ]
    check(
        [values(g1), values(g2), values(g3)],
        [
            d[2],
            np.einsum("ij,i->j", np.asarray(d[1]), directions[0]),
            np.einsum("ijk,i,j->k", np.asarray(d[0]), *directions),
        ],
    )


@pytest.mark.parametrize("axis", [0, 1, None, (0, 1), (0, 2)], ids=str)
def test_products_over_axes_with_zeros(axis: Any) -> None:
    xp = mg.namespace("numpy")
    x = np.asarray([[[2.0, 0.0], [3.0, 4.0]], [[0.0, 0.0], [5.0, 0.0]]])
    leaf = xp.asarray(x.copy(), requires_grad=True)
    (g,) = mg.autograd.grad(xp.sum(xp.prod(leaf, axis=axis)), leaf)
    expected = [
        multilinear_derivative(
            lambda v: np.sum(np.prod(v.reshape(x.shape), axis=axis)), x.reshape(-1), (i,)
        )
        for i in range(x.size)
    ]
    check([values(g)], [np.reshape(expected, x.shape)])


# ----- shapes and dtypes -----

PAIRS = [
    ((), ()),
    ((), (3,)),
    ((3,), (2, 3)),
    ((1, 3), (2, 1)),
    ((1, 1, 3), (3,)),
    ((0,), ()),
    ((0, 1), (1, 3)),
    ((2, 3), (1, 1, 1, 1)),
]


NAMES = [
    "add",
    "multiply",
    "divide",
    "pow",
    "maximum",
    "hypot",
    "atan2",
    "where",
    "copysign",
    "logaddexp",
    "remainder",
]


@pytest.mark.parametrize(
    ("backend", "name"),
    [*itertools.product(("numpy", "strict"), NAMES), ("jax", "multiply"), ("jax", "where")],
)
@pytest.mark.parametrize(
    "dtypes", [("float64", "float64"), ("float32", "float64"), ("float64", "float32")], ids=str
)
def test_a_gradient_has_the_shape_and_dtype_of_its_argument(
    xp: Any, backend: str, name: str, dtypes: tuple[str, str]
) -> None:
    for shape1, shape2 in PAIRS[:3] if backend == "jax" else PAIRS:
        x, v = (
            xp.asarray(np.full(shape, 1.5).astype(dtype), requires_grad=True)
            for shape, dtype in zip((shape1, shape2), dtypes, strict=True)
        )
        y = xp.where(x > v, x, v) if name == "where" else getattr(xp, name)(x, v)
        for g, leaf in zip(mg.autograd.grad(xp.sum(y), (x, v)), (x, v), strict=True):
            assert g.shape == leaf.shape and g.dtype == leaf.dtype, (shape1, shape2)


@pytest.mark.parametrize("name", ["multiply", "add", "pow", "matmul", "vecdot"])
def test_real_arguments_beside_complex_ones_have_real_gradients(xp: Any, name: str) -> None:
    for dtypes in (("float64", "complex128"), ("complex128", "float64")):
        x, v = (
            xp.asarray(np.asarray([[1.5, 2.0], [0.5, 3.0]]).astype(d), requires_grad=True)
            for d in dtypes
        )
        y = getattr(xp, name)(x, v) * 1j
        gradients = mg.autograd.grad(xp.sum(xp.real(y) + xp.imag(y)), (x, v))
        assert [g.dtype for g in gradients] == [getattr(xp, d) for d in dtypes]


def test_casts(xp: Any) -> None:
    x = xp.asarray(np.asarray([1.0, 2.0]), requires_grad=True)
    cotangent = xp.asarray(np.asarray([1j, 2 + 3j]))
    check(
        [values(mg.autograd.grad(xp.astype(x, xp.complex128), x, grad_outputs=cotangent)[0])],
        [[0, 2]],
    )
    (g,) = mg.autograd.grad(xp.sum(xp.astype(x, xp.float32)), x)
    assert g.dtype == xp.float64
    f = xp.asarray(np.asarray([1.5, 2.5], dtype=np.float32), requires_grad=True)
    (g,) = mg.autograd.grad(xp.sum(xp.astype(f, xp.float64) ** 2), f)
    assert g.dtype == xp.float32
    for dtype in (xp.int64, xp.bool):
        assert not xp.astype(x, dtype).requires_grad
    (g,) = mg.autograd.grad(
        xp.sum(x, dtype=xp.complex128), x, grad_outputs=xp.asarray(np.asarray(2 + 1j))
    )
    assert g.dtype == xp.float64
    check([values(g)], [[2, 2]])
    c = xp.asarray(np.asarray([1 + 1j, 2.0]), requires_grad=True)
    condition = xp.asarray(np.asarray([True, False]))
    for left, right in ((x, c), (c, x)):  # PyTorch fails on this one
        g1, g2 = mg.autograd.grad(
            xp.where(condition, left, right), (left, right), grad_outputs=cotangent
        )
        assert g1.dtype == left.dtype and g2.dtype == right.dtype
        check(
            [values(g1), values(g2)],
            [[0 if left is x else 1j, 0], [0, 2 + 3j if right is c else 2]],
        )


def test_integers_have_no_gradient(xp: Any) -> None:
    x, n = xp.asarray(np.asarray([1.0, 2.0]), requires_grad=True), xp.asarray(np.asarray([2, 3]))
    with pytest.raises(
        GradientError,
        match="only Tensors of floating point and complex dtype can require gradients",
    ):
        n.requires_grad_()
    y = xp.take(x, n - 2) * xp.astype(n, xp.float64)
    (g,) = mg.autograd.grad(xp.sum(y), x)
    assert g.dtype == x.dtype
    check([values(g)], [[2, 3]])


ANY = np.asarray([[1.5, -2.0], [0.5, 3.0]])
WITHOUT: dict[str, Any] = {
    "floor_divide": lambda xp, x: xp.floor_divide(x, xp.asarray(ANY)),
    "nextafter": lambda xp, x: xp.nextafter(x, xp.asarray(ANY)),
    "argmax": lambda xp, x: xp.argmax(x),
    "argsort": lambda xp, x: xp.argsort(x),
    "equal": lambda xp, x: xp.equal(x, x),
    "isnan": lambda xp, x: xp.isnan(x),
    "signbit": lambda xp, x: xp.signbit(x),
    "ones_like": lambda xp, x: xp.ones_like(x),
    "matrix_rank": lambda xp, x: xp.linalg.matrix_rank(x),
    "count_nonzero": lambda xp, x: xp.count_nonzero(x),
    "any": lambda xp, x: xp.any(x),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_operations_without_a_gradient(xp: Any, name: str) -> None:
    y = WITHOUT[name](xp, xp.asarray(ANY.copy(), requires_grad=True))
    assert not y.requires_grad and y.is_leaf


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "sign"])
def test_a_zero_gradient_is_recorded(xp: Any, name: str) -> None:
    x = xp.asarray(ANY.copy(), requires_grad=True)
    y = getattr(xp, name)(x)
    assert y.requires_grad and y.grad_fn.name() == f"{name.title()}Backward"
    xp.sum(y).backward()
    check([values(x.grad)], [np.zeros((2, 2))])


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "prod",
        "mean",
        "cumulative_sum",
        "cumulative_prod",
        "sort",
        "exp",
        "sqrt",
        "abs",
        "reshape",
        "concat",
        "take",
        "where",
        "matmul",
        "var",
    ],
)
def test_empty_arrays(xp: Any, name: str) -> None:
    for shape in ((0,), (0, 2), (2, 0)):
        x = xp.asarray(np.zeros(shape), requires_grad=True)
        special = {
            "reshape": lambda x: xp.reshape(x, (-1, 3)),
            "concat": lambda x: xp.concat([x, x]),
            "matmul": lambda x: x @ (x if x.ndim == 1 else xp.matrix_transpose(x)),
            "take": lambda x: xp.take(x, xp.asarray(np.zeros(0, np.int64)), axis=0),
            "where": lambda x: xp.where(x > 0, x, 0.0),
            "cumulative_sum": lambda x: xp.cumulative_sum(x, axis=0),
            "cumulative_prod": lambda x: xp.cumulative_prod(x, axis=0),
        }
        y = special.get(name, lambda x: getattr(xp, name)(x))(x)
        (g,) = mg.autograd.grad(xp.sum(y), x)
        assert g.shape == shape and g.dtype == x.dtype


def test_the_remedy_for_a_bad_branch(xp: Any) -> None:
    x = xp.asarray(np.asarray([0.0, 4.0]), requires_grad=True)
    y = xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), 0.0)
    (g,) = mg.autograd.grad(xp.sum(y), x, create_graph=True)
    check([values(g)], [[0, 0.25]])
    check([values(mg.autograd.grad(xp.sum(g), x)[0])], [[0, -1 / 32]])


# ----- refusals -----

SINGULAR = np.asarray([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize("name", ["inv", "solve", "cholesky"])
def test_singular_matrices(xp: Any, backend: str, name: str) -> None:
    x = xp.asarray(
        np.diag([1.0, 0.0]) if name != "cholesky" else np.diag([1.0, -1.0]), requires_grad=True
    )
    run = {
        "inv": lambda: xp.linalg.inv(x),
        "solve": lambda: xp.linalg.solve(x, x),
        "cholesky": lambda: xp.linalg.cholesky(x),
    }[name]
    if backend == "jax":  # which never raises for a value
        assert not np.all(np.isfinite(values(run())))
    else:
        with pytest.raises(np.linalg.LinAlgError):
            run()


def test_slogdet_of_a_singular_matrix(xp: Any, backend: str) -> None:
    x = xp.asarray(SINGULAR.copy(), requires_grad=True)
    sign, logabsdet = xp.linalg.slogdet(x)
    assert float(sign.detach()) == 0 and float(logabsdet.detach()) == -np.inf
    if backend == "jax":
        assert not np.any(np.isfinite(values(mg.autograd.grad(logabsdet, x)[0])))
    else:
        with pytest.raises(np.linalg.LinAlgError):
            mg.autograd.grad(logabsdet, x)


HERMITIAN = np.asarray([[2.0, 1 + 1j], [1 - 1j, 5.0]])
GAUGE: dict[str, Any] = {
    "eigh": lambda xp, x: xp.sum(xp.real(xp.linalg.eigh(x)[1])),
    "svd": lambda xp, x: xp.sum(xp.real(xp.linalg.svd(x)[0])),
    "eig": lambda xp, x: xp.sum(xp.real(xp.linalg.eig(x)[1])),
}


@pytest.mark.parametrize("name", GAUGE)
def test_losses_that_depend_on_a_phase(xp: Any, name: str) -> None:
    x = xp.asarray(HERMITIAN.copy(), requires_grad=True)
    with pytest.raises(
        RuntimeError,
        match=r"in the complex case are specified up to multiplication by e\^\{i phi\}. The "
        r"specified loss",
    ):
        mg.autograd.grad(GAUGE[name](xp, x), x)


def test_losses_that_depend_on_a_phase_under_jit() -> None:
    jax = pytest.importorskip("jax")
    xp = mg.namespace("jax")
    found = jax.jit(mg.func.grad(lambda x: GAUGE["eigh"](xp, x)))(jax.numpy.asarray(HERMITIAN))
    assert np.all(np.isnan(found))


def test_complete_qr_of_a_tall_matrix(xp: Any) -> None:
    x = xp.asarray(np.arange(6.0).reshape(3, 2) ** 2, requires_grad=True)
    q, r = xp.linalg.qr(x, mode="complete")
    with pytest.raises(
        RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"
    ):
        mg.autograd.grad(xp.sum(q) + xp.sum(r), x)


def test_hermitian_gradients_cover_both_triangles(xp: Any) -> None:
    """Although one triangle is read: of a complex matrix the gradient is Hermitian, too."""
    x = xp.asarray(HERMITIAN.copy(), requires_grad=True)
    for y in (
        xp.linalg.eigvalsh(x)[0],
        xp.real(xp.linalg.cholesky(x)[1, 0]),
        xp.linalg.eigh(x)[0][1],
    ):
        g = values(mg.autograd.grad(y, x)[0])
        np.testing.assert_allclose(g, g.conj().T, atol=1e-14)
        assert abs(g[0, 1]) > 0.1
