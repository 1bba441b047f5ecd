"""Hooks that MkDocs calls while it builds the site; mkdocs.yml names this file.

They add the generated reference, bring files outside docs/ (READMEs of plugins, ARCHITECTURE.md)
into the site, and run the pages that show their outputs.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
import sys
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads this file by its path

import pages
import reference
from mkdocs.structure.files import File
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "repository"  # the site's folder for files outside docs/
LINK = re.compile(r"(!?\[[^\]\[]*\])\(([^)\s]+)\)")
CODE = re.compile(r"(^ *```.*?^ *```$|^(?: {4}[^\n]*\n)+)", re.M | re.S)
HOME = "README.md"  # the first page of the repository is also that of the site


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


@lru_cache
def brought(addresses: tuple[str, ...]) -> list[str]:
    """Return the files outside docs/ that the navigation names or that pages link to.

    A link may be indirect, by way of other pages.
    """
    waiting = [
        f"docs/{p.relative_to(ROOT / 'docs').as_posix()}" for p in (ROOT / "docs").rglob("*.md")
    ]
    waiting += [source(a) for a in addresses if a.startswith(f"{FOLDER}/") or a == address(HOME)]
    seen: dict[str, None] = dict.fromkeys(waiting)
    while waiting:
        page = waiting.pop()
        if not page.endswith(".md"):
            continue
        for _, link in LINK.findall(CODE.sub("", (ROOT / page).read_text())):
            path = file_of(page, link)
            if path and path not in seen:
                seen[path] = None
                waiting.append(path)
    return [path for path in seen if not path.startswith("docs/")]


def file_of(page: str, link: str) -> str | None:
    """Return the file of the repository that a link in `page` leads to; of a folder, its README."""
    if re.match(r"[a-z]+:|#", link):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link.partition("#")[0]))
    if (ROOT / path).is_dir():
        path = posixpath.normpath(posixpath.join(path, "README.md"))
    return path if (ROOT / path).is_file() else None


def address(path: str) -> str:
    """Return the site's address of a file of the repository."""
    if path == HOME:
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{FOLDER}/{path}"


def source(place: str) -> str:
    """Return the file of the repository at an address of the site."""
    if place == address(HOME):
        return HOME
    return place.removeprefix(f"{FOLDER}/") if place.startswith(f"{FOLDER}/") else f"docs/{place}"


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


def moved(match: re.Match[str], place: str) -> str:
    """Return a link as it is written in the site.

    A link to a folder without a page becomes plain text.
    """
    words, link = match.groups()
    if re.match(r"[a-z]+:|#", link):
        return match.group()
    target, anchor = file_of(source(place), link), link.partition("#")[2]
    if target is None:
        folder = ROOT / posixpath.normpath(
            posixpath.join(posixpath.dirname(source(place)), link.partition("#")[0])
        )
        # MkDocs reports what is wrong with the link
        return words[1:-1] if folder.is_dir() else match.group()
    relative = posixpath.relpath(address(target), posixpath.dirname(place) or ".")
    return f"{words}({relative}{'#' + anchor if anchor and target.endswith('.md') else ''})"
