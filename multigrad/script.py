"""Run a script as `python script.py arguments` does, then call a function: for commands on scripts.

A program ends later than its last line: Python waits for its threads, tells pools to stop theirs,
and calls the functions registered with atexit. So if the process belongs to the script, the final
function is registered with atexit too. It is registered first and therefore runs last.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
import types
import zipfile
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from typing import Any

from . import observe
from .tools.graphs import provenance


def run(
    path: str, arguments: Sequence[str], finish: Callable[[int], int], leaving: bool = False
) -> int:
    """Run a script in this process, then call `finish` with its exit status.

    Returns the status that `finish` returns.

    leaving   this process ends with the script. `finish` then runs as the last function of the
              original process. If it returns another status than the script's, the process ends
              with that status at once. The return value is the script's own status.

    The script finds its absolute path in `__file__` and itself in `sys.modules`. `sys.excepthook`
    shows an error, without the frames of this function.
    """
    name, path = path, os.path.abspath(path)
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = path, sys.modules["builtins"]  # type: ignore[attr-defined]
    main.__loader__ = SourceFileLoader("__main__", path)
    sys.argv, sys.path[0:1], sys.modules["__main__"] = (
        [name, *arguments],
        [os.path.dirname(os.path.realpath(path))],
        main,
    )
    folder = provenance.shown_from(os.path.join(os.getcwd(), ""))
    ended: list[int] = []
    if leaving:
        atexit.register(_last, finish, ended, os.getpid())
    ended.append(_status(path, main))
    if leaving:
        return ended[0]
    try:
        return finish(ended[0])
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before
        provenance.shown_from(folder)


def watch_threads() -> Callable[[], None]:
    """Report events of all new threads to the observers of this context.

    Call the result to stop. Threads have their own contexts, in which no observer is active. A
    command owns the process, so it may enter its observers there too.
    """
    observers = observe.watching()
    before = threading.getprofile()

    def begin(*_: object) -> None:
        """Run at the first event of a thread, then restore the earlier profile function."""
        sys.setprofile(before)
        for observer in observers:
            observe.enter(observer)

    threading.setprofile(begin)
    return lambda: threading.setprofile(before)


def _last(finish: Callable[[int], int], ended: list[int], process: int) -> None:
    if os.getpid() != process or not ended:  # a fork of the process
        return
    status = finish(ended[0])
    if status != ended[0]:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _status(path: str, main: types.ModuleType) -> int:
    try:
        _execute(path, main)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and not trace.tb_frame.f_code.co_filename.startswith(path):
            trace = trace.tb_next
        # a SyntaxError of the script itself has no frame in it
        if trace is not None or isinstance(error, SyntaxError):
            error = error.with_traceback(trace)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _execute(path: str, main: types.ModuleType) -> None:
    if zipfile.is_zipfile(path):  # Python runs the __main__.py of a directory
        import runpy

        runpy.run_path(path, run_name="__main__")
        return
    with io.open_code(path) as file:
        code: Any = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)
