"""Without a library that is not needed at run time, the tests are still collected: what needs the
library is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

BLOCKER = """
import os, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == os.environ["BLOCKED_MODULE"]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


@pytest.mark.sweep
@pytest.mark.parametrize("library", ["jax", "scipy", "array_api_strict"])
def test_the_tests_are_collected_without(library: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            str(TESTS),
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
        ],
        cwd=TESTS.parent,
        env=os.environ | {"PYTHONPATH": path.rstrip(os.pathsep), "BLOCKED_MODULE": library},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if line.startswith(("ERROR", "E  "))]
    assert done.returncode == 0, "\n".join(errors) or done.stdout[-2000:] + done.stderr[-2000:]
