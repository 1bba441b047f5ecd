"""The walk-through of ARCHITECTURE.md: how to add an elementwise operation, done in a copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("multigrad_conformance")
pytest.importorskip("multigrad_special")
pytest.importorskip("mpmath")
pytest.importorskip("mparray")

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    *("multigrad", "conformance", "tools", "tests/hard_cases.py", "tests/precision"),
    *("docs/differences.md", "docs/subgradients.md", "plugins/multigrad-special", "pyproject.toml"),
)
PLACES = {
    "multigrad/ops/beyond/ufuncs.py": "# fmt: off\n",
    "conformance/multigrad_conformance/elementwise.py": "POINTS: dict[str, Points] = {\n",
    "tests/precision/scalars.py": "FUNCTIONS: dict[str, Any] = {\n",
}
"""The files that are edited, and the line after which the lines of the walk-through stand."""

USED = """
import sys
import numpy as np
import multigrad as mg
t = mg.asarray([-2.0, 0.0, 3.0], requires_grad=True)
y = np.fabs(t)
assert "Fabs" in repr(y.grad_fn), y.grad_fn
y.sum().backward()
assert t.grad.tolist() == [-1.0, 0.0, 1.0], t.grad
assert mg.func.vmap(mg.func.grad(mg.fabs))(np.asarray([-2.0, 3.0])).tolist() == [-1.0, 1.0]
print(mg.fabs.__doc__)
sys.path.insert(0, "tests")
from precision import sweep
errors = sweep.measured("fabs")
assert errors and sweep.complaints(errors) == []
"""


def blocks() -> list[str]:
    text = (ROOT / "ARCHITECTURE.md").read_text().split("**An elementwise operation.**")[1]
    told, code = text.split("**Another operation.**")[0], r"```python\n(.*?)```"
    assert [told.index(path) for path in PLACES] == sorted(told.index(path) for path in PLACES)
    return re.findall(code, told, re.S)


@pytest.mark.sweep
def test_an_elementwise_operation_is_added_by_the_three_edits(tmp_path: Path) -> None:
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    for (name, place), block in zip(PLACES.items(), blocks(), strict=True):
        path = tmp_path / name
        text = path.read_text()
        assert text.count(place) == 1, name
        path.write_text(text.replace(place, place + block))

    paths = ("", "conformance", "plugins/multigrad-special")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(tmp_path / path) for path in paths)
    }

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    for tool in ("tools/stubs.py", "tools/examples.py", "tests/hard_cases.py"):
        run(tool)
    said = run("-c", USED)
    assert "Gradient, for the cotangent g: g * sign(x) (0 at 0)." in said
    assert "[0.25, 0.5]" in said.split("Example:")[1] and "Meaning: numpy.fabs." in said
    for written, text in {
        "multigrad/typing/namespaces.pyi": "def fabs(",
        "docs/differences.md": " `fabs` ",
        "docs/subgradients.md": "| `fabs` | 0, -0 | [0, 0] |",
    }.items():
        assert text in (tmp_path / written).read_text(), written
    suite = run("-m", "multigrad", "conformance", "--backend", "numpy", "--", "-k", "fabs")
    (row,) = re.findall(r"^\s*fabs\s+(.*)$", suite, re.M)
    assert re.search(r"\b[1-9]\d* ok", row), suite
