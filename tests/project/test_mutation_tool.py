"""tools/mutation.py: the mistakes that it plants, and that a test finds one."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = b'''
def taken(self, key, values):
    """A text that is no statement."""
    if key is None or not values:
        raise ValueError(f"no {key + 1}")
    with self.lock:
        self.count += 1
    try:
        return self.find(key, values[0] < 2)
    finally:
        self.close()
'''


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    yield importlib.import_module("mutation")
    for name in ("mutation", "mistakes"):
        sys.modules.pop(name, None)


def test_mistakes_of_a_program(tool: Any) -> None:
    planted = list(tool.mutants("multigrad/core/x.py", PROGRAM, tool.in_engine))
    for mutant in planted:
        compile(mutant.source, "x", "exec")
    assert [(m.statement, m.kind, *m.key.split(": ", 1)[1].split(" -> ")) for m in planted] == [
        (4, "and, or", "key is None or not values", "key is None and (not values)"),
        (4, "dropped condition", "key is None or not values", "not values"),
        (4, "dropped condition", "key is None or not values", "key is None"),
        (4, "comparison", "key is None", "key is not None"),
        (4, "negation", "not values", "values"),
        (5, "dropped statement", "raise ValueError(f'no {key + 1}')", "pass"),
        (6, "dropped with", "with self.lock: ...", "if True: ..."),
        (7, "dropped statement", "self.count += 1", "pass"),
        (7, "constant", "1", "2"),
        (8, "dropped finally", "try: ...", "if True: ..."),
        (9, "returned value", "self.find(key, values[0] < 2)", "None"),
        (9, "returned value", "self.find(key, values[0] < 2)", "key"),
        (9, "swapped arguments", "self.find(key, values[0] < 2)", "self.find(values[0] < 2, key)"),
        (9, "comparison", "values[0] < 2", "values[0] <= 2"),
        (9, "constant", "0", "1"),
        (9, "constant", "2", "3"),
        (11, "dropped statement", "self.close()", "pass"),
    ]


@pytest.mark.sweep
def test_a_mistake_is_found_in_a_process_of_its_own(tool: Any) -> None:
    path = "multigrad/func/ravel.py"
    text = (ROOT / path).read_bytes()
    planted = [m for m in tool.mutants(path, text, tool.in_engine) if m.kind == "returned value"]
    test = "tests/func/test_ravel_pytree.py::test_edges"
    trials = [tool.Trial(m, [test]) for m in (planted[0], replace(planted[0], path=""))]
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools/mutation.py"), "--worker", "engine"],
        input="".join(json.dumps(asdict(trial)) + "\n" for trial in trials),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    first, second = map(json.loads, run.stdout.splitlines())
    assert first.startswith(f"{test}: ") and second == ""
