"""Random programs: what they contain, and that their text runs alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

from multigrad_conformance import check_function
from multigrad_conformance.strategies import FEATURES, operations, programs

WITHOUT = [
    "branches",
    "masks",
    "mixed kinds",
    "mixed precisions",
    "NumPy scalars",
    "scalars",
    "writes",
]
FEW = settings(
    max_examples=30, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


def drawn(number, **options):
    found = []

    @seed(number)
    @FEW
    @given(programs(**options))
    def collect(program):
        found.append(program)

    collect()
    return found


def test_a_seed_draws_the_same_programs():
    assert [str(p) for p in drawn(1)] == [str(p) for p in drawn(1)]
    assert [str(p) for p in drawn(1)] != [str(p) for p in drawn(2)]


def test_the_text_is_a_script_that_runs_on_numpy():
    for program in drawn(3):
        if not any(callable(c) for c in program.constants.values()):
            names = {}
            text = str(program).replace("program(np", "found = program(np", 1)
            with np.errstate(all="ignore"):
                exec(text, names)
            expected = program.plain()(*program.points[0])
            for x, y in zip(names["found"], expected, strict=True):
                np.testing.assert_array_equal(x, y)


def test_features_can_be_left_out():
    found = [p.features for number in range(8) for p in drawn(number)]
    assert set().union(*found) == set(FEATURES)
    for feature in sorted(FEATURES):
        assert all(feature not in p.features for p in drawn(5, without=[feature]))


def test_programs_of_an_operation():
    for program in drawn(6, operations=["linalg.solve"]):
        assert "xp.linalg.solve(" in program.source
    assert not any("xp.median(" in p.source for p in drawn(7, avoid=["median"]))


def test_wrong_names():
    with pytest.raises(ValueError, match="without names \\['nothing'\\]; there are arguments"):
        drawn(1, without=["nothing"])
    with pytest.raises(ValueError, match="linalg.nothing cannot be part of a program"):
        drawn(1, operations=["linalg.nothing"])


def test_most_operations_take_part():
    """So a new one does: those whose samples NumPy's function of the same name takes."""
    assert len(operations()) > 100


@pytest.mark.sweep
def test_the_example_of_the_readme():
    pytest.importorskip("multigrad_special", reason="multigrad-special is not installed")

    @seed(1)
    @FEW
    @given(programs(operations=["special.erf"], without=WITHOUT))
    def test_erf_in_programs(program):
        check_function(program.run, *program.points[0], backends=["numpy"], dtypes="float64")

    test_erf_in_programs()
