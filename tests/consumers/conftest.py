"""The backends on which libraries written for any array library are tried, and SciPy's switch.

SciPy reads SCIPY_ARRAY_API once, when it is imported, and most of the other tests need it as it
comes. So the tests that need the switch run in processes of their own, which
`test_in_scipys_mode.py` starts; a run that has it set collects them directly. A file that is named
on the command line is collected without the switch as well, and its tests are skipped.
"""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path

import pytest

SWITCHED = os.environ.get("SCIPY_ARRAY_API", "").lower() in ("1", "true")
IN_SCIPYS_MODE = ["test_scipy_*.py", "test_calls_sklearn.py"]
collect_ignore_glob = ["test_in_scipys_mode.py"] if SWITCHED else IN_SCIPYS_MODE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if SWITCHED:
        return
    skip = pytest.mark.skip(reason="run it with SCIPY_ARRAY_API=1, or run test_in_scipys_mode.py")
    for item in items:
        if item.path.parent == Path(__file__).parent and any(
            fnmatch(item.path.name, pattern) for pattern in IN_SCIPYS_MODE
        ):
            item.add_marker(skip)
