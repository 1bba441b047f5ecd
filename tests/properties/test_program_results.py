"""Random programs on Tensors of each backend: their results and first derivatives."""

from __future__ import annotations

import program_checks as checks
import pytest
from hypothesis import strategies as st

from multigrad_conformance.strategies import programs
from multigrad_conformance.target import Target


@pytest.mark.share(2)
def test_values_are_numpys(tried, backend):
    """Values, dtypes, and which arrays share memory, observed by writes."""

    def check(program):
        with checks.skipped():
            checks.values(checks.Case(program, Target(backend)))

    without = checks.eager(backend) - {"arguments written"}
    tried(check, programs(without=without, most=checks.most_steps(backend)))


@pytest.mark.share(3)
def test_backward_passes_give_the_slopes_of_numpy(tried, backend):
    def check(program, how):
        with checks.skipped():
            checks.backward(checks.Case(program, Target(backend)), how)

    drawn = programs(without=checks.eager(backend), most=checks.most_steps(backend))
    tried(check, drawn, st.sampled_from(["leaves", "twice", "second"]))
