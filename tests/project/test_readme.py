"""Every Python example of the README and of the guides runs, in order, in one session each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
GPU = ROOT / "benchmarks" / "results" / "gpu.json"  # written by `make test-gpu`
PAGES = sorted(p for p in ROOT.rglob("*.md") if ".venv" not in p.parts)
GUIDES = [
    ROOT / "docs" / f"{name}.md"
    for name in ("transformations", "seeing", "extending", "compile", "loops")
]


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


@pytest.mark.parametrize("guide", GUIDES, ids=lambda p: p.stem)
# which the guide to breaks is about
@pytest.mark.filterwarnings("error", "ignore:Converting a tensor with requires_grad=True")
def test_guides(guide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pictures are written there
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.S)
    assert len(blocks) >= 3
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(guide), "exec"), scope)


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
