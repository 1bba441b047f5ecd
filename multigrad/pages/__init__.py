"""Web pages: one skeleton, one style sheet, and the scripts, as files of this folder.

A page is one file: it has its style, its scripts and its data inside, and its content security
policy lets it load nothing. `page.js` has what the other scripts use.

The suite of conformance makes its page from this module, too: the names here keep their meaning
with those of `multigrad.extend`.
"""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

__all__ = ["page", "source"]

_HERE = files(__name__)


def source(name: str, **parts: str) -> str:
    """Return a file of this folder; each `@NAME@` in it is replaced by the part of that name."""
    text = _HERE.joinpath(name).read_text(encoding="utf-8")
    return re.sub(f"@({'|'.join(parts)})@", lambda m: parts[m[1]], text) if parts else text


def page(title: str, kind: str, body: str, script: str, data: Any = None) -> str:
    """Return a page.

    title   its title, as text
    kind    the class of its body, which chooses the layout in `page.css`
    body    the content of its body, as HTML
    script  the text of its script, which runs when the body is there
    data    None, or what the script reads as JSON from the element `data`
    """
    return source(
        "page.html",
        TITLE=escape(title),
        STYLE=source("page.css"),
        KIND=kind,
        BODY=body,
        DATA="" if data is None else _embedded(data),
        SCRIPT=script,
    )


def _embedded(data: Any) -> str:
    """Return the element with the data; nothing in it ends the element."""
    text = json.dumps(data, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="data">{text}</script>\n'
