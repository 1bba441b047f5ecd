"""What others need to join: the workflows, the templates, the citation and CONTRIBUTING.md agree
with the project's files.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
YAML = [
    *WORKFLOWS,
    *sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")),
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
]
TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / ".github" / "pull_request_template.md",
    ROOT / "docs" / "policy.md",
    *YAML,
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


def pythons() -> list[str]:
    return [
        c.split(" :: ")[-1]
        for c in PROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", c)
    ]


@pytest.mark.parametrize("path", YAML, ids=lambda p: p.name)
def test_each_file_is_yaml(path: Path) -> None:
    assert load(path)


def test_the_tests_run_on_every_system_and_python() -> None:
    matrix = load(ROOT / ".github" / "workflows" / "test.yml")["jobs"]["python"]["strategy"][
        "matrix"
    ]
    assert matrix["python"] == pythons()
    systems = [system.split("-")[0] for system in matrix["os"]]
    assert systems == ["ubuntu", "macos", "windows"]


def test_a_release_is_published_by_trust_and_after_its_wheels_were_tested() -> None:
    jobs = load(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert jobs["wheel"]["needs"] == "build" and jobs["publish"]["needs"] == "wheel"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets" not in (ROOT / ".github" / "workflows" / "release.yml").read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_a_workflow_reads_unless_it_publishes(path: Path) -> None:
    assert load(path)["permissions"] == {"contents": "read"}


def test_what_is_installed_is_there() -> None:
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    for folder in re.findall(r"-e ((?:conformance|plugins/)[\w/-]*)", text):
        assert (ROOT / folder / "pyproject.toml").is_file(), folder
    for extra in re.findall(r'-e "\.\[([\w,]+)\]"', text):
        assert set(extra.split(",")) <= PROJECT["project"]["optional-dependencies"].keys()


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.name)
def test_every_command_of_make_exists(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)) | {"types"}
    for words in re.findall(
        r"(?:`|^ {4}|entry: |run: )make ((?:[a-z][\w-]*[ `,\n])+)", path.read_text() + "\n", re.M
    ):
        assert set(re.findall(r"[a-z][\w-]*", words)) <= targets, words


def test_every_target_is_told() -> None:
    phony = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[0].split()
    # of `make test`, or what needs no word
    parts = {"help", "tests", "clean", "numpy", "strict", "jax", "jax-float32", "conformance"}
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert not [
        target
        for target in phony
        if target not in parts and not re.search(rf"`make {target}[`;]| {target} ", text)
    ]


def test_help_has_a_line_for_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.findall(r"^\.PHONY: (.*)$", makefile, re.M)[0].split())
    comment = makefile.partition("#   make ")[2].partition("\n#\n")[0].splitlines()
    told = {line.removeprefix("#   make ").split()[0] for line in comment}
    assert len(told) == len(comment), "`make help` prints the lines that begin with `make`"
    assert told == phony - {"help", "numpy", "strict", "jax", "jax-float32"}


def test_the_citation_names_this_version_and_invents_nothing() -> None:
    citation = load(ROOT / "CITATION.cff")
    assert (
        citation["version"] == PROJECT["project"]["version"]
        and citation["license"] == PROJECT["project"]["license"]
    )
    assert citation["authors"] == [
        {"name": author["name"]} for author in PROJECT["project"]["authors"]
    ]
    assert not re.findall(r"https?://|@|doi|orcid", (ROOT / "CITATION.cff").read_text())


def test_the_policy_names_the_lower_bounds_that_hold() -> None:
    text = " ".join((ROOT / "docs" / "policy.md").read_text().split())
    (numpy,) = (r for r in PROJECT["project"]["dependencies"] if r.startswith("numpy"))
    assert f"For NumPy the lower bound is {numpy.removeprefix('numpy>=')}" in text
    scipy = {
        bound
        for path in ROOT.glob("plugins/*/pyproject.toml")
        for bound in re.findall(r'"scipy>=([^"]*)"', path.read_text())
    }
    assert all(
        f"For SciPy, which only plugins require, the lower bound is {x}:" in text for x in scipy
    )
    assert len(scipy) == 1


def test_the_policy_removes_no_name_before_two_minor_versions() -> None:
    text = (ROOT / "docs" / "policy.md").read_text()
    stays = re.findall(
        r"0\.(\d+)[^.]* may\s+remove\s+(?:a name|names) that 0\.(\d+) deprecated", text
    )
    assert len(stays) == 2 and all(int(gone) - int(old) == 2 for gone, old in stays)


def test_the_page_of_the_tests_lists_their_helpers_and_names_are_unique() -> None:
    tests = ROOT / "tests"
    table = (
        (tests / "README.md").read_text().partition("## Helper modules")[2].partition("\n## ")[0]
    )
    listed = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert sorted(listed) == sorted(path.stem for path in tests.glob("*.py"))
    names = [
        path.name
        for path in tests.rglob("*.py")
        if path.name not in ("conftest.py", "__init__.py", "__main__.py")
    ]
    assert sorted(names) == sorted(set(names))
