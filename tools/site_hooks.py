"""Hooks that MkDocs calls while it builds the site; mkdocs.yml names this file.

They add the generated reference, bring files outside docs/ (READMEs of plugins, ARCHITECTURE.md)
into the site, and run the pages that show their outputs.
"""

from __future__ import annotations

import fnmatch
import sys
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads this file by its path

import pages
import reference
from mkdocs.structure.files import File
from pymdownx.slugs import slugify
from site_links import CODE, LINK, ROOT, address, brought, moved, source


def on_config(config: Any) -> Any:
    """Use the anchors of code hosts for headings, so that a link works in both places."""
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slugify(case="lower")
    config["repo_url"] = tomllib.loads((ROOT / "release.toml").read_text())["repository"] or None
    return config


def on_files(files: Any, config: Any) -> Any:
    for place, text in reference.pages().items():
        files.append(File.generated(config, place, content=text))
    for path in brought(tuple(named(config["nav"]))):
        content: Any = (
            (ROOT / path).read_text() if path.endswith(".md") else (ROOT / path).read_bytes()
        )
        files.append(File.generated(config, address(path), content=content))
    return files


def named(nav: Any) -> list[str]:
    """Return the addresses in the navigation."""
    if isinstance(nav, str):
        return [nav]
    return [
        place
        for item in nav
        for place in named(item if isinstance(item, str) else next(iter(item.values())))
    ]


def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    place = page.file.src_uri
    if place.startswith("reference/"):
        return text
    parts = CODE.split(text)  # odd positions are code
    parts[::2] = [LINK.sub(lambda match: moved(match, place), part) for part in parts[::2]]
    text = "".join(parts)
    if any(fnmatch.fnmatch(place, pattern) for pattern in config["extra"]["run"]):
        text = pages.shown(text, source(place))
    return text
