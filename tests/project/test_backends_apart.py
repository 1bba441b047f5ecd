"""The Makefile's environments: which plugins `make test` installs, and which `make test-backends`
does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
APART = re.findall(r"^APART := (.*)$", MAKEFILE, re.M)[0].split()
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def planned(*words: str) -> str:
    """What make would run for these targets, from nothing."""
    clean = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")}
    done = subprocess.run(
        ["make", "-n", "-B", "VERSION=3.11", f"PYTHON={sys.executable}", *words],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout


def installed(text: str) -> list[str]:
    """The command lines that install something."""
    return [line for line in text.splitlines() if "pip install" in line]


def test_make_test_installs_no_plugin_whose_library_is_apart() -> None:
    (line,) = installed(planned("types"))
    there = {
        path.parent.name.removeprefix("multigrad-")
        for path in ROOT.glob("plugins/*/pyproject.toml")
    }
    assert {"autograd", "scipy", "special", "strict"} == there - set(APART)
    for name in there:
        assert (f"-e plugins/multigrad-{name}" in line) == (name not in APART), name
    assert "torch" not in line


def test_the_backends_have_an_environment_of_their_own() -> None:
    text = planned("test-torch", "test-dask")
    lines = installed(text)
    (core,), (wheel,), (base,) = (
        [line for line in lines if part in line]
        for part in ('".[jax,test]"', "--target", '".[backends]"')
    )
    plugins = [line for line in lines if line not in (core, wheel, base)]
    assert (
        core.split(".venv/")[1].startswith("3.11/bin/python ")
        and "3.11-backends/bin/python" in base
    )
    assert "torch==2.13.0" in wheel and '--target ".venv/3.11/torch"' in wheel
    assert (
        '-e ".[backends]" -e conformance' in base and "PIP_CONSTRAINT=constraints/3.11.txt" in base
    )
    assert sorted(re.findall(r"-e plugins/multigrad-(\w+)", " ".join(plugins))) == ["dask", "torch"]
    assert text.count("pip install --quiet --upgrade --target") == 1
    for name in ("torch", "dask"):
        assert (
            f"--multigrad-backend {name} --multigrad-samples short" in text
            and f"tests/plugins/{name} " in text
        )


@pytest.mark.parametrize("name", ["dask", "mparray", "torch"])
def test_a_certificate_is_of_the_full_level(name: str) -> None:
    """Every test of the level has a result, but for special functions, and none has failed."""
    folder = ROOT / "plugins" / f"multigrad-{name}"
    found = json.loads((folder / "conformance.json").read_text())
    assert found["samples"] == "full" and not found["problems"]
    failed = [i for i, outcome in found["backends"][name]["tests"].items() if "failed" in outcome]
    assert not failed
    assert all(i.startswith("special.") for i in found["backends"][name]["not run"])
    assert "full samples" in (folder / "conformance.md").read_text()
