"""What `import multigrad` does not do: import an array library other than NumPy, read entry points,
or take long.

Each test runs in a process of its own, since this one has imported everything already.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

LIBRARIES = (
    "jax",
    "jaxlib",
    "cupy",
    "torch",
    "array_api_strict",
    "dask",
    "scipy",
    "array_api_compat.numpy",
    "array_api_compat.cupy",
)
LIMIT = 1.5


def run(code: str) -> str:
    # what is installed is compiled
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=kept,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "first", ["import multigrad", "import multigrad as mg; assert list(mg.backends())"]
)
def test_no_array_library_is_imported(first: str) -> None:
    loaded = run(f"{first}\nimport sys\nprint(*[m for m in {LIBRARIES!r} if m in sys.modules])")
    assert loaded == ""


def test_no_entry_point_is_read() -> None:
    code = """
import importlib.metadata as metadata
def refuse(*args, **kwargs):
    raise AssertionError("import multigrad read the installed distributions")
for name in ("entry_points", "distributions", "distribution", "version", "metadata", "files"):
    setattr(metadata, name, refuse)
metadata.Distribution.discover = metadata.Distribution.from_name = refuse
metadata.MetadataPathFinder.find_distributions = refuse
import multigrad
"""
    run(code)


def test_what_only_extensions_need_waits_until_it_is_asked_for() -> None:
    assert (
        run("import multigrad, sys; print('multigrad.extend' in sys.modules, multigrad.extend.API)")
        == "False 1"
    )
    assert run("from multigrad import extend; print(extend.API)") == "1"


def test_nothing_is_bound_before_the_first_use() -> None:
    code = (
        "import multigrad, sys; print(*[m for m in sys.modules if "
        "m.startswith('multigrad.backends.')])"
    )
    bound = {name.removeprefix("multigrad.backends.") for name in run(code).split()}
    assert not bound & {"numpy", "jax", "cupy"}


def seconds_of_import(module: str) -> float:
    return float(
        run(
            f"import time; start = time.process_time(); import {module}; "
            "print(time.process_time() - start)"
        )
    )


def test_import_takes_at_most_half_as_long_again_as_numpy() -> None:
    """Medians of interleaved runs; a disturbed machine gets more of them before the test gives
    up.
    """
    seconds_of_import("multigrad")  # byte-compiles
    ratios: list[float] = []
    for _ in range(4):
        for _ in range(7):
            numpy = seconds_of_import("numpy")
            ratios.append(seconds_of_import("multigrad") / numpy)
        if median(ratios) <= LIMIT:
            break
    assert median(ratios) <= LIMIT, (
        f"import multigrad takes {median(ratios):.2f} times as long as import numpy"
    )


def test_the_package_is_typed() -> None:
    folder = run("import multigrad; print(multigrad.__path__[0])")
    assert (Path(folder) / "py.typed").is_file()
