"""Run data-apis/array-api-tests, the standard's own test suite, on the namespaces of multigrad.

`make test-standard` runs this command.

    python tools/standard.py [--examples N] [--bare] [numpy strict jax]

The suite is not a package: the environment variable ARRAY_API_TESTS names a checkout of it. Without
a checkout no test runs; a message says so, and the status is 0. tools/standard/<backend>.txt lists
the expected failures, each with its reason; all other tests must pass. --bare runs the libraries
themselves, to show which tests they fail without multigrad.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

LISTS = Path(__file__).parent / "standard"
BARE = {"numpy": "array_api_compat.numpy", "strict": "array_api_strict", "jax": "jax.numpy"}
EXAMPLES = {"numpy": 20, "strict": 20, "jax": 5}  # JAX compiles most of them: minutes
REPOSITORY = "https://github.com/data-apis/array-api-tests"
HOW = f"""NOT RUN: the standard's own tests (array-api-tests), because ARRAY_API_TESTS names no
checkout of them. To run them:
    git clone --recursive {REPOSITORY}
    make test-standard ARRAY_API_TESTS=$PWD/array-api-tests"""


def missing(checkout: Path) -> str:
    """Return what the checkout or the environment lacks, or an empty string."""
    if not (checkout / "array_api_tests" / "__init__.py").is_file():
        return f"{checkout} is not a checkout of array-api-tests"
    if not (checkout / "array-api" / "src").is_dir():
        return f"{checkout} lacks the specification: git -C {checkout} submodule update --init"
    absent = [
        name
        for name in ("hypothesis", "ndindex", "pytest", "pytest_jsonreport")
        if find_spec(name) is None
    ]
    return (
        f"the suite needs {', '.join(absent)}: pip install -r {checkout}/requirements.txt"
        if absent
        else ""
    )


def run(checkout: Path, backend: str, examples: int | None, bare: bool) -> int:
    module = (
        BARE[backend]
        if bare
        else f"""exec('import multigrad; xp = multigrad.namespace("{backend}")')"""
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        "-rfE",
        "array_api_tests/",
        "--derandomize",
        "--disable-deadline",
        "--max-examples",
        str(examples or EXAMPLES[backend]),
    ]
    if not bare:
        command += ["--xfails-file", str(LISTS / f"{backend}.txt")]
    settings = {
        "ARRAY_API_TESTS_MODULE": module,
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cpu",
        "OPENBLAS_NUM_THREADS": "1",
    }
    print(
        f"== array-api-tests: {'the bare library of ' if bare else ''}{backend}: "
        f"{shlex.join(command[1:])}",
        flush=True,
    )
    return subprocess.run(command, cwd=checkout, env=os.environ | settings, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Run array-api-tests on the namespaces of multigrad."
    )
    parser.add_argument(
        "backends", nargs="*", default=list(BARE), help=f"default: {' '.join(BARE)}"
    )
    parser.add_argument("--examples", type=int, help=f"examples for each test; default: {EXAMPLES}")
    parser.add_argument("--bare", action="store_true", help="run the libraries without multigrad")
    options = parser.parse_args()
    place = os.environ.get("ARRAY_API_TESTS")
    if not place:
        print(HOW)
        return 0
    checkout = Path(place).expanduser().resolve()
    lack = missing(checkout)
    if lack:
        print(f"array-api-tests cannot run: {lack}")
        return 1
    codes = {
        backend: run(checkout, backend, options.examples, options.bare)
        for backend in options.backends
    }
    for backend, code in codes.items():
        print(f"{backend}: {'passed' if code == 0 else 'FAILED'}")
    return int(any(codes.values()))


if __name__ == "__main__":
    sys.exit(main())
