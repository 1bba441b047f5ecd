"""Write the contents of release.toml into every file that repeats them: `python tools/release.py`.

They are the version of each distribution, the required version of the core for plugins and the
conformance suite, and the address of the repository if release.toml has one. Every distribution of
the repository has the same version. `--check` writes no file: it names the files that differ, and
exits with status 1 if there is one.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

VERSION = r'^version = "(.*)"$'
SERIES = r'"multigrad-array(>=[^"]*)"'
PINNED = r"`multigrad-array(>=[^`]*)`"
SPECIAL = r'"multigrad-special(>=[^"]*)"'
CITATION = r'^version: "(.*)"$'
MODULE = r'^__version__ = "(.*)"$'

# The repeated texts of each file; the group of a pattern is the part that a release changes.
PLACES: dict[str, tuple[str, ...]] = {
    "pyproject.toml": (VERSION,),
    "conformance/pyproject.toml": (VERSION, SERIES),
    "plugins/multigrad-autograd/pyproject.toml": (VERSION, SERIES, SPECIAL),
    "plugins/multigrad-dask/pyproject.toml": (VERSION, SERIES),
    "plugins/multigrad-mparray/pyproject.toml": (VERSION, SERIES),
    "plugins/multigrad-scipy/pyproject.toml": (VERSION, SERIES),
    "plugins/multigrad-special/pyproject.toml": (VERSION, SERIES),
    "plugins/multigrad-strict/pyproject.toml": (VERSION, SERIES),
    "plugins/multigrad-torch/pyproject.toml": (VERSION, SERIES),
    "plugins/multigrad-special/README.md": (SERIES,),
    "docs/policy.md": (PINNED,),
    "docs/extending.md": (PINNED,),
    "CITATION.cff": (CITATION,),
    "multigrad/__init__.py": (MODULE,),
    "conformance/multigrad_conformance/__init__.py": (MODULE,),
}
URLS = re.compile(r'^\[project\.urls\]\nRepository = ".*"\n\n', re.M)
AFTER_URLS = "[tool.hatch.build.targets.wheel]\n"


def series(version: str) -> str:
    """Return the version range that is compatible with this version.

    It is the series of the first number, or of the first two numbers while the first is 0.
    """
    major, minor, _ = map(int, version.split("."))
    return f">={major}.{minor},<{f'0.{minor + 1}' if major == 0 else major + 1}"


def replaced(text: str, pattern: str, value: str, name: str) -> str:
    """Return the text with `value` in place of the pattern's group, which must match once."""
    matches = list(re.finditer(pattern, text, re.M))
    if len(matches) != 1:
        sys.exit(
            f"{name}: {len(matches)} lines name the release as {pattern} does; 1 was expected. "
            "Mend the file, or PLACES in tools/release.py."
        )
    start, end = matches[0].span(1)
    return text[:start] + value + text[end:]


def rewritten(root: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield each file, its text, and its expected text."""
    release = tomllib.loads((root / "release.toml").read_text())
    version, repository = release["version"], release["repository"]
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"release.toml: version must be MAJOR.MINOR.PATCH, as 0.1.0; it is {version!r}.")
    for name, patterns in PLACES.items():
        text = before = (root / name).read_text()
        for pattern in patterns:
            text = replaced(
                text,
                pattern,
                series(version) if pattern in (SERIES, PINNED, SPECIAL) else version,
                name,
            )
        if name.endswith("pyproject.toml"):
            text = URLS.sub("", text)
            if repository:
                text = text.replace(
                    AFTER_URLS, f'[project.urls]\nRepository = "{repository}"\n\n{AFTER_URLS}'
                )
        yield root / name, before, text


def changes(root: Path) -> dict[Path, str]:
    """Return the files that differ from release.toml, with their expected text."""
    return {path: text for path, before, text in rewritten(root) if text != before}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write no file; status 1 if one differs"
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the repository (default: this one)"
    )
    options = parser.parse_args(arguments)
    differing = changes(options.root)
    for path, text in differing.items():
        print(f"{'differs' if options.check else 'written'}: {path.relative_to(options.root)}")
        if not options.check:
            path.write_text(text)
    return int(options.check and bool(differing))


if __name__ == "__main__":
    sys.exit(main())
