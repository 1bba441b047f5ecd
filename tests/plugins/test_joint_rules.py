"""Joint rules, which give the gradients of several arguments at once: all of multigrad and of its
plugins, with parameters that are not the defaults, for every subset of the differentiated
arguments.

A rule may save other values for each subset (`keep`), so each is a case of its own.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="SciPy is not installed")

import multigrad as mg
import multigrad_autograd.scipy.linalg
import multigrad_autograd.scipy.stats  # noqa: F401 (declares operations)
from multigrad import registry
from multigrad.autograd import gradcheck, gradgradcheck

ROOT = Path(mg.__file__).parents[1]


def draw(*shape: int, seed: int, dtype: str = "float64", low: float = -1.0) -> Any:
    rng = np.random.default_rng([seed, *shape])
    x = rng.uniform(low, 1.0, shape)
    return x + 1j * rng.uniform(-1.0, 1.0, shape) if dtype == "complex128" else x


def matrix(n: int, seed: int, dtype: str) -> Any:
    """A matrix that is far from singular, and so are its triangles."""
    return 0.5 * draw(n, n, seed=seed, dtype=dtype) + 2 * np.eye(n)


def spd(n: int) -> Any:
    a = draw(n, n, seed=3)
    return a @ a.T + np.eye(n)


DTYPES = ("float64", "complex128")
SIDES = ((3,), (3, 2))  # a vector and a matrix as the right side

CASES: dict[str, list[tuple[tuple[Any, ...], tuple[Any, ...]]]] = {
    "linalg.solve": [
        ((matrix(3, 1, dtype), draw(*side, seed=2, dtype=other)), ())
        for dtype in DTYPES
        for other in DTYPES
        for side in (*SIDES, (2, 3, 2))
    ],
    "hips.solve_sylvester": [
        ((matrix(3, 1, first), matrix(2, 2, second), draw(3, 2, seed=3, dtype=third)), ())
        for first, second, third in itertools.product(DTYPES, repeat=3)
    ],
    "hips.solve_triangular": [
        ((matrix(3, 1, dtype), draw(*side, seed=2, dtype=other)), (trans, lower, unit))
        for dtype in DTYPES
        for other in DTYPES
        for side in SIDES
        for trans in (0, 1, 2)
        for lower in (False, True)
        for unit in (False, True)
    ],
    "hips.solve_banded": [
        (
            (
                0.3 * draw(sum(bands) + 1, 4, seed=1, dtype=dtype)
                + 2.0 * (np.arange(sum(bands) + 1) == bands[1])[:, None],
                draw(4, *side[1:], seed=2, dtype=dtype),
            ),
            (bands,),
        )
        for dtype in DTYPES
        for side in SIDES
        for bands in ((0, 0), (1, 1), (0, 2), (2, 1))
    ],
    "hips.dirichlet_logpdf": [
        ((draw(3, *points, seed=1, low=0.2), draw(3, seed=1, low=0.5)), ()) for points in ((), (2,))
    ],
    "hips.mvn_logpdf": [
        ((draw(*points, 3, seed=1), draw(3, seed=2), spd(3)), (singular,))
        for points in ((), (4,), (2, 2))
        for singular in (False, True)
    ],
}
"""The arguments to check: arrays, and the parameters that are not arrays, by operation."""

FORMS: dict[str, Any] = {
    "hips.dirichlet_logpdf": lambda f, x, alpha: f(x / mg.sum(x, axis=0), alpha),
    "hips.mvn_logpdf": lambda f, x, mean, cov, singular: f(x, mean, (cov + cov.T) / 2, singular),
}
"""The operation as a function of arguments that can change independently: the points of
hips.dirichlet_logpdf add up to 1, and a covariance is symmetric.
"""


def declared() -> Iterator[tuple[str, ast.Call]]:
    """The declarations of operations with a joint rule in the source of every distribution."""
    for folder in (*ROOT.glob("plugins/*/multigrad_*"), ROOT / "multigrad"):
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and any(
                    k.arg in ("keep", "vjp") for k in node.keywords
                ):
                    text = node.args[0] if node.args else None
                    if isinstance(text, ast.Constant) and "(" in str(text.value):
                        yield str(text.value).partition("(")[0], node


def test_every_joint_rule_is_here() -> None:
    """Those of plugins whose library is not installed are found in their source."""
    known = {name for name, op in registry.OPS.items() if isinstance(op.vjp, registry.Rule)}
    ours = {name for name in known if registry.OPS[name].builtin}
    assert ours <= {name for name, _ in declared()} == set(CASES)


@pytest.mark.parametrize("name", sorted(CASES))
def test_cases_change_every_parameter(name: str) -> None:
    op = registry.OPS[name]
    plain = [p for p, role in op.roles.items() if role == "plain"]
    for i, parameter in enumerate(plain):
        values = {settings[i] for _, settings in CASES[name]}
        assert len(values) > 1, parameter


def subsets(name: str) -> list[tuple[int, ...]]:
    positions = range(len(registry.OPS[name].arrays))
    return [s for k in range(1, len(positions) + 1) for s in itertools.combinations(positions, k)]


def functions(name: str, moving: tuple[int, ...]) -> Iterator[tuple[Any, list[Any], Any]]:
    """For each case: the operation as a function of these arguments, leaves, and its settings."""
    prefix, _, last = name.partition(".")
    operation = getattr(getattr(mg.namespace("numpy"), prefix), last)
    form = FORMS.get(name, lambda f, *args: f(*args))
    for arrays, settings in CASES[name]:

        def of_moving(*given: Any, arrays: Any = arrays, settings: Any = settings) -> Any:
            values = list(arrays)
            for i, x in zip(moving, given, strict=True):
                values[i] = x
            return form(operation, *values, *settings)

        yield of_moving, [mg.tensor(arrays[i], requires_grad=True) for i in moving], settings


def has_none(name: str, moving: tuple[int, ...], settings: tuple[Any, ...]) -> bool:
    """Whether the rule refuses: SciPy's pseudoinverse of a covariance has no derivative."""
    return name == "hips.mvn_logpdf" and settings[0] and 2 in moving


EACH = pytest.mark.parametrize(
    "name, moving", [(name, s) for name in sorted(CASES) for s in subsets(name)], ids=str
)


@EACH
def test_gradients_are_those_of_differences(name: str, moving: tuple[int, ...]) -> None:
    for function, leaves, settings in functions(name, moving):
        if has_none(name, moving, settings):
            with pytest.raises(NotImplementedError, match="pass allow_singular=False"):
                mg.sum(function(*leaves)).backward()
        else:
            assert gradcheck(function, leaves, check_forward_ad=True), settings


@EACH
@pytest.mark.sweep
def test_second_derivatives_are_those_of_differences(name: str, moving: tuple[int, ...]) -> None:
    for function, leaves, settings in functions(name, moving):
        if not has_none(name, moving, settings):
            assert gradgradcheck(function, leaves), settings
