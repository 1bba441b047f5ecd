"""The tests of SciPy's functions, each file in a process in which SciPy looks at the type of its
arrays.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(path.name for path in HERE.glob("test_scipy*.py"))
TABLES = sorted(
    path.name for library in ("scipy", "sklearn") for path in HERE.glob(f"test_calls_{library}*.py")
)


def test_they_are_found() -> None:
    assert FILES == [
        "test_scipy.py",
        "test_scipy_refused.py",
        "test_scipy_sklearn.py",
        "test_scipy_special.py",
    ]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "files",
    [
        *([file] for file in FILES),
        *([pytest.param(TABLES, marks=pytest.mark.slow)] if TABLES else []),
    ],
)
def test_passes(files: list[str]) -> None:
    pytest.importorskip("scipy", reason="scipy is a dependency of the tests only")
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *(str(HERE / file) for file in files),
    ]
    done = subprocess.run(
        words,
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    tail = done.stdout[-6000:] + done.stderr[-2000:]
    assert done.returncode == 0, tail
    assert re.search(r"\d+ passed", done.stdout) and "skipped" not in done.stdout, tail


@pytest.mark.sweep
def test_a_file_that_is_named_without_the_switch_is_skipped() -> None:
    unswitched = {name: value for name, value in os.environ.items() if name != "SCIPY_ARRAY_API"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*words, str(HERE / "test_scipy_refused.py")],
        env=unswitched,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "run it with SCIPY_ARRAY_API=1" in done.stdout, done.stdout + done.stderr
    assert re.search(r"^\d+ skipped in", done.stdout, re.M) and done.returncode == 0


def test_the_list_of_the_documentation_is_that_of_the_tests() -> None:
    """docs/consumers.md names every function of the tables here."""
    page = (HERE.parent.parent / "docs" / "consumers.md").read_text()
    tables = "".join(
        (HERE / file).read_text() for file in ("test_scipy.py", "test_scipy_refused.py")
    )
    named = set(re.findall(r'^    "([a-z]+\.[A-Za-z_.0-9]+)[", ]', tables, re.M))
    assert len(named) > 80
    # Methods are named after their class.
    missing = sorted(
        n for n in named if f"`{n}`" not in page and f"`{n.rpartition('.')[2]}`" not in page
    )
    assert not missing
    special = set(re.findall(r'"([a-z0-9_]+)": ', (HERE / "test_scipy_special.py").read_text()))
    missing = sorted(
        n for n in special if f"`special.{n}`" not in page and f"`stats.{n}`" not in page
    )
    assert not missing
