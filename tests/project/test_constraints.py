"""The files of constraints/: what `make demo` and `make test` install, whatever is released
tomorrow.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tool_modules import tool

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "constraints"
FILES = sorted(FOLDER.glob("*.txt"), key=lambda p: p.stem)
FOLDERS = [
    ROOT,
    *(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")),
    ROOT / "conformance",
]
PROJECTS = [tomllib.loads((folder / "pyproject.toml").read_text()) for folder in FOLDERS]
OURS = {p["project"]["name"] for p in PROJECTS}
# whose plugins `make test` does not install
APART = re.findall(r"^APART := (.*)$", (ROOT / "Makefile").read_text(), re.M)[0].split()
EXTRAS = ("jax", "test", "backends", "docs")  # those that the Makefile installs
# the Makefile's copy of the file that it installed this environment from
PINS = Path(sys.prefix) / "constraints.txt"


def pins(path: Path) -> dict[str, Version]:
    """The version of each package in a file, whose every other line is a comment."""
    found: dict[str, Version] = {}
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r"([a-z0-9-]+)==([0-9a-z.]+)", line)
        assert match is not None, f"{path.name}: {line!r} is no name==version"
        assert match[1] not in found, f"{path.name} has {match[1]} twice"
        found[match[1]] = Version(match[2])
    return found


def direct(extras: tuple[str, ...] = EXTRAS) -> list[Requirement]:
    """What the distributions of the repository, and what builds them, ask for by name."""
    wanted: list[str] = []
    for project in PROJECTS:
        optional = project["project"].get("optional-dependencies", {})
        wanted += (
            project["build-system"]["requires"]
            + project["project"]["dependencies"]
            + [r for extra in extras for r in optional.get(extra, [])]
        )
    # whose version the Makefile names
    return [r for r in map(Requirement, wanted) if r.name not in OURS and r.name != "torch"]


def test_each_python_has_its_file_and_the_oldest_its_lower_bounds() -> None:
    project = PROJECTS[0]["project"]
    versions = [c.split(" :: ")[-1] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert project["requires-python"] == f">={versions[0]}"
    assert {path.stem for path in FILES} == {*versions, f"{versions[0]}-oldest"}
    tried = re.search(
        r"^VERSIONS = \((.*)\)$", (ROOT / "tools" / "interpreters.py").read_text(), re.M
    )
    assert tried is not None and re.findall(r'"(.*?)"', tried[1]) == versions


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_file_pins_what_pyproject_asks_for_and_names_no_index(path: Path) -> None:
    found = pins(path)
    for requirement in direct():
        assert found[canonicalize_name(requirement.name)] in requirement.specifier, (
            f"make constraints: {requirement}"
        )
    assert {"hatchling", "editables", "trove-classifiers"} <= found.keys(), (
        "what builds an editable installation"
    )
    foreign = {
        name
        for name in found
        if name in OURS or name.startswith(("torch", "cupy", "multigrad", "nvidia"))
    }
    assert not foreign, "our own, or gigabytes"


def test_lower_bounds_are_what_the_oldest_environment_has() -> None:
    """A bound that is lower than what can be installed beside the others is not true, and neither
    is one of two that differ.
    """
    found = pins(
        FOLDER / f"{PROJECTS[0]['project']['requires-python'].removeprefix('>=')}-oldest.txt"
    )
    untrue = []
    for requirement in direct((*EXTRAS, "viz")):
        (bound,) = requirement.specifier
        assert bound.operator == ">=", requirement
        taken = found.get(canonicalize_name(requirement.name))
        if taken is None:
            assert requirement.name == "graphviz", (
                "only what draws with a program that is no Python package may be left out"
            )
        elif taken != Version(bound.version):
            untrue.append(f"{requirement}, but {taken} is the first that can be installed")
    assert not untrue, "change the bounds, or make constraints"


def brought() -> dict[str, Version]:
    """What the installation of the repository has brought into this environment: its requirements,
    theirs, and so on.
    """
    found: dict[str, Version] = {}
    visits = [
        (name, extra)
        for name in OURS - {f"multigrad-{name}" for name in APART}
        for extra in ("", "jax", "test")
    ]
    seen = set(visits)
    while visits:
        name, extra = visits.pop()
        distribution = importlib.metadata.distribution(name)
        found[canonicalize_name(name)] = Version(distribution.version)
        for requirement in map(Requirement, distribution.requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                new = {
                    (canonicalize_name(requirement.name), e) for e in ("", *requirement.extras)
                } - seen
                seen |= new
                visits += new
    return {name: version for name, version in found.items() if name not in OURS}


def test_what_is_installed_is_what_the_file_says() -> None:
    if not PINS.is_file():
        pytest.skip("make has not installed this environment from a file of constraints/")
    names = [path for path in FILES if path.read_bytes() == PINS.read_bytes()]
    assert names, "constraints/ has changed since: make installs it anew"
    expected, installed = pins(PINS), brought()
    assert len(installed) > 30
    missing = installed.keys() - expected.keys()
    assert not missing, "make constraints"
    assert installed == {name: expected[name] for name in installed}


def test_of_versions_for_several_pythons_a_file_has_its_own() -> None:
    compiled = (
        "-e /somewhere\n"
        "b==2.0 ; python_full_version >= '3.12'\n"
        "b==1.0 ; python_full_version < '3.12'\n"
        "a==3 ; sys_platform == 'win32'\n"
    )
    assert tool("constraints").pins(compiled, "3.11") == ["a==3", "b==1.0"]
    assert tool("constraints").pins(compiled, "3.12") == ["a==3", "b==2.0"]


def test_what_no_file_can_say_is_an_error() -> None:
    compiled = "a==1 ; sys_platform == 'win32'\na==2 ; sys_platform != 'win32'\n"
    told = "a has two versions on Python 3.11, 1 and 2: no one file is right"
    with pytest.raises(SystemExit, match=re.escape(told)):
        tool("constraints").pins(compiled, "3.11")


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*words: str, path: Path) -> subprocess.CompletedProcess[str]:
    """As a user calls it: a make that runs these tests has put its variables into the
    environment.
    """
    clean = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")}
    return subprocess.run(
        ["make", *words],
        cwd=path,
        env=clean,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that the Makefile looks at."""
    folder = tmp_path / "copy"
    for path in [ROOT / "Makefile", ROOT / "pyproject.toml", *FILES]:
        (folder / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / path.relative_to(ROOT))
    return folder


