"""`python -m precision.special [functions] [--backends ...]`: values and gradients on every backend
beside SciPy's; fail on what misses the bar.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import multigrad as mg

from ..__main__ import between_markers
from . import ALL, everywhere, page
from .everywhere import VALUE, Worst

BEGIN = "<!-- made by make test-special -->"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m precision.special", description=__doc__)
    parser.add_argument("functions", nargs="*", help="all, if none is named")
    parser.add_argument("--backends", default="numpy,strict,jax")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--write", type=Path, help="a file with markers, between which the table goes"
    )
    options = parser.parse_args()
    names = [f"special.{name.removeprefix('special.')}" for name in options.functions] or sorted(
        ALL
    )
    unknown = set(names) - set(ALL)
    if unknown:
        parser.error(f"there are no points for {', '.join(sorted(unknown))}")
    start = time.monotonic()
    work = partial(_measured, backends=tuple(options.backends.split(",")))
    with ProcessPoolExecutor(options.jobs) as pool:
        worst = []
        for rows in pool.map(work, names):
            worst += rows
            print(*(line(w, bar) for w, bar in rows), sep="\n", flush=True)
    missed = [(w, bar) for w, bar in worst if w.size is not None and not w.size <= bar]
    print(
        "\n"
        f"{len(names)} functions in {time.monotonic() - start:.0f} s, {len(missed)} beyond the "
        "bar"
    )
    print(*(line(w, bar) for w, bar in missed), sep="\n")
    if options.write:
        mg.namespace("numpy")
        between_markers(options.write, page.lines(w for w, _ in worst), BEGIN)
    return 1 if missed else 0


def _measured(name: str, backends: tuple[str, ...]) -> list[tuple[Worst, float]]:
    if "jax" in backends:
        import jax

        jax.config.update("jax_enable_x64", True)
    mg.namespace("numpy")
    try:
        return [(w, w.bar) for w in everywhere.measured(name, backends)]
    finally:
        if "jax" in backends:
            jax.clear_caches()  # what was compiled for one function, gigabytes for all of them


def line(w: Worst, bar: float) -> str:
    """A row of the table."""
    size = "refused" if w.size is None else f"{w.size:.1e}"
    beyond = "  BEYOND" if w.size is not None and not w.size <= bar else ""
    what = "" if w.what == VALUE else f"by {w.what}"
    return (
        f"{w.name:24} {w.backend:7} {np.dtype(w.dtype).name:11} {what:6} {size:>8} (bar "
        f"{bar:.1e}) at {w.where}{beyond}"
    )


if __name__ == "__main__":
    sys.exit(main())
