"""The distributions: what they declare, and the built wheel in an empty environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECTS = sorted([ROOT / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml"), *ROOT.glob("conformance/pyproject.toml")])
EXTRAS = {"jax", "cupy", "cupy-cuda13", "viz", "nvtx", "test", "all"}


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def label(path: Path) -> str:
    return path.parent.name


def requirements(project: dict[str, Any]) -> list[str]:
    optional = project.get("optional-dependencies", {})
    return [*project.get("dependencies", []), *(r for group in optional.values() for r in group)]


def test_every_distribution_of_the_repository_is_looked_at() -> None:
    names = {read(path)["project"]["name"] for path in PROJECTS}
    assert {"multigrad-array", "multigrad-conformance", "multigrad-strict", "multigrad-special"} <= names


@pytest.mark.parametrize("path", PROJECTS, ids=label)
def test_nothing_depends_on_the_unrelated_package_named_multigrad(path: Path) -> None:
    for requirement in requirements(read(path)["project"]):
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        assert name is not None and name.group().lower() != "multigrad", requirement


@pytest.mark.parametrize("path", PROJECTS, ids=label)
def test_every_distribution_is_free_software_for_the_same_interpreters(path: Path) -> None:
    project = read(path)["project"]
    assert project["requires-python"] == ">=3.11"
    assert project["license"] == "BSD-3-Clause"


def test_the_core_needs_three_packages() -> None:
    project = read(ROOT / "pyproject.toml")["project"]
    assert [re.split(r"[<>=!~ ]", r)[0] for r in project["dependencies"]] == ["numpy", "array-api-compat", "pluggy"]
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
    """Run it as a user would, with nothing of this process's environment that could lend it a package."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "MULTIGRAD"))}
    done = subprocess.run([str(w) for w in words], cwd=cwd, env=clean, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.network
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"multigrad", "multigrad_array"}
    assert "multigrad/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    packed = {name for name in names if name.startswith("multigrad/")}
    kept = {p.relative_to(ROOT).as_posix() for p in (ROOT / "multigrad").rglob("*.py")}
    assert kept <= packed, "the wheel lacks modules"


@pytest.mark.network
def test_the_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    command(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    command(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    version = read(ROOT / "pyproject.toml")["project"]["version"]
    assert command(python, "-c", TRIAL, cwd=tmp_path) == version
    for words in ([python, "-m", "multigrad"], [python.parent / "multigrad"]):
        listing = command(*words, "backends", cwd=tmp_path)
        assert "numpy" in listing and "cupy" in listing
