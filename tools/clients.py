"""Run other libraries' own tests over multigrad, for `make test-clients`.

    python tools/clients.py [--failed FOLDER] [PART...]

Each part is a run of pytest that loads a plugin of tools/clients. tools/clients/<part>.txt lists
the expected failures, each with its reason. All other tests must pass, and an expected failure that
passes is reported. `scipy` runs SciPy's tests of array libraries, which are installed with SciPy;
SHARDS are the modules that have such tests. `--failed` writes the failures of each shard into a
folder, in the form of those lists.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

PLUGINS = Path(__file__).parent / "clients"
PINNED = "1.17.1"
SHARDS = (
    "_lib",
    "cluster",
    "constants",
    "differentiate",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "spatial",
    "special",
    "stats",
)


def scipy(failed: Path | None) -> dict[str, int]:
    """Return the exit status of each shard of SciPy's tests, without SciPy's slow tests."""
    import scipy as installed

    if installed.__version__ != PINNED:
        print(
            "NOT RUN: SciPy's own tests, because the list of what fails is that of SciPy "
            f"{PINNED}, and {installed.__version__} is installed"
        )
        return {}
    settings = {
        "SCIPY_ARRAY_API": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": path_with(PLUGINS),
    }
    codes = {}
    for shard in SHARDS:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "scipy_backend",
            "-c",
            os.devnull,
            "--rootdir",
            ".",
            "--tb=short",
            "-rfE",
            "-W",
            "ignore",
            "--expected",
            str(PLUGINS / "scipy.txt"),
            "-m",
            "array_api_backends and not slow",
            "--pyargs",
            f"scipy.{shard}",
        ]
        if failed is not None:
            command += ["--failed", str(failed / f"scipy.{shard}.txt")]
        print(f"== scipy.{shard}: {shlex.join(command[1:])}", flush=True)
        # an empty directory, so that pytest finds no configuration above it
        with tempfile.TemporaryDirectory() as empty:
            codes[f"scipy.{shard}"] = subprocess.run(
                command, cwd=empty, env=os.environ | settings, check=False
            ).returncode
    return codes


def path_with(*folders: Path) -> str:
    """Return PYTHONPATH with folders before it."""
    return os.pathsep.join(
        [
            *(str(folder.resolve()) for folder in folders),
            *filter(None, [os.environ.get("PYTHONPATH")]),
        ]
    )


PARTS: dict[str, Callable[[Path | None], dict[str, int]]] = {"scipy": scipy}


def main() -> int:
    parser = argparse.ArgumentParser(description="Run other libraries' own tests over multigrad.")
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"default: {' '.join(PARTS)}")
    parser.add_argument("--failed", type=Path, help="a folder for lists of what failed")
    options = parser.parse_args()
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if options.failed is not None:
        options.failed.mkdir(parents=True, exist_ok=True)
        options.failed = options.failed.resolve()
    codes: dict[str, int] = {}
    for part in options.parts:
        codes |= PARTS[part](options.failed)
    for name, code in codes.items():
        print(f"{name}: {'passed' if code == 0 else 'FAILED'}")
    return int(any(codes.values()))


if __name__ == "__main__":
    sys.exit(main())
