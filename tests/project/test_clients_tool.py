"""The lists of other libraries' tests that are expected to fail: each has a reason, and none is
there twice. `make test-clients` runs the tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTS = sorted((ROOT / "tools" / "clients").glob("*.txt"))


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_failure_has_a_reason(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    assert lines and lines[0].startswith("# ")
    names = [line for line in lines if not line.startswith("#")]
    assert len(set(names)) == len(names)
    for line, after in zip(lines, [*lines[1:], "#"], strict=True):
        assert not line.startswith("#") or (len(line) > 20 and not after.startswith("#")), (
            f"a reason without a test: {line}"
        )


def test_an_unknown_part_is_named() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "clients.py"), "nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "there is no part nothing; there are" in done.stderr
