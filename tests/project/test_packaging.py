"""The distributions: what they declare, what their wheels say and hold, and the wheel of the core
in an empty environment.
"""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from tool_modules import tool

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = sorted(
    [
        ROOT / "pyproject.toml",
        *ROOT.glob("plugins/*/pyproject.toml"),
        *ROOT.glob("conformance/pyproject.toml"),
    ]
)
# what this environment was installed from, if make made it
PINS = Path(sys.prefix) / "constraints.txt"
EXTRAS = {"jax", "cupy", "cupy-cuda13", "viz", "nvtx", "test", "backends", "docs", "all"}


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def label(path: Path) -> str:
    return path.parent.name


def requirements(project: dict[str, Any]) -> list[str]:
    optional = project.get("optional-dependencies", {})
    return [*project.get("dependencies", []), *(r for group in optional.values() for r in group)]


@pytest.mark.parametrize("path", PROJECTS, ids=label)
def test_nothing_depends_on_the_unrelated_package_named_multigrad(path: Path) -> None:
    assert "multigrad" not in {Requirement(r).name for r in requirements(read(path)["project"])}


@pytest.mark.parametrize("path", PROJECTS, ids=label)
def test_every_distribution_is_free_software_for_the_same_interpreters(path: Path) -> None:
    project = read(path)["project"]
    assert project["requires-python"] == ">=3.11"
    assert project["license"] == "BSD-3-Clause"
    assert project["license-files"] == ["LICENSE"]
    assert (path.parent / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("path", PROJECTS, ids=label)
def test_every_package_says_that_it_is_typed_and_is_checked(path: Path) -> None:
    checked = read(ROOT / "pyproject.toml")["tool"]["mypy"]["files"]
    for package in packages(path):
        assert (package / "py.typed").is_file()
        assert package.relative_to(ROOT).as_posix() in checked


@pytest.mark.parametrize("path", PROJECTS, ids=label)
def test_what_needs_the_core_takes_the_releases_that_fit_it(path: Path) -> None:
    version = read(ROOT / "pyproject.toml")["project"]["version"]
    core = [
        r
        for r in map(Requirement, read(path)["project"]["dependencies"])
        if r.name == "multigrad-array"
    ]
    assert len(core) == (label(path) != ROOT.name)
    for requirement in core:
        assert version in requirement.specifier
        assert "0.0.9" not in requirement.specifier and "99.0.0" not in requirement.specifier, (
            "a release that it does not know"
        )


# -- releases: what several files repeat is written by one tool


def test_every_version_and_address_is_that_of_the_release() -> None:
    assert tool("release").changes(ROOT) == {}, "python tools/release.py"


def release_of(folder: Path, text: str) -> dict[Path, str]:
    """What the tool writes into a copy of the files that it knows, for that release.toml."""
    release = tool("release")
    for name in release.PLACES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((ROOT / name).read_text())
    (folder / "release.toml").write_text(text)
    release.main(["--root", str(folder)])
    assert release.changes(folder) == {}
    return {name: (folder / name).read_text() for name in release.PLACES}


@pytest.mark.parametrize(("version", "core"), [("0.2.1", ">=0.2,<0.3"), ("3.4.0", ">=3.4,<4")])
def test_a_release_is_written_into_every_file_that_names_it(
    version: str, core: str, tmp_path: Path
) -> None:
    written = release_of(
        tmp_path, f'version = "{version}"\nrepository = "https://example.org/somewhere"\n'
    )
    projects = {path.relative_to(ROOT).as_posix() for path in PROJECTS}
    assert projects <= set(map(str, written))
    for name, text in written.items():
        assert "0.1.0" not in text and "0.1,<0.2" not in text, name
    for name in projects:
        project = tomllib.loads(written[name])["project"]
        assert project["version"] == version
        assert project["urls"] == {"Repository": "https://example.org/somewhere"}
        requirements = [r for r in project["dependencies"] if r.startswith("multigrad-array")]
        assert set(requirements) <= {f"multigrad-array{core}"}
    back = release_of(tmp_path, (ROOT / "release.toml").read_text())
    assert all(text == (ROOT / name).read_text() for name, text in back.items()), (
        "an address that is taken back leaves a trace"
    )


def test_a_release_is_three_numbers(tmp_path: Path) -> None:
    with pytest.raises(
        SystemExit, match=r"release.toml: version must be MAJOR.MINOR.PATCH, as 0.1.0"
    ):
        release_of(tmp_path, 'version = "1.2"\nrepository = ""\n')


def test_no_address_of_the_project_stands_anywhere_but_in_the_release() -> None:
    repository = read(ROOT / "release.toml")["repository"]
    texts = [
        p for p in ROOT.rglob("*") if p.suffix in {".md", ".py", ".toml"} and ".venv" not in p.parts
    ]
    assert len(texts) > 200
    for path in texts:
        for address in re.findall(r"https?://[^\s)>\"']*multigrad[^\s)>\"']*", path.read_text()):
            assert repository and address.startswith(repository), f"{path}: {address}"


def test_the_source_distribution_has_every_file_of_the_repository() -> None:
    """Its tests read the workflows, the hooks and the pages. hatchling adds three files itself."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not listed:
        pytest.skip("this is no checkout")
    patterns = read(ROOT / "pyproject.toml")["tool"]["hatch"]["build"]["targets"]["sdist"][
        "include"
    ]
    shipped = [pattern.removeprefix("/") for pattern in patterns]
    shipped += ["LICENSE", "pyproject.toml", ".gitignore"]
    top = {name.partition("/")[0] for name in listed}
    assert not [name for name in top if not any(fnmatch(name, pattern) for pattern in shipped)]


def packages(path: Path) -> list[Path]:
    """The folders that a distribution ships."""
    return [
        path.parent / name
        for name in read(path)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    ]


def test_the_core_needs_three_packages() -> None:
    project = read(ROOT / "pyproject.toml")["project"]
    assert [re.split(r"[<>=!~ ]", r)[0] for r in project["dependencies"]] == [
        "numpy",
        "array-api-compat",
        "pluggy",
    ]
    assert set(project["optional-dependencies"]) == EXTRAS
    assert set(project["entry-points"]["multigrad"]) == {"numpy", "jax", "cupy"}


def test_the_changelog_knows_this_version() -> None:
    version = read(ROOT / "pyproject.toml")["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


TRIAL = """
import importlib.metadata, sys
from pathlib import Path
import numpy as np
import multigrad as mg

assert Path(mg.__file__).is_relative_to(sys.prefix), mg.__file__
assert (Path(mg.__file__).parent / "py.typed").is_file()
x = mg.asarray(np.asarray([0.5, 2.0]), requires_grad=True)
xp = x.__array_namespace__()
y = xp.sum(xp.sin(x) * x)
(g,) = mg.autograd.grad(y, x, create_graph=True)
expected = np.cos(x.array) * x.array + np.sin(x.array)
np.testing.assert_allclose(g.array, expected, rtol=1e-14)
g.sum().backward()
np.testing.assert_allclose(x.grad.array, 2 * np.cos(x.array) - x.array * np.sin(x.array), rtol=1e-14)
states = {b.name: b for b in mg.backends()}
assert {"numpy", "jax", "cupy"} <= set(states), states
try:
    mg.namespace("jax")
except RuntimeError as error:
    assert "jax" in str(error), error
else:
    raise AssertionError("jax is not installed here")
print(importlib.metadata.version("multigrad-array"))
"""


def command(*words: object, cwd: Path) -> str:
    """Run it as a user would, with nothing of this process's environment that could lend it a
    package.
    """
    clean = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("PYTHON", "VIRTUAL_ENV", "MULTIGRAD"))
    }
    if PINS.is_file():
        clean |= {"PIP_CONSTRAINT": PINS.as_uri(), "PIP_BUILD_CONSTRAINT": PINS.as_uri()}
    done = subprocess.run(
        [str(w) for w in words],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The built wheel of each distribution, by the name of its folder."""
    folder = tmp_path_factory.mktemp("wheels")
    command(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        folder,
        *(p.parent for p in PROJECTS),
        cwd=folder,
    )
    built = {path.name.split("-")[0].replace("_", "-"): path for path in folder.glob("*.whl")}
    return {label(path): built[read(path)["project"]["name"]] for path in PROJECTS}


def content(wheel: Path, suffix: str) -> bytes:
    """The one file of the wheel whose name ends so."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(suffix))
        return archive.read(name)


def metadata(wheel: Path) -> Message:
    return email.message_from_bytes(content(wheel, ".dist-info/METADATA"))


PLATFORMS = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}


def chosen(requirements: list[str], extra: str, platform: str) -> list[Requirement]:
    """What an installer takes of them, for an extra ("" for none) on that platform."""
    where = {"extra": extra, "platform_system": platform, "sys_platform": PLATFORMS[platform]}
    return [
        r for r in map(Requirement, requirements) if r.marker is None or r.marker.evaluate(where)
    ]


@pytest.mark.network
def test_the_extra_all_is_for_every_platform(wheels: dict[str, Path]) -> None:
    needs = metadata(wheels[ROOT.name]).get_all("Requires-Dist", [])
    for platform in PLATFORMS:
        names = {r.name for r in chosen(needs, "all", platform)} - {
            r.name for r in chosen(needs, "", platform)
        }
        assert names == {"jax", "graphviz", "matplotlib", "nvtx"}


@pytest.mark.network
@pytest.mark.parametrize("path", PROJECTS, ids=label)
def test_the_wheel_holds_the_package_and_nothing_else(path: Path, wheels: dict[str, Path]) -> None:
    wheel = wheels[label(path)]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    (package,) = packages(path)
    assert {name.split("/")[0].split("-")[0] for name in names} == {
        package.name,
        read(path)["project"]["name"].replace("-", "_"),
    }
    kept = {
        p.relative_to(package.parent).as_posix()
        for p in package.rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert kept <= set(names), "the wheel lacks modules, or files that they read"
    assert (
        package.name != "multigrad"
        or "multigrad/templates/backend/pyproject.toml.template" in names
    )
    assert f"{package.name}/py.typed" in names
    project, told = read(path)["project"], metadata(wheel)
    assert (told["Name"], told["Version"]) == (project["name"], project["version"])
    assert told["License-Expression"] == "BSD-3-Clause"
    assert content(wheel, ".dist-info/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


@pytest.mark.network
def test_the_wheel_works_in_an_empty_environment(wheels: dict[str, Path], tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    command(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    command(python, "-m", "pip", "install", "--quiet", wheels[ROOT.name], cwd=tmp_path)
    version = read(ROOT / "pyproject.toml")["project"]["version"]
    assert command(python, "-c", TRIAL, cwd=tmp_path) == version
    for words in ([python, "-m", "multigrad"], [python.parent / "multigrad"]):
        listing = command(*words, "backends", cwd=tmp_path)
        assert "numpy" in listing and "cupy" in listing


EVERY_NAME = """
import importlib, types
import multigrad as mg

def names(where, module):
    listed = getattr(module, "__all__", None) if isinstance(module, types.ModuleType) else None
    if module is mg:
        listed = None  # `__all__` has the names that are no operations
    return [f"{where}.{n}" for n in listed or dir(module) if not n.startswith("_")]

t, xp = mg.ones(3), mg.namespace("numpy")
print("import multigrad as mg", "t, xp = mg.ones(3), mg.namespace('numpy')", sep="\\n")
for where in (
    "mg mg.linalg mg.fft mg.func mg.autograd mg.autograd.functional mg.autograd.forward_ad "
    "mg.autograd.graph mg.autograd.profiler mg.extend mg.registry xp xp.linalg xp.fft t"
).split():
    print("\\n".join(names(where, eval(where))))
for name in ("multigrad_autograd", "multigrad_autograd.numpy", "multigrad_scipy"):
    print(f"import {name}", *names(name, importlib.import_module(name)), sep="\\n")
"""
"""Writes a program that uses every public name of the installed distributions."""

UNTYPED = {"mg.special", "xp.special", "t.volatile"}
"""Names that type checkers do not know.

The prefix of a plugin has a module of its own (`multigrad_special.functions`), and `volatile` is
there to raise.
"""


@pytest.mark.network
def test_type_checkers_know_every_name_of_installed_wheels(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    """Type checkers hold an installed package to rules that they do not hold a checkout to."""
    python = tmp_path / "venv" / "bin" / "python"
    command(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    plugins = [wheels[f"multigrad-{name}"] for name in ("autograd", "scipy", "special")]
    command(python, "-m", "pip", "install", "--quiet", wheels[ROOT.name], *plugins, cwd=tmp_path)
    for program in (ROOT / "tests" / "typing" / "programs").glob("*.py"):
        (tmp_path / program.name).write_bytes(program.read_bytes())
    every = command(python, "-c", EVERY_NAME, cwd=tmp_path).split("\n")
    wanted = {"mg.sin", "mg.linalg.svd", "mg.zeros", "mg.float64", "t.sum", "xp.fft.fft"}
    assert wanted | {"mg.errors"} < {*every}
    (tmp_path / "every_name.py").write_text("\n".join(n for n in every if n not in UNTYPED))
    (tmp_path / "pyrightconfig.json").write_text(
        '{"include": ["*.py"], "reportUnnecessaryTypeIgnoreComment": "error", '
        '"reportUnusedExpression": "none"}'
    )
    programs = sorted(tmp_path.glob("*.py"))
    checked = command(sys.executable, "-m", "pyright", "--pythonpath", python, cwd=tmp_path)
    assert checked.startswith("0 errors, 0 warnings")
    mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable", python)
    command(*mypy, *programs, cwd=tmp_path)
