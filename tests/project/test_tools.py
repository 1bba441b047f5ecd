"""The command lines of tools and benchmarks: --help tells what a file does and does nothing, an
unknown option is an error, --check writes nothing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("tools", "benchmarks")
    for path in (ROOT / folder).glob("*.py")
    if "__main__" in path.read_text()
)


def run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / command), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def state() -> str:
    """The files of the repository that git sees as changed, and their sizes and times."""
    return "".join(
        f"{path} {path.stat().st_mtime_ns}\n"
        for folder in ("docs", "multigrad", "plugins", "constraints")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".md", ".svg", ".pyi", ".py", ".txt")
    )


@pytest.mark.sweep
@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_all_that_help_does(command: str) -> None:
    if command == "tools/constraints.py":
        pytest.importorskip("packaging")
    before = state()
    done = run(command, "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: "), done.stderr
    done = run(command, "--no-such-option")
    assert done.returncode == 2 and "usage: " in done.stderr
    assert state() == before


def test_check_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from writing import write_or_check

    same, other, new = (tmp_path / name for name in ("same.md", "other.md", "new.md"))
    same.write_text("text\n")
    other.write_text("old\n")
    texts = lambda: dict.fromkeys((same, other, new), "text\n")
    assert write_or_check("", texts, ["--check"]) == 1
    assert other.read_text() == "old\n" and not new.exists()
    assert write_or_check("", texts, []) == 0
    assert {path.read_text() for path in (same, other, new)} == {"text\n"}
    assert write_or_check("", texts, ["--check"]) == 0


def test_make_generated_runs_every_check() -> None:
    """And the hook of pre-commit runs `make generated`, which has an environment."""
    makefile = (ROOT / "Makefile").read_text()
    commands = makefile.partition("\ngenerated: ")[2].partition("\n\n")[0]
    checked = {*COMMANDS, "tests/hard_cases.py"}
    text = {name: (ROOT / name).read_text() for name in checked}
    checked = {
        name for name in checked if "--check" in text[name] or "write_or_check" in text[name]
    }
    # benchmarks check their aims, constraints ask the package index
    checked -= {"benchmarks/run.py", "benchmarks/compare.py"}
    assert {name for name in checked if f"{name} --check" not in commands} == set()
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert "entry: make generated" in hooks and "entry: python" not in hooks
    assert "ruff format --check" in makefile
