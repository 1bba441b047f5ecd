"""Kinks, ties, zeros and singular points: the table of hard_cases.py on every backend, beside
PyTorch and JAX; products to third order; what is refused."""

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
        for second, key, ours in (
            (False, "torch", case.gradient),
            (True, "torch_second", case.second),
        ):
            expected = others.get(key, ours)
            if expected is None:
                continue
            leaves = [torch.tensor(array(a), requires_grad=True) for a in case.at]
            found = derivatives(xp, case.on_torch or case.f, leaves, second, torch.autograd.grad)
            try:
                check([g.detach().resolve_conj().numpy(force=True) for g in found], expected)
            except AssertionError as error:
                error.add_note(f"{case.id}, {key}")
                raise


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
            error.add_note(f"{case.id}, JAX")
            raise


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


# ----- what the page says of zeros and of bad branches -----


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "sign"])
def test_a_zero_gradient_is_recorded(xp: Any, name: str) -> None:
    x = xp.asarray(np.asarray([[1.5, -2.0], [0.5, 3.0]]), requires_grad=True)
    y = getattr(xp, name)(x)
    assert y.requires_grad and y.grad_fn.name() == f"{name.title()}Backward"
    xp.sum(y).backward()
    check([values(x.grad)], [np.zeros((2, 2))])


def test_the_remedy_for_a_bad_branch(xp: Any) -> None:
    x = xp.asarray(np.asarray([0.0, 4.0]), requires_grad=True)
    y = xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), 0.0)
    (g,) = mg.autograd.grad(xp.sum(y), x, create_graph=True)
    check([values(g)], [[0, 0.25]])
    check([values(mg.autograd.grad(xp.sum(g), x)[0])], [[0, -1 / 32]])


# ----- refusals -----


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
    x = xp.asarray(np.asarray([[1.0, 2.0], [2.0, 4.0]]), requires_grad=True)
    sign, logabsdet = xp.linalg.slogdet(x)
    assert float(sign.detach()) == 0 and float(logabsdet.detach()) == -np.inf
    if backend == "jax":
        assert not np.any(np.isfinite(values(mg.autograd.grad(logabsdet, x)[0])))
    else:
        with pytest.raises(np.linalg.LinAlgError):
            mg.autograd.grad(logabsdet, x)


def test_hermitian_gradients_cover_both_triangles(xp: Any) -> None:
    """Although one triangle is read: of a complex matrix the gradient is Hermitian, too."""
    x = xp.asarray(np.asarray([[2.0, 1 + 1j], [1 - 1j, 5.0]]), requires_grad=True)
    for y in (
        xp.linalg.eigvalsh(x)[0],
        xp.real(xp.linalg.cholesky(x)[1, 0]),
        xp.linalg.eigh(x)[0][1],
    ):
        g = values(mg.autograd.grad(y, x)[0])
        np.testing.assert_allclose(g, g.conj().T, atol=1e-14)
        assert abs(g[0, 1]) > 0.1
