"""The command line: listings, and the conformance suite with its report."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import cli

REPOSITORY = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(
        [str(REPOSITORY), str(REPOSITORY / "conformance"), os.environ.get("PYTHONPATH", "")]
    ),
}
LIBRARIES = "{'numpy', 'jax', 'cupy', 'torch', 'array_api_strict', 'array_api_compat', 'scipy'}"


def run(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "multigrad"]
    return subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
        timeout=300,
    )


def test_backends_imports_no_library() -> None:
    found = run(
        code="import sys; from multigrad.cli import main; main(['backends']); "
        f"sys.exit(str({LIBRARIES} & set(sys.modules) or ''))"
    )
    assert found.returncode in (0, 1) and not found.stderr.strip(), found.stderr
    lines = found.stdout.splitlines()
    assert lines[0].split() == ["backend", "state", "library", "comes", "with"]
    assert any(line.startswith("numpy ") and "available" in line for line in lines)


def test_backends_probe_tells_devices_and_dtypes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["backends", "--probe"]) == 0
    out = capsys.readouterr().out
    assert "numpy: devices cpu" in out and "complex128" in out


def test_backends_tells_what_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from multigrad.plugins import installed, listing

    broken = listing.BackendInfo(
        "shady",
        "multigrad-shady",
        "0.1",
        "broken",
        "ImportError: no shade",
        traceback="Traceback ...",
    )
    monkeypatch.setattr(listing, "listing", lambda probe: [broken])
    monkeypatch.setattr(
        installed,
        "foreign_distribution",
        lambda: "the unrelated PyPI package 'multigrad' is installed",
    )
    assert cli.main(["backends", "--traceback"]) == 0
    out = capsys.readouterr().out
    assert "warning: the unrelated PyPI package" in out
    assert "shady: ImportError: no shade\nTraceback ..." in out


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "atan2",
            "elementwise atan2(x1, x2, /) elementwise x1: x1, x2; x2: x1, x2 vjp jvp "
            "multigrad.ops.elementwise",
        ),
        (
            "divide",
            "elementwise divide(x1, x2, /) elementwise x1: x2; x2: x1, x2 vjp jvp numpy "
            "multigrad.ops.elementwise",
        ),
        (
            "roll",
            "manipulation roll(x, /, shift, *, axis=None) linear x: - vjp jvp "
            "multigrad.ops.manipulation",
        ),
        ("unique_values", "set unique_values(x, /) composite x by its parts multigrad.ops.set"),
    ],
)
def test_ops_tells_what_is_kept_and_where_it_is_overridden(
    capsys: pytest.CaptureFixture[str], name: str, line: str
) -> None:
    assert cli.main(["ops", name]) == 0
    found = [row for row in capsys.readouterr().out.splitlines() if f" {name}(" in row]
    assert [row.split() for row in found] == [line.split()]


def test_ops_of_an_unknown_chapter(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ops", "--chapter", "astrology"]) == 1
    assert "The chapters are " in capsys.readouterr().err


def test_ops_by_a_regular_expression(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ops", "--grep", "^CUMUL|running"]) == 0
    found = [line.split()[1].partition("(")[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert {"cumulative_sum", "cumulative_prod"} <= set(found) and "add" not in found
    assert cli.main(["ops", "sin", "--grep", "hyperbolic"]) == 0
    found = [line.split()[1].partition("(")[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert found == ["asinh", "sinh"]
    assert cli.main(["ops", "--grep", "astrology"]) == 1
    assert capsys.readouterr().err.startswith("no operation of that name or chapter.")
    assert cli.main(["ops", "--grep", "["]) == 2
    assert capsys.readouterr().err.startswith(
        "--grep takes a regular expression, not '[': unterminated character set"
    )


@pytest.mark.parametrize(
    ("columns", "left_out"),
    [
        (400, ""),
        (150, "declared in"),
        (80, "declared in, own form on, kind, chapter"),
    ],
)
def test_ops_fit_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int, left_out: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert cli.main(["ops", "--chapter", "statistical"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    said = " ".join(out.partition("Left out for want of width: ")[2].split())
    assert said == (f"{left_out}. A file or a pipe gets all." if left_out else "")
    assert ("…" in out) == (columns <= 80) and "cumulative_" in out


def test_the_table_of_runners_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text("import multigrad as mg\nmg.sin(mg.ones(2))\n")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert cli.main(["ops", "--runners", str(script)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("operation") and max(map(len, out.splitlines())) <= 60


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0] == f"multigrad {mg.__version__} (Python {platform.python_version()})"
        and f"numpy {np.__version__}" in lines
    )
    code = (
        "import sys, multigrad.cli\n"
        "try: multigrad.cli.main(['--version'])\n"
        "except SystemExit: pass\n"
    )
    found = run(code=code + f"print(sorted({LIBRARIES} & set(sys.modules)))")
    assert found.stdout.endswith("[]\n"), found


@pytest.mark.parametrize(
    ("words", "asked"),
    [([], "COMMAND"), (["new"], "PLUGIN"), (["breaks"], "script"), (["profile"], "script")],
)
def test_what_is_not_given_is_asked_for(
    words: list[str], asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(words)
    assert capsys.readouterr().err.endswith(f"the following arguments are required: {asked}\n")


def test_a_closed_pipe_is_no_error() -> None:
    found = subprocess.run(
        f'"{sys.executable}" -m multigrad ops | head -1',
        shell=True,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert found.stdout.startswith("chapter") and not found.stderr


def test_conformance_needs_its_distribution(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.main(["conformance"]) == 2
    assert "pip install ./conformance" in capsys.readouterr().err


def test_conformance_of_an_unknown_backend() -> None:
    found = run("conformance", "--backend", "nosuch")
    assert found.returncode == 4
    assert "unknown backend 'nosuch'" in found.stdout + found.stderr


@pytest.mark.sweep
def test_conformance_prints_a_table_and_writes_results(tmp_path: Path) -> None:
    found = run(
        "conformance",
        "--backend",
        "numpy",
        "--json",
        str(tmp_path / "r.json"),
        "--report",
        str(tmp_path / "r.md"),
        "--",
        "-k",
        "numpy:tanh or numpy:add",
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert any(
        line.startswith("tanh ") and line.endswith(" ok") for line in found.stdout.splitlines()
    )
    assert "none" not in found.stdout  # of what was not selected
    results = json.loads((tmp_path / "r.json").read_text())
    assert results["backends"]["numpy"]["tests"]["tanh/vjp/real"] == ["passed"]
    assert "tan" in results["operations"]
    text = (tmp_path / "r.md").read_text()
    assert "| `tanh` | " in text and "| `tan` | none |" in text


RESULTS: dict[str, Any] = {
    "multigrad": "0.1.0",
    "samples": "short",
    "left out": {"cupy": "no device"},
    "operations": {
        name: {"chapter": "elementwise", "kind": "elementwise"} for name in ("sin", "cos", "tan")
    },
    "backends": {
        "one": {
            "lacks": ["complex"],
            "tests": {
                "sin/vjp/real": ["passed"],
                "sin/jvp/real": ["failed", "off by a sign"],
                "cos/vjp/real": ["exempt", "a bug of the library"],
                "kernels.take_ownership/kernel/override": ["passed"],
            },
        }
    },
}


def earlier(tmp_path: Path, results: dict[str, Any], name: str) -> str:
    path = tmp_path / name
    path.write_text(json.dumps(results))
    return str(path)


def test_report_explains_every_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # a test has failed
    assert cli.main(["conformance", "--from", earlier(tmp_path, RESULTS, "a.json")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert ["sin", "1", "FAIL,", "1", "ok"] in [line.split() for line in lines]
    assert ["cos", "1", "exempt"] in [line.split() for line in lines]
    assert ["tan", "none"] in [line.split() for line in lines]
    assert "- one, failed: sin/jvp/real: off by a sign" in lines
    assert "- one, exempt: cos/vjp/real: a bug of the library" in lines
    assert "- one, none: tan: the backend lacks what they need: complex" in lines
    assert "- cupy, not tested: no device" in lines


def test_what_was_not_selected_is_left_out_of_the_printed_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, tests = (
        RESULTS["backends"]["one"],
        {"sin/vjp/real": ["passed"], "cos/vjp/real": ["failed"]},
    )
    other = one | {"tests": {"sin/vjp/real": ["passed"]}, "not run": ["cos/vjp/real"]}

    def printed(*backends: dict[str, Any]) -> list[list[str]]:
        results = RESULTS | {"backends": {str(i): b for i, b in enumerate(backends)}}
        cli.main(["conformance", "--from", earlier(tmp_path, results, "a.json")])
        return [line.split() for line in capsys.readouterr().out.splitlines()]

    some = {"runs": [{"selected by": "-k :sin/"}]}
    lines = printed(other | some)
    assert ["sin", "1", "ok"] in lines
    assert not any("none" in line or "none:" in line for line in lines)
    # of two backends, an operation of either
    lines = printed(one | some | {"tests": tests}, other | some)
    assert ["cos", "1", "FAIL", "none"] in lines and not any("tan" in line for line in lines)
    assert "- 1, none: cos: they were not selected in this run" in [" ".join(i) for i in lines]
    # where nothing but a test of the suite was selected, none
    assert not any("none" in line for line in printed(other | some | {"tests": {}}))
    # of a run on all tests, and of one that died, every operation
    for whole in (other | {"runs": [{}]}, other | some | {"died": "by SIGKILL"}, other):
        assert ["tan", "none", "none"] in printed(whole, other | some)


def test_reports_of_several_runs_are_merged_between_the_markers(tmp_path: Path) -> None:
    two = {
        **RESULTS,
        "left out": {},
        "samples": "full",
        "backends": {"cupy": {"lacks": [], "tests": {"sin/vjp/real": ["passed"]}}},
    }
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- conformance: begin -->\nold\n<!-- conformance: end -->\nafter\n")
    cli.main(
        [
            "conformance",
            "--from",
            earlier(tmp_path, RESULTS, "a.json"),
            "--from",
            earlier(tmp_path, two, "b.json"),
            "--report",
            str(page),
            "--json",
            str(tmp_path / "c.json"),
        ]
    )
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "| operation | one | cupy |" in text and "short, full samples" in text
    assert json.loads((tmp_path / "c.json").read_text())["left out"] == {}


def test_a_file_of_results_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["conformance", "--from", str(tmp_path / "none.json")]) == 2
    assert "no such file" in capsys.readouterr().err
