"""Environments to install plugins into that a test has written: what is installed here is in them,
and pip asks no index.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import multigrad

ROOT = Path(multigrad.__file__).parents[1]
PIP = """#!/bin/sh
command=$1; shift
exec "{python}" -m pip --python "{environment}/bin/python" --disable-pip-version-check "$command" --quiet --no-deps --no-build-isolation "$@"
"""


class Environment:
    """A virtual environment on top of this one, for one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=300
        )
        (packages,) = folder.glob("lib/python*/site-packages")
        here = sysconfig.get_paths()["purelib"]
        (packages / "_here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
        pip = folder / "bin" / "pip"
        pip.write_text(PIP.format(python=sys.executable, environment=folder))
        pip.chmod(0o755)

    def run(self, *command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the environment's Python first on the path."""
        path = os.pathsep.join(
            [str(ROOT), str(ROOT / "conformance"), os.environ.get("PYTHONPATH", "")]
        )
        changed = {
            "PATH": os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]]),
            "PYTHONPATH": path,
            "MYPYPATH": os.pathsep.join([str(ROOT), str(ROOT / "conformance")]),
        }
        return subprocess.run(
            command,
            cwd=cwd,
            env=os.environ | changed | variables,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
