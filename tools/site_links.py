"""The files outside docs/ that the site shows, their addresses, and the links between pages."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "repository"  # the site's folder for files outside docs/
LINK = re.compile(r"(!?\[[^\]\[]*\])\(([^)\s]+)\)")
CODE = re.compile(r"(^ *```.*?^ *```$|^(?: {4}[^\n]*\n)+)", re.M | re.S)
HOME = "README.md"  # the first page of the repository is also that of the site


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
