"""Format generated Python code as `ruff format` formats the code that people write."""

from __future__ import annotations

import subprocess
import sys


def formatted(text: str, path: str) -> str:
    """Return `text`, the code of the file at `path`, as ruff lays it out."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", path, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
