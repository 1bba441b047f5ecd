"""Print the path of a Python interpreter for each minor version that multigrad supports.

Missing versions are reported on stderr. The candidates are `python3.N` on PATH, and the versions
that pyenv and uv have installed. A name may be a shim that does not run, and a system's Python may
lack venv, so each candidate is tried. `--oldest` restricts the list to the oldest version;
`--other` leaves out the version that runs this program.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TRIAL = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"


def candidates(version: str) -> Iterator[str]:
    """Yield the possible paths of an interpreter of that version, best first."""
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local/share/uv/python"))
    for folder in [
        *sorted(pyenv.glob(f"{version}.*"), reverse=True),
        *sorted(uv.glob(f"cpython-{version}.*"), reverse=True),
    ]:
        yield str(folder / "bin" / f"python{version}")


def runs(path: str, version: str) -> bool:
    """Return whether this interpreter has that version and can make virtual environments."""
    try:
        trial = subprocess.run([path, "-c", TRIAL], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0 and trial.stdout.strip() == version


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--oldest", action="store_true", help="look for the first version alone")
    parser.add_argument("--other", action="store_true", help="leave out the version that runs this")
    options = parser.parse_args()
    here = "{}.{}".format(*sys.version_info)
    printed = 0
    for version in VERSIONS[:1] if options.oldest else VERSIONS:
        if options.other and version == here:
            printed += 1
            continue
        path = next((p for p in candidates(version) if runs(p, version)), None)
        if path is None:
            print(f"NOT TESTED: Python {version} is not on this machine", file=sys.stderr)
        else:
            print(path)
            printed += 1
    return 0 if printed else 1


if __name__ == "__main__":
    sys.exit(main())
