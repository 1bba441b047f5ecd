"""Texts of others made harmless where they are shown: ids, reasons, versions and errors may hold
anything.
"""

from __future__ import annotations

import re
from html import escape

ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
MARKUP = re.compile(r"[\\<>\[\]|`*~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def clean(text: object) -> str:
    """One line, without what steers a terminal, hides, or reverses text."""
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def markdown(text: object) -> str:
    """One line of Markdown that shows the text, in a table as well."""
    return MARKUP.sub(lambda m: ENTITIES.get(m[0], f"\\{m[0]}"), clean(text))


def code(text: object) -> str:
    """The same as code, which has no backslashes: a text that code or a table cannot hold is shown
    as text.
    """
    line = clean(text)
    return markdown(line) if set(line) & set("`|\\<>&") or not line else f"`{line}`"


def html(text: object) -> str:
    """For the content and for quoted attributes of HTML and of XML."""
    return escape(clean(text), quote=True)
