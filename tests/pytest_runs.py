"""A run of pytest in a folder of its own, with the plugin of multigrad-conformance."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import multigrad

ROOT = Path(multigrad.__file__).parents[1]


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
