"""Random programs in transformations, alone and in each other, against plain NumPy."""

from __future__ import annotations

import program_checks as checks
import pytest

from multigrad_conformance.strategies import programs
from multigrad_conformance.target import Target


def compared(backend):
    def check(drawn):
        names, program = drawn
        points = (0, 1, 0) if "compile" in names else (0,)
        with checks.skipped():
            checks.check(names, checks.Case(program, Target(backend)), points)

    return check


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.share(5 if name == "vmap" else 0.7))
        for name in checks.TRANSFORMATIONS
    ],
)
def test_a_transformation(tried, name):
    """In vmap, views of batches and writes to them rarely meet by chance."""
    often = ("view", "write") if name == "vmap" else ()
    tried(compared("numpy"), checks.nested("numpy", name, most=1, often=often))


@pytest.mark.share(6)
def test_transformations_in_each_other(tried):
    tried(compared("numpy"), checks.nested("numpy", most=3))


@pytest.mark.share(2)
@pytest.mark.parametrize("backend", ["strict", "jax"], indirect=True)
def test_transformations_on_other_libraries(tried, backend):
    tried(compared(backend), checks.nested(backend, most=2))


OFTEN = ("iteration_with_writes", "scalar", "work_buffer", "branch", "write")


@pytest.mark.parametrize(
    "functions",
    [
        pytest.param("numpy", marks=pytest.mark.share(4)),
        pytest.param("namespace", marks=pytest.mark.share(9)),
    ],
)
def test_a_compiled_function_does_what_numpy_does(tried, functions):
    def check(program):
        with checks.skipped():
            checks.recorded(checks.Case(program, Target("numpy")), functions == "numpy")

    if functions == "numpy":
        tried(check, programs(without={"conversions", "writes"}))
    else:
        tried(check, programs(often=OFTEN))
