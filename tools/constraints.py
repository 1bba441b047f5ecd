"""Write constraints/: the exact versions of all packages that `make demo` and `make test` install.

    make constraints

There is one file per Python version. The command needs packaging and uv; uv resolves for Python
versions that this machine lacks. Each file holds for every platform. The file `oldest` is for `make
test-oldest`: on the first Python version, each package that a pyproject.toml names is at its lower
bound, and the others are at the newest version that fits.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "constraints"
EXTRAS = "jax,test,backends,docs"  # the extras that the Makefile installs
# the builds of PyTorch differ by index; the Makefile gives its version
ELSEWHERE = ("multigrad-torch",)
# hatchling requires it for an editable installation, which the Makefile makes
EDITABLES = "editables>=0.5"
HEADER = "# Written by `make constraints`.\n"
PIN = re.compile(r"([a-z0-9-]+)==([^ ;]+)( ; .*)?")
PLATFORMS = (
    {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
    {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
)


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())


def folders() -> list[Path]:
    """Return the folders of the distributions in this repository, the core first."""
    return [
        ROOT,
        *sorted(
            path.parent
            for path in [
                *ROOT.glob("plugins/*/pyproject.toml"),
                ROOT / "conformance" / "pyproject.toml",
            ]
        ),
    ]


def versions() -> list[str]:
    """Return the Python versions that the core declares."""
    matches = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", c)
        for c in project(ROOT)["project"]["classifiers"]
    )
    return [match[1] for match in matches if match]


def names() -> dict[str, tuple[str, bool]]:
    """Return the name of each file, with its Python version and whether it takes lower bounds."""
    every = versions()
    return {version: (version, False) for version in every} | {
        f"{every[0]}-oldest": (every[0], True)
    }


def requirements() -> str:
    """Return the requirements of everything that is installed, and of the builds."""
    editable = [
        f"-e {ROOT}[{EXTRAS}]",
        *(f"-e {folder}" for folder in folders()[1:] if folder.name not in ELSEWHERE),
    ]
    build = {r for folder in folders() for r in project(folder)["build-system"]["requires"]}
    return "\n".join([*editable, *sorted(build), EDITABLES, ""])


def pins(compiled: str, version: str) -> list[str]:
    """Return `name==version` of each line for that Python version on any platform.

    A constraint on a package that is not installed has no effect.
    """
    pinned: dict[str, str] = {}
    for line in compiled.splitlines():
        if line.startswith("-e ") or not line.strip():
            continue
        match = PIN.fullmatch(line)
        if match is None:
            sys.exit(f"uv wrote a line that is not name==version: {line}")
        marker = Requirement(line).marker  # uv resolves for later versions of Python as well
        if marker and not any(
            marker.evaluate(
                {"python_version": version, "python_full_version": f"{version}.0", **where}
            )
            for where in PLATFORMS
        ):
            continue
        if pinned.setdefault(match[1], match[2]) != match[2]:
            sys.exit(
                f"{match[1]} has two versions on Python {version}, {pinned[match[1]]} and "
                f"{match[2]}: no one file is right on every platform."
            )
    return [f"{name}=={number}" for name, number in sorted(pinned.items())]


def resolve(version: str, lowest: bool) -> str:
    """Return the text of the file for one Python version."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "requirements.in")
        wanted.write_text(requirements())
        words = [
            "pip",
            "compile",
            str(wanted),
            "--quiet",
            "--universal",
            "--fork-strategy",
            "fewest",
            "--python-version",
            version,
            "--no-python-downloads",
            "--no-header",
            "--no-annotate",
            "--no-emit-package",
            "multigrad-array",
            "--resolution",
            "lowest-direct" if lowest else "highest",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "uv", *words], cwd=folder, stdout=subprocess.PIPE, text=True
        )
    if done.returncode:
        sys.exit(f"uv found no versions for Python {version}; it says why above.")
    return HEADER + "\n".join(pins(done.stdout, version)) + "\n"


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    # resolve all of them before one is written
    texts = {name: resolve(*how) for name, how in names().items()}
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        path.unlink()
    for name, text in texts.items():
        (FOLDER / f"{name}.txt").write_text(text)
        print(f"constraints/{name}.txt: {text.count('==')} packages")


if __name__ == "__main__":
    main()
