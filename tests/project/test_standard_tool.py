"""`make test-standard`: it says so where it cannot run, and every expected failure has a reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "standard.py"


def run(checkout: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOL), "numpy"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"ARRAY_API_TESTS": checkout},
    )


def test_without_the_suite() -> None:
    done = run("")
    assert done.returncode == 0 and done.stdout.startswith("NOT RUN: the standard's own tests")
    assert "git clone" in done.stdout and "make test-standard ARRAY_API_TESTS=" in done.stdout


def test_what_is_no_checkout_is_a_failure(tmp_path: Path) -> None:
    done = run(str(tmp_path))
    assert done.returncode == 1 and "is not a checkout of array-api-tests" in done.stdout
    (tmp_path / "array_api_tests").mkdir()
    (tmp_path / "array_api_tests" / "__init__.py").touch()
    done = run(str(tmp_path))
    assert done.returncode == 1 and "submodule update --init" in done.stdout


@pytest.mark.parametrize("path", sorted(TOOL.with_suffix("").glob("*.txt")), ids=lambda p: p.stem)
def test_lists(path: Path) -> None:
    head, *groups = path.read_text().strip().split("\n\n")
    assert all(line.startswith("# ") for line in head.splitlines()) and groups
    seen: set[str] = set()
    for group in groups:
        reason, *ids = group.splitlines()
        assert reason.startswith("# ") and ids, group
        assert all(i.startswith("array_api_tests/test_") and "::" in i for i in ids), group
        assert not seen & set(ids)
        seen |= set(ids)