@needs_make
def test_a_python_without_a_file_is_told_what_to_do(copy: Path) -> None:
    python = copy / "python3.99"  # only its version is asked for
    python.write_text("#!/bin/sh\necho 3.99\n")
    python.chmod(0o755)
    done = make("demo", f"PYTHON={python}", path=copy)
    assert done.returncode
    there = " ".join(path.stem for path in FILES)
    assert (
        f"No versions are pinned for Python 3.99: constraints/3.99.txt is not there, only "
        f"{there}." in done.stdout
    )
    assert (
        "Name another interpreter by PYTHON=..., or add DEPENDENCIES=latest, which takes the "
        "newest release of everything." in done.stdout
    )
    assert not (copy / ".venv").exists()


@needs_make
@pytest.mark.parametrize(
    ("dependencies", "file"),
    [("pinned", "3.11.txt"), ("oldest", "3.11-oldest.txt"), ("latest", "")],
)
def test_make_installs_from_the_file(dependencies: str, file: str, copy: Path) -> None:
    """Said to pip in both of its variables, for what it installs and for what builds that."""
    told = make(
        "demo",
        "-n",
        "VERSION=3.11",
        f"PYTHON={sys.executable}",
        f"DEPENDENCIES={dependencies}",
        path=copy,
    ).stdout
    (line,) = (line for line in told.splitlines() if "pip install" in line)
    assert ("PIP_CONSTRAINT=" in line, "PIP_BUILD_CONSTRAINT=" in line) == (bool(file), bool(file))
    if file:
        assert f"PIP_CONSTRAINT=constraints/{file} PIP_BUILD_CONSTRAINT=constraints/{file} " in line
    folder = ".venv/3.11" + ("" if dependencies == "pinned" else f"-{dependencies}")
    assert line.split(".venv/")[1].split("/")[0] == folder.removeprefix(".venv/")
