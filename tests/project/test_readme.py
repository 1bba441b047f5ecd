"""The README: its examples run in one session, and the links of all pages lead somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
GPU = ROOT / "benchmarks" / "results" / "gpu.json"  # written by `make test-gpu`
PAGES = sorted(p for p in ROOT.rglob("*.md") if ".venv" not in p.parts)


@pytest.mark.filterwarnings("error")
def test_examples():
    pytest.importorskip("jax")
    from multigrad import registry

    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(blocks) >= 5
    scope: dict[str, object] = {}
    try:
        for block in blocks:
            exec(compile(block, str(README), "exec"), scope)
    finally:
        registry.OPS.pop("example.softplus", None)


def test_the_readme_says_what_cupy_has_run_on():
    """Until `make test-gpu` has passed and its results are kept, a stand-in; from then on, a
    GPU.
    """
    measured = json.loads(GPU.read_text()) if GPU.is_file() else {}
    seen = "cupy" in json.dumps(measured)
    told = re.findall(r"stand-in", README.read_text())
    assert bool(told) != seen, f"README.md and {GPU} disagree"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_to_files_of_the_repository(page):
    links = re.findall(
        r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
    )
    for link in links:
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), link


def test_sections_that_the_readme_links_are_there():
    for path, anchor in re.findall(r"\]\(([^)#\s:]+)#([^)]+)\)", README.read_text()):
        titles = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(), re.M)
        assert anchor in [re.sub(r"[^\w\- ]", "", t).lower().replace(" ", "-") for t in titles]
