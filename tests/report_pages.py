"""The page of a run, read back: its data, text and attributes; and the commands that tell of a run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from multigrad import script
from multigrad.tools.report.run import Run

REPOSITORY = Path(__file__).parents[1]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'@DATA@"
VOID = {"meta", "input", "br"}


class Page(HTMLParser):
    """Checks that elements close in order; keeps the embedded data, the text, and every
    attribute.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, Any]]] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.json = self.text = ""
        self.scripts = 0
        self.feed(text)
        self.close()
        assert not self.open
        self.data = json.loads(self.json)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        tag, attrs = self.open[-1] if self.open else ("", {})
        if tag == "script" and attrs.get("id") == "data":
            self.json += data
        elif tag not in ("script", "style"):
            self.text += data


def alone(html: str) -> Page:
    """The page, which loads nothing from outside."""
    page = Page(html)
    assert not re.search(
        r"https?:|//cdn|@import|\bfetch\(|XMLHttpRequest|import\(|url\((?!#)", html
    )
    outside = {"src", "href", "srcset", "action", "data", "xlink:href", "poster"}
    assert not [
        (tag, name)
        for tag, name, _ in page.attributes
        if name in outside or name.startswith("on") or tag in ("link", "iframe", "img", "object")
    ]
    assert page.scripts == 2
    return page


def run(folder: Path, text: str, *arguments: str, name: str = "script.py") -> tuple[Run, Page]:
    path = folder / name
    path.write_text(text)
    it = Run("script", name, ("command", " ".join([str(path), *arguments])))
    it.begin()

    def finish(status: int) -> int:
        it.end(("exit status", status), f"ended with {status}" if status else "")
        return status

    script.run(str(path), arguments, finish)
    return it, Page(it.html)


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m multigrad` in a folder."""
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "multigrad", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        timeout=300,
    )
