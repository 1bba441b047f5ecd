"""The pages of docs/: every Python example runs, every page stands in the navigation of the site,
and each page is run by one test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tool_modules import tool

import multigrad as mg
from multigrad import registry

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# Pages that another test runs: in a process or a folder of their own, or beside other checks.
ELSEWHERE = {
    "from-autograd.md": "plugins/autograd/test_multigrad_autograd_scipy.py",
    "optimizers.md": "func/test_func_tree.py",
    "plugins.md": "project/test_plugins_page.py",
    "solvers.md": "plugins/scipy/test_multigrad_scipy_equations.py",
    "testing.md": "conformance/test_conformance_fixtures.py",
    "howto/out-of-core.md": "plugins/dask/test_multigrad_dask_page.py",
}
WARNED = {"seeing.md": "Converting a tensor with requires_grad=True"}
"""The pages that are about a warning."""

pages = tool("pages")


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def examples(page: Path) -> list[str]:
    return list(pages.blocks(page.read_text()))


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    """What a page declares is gone once its test is over."""
    mg.zeros(1)  # the operations are declared at the first use
    before = set(registry.OPS)
    yield
    for operation in registry.OPS.keys() - before:
        if operation.startswith("example."):
            registry.OPS.pop(operation)


@pytest.mark.sweep_after(2)
@pytest.mark.parametrize(
    "page", [p for p in PAGES if examples(p) and name(p) not in ELSEWHERE], ids=name
)
def test_the_examples_run(page: Path) -> None:
    text = page.read_text()
    for module in pages.needs(text):
        pytest.importorskip(
            module, reason=f"{module} is not installed: docs/{name(page)} was not run"
        )
    outputs = pages.run(text, f"docs/{name(page)}", WARNED.get(name(page), ""))
    assert len(outputs) == len(examples(page))


def test_a_page_that_runs_elsewhere_is_named_there() -> None:
    for page, test in ELSEWHERE.items():
        words = (ROOT / "tests" / test).read_text()
        assert page in words or f'"{page.removesuffix(".md")}"' in words, (
            f"{test} says nothing of docs/{page}"
        )


def test_no_page_lacks_the_mark_of_its_examples() -> None:
    """A fence without a language, or inside of a list, would not be run."""
    for page in PAGES:
        fences = re.findall(r"^( *)```(.*)$", page.read_text(), re.M)
        assert not [words for indent, words in fences if words == "python" and indent], (
            f"{page}: an example that is indented is not run"
        )


# ----- the site -----


def navigation() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    return loaded


def addresses(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [
        address
        for item in nav
        for address in addresses(item if isinstance(item, str) else next(iter(item.values())))
    ]


def test_every_page_is_in_the_navigation_once() -> None:
    listed = addresses(navigation()["nav"])
    assert len(listed) == len(set(listed))
    assert {name(page) for page in PAGES} <= set(listed)
    for address in listed:
        if address.startswith("repository/"):
            assert (ROOT / address.removeprefix("repository/")).is_file(), address
        elif not address.startswith("reference/") and address != "index.md":  # the README
            assert (DOCS / address).is_file(), address


def test_pages_outside_docs_are_in_the_navigation() -> None:
    """MkDocs builds each page that another page links to, and its strict mode wants each listed."""
    listed = addresses(navigation()["nav"])
    links = tool("site_links")
    linked = [path for path in links.brought(tuple(listed)) if path.endswith(".md")]
    assert linked and {links.address(path) for path in linked} <= set(listed)


def test_the_reference_has_the_pages_of_the_navigation() -> None:
    written = tool("reference").pages()
    assert set(written) == {
        address for address in addresses(navigation()["nav"]) if address.startswith("reference/")
    }
    assert (
        "## `vmap`" in written["reference/func.md"]
        and "## `sin`" in written["reference/operations/elementwise.md"]
    )
    assert "## `backward`" in written["reference/tensor.md"] and " at 0x" not in "".join(
        written.values()
    )


def test_the_drawings_are_fresh() -> None:
    for path, text in tool("drawings").texts().items():
        assert path.is_file() and path.read_text() == text, (
            f"{path.name} is not what tools/drawings.py draws: run it"
        )


def test_every_drawing_is_shown() -> None:
    texts = "".join(
        page.read_text() for page in [*PAGES, ROOT / "README.md", ROOT / "ARCHITECTURE.md"]
    )
    assert all(f"img/{path.name}" in texts for path in (DOCS / "img").iterdir())


def test_what_a_block_shows() -> None:
    text = "```python\nprint('a')\n1 + 1\n```\n\n```python\nx = 3\n```\n\n```python\nx\n```\n"
    assert [output.text for output in pages.run(text, "a page")] == ["a\n2\n", "", "3\n"]
    assert (
        'title="Output"' in pages.shown(text, "a page")
        and pages.shown(text, "a page").count("Output") == 2
    )


def test_a_warning_on_a_page_is_an_error() -> None:
    for category in ("UserWarning", "DeprecationWarning"):
        with pytest.raises(Warning, match="old"):
            pages.run(
                f"```python\nimport warnings\nwarnings.warn('old', {category})\n```\n", "a page"
            )


def test_a_page_that_cannot_be_run_says_why() -> None:
    with pytest.raises(
        RuntimeError, match="here.md cannot be run: no_such_module is not installed"
    ):
        pages.shown("<!-- needs: no_such_module -->\n", "here.md")


def test_pictures_are_shown() -> None:
    pytest.importorskip("matplotlib")
    text = "```python\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\n```\n"
    (output,) = pages.run(text, "a page")
    assert output.text == "" and len(output.pictures) == 1 and "<svg" in pages.shown(text, "a page")
