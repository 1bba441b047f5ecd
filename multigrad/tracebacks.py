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
same objects. `blamed` does the same, and says what was called. A `try` that catches no exception
has no cost.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from reprlib import Repr
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from .errors import OWN, MultigradError, nearest
from .provided import wanted

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "MULTIGRAD_TRACEBACK"


@wanted
def library_roots() -> frozenset[str]:
    """The top-level modules of the array libraries in use.

    Provided by plugins/discovery.py.
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


def fold(error: BaseException, own: tuple[str, ...] = OWN) -> bool:
    """Remove the frames inside multigrad from the traceback of `error`.

    Call it in the `except` block of a function that raises `error` again. It returns whether the
    error comes from a function that the program passed in; the traceback then shows that function.
    `own` has the prefixes of the files whose frames are removed.
    """
    here = error.__traceback__
    if here is None:  # there was no memory for it
        return False
    rest = _kept(here.tb_next, True, own)
    if not full():
        frame = here.tb_frame
        error.__traceback__ = TracebackType(rest, frame, frame.f_lasti, frame.f_lineno)
        _fold_related(error)
    return rest is not None


def chosen(error: Exception, instead: Exception | None) -> Exception:
    """What the function that caught an error, now folded, raises: `instead`, if there is one."""
    if instead is not None:
        instead.__cause__ = error
        return instead
    if error.__traceback__ is not None and not full():
        error.__traceback__ = error.__traceback__.tb_next  # `raise` adds the entry of its frame
    return error


def _fold_related(error: BaseException) -> None:
    """Fold the causes and contexts of `error` that were caught inside; each run keeps one frame."""
    seen = {error}
    waiting = [error.__cause__, error.__context__]
    while waiting:
        related = waiting.pop()
        if related is not None and related not in seen:
            seen.add(related)
            related.__traceback__ = _kept(related.__traceback__, False, OWN)
            waiting += [related.__cause__, related.__context__]


def _kept(entry: TracebackType | None, inside: bool, own: tuple[str, ...]) -> TracebackType | None:
    """The entries from this one on, without those inside multigrad.

    Each later run of them keeps its first entry. `inside` says whether `entry` continues a run.
    """
    kept: list[TracebackType] = []
    while entry is not None:
        if entry.tb_frame.f_code.co_filename.startswith(own) or (
            inside and _is_library(entry.tb_frame)
        ):
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


def _is_library(frame: FrameType) -> bool:
    """Whether a frame that multigrad called is of an array library or the standard library."""
    root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return (
        root in sys.stdlib_module_names
        or root in library_roots()
        or root == "scipy"  # which plugins call
        or frame.f_code.co_filename.startswith("<frozen ")
    )


def entry(function: F) -> F:
    """Decorate a public function, so that its errors show the program and name its arguments.

    The traceback shows the program's frames, and one of multigrad. An error of Python or of a
    library that does not name the function gets a note with the arguments of the call. One that
    only says that code inside was given something else than it expects, such as an AttributeError,
    becomes a TypeError of that function. multigrad's own errors, and those of functions that the
    program passed in, stay as they are. A `try` costs nothing, but the call itself does: the
    decorator is for functions that take microseconds anyway.
    """
    return _public(function, function, function, _own_files(function))


def result_of(name: str, wrapped: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """Decorate the function that a transformation returns, which errors call `name`; see `entry`.

    wrapped  the function whose name and signature it has, if these are not its own
    """
    return lambda function: _public(function, wrapped or function, name, OWN)


def _public(
    function: F,
    wrapped: Callable[..., Any],
    called: Callable[..., Any] | str,
    own: tuple[str, ...],
) -> F:
    @wraps(wrapped)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if (
                kwargs
                and called is function
                and type(error) is TypeError
                and error.__traceback__ is not None
                and error.__traceback__.tb_next is None
            ):
                _suggest(error, function, kwargs)
            error = blamed(error, called, args, kwargs, own)
            raise error  # MULTIGRAD_TRACEBACK=full shows the frames inside

    shown: Any = call  # in tracebacks, by the name of `function`
    code: CodeType = shown.__code__
    shown.__code__ = code.replace(co_name=function.__name__, co_qualname=function.__qualname__)
    return shown  # type: ignore[no-any-return]


def _own_files(function: Callable[..., Any]) -> tuple[str, ...]:
    """The prefixes of the files of multigrad, and of the package of a function of a plugin."""
    code = getattr(function, "__code__", None)
    if code is None:
        raise TypeError(f"entry: expected a Python function, not {type(function).__name__}")
    package = sys.modules.get(str(function.__module__).partition(".")[0])
    if code.co_filename.startswith(OWN):
        return OWN
    return (*OWN, *(f"{folder}{os.sep}" for folder in getattr(package, "__path__", ())))


def instead_of(error: Exception, name: str, arguments: Iterable[Any] = ()) -> Exception | None:
    """The error of the function `name` for an error that says what code inside expects.

    Such an error does not say what was wrong with the call. Others give None, and so do those that
    are raised on purpose: an AttributeError with a text of its own, unless it is that of one
    of `arguments`, and an AssertionError with any text.
    """
    kind: type[Exception] | None = None
    match error:
        case AttributeError():
            of_argument = any(error.obj is x for x in arguments)
            kind = TypeError if of_argument or "has no attribute" in str(error) else None
        case AssertionError():
            kind = None if str(error) else TypeError
        case KeyError() | NameError() | StopIteration():
            kind = TypeError
        case RecursionError() | ZeroDivisionError():
            kind = ValueError
    if kind is None:
        return None
    return kind(f"{name}() failed with {type(error).__name__}: {error}")


PREFIX = "Called as "
_short = Repr()
_short.maxother = _short.maxstring = 60


def blamed(
    error: Exception,
    function: Callable[..., Any] | str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    own: tuple[str, ...] = OWN,
) -> Exception:
    """The error to raise for that of a call: folded, with a note of the arguments; see `entry`.

    function  the function, or what it is called in the error if it has no name of its own
    """
    theirs = fold(error, own)
    if isinstance(function, str):
        name = function
    elif function.__name__ == "__init__":
        name = type(args[0]).__name__
    else:
        name = function.__name__
    text = str(error)
    if theirs or isinstance(error, MultigradError) or text.startswith((f"{name}(", f"{name}:")):
        return chosen(error, None)
    notes = [note for note in getattr(error, "__notes__", ()) if not note.startswith(PREFIX)]
    note = f"{PREFIX}{name}({', '.join(_arguments(function, args, kwargs))})."
    instead = instead_of(error, name, (*args, *kwargs.values()))
    (instead or error).__notes__ = [*notes, note]
    return chosen(error, instead)


def _arguments(
    function: Callable[..., Any] | str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[str]:
    """Arguments as in a call: arrays by shape and dtype, others by a short repr."""
    try:
        names = iter(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):  # a function of C, or a text
        names = iter(())
    for value in args:
        p = next(names, None)
        named = p is not None and p.kind is p.POSITIONAL_OR_KEYWORD
        if p is None or p.name not in ("self", "cls"):
            yield f"{p.name}={_described(value)}" if p is not None and named else _described(value)
    for name, value in kwargs.items():
        yield f"{name}={_described(value)}"


def _described(value: Any) -> str:
    try:
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return f"<{type(value).__name__} of shape {tuple(value.shape)}, {value.dtype}>"
        return _short.repr(value)
    except Exception:  # an object may raise anything when it is asked for its repr
        return f"<{type(value).__name__}>"


def _suggest(error: TypeError, function: Callable[..., Any], names: Iterable[str]) -> None:
    """Add the closest keyword to the error for a misspelt keyword, as Python does from 3.13 on."""
    parameters = inspect.signature(function).parameters
    near = nearest(next((name for name in names if name not in parameters), ""), parameters)
    if near and "unexpected keyword argument" in str(error) and "Did you mean" not in str(error):
        error.args = (f"{error}.{near}",)
