"""What stands outside of multigrad's own package uses its public names alone: the conformance
suite, the plugins, the guides and the examples.
"""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import multigrad as mg

ROOT = Path(__file__).parents[2]
PUBLIC = {
    "multigrad",
    "multigrad.autograd",
    "multigrad.errors",
    "multigrad.extend",
    "multigrad.func",
    "multigrad.pages",
    "multigrad.registry",
}
"""The modules whose names without an underscore keep their meaning; `__all__`, where there is one,
lists them.
"""

SOURCES = sorted(
    [
        *(ROOT / "conformance").rglob("*.py"),
        *(ROOT / "plugins").rglob("*.py"),
        *(ROOT / "examples").rglob("*.py"),
    ]
)
GUIDES = [ROOT / "docs" / name for name in ("extending.md", "transformations.md")]
SLOTS = {name for name in dir(mg.Tensor) if name.startswith("_") and not name.endswith("__")}


def text_of(path: Path) -> str:
    text = path.read_text()
    return (
        text if path.suffix == ".py" else "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
    )


def is_public(module: str, name: str) -> bool:
    """Whether a module offers that name to others: a module of its own, what it lists, an
    operation, or a prefix of operations.
    """
    if f"{module}.{name}" in PUBLIC:
        return True
    if module not in PUBLIC or name.startswith("_"):
        return False
    names = getattr(importlib.import_module(module), "__all__", None)
    return (
        names is None
        or name in names
        or (
            module == "multigrad" and any(f"{op}.".startswith(f"{name}.") for op in mg.registry.OPS)
        )
    )


def uses(path: Path) -> list[str]:
    """What a file takes from multigrad that is not public."""
    tree = ast.parse(text_of(path))
    bound: dict[str, str] = {}  # what stands for which module
    wrong = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "multigrad":
                    bound[alias.asname or "multigrad"] = alias.name if alias.asname else "multigrad"
                    wrong += [] if alias.name in PUBLIC else [f"import {alias.name}"]
        elif (
            isinstance(node, ast.ImportFrom)
            and node.level == 0
            and (node.module or "").partition(".")[0] == "multigrad"
        ):
            for alias in node.names:
                if not is_public(node.module or "", alias.name):
                    wrong.append(f"from {node.module} import {alias.name}")
                elif f"{node.module}.{alias.name}" in PUBLIC:
                    bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in bound:
                wrong += (
                    []
                    if is_public(bound[node.value.id], node.attr) or node.attr == "__version__"
                    else [f"{node.value.id}.{node.attr}"]
                )
            elif node.attr in SLOTS and not (
                isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            ):
                wrong.append(f".{node.attr}")
    return wrong


@pytest.mark.parametrize("path", [*SOURCES, *GUIDES], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_only_public_names(path: Path) -> None:
    mg.zeros(1)
    # which declares operations under a prefix of its own
    importlib.import_module("multigrad_autograd.scipy")
    assert uses(path) == []


def test_the_plugins_say_which_api_they_need() -> None:
    for name in ("multigrad_mparray", "multigrad_special", "multigrad_strict"):
        source = (ROOT / "plugins" / name.replace("_", "-") / name / "__init__.py").read_text()
        assert f"\nMULTIGRAD_API = {mg.extend.API}" in source, name


@pytest.mark.parametrize(
    "text",
    [
        "import multigrad.core.level",
        "from multigrad.plugins import discovery",
        "from multigrad.extend import _within",
        "from multigrad.registry import _declare",
        "import multigrad as mg\nmg._lookup",
        "from multigrad import core",
        "import multigrad as mg\nmg.asarray(1.0)._array",
    ],
)
def test_what_is_noticed(text: str, tmp_path: Path) -> None:
    (tmp_path / "stranger.py").write_text(text)
    assert len(uses(tmp_path / "stranger.py")) == 1
