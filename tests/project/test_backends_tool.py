"""tools/backends.py: the plugins that it writes, and its table.

It installs and runs libraries by hand only.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import tool_modules

import multigrad

ROOT = Path(multigrad.__file__).parents[1]
tool = tool_modules.tool("backends")


@pytest.mark.parametrize("name", tool.LIBRARIES)
def test_the_plugin_names_its_backend(name: str) -> None:
    names: dict[str, object] = {}
    exec(compile(tool.plugin(name), name, "exec"), names)
    (spec,) = names["multigrad_backends"]()  # type: ignore[operator]
    assert (spec.name, spec.module, spec.load) == (
        name,
        tool.LIBRARIES[name].module,
        f"multigrad_trial_{name}:make",
    )
    assert callable(names["make"])


def test_the_page_has_a_row_for_each_library() -> None:
    table = (
        (ROOT / "docs" / "backends.md").read_text().partition(tool.BEGIN)[2].partition(tool.END)[0]
    )
    assert [line.split(" ")[1] for line in table.splitlines() if line.startswith("| ")][
        2:
    ] == sorted(tool.LIBRARIES)


def test_the_page_shows_the_plugin_of_marray() -> None:
    page = (ROOT / "docs" / "backends.md").read_text()
    shown = "".join(
        f"    {line}\n" if line else "\n" for line in tool.plugin("marray").splitlines()
    )
    assert shown.strip("\n") in page
