"""`python -m precision [operations] [--write FILE]`: sweep, print the table, write it between the
markers of a file, fail on a bug.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import scipy

from . import sweep
from .exceptions import EXCUSED

BEGIN, END = "<!-- made by make test-precision -->", "<!-- end -->"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m precision", description=__doc__)
    parser.add_argument("operations", nargs="*", help="all, if none is named")
    parser.add_argument(
        "--write", type=Path, help="a file with markers, between which the table goes"
    )
    parser.add_argument("--jobs", type=int, help="processes; as many as there are cores")
    options = parser.parse_args()
    unknown = set(options.operations) - set(sweep.operations())
    if unknown:
        parser.error(f"no differentiable operation is called {', '.join(sorted(unknown))}")
    start = time.monotonic()
    errors: dict[str, Any] = {}
    for name, found in sweep.swept(options.operations or sweep.operations(), options.jobs):
        errors[name] = found
        print(f"\r{len(errors)} operations", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    rows = [row for name in sorted(errors) for row in sweep.row(name, errors[name])]
    print(*table(rows), sep="\n")
    if options.write:
        write(options.write, rows)
    bad = sweep.complaints(e for found in errors.values() for e in found)
    print(f"\n{len(errors)} operations in {time.monotonic() - start:.0f} s, {len(bad)} complaints")
    print(*bad, sep="\n")
    return 1 if bad else 0


def cells(row: dict[str, Any]) -> list[str]:
    """A row of the table as text."""
    return [
        row["operation"],
        row["arguments"],
        *(number(row[c]) for c in ("gradient", "jvp", "second")),
        row["where"],
        "excused" if row["excused"] else "",
    ]


def number(x: float | None) -> str:
    """Two digits; what is far below a rounding is none."""
    return (
        ""
        if x is None
        else "0"
        if x < 0.01
        else f"{x:.1f}"
        if x < 10
        else f"{x:.0f}"
        if x < 1e4
        else f"{x:.1e}"
    )


HEAD = ["operation", "arguments", "gradient", "jvp", "second", "worst at", ""]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The table in Markdown."""
    lines = [HEAD, ["---", "---", "---:", "---:", "---:", "---", "---"], *map(cells, rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Put the table into the file, between its markers."""
    excused = (
        f"- {name}, {kind}: {e.reason} (at most {e.absolute:g} epsilon)."
        for (name, kind), e in EXCUSED.items()
    )
    taken = (
        f"Taken with python {platform.python_version()}, numpy {np.__version__}, scipy "
        f"{scipy.__version__}, mpmath {mpmath.__version__}."
    )
    between_markers(path, [*table(rows), "", "Excused:", "", *excused, "", taken])


def between_markers(path: Path, lines: list[str], begin: str = BEGIN) -> None:
    """Replace what stands between two lines of the file."""
    text = path.read_text()
    before, _, rest = text.partition(begin)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"{path} lacks the markers {begin} and {END}")
    path.write_text("\n".join([before + begin, "", *lines, "", END + after]))


if __name__ == "__main__":
    sys.exit(main())
