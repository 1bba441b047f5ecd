"""Tracebacks that show the user's program: each run of frames inside multigrad becomes one line.

A public function, here `outer`, catches an exception from inside and raises it again:

    try:
        return work(x)
    except Exception as error:
        fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
        raise

`fold` removes frames from `error.__traceback__`, starting below the frame of `outer`: the frames of
multigrad, of array libraries, and of the standard library that multigrad called. After the
program's line the traceback then shows the line of `fold`, and below it the frames of functions
that the program passed in, if there are any. The exception, its cause and its context remain the
same objects. A `try` that catches no exception has no cost.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from .errors import OWN, nearest
from .provided import wanted

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "MULTIGRAD_TRACEBACK"


@wanted
def library_roots() -> frozenset[str]:
    """The top-level modules of the array libraries in use.

    Provided by backends/discovery.py.
    """
    raise NotImplementedError


def full(*_: object) -> bool:
    """Whether tracebacks show all frames: the environment variable MULTIGRAD_TRACEBACK is `full`.

    The variable is read when an exception is raised.
    """
    return os.environ.get(VARIABLE) == "full"


def shown(*_: object) -> bool:
    """The value of `__tracebackhide__` in generated functions: whether pytest hides them."""
    return not full()


def fold(error: BaseException) -> bool:
    """Remove the frames inside multigrad from the traceback of `error`.

    Call it in the `except` block of a function that raises `error` again. It returns whether the
    error comes from a function that the program passed in; the traceback then shows that function.
    """
    here = error.__traceback__
    if here is None:  # there was no memory for it
        return False
    rest = _kept(here.tb_next, inside=True)
    if not full():
        frame = here.tb_frame
        error.__traceback__ = TracebackType(rest, frame, frame.f_lasti, frame.f_lineno)
        _fold_related(error)
    return rest is not None


def _fold_related(error: BaseException) -> None:
    """Fold the causes and contexts of `error` that were caught inside; each run keeps one frame."""
    seen = {error}
    waiting = [error.__cause__, error.__context__]
    while waiting:
        related = waiting.pop()
        if related is not None and related not in seen:
            seen.add(related)
            related.__traceback__ = _kept(related.__traceback__, inside=False)
            waiting += [related.__cause__, related.__context__]


def _kept(entry: TracebackType | None, inside: bool) -> TracebackType | None:
    """The entries from this one on, without those inside multigrad.

    Each later run of them keeps its first entry. `inside` says whether `entry` continues a run.
    """
    kept: list[TracebackType] = []
    while entry is not None:
        if _is_own(entry.tb_frame) or (inside and _is_library(entry.tb_frame)):
            if not inside:
                kept.append(entry)
            inside = True
        else:
            kept.append(entry)
            inside = False
        entry = entry.tb_next
    following: TracebackType | None = None
    for entry in reversed(kept):
        if entry.tb_next is not following:
            entry = TracebackType(following, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
        following = entry
    return following


def _is_own(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(OWN)


def _is_library(frame: FrameType) -> bool:
    """Whether a frame belongs to an array library or to the standard library.

    Such frames are removed if multigrad has called them.
    """
    root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return (
        root in sys.stdlib_module_names
        or root in library_roots()
        or frame.f_code.co_filename.startswith("<frozen ")
    )


def entry(function: F) -> F:
    """Decorate a slow public function, so that its exceptions are folded."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if (
                kwargs
                and type(error) is TypeError
                and error.__traceback__ is not None
                and error.__traceback__.tb_next is None
            ):
                _suggest(error, function, kwargs)
            fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
            raise

    made: Any = call
    code: CodeType = made.__code__
    made.__code__ = code.replace(co_name=function.__name__, co_qualname=function.__qualname__)
    return made  # type: ignore[no-any-return]


def _suggest(error: TypeError, function: Callable[..., Any], given: Iterable[str]) -> None:
    """Add the closest keyword to the error for a misspelt keyword, as Python does from 3.13 on."""
    known = inspect.signature(function).parameters
    near = nearest(next((name for name in given if name not in known), ""), known)
    if near and "unexpected keyword argument" in str(error) and "Did you mean" not in str(error):
        error.args = (f"{error}.{near}",)
