"""What all tests share: the backends they run on.

JAX computes in float64 here; its default is tested by conformance.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pytest

import multigrad as mg
from multigrad import registry
from multigrad.dispatch import checking, runners
from multigrad.errors import BackendError

HERE = Path(__file__).parent
# python -O leaves out the assertions of modules that pytest does not rewrite
pytest.register_assert_rewrite(
    *(path.stem for path in HERE.glob("*.py") if path.stem != "conftest")
)

BACKENDS = ("numpy", "strict", "jax")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """The name of each backend that the project's tests need; its absence is visible."""
    name: str = request.param
    try:
        mg.namespace(name)
    except BackendError as error:
        pytest.skip(f"backend {name!r} cannot be used here: {error}")
    return name


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("properties", "random programs, tests/properties")
    group.addoption(
        "--properties-seconds",
        type=float,
        default=60.0,
        help="of the processor, for all of them together",
    )
    group.addoption("--properties-seed", default="1", help='a number, or "fresh" for a new one')
    group.addoption("--properties-as-found", action="store_true", help="leave out the shrinking")
    group.addoption("--properties-batch", type=int, help="try this batch of programs alone")


SWEPT_ON_JAX = (
    "consumers/test_array_api_extra",
    "func/test_vmap_indexing",
    "layers/test_batched",
    "memory/test_deepcopy",
    "memory/test_view_chains",
    "ops/",
    "parity/",
    "plugins/special/",
    "package/test_promotion",
    "protocols/test_numpy_forms",
)
"""The folders and modules whose tests ask each operation for its values on each backend.

On JAX each of them compiles programs of its own. The conformance suite has the values and the
gradients of every operation there, so the short level leaves these tests out."""

NOT_QUICK = ("package/test_misuse",)
"""Modules of the short level that take too long for `make quick`."""

APART = {"dask", "jax", "plugin_sites", "scipy", "subprocess", "torch"}
"""A module that uses one of these modules is no part of `make quick`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what each level leaves out; CONTRIBUTING.md describes the levels.

    slow: from `make test-all` on. sweep: from `.ci/run` on. quick: what `make quick` runs. On JAX
    and on array-api-strict the short level has the first parameters of a test alone.
    """
    twice = pytest.mark.skip("each operation runs twice, see multigrad/dispatch/checking.py")
    met: Counter[tuple[str, bool, bool]] = Counter()
    for item in items:
        if checking.CHECKED and item.get_closest_marker("runs_once"):
            item.add_marker(twice)
        of = getattr(item, "callspec", None)
        texts = {x for x in of.params.values() if isinstance(x, str)} if of else set()
        folder = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
        on_jax = "jax" in texts
        on_strict = bool(texts & {"strict", "array_api_strict"})
        if folder.startswith("faults/"):
            item.add_marker(pytest.mark.slow)  # `make test-faults` runs them
        if on_jax and folder.startswith("plugins/special/"):
            item.add_marker(pytest.mark.slow)  # each compiles for seconds
        kept = 10**9
        if (first := item.get_closest_marker("sweep_after")) is not None:
            kept = first.args[0]
        if item.get_closest_marker("network"):
            kept = 0
        if on_jax and folder.startswith(SWEPT_ON_JAX):
            kept = 0
        elif on_jax or on_strict:
            kept = min(kept, 1)
        group = item.nodeid.partition("[")[0], on_jax, on_strict
        met[group] += 1
        if met[group] > kept:
            item.add_marker(pytest.mark.sweep)
        if not folder.startswith(NOT_QUICK) and _is_quick(item, texts):
            item.add_marker(pytest.mark.quick)


def _is_quick(item: pytest.Item, texts: set[str]) -> bool:
    """Whether a test runs on NumPy, without JAX, in this process, and in the short level.

    Rules that it checks on array-api-strict beside NumPy do not count; the test's own variant for
    strict does.
    """
    if texts & {"jax", "strict", "array_api_strict"} or "jax" in item.nodeid.lower():
        return False
    if any(item.get_closest_marker(name) for name in ("sweep", "slow", "network")):
        return False
    code = getattr(getattr(item, "function", None), "__code__", None)
    if code is not None and APART & words(code):
        return False
    return not _is_apart(getattr(item, "module", None))


def words(code: CodeType) -> set[str]:
    """The names and the strings in a function's code, in its tuples, and in functions inside it."""
    found, rest = set(code.co_names), list(code.co_consts)
    while rest:
        constant = rest.pop()
        if isinstance(constant, str):
            found.add(constant)
        elif isinstance(constant, (tuple, frozenset)):
            rest += constant
        elif isinstance(constant, CodeType):
            found.update(constant.co_names)
            rest += constant.co_consts
    return found


@cache
def _is_apart(module: ModuleType | None) -> bool:
    used = (
        [
            x.__name__ if isinstance(x, ModuleType) else getattr(x, "__module__", None)
            for x in vars(module).values()
        ]
        if module
        else []
    )
    return any(str(name).partition(".")[0] in APART for name in used)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> None:
    """What is there before a module's tests lives until the end, as collected tests and programs of
    JAX do: the collector, which many tests call, does not go through it again.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def xp(backend: str) -> Any:
    """The differentiable namespace of each backend."""
    return mg.namespace(backend)


@pytest.fixture
def operations() -> Iterator[dict[str, registry.Op]]:
    """The table of operations, as it was before once the test is over."""
    mg.zeros(1)
    before = dict(registry.OPS)
    yield registry.OPS
    registry.restore(before)


@pytest.fixture
def no_runners() -> None:
    """No runner is left from before: each signature is met for the first time."""
    runners.forget()


@pytest.fixture(autouse=True)
def _no_silent_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        yield


def values(t: Any) -> Any:
    """The values of a Tensor or raw array of any backend as a NumPy array."""
    t = t.detach().array if isinstance(t, mg.Tensor) else t
    return np.asarray(t)
