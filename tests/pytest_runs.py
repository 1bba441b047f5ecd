"""A run of pytest in a folder of its own, with the plugin of multigrad-conformance; a run of the
Python blocks of a page.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import multigrad

ROOT = Path(multigrad.__file__).parents[1]


def run_page(page: Path, folder: Path, least: int) -> None:
    """Run the Python blocks of a page, of which there are some, as one program."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    assert len(blocks) >= least
    program = folder / "guide.py"
    program.write_text("\n".join(blocks))
    command = [sys.executable, "-W", "error", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def run_pytest(
    folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "conformance"), os.environ.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "multigrad_conformance.plugin",
        *arguments,
    ]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )


def run_suite(
    folder: Path, backend: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A run of the conformance suite on a backend, maybe one of a plugin that lies in the folder."""
    suite = ("--pyargs", "multigrad_conformance", "--multigrad-backend", backend)
    return run_pytest(folder, *suite, *arguments, **environment)
