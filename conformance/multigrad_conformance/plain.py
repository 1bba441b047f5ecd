"""Escaping of texts from other packages: ids, reasons, versions and errors may hold anything."""

from __future__ import annotations

import re
from html import escape

ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
MARKUP = re.compile(r"[\\<>\[\]|`*~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def clean(text: object) -> str:
    """Return the text as one line, without control, hidden or direction-changing characters."""
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def markdown(text: object) -> str:
    """Return the text as one line of Markdown, also usable in a table."""
    return MARKUP.sub(lambda m: ENTITIES.get(m[0], f"\\{m[0]}"), clean(text))


def code(text: object) -> str:
    """Return the text as Markdown code.

    Code has no escapes, so a text that code or a table cannot hold is formatted as normal text.
    """
    line = clean(text)
    return markdown(line) if set(line) & set("`|\\<>&") or not line else f"`{line}`"


def html(text: object) -> str:
    """Escape a text for the content and the quoted attributes of HTML and XML."""
    return escape(clean(text), quote=True)
