"""The options of the pytest plugin: they carry the project's name, since the plugin is loaded in
every project's run of pytest.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest_runs import run_pytest, run_suite

pytest.importorskip("multigrad_conformance")


# The options that projects give their own tests of array libraries.
CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--backend", default="none")
    parser.addoption("--samples", type=int, default=1)
    parser.addoption("--json", default="none")
    parser.addoption("--conformance-json", default="none")
"""

PROJECT = """
def test_options(request):
    option = request.config.getoption
    assert (option("--backend"), option("--samples"), option("--json"), option("--conformance-json")) == ("torch", 7, "a.json", "b.json")
    assert (option("--multigrad-backend"), option("--multigrad-samples"), option("--multigrad-json")) == ([], "short", None)
"""


def test_a_project_has_options_of_these_names_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_project.py").write_text(PROJECT)
    options = "--backend torch --samples 7 --json a.json --conformance-json b.json"
    done = run_pytest(tmp_path, *options.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.parametrize(
    "option", ["--backend", "--samples", "--json", "--conformance-json", "--multigrad-back"]
)
def test_no_other_name_is_taken(tmp_path: Path, option: str) -> None:
    """No short form either: pytest would otherwise give a project's `--backend` to the plugin."""
    done = run_pytest(tmp_path, option, "full")
    assert done.returncode == 4
    assert f"unrecognized arguments: {option}" in done.stderr


@pytest.mark.sweep
def test_a_certificate_that_exists_is_written_again(tmp_path: Path) -> None:
    """pytest takes its path for one of tests, moves its root there, and a conftest.py of the
    project is then one of the whole machine.
    """
    project, results = tmp_path / "project", tmp_path / "results"
    for folder in (project / "tests", results):
        folder.mkdir(parents=True)
    names = ("backend", "cell", "operation", "plan")
    (project / "tests" / "conftest.py").write_text(
        "import pytest\n"
        + "".join(
            "\n"
            f"@pytest.fixture(params=[1, 2], name={name!r})\n"
            f"def {name}_(request):\n"
            "    return request.param\n"
            for name in names
        )
    )
    (results / "old.json").write_text("{}")
    for option in (
        ("--multigrad-json", str(results / "old.json")),
        (f"--multigrad-json={results / 'old.json'}",),
    ):
        done = run_suite(project, "numpy", "-k", "numpy:tanh/vjp or saves", *option)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "numpy: 1 operations," in done.stdout and "(short samples)" in done.stdout
        written = json.loads((results / "old.json").read_text())
        assert written["samples"] == "short" and list(written["backends"]) == ["numpy"]
        assert written["backends"]["numpy"]["tests"]["tanh/vjp/real"] == ["passed"]
