"""The command line of a tool that writes files: with `--check` it compares them alone."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(
    description: str | None,
    texts: Callable[[], Mapping[Path, str]],
    arguments: list[str] | None = None,
) -> int:
    """Write the files that differ from their expected texts, and return the exit status.

    With `--check` no file is written, and the status is 1 if one differs.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write no file; status 1 if one differs"
    )
    check = parser.parse_args(arguments).check
    differing = {
        path: text
        for path, text in texts().items()
        if not path.is_file() or path.read_text() != text
    }
    for path, text in differing.items():
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        print(f"{name}: {'differs' if check else 'written'}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return int(check and bool(differing))
