"""The random level of the conformance suite: what hypothesis draws, and what is said where it is
absent.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from multigrad import registry

pytest.importorskip("multigrad_conformance")
pytest.importorskip("hypothesis")
from multigrad_conformance import cells, plugin, randomly
from multigrad_conformance.sample import Sample
from multigrad_conformance.target import Target


def test_every_operation_with_a_derivative_is_drawn() -> None:
    chosen = {cell.id for cell in cells.selected("numpy", "random", seed=3)}
    assert {
        "add/random/real",
        "add/random/complex",
        "matmul/random/matrices",
        "sum/random/all",
        "linalg.inv/random/real",
    } <= chosen
    assert not any(
        "/random/" in cell.id
        for level in ("short", "full")
        for cell in cells.selected("numpy", level)
    )
    assert chosen <= {cell.id for cell in cells.everything("numpy")}  # so that they may be exempted


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize("name", ["add", "sum", "linalg.inv", "clip"])
def test_a_right_operation_passes(name: str) -> None:
    for cell in cells.selected("numpy", "random"):
        if cell.operation == name:
            cell.execute()


def test_a_rule_that_is_wrong_for_some_shapes(operations: Any) -> None:
    def partial(xp: Any, g: Any, x1: Any, x2: Any) -> Any:
        return g * x2 if len(g.shape) < 3 else -g * x2

    registry.elementwise(
        "suite.cubes(x1, x2, /)",
        x1=partial,
        x2=lambda xp, x1: x1,
        forward=lambda xp, x1, x2: x1 * x2,
    )
    sample = Sample("real", np.full((2, 3), 1.5), np.full((2, 3), 0.5))
    with pytest.raises(AssertionError):
        randomly.check(sample, "suite.cubes", 0)(Target("numpy"))


def test_without_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin.importlib.util, "find_spec", lambda name: None)
    config: Any = SimpleNamespace(
        stash={}, getoption=lambda name: {"--multigrad-samples": "random"}.get(name)
    )
    with pytest.raises(
        pytest.UsageError,
        match=r"draws with hypothesis, which is not installed: pip install "
        r"'multigrad-conformance\[random\]'",
    ):
        plugin.pytest_configure(config)
