"""Texts of reports: aligned columns, counts and sizes."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(lines: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return lines with the cells of each column aligned, without trailing spaces.

    right  the columns that are aligned to the right
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def counted(n: int, one: str, many: str = "") -> str:
    """Format a number with its noun: `1 leaf`, `2,000 leaves`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def size(n: float) -> str:
    """Format a number of bytes with a unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(n) < 1024 or unit == "GiB":
            return f"{n:,.1f}".removesuffix(".0") + f" {unit}"
        n /= 1024
    raise AssertionError
