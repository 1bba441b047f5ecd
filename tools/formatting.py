"""Formatting of generated Python code by `ruff format`, as for all other code."""

from __future__ import annotations

import subprocess
import sys


def formatted(text: str, path: str) -> str:
    """Return `text`, the code of the file at `path`, formatted by ruff."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", path, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
