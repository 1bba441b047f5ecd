"""Ten tasks: the README links a page for each, and the code that does it stands on that page.
test_pages.py runs the pages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_sites import Site

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| ([^|]+) \| \[[^\]]+\]\(([^)]+)\) \|$", re.M)
# What does each task, as it stands on its page.
CODE = {
    "differentiate a NumPy function": "func.grad(wave)",
    "the same under `jax.jit`": "jax.jit(func.grad(energy))",
    "the gradient of each example": "func.vmap(func.grad(loss), in_axes=(None, 0, 0))",
    "a Hessian-vector product": "func.hvp(rosenbrock, x, v)",
    "fit a model with SciPy": "minimize(func.value_and_grad(loss)",
    "a custom derivative": "softplus.defvjp(forward, backward)",
    "find where a gradient is lost": "mg.autograd.detect_breaks()",
    "reduce memory use": "func.checkpoint(block)",
    "bring a new array library": "new backend mylib",
    "test a function on all backends": "check_function(softplus",
}
LIBRARY = "import array_api_strict as array_api\nArray = type(array_api.zeros(1))\n"
GRADIENT = """
import multigrad as mg, mylib
g = mg.func.grad(lambda x: mg.sum(x * x))(mylib.array_api.asarray([1.0, 2.0]))
print(type(g).__module__, g)
"""


def linked() -> dict[str, str]:
    """The page of each task, by the README."""
    text = (ROOT / "README.md").read_text()
    return dict(ROW.findall(text.split("## Ten tasks")[1].split("\n## ")[0]))


def test_the_readme_has_the_ten() -> None:
    assert list(linked()) == list(CODE)


@pytest.mark.parametrize("task", CODE)
def test_the_page_that_the_readme_links_has_the_code(task: str) -> None:
    assert CODE[task] in (ROOT / linked()[task].partition("#")[0]).read_text()


def test_the_library_of_the_readme_is_differentiated(tmp_path: Path) -> None:
    """Its two files, an entry point, and a library: array_api_strict under another name, without
    the plugin that it has.
    """
    pytest.importorskip("array_api_strict")
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S):
        first = block.partition("\n")[0]
        if first.startswith("# multigrad_mylib/"):
            path = tmp_path / first.removeprefix("# ")
            path.parent.mkdir(exist_ok=True)
            path.write_text(block)
    site = Site(tmp_path)
    site.module("mylib", LIBRARY)
    site.distribution("multigrad-mylib", mylib="multigrad_mylib")
    environment = os.environ | {
        "MULTIGRAD_BLOCK": "strict,special",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-c", GRADIENT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.startswith("array_api_strict") and "2." in done.stdout and "4." in done.stdout
    )
