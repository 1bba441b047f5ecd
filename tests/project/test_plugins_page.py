"""docs/plugins.md, its commands run one after the other from an empty folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from plugin_environments import ROOT, Environment

pytest.importorskip("multigrad_conformance")
pytest.importorskip("hatchling")

from multigrad_conformance import certificate

BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.M | re.S)
FAILS = "# status 1"


def script() -> str:
    """The blocks of the page: commands, and files, each named in its first line."""
    lines = ["set -eux"]
    for kind, text in BLOCK.findall((ROOT / "docs" / "plugins.md").read_text()):
        if kind == "python":
            first, _, content = text.partition("\n")
            lines += [f"cat > {first.removeprefix('# ')} <<'END OF FILE'", content + "END OF FILE"]
        else:
            for line in text.splitlines():
                lines.append(
                    f"if {line.removesuffix(FAILS)}; then exit 9; else test $? = 1; fi"
                    if line.endswith(FAILS)
                    else line
                )
    return "\n".join(lines)


@pytest.mark.sweep
def test_the_page_leads_from_an_empty_folder_to_a_certificate(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "environment")
    empty = tmp_path / "empty"
    empty.mkdir()
    done = environment.run("bash", "-c", script(), cwd=empty)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert sorted(p.name for p in empty.iterdir()) == ["multigrad-mylib", "multigrad-mymath"]
    folder = empty / "multigrad-mylib" / "certificate"
    assert sorted(p.name for p in folder.iterdir()) == [
        "conformance.html",
        "conformance.json",
        "conformance.md",
        "conformance.svg",
    ]
    results = certificate.read(folder / "conformance.json")
    assert certificate.verdict(results, "mylib")[0] == "conformant"
    before = json.loads((folder.parent / "before.json").read_text())["backends"]["mylib"]["tests"]
    assert before["linspace/forward/complex"][0] == "failed"
    assert (
        "  mylib linspace/forward: failed -> passed: complex\n" in done.stdout
        and "worse:" not in done.stdout
    )
    assert "mymath.energy" in done.stdout and (empty / "multigrad-mymath" / "mymath.html").is_file()


def test_the_failure_that_the_page_quotes_is_the_one_that_there_is() -> None:
    text = (ROOT / "docs" / "plugins.md").read_text()
    assert (
        "linspace/forward/complex: AssertionError: output 0: dtype float64, expected complex128"
        in text
    )
