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
FILES = ["test_calls_scipy*.py", "test_calls_sklearn.py", "test_scipy_*.py"]


@pytest.mark.sweep
@pytest.mark.parametrize("files", FILES)
def test_passes(files: str) -> None:
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
        *map(str, HERE.glob(files)),
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
