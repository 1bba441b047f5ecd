"""The page about a block of a program: `with mg.profile_page("run.html"):`."""

from __future__ import annotations

import os
import sys
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Literal

from ... import observe
from ..graphs import provenance
from ..profiler.recorder import Recorder
from .run import Run

LARGEST = 8_000_000
"""Larger pages, in characters, are not displayed in a notebook, which would save them."""


class profile_page:
    """Profile a block, and write one page that shows where its time and memory went.

        with multigrad.profile_page("run.html") as page:
            train()
        page  # displays itself in a notebook

    path  the file of the page, a str or a pathlib.Path; an existing file is replaced

    Operations, passes, lines, arrays and graphs are recorded, as `python -m multigrad profile
    script.py` records them for a script. The page is written when the block ends, even by an
    exception, which then propagates. A line on stdout names the file. The page needs no network and
    no server.

    The profiler observes the thread and the asyncio task that enter it, tasks started inside, and
    threads that run in a copy of its context (`contextvars.copy_context().run`).

    On entering it raises FileNotFoundError, IsADirectoryError or another OSError if the page cannot
    be written, and RuntimeError if a profiler is already running or this object was entered before.
    """

    def __init__(self, path: str | os.PathLike[str] = "multigrad-profile.html") -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(
                "profile_page takes the path of the page that it writes, a str or a "
                f"pathlib.Path, not {type(path).__name__}; for example profile_page('run.html')"
            )
        self.path = Path(path)
        self._entered = False
        self._run: Run | None = None  # set while the block runs
        self._html: str | None = None

    def __enter__(self) -> profile_page:
        if self._entered:
            raise RuntimeError(
                "this profile_page was entered before: a page tells of one block, so call "
                "profile_page again"
            )
        if any(isinstance(observer, Recorder) for observer in observe.watching()):
            raise RuntimeError(
                "profile_page: a profiler is running already (a profile_page, "
                "autograd.profiler.profile, or the command `python -m multigrad profile`), and "
                "would count what this one takes as the program's. Leave it first; a part of a "
                "block gets a name by `with "
                "multigrad.autograd.profiler.record_function('name'):`"
            )
        self.path = self.path.absolute()  # the block may change the working directory
        _check_writable(self.path)
        self._entered = True
        where = provenance.site(sys._getframe(1), provenance.skipped())
        title = self.path.name if where is None else where.short
        self._run = Run("block", title, ("block", where or "line not known"))
        self._run.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        if self._run is None:
            raise RuntimeError("this profile_page is not running: each is entered and left once")
        run, self._run = self._run, None
        if kind is None:
            run.end(("ended by", "its last line"))
        else:
            run.end(("ended by", kind.__qualname__), f"raised {kind.__qualname__}")
        try:
            self._html = run.write(self.path)
        except Exception as failure:
            if error is None:
                raise
            error.add_note(
                f"profile_page did not write {self.path}: {type(failure).__name__}: {failure}"
            )
            return False
        print(f"report: {self.path}")
        return False

    @property
    def html(self) -> str:
        """The page. Raises RuntimeError before the block has ended."""
        if self._html is None:
            raise RuntimeError(
                "there is no page yet: it is made when the block of profile_page ends"
            )
        return self._html

    def __repr__(self) -> str:
        state = ", not written" if self._entered else ", not entered yet"
        if self._html is not None:
            state = ""
        elif self._run is not None:
            state = ", running"
        return f"<profile_page {str(self.path)!r}{state}>"

    def _repr_html_(self) -> str:
        text = f"<pre>{escape(repr(self))}</pre>"
        if self._html is None:
            return text
        if len(self._html) > LARGEST:
            return (
                f"{text}<p>The page is too large to be shown in a notebook: open the file in a "
                "browser.</p>"
            )
        return (
            f'<iframe srcdoc="{escape(self._html)}" title="profile" sandbox="allow-scripts '
            'allow-downloads" style="width: 100%; height: 720px; border: 1px solid #d1d5db; '
            'border-radius: 6px"></iframe>'
        )


def _check_writable(path: Path) -> None:
    """Raise now the OSError that writing the page after the block would raise."""
    if os.path.isdir(path):
        raise IsADirectoryError(
            f"profile_page: {path} is a folder; give the path of a file in it, such as "
            f"{path / 'run.html'}"
        )
    if not os.path.isdir(path.parent):
        raise FileNotFoundError(
            f"profile_page: there is no folder {path.parent}; make it first, or write the page "
            "elsewhere"
        )
    new = not os.path.lexists(path)
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise type(error)(
            f"profile_page: {path} cannot be written ({error.strerror}); write the page elsewhere"
        ) from None
    if new:
        path.unlink()
