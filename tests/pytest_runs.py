"""A run of pytest in a folder of its own, with the plugin of multigrad-conformance."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import multigrad

ROOT = Path(multigrad.__file__).parents[1]


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
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
        timeout=300,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
    )
