"""The expected failures of another project's tests, with reasons; shared by the pytest plugins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def add_option(parser: Any) -> None:
    parser.addoption("--expected", help="a file of the tests that are expected to fail")


def listed(path: Path) -> dict[str, str]:
    """Return the reason by the name of the test: a line `# reason` holds for the names below it."""
    reasons: dict[str, str] = {}
    reason = ""
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ")
        elif line.strip():
            reasons[line.strip()] = reason
    return reasons


def mark(config: Any, items: list[Any], key: Callable[[Any], str]) -> None:
    """Mark the tests in the file of `--expected` as strict expected failures.

    The run fails if one of them passes, or if a test that is not listed fails.
    """
    path = config.getoption("--expected")
    expected = listed(Path(path)) if path else {}
    for item in items:
        if key(item) in expected:
            item.add_marker(pytest.mark.xfail(reason=expected[key(item)], strict=True))
