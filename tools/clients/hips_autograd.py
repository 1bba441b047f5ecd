"""A pytest plugin: HIPS autograd's own tests run with multigrad_autograd in autograd's place.

    python -m pytest -p hips_autograd tests/test_numpy.py

`--expected FILE` lists the tests that fail, each with the reason: one that passes fails the run, as one does that fails and is not listed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import multigrad_autograd

multigrad_autograd.install()


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--expected", help="a file of the tests that are expected to fail")


def listed(text: str) -> dict[str, str]:
    """The reason by the name of the test: a line `# reason` holds for the names below it."""
    reasons: dict[str, str] = {}
    reason = ""
    for line in text.splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ")
        elif line.strip():
            reasons[line.strip()] = reason
    return reasons


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    path = config.getoption("--expected")
    expected = listed(Path(path).read_text()) if path else {}
    for item in items:
        name = f"{Path(item.path).name}::{item.nodeid.partition('::')[2]}"
        if name in expected:
            item.add_marker(pytest.mark.xfail(reason=expected[name], strict=True))
