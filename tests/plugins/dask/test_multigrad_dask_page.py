"""The page howto/out-of-core.md, in the environment that has Dask's plugin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "multigrad_dask",
    reason="multigrad-dask is not installed: docs/howto/out-of-core.md was not run",
)

ROOT = Path(__file__).resolve().parents[3]
RUN = (
    "import sys, pages; page = sys.argv[1]; print(*(output.text for output in "
    "pages.run(open(page).read(), page)))"
)


def test_the_page_runs() -> None:
    page = ROOT / "docs" / "howto" / "out-of-core.md"
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(page)],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    losses = [float(word) for word in done.stdout.split() if word.replace(".", "").isdigit()]
    assert len(losses) == 5 and losses[-1] < 0.01 * losses[0]
